"""What `grep` does: matches with the IDs of their lines, or the files that have any, a window at a time.

Two passes: the first counts the matches of every file, so that the order is that of the names and the totals are known; the
second finds those of the window, in files opened here.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rye.record import Record, changed
from rye.toolkit import beneath, globs, literal, pages, users_own, walk
from rye.toolkit.first import First
from rye.toolkit.output import ok, output_room
from rye.toolkit.ripgrep import Pattern, View, bad_pattern
from rye.toolkit.rows import bare
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from rye.toolkit.rows import Hit, Row, Seen
    from rye.toolkit.walk import Engine, Tree

LINE_CHARS = 500
"""A longer line is shown around its match (characters)."""

_BEFORE = 150
_AUTO_CONTEXT = 3
_MAX_HIT_LINES = 20
_FILES_AT_ONCE = 64
_NOTICES = 3_000
_SMALLER = 64 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
# An engine that takes a carriage return for a part of the line's end refuses patterns that ask for one.
_ASKS_FOR_CR = r"\r|\\r|\\x0[dD]|\\[xu]\{?0*[dD]"


class _Ask(Record):
    """The call: what is searched for, where, and which part of it is wanted (`offset` counts from 1)."""

    pattern: Pattern
    view: View
    keep: Callable[[str], object] | None
    mode: str
    context: int | None
    limit: int
    offset: int
    call: Callable[[int], str]
    line_ids: bool


class _Found(Record):
    """Pass 1: the first files by name with their counts, as many as the window can need, and the totals."""

    files: list[tuple[str, int]]
    file_count: int
    total: int


def grep(
    project_path: str, pattern: str, path: str = ".", include: str | None = None, context: int | None = None,
    mode: str = "content", limit: int = 100, offset: int = 1, *, ignore_case: bool = False, literal: bool = False,
    multiline: bool = False, hidden: bool = False, no_ignore: bool = False, line_ids: bool = True,
    engine: Engine | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/file-system/grep`; see its CONFIG_SCHEMA for the parameters. `engine` is for tests.

    Without `line_ids` the matches are as they were found, no file is indexed, and there is no context.

    Raises:
        UsageError: `bad_pattern`, `bad_glob`, `bad_offset`; without ripgrep `pattern_unsupported`, `pattern_too_slow`.
        WorkspaceError: see `walk.held`; `binary_file` for a single file; `search_failed`.
    """
    wanted = _pattern(Pattern(pattern, ignore_case, literal, multiline))
    given = {
        "pattern": pattern, "path": path, "include": include, "context": context, "mode": mode, "limit": limit,
        "ignore_case": ignore_case, "literal": literal, "multiline": multiline, "hidden": hidden, "no_ignore": no_ignore,
    }  # fmt: skip
    call = pages.call("grep", given, {"path": ".", "mode": "content", "limit": 100})
    with Workspace(project_path) as ws, walk.held(ws, path, engine) as tree:
        view, keep = _view(tree, include, hidden=hidden, no_ignore=no_ignore)
        ask = _Ask(wanted, view, keep, mode, context if line_ids else 0, limit, offset, call, line_ids)
        left_out = ""
        try:
            found = _count(tree, ask)
        except walk.OutOfMemoryError:
            found = _count(tree, changed(ask, view=view._replace(max_bytes=_SMALLER)))
            left_out = "[files above 64 MB were left out: one of them has a line too long to be searched]"
        return _files(tree, ask, found, left_out) if mode != "content" else _content(tree, ask, found, left_out)


def _pattern(pattern: Pattern) -> Pattern:
    try:
        raw = pattern.text.encode()
    except UnicodeEncodeError:
        raise bad_pattern(pattern.text, "it contains a lone surrogate, which no text holds") from None
    if b"\0" in raw:
        raise bad_pattern(pattern.text, "it contains a NUL character, which no text file holds")
    # Most patterns hold neither a carriage return nor an escape that could stand for one.
    asks = not {"\r", "\\"}.isdisjoint(pattern.text) and re.search(_ASKS_FOR_CR, pattern.text) is not None
    return pattern._replace(crlf=not asks)


