"""Ids <-> paths: the project's, the user's and the system's items, and the key documents beside them.

An item's id is its path below `.ai/<type folder>/` without extension. The first space that has it wins: project, user,
system. Ids under `rye/` are reserved: only the system space serves them. Files are opened beneath the space's folder and
read once, as bytes; nothing here knows what they mean.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

import rye
from rye.call.safe_text import nearest
from rye.config import layers, user_dirs
from rye.errors import ItemError, TrustError
from rye.fs import atomic, beneath, stamps
from rye.fs.atomic import closing
from rye.fs.stamps import NOT_KEPT, Basis
from rye.plain_class import Record
from rye.trust import decisions
from rye.trust.decisions import Decisions
from rye.trust.signature import beginning, is_script_suffix, suffixes_of
from rye.trust.verify import TrustStore

if TYPE_CHECKING:
    from pathlib import Path


TYPES: Final = {
    # `.json` cannot carry a signature: it is looked for so that a bundle or a call refuses it instead of leaving it out.
    "tool": ("tools", (*suffixes_of("tool"), ".json")),
    "knowledge": ("knowledge", suffixes_of("knowledge")),
    "directive": ("directives", suffixes_of("directive")),
}
"""Item type -> (folder below `.ai`, built-in extensions in the order in which they are tried).

A tool in another language is found behind these: by what its file says of itself (`scripts_named`). Whether a signed runtime
takes it is judged where it is run.
"""

RESERVED = "rye/"
MAX_ITEM_BYTES = 1 << 20
_T = TypeVar("_T")
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_PACKAGE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_DEEPEST = 32
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_MAX_KEYS = 1_000


class Space(Record):
    """One place that serves items: `name` is project, user, system or `bundle:<id>`; `folder` its `.ai`.

    `shadows` are the reserved ids that the user lets it serve.
    """

    name: str
    folder: str
    shadows: frozenset[str] = frozenset()


class Candidate(Record):
    """An item's bytes as they were read, once; nothing about them is known to be true yet."""

    item_type: str
    item_id: str
    suffix: str
    space: str
    path: str
    raw: bytes
    shadowed: tuple[str, ...] = ()
    digest: str = ""

    def __post_init__(self) -> None:
        """Hash the bytes, once a call: whoever needs to name them takes this."""
        object.__setattr__(self, "digest", sha256(self.raw).hexdigest())


def system_folder() -> str:
    """Return the system bundle's `.ai`: inside the installed package, or in the checkout of an editable install."""
    return layers.bundle_beside(str(rye.__file__))


def installed_bundles() -> tuple[Space, ...]:
    """Return the `.ai` folders of other installed packages that name themselves in the entry point group `rye.bundles`.

    An entry `name = "package"` says that the package folder holds `.ai`. The entry is read as text; nothing is imported.
    """
    from importlib.metadata import entry_points

    out: list[Space] = []
    for entry in sorted(entry_points(group="rye.bundles"), key=lambda found: found.name):
        package = entry.value.partition(":")[0].strip()
        # The text becomes part of a path: `..` or an absolute path must not get in.
        if entry.dist is None or not re.fullmatch(_PACKAGE, package) or not _ID.fullmatch(entry.name):
            continue
        folder = os.path.join(str(entry.dist.locate_file(package.replace(".", "/"))), ".ai")
        # An editable install can name the system bundle again; it must not appear as a second bundle.
        if os.path.isdir(folder) and stamps.identity(folder) != stamps.identity(system_folder()):
            out.append(Space(f"bundle:{entry.name}", folder))
    return tuple(out)


