"""Admission: from a candidate's bytes to a tool that may run. Checked in this order: manifest, signature, place, schema, code.

Admitted tools are cached by the digest of their bytes, their id and the keys that count, never by path or file times.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from rye.call.safe_text import plain
from rye.errors import ItemError, TrustError
from rye.executor import run_code
from rye.fs.digest import sha256
from rye.items import bundles, lockfiles, parse, schema, spaces
from rye.items.parse import FUNCTION_RUNTIME, Tool
from rye.items.spaces import Candidate, Space
from rye.plain_class import Record
from rye.trust import decisions
from rye.trust import verify as trust_verify
from rye.trust.decisions import Decisions
from rye.trust.signature import form_of
from rye.trust.verified_cache import Verdicts
from rye.trust.verify import TrustStore, Verified

if TYPE_CHECKING:
    from pathlib import Path


_T = TypeVar("_T")
_Key = tuple[str, ...]
_REMEMBERED = 512


class Ready(Record):
    """A tool that may run: verified, admitted to its place, compiled."""

    tool: Tool
    checker: schema.Checker
    code: CodeType
    item: dict[str, Any]


_ready: dict[_Key, Ready] = {}
_runtimes: dict[_Key, Tool] = {}
_manifests: dict[_Key, bundles.Manifest] = {}
_verdicts: dict[str, Verdicts] = {}


class Admission:
    """Decides what may be used in one call: the spaces that are asked, the user's decisions, the keys that count now."""

    def __init__(self, among: Sequence[Space], decided: Decisions | None = None) -> None:
        """Read which keys count for these spaces; the user's decisions are loaded once."""
        self.among = among
        self.decided = decisions.load() if decided is None else decided
        self.store: TrustStore = spaces.trust_store(among, decided=self.decided)
        self.state = self.store.digest
        self._held: dict[str, bundles.Manifest] = {}

    @classmethod
    def of(cls, project_path: str | Path) -> Admission:
        """Return what decides for a project."""
        decided = decisions.load()
        return cls(spaces.spaces(project_path, decided), decided)

    def find(self, item_type: str, item_id: str) -> Candidate:
        """Return the item of the first space that has it. Errors as `rye.items.spaces.find`."""
        return spaces.find(item_type, item_id, self.among)

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
        # An admission by --allow-unsigned must not serve a later call that does not give it.
        known_as = (*self._key(candidate), "unsigned" if allow_unsigned else "")
        return _ready.get(known_as) or _remember(_ready, known_as, self._prepare(candidate, allow_unsigned=allow_unsigned))

    def runtime(self) -> tuple[Candidate, Tool]:
        """Return the function runtime's item, verified. Its limits apply to the call."""
        # Only the system space: a project could bring a runtime that allows longer calls.
        found = spaces.find("tool", FUNCTION_RUNTIME, [space for space in self.among if space.name == "system"])
        self._hold_to_manifest(found)
        known_as = self._key(found)
        known = _runtimes.get(known_as)
        if known is None:
            known = _remember(_runtimes, known_as, parse.read_tool(self._verified(found), found.item_id, found.suffix))
        return found, known

    def admit(self, candidate: Candidate) -> Verified:
        """Return a candidate's bytes as verified, manifest included. Errors as `tool`."""
        self._hold_to_manifest(candidate)
        return self._verified(candidate)

    def _key(self, candidate: Candidate) -> _Key:
        """Return the cache key of a verdict: the bytes, the space and id, and which keys count."""
        return candidate.digest, candidate.space, candidate.item_id + candidate.suffix, self.state

    def _verified(self, candidate: Candidate) -> Verified:
        known = self._known()
        # The verdict belongs to this state of trust; under other keys the same bytes may be refused.
        verified = trust_verify.verify(candidate.raw, form_of(candidate.item_type, candidate.suffix), self.store, known)
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
            # Read once a call: the tool and its runtime are in the same bundle.
            manifest = self._held[candidate.space] = self._manifest_of(self._space(candidate.space))
        # The digest covers the raw file, so a changed shebang or timestamp is noticed, too.
        if manifest.items.get(candidate.item_type, {}).get(candidate.item_id) != candidate.digest:
            bundles.check(manifest, candidate)

    def _manifest_of(self, space: Space) -> bundles.Manifest:
        bundle_id = bundles.SYSTEM if space.name == "system" else bundles.bundle_of(space)
        assert bundle_id is not None  # noqa: S101 - neither a project's nor the user's space
        raw = spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml")
        # By content: two writes within one tick of the clock leave the same modification time.
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
            # A key document beside the bundle is named in the hint only; it never makes its own key count.
            if err.code != "untrusted_key" or bundle_id == bundles.SYSTEM or not os.path.isfile(document):
                raise
            hint = f"If you know whose it is, run `rye trust add {document}`."
            raise TrustError(err.code, f"The installed bundle {bundle_id}: {err.message}", hint, **err.details) from None

    def _space(self, name: str) -> Space:
        # Entry points are read only for items of installed bundles: reading them is slow.
        known = next((space for space in self.among if space.name == name), None)
        return known or next(space for space in spaces.installed_bundles() if space.name == name)

    def _prepare(self, candidate: Candidate, *, allow_unsigned: bool) -> Ready:
        verified = self._signed_or_allowed(candidate, allow_unsigned=allow_unsigned)
        # One tree serves the metadata and the code: what was read as metadata is what runs.
        tree = parse.python_tree(verified.body) if candidate.suffix == ".py" else None
        tool = parse.read_tool(verified, candidate.item_id, candidate.suffix, tree)
        if tree is None or tool.executor_id != FUNCTION_RUNTIME:
            raise _not_runnable(tool, candidate.suffix)
        _check_requirement(tool)
        _check_timeout(tool)
        code = run_code.compiled(tree, tool.id)
        return Ready(tool, schema.Checker(tool.schema), code, describe(candidate, verified, tool.version))

    def _signed_or_allowed(self, candidate: Candidate, *, allow_unsigned: bool) -> Verified:
        try:
            return self._verified(candidate)
        except TrustError as err:
            # A bad signature is refused even with --allow-unsigned: the file was changed after it was signed.
            if not allow_unsigned or err.code != "unsigned" or candidate.space not in ("project", "user"):
                raise
        return trust_verify.unsafe_unsigned(candidate.raw, form_of(candidate.item_type, candidate.suffix))

    def hold_to_lock(self, tool: Tool, chain: Sequence[dict[str, Any]]) -> None:
        """Raise TrustError `lockfile_mismatch` where a lockfile pins the tool to something else."""
        for space in self.among:
            if space.name in ("project", "user") and os.path.isdir(f"{space.folder}/{lockfiles.FOLDER}"):
                lockfiles.check(space, tool.id, tool.version, chain)