def _view(tree: Tree, include: str | None, *, hidden: bool, no_ignore: bool) -> tuple[View, Callable[[str], object] | None]:
    if tree.is_file:
        return View(), None
    view = View(hidden, no_ignore, (), () if no_ignore else walk.inherited(tree), closed=walk.closed(tree))
    if include is None:
        return view, None
    wanted = pages.glob_text(include)
    narrowed = view._replace(hidden=hidden or globs.names_a_dot(wanted), names=tuple(globs.plain_names(wanted) or ()))
    return narrowed, globs.compiled(wanted)


def _count(tree: Tree, ask: _Ask) -> _Found:
    if tree.is_file:
        _refuse_binary(tree)
        count = tree.count(ask.pattern)
        return _Found([("", count)] if count else [], int(count > 0), count)
    first: First[tuple[str, int]] = First(ask.offset + ask.limit, lambda item: os.fsencode(item[0]))
    total = 0
    for some in tree.counts(ask.pattern, ask.view):
        kept = [item for item in some if ask.keep(item[0])] if ask.keep else some
        total += sum(count for _, count in kept)
        first.add(kept)
    return _Found(first.items(), first.count, total)


def _refuse_binary(tree: Tree) -> None:
    """Refuse a single binary file as `read` does; within a folder such files are passed over."""
    from rye.toolkit import document, sight

    if b"\0" in os.pread(tree.fd, 65_536, 0) and os.fstat(tree.fd).st_size <= sight.MAX_FILE_BYTES:
        with document.view(tree.ws, tree.shown("")):
            return


def _files(tree: Tree, ask: _Ask, found: _Found, left_out: str) -> dict[str, Any]:
    """Answer the modes that name files: `total` is of matches, paging goes by files."""
    start = pages.start(ask.offset, found.file_count, "files", tree.timed_out)
    window = [item for item in found.files[start : start + ask.limit] if not item[0] or tree.stands(item[0])]
    page = pages.Page(output_room() - _NOTICES)
    matches = []
    for name, count in window:
        shown = tree.shown(name)
        if not page.add([shown if ask.mode == "files" else f"{shown}:{count}"]):
            break
        matches.append({"file": shown, "count": count})
    reached = start + len(matches) if page.full else min(start + ask.limit, found.file_count)
    return _answer(
        tree, ask, found, page.lines, matches, reached, found.file_count, f"files with {found.total} matches", [left_out]
    )


def _content(tree: Tree, ask: _Ask, found: _Found, left_out: str) -> dict[str, Any]:
    start = pages.start(ask.offset, found.total, "matches", tree.timed_out)
    context = ask.context if ask.context is not None else _AUTO_CONTEXT if found.total <= 3 else 0
    shown = _Shown(tree, context, line_ids=ask.line_ids)
    reached = start
    counts = dict(found.files)
    wanted = _window(found.files, start, ask.limit)
    for at in range(0, len(wanted), _FILES_AT_ONCE):
        reached += _show(tree, ask.pattern, wanted[at : at + _FILES_AT_ONCE], counts, shown)
        if shown.page.full or tree.timed_out:
            break
    unit = f"matches in {found.file_count} files"
    return _answer(tree, ask, found, shown.page.lines, shown.matches, reached, found.total, unit, [left_out, *shown.notices()])


def _window(files: list[tuple[str, int]], start: int, limit: int) -> list[tuple[str, int, int]]:
    """Return (name, first, behind the last) of the matches that lie in the window, for each file that has any there."""
    out: list[tuple[str, int, int]] = []
    at = 0
    for name, count in files:
        low, high = max(start - at, 0), min(start + limit - at, count)
        if low < high:
            out.append((name, low, high))
        at += count
    return out