def spaces(project_path: str | Path, decided: Decisions | None = None, basis: Basis = NOT_KEPT) -> tuple[Space, ...]:
    """Return the spaces of a project, in the order in which they are asked; a folder counts once, as the most trusted.

    `decided` are the user's decisions, where the caller has loaded them; `basis` as in `find`.
    """
    system = system_folder()
    decided = decisions.load() if decided is None else decided
    shadows: frozenset[str] = frozenset()
    # What a project may serve instead of the system depends on what folder it is.
    if decided.shadows:
        basis.rest_on_place(os.fspath(project_path))
        shadows = decided.shadowed(decisions.Root.of(project_path))
    found = [
        Space("project", f"{os.fspath(project_path).rstrip('/')}/.ai", shadows),
        Space("user", user_dirs.user_ai()),
        Space("system", system),
    ]
    for space in found:
        basis.rest_on(space.folder)
    # None where there is no folder, which is the same as no other.
    stand = [stamps.identity(space.folder) for space in found]
    return tuple(space for at, space in enumerate(found) if stand[at] is None or stand[at] not in stand[at + 1 :])


def check_id(item_id: str) -> None:
    """Raise ItemError `bad_item_id` unless the text can be an id."""
    if len(item_id) > 255 or not _ID.fullmatch(item_id):
        hint = "An id is a path of letters, digits, _ . - such as rye/file-system/read, without extension."
        raise ItemError("bad_item_id", f"Not an item id: {item_id[:80]!r}.", hint)


