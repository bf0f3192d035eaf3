"""Pulling: what was verified, and is neither a rollback nor another signer's, is installed in one step.

Order: fetch, verify, judge against what the user pinned and saw before, remember, install, renew lockfiles. Until the
installation begins nothing is written but the user's own memory of versions.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, TypeVar

from rye.config import user_dirs
from rye.errors import ItemError, RegistryError, RyeError, TrustError, UsageError
from rye.executor import executor
from rye.items import lockfiles, spaces, tool_files, versions
from rye.items import parse as items_parse
from rye.items.install import Copy, install
from rye.items.spaces import Space
from rye.items.versions import is_version, version_key
from rye.plain_class import Record, field
from rye.registry.artifacts import Fetched, Repository, VerifiedFile, fetch, form_in_registry, verify_files
from rye.registry.oci.reference import Reference, parse
from rye.registry.oci.store import OciStore, RegistryTarget, at_once
from rye.registry.push import yank_reason
from rye.trust import pins
from rye.trust import verify as trust_verify
from rye.trust.pins import Marks, SeenVersion

_TOOL = "rye/registry/registry"
_Result = TypeVar("_Result")


class PullOptions(Record):
    """How to pull.

    Attributes:
        destination: `project` or `user`; `none` where nothing is to be installed.
        pin: let the first key of a namespace be the only one from now on.
        allow_downgrade: take a lower version than was seen, is installed or locked; or other bytes of the same.
        overwrite: replace a file that was edited here, or is another's.
    """

    destination: str = "project"
    pin: bool = False
    allow_downgrade: bool = False
    overwrite: bool = False


class Pull(Record, frozen=False):
    """One artifact on its way."""

    fetched: Fetched
    checked: list[VerifiedFile]
    warnings: list[str] = field(factory=list)

    @property
    def row(self) -> dict[str, Any]:
        """What is reported of it."""
        head = self.checked[0]
        return {
            "item_type": head.file.item_type,
            "item_id": head.file.item_id,
            "version": head.version,
            "digest": self.fetched.manifest.digest,
            "signer": head.verified.key.public.fingerprint,
            "owner": head.verified.key.owner,
            "warnings": self.warnings,
        }


def pull(target: RegistryTarget, item_type: str, texts: Sequence[str], options: PullOptions) -> list[dict[str, Any]]:
    """Pull items and bundles; a reference may be a pattern below a namespace (`my/*`).

    Return a row for each: `{"status": "installed" | "refused", …}`. A refused one has `error`, `hint` and `code`, and nothing
    of it was written; the others are installed all the same.

    Raises:
        UsageError: `bad_space`, `bad_reference`. RegistryError: `not_in_registry`, of a pattern.
    """
    if options.destination not in ("project", "user"):
        raise UsageError("bad_space", f"Nothing is installed to {options.destination!r}.", "Install to project or user.")
    search_path = spaces.spaces(target.project)
    stores: dict[str | None, OciStore] = {}

    def store_of(reference: Reference) -> OciStore:
        # One store for each registry, so that its connections and tokens serve all references.
        return stores.setdefault(reference.registry, target.store(reference))

    def with_tags(reference: Reference) -> Repository:
        found = Repository(store_of(reference), reference.namespace)
        # Asked for before the threads start: once for all items of a namespace.
        _ = found.tags
        return found

    references = [one for text in texts for one in _references(text, item_type, store_of)]
    # The last reference of a namespace stands for all.
    asked = {(one.registry, one.namespace): one for one in references}
    repositories = {place: _unless_refused(with_tags, one) for place, one in asked.items()}
    most = max((one.store.parallel for one in repositories.values() if isinstance(one, Repository)), default=1)

    def gathered(reference: Reference) -> Pull | RyeError:
        repository = repositories[reference.registry, reference.namespace]
        return _unless_refused(_verified, repository, reference, search_path, options.destination)

    pulls = at_once(most, gathered, references)
    # All are judged under one lock before the first is installed: two pulls cannot pass each other's checks.
    with pins.changing() as known:
        admitted = [_unless_refused(_admit, one, known, search_path, options) for one in pulls]
    rows = [_unless_refused(_install, one, target.project, search_path, options) for one in admitted]
    pairs = zip(references, rows, strict=True)
    return [_refused(reference, row) if isinstance(row, RyeError) else row for reference, row in pairs]


def _unless_refused(step: Callable[..., _Result], outcome: object, *more: object) -> _Result | RyeError:
    """Return what a step makes of an outcome, or its refusal; what was refused before stays refused."""
    try:
        return outcome if isinstance(outcome, RyeError) else step(outcome, *more)
    except RyeError as err:
        return err


def _references(text: str, item_type: str, store_of: Callable[[Reference], OciStore]) -> list[Reference]:
    if "*" not in text:
        return [parse(text, item_type)]
    # Parsed with a letter in place of each *, so that the rules for references hold for patterns too.
    sample = parse(text.replace("*", "x"), item_type)
    pattern = text.removeprefix(f"{sample.registry}").lstrip("/") if sample.registry else text
    namespace = pattern.partition("/")[0]
    if "*" in namespace or sample.version or sample.digest:
        raise UsageError("bad_reference", f"Not a pattern of items: {text!r}.", "Write namespace/*, without version.")
    store = store_of(sample)
    ids = {one.item_id for one in Repository(store, namespace).items(item_type).values()}
    found = sorted(item_id for item_id in ids if fnmatchcase(item_id, pattern))
    if not found:
        why = f"No {item_type} fits {text!r}."
        raise RegistryError("not_in_registry", why, f"`rye registry list {namespace}` shows what is.")
    return [Reference(item_type, item_id, registry=sample.registry) for item_id in found]


def _refused(reference: Reference, err: RyeError) -> dict[str, Any]:
    return {
        "status": "refused",
        "item_type": reference.item_type,
        "item_id": reference.item_id,
        "reference": str(reference),
        "code": err.code,
        "error": err.message,
        "hint": err.hint,
        "trust": isinstance(err, TrustError),
        **err.details,
    }


def _verified(repository: Repository, reference: Reference, search_path: Sequence[Space], destination: str) -> Pull:
    """Fetch and verify, and warn of a version that the registry marks as yanked. Errors as `fetch` and `verify`."""
    fetched = fetch(repository, reference)
    pull = Pull(fetched, verify_files(fetched, search_path, destination))
    head = pull.checked[0]
    reason = yank_reason(repository, head.file.item_type, head.file.item_id, head.version)
    if reason is not None:
        reason_text = f": {reason}" if reason else ""
        pull.warnings.append(
            f"{head.file.item_id}:{head.version} was yanked, says the registry{reason_text}. Look for a newer version."
        )
    return pull


def verify(target: RegistryTarget, item_type: str, reference: str) -> dict[str, Any]:
    """Fetch and verify without installing; return what `inspect` returns, without the diff.

    Raises:
        RyeError: whatever a pull would be refused for, except for the file at its destination.
    """
    parsed = parse(reference, item_type)
    search_path = spaces.spaces(target.project)
    repository = Repository(target.store(parsed), parsed.namespace)
    pulled = _verified(repository, parsed, search_path, "project")
    for checked in pulled.checked:
        check_install(checked, pins.load(), search_path, PullOptions("none"))
    return {"verdict": "valid", **pulled.row}


def _admit(pull: Pull, known: Marks, search_path: Sequence[Space], options: PullOptions) -> Pull:
    """Judge a pull against what the user's space remembers, and remember what passes."""
    for checked in pull.checked:
        check_install(checked, known, search_path, options)
    for checked in pull.checked:
        # Only when every file of the pull passed: a refused bundle must leave no mark.
        _remember(checked, known, pin=options.pin)
    return pull


