# rye:signed:2026-11-28T17:44:30Z:c1fa28ca9d3e3bd504b65f0264061f9b235aee43be7ac652100f53dfb6714d1c:mInjvEkep_sBsvRxLvOSfchLqMx0e_-EySa-6wy0Ca3Ld57HmtDVIl0Yh2cfj8stKrrHTrUy2Q1VKs8nVSAPDA==:b63173adc9f5699f
"""List a folder: directories first (`name/`), then files; with depth, a tree.

Requires: nothing; path is the folder, the project by default.
Does not: follow symbolic links (shown as `name -> target`), recurse beyond depth, or show dependency, build and version
control folders such as node_modules and .git (named as left out; no_ignore=true shows them). Hidden files are shown.
Side effects: none.
Returns: output, entries [{name, type}] (type: directory, file, symlink with target, fifo, socket, device; with long=true also
size in bytes and modified in UTC), count, total, truncated, next_offset. At most `limit` entries and 50 KB, a cut ends with a
[tool_result: …] line naming the call that continues. In a tree names are relative to path, and a folder below the first shows
at most 100 entries, then `… N more`. Unreadable folders are marked, not fatal. Bytes of a name that are no printable UTF-8 show
as \\xHH; pass such names on as they are shown.
Prefer it to ls or find in a shell; use glob to find files by pattern anywhere, read for a file's lines.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Any

from rye.call import results
from rye.call.context import deadline, output_budget
from rye.call.results import call_text, ok
from rye.filesearch import globs
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.plain_class import Record, changed
from rye.workspace.path_errors import system_failure
from rye.workspace.repositories import IGNORED_DIRECTORIES
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "List a directory, or a tree of directories down to a depth"
__item_id__ = "rye/file-system/ls"
__timeout__ = 60
__letters__ = {"l": "long", "a": ""}
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
__agent_description__ = """List a folder, or a tree down to depth.
Requires: nothing.
Does not: enter ignored folders or links.
Side effects: none.
Returns: one name a line, folders first with a slash.
Prefer it to ls."""
__agent_parameters__ = {"path": "", "depth": "", "no_ignore": "", "limit": "", "offset": ""}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "format": "workspace-path", "default": ".", "description": "Directory to list"},
        "long": {"type": "boolean", "default": False, "description": "Show size and time of change too"},
        "depth": {"type": "integer", "minimum": 1, "maximum": 100, "default": 1, "description": "Levels of folders to show"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 500, "description": "Most entries to return"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 100000000, "default": 1, "description": "First one, from 1"},
        "no_ignore": {"type": "boolean", "default": False, "description": "Show ignored directories too"},
    },
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The folder"},
        "entries": {"type": "array", "description": "name, type; with long size and modified"},
        "count": {"type": "integer", "description": "Entries shown"},
        "total": {"type": "integer", "description": "Entries in all"},
        "ignored": {"type": "array", "description": "Folders left out"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "next_offset": {"type": "integer", "description": "Where the next call continues"},
    },
}

PER_FOLDER = 100
"""In a tree, a folder below the first shows so many entries."""

MAX_COUNTED = 50_000
"""Behind a tree's window no more entries are counted."""

_NOTICES = 3_000
_BATCH = 4_096
_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISREG, "file"),
    (stat.S_ISLNK, "symlink"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)


class _Entry(Record):
    """One line: the path below the listed folder, and what is there. `more` counts the entries that a folder's limit cuts off."""

    parts: beneath.Parts
    kind: str = "more"
    target: bytes | None = None
    info: os.stat_result | None = None
    more: int = 0
    trouble: str = ""

    @property
    def name(self) -> str:
        return names.show(b"/".join(self.parts))


