"""Pulling: what was verified, and is neither a rollback nor another signer's, is installed in one step.

Order: fetch, verify, judge against what the user pinned and saw before, remember, install, renew lockfiles. Until the
installation begins nothing is written but the user's own memory of versions.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye import executor, lockfiles, marks, rollback, spaces, state, trust
from rye.artifacts import Checked, Fetched, Shelf, fetch, verify
from rye.errors import ItemError, RyeError, TrustError, UsageError
from rye.installing import Copy, install
from rye.marks import Seen
from rye.oci_reference import is_version, version_key
from rye.pushing import yank_reason
from rye.record import Record, field
from rye.rollback import Coming
from rye.signing import form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.marks import Marks
    from rye.oci_reference import Reference
    from rye.oci_store import Store
    from rye.spaces import Space

_TOOL = "rye/registry/registry"


class Wish(Record):
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
    checked: list[Checked]
    warnings: list[str] = field(factory=list)

    @property
    def row(self) -> dict[str, Any]:
        """What is reported of it."""
        head = self.checked[0]
        return {
            "item_type": head.file.item_type, "item_id": head.file.item_id, "version": head.version,
            "digest": self.fetched.manifest.digest, "signer": head.verified.key.public.fingerprint,
            "owner": head.verified.key.owner, "warnings": self.warnings,
        }  # fmt: skip


def take(wanted: Sequence[Reference], store_of: Callable[[Reference], Store], project: str, wish: Wish) -> list[dict[str, Any]]:
    """Pull items and bundles; return a row for each: `{"status": "installed" | "refused", …}`.

    A refused one has `error`, `hint` and `code`, and nothing of it was written; the others are installed all the same.

    Raises:
        UsageError: `bad_space`.
    """
    if wish.destination not in ("project", "user"):
        raise UsageError("bad_space", f"Nothing is installed to {wish.destination!r}.", "Install to project or user.")
    among = spaces.spaces(project)
    shelves: dict[tuple[str, str], Shelf] = {}
    rows: list[dict[str, Any]] = []
    ready: list[tuple[int, Pull]] = []
    for number, outcome in enumerate(_gathered(wanted, store_of, shelves, among, wish)):
        rows.append(_refused(wanted[number], outcome) if isinstance(outcome, RyeError) else {})
        if isinstance(outcome, Pull):
            ready.append((number, outcome))
    admitted = _admit(ready, wanted, rows, among, wish)
    for number, pull in admitted:
        try:
            rows[number] = _install(pull, project, among, wish)
        except RyeError as err:
            rows[number] = _refused(wanted[number], err)
    return rows


def _refused(reference: Reference, err: RyeError) -> dict[str, Any]:
    return {
        "status": "refused", "item_type": reference.item_type, "item_id": reference.item_id, "reference": str(reference),
        "code": err.code, "error": err.message, "hint": err.hint, "trust": isinstance(err, TrustError), **err.details,
    }  # fmt: skip


def _gathered(
    wanted: Sequence[Reference], store_of: Callable[[Reference], Store], shelves: dict[tuple[str, str], Shelf],
    among: Sequence[Space], wish: Wish,
) -> list[Pull | RyeError]:  # fmt: skip
    """Fetch and verify each, several at once where the storage gains by it."""
    from concurrent.futures import ThreadPoolExecutor

    def one(reference: Reference) -> Pull | RyeError:
        try:
            shelf = shelves[_shelf_name(reference)]
            fetched = fetch(shelf, reference)
            pull = Pull(fetched, verify(fetched, among, wish.destination))
            note_yank(pull)
            return pull
        except RyeError as err:
            return err

    early: dict[int, RyeError] = {}
    for number, reference in enumerate(wanted):
        try:
            if _shelf_name(reference) not in shelves:
                shelf = Shelf.of(store_of(reference), reference.namespace)
                shelves[_shelf_name(reference)] = shelf
                shelf.tags  # noqa: B018 - asked for once, before several ask at once
        except RyeError as err:
            early[number] = err
            shelves.pop(_shelf_name(reference), None)
    most = max((shelf.store.parallel for shelf in shelves.values()), default=1)
    left = [reference for number, reference in enumerate(wanted) if number not in early]
    if most == 1 or len(left) == 1:
        found = iter([one(reference) for reference in left])
    else:
        with ThreadPoolExecutor(most) as pool:
            found = iter(list(pool.map(one, left)))
    return [early[number] if number in early else next(found) for number in range(len(wanted))]


def _shelf_name(reference: Reference) -> tuple[str, str]:
    return reference.registry or "", reference.namespace


def note_yank(pull: Pull) -> None:
    """Warn of a version that the registry marks as yanked."""
    head = pull.checked[0]
    reason = yank_reason(pull.fetched.shelf, head.file.item_type, head.file.item_id, head.version)
    if reason is not None:
        said = f": {reason}" if reason else ""
        pull.warnings.append(
            f"{head.file.item_id}:{head.version} was yanked, says the registry{said}. Look for a newer version."
        )


def _admit(
    ready: list[tuple[int, Pull]], wanted: Sequence[Reference], rows: list[dict[str, Any]], among: Sequence[Space], wish: Wish
) -> list[tuple[int, Pull]]:  # fmt: skip
    """Judge against what the user's space remembers, and remember what passes; one step for all."""
    admitted = []
    with marks.changing() as known:
        for number, pull in ready:
            try:
                for checked in pull.checked:
                    judge(checked, known, among, wish)
            except RyeError as err:
                rows[number] = _refused(wanted[number], err)
                continue
            for checked in pull.checked:
                remember(checked, known, pin=wish.pin)
            admitted.append((number, pull))
    return admitted