def check_install(checked: VerifiedFile, known: Marks, search_path: Sequence[Space], options: PullOptions) -> None:
    """Compare a verified file with the user's pins, what was seen before, what is installed, and what is locked.

    Raises:
        TrustError: `pinned_key_changed`, `downgrade`, `version_changed`. ItemError: `reserved_id`.
    """
    file, key = checked.file, checked.verified.key.public
    space = next((one for one in search_path if one.name == options.destination), None)
    # A user may have approved that the project serves this reserved id.
    served = space is not None and spaces.serves(space, file.item_id)
    if file.item_type != "bundle" and file.item_id.startswith(spaces.RESERVED) and not served and options.destination != "none":
        hint = f"To let this project serve it all the same: `rye trust approve --shadow {file.item_id}`."
        raise ItemError("reserved_id", f"{file.item_id} is reserved for the system bundle, so it is not installed here.", hint)
    namespace = file.item_id.partition("/")[0]
    pinned = known.pins.get(namespace)
    if pinned is not None and pinned != key.digest:
        why = f"The namespace {namespace} is pinned to the key {pinned}, and {file.item_id} is signed by {key.digest}."
        hint = f"Ask its owner. If the key was really changed, `rye registry unpin {namespace}`, then pull again."
        raise TrustError("pinned_key_changed", why, hint, pinned=pinned, key_digest=key.digest)
    if is_version(checked.version) and not options.allow_downgrade:
        _refuse_rollback(checked, known, space, search_path)


def _refuse_rollback(checked: VerifiedFile, known: Marks, space: Space | None, search_path: Sequence[Space]) -> None:
    file, version = checked.file, checked.version
    versions.refuse_lower(file, version, known, space, search_path, "rye registry pull … --allow-downgrade")
    seen = known.seen.get(versions.name_of(file))
    # Same version, other bytes: a registry or a stolen key replaced what was published.
    if seen is not None and seen.version == version and seen.digest != checked.verified.digest:
        why = f"{file.item_id}:{version} has other content than when it was seen before."
        hint = "A version is published once. Ask its author; if your user wants it: `rye registry pull … --allow-downgrade`."
        raise TrustError("version_changed", why, hint, expected=seen.digest, actual=checked.verified.digest)