class _Listing:
    """The listed folder, opened beneath the root by descriptors and never through a link; walked without recursion."""

    def __init__(self, ws: Workspace, parts: beneath.Parts, depth: int, *, no_ignore: bool, long: bool) -> None:
        self.ws, self.parts, self.depth, self.long = ws, parts, depth, long
        # Of the listed folder itself: the names that the ignore list leaves out, how many entries it has, whether more than shown.
        self.ignored: list[str] = []
        self.total, self.cut = 0, False
        self._left_out = [] if no_ignore else [globs.compiled(name) for name in IGNORED_DIRECTORIES]

    def tree(self, window: int) -> Iterator[_Entry]:
        """Yield entries in the order of a tree: each folder's own behind it; of one level as many as `window`.

        Raises:
            OSError: the listed folder itself cannot be read.
        """
        # Deeper, a folder's entries follow it, so a window may need all of the top.
        pending, self.total, self.ignored = self._folder((), window if self.depth == 1 else max(window, MAX_COUNTED))
        self.cut = bool(pending) and pending[0].more > 0
        # A stack instead of recursion: the depth of a tree on disk has no bound.
        pending = pending[self.cut :]
        while pending:
            entry = pending.pop()
            inner: list[_Entry] = []
            if entry.kind == "directory" and len(entry.parts) < self.depth:
                try:
                    inner, _, _ = self._folder(entry.parts, PER_FOLDER)
                except OSError as err:
                    # One unreadable folder is reported in its line, and the listing continues.
                    entry = changed(entry, trouble=os.strerror(err.errno or 0))
            yield entry
            pending += inner

    def _folder(self, below: beneath.Parts, most: int) -> tuple[list[_Entry], int, list[str]]:
        """Return the first `most` entries of a folder, the last of them first; how many it has; what is left out."""
        total, ignored = 0, []

        def entries(fd: int) -> Iterator[os.DirEntry[str]]:
            nonlocal total
            with os.scandir(fd) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False) and any(fits(entry.name) for fits in self._left_out):
                        ignored.append(names.show(os.fsencode(entry.name)))
                        continue
                    total += 1
                    if not total % _BATCH:
                        deadline().check()
                    yield entry

        path = [os.fsdecode(part) for part in (*self.parts, *below)]
        # OSError where a link took the place of a folder after that was listed.
        with closing(beneath.open_unlinked(self.ws.fd, path, os.O_RDONLY | os.O_DIRECTORY)) as fd:
            # Folders before others, each by the bytes of its name. The window bounds the memory, not the folder's size.
            first = nsmallest(most, entries(fd), key=lambda one: (not one.is_dir(follow_symlinks=False), os.fsencode(one.name)))
            listed = [self._entry(below, one, fd) for one in first]
        if total > len(listed):
            listed.append(_Entry(below, more=total - len(listed)))
        return listed[::-1], total, sorted(ignored)

    def _entry(self, below: beneath.Parts, found: os.DirEntry[str], fd: int) -> _Entry:
        """Return an entry of the folder `fd`: the link itself, since a target outside the project must not be examined."""
        name, kind, target, info = os.fsencode(found.name), "unknown", None, None
        # One may be gone meanwhile.
        with suppress(OSError):
            # From the directory itself, without a stat for each entry.
            kind = "directory" if found.is_dir(follow_symlinks=False) else kind
            kind = "file" if found.is_file(follow_symlinks=False) else kind
            if self.long or kind == "unknown":
                info = found.stat(follow_symlinks=False)
                kind = next((named for test, named in _KINDS if test(info.st_mode)), "device")
            target = os.readlink(name, dir_fd=fd) if kind == "symlink" else None
        return _Entry((*below, name), kind, target, info)


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the entries of the window.

    Raises:
        WorkspaceError: as `Workspace.open_file`, but for a folder; `not_a_directory`.
        UsageError: `bad_offset`.
    """
    path, offset = params["path"], params["offset"]
    call = results.next_call("ls", params, CONFIG_SCHEMA)
    with Workspace(project_path) as ws, ws.held(path) as (_, parts):
        listing = _Listing(ws, parts, params["depth"], no_ignore=params["no_ignore"], long=params["long"])
        try:
            window, total, exact = _window(listing, offset, params["limit"])
        except OSError as err:
            raise system_failure(err, path) from None
        start = results.start_index(offset, total, "entries")
        page = results.Page(output_budget() - _NOTICES)
        shown = []
        for entry in window:
            line, fields = _described(listing, entry)
            if not page.add([line]):
                break
            shown.append(fields)
        reached = start + len(shown)
        out = page.lines or ["[empty directory]"]
        more: dict[str, Any] = {} if exact else {"total_is_minimum": True}
        if listing.ignored:
            # Of .git, which nearly every project has, nobody needs to hear.
            if told := [name for name in listing.ignored if name != ".git"]:
                out.append(f"[left out by the ignore list: {results.first_few(told)}; no_ignore=true shows them]")
            more["ignored"] = listing.ignored[:100]
        more |= results.left_out(out, len(shown), reached, total, "entries" if exact else "entries or more", call)
        shown_path = names.show(b"/".join(listing.parts)) or "."
        return ok("\n".join(out), path=shown_path, entries=shown, count=len(shown), total=total, **more)


def _window(listing: _Listing, offset: int, limit: int) -> tuple[list[_Entry], int, bool]:
    """Return the entries of the window, how many there are, and whether that is all."""
    window: list[_Entry] = []
    count = 0
    for count, entry in enumerate(listing.tree(offset + limit - 1), 1):
        if offset <= count < offset + limit:
            window.append(entry)
        # The rest is not worth the time: the window is known, the total is only a hint.
        if count >= offset + limit + MAX_COUNTED:
            return window, count, False
        # Not at every entry: the check costs as much as an entry.
        if not count % 100:
            deadline().check()
    return (window, listing.total, True) if listing.depth == 1 else (window, count, not listing.cut)


def _described(listing: _Listing, entry: _Entry) -> tuple[str, dict[str, Any]]:
    """Return an entry's line and its fields."""
    indent = "  " * (len(entry.parts) - 1)
    if entry.more:
        below = names.show(b"/".join((*listing.parts, *entry.parts)))
        more = f"{indent}  … {entry.more} more: {call_text('ls', path=below)}"
        return more, {"name": entry.name, "type": "more", "count": entry.more}
    fields: dict[str, Any] = {"name": entry.name, "type": entry.kind}
    if entry.target is not None:
        fields["target"] = names.show(entry.target)
    if entry.trouble:
        fields["unreadable"] = entry.trouble
    endings = {"directory": "/", "symlink": f" -> {fields.get('target', '?')}", "file": "", "unknown": ""}
    text = indent + names.show(entry.parts[-1]) + endings.get(entry.kind, f" [{entry.kind}]")
    text += f" [not readable: {entry.trouble}]" if entry.trouble else ""
    if listing.long and entry.info is not None:
        fields |= {"size": entry.info.st_size, "modified": _time(entry.info.st_mtime)}
        size = f"{entry.info.st_size:,}" if entry.kind == "file" else "-"
        text = f"{size:>15}  {fields['modified']:<20}  {text}"
    return text, fields


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        # datetime knows no such year.
        return f"@{int(seconds)}"