def judge(checked: Checked, known: Marks, among: Sequence[Space], wish: Wish) -> None:
    """Hold a verified file against the user's pins, what was seen before, what is installed, and what is locked.

    Raises:
        TrustError: `pinned_key_changed`, `downgrade`, `version_changed`. ItemError: `reserved_id`.
    """
    file, key = checked.file, checked.verified.key.public
    space = next((one for one in among if one.name == wish.destination), None)
    served = space is not None and spaces.serves(space, file.item_id)
    if file.item_type != "bundle" and file.item_id.startswith(spaces.RESERVED) and not served and wish.destination != "none":
        raise ItemError(
            "reserved_id", f"{file.item_id} is reserved for the system bundle, so it is not installed here.",
            f"To let this project serve it all the same: `rye trust approve --shadow {file.item_id}`.",
        )  # fmt: skip
    namespace = file.item_id.partition("/")[0]
    pinned = known.pins.get(namespace)
    if pinned is not None and pinned != key.digest:
        raise TrustError(
            "pinned_key_changed", f"The namespace {namespace} is pinned to the key {pinned}, and {file.item_id} is signed by "
            f"{key.digest}.",
            f"Ask its owner. If the key was really changed, `rye registry unpin {namespace}`, then pull again.",
            pinned=pinned, key_digest=key.digest,
        )  # fmt: skip
    if is_version(checked.version):
        _refuse_rollback(checked, known, space, among, wish)


def _refuse_rollback(checked: Checked, known: Marks, space: Space | None, among: Sequence[Space], wish: Wish) -> None:
    if wish.allow_downgrade:
        return
    coming = _coming(checked)
    rollback.refuse_lower(coming, known, space, among, "rye registry pull … --allow-downgrade")
    seen = known.seen.get(coming.name)
    if seen is not None and seen.version == coming.version and seen.digest != checked.verified.digest:
        raise TrustError(
            "version_changed", f"{coming.item_id}:{coming.version} has other content than when it was seen before.",
            "A version is published once. Ask its author; if your user wants it: `rye registry pull … --allow-downgrade`.",
            expected=seen.digest, actual=checked.verified.digest,
        )  # fmt: skip


def _coming(checked: Checked) -> Coming:
    file = checked.file
    return Coming(file.item_type, file.item_id, file.suffix, checked.version)


def remember(checked: Checked, known: Marks, *, pin: bool) -> None:
    """Note the highest version seen, and the namespace's key where the user says so."""
    if is_version(checked.version):
        seen = known.seen.get(_coming(checked).name)
        if seen is None or version_key(checked.version) >= version_key(seen.version):
            known.seen[_coming(checked).name] = Seen(checked.version, checked.verified.digest)
    if pin:
        known.pins.setdefault(checked.file.item_id.partition("/")[0], checked.verified.key.public.digest)


def _install(pull: Pull, project: str, among: Sequence[Space], wish: Wish) -> dict[str, Any]:
    root = project if wish.destination == "project" else os.fspath(state.user_space())
    standing = {_path(checked): checked for checked in pull.checked}
    trusted = spaces.trust_store(among)

    def may_replace(path: str, old: bytes) -> bool:
        """An unchanged file of the same signer may go; what was edited here stays."""
        new = standing[path]
        try:
            before = trust.verify(old, form_of(_kind(new), new.file.suffix), trusted)
        except TrustError:
            return wish.overwrite
        return wish.overwrite or before.key.public == new.verified.key.public

    copies = [Copy(path, one.file.raw, _rivals(one)) for path, one in standing.items()]
    try:
        done = install(copies, root, _TOOL, may_replace)
    except ItemError as err:
        if err.code != "destination_exists":
            raise
        hint = "It was edited here, or another signed it. Compare the two (`rye registry inspect`); --overwrite replaces it."
        raise ItemError("edited_locally", err.message, hint if "has the same id" not in err.message else err.hint) from None
    locked = [name for one in pull.checked if (name := _lock_anew(one, root, wish)) is not None]
    pull.warnings += done.warnings
    return {
        "status": "installed", **pull.row, "installed_to": wish.destination, "path": done.paths[0], "paths": done.paths,
        "replaced": [digest for digest in done.replaced if digest is not None], "locked": locked,
    }  # fmt: skip


def _kind(checked: Checked) -> str:
    return "tool" if checked.file.item_type == "bundle" else checked.file.item_type


def _path(checked: Checked) -> str:
    file = checked.file
    if file.item_type == "bundle":
        return f".ai/bundles/{file.item_id}/manifest.yaml"
    return f".ai/{spaces.type_folder(file.item_type)[0]}/{file.item_id}{file.suffix}"


def _rivals(checked: Checked) -> Sequence[str]:
    return () if checked.file.item_type == "bundle" else spaces.type_folder(checked.file.item_type)[1]


def _lock_anew(checked: Checked, root: str, wish: Wish) -> str | None:
    """Renew the lockfile of a tool that has one where it was installed; return its path below `.ai`."""
    file = checked.file
    space = spaces.Space(wish.destination, state.user_ai() if wish.destination == "user" else os.path.join(root, ".ai"))
    if file.item_type != "tool" or not lockfiles.versions(space, file.item_id):
        return None
    tool, chain = executor.chain_of(file.item_id, root)
    if chain[0]["integrity"] != checked.verified.digest:
        return None
    lockfiles.write(root, tool.id, tool.version, chain)
    return lockfiles.name_of(tool.id, tool.version)
