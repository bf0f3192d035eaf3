"""Suggestions for a path at which nothing is: files of that name in the project, or similar names.

The whole tree is searched, least deep first, for at most 50 ms and 20,000 names, through no symbolic link. A path that ends
as the wanted one does comes first: of `models.py` and `tests/models.py`, the second is meant by `test/models.py`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice, takewhile

from rye.call.results import call_text
from rye.call.safe_text import nearest
from rye.errors import WorkspaceError
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.workspace.repositories import IGNORED_DIRECTORIES

_SECONDS = 0.05
_MOST_NAMES = 20_000
_MOST_SHOWN = 3
_MOST_FOUND = 50


def not_found(root: str, root_fd: int, components: Callable[[str], beneath.Parts], path: str) -> WorkspaceError:
    """Return the refusal of a path at which nothing is, with the paths that may be meant.

    `components` are those of a path below the root, and it raises WorkspaceError for one that is none.
    """
    folder, _, wanted_name = path.rstrip("/").rpartition("/")
    existing, entries = _nearest_folder(root_fd, components, folder)
    prefix = "" if existing == "." else f"{existing}/"
    # What is there and cannot be entered, or opened, though nothing is at the path.
    first = next((part for part in path.removeprefix(prefix).split("/") if part not in ("", ".")), "")
    link = f" ({'' if existing == (folder or '.') else f'{prefix}{first} is '}a link to nothing)" if first in entries else ""
    similar = nearest(wanted_name, [name for name in entries if name != wanted_name]) if existing == (folder or ".") else []
    elsewhere = [one for one in _alike(root_fd, path) if one != path]
    close = list(dict.fromkeys([*elsewhere, *(prefix + name for name in similar)]))[:_MOST_SHOWN]
    near = f"Did you mean {' or '.join(close)}? " if close else ""
    if close and path.startswith((f"{close[0]}:", f"{close[0]}#", f"{close[0]}@")):
        near = f"{close[0]} is there; one range can stand behind it: {close[0]}:20-40, or :@20-40 of addresses. "
    if "*" in path:
        near = f"No pattern is a path: name each file that {call_text('glob', pattern=path)} lists. "
    return WorkspaceError(
        "file_not_found",
        f"File not found: {path}{link}.",
        f"{near}Paths start at the project root, {names.show(os.fsencode(root))}. "
        f"Use {call_text('ls', path=existing)} to see what is there.",
        nearest=close,
    )


def _alike(root_fd: int, path: str) -> list[str]:
    """Return the paths in the project that end in the name that a path ends in, in whatever case, the likeliest first."""
    wanted_parts = [part for part in path.split("/") if part not in ("", ".", "..")] or [path]
    # A name with so many matches, such as `__init__.py`, gets no better with more of them.
    found = [*islice(_named(root_fd, wanted_parts[-1].casefold()), _MOST_FOUND)]
    # The longest common end first; the spelling of the last name decides among equals.
    found.sort(key=lambda parts: (-_common_end(parts, wanted_parts), parts[-1] != wanted_parts[-1], len(parts)))
    return [names.show(os.fsencode("/".join(parts))) for parts in found[:2]]


def _common_end(parts: Sequence[str], wanted_parts: Sequence[str]) -> int:
    """Return how many components at their ends are the same, but for the case of letters."""
    pairs = zip(reversed(parts), reversed(wanted_parts), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].casefold() == pair[1].casefold(), pairs))


def _named(root_fd: int, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the paths below a folder whose last component is `name` (case-folded)."""
    end = time.monotonic() + _SECONDS
    reads_left = _MOST_NAMES
    waiting: deque[tuple[str, ...]] = deque([()])
    while waiting:
        parts = waiting.popleft()
        for entry_name, is_folder in _entries(root_fd, parts):
            reads_left -= 1
            # The search runs inside a refusal, which must not take longer than the call itself.
            if reads_left < 0 or time.monotonic() > end:
                return
            path = (*parts, entry_name)
            if entry_name.casefold() == name:
                yield path
            is_ignored = entry_name.startswith(".") or any(fnmatchcase(entry_name, one) for one in IGNORED_DIRECTORIES)
            if is_folder and not is_ignored:
                waiting.append(path)


def _entries(root_fd: int, parts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder, links left out, each with whether it is a folder."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    with suppress(OSError), closing(beneath.open_unlinked(root_fd, parts, flags)) as fd, os.scandir(fd) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield entry.name, entry.is_dir(follow_symlinks=False)


def _nearest_folder(root_fd: int, components: Callable[[str], beneath.Parts], folder: str) -> tuple[str, list[str]]:
    """Return the deepest existing ancestor inside the project, and up to 10,000 of its entries."""
    while True:
        try:
            parts = components(folder or ".")
            fd, _ = beneath.open_beneath(root_fd, parts, os.O_RDONLY | os.O_DIRECTORY)
        except (OSError, WorkspaceError):
            if not folder:
                return ".", []
            # The folder is missing too, but its parent may exist.
            folder = folder.rpartition("/")[0]
            continue
        with closing(fd):
            return folder or ".", [names.show(os.fsencode(name)) for name in os.listdir(fd)[:10_000]]
