"""Search file contents in two passes.

The first pass counts the matches of every file, so files can be sorted by name and the totals are known. The second finds
the matches of the asked window, in files that are opened here. `grep` and the swe searches differ only in how they print.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rye.call import results
from rye.call.context import output_budget, widened
from rye.filesearch import globs, matches
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern, SearchScope, bad_pattern
from rye.filesearch.tree import Folders, SearchTree, too_many
from rye.line_ids import document
from rye.line_ids.render import Hit, Row, Seen
from rye.plain_class import Record
from rye.workspace import protected_paths
from rye.workspace.workspace import Workspace

LINE_CHARS = 500
"""A longer line is shown around its match (characters)."""

_BEFORE = 150
_MAX_HIT_LINES = 20
_FILES_AT_ONCE = 64
_NOTICES = 3_000
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
# With --crlf ripgrep refuses patterns that ask for a carriage return.
_ASKS_FOR_CR = r"\r|\\r|\\x0[dD]|\\[xu]\{?0*[dD]"


class ContentQuery(Record):
    """What is searched for, where, and which part of it is wanted (`offset` counts from 1)."""

    pattern: Pattern
    path: str = "."
    include: str | None = None
    hidden: bool = False
    no_ignore: bool = False
    limit: int = 100
    offset: int = 1


@contextmanager
def opened(project_path: str, query: ContentQuery) -> Iterator[ContentSearch]:
    """Open the project and count the matches of every file.

    Raises:
        UsageError: `bad_pattern`, `bad_glob`; without ripgrep `pattern_too_slow`.
        WorkspaceError: see `tree.opened`; `binary_file` for a single file; `search_failed`.
    """
    pattern = _checked(query.pattern)
    with Workspace(project_path) as ws, filesearch_tree.opened(ws, query.path) as tree:
        yield ContentSearch(tree, query, pattern)


def _checked(pattern: Pattern) -> Pattern:
    try:
        raw = pattern.text.encode()
    except UnicodeEncodeError:
        raise bad_pattern(pattern.text, "it contains a lone surrogate, which no text contains") from None
    if b"\0" in raw:
        raise bad_pattern(pattern.text, "it contains a NUL character, which no text file contains")
    # Cheap first: most patterns contain neither a carriage return nor a backslash.
    asks = not {"\r", "\\"}.isdisjoint(pattern.text) and re.search(_ASKS_FOR_CR, pattern.text) is not None
    return pattern._replace(crlf=not asks)


class ContentSearch:
    """A search whose first pass is done.

    Attributes:
        tree: what is searched.
        files: (name, count) of the first files by name, as many as the window can need.
        file_count: how many files match.
        total: how many matches they have.
        page: the printed lines of the matches, up to the size of an answer.
        matches: the shown matches as fields.
    """

    def __init__(self, tree: SearchTree, query: ContentQuery, pattern: Pattern) -> None:
        self.tree, self.query, self.pattern = tree, query, pattern
        self.page = results.Page(output_budget() - _NOTICES)
        self.matches: list[dict[str, Any]] = []
        self._form = "lid"
        self._changed: list[str] = []
        self._without_ids: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self.folders = Folders()
        self.files, self.file_count, self.total = self._count(_view_of(tree, query))

    def _count(self, view: SearchScope) -> tuple[list[tuple[str, int]], int, int]:
        if self.tree.is_file:
            _refuse_binary(self.tree)
            count = self.tree.count(self.pattern)
            return [("", count)] if count else [], int(count > 0), count
        keep = None if self.query.include is None else filesearch_tree.fits(filesearch_tree.glob_text(self.query.include))
        found = [one for some in self.tree.counts(self.pattern, view) for one in some if keep is None or keep(one[0])]
        for one in found:
            self.folders.add(*one)
        found.sort(key=lambda one: os.fsencode(one[0]))
        return found[: self.query.offset + widened(self.query.limit)], len(found), self.folders.total

    def file_window(self) -> tuple[int, list[tuple[str, int]]]:
        """Return where the window of files begins (from 0), and the shown path and count of those that are still there.

        Raises:
            UsageError: `bad_offset`.
        """
        start = results.start_index(self.query.offset, self.file_count, "files", self.tree.timed_out)
        window = self.files[start : start + widened(self.query.limit, self.file_count - start)]
        return start, [(self.tree.shown(name), count) for name, count in window if not name or self.tree.exists(name)]

    def show(self, context: int, render: Callable[[str, Hit, Seen, int], list[str]], form: str) -> int:
        """Find the matches of the window and print them to `page`; return how many matches are passed then.

        Args:
            context: lines to look up before and after each match.
            render: is given a path, a hit, what is to be shown of the file, and the hit's place among its hits; returns the
                lines that print it.
            form: how lines are named, as `addresses.FORMS`; with `none` no file is indexed.

        Raises:
            UsageError: `bad_offset`.
        """
        self._form = form
        start = results.start_index(self.query.offset, self.total, "matches", self.tree.timed_out)
        reached = start
        window = _window(self.files, start, widened(self.query.limit, self.total - start))
        # A few files at a time: their descriptors are open together.
        for at in range(0, len(window), _FILES_AT_ONCE):
            reached += self._show(window[at : at + _FILES_AT_ONCE], context, render)
            if self.page.full or self.tree.timed_out:
                break
        return reached

    def _show(
        self, window: list[tuple[str, int, int]], context: int, render: Callable[[str, Hit, Seen, int], list[str]]
    ) -> int:
        """Find and show the matches of some files; return how many of those counted are passed."""
        with ExitStack() as stack:
            fds: dict[str, int] = {}
            for name, _, _ in window:
                fd = _open(self.tree, name)
                if fd is not None:
                    stack.callback(os.close, fd)
                    fds[name] = fd
            hits = self._hits(fds, max(high for _, _, high in window))
            skipped = 0
            for name, low, high in window:
                # -1 is no descriptor: a file that is gone since the count has no hits.
                hits_of_file = hits.get(fds.get(name, -1), [])[low:high]
                before = len(self.matches)
                # The file changed between the two passes.
                if len(hits_of_file) < high - low and not self.tree.timed_out:
                    self._changed.append(self.tree.shown(name))
                if hits_of_file:
                    self._show_file(name, fds[name], hits_of_file, context, render)
                # The rest of this file belongs to the next window.
                if self.page.full:
                    return skipped + len(self.matches) - before
                skipped += high - low
            return skipped

    def _hits(self, fds: dict[str, int], most: int) -> dict[int, list[Hit]]:
        """Return the first hits of open files. A plain word in small files is found here, without starting a program."""
        hits: dict[int, list[Hit]] = {}
        word = matches.word_of(self.pattern)
        if word is not None:
            counts = dict(self.files)
            found = {fd: matches.hits(word, fd, counts[name]) for name, fd in fds.items()}
            hits = {fd: some for fd, some in found.items() if some is not None}
        others = [fd for fd in fds.values() if fd not in hits]
        return hits | self.tree.hits(self.pattern, others, most) if others else hits

    def _show_file(
        self, name: str, fd: int, hits: list[Hit], context: int, render: Callable[[str, Hit, Seen, int], list[str]]
    ) -> None:
        path = self.tree.shown(name)
        short = [_shortened(hit) for hit in hits]
        mark, before = self.page.mark(), len(self.matches)

        def take(seen: Seen) -> int:
            """Print hits while they fit; what is taken counts as shown to the caller."""
            # Asked again where the IDs that were printed could not be stored: they would be unknown to the next call.
            self.page.back_to(mark)
            del self.matches[before:]
            # Lines that changed since they were searched are left out, and named.
            if seen.changed and path not in self._changed:
                self._changed.append(path)
            for at, hit in enumerate(seen.hits):
                if not self.page.add(render(path, hit, seen, at)):
                    return at
                self.matches.append(_fields(path, hit, seen.rows))
                if seen.without_ids:
                    self._without_ids[path] = seen.without_ids
                if seen.note:
                    self._notes[path] = seen.note
            return len(seen.hits)

        matches.look(self.tree.ws, b"/".join(self.tree.path_of(name)), fd, short, context, self._form, take)

    def narrowing(self) -> tuple[str, str]:
        """Return in which folders the matches are, and what would narrow the search, in the words of a notice."""
        path = "path" if self.tree.shown_base in (".", "") else "a deeper path"
        # A file cannot be narrowed by folders, nor can a folder all of whose matches lie in one.
        alone = self.tree.is_file or (path != "path" and not self.folders.spread("."))
        return too_many(self.folders, self.tree.shown_base, {path: alone, "include": self.query.include})

    def notices(self) -> list[str]:
        """Return what the answer must say beside the matches: nothing found, changed, unreadable, or searched differently."""
        out = [] if self.total or self.tree.timed_out else [self._nothing()]
        if self._changed:
            changed = results.first_few(self._changed)
            out.append(f"[fewer matches than counted, changed meanwhile or a line of megabytes: {changed}]")
        for why in dict.fromkeys(self._without_ids.values()):
            paths = [path for path, one in self._without_ids.items() if one == why]
            out.append(f"[no line IDs for {results.first_few(paths)}: {why}]")
        for note in dict.fromkeys(self._notes.values()):
            paths = [path for path, one in self._notes.items() if one == note]
            out.append(f"[{results.first_few(paths)}: {note[1:]}")
        return out + filesearch_tree.troubles(self.tree) + self.tree.program.notices()

    def _nothing(self) -> str:
        flags = {name: self.tree.is_file or getattr(self.query, name) for name in ("hidden", "no_ignore")}
        more = filesearch_tree.lifting("search more files", **flags)
        if not self.pattern.text.isascii():
            more += "; files in other encodings than UTF-8 and UTF-16 are found by ASCII text alone"
        if r"\|" in self.pattern.text and not self.pattern.literal:
            more += r"; \| is the sign itself here: a|b finds either"
        which = f", files {self.query.include}" if self.query.include else ""
        return f"[no matches in {self.tree.shown_base}{which}{more}]"


def _view_of(tree: SearchTree, query: ContentQuery) -> SearchScope:
    if tree.is_file:
        return SearchScope()
    view = filesearch_tree.view_of(tree, hidden=query.hidden, no_ignore=query.no_ignore)
    if query.include is None:
        return view
    include = filesearch_tree.glob_text(query.include)
    # Names narrow ripgrep's walk; the exact pattern is still checked here, since dialects differ.
    return view._replace(hidden=query.hidden or globs.names_a_dot(include), names=tuple(globs.plain_names(include) or ()))


def _refuse_binary(tree: SearchTree) -> None:
    """Refuse a single binary file as `read` does; within a folder such files are passed over."""
    # Opening its document raises the refusal, and passes UTF-16, which contains NULs too.
    if b"\0" in os.pread(tree.fd, 65_536, 0) and os.fstat(tree.fd).st_size <= matches.MAX_FILE_BYTES:
        with document.view(tree.ws, tree.shown("")):
            return


def _window(files: list[tuple[str, int]], start: int, limit: int) -> list[tuple[str, int, int]]:
    """Return (name, first, behind the last) of the matches that lie in the window, for each file that has any there."""
    out: list[tuple[str, int, int]] = []
    at = 0
    for name, count in files:
        # `at` counts the matches in the files before this one.
        low, high = max(start - at, 0), min(start + limit - at, count)
        if low < high:
            out.append((name, low, high))
        at += count
    return out


def _open(tree: SearchTree, name: str) -> int | None:
    """Open a file that was found, for reading; None where it is gone, no regular file, a private key, or behind a link."""
    fd = tree.file(name, _READ) if name else os.dup(tree.fd)
    if fd is not None and name and protected_paths.is_key(os.fstat(fd)):
        os.close(fd)
        return None
    return fd


def _shortened(hit: Hit) -> Hit:
    """Keep the first lines of a match that spans very many."""
    last = min(hit.last, hit.line + _MAX_HIT_LINES - 1)
    if last == hit.last:
        return hit
    # A pattern such as `(?s).*` matches a whole file as one hit.
    lines = hit.text.split(b"\n")[: last - hit.line + 1]
    return hit._replace(last=last, text=b"".join(line + b"\n" for line in lines))


def around(hit: Hit, row: Row) -> str:
    """Return a line of a match, or of a long one the part around the match, with how much was cut on each side."""
    text = row.text
    if len(text) <= LINE_CHARS:
        return text
    # A hit counts bytes, the shown text characters.
    at = len(hit.text[: hit.start].decode("utf-8", "backslashreplace")) if row.number == hit.line else 0
    low = max(0, min(at - _BEFORE, len(text) - LINE_CHARS))
    high = low + LINE_CHARS
    head = f"[{low:,} characters before]… " if low else ""
    tail = f" …[{len(text) - high:,} characters after]" if high < len(text) else ""
    return f"{head}{text[low:high]}{tail}"


def _fields(path: str, hit: Hit, rows: dict[int, Row]) -> dict[str, Any]:
    texts = [around(hit, rows[number]) for number in range(hit.line, hit.last + 1)]
    more = {"end_line": hit.last, "end_line_id": rows[hit.last].id} if hit.last > hit.line else {}
    return {"file": path, "line": hit.line, "line_id": rows[hit.line].id, "content": "\n".join(texts), **more}
