"""What `ls` does: the entries of a folder, or of a tree of folders down to a depth, a window at a time.

Folders are opened one beneath the other by descriptor, never through a link, and walked without recursion.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.errors import WorkspaceError
from rye.toolkit import beneath, globs, names, pages
from rye.toolkit.first import First
from rye.toolkit.output import deadline, ok, output_room
from rye.toolkit.refusals import system_failure
from rye.toolkit.workspace import IGNORED_DIRECTORIES, Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_FOLDER = 100
"""In a tree, a folder below the first shows so many entries."""

MAX_COUNTED = 50_000
"""Behind a tree's window no more entries are counted."""

_NOTICES = 3_000
_BATCH = 4_096
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_KINDS = ((stat.S_ISDIR, "directory"), (stat.S_ISREG, "file"), (stat.S_ISLNK, "symlink"), (stat.S_ISFIFO, "fifo"),
          (stat.S_ISSOCK, "socket"))  # fmt: skip


class Entry(NamedTuple):
    """One line: components below the listed folder, whether a folder; `more` counts entries that a folder's limit cuts."""

    parts: beneath.Parts
    is_folder: bool
    more: int = 0
    trouble: str = ""


class _Listed(NamedTuple):
    entries: list[tuple[bytes, bool]]
    total: int
    ignored: list[str]


class _Listing:
    """A folder being listed, with what was left out on the way."""

    def __init__(self, ws: Workspace, parts: beneath.Parts, depth: int, window: int, *, no_ignore: bool) -> None:
        self.ws, self.parts, self.depth, self.window = ws, parts, depth, window
        self.ignored: list[str] = []
        self.cut = False
        self._left_out = [] if no_ignore else [globs.compiled(name) for name in IGNORED_DIRECTORIES]

    def folder(self, below: beneath.Parts, most: int) -> _Listed:
        """Return the first `most` entries of a folder, folders before others, each by the bytes of its name.

        Raises:
            OSError: it cannot be opened, or is reached through a link.
        """
        fd, physical = beneath.open_beneath(self.ws.fd, (*self.parts, *below), _FLAGS)
        try:
            if physical != (*self.parts, *below):
                raise OSError(40, "reached through a symbolic link")
            return self._read(fd, most)
        finally:
            os.close(fd)

    def _read(self, fd: int, most: int) -> _Listed:
        first: First[tuple[bytes, bool]] = First(most, lambda item: (not item[1], item[0]))
        ignored: list[str] = []
        batch: list[tuple[bytes, bool]] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and any(fits(entry.name) for fits in self._left_out):
                    ignored.append(entry.name)
                    continue
                batch.append((os.fsencode(entry.name), is_folder))
                if len(batch) == _BATCH:
                    deadline().check()
                    first.add(batch)
                    batch = []
        first.add(batch)
        return _Listed(first.items(), first.count, sorted(names.show(os.fsencode(name)) for name in ignored))

    def tree(self) -> Iterator[Entry]:
        """Yield entries in the order of a tree: each folder's own behind it.

        Raises:
            OSError: the listed folder itself cannot be read.
        """
        top = self.folder((), self.window if self.depth == 1 else max(self.window, MAX_COUNTED))
        self.ignored, self.cut = top.ignored, top.total > len(top.entries)
        pending = _reversed((), top, len(top.entries))
        while pending:
            entry = pending.pop()
            if not entry.is_folder or entry.more or len(entry.parts) >= self.depth:
                yield entry
                continue
            try:
                inner = self.folder(entry.parts, PER_FOLDER)
            except OSError as err:
                yield entry._replace(trouble=os.strerror(err.errno or 0))
                continue
            yield entry
            pending += _reversed(entry.parts, inner, inner.total)


def _reversed(below: beneath.Parts, listed: _Listed, total: int) -> list[Entry]:
    entries = [Entry((*below, name), is_folder) for name, is_folder in listed.entries]
    if total > len(entries):
        entries.append(Entry(below, is_folder=False, more=total - len(entries)))
    return entries[::-1]