def describe(candidate: Candidate, verified: Verified, version: str) -> dict[str, Any]:
    """Return where an item comes from and who signed it."""
    return {
        "space": candidate.space,
        "version": version,
        "digest": verified.digest,
        "signer": verified.key.public.fingerprint,
        "owner": verified.key.owner,
    }


def _remember(known: dict[Any, _T], key: object, value: _T) -> _T:
    # A server that sees ever new items must not grow; what is in use is back after one call.
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
    return value


def _not_runnable(tool: Tool, suffix: str) -> ItemError:
    """Return why no runtime here runs a tool: by its file type, or by the runtime that it names."""
    if tool.executor_id == FUNCTION_RUNTIME:
        why = f"{tool.id} is a {suffix} file, and {FUNCTION_RUNTIME} runs Python files (.py) only."
        return ItemError("runtime_missing", why, "Write the tool as a Python file with execute(params, project_path).")
    named = f"names the runtime {plain(tool.executor_id)}" if tool.executor_id else f"is of the type {plain(tool.tool_type)}"
    return ItemError(
        "runtime_missing",
        f"{tool.id} {named}; this version runs only tools of {FUNCTION_RUNTIME}.",
        f"Write it as a Python file whose __executor_id__ is {FUNCTION_RUNTIME!r}.",
    )


def _check_timeout(tool: Tool) -> None:
    seconds = tool.metadata.get("__timeout__", 1)
    # `not seconds > 0` also refuses NaN, which every comparison would let pass.
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ItemError(
            "malformed_item", f"{tool.id}: __timeout__ must be a number of seconds above 0.", "Correct it and sign it again."
        )


def _check_requirement(tool: Tool) -> None:
    from rye._version import __version__

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