def type_folder(item_type: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder and extensions of an item type; ItemError `unknown_type` otherwise."""
    if item_type not in TYPES:
        raise ItemError("unknown_type", f"Unknown item type: {item_type}.", f"Use one of {', '.join(TYPES)}.")
    return TYPES[item_type]


def find(item_type: str, item_id: str, search_path: Sequence[Space], basis: Basis = NOT_KEPT) -> Candidate:
    """Return the item of the first space that has it; `basis` notes what that rests on.

    Raises:
        ItemError: `item_not_found`, with the nearest ids; `bad_item_id`, `unknown_type`, `item_unreadable`.
    """
    folder, suffixes = type_folder(item_type)
    check_id(item_id)
    shadowed: list[str] = []
    for space in chain(search_path, _lazily(installed_bundles)):
        found = _read_first(space, f"{folder}/{item_id}", suffixes, basis)
        if found is None:
            continue
        suffix, raw = found
        path = f"{space.folder}/{folder}/{item_id}{suffix}"
        if not serves(space, item_id):
            shadowed.append(path)
            continue
        return Candidate(item_type, item_id, suffix, space.name, path, raw, tuple(shadowed))
    raise _not_found(item_type, item_id, search_path, shadowed)


def serves(space: Space, item_id: str) -> bool:
    """Tell whether a space may serve an id: a reserved one only the system, or a space that the user lets shadow it."""
    return not item_id.startswith(RESERVED) or space.name == "system" or item_id in space.shadows


def _lazily(more: Callable[[], Iterable[_T]]) -> Iterator[_T]:
    """Ask for more only when the first ones had nothing: it means reading what is installed, or a folder."""
    yield from more()


def _not_found(item_type: str, item_id: str, search_path: Sequence[Space], shadowed: list[str]) -> ItemError:
    if shadowed:
        why = f"{item_id} is reserved for the system bundle, which lacks it; {shadowed[0]} does not serve it."
        return ItemError("reserved_id", why, "Move it to an id that does not begin with rye/.")
    listed = {known: path for known, _, path in served_items(item_type, search_path)}
    if item_id in listed and (listed[item_id].is_symlink() or not listed[item_id].is_file()):
        why = f"{listed[item_id]} is a link that leads out of its folder or nowhere, or no regular file."
        return ItemError("item_unreadable", why, "Put the file itself there.")
    close = similar_ids(item_id, listed)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Use `rye search` to find what there is."
    path = headless(item_id, search_path)
    hint = f"{path} has no header that names its runtime: `rye lint {path}` says what to write." if path else hint
    return ItemError("item_not_found", f"{item_type.capitalize()} not found: {item_id}.", hint, nearest=close)


def headless(item_id: str, search_path: Sequence[Space]) -> str:
    """Return the path of an id's file that is no tool, for it does not say what runs it; empty where there is none."""
    for space in search_path if _ID.fullmatch(item_id) else ():
        folder, _, stem = f"{space.folder}/tools/{item_id}".rpartition("/")
        readable = os.path.isdir(folder) and os.access(folder, os.R_OK)
        for name in sorted(os.listdir(folder)) if readable else ():
            if os.path.splitext(name)[0] == stem and is_script_suffix(os.path.splitext(name)[1]):
                return f"{folder}/{name}"
    return ""


def similar_ids(item_id: str, known: Iterable[str]) -> list[str]:
    """Return the known ids that may be meant: those whose last part it is, as clients call tools; else similar ones."""
    ids = list(known)
    return [one for one in ids if one.rpartition("/")[2] == item_id] or nearest(item_id, ids)


def items_in(space: Space, item_type: str) -> list[tuple[str, Path]]:
    """Return (id, path) of the items in one space, sorted, hidden ones left out."""
    folder, _ = type_folder(item_type)
    # Not at the top: it takes 4 ms to load, and a call of one tool does without.
    from pathlib import Path

    return sorted((item_id, Path(path)) for item_id, path in _walk(_top_folder(space, folder), item_type))


def ids_ending_in(item_type: str, name: str, search_path: Sequence[Space]) -> list[str]:
    """Return the served ids whose last part is `name`, sorted; installed bundles count only where no other space has one."""
    folder, _ = type_folder(item_type)
    found: set[str] = set()
    for space in chain(search_path, _lazily(lambda: () if found else installed_bundles())):
        ids = (item_id for item_id, _ in _walk(_top_folder(space, folder), item_type))
        found.update(one for one in ids if one.rpartition("/")[2] == name and serves(space, one))
    return sorted(found)


def _top_folder(space: Space, folder: str) -> str:
    """Return the path of a type's folder in a space; empty where a link leads out of the space.

    Nothing that lies there could be read as an item, and a project can lead to a folder of any size.
    """
    top = f"{space.folder}/{folder}"
    if os.path.islink(top) and not os.path.realpath(top).startswith(f"{os.path.realpath(space.folder)}/"):
        return ""
    return top


def read_file(space: Space, path: str, basis: Basis = NOT_KEPT) -> bytes | None:
    """Return a file of a space by its path below the space's `.ai`; None where there is none. `basis` as in `find`."""
    basis.rest_on_way(space.folder, path.split("/"))
    try:
        root = os.open(space.folder, beneath.DIRECTORY)
    except OSError:
        return None
    with closing(root):
        return _read(root, os.fsencode(path).split(b"/"))


def read_item(space: Space, path: Path) -> bytes | None:
    """Return an item's file as `find` reads it: a link in its place leads no further than its folder. None where it does."""
    stem, suffix = os.path.splitext(path.relative_to(space.folder).as_posix())
    found = _read_first(space, stem, (suffix,), NOT_KEPT)
    return None if found is None else found[1]


def _read_first(space: Space, stem: str, suffixes: tuple[str, ...], basis: Basis) -> tuple[str, bytes] | None:
    *above, name = os.fsencode(stem).split(b"/")
    # The folders before they are opened: one that is exchanged after that is noticed.
    basis.rest_on_way(space.folder, stem.split("/")[:-1])
    try:
        with closing(os.open(space.folder, beneath.DIRECTORY)) as root:
            # Opened once for all suffixes: a folder that is exchanged in between cannot give a mixture.
            parent, _ = beneath.open_beneath(root, above, beneath.DIRECTORY)
    except OSError as err:
        refuse_failing(err)
        return None
    with closing(parent):
        named = _lazily(lambda: _files_named(parent, os.fsdecode(name)) if suffixes is TYPES["tool"][1] else ())
        for suffix in chain(suffixes, named):
            basis.rest_on(f"{space.folder}/{stem}{suffix}")
            if suffix not in suffixes and not is_script(os.fsdecode(name) + suffix, parent):
                continue
            raw = _read(parent, (name + suffix.encode(),))
            if raw is not None:
                return suffix, raw
    return None


def scripts_named(folder: int, stem: str) -> list[str]:
    """Return the suffixes of the files of a name in a folder that say by their beginning that they are scripts of tools."""
    return [suffix for suffix in _files_named(folder, stem) if is_script(f"{stem}{suffix}", folder)]


def _files_named(folder: int, stem: str) -> list[str]:
    """Return the suffixes, not built in, of the files of a name in a folder that may be scripts."""
    try:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError as err:
        refuse_failing(err)
        return []
    with closing(fd):
        found = sorted(name[len(stem) :] for name in os.listdir(fd) if name.startswith(f"{stem}."))
    return [suffix for suffix in found if is_script_suffix(suffix)]


def is_script(path: str | Path, folder: int | None = None) -> bool:
    """Tell whether a file says by its beginning that it is the script of a tool."""
    try:
        fd = os.open(path, _READ | os.O_CLOEXEC, dir_fd=folder)
    except OSError as err:
        refuse_failing(err)
        return False
    with closing(fd):
        return stat.S_ISREG(os.fstat(fd).st_mode) and beginning(os.read(fd, 1_000)) is not None


def refuse_failing(err: OSError) -> None:
    """Return for what is not there; a failing system must not pass for an absence.

    Raises:
        ItemError: `item_unreadable`. Else another space would serve the id, or a lockfile would pin nothing.
    """
    if err.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO):
        why = f"Items cannot be read now: {err.strerror}."
        raise ItemError("item_unreadable", why, "Try again when the system has recovered.")


