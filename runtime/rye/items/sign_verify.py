"""Verifying and signing files: one verdict or outcome for each, as a row; no file is run.

A file is opened beneath its `.ai` (outside any, beneath its own folder), read once, and checked under the id of its place.
Signing lets through only what a reader with that key would accept.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rye
from rye.errors import ItemError, RyeError, TrustError
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.items import bundles, parse, scripts, spaces, tool_files
from rye.plain_class import changed
from rye.trust import decisions, signature
from rye.trust import verify as trust_verify
from rye.trust.signature import PrivateKey
from rye.trust.verify import TrustStore
from rye.workspace import atomic_replace, cache, path_errors, workspace

if TYPE_CHECKING:
    from rye.items.targets import Target

_TOOL = "rye/primary-tools/rye_sign"
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def verify(found: Iterable[Target], store: TrustStore) -> Iterator[dict[str, Any]]:
    """Yield one row for each file.

    Yields:
        `{"target", "item_id", "type", "verdict", "signer", "owner", "expected", "actual", "hint"}`: `verdict` is one of
        `rye.trust.verify.VERDICTS`, `malformed` also for what cannot be read; `signer` the key's fingerprint, as the line
        states it unless `owner` is given; `expected` and `actual` digests where the line was well formed and its key known.
    """
    system = spaces.Space("system", spaces.system_folder())
    # Once for all files of the bundle.
    manifest = lru_cache(lambda: bundles.read(spaces.read_file(system, "bundles/rye/manifest.yaml"), bundles.SYSTEM, store))
    for target in found:
        row = _row(target, "verdict", "valid", "signer", "owner", "expected", "actual", "hint")
        try:
            _judge(target, store, row, manifest)
        except RyeError as err:
            row["verdict"] = err.code if err.code in trust_verify.VERDICTS else "malformed"
            # Why key documents were ignored may be why a key is not known.
            row["hint"] = " ".join((str(err), *(store.problems[:2] if err.code == "untrusted_key" else ())))
            row["signer"] = row["signer"] or err.details.get("fingerprint")
            row.update({name: err.details[name] for name in ("expected", "actual") if name in err.details})
        yield row


def _row(target: Target, outcome: str, value: str, *unknown: str) -> dict[str, Any]:
    """Return a row that says of a file what is known before it is read."""
    about = {"target": target.text, "item_id": target.item_id, "type": target.item_type}
    return {**about, outcome: value, **dict.fromkeys(unknown)}


def _judge(target: Target, store: TrustStore, row: dict[str, Any], manifest: Callable[[], bundles.Manifest]) -> None:
    if target.problem is not None:
        raise target.problem
    with _opened(target, links=True) as (_, raw):
        row["type"] = item_type = target.type_for(raw)
    verified = trust_verify.verify(raw, signature.form_of(item_type, target.suffix), store)
    row.update(
        signer=verified.key.public.fingerprint, owner=verified.key.owner, expected=verified.digest, actual=verified.digest
    )
    if target.item_id is not None:
        listed = manifest() if target.path.absolute().is_relative_to(spaces.system_folder()) else None
        item = bundles.admit(_candidate(target, target.item_id, item_type, raw), store, listed)
        if isinstance(item, parse.Tool):
            tool_files.read(item, spaces.Space("", os.fsdecode(_anchor(target)[0])))


def _candidate(target: Target, item_id: str, item_type: str, raw: bytes) -> spaces.Candidate:
    """Return a file as the item of its place; of a project only where the user lets it serve a reserved id."""
    decided = decisions.load()
    root = os.fsdecode(os.path.dirname(_anchor(target)[0]))
    is_let = bool(decided.shadows) and item_id in decided.shadowed(decisions.Root.of(root))
    space = "project" if is_let else "system"
    return spaces.Candidate(item_type, item_id, target.suffix, space, os.fspath(target.path), raw)


def sign(found: Sequence[Target], key: PrivateKey, root: str | None = None) -> Iterator[dict[str, Any]]:
    """Sign each file in place, atomically; a file whose present content `key` has signed is left alone.

    Each change is in the journal of the project at `root`, where the file lies in it, else in that of the project of its `.ai`.
    Those of several files are one batch, which is taken back as one. A file outside of both is in no project's record.

    Yields:
        `{"target", "item_id", "type", "status", "digest", "signer", "path", "error", "code", "hint", "warnings"?}`: `status` is
        `signed`, `unchanged` or `failed`; `digest` that of the signed bytes; a failed file was not changed. `warnings` are what
        the journal says of the change, where it says anything.
    """
    store = _store(key)
    batch = os.urandom(16).hex() if len(found) > 1 else None
    for target in found:
        row = _row(target, "status", "failed", "digest", "signer", "path", "error", "code", "hint")
        row.update(signer=key.public.fingerprint, path=names.show(os.fsencode(target.path)))
        try:
            if target.problem is not None:
                raise target.problem
            _refuse_installed(target.path)
            with _opened(target, links=False) as (place, raw):
                signed = _signed(target, raw, key, store, row)
                if signed is not raw and (warnings := _replace(target, place, raw, signed, root, batch)):
                    row["warnings"] = warnings
                row["status"] = "unchanged" if signed is raw else "signed"
        except RyeError as err:
            row.update(error=err.message, code=err.code, hint=err.hint or None)
        yield row


def _store(key: PrivateKey) -> TrustStore:
    document = trust_verify.render_key_document(key.public, "signer")
    # As a reader who trusts just this key: its role is the system's only if it is the system's key.
    return trust_verify.TrustStore.build([document], [document])


def signed_text(target: Target, raw: bytes, key: PrivateKey) -> bytes:
    """Return the text of an item that is not written yet, signed for its place. Raises RyeError where readers refuse it."""
    return _signed(target, raw, key, _store(key), {})


def _signed(target: Target, raw: bytes, key: PrivateKey, store: TrustStore, row: dict[str, Any]) -> bytes:
    """Return a file's text, signed; the very `raw` where that is so already. `row` takes what is found out about it."""
    row["type"] = item_type = target.type_for(raw)
    form = signature.form_of(item_type, target.suffix)
    if item_type == "tool":
        folder = os.fsdecode(_anchor(target)[0])
        scripts.check(target.text, target.suffix, raw, spaces.spaces(os.path.dirname(folder)))
    text = _with_bindings(target, item_type, raw)
    try:
        # A good signature of this key stays: signing again would change the timestamp, and so the file.
        verified, signed = trust_verify.verify(text, form, store), text
    except TrustError:
        signed = signature.sign(text, form, key, timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        verified = trust_verify.verify(signed, form, store)
    if target.item_id is not None:
        item = bundles.admit(_candidate(target, target.item_id, item_type, signed), store)
        # Before the file is replaced: what a reader would refuse is not written.
        if isinstance(item, parse.Tool):
            from rye.items import schema

            tool_files.read(item, spaces.Space("", os.fsdecode(_anchor(target)[0])))
            # A reader would find out only when it runs the tool that it can never be called.
            schema.SchemaChecker(item.schema)
        elif isinstance(item, parse.Knowledge) and not str(item.header.get("title") or "").strip():
            # Readers take entries of other installations as they are.
            why = f"{target.item_id} has no title, by which it is listed and searched for."
            raise ItemError("malformed_item", why, "Write `title: …` into its header.")
    row["digest"] = verified.digest
    return signed


def _replace(
    target: Target, place: workspace.Place, raw: bytes, signed: bytes, own_root: str | None, batch: str | None
) -> list[str]:
    """Put the signed text in place of the one that was read, recorded in its project; return warnings.

    Errors as `commit.commit`.
    """
    from rye.journal import commit, journal, own_files

    folder = beneath.real_path(place.dir_fd, os.fspath(target.path.parent))
    roots = [] if own_root is None else [own_root]
    if target.item_id is not None:
        roots.append(os.path.dirname(os.path.realpath(os.fsdecode(_anchor(target)[0]))))
    root = own_files.root_of([os.path.join(folder, target.path.name)], roots)
    if root is None:
        # With the digest of what was read: a change that another program made meanwhile is not overwritten.
        atomic_replace.replace(place, signed, hashlib.sha256(raw).hexdigest(), atomic_replace.temporary_name())
        return []
    with workspace.Workspace(root) as ws:
        parts = os.fsencode(os.path.relpath(folder, root)).split(b"/") if folder != root else []
        place = changed(place, parts=(*parts, place.name))
        with cache.locked(ws, place.path):
            entry = changed(journal.whole_entry(ws, _TOOL, place, raw, signed), batch=batch)
            return commit.commit(ws, [commit.Change(place, signed, entry)], is_own=True).warnings


def _with_bindings(target: Target, item_type: str, raw: bytes) -> bytes:
    """Return a tool's text with what binds it to its place and to its other files; any other item unchanged."""
    if target.item_id is None or item_type != "tool":
        return raw
    named = tool_files.bound(raw, target.item_id, target.suffix)
    space, folder = spaces.Space("", os.fsdecode(_anchor(target)[0])), tool_files.folder_of(target.item_id)
    # Beneath the space, as whoever runs the tool reads them.
    return tool_files.with_digests(
        named, target.item_id, target.suffix, lambda path: spaces.read_file(space, f"{folder}/{path}")
    )


def _refuse_installed(path: Path) -> None:
    system = spaces.system_folder()
    # Both sides as real paths: a link to the bundle leads into it as well.
    inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(system))
    if inside and os.path.dirname(system) == os.path.dirname(os.path.realpath(rye.__file__)):
        hint = "Sign it in a checkout of the bundle, or copy it to your project under another id."
        raise ItemError("installed_bundle", "It belongs to the installed system bundle, which is never changed in place.", hint)


