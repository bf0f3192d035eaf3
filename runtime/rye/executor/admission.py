"""Admission: from a candidate's bytes to a tool that may run, with its whole chain.

Checked in this order: manifest, signature, place, each link of the chain in the same way, schema, code. Admitted tools are
cached by the digests of all links' bytes, their ids and the keys that count. Who asks for the same item again need not read all
of it anew, as long as the files and folders that decided stand as they were (`rye.fs.stamps`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from rye.call.safe_text import plain
from rye.errors import ItemError, TrustError
from rye.executor import chain as chains
from rye.executor.chain import Chain, Link
from rye.fs.stamps import NOT_KEPT, Basis
from rye.items import bundles, lockfiles, parse, schema, scripts, spaces
from rye.items.parse import Tool
from rye.items.spaces import Candidate, Space
from rye.plain_class import Record, changed
from rye.trust import decisions
from rye.trust import verify as trust_verify
from rye.trust.decisions import Decisions
from rye.trust.signature import form_of
from rye.trust.verified_cache import Verdicts
from rye.trust.verify import TrustStore, Verified

if TYPE_CHECKING:
    from pathlib import Path

    from rye.executor.chain import Primitive


_T = TypeVar("_T")
_Key = tuple[str, ...]
_REMEMBERED = 512


class Ready(Record):
    """A tool that may run: verified, admitted to its place, with all of its chain, and what its primitive made of it.

    Attributes:
        offered: the tool's own `offered`, asked at every call.
    """

    tool: Tool
    chain: Chain
    checker: schema.SchemaChecker
    primitive: Primitive
    plan: Any
    seconds: float
    item: dict[str, Any]
    offered: frozenset[str]


_ready: dict[_Key, Ready] = {}
_read: dict[_Key, Tool] = {}
_manifests: dict[str, tuple[bytes | None, str, bundles.Manifest]] = {}
_verdicts = lru_cache(maxsize=_REMEMBERED)(Verdicts)


class Admission:
    """Decides what may be used in one call: the spaces that are asked, the user's decisions, the keys that count now."""

    def __init__(self, search_path: Sequence[Space], decided: Decisions | None = None, basis: Basis = NOT_KEPT) -> None:
        """Read which keys count for these spaces; the user's decisions are loaded once. `basis` notes what all rests on."""
        self.search_path = search_path
        self.decided = decisions.load() if decided is None else decided
        self.basis = basis
        self.store: TrustStore = spaces.trust_store(search_path, decided=self.decided, basis=self.basis)
        self.state = self.store.digest
        self._held: dict[str, bundles.Manifest] = {}

    @classmethod
    def of(cls, project_path: str | Path) -> Admission:
        """Return what decides for a project."""
        basis = Basis()
        # Also the folder: a link that leads nowhere hides decisions, and looks as if there were none.
        for path in (os.path.dirname(decisions.path()), decisions.path()):
            basis.rest_on(path)
        decided = decisions.load()
        return cls(spaces.spaces(project_path, decided, basis), decided, basis)

    def find(self, item_type: str, item_id: str) -> Candidate:
        """Return the item of the first space that has it. Errors as `rye.items.spaces.find`."""
        return spaces.find(item_type, item_id, self.search_path, self.basis)

    def tool(self, candidate: Candidate, *, allow_unsigned: bool = False) -> Ready:
        """Return the candidate as a tool that may run.

        Raises:
            TrustError: its `code` is the verdict.
            ItemError: `not_executable`, `runtime_missing`, `rye_too_old`, `malformed_item`, `bad_schema`.
        """
        if candidate.item_type != "tool":
            why = f"{candidate.item_id} is {candidate.item_type}, which is read, not run."
            raise ItemError("not_executable", why, "Execute a tool.")
        read = self.read(candidate, allow_unsigned=allow_unsigned)
        links = self._links(Link(candidate, read))
        # At every call, as the tool itself: what changed since is noticed, and what was read runs.
        files: dict[str, bytes] = {}
        if "__files__" in read.metadata:
            # Few tools have several files, and a cold call of the others does without the module.
            from rye.items import tool_files

            files = tool_files.read(read, self._space(candidate.space))
        # An admission by --allow-unsigned must not serve a later call that does not give it.
        known_as = ("unsigned" if allow_unsigned else "", *(part for one in links for part in self._key(one.candidate)))
        return _ready.get(known_as) or remember(_ready, known_as, self._prepare(links, files))

    def lasts(self, chain: Chain) -> bool:
        """Tell whether all that this chain rests on was noted, and every change of it from now on will be noticed."""
        named = {space.name for space in self.search_path}
        noted = all(one.candidate.space in named and "__files__" not in one.tool.metadata for one in chain.links)
        return noted and self.basis.is_settled

    def chain(self, first: Link) -> Chain:
        """Return the whole chain of a verified tool, without making it ready. Errors as `tool`."""
        return chains.assemble(self._links(first))

    def _links(self, first: Link) -> list[Link]:
        """Return the tool and all links behind it, each verified."""
        links = [first]
        # `assemble` judges what was found; here it only must come to an end.
        while links[-1].tool.executor_id is not None and len(links) <= scripts.MOST_LINKS:
            links.append(self._next(links[-1]))
        return links

    def _next(self, named_by: Link) -> Link:
        item_id = str(named_by.tool.executor_id)
        system = self._space("system")
        listed = item_id in self._manifest_in("system", system).items.get("tool", {})
        try:
            # A reserved id is the system's, whatever else the user lets a project serve, unless the system lacks it.
            search_path = (system,) if listed else self._below(named_by.candidate.space)
            candidate = spaces.find("tool", item_id, search_path, self.basis)
        except ItemError as err:
            if err.code not in ("item_not_found", "bad_item_id"):
                raise
            raise chains.missing(named_by, err) from None
        return Link(candidate, self.read(candidate))

    def _below(self, space: str) -> Sequence[Space]:
        """Return the spaces that may serve what an item of one space names: that space, and those behind it."""
        names = [one.name for one in self.search_path]
        if space in names:
            return self.search_path[names.index(space) :]
        return (self._space(space), self._space("system"))

    def read(self, candidate: Candidate, *, allow_unsigned: bool = False) -> Tool:
        """Return what a candidate says, verified. Errors as `tool`."""
        self._check_manifest(candidate)
        known_as = (*self._key(candidate), "unsigned" if allow_unsigned else "")
        known = _read.get(known_as)
        if known is not None:
            return known
        verified = self._signed_or_allowed(candidate, allow_unsigned=allow_unsigned)
        known_metadata = None
        # The system's manifest vouches for the metadata of these very bytes, which are not parsed then.
        if candidate.space == "system" and candidate.suffix == ".py":
            known_metadata = bundles.metadata_from_manifest(candidate, self._manifest_in("system"))
        read = parse.read_tool(verified, candidate.item_id, candidate.suffix, known_metadata)
        return remember(_read, known_as, read)

    def admit(self, candidate: Candidate) -> Verified:
        """Return a candidate's bytes as verified, manifest included. Errors as `tool`."""
        self._check_manifest(candidate)
        return self._verified(candidate)

    def _key(self, candidate: Candidate) -> _Key:
        """Return the cache key of a verdict: the bytes, the space and id, and which keys count."""
        return candidate.digest, candidate.space, candidate.item_id + candidate.suffix, self.state

    def _verified(self, candidate: Candidate) -> Verified:
        # The verdict belongs to this state of trust; under other keys the same bytes may be refused.
        known = _verdicts(self.state)
        verified = bundles.signed(candidate, self.store, known)
        known.add(verified.file_digest)
        return verified

    def _check_manifest(self, candidate: Candidate) -> None:
        if candidate.space in ("project", "user"):
            return
        manifest = self._manifest_in(candidate.space)
        # The digest covers the raw file, so a changed shebang or timestamp is noticed, too.
        if manifest.items.get(candidate.item_type, {}).get(candidate.item_id) != candidate.digest:
            bundles.check(manifest, candidate)

    def _manifest_in(self, name: str, space: Space | None = None) -> bundles.Manifest:
        # Read once a call: a tool and its runtime are often in the same bundle.
        manifest = self._held.get(name)
        if manifest is None:
            manifest = self._held[name] = self._manifest_of(space or self._space(name))
        return manifest

    def _manifest_of(self, space: Space) -> bundles.Manifest:
        bundle_id = bundles.bundle_of(space)
        assert bundle_id is not None
        raw = spaces.read_file(space, f"bundles/{bundle_id}/manifest.yaml", self.basis)
        # By content: two writes within one tick of the clock leave the same modification time.
        known = _manifests.get(space.name)
        if known is not None and known[:2] == (raw, self.state):
            return known[2]
        manifest = self._manifest(raw, bundle_id, space)
        _verdicts(self.state).add(manifest.verified.file_digest)
        _manifests[space.name] = raw, self.state, manifest
        return manifest

    def _manifest(self, raw: bytes | None, bundle_id: str, space: Space) -> bundles.Manifest:
        try:
            return bundles.read(raw, bundle_id, self.store, _verdicts(self.state))
        except TrustError as err:
            document = f"{space.folder}/trusted_keys/{err.details.get('fingerprint')}.toml"
            # A key document beside the bundle is named in the hint only; it never makes its own key count.
            if err.code != "untrusted_key" or bundle_id == bundles.SYSTEM or not os.path.isfile(document):
                raise
            hint = f"If you know whose it is, run `rye trust add {document}`."
            raise TrustError(err.code, err.message, hint, **err.details) from None

    def _space(self, name: str) -> Space:
        # Entry points are read only for items of installed bundles: reading them is slow.
        known = next((space for space in self.search_path if space.name == name), None)
        return known or next(space for space in spaces.installed_bundles() if space.name == name)

    def _prepare(self, links: Sequence[Link], files: dict[str, bytes]) -> Ready:
        import importlib

        chain = changed(chains.assemble(links), files=files)
        tool, candidate = chain.tool, links[0].candidate
        _check_requirement(tool)
        seconds = chains.time_limit(chain)
        primitive: Any = importlib.import_module(chains.PRIMITIVES[chain.primitive])
        plan = primitive.plan(chain)
        described = describe(candidate, tool.verified, tool.version)
        return Ready(tool, chain, schema.SchemaChecker(tool.schema), primitive, plan, seconds, described, tool.offered)

    def _signed_or_allowed(self, candidate: Candidate, *, allow_unsigned: bool) -> Verified:
        try:
            return self._verified(candidate)
        except TrustError as err:
            # A bad signature is refused even with --allow-unsigned: the file was changed after it was signed.
            if not allow_unsigned or err.code != "unsigned" or candidate.space not in ("project", "user"):
                raise
        return trust_verify.unsafe_unsigned(candidate.raw, form_of(candidate.item_type, candidate.suffix))

    def check_lockfile(self, tool: Tool, chain: Sequence[dict[str, Any]]) -> None:
        """Raise TrustError `lockfile_mismatch` where a lockfile pins the tool to something else."""
        for space in self.search_path:
            folder = f"{space.folder}/{lockfiles.FOLDER}"
            # `access` answers for what is missing, as it mostly is, without an exception.
            if space.name in ("project", "user") and os.access(folder, os.F_OK) and os.path.isdir(folder):
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


def remember(known: dict[Any, _T], key: object, value: _T) -> _T:
    """Keep a value for later calls, and return it."""
    # A server that sees ever new items must not grow; what is in use is back after one call.
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
    return value


def _check_requirement(tool: Tool) -> None:
    from rye._version import __version__

    wanted = tool.metadata.get("__requires_rye__")
    if wanted is None:
        return
    if not re.fullmatch(r">=\d{1,9}(?:\.\d{1,9})*", str(wanted)):
        raise ItemError("malformed_item", f"{tool.id}: __requires_rye__ must read '>=X.Y'.", "Correct it and sign it again.")
    if [int(part) for part in str(wanted)[2:].split(".")] > [int(part) for part in __version__.split(".")]:
        why = f"{tool.id} needs rye {plain(str(wanted))}; this is {__version__}."
        raise ItemError("rye_too_old", why, "Upgrade rye-workspace.")