def _read(dir_fd: int, parts: Sequence[bytes], limit: int = MAX_ITEM_BYTES) -> bytes | None:
    """Read a regular file beneath a folder; None where there is none. One too large is an error, not an absence."""
    try:
        return content(beneath.open_beneath(dir_fd, parts, _READ)[0], os.fsdecode(parts[-1]), limit)
    except OSError as err:
        refuse_failing(err)
        return None


def content(opened: int, name: str, limit: int = MAX_ITEM_BYTES) -> bytes:
    """Read an open regular file, and close it. Raises OSError; ItemError `item_unreadable`, it is too large."""
    data, _ = atomic.read_open(opened, limit + 1, name)
    if len(data) > limit:
        raise ItemError("item_unreadable", f"{name} is larger than {limit:,} bytes.", "Items are small text files.")
    return data


def served_items(
    item_type: str, search_path: Sequence[Space], installed: Sequence[Space] | None = None
) -> Iterator[tuple[str, str, Path]]:
    """Yield (id, space, path) of every item that is served, sorted by id; shadowed and hidden ones are left out.

    A name with a leading underscore is hidden. `installed` are the `installed_bundles()`, where the caller has them already.
    """
    found: dict[str, tuple[str, Path]] = {}
    for space in (*search_path, *(installed_bundles() if installed is None else installed)):
        for item_id, path in items_in(space, item_type):
            if serves(space, item_id):
                found.setdefault(item_id, (space.name, path))
    for item_id in sorted(found):
        yield item_id, *found[item_id]


def _walk(top: str, item_type: str) -> Iterator[tuple[str, str]]:
    """Yield (id, path) below a type folder; of files that share a stem only the one tried first."""
    best: dict[str, tuple[int, str]] = {}
    suffixes = TYPES[item_type][1]
    for folder, folders, files in os.walk(top):
        # A bottomless tree in a project must not end the walk's recursion.
        deep = folder.count("/") - top.count("/") >= _DEEPEST
        folders[:] = [] if deep else sorted(name for name in folders if not name.startswith((".", "_")))
        for name in files:
            stem, suffix = os.path.splitext(name)
            path = f"{folder}/{name}"
            if name.startswith((".", "_")) or not may_end_in(suffix, item_type):
                continue
            if suffix not in suffixes and not is_script(path):
                continue
            item_id = f"{folder}/{stem}"[len(top) + 1 :]
            if _ID.fullmatch(item_id):
                # The suffix that `find` tries first wins, so that a listing shows what a call would run.
                at = suffixes.index(suffix) if suffix in suffixes else 98
                best[item_id] = min(best.get(item_id, (99, path)), (at, path))
    for item_id, (_, path) in best.items():
        yield item_id, path