@contextmanager
def _opened(target: Target, *, links: bool) -> Iterator[tuple[workspace.Place, bytes]]:
    """Hold the folder of a file open, and read the file; one that is to be replaced must not be a link."""
    folder, parts = _anchor(target)
    try:
        with ExitStack() as stack:
            root = stack.enter_context(closing(os.open(folder, beneath.DIRECTORY)))
            parent = stack.enter_context(closing(beneath.open_beneath(root, parts[:-1], beneath.DIRECTORY)[0]))
            if links:
                # As whoever runs the item reads it: a link in its place may not lead out of its folder.
                opened, _ = beneath.open_beneath(parent, parts[-1:], _READ)
            else:
                # In the folder held open: the path could lead elsewhere when the file is replaced.
                opened = os.open(parts[-1], _READ | os.O_NOFOLLOW, dir_fd=parent)
            fd = stack.enter_context(closing(opened))
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise path_errors.wrong_kind(info.st_mode, target.text)
            yield workspace.Place(parent, parts[-1:], info), spaces.content(os.dup(fd), target.text)
    except OSError as err:
        raise _unreadable(err, target.text) from None


def _anchor(target: Target) -> tuple[bytes, beneath.Parts]:
    """Return the folder that a file must not lead out of, and its path below: the `.ai` of an item, else its own folder."""
    parts = os.fsencode(target.path).split(b"/")
    at = len(parts) - parts[::-1].index(b".ai") if target.item_id is not None else len(parts) - 1
    return b"/".join(parts[:at]) or b"/", tuple(parts[at:])


def _unreadable(err: OSError, shown: str) -> RyeError:
    if err.errno == errno.EXDEV:
        return ItemError("path_outside", f"{shown} is a link that leads out of its folder.", "Name the file that it points to.")
    if err.errno == errno.ELOOP:
        return ItemError("is_link", f"{shown} is a symbolic link.", "Name the file that it points to.")
    return path_errors.system_failure(err, shown)