def _show(
    tree: Tree, pattern: Pattern, wanted: list[tuple[str, int, int]], counts: dict[str, int], shown: _Shown
) -> int:  # fmt: skip
    """Find and show the matches of some files; return how many of those counted are behind us."""
    with ExitStack() as stack:
        opened: dict[str, int] = {}
        for name, _, _ in wanted:
            fd = _open(tree, name)
            if fd is not None:
                stack.callback(os.close, fd)
                opened[name] = fd
        most = max(high for _, _, high in wanted)
        hits = _words(pattern, opened, counts)
        others = [fd for fd in opened.values() if fd not in hits]
        hits |= tree.hits(pattern, others, most) if others else {}
        passed = 0
        for name, low, high in wanted:
            fd = opened.get(name, -1)
            here = hits.get(fd, [])[low:high]
            before = len(shown.matches)
            shown.add(name, fd, here, fewer=len(here) < high - low and not tree.timed_out)
            if shown.page.full:
                return passed + len(shown.matches) - before
            passed += high - low
        return passed


def _words(pattern: Pattern, opened: dict[str, int], counts: dict[str, int]) -> dict[int, list[Hit]]:
    """Return the hits in those files for which no program need be started, by descriptor."""
    word = literal.word_of(pattern)
    found = {fd: literal.hits(word, fd, counts[name]) for name, fd in opened.items()} if word is not None else {}
    return {fd: hits for fd, hits in found.items() if hits is not None}


def _open(tree: Tree, name: str) -> int | None:
    """Open a file found, for reading; None where no regular file stands there any more, or only behind a link."""
    if not name:
        return os.dup(tree.fd)
    parts = tuple(os.fsencode(name).split(b"/"))
    try:
        fd, physical = beneath.open_beneath(tree.fd, parts, _READ)
    except OSError:
        return None
    info = os.fstat(fd)
    if physical == parts and stat.S_ISREG(info.st_mode) and not users_own.is_key(info):
        return fd
    os.close(fd)
    return None


class _Shown:
    """Collects matches as text and as fields, up to the output's size."""

    def __init__(self, tree: Tree, context: int, *, line_ids: bool) -> None:
        self.tree, self.context, self.line_ids = tree, context, line_ids
        self.page = pages.Page(output_room() - _NOTICES)
        self.matches: list[dict[str, Any]] = []
        self.changed: list[str] = []
        self.without_ids: dict[str, str] = {}

    def add(self, name: str, fd: int, hits: list[Hit], *, fewer: bool) -> None:
        """Show a file's hits; `fewer`: it was counted to have more."""
        path = self.tree.shown(name)
        if fewer:
            self.changed.append(path)
        if hits:
            short = [hit._replace(last=min(hit.last, hit.line + _MAX_HIT_LINES - 1)) for hit in hits]
            whole = [_cut_text(hit, kept) for hit, kept in zip(hits, short, strict=True)]
            if not self.line_ids:
                self._take(path, bare(whole))
                return
            # Not at the top: without line IDs nothing of indexes is needed.
            from rye.toolkit import sight

            raw = b"/".join(self.tree.path_of(name))
            sight.look(self.tree.ws, raw, path, fd, whole, self.context, lambda seen: self._take(path, seen))

    def _take(self, path: str, seen: Seen) -> int:
        if seen.changed and path not in self.changed:
            self.changed.append(path)
        taken, done = 0, 0
        for at, hit in enumerate(seen.hits):
            lines, done = self._lines(path, hit, seen, at, done)
            if not self.page.add(lines):
                break
            taken += 1
            self.matches.append(_match(path, hit, seen.rows))
            if seen.without_ids:
                self.without_ids[path] = seen.without_ids
        return taken

    def _lines(self, path: str, hit: Hit, seen: Seen, at: int, done: int) -> tuple[list[str], int]:
        """Return the printed lines of a hit with the context that is not printed yet, and up to where that is now.

        `done` is the last line printed of this file; the context after a hit ends where the next hit begins.
        """
        following = seen.hits[at + 1].line if at + 1 < len(seen.hits) else None
        start = max(hit.line - self.context, done + 1, 1)
        stop = hit.last + self.context if following is None else min(hit.last + self.context, following - 1)
        rows = [seen.rows[number] for number in range(start, max(stop, hit.last) + 1) if number in seen.rows]
        separated = self.context and self.page.lines and start != done + 1
        lines = ["--"] if separated and rows else []
        for row in rows:
            mark = ":" if hit.line <= row.number <= hit.last else "-"
            lid = f"[LID:{row.id}]" if row.id else "[no LID]"
            text = _around(row.text, _column(hit) if row.number == hit.line else 0)
            lines.append(f"{path}{mark}{row.number}{mark}{lid}{mark}{text}")
        return lines, max(stop, hit.last, done)

    def notices(self) -> list[str]:
        """Return what is to be said of files that could not be shown as found."""
        out = []
        if self.changed:
            out.append(f"[fewer matches than counted, changed meanwhile or a line of megabytes: {pages.some(self.changed)}]")
        for path, why in list(self.without_ids.items())[:5]:
            out.append(f"[no line IDs for {path}: {why}]")
        return out