def may_end_in(suffix: str, item_type: str) -> bool:
    """Tell whether the file of an item of a type may have a suffix."""
    return suffix in TYPES[item_type][1] or (item_type == "tool" and is_script_suffix(suffix))


def locate(path: str | Path) -> tuple[str, str] | None:
    """Return (item type, id) of a file by its place below an `.ai` folder; None outside of any."""
    parts = [part for part in os.path.join(os.getcwd(), path).split("/") if part not in ("", ".")]
    for at in range(len(parts) - 1, 0, -1):
        if parts[at - 1] != ".ai":
            continue
        for item_type, (folder, _) in TYPES.items():
            stem, suffix = os.path.splitext("/".join(parts[at + 1 :]))
            if parts[at] == folder and may_end_in(suffix, item_type):
                return item_type, stem
        return None
    return None


def trust_store(
    search_path: Sequence[Space], explicit: Sequence[bytes] = (), *, decided: Decisions | None = None, basis: Basis = NOT_KEPT
) -> TrustStore:
    """Return the keys that count for a project now; documents are read at every call, so that a change is noticed at once.

    What installed bundles among the spaces bring is only proposed. `decided` as in `spaces`, `basis` as in `find`.
    """
    read = {space.name: _key_documents(f"{space.folder}/trusted_keys", basis) for space in search_path}
    documents = {name: found for name, (found, _) in read.items()}
    problems = [problem for _, problem in read.values() if problem]
    documents["system"] = list(chain(*(found for name, found in documents.items() if name not in ("project", "user"))))
    decided = decisions.load() if decided is None else decided
    root = next((os.path.dirname(space.folder) for space in search_path if space.name == "project"), None)
    approved: frozenset[str] = frozenset()
    if root is not None and decided.approvals:
        basis.rest_on_place(root)
        approved = decided.approved_keys(decisions.Root.of(root))
    # `explicit` stands apart: a project may bring the very document that an earlier call named.
    places = (tuple(documents.get(name, ())) for name in ("user", "system", "project"))
    return _store_of(*places, tuple(explicit), decided.revoked_keys, approved, tuple(problems))


# By the content of all that decides: a changed document, approval or revocation makes another store.
_store_of = lru_cache(maxsize=64)(TrustStore.build)


def _key_documents(folder: str, basis: Basis) -> tuple[list[bytes], str]:
    """Return the key documents in a folder, and a sentence where there are more than are read."""
    basis.rest_on(folder)
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return [], ""
    with closing(fd):
        problem = ""
        names = sorted(name for name in os.listdir(fd) if name.endswith(".toml"))
        # A project can bring any number of files, and each is read at every call.
        if len(names) > _MAX_KEYS:
            more, last = len(names) - _MAX_KEYS, names[_MAX_KEYS - 1]
            problem = f"{folder} holds {len(names):,} key documents; the {more:,} behind {last} are ignored."
        names = names[:_MAX_KEYS]
        for name in names:
            basis.rest_on(f"{folder}/{name}")
        found = [_document(fd, name) for name in names]
        return [document for document in found if document is not None], problem


def _document(fd: int, name: str) -> bytes | None:
    try:
        return _read(fd, (os.fsencode(name),), 64 * 1024)
    except ItemError:
        return None


def check_reserved_id(item_id: str, role: str) -> None:
    """Raise TrustError `reserved_id` for a reserved id signed by another key than the system's, or one named for the call."""
    if item_id.startswith(RESERVED) and role not in ("system", "explicit"):
        raise TrustError(
            "reserved_id",
            f"{item_id} is reserved for the system bundle's key, and another trusted key signed it.",
            "Move it to an id that does not begin with rye/, then sign it again. To check the files of another bundle against "
            "its own key, name that: rye verify --trust KEY.toml FILES.",
        )