def _remember(checked: VerifiedFile, known: Marks, *, pin: bool) -> None:
    """Note the highest version seen, and the namespace's key where the user says so."""
    if is_version(checked.version):
        name = versions.name_of(checked.file)
        seen = known.seen.get(name)
        # `>=`, so that an allowed replacement of the same version is what is remembered.
        if seen is None or version_key(checked.version) >= version_key(seen.version):
            known.seen[name] = SeenVersion(checked.version, checked.verified.digest)
    if pin:
        # Never replaced here: a pin changes only by `unpin`.
        known.pins.setdefault(checked.file.item_id.partition("/")[0], checked.verified.key.public.digest)


def _install(pull: Pull, project: str, search_path: Sequence[Space], options: PullOptions) -> dict[str, Any]:
    root = project if options.destination == "project" else os.fspath(user_dirs.user_space())
    known = _known_files(pull, root, spaces.trust_store(search_path))
    files = [one.file for one in pull.checked]
    copies = [Copy(f".ai/{file.path}", file.raw, file.item_type.replace("bundle", "")) for file in files]
    copies += [Copy(path, raw) for path, raw in _other_files(pull).items()]
    try:
        # An unchanged file of the same signer may go; what was edited here stays.
        installed = install(
            copies, root, _TOOL, lambda path, old: options.overwrite or (path, sha256(old).hexdigest()) in known
        )
    except ItemError as err:
        if err.code != "destination_exists":
            raise
        hint = "It was edited here, or another signed it. Compare the two (`rye registry inspect`); --overwrite replaces it."
        raise ItemError("edited_locally", err.message, hint if "has the same id" not in err.message else err.hint) from None
    locked = [name for one in pull.checked if (name := _lock_anew(one, root, options)) is not None]
    pull.warnings += installed.warnings
    return {
        "status": "installed",
        **pull.row,
        "installed_to": options.destination,
        "path": installed.paths[0],
        "paths": installed.paths,
        "replaced": [digest for digest in installed.replaced if digest is not None],
        "locked": locked,
    }


def _other_files(pull: Pull) -> dict[str, bytes]:
    """Return the other files of the tools, by the path below the root.

    Raises:
        ItemError: `malformed_item`, two tools name one path with different bytes.
    """
    found: dict[str, bytes] = {}
    for checked in pull.checked:
        for name, raw in checked.files.items():
            path = f".ai/{tool_files.folder_of(checked.file.item_id)}/{name}"
            if found.setdefault(path, raw) != raw:
                why = f"{checked.file.item_id} and another tool name different files {name}."
                raise ItemError("malformed_item", why, "Nothing was installed. Tell the author.")
    return found


def _known_files(pull: Pull, root: str, trusted: trust_verify.TrustStore) -> set[tuple[str, str]]:
    """Return path and digest of the files that the pull would replace, as the same signers signed what is installed now."""
    found: set[tuple[str, str]] = set()
    for file, verified, *_ in pull.checked:
        with contextlib.suppress(TrustError, ItemError):
            raw = spaces.read_file(spaces.Space("", os.path.join(root, ".ai")), file.path)
            before = trust_verify.verify(raw or b"", form_in_registry(file), trusted)
            if before.key.public != verified.key.public:
                continue
            found.add((f".ai/{file.path}", before.file_digest))
            if file.item_type == "tool":
                declared = tool_files.declared(items_parse.read_tool(before, file.item_id, file.suffix))
                found |= {(f".ai/{tool_files.folder_of(file.item_id)}/{name}", digest) for name, digest in declared.items()}
    return found


def _lock_anew(checked: VerifiedFile, root: str, options: PullOptions) -> str | None:
    """Renew the lockfile of a tool that has one where it was installed; return its path below `.ai`."""
    file = checked.file
    folder = user_dirs.user_ai() if options.destination == "user" else os.path.join(root, ".ai")
    space = spaces.Space(options.destination, folder)
    if file.item_type != "tool" or not lockfiles.versions(space, file.item_id):
        return None
    tool, chain = executor.chain_of(file.item_id, root)
    # Another space may serve this id first; its lockfile must not pin bytes that are not run.
    if chain[0]["integrity"] != checked.verified.digest:
        return None
    lockfiles.write(root, tool.id, tool.version, chain)
    return lockfiles.name_of(tool.id, tool.version)


def unpin(namespace: str) -> str:
    """Forget which key a namespace was pinned to; return its full digest.

    Raises:
        UsageError: `not_pinned`.
    """
    with pins.changing() as known:
        pinned = known.pins.pop(namespace, None)
    if pinned is None:
        raise UsageError("not_pinned", f"The namespace {namespace!r} is not pinned.", "Nothing was changed.")
    return pinned
