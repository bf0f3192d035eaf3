"""From a candidate's bytes to a tool that may run: signature, manifest, place, lockfile, schema, code; in this order.

What is ready is known by the digest of its bytes, its id and the state of trust, never
by its path or times.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from rye import bundles, entry, items, lockfiles, schema, spaces, trust
from rye.errors import ItemError, TrustError
from rye.record import Record
from rye.signing import form_of
from rye.toolkit.untrusted import plain
from rye.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from rye.items import Tool
    from rye.spaces import Candidate, Space
    from rye.trust import TrustStore, Verified

FUNCTION_RUNTIME = "rye/core/runtimes/python_function_runtime"

_T = TypeVar("_T")
_Key = tuple[str, ...]
_REMEMBERED = 512


class Ready(Record):
    """A tool that may run: verified, admitted to its place, compiled."""

    tool: Tool
    checker: schema.Checker
    code: CodeType


_ready: dict[_Key, Ready] = {}
_runtimes: dict[_Key, Tool] = {}
_manifests: dict[_Key, bundles.Manifest] = {}
_verdicts: dict[str, Verdicts] = {}


class Admission:
    """One call's ground for trust: the spaces asked and the keys that count now."""

    def __init__(self, among: Sequence[Space]) -> None:
        """Read which keys count for these spaces."""
        self.among = among
        self.store: TrustStore = spaces.trust_store(among)
        self.state = self.store.digest
        self._held: dict[str, bundles.Manifest] = {}

    def tool(self, candidate: Candidate, *, allow_unsigned: bool = False) -> Ready:
        """Return the candidate as a tool that may run.

        Raises:
            TrustError: its `code` is the verdict.
            ItemError: `not_executable`, `runtime_missing`, `rye_too_old`, `malformed_item`, `bad_schema`.
        """
        if candidate.item_type != "tool":
            raise ItemError(
                "not_executable", f"{candidate.item_id} is {candidate.item_type}, which is read, not run.", "Execute a tool."
            )
        self._hold_to_manifest(candidate)
        known_as = (*self._key(candidate), "unsigned" if allow_unsigned else "")
        return _ready.get(known_as) or _remember(_ready, known_as, self._prepare(candidate, allow_unsigned=allow_unsigned))

    def runtime(self) -> tuple[Candidate, Tool]:
        """Return the function runtime's item, verified: what it declares is obeyed."""
        found = spaces.find("tool", FUNCTION_RUNTIME, [space for space in self.among if space.name == "system"])
        self._hold_to_manifest(found)
        known_as = self._key(found)
        known = _runtimes.get(known_as)
        if known is None:
            known = _remember(_runtimes, known_as, items.read_tool(self._verified(found), found.item_id, found.suffix))
        return found, known

    def verify(self, candidate: Candidate) -> Verified:
        """Return a candidate's bytes as verified, manifest included. Errors as `tool`."""
        self._hold_to_manifest(candidate)
        return self._verified(candidate)

    def _key(self, candidate: Candidate) -> _Key:
        """Name what a verdict depends on: the bytes, where they stand, and which keys count."""
        return sha256(candidate.raw).hexdigest(), candidate.space, candidate.item_id + candidate.suffix, self.state

    def _verified(self, candidate: Candidate) -> Verified:
        known = self._known()
        verified = trust.verify(candidate.raw, form_of(candidate.item_type, candidate.suffix), self.store, known)
        known.add(verified.file_digest)
        spaces.refuse_alien_key(candidate.item_id, verified.key.role, candidate.space)
        return verified

    def _known(self) -> Verdicts:
        known = _verdicts.get(self.state)
        if known is None:
            known = _remember(_verdicts, self.state, Verdicts(self.state))
        return known

    def _hold_to_manifest(self, candidate: Candidate) -> None:
        if candidate.space in ("project", "user"):
            return
        manifest = self._held.get(candidate.space)
        if manifest is None:
            # Read once a call: the tool and its runtime stand in one.
            manifest = self._held[candidate.space] = self._manifest_of(self._space(candidate.space))
        bundles.check(manifest, candidate)

    def _manifest_of(self, space: Space) -> bundles.Manifest:
        bundle_id = bundles.bundle_of(space)
        assert bundle_id is not None  # noqa: S101 - neither a project's nor the user's space
        raw = spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml")
        known_as = (sha256(raw or b"").hexdigest(), space.name, self.state)
        manifest = _manifests.get(known_as)
        if manifest is None:
            manifest = self._manifest(raw, bundle_id, space)
            self._known().add(manifest.verified.file_digest)
            _remember(_manifests, known_as, manifest)
        return manifest

    def _manifest(self, raw: bytes | None, bundle_id: str, space: Space) -> bundles.Manifest:
        try:
            return bundles.read(raw, bundle_id, self.store, self._known())
        except TrustError as err:
            document = f"{space.folder}/trusted_keys/{err.details.get('fingerprint')}.toml"
            if err.code != "untrusted_key" or bundle_id == bundles.SYSTEM or not os.path.isfile(document):
                raise
            hint = f"If you know whose it is, run `rye trust add {document}`."
            raise TrustError(err.code, f"The installed bundle {bundle_id}: {err.message}", hint, **err.details) from None

    def _space(self, name: str) -> Space:
        # What is installed is asked only for what is served from there: reading it takes long.
        known = next((space for space in self.among if space.name == name), None)
        return known or next(space for space in spaces.installed_bundles() if space.name == name)

    def _prepare(self, candidate: Candidate, *, allow_unsigned: bool) -> Ready:
        verified = self._signed_or_allowed(candidate, allow_unsigned=allow_unsigned)
        tool = items.read_tool(verified, candidate.item_id, candidate.suffix)
        if candidate.suffix != ".py" or tool.executor_id != FUNCTION_RUNTIME:
            named = plain(tool.executor_id or tool.tool_type)
            raise ItemError(
                "runtime_missing", f"{tool.id} needs the runtime {named}, which is not here.",
                f"Only tools of {FUNCTION_RUNTIME} run in this version.",
            )  # fmt: skip
        _check_requirement(tool)
        _check_timeout(tool)
        code = entry.compiled(verified.body.decode(), tool.id)
        return Ready(tool, schema.Checker(tool.schema), code)

    def _signed_or_allowed(self, candidate: Candidate, *, allow_unsigned: bool) -> Verified:
        try:
            return self._verified(candidate)
        except TrustError as err:
            if not allow_unsigned or err.code != "unsigned" or candidate.space not in ("project", "user"):
                raise
        return trust.unsafe_unsigned(candidate.raw, form_of(candidate.item_type, candidate.suffix))

    def hold_to_lock(self, tool: Tool, chain: Sequence[dict[str, Any]]) -> None:
        """Raise TrustError `lockfile_mismatch` where a lockfile pins the tool to something else."""
        for space in self.among:
            if space.name in ("project", "user"):
                lockfiles.check(space, tool.id, tool.version, chain)


def _remember(known: dict[Any, _T], key: object, value: _T) -> _T:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
    return value


def _check_timeout(tool: Tool) -> None:
    seconds = tool.metadata.get("__timeout__", 1)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ItemError(
            "malformed_item", f"{tool.id}: __timeout__ must be a number of seconds above 0.", "Correct it and sign it again."
        )


def _check_requirement(tool: Tool) -> None:
    from rye import __version__

    wanted = tool.metadata.get("__requires_rye__")
    if wanted is None:
        return
    numbers = str(wanted).removeprefix(">=").split(".")
    if not str(wanted).startswith(">=") or not all(part.isdigit() for part in numbers):
        raise ItemError("malformed_item", f"{tool.id}: __requires_rye__ must read '>=X.Y'.", "Correct it and sign it again.")
    if [int(part) for part in numbers] > [int(part) for part in __version__.split(".")]:
        raise ItemError(
            "rye_too_old", f"{tool.id} needs rye {plain(str(wanted))}; this is {__version__}.", "Upgrade rye-workspace."
        )
