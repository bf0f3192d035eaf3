"""What a `sign` or `verify` target names: item ids, files, folders and globs, in the spaces and outside any `.ai`.

Folders are walked in one order everywhere: a folder's files by name, then its folders by name. Names that begin with `.` or
`_` are left out, but for `.ai`; of an `.ai` only the folders of the item types are entered, and links to folders are not
followed. A file that is named itself is always taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rye.call.safe_text import nearest
from rye.errors import ItemError, RyeError, UsageError
from rye.fs import names
from rye.items import spaces
from rye.items.spaces import Space
from rye.plain_class import Record
from rye.trust.signature import form_of, is_script_suffix, split
from rye.workspace import path_errors

_TYPE_FOLDERS = frozenset(folder for folder, _ in spaces.TYPES.values())
_MAGIC = re.compile(r"[*?\[]")
_SPAN = re.compile(rb"<directive[\s>].*</directive>", re.DOTALL)
_HEADER = re.compile(rb"(?:<!--[^\n]*\n)?\s*(?:```ya?ml|---)[ \t\r]*\n")


class Target(Record):
    """One file to sign or to verify.

    Attributes:
        text: the path as it is shown, from the current directory where it lies below it.
        path: the same, absolute, without `..`.
        item_type: `tool`, `knowledge` or `directive`; None where the content decides (see `type_for`).
        item_id: by the place of the file in an `.ai`; None outside of any.
        suffix: the file name's, such as `.py`.
        problem: why it cannot even be opened.
    """

    text: str
    path: Path
    item_type: str | None
    item_id: str | None
    suffix: str
    problem: RyeError | None = None

    def type_for(self, raw: bytes) -> str:
        """Return the item type of a file with this content, which decides for Markdown outside any `.ai`.

        A directive there is a text around a `<directive …>…</directive>`. What begins with a YAML header, or was signed as
        a whole, is a knowledge entry that shows one.
        """
        if self.item_type is not None:
            return self.item_type
        if not _SPAN.search(raw) or _HEADER.match(raw):
            return "knowledge"
        try:
            split(raw, form_of("knowledge", ".md"))
        except RyeError:
            return "directive"
        return "knowledge"


def resolve(texts: Sequence[str], search_path: Sequence[Space]) -> list[Target]:
    """Return the files that texts name, each once, in the order of the texts.

    Args:
        texts: ids, or paths and globs from the current directory.
        search_path: the spaces that serve ids, in the order in which they are asked.

    Raises:
        ItemError: `target_not_found`, with the nearest ids; `nothing_signable`, a folder without items; `reserved_id`.
        UsageError: `empty_target`; `ambiguous_target`, an id that is a path too.
    """
    found: dict[Path, Target] = {}
    for text in texts:
        for target in _named(text, search_path):
            found.setdefault(target.path, target)
    return list(found.values())


def all_targets(search_path: Sequence[Space]) -> list[Target]:
    """Return every item file of spaces, those included that another space or extension keeps from being served."""
    return [
        target for space in search_path for target in _below(os.path.abspath(space.folder)) if target.item_id or target.problem
    ]


def holds_any(folder: str) -> bool:
    """Tell whether a folder has a file that could carry an item's signature."""
    return any(True for _ in _below(os.path.abspath(folder)))


def _named(text: str, search_path: Sequence[Space]) -> list[Target]:
    if not text:
        raise UsageError("empty_target", "A target is empty.", "Name an item id, a file, a folder or a glob, or give --all.")
    path = os.path.abspath(text)
    if _MAGIC.search(text) and not os.path.lexists(path):
        at_path, as_id = _globbed(text), _ids_like(text, search_path)
    else:
        at_path, as_id = _at(path), _by_id(text, search_path)
    if at_path and as_id:
        hint = f"Write ./{_printed(text)} for the path, or name the item's file: {as_id[0].text}."
        raise UsageError("ambiguous_target", f"{_printed(text)} is an item id, and a path from here as well.", hint)
    if at_path or as_id:
        return at_path or as_id
    if os.path.isdir(path):
        why = f"The folder {_printed(text)} has no file that can carry a signature."
        raise ItemError("nothing_signable", why, "Names that begin with . or _ are left out; name such a file itself.")
    raise _not_found(text, search_path)