def _cut_text(hit: Hit, short: Hit) -> Hit:
    """Keep of a hit's text the lines up to its `last`."""
    if short.last == hit.last:
        return hit
    return short._replace(text=b"".join(hit.text.splitlines(keepends=True)[: short.last - short.line + 1]))


def _column(hit: Hit) -> int:
    return len(hit.text[: hit.start].decode("utf-8", "backslashreplace"))


def _around(text: str, at: int) -> str:
    """Return a line, or of a long one the part around character `at`, with how much was cut on each side."""
    if len(text) <= LINE_CHARS:
        return text
    low = max(0, min(at - _BEFORE, len(text) - LINE_CHARS))
    high = low + LINE_CHARS
    head = f"[{low:,} characters before]… " if low else ""
    tail = f" …[{len(text) - high:,} characters after]" if high < len(text) else ""
    return f"{head}{text[low:high]}{tail}"


def _match(path: str, hit: Hit, rows: dict[int, Row]) -> dict[str, Any]:
    first = rows[hit.line]
    texts = [_around(rows[number].text, _column(hit) if number == hit.line else 0) for number in range(hit.line, hit.last + 1)]
    more = {"end_line": hit.last, "end_line_id": rows[hit.last].id} if hit.last > hit.line else {}
    return {"file": path, "line": hit.line, "line_id": first.id, "content": "\n".join(texts), **more}


def _answer(
    tree: Tree, ask: _Ask, found: _Found, lines: list[str], matches: list[dict[str, Any]], reached: int, total: int, unit: str,
    notices: list[str],
) -> dict[str, Any]:  # fmt: skip
    truncated = reached < total
    out = [*lines]
    if not found.total and not tree.timed_out:
        out.append(_nothing(tree, ask))
    out += [notice for notice in (*notices, *pages.troubles(tree)) if notice]
    fields: dict[str, Any] = pages.trouble_fields(tree)
    if truncated:
        out.append(pages.envelope(len(matches), total, unit, ask.call(reached + 1), total - reached))
        fields["next_offset"] = reached + 1
    return ok(
        "\n".join(out), matches=matches, count=len(matches), total=found.total, files=found.file_count,
        truncated=truncated or tree.timed_out, **fields,
    )  # fmt: skip


def _nothing(tree: Tree, ask: _Ask) -> str:
    hints = []
    if not tree.is_file:
        hints = [word for word, on in (("hidden=true", ask.view.hidden), ("no_ignore=true", ask.view.no_ignore)) if not on]
    more = f"; {' and '.join(hints)} would search more files" if hints else ""
    return f"[no matches in {tree.shown_base}{more}]"