def ls(
    project_path: str, path: str = ".", depth: int = 1, limit: int = 500, offset: int = 1, *, long: bool = False,
    no_ignore: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/ls`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        WorkspaceError: as `Workspace.open_file`, but for a folder; `not_a_directory`.
        UsageError: `bad_offset`.
    """
    given = {"path": path, "long": long, "depth": depth, "limit": limit, "no_ignore": no_ignore}
    call = pages.call("ls", given, {"path": ".", "depth": 1, "limit": 500})
    with Workspace(project_path) as ws:
        listing = _Listing(ws, _folder(ws, path), depth, offset + limit - 1, no_ignore=no_ignore)
        try:
            window, total, exact = _window(listing, offset, limit)
        except OSError as err:
            raise system_failure(err, path) from None
        start = pages.start(offset, total, "entries")
        page = pages.Page(output_room() - _NOTICES)
        shown = []
        for entry in window:
            line, fields = _described(listing, entry, long=long)
            if not page.add([line]):
                break
            shown.append(fields)
        reached = start + len(shown)
        out = page.lines or ["[empty directory]"]
        if listing.ignored:
            out.append(f"[left out by the ignore list: {pages.some(listing.ignored)}; no_ignore=true shows them]")
        more: dict[str, Any] = {"ignored": listing.ignored[:100]} if listing.ignored else {}
        if reached < total:
            unit = "entries" if exact else "entries or more"
            out.append(pages.envelope(len(shown), total, unit, call(reached + 1), total - reached))
            more["next_offset"] = reached + 1
        counted = {} if exact else {"total_is_minimum": True}
        return ok(
            "\n".join(out), path=names.show(b"/".join(listing.parts)) or ".", entries=shown, count=len(shown), total=total,
            truncated=reached < total, **counted, **more,
        )  # fmt: skip


def _folder(ws: Workspace, path: str) -> beneath.Parts:
    """Return the physical components of the folder that `path` names."""
    try:
        fd, physical = beneath.open_beneath(ws.fd, ws.components(path), beneath.O_PATH)
    except OSError as err:
        raise ws.refusal(err, path) from None
    try:
        mode = os.fstat(fd).st_mode
    finally:
        os.close(fd)
    if not stat.S_ISDIR(mode):
        kind = next((kind for test, kind in _KINDS if test(mode)), "device")
        raise WorkspaceError("not_a_directory", f"{path} is a {kind}, not a directory.", "Use read to see a file's lines.")
    return physical


def _window(listing: _Listing, offset: int, limit: int) -> tuple[list[Entry], int, bool]:
    """Return the entries of the window, how many there are, and whether that is all."""
    if listing.depth == 1:
        top = listing.folder((), listing.window)
        listing.ignored = top.ignored
        return [Entry((name,), is_folder) for name, is_folder in top.entries[offset - 1 :]], top.total, True
    window: list[Entry] = []
    total = 0
    for entry in listing.tree():
        total += 1
        if offset <= total < offset + limit:
            window.append(entry)
        if total >= offset + limit + MAX_COUNTED:
            return window, total, False
        if not total % 100:
            deadline().check()
    return window, total, not listing.cut


def _described(listing: _Listing, entry: Entry, *, long: bool) -> tuple[str, dict[str, Any]]:
    """Return an entry's line and its fields."""
    indent = "  " * (len(entry.parts) - 1)
    if entry.more:
        below = names.show(b"/".join((*listing.parts, *entry.parts)))
        return f'{indent}  … {entry.more} more: ls(path="{below}")', {"name": _name(entry), "type": "more", "count": entry.more}
    fields: dict[str, Any] = {"name": _name(entry), "type": "directory" if entry.is_folder else "unknown"}
    text = indent + names.show(entry.parts[-1])
    info, target = _looked_at(listing, entry)
    if info is not None:
        fields["type"] = next((kind for test, kind in _KINDS if test(info.st_mode)), "device")
    if target is not None:
        fields["target"] = names.show(target)
    if entry.trouble:
        fields["unreadable"] = entry.trouble
    text += {"directory": "/", "symlink": f" -> {fields.get('target', '?')}", "file": "", "unknown": ""}.get(
        fields["type"], f" [{fields['type']}]"
    ) + (f" [not readable: {entry.trouble}]" if entry.trouble else "")
    if long and info is not None:
        fields |= {"size": info.st_size, "modified": _time(info.st_mtime)}
        size = f"{info.st_size:,}" if fields["type"] == "file" else "-"
        text = f"{size:>15}  {fields['modified']:<20}  {text}"
    return text, fields


def _name(entry: Entry) -> str:
    return names.show(b"/".join(entry.parts))


def _looked_at(listing: _Listing, entry: Entry) -> tuple[os.stat_result | None, bytes | None]:
    """Return an entry's own state and where it points if it is a link; None where it is gone."""
    try:
        fd, physical = beneath.open_beneath(listing.ws.fd, (*listing.parts, *entry.parts[:-1]), beneath.DIRECTORY)
    except OSError:
        return None, None
    try:
        if physical != (*listing.parts, *entry.parts[:-1]):
            return None, None
        info = os.stat(entry.parts[-1], dir_fd=fd, follow_symlinks=False)
        return info, os.readlink(entry.parts[-1], dir_fd=fd) if stat.S_ISLNK(info.st_mode) else None
    except OSError:
        return None, None
    finally:
        os.close(fd)


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        # Years that no calendar here reaches.
        return f"@{int(seconds)}"