def _not_found(text: str, search_path: Sequence[Space]) -> ItemError:
    known = {item_id for item_type in spaces.TYPES for item_id, _, _ in spaces.served_items(item_type, search_path)}
    close = nearest(text, sorted(known))
    hint = f"Did you mean {' or '.join(close)}?" if close else "Name an item id, a file, a folder or a glob, or give --all."
    return ItemError("target_not_found", f"{_printed(text)} names no item, file or folder.", hint, nearest=close)


def _at(path: str) -> list[Target]:
    if os.path.isdir(path):
        return list(_below(path))
    return [_file(path)] if os.path.lexists(path) else []


def _by_id(text: str, search_path: Sequence[Space]) -> list[Target]:
    """Return the files that serve an id, at most one for each item type."""
    out: list[Target] = []
    for item_type in spaces.TYPES:
        try:
            found = spaces.find(item_type, text, search_path)
        except ItemError as err:
            if err.code == "reserved_id":
                raise
            if err.code == "item_unreadable":
                out.append(Target(text, Path(f"{text} ({item_type})"), item_type, text, "", err))
            continue
        out.append(_file(os.path.abspath(found.path)))
    return out or ([_file(os.path.abspath(path))] if (path := spaces.headless(text, search_path)) else [])


def _ids_like(text: str, search_path: Sequence[Space]) -> list[Target]:
    return [
        _file(os.path.abspath(path))
        for item_type in spaces.TYPES
        for item_id, _, path in spaces.served_items(item_type, search_path)
        if fnmatchcase(item_id, text)
    ]


def _globbed(text: str) -> list[Target]:
    """Return the files that a glob names, or that lie below the folders it names; `**` matches any folders or none."""
    parts = text.split("/")
    fixed = next(at for at, part in enumerate(parts) if _MAGIC.search(part))
    top = os.path.abspath("/".join(parts[:fixed]) or ("/" if text.startswith("/") else "."))
    pattern = [part for part in parts[fixed:] if part not in ("", ".")]
    return [target for target in _below(top) if _matches(target.path.relative_to(top).parts, pattern)]


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _below(top: str) -> Iterator[Target]:
    for path, failure in _walk(top):
        target = _file(path)
        if failure is not None:
            yield Target(target.text, target.path, None, None, "", failure)
        elif _is_signable(target) and not (target.item_id is None and _is_misfit(target.path.parts)):
            yield target


def _walk(top: str) -> Iterator[tuple[str, RyeError | None]]:
    """Yield the files below a folder, and what was not looked into with the reason, so that it does not pass in silence."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        folders: list[str] = []
        try:
            with os.scandir(folder) as entries:
                kinds = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError as err:
            if folder != top or not isinstance(err, FileNotFoundError):
                yield folder, path_errors.system_failure(err, _shown(folder))
            continue
        in_ai = os.path.basename(folder) == ".ai"
        for name, is_folder in kinds:
            path = os.path.join(folder, name)
            if is_folder and (name in _TYPE_FOLDERS if in_ai else name == ".ai" or not name.startswith((".", "_"))):
                folders.append(path)
            elif not is_folder and not name.startswith((".", "_")):
                yield path, _link_in_space(path)
        waiting += reversed(folders)


def _link_in_space(path: str) -> RyeError | None:
    if ".ai" not in path.split("/") or not os.path.isdir(path):
        return None
    why = f"{_shown(path)} is a link to a folder, which is not followed."
    return ItemError("folder_link", why, "Name the folder that it points to.")


def _is_misfit(parts: tuple[str, ...]) -> bool:
    """Tell whether a file that is no item is at a place where only items count: right below an `.ai`, or in a type's folder."""
    if ".ai" not in parts:
        return False
    below = parts[len(parts) - parts[::-1].index(".ai") :]
    return len(below) == 1 or below[0] in _TYPE_FOLDERS


def _is_signable(target: Target) -> bool:
    if target.item_type == "tool" and is_script_suffix(target.suffix):
        return spaces.is_script(target.path)
    try:
        form_of(target.item_type or "knowledge", target.suffix)
    except ItemError:
        return False
    return True


def _file(path: str) -> Target:
    where = Path(path)
    item_type, item_id = spaces.locate(where) or (None if where.suffix == ".md" else "tool", None)
    return Target(_shown(path), where, item_type, item_id, where.suffix)


def _shown(path: str) -> str:
    return _printed(path.removeprefix(os.path.join(os.getcwd(), "")))


def _printed(text: str) -> str:
    try:
        return names.show(os.fsencode(text))
    except UnicodeEncodeError:
        # A lone surrogate that represents no byte comes from JSON, never from a file system.
        return names.show(text.encode("utf-8", "backslashreplace"))
