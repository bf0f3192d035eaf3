"""Attach line IDs to search matches, and find plain words in small files without starting a program.

A match is shown only if its line has not changed since the search. Rows that were shown are remembered in the process, so a
repeated search need not load the files' indexes. A memory counts only while the file and its index are as they were then.

`hits` finds what `Tree.hits` finds, or returns None. It leaves to ripgrep: files that ripgrep does not read byte by byte (with
a NUL or a byte order mark), large files, files with more than 1,000 matches, and patterns that are more than a plain word.
"""

from __future__ import annotations

import codecs
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rye.errors import WorkspaceError
from rye.line_ids import document, store
from rye.line_ids.render import Hit, Row, Seen, bare_end, hits_without_ids
from rye.plain_class import Record
from rye.workspace import cache
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rye.filesearch.ripgrep import Pattern


_LARGEST = 1 << 20
_MOST_HITS = 1_000
_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~\r\n\0")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def word_of(pattern: Pattern) -> bytes | None:
    """Return the only text that a pattern matches, as bytes; None if it matches others or none."""
    special = frozenset("\r\n\0") if pattern.literal else _SPECIAL
    if pattern.ignore_case or pattern.multiline or not pattern.text or not special.isdisjoint(pattern.text):
        return None
    return pattern.text.encode()


def hits(word: bytes, fd: int, count: int) -> list[Hit] | None:
    """Return the `count` lines of an open file that contain `word`; None if these may not be all.

    `count` is how many ripgrep found. Another number means that the file changed since, or that ripgrep reads it differently.
    """
    if count > _MOST_HITS or os.fstat(fd).st_size > _LARGEST:
        return None
    data = os.pread(fd, _LARGEST + 1, 0)
    # The file may have grown since its size was asked.
    if len(data) > _LARGEST or b"\0" in data or data.startswith(_MARKS):
        return None
    found: list[Hit] = []
    number, counted, at = 1, 0, data.find(word)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1 or len(data)
        number += data.count(b"\n", counted, start)
        found.append(Hit(number, number, at - start, data[start:end]))
        counted, at = start, data.find(word, end)
    return found if len(found) == count else None


MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are shown without line IDs."""

_FILES_REMEMBERED = 2_000
_ROWS_REMEMBERED = 500
_ROW_CHARS = 4_000

Span = tuple[int, int]
# What a document of a file says that is not there as it was searched.
_GONE = ("file_not_found", "path_outside", "is_directory", "not_regular_file", "conflict")


class _Memory(Record):
    file: store.Stamp
    index: store.Stamp
    total: int
    rows: dict[int, Row]
    note: str


_memories: OrderedDict[tuple[int, int, _Shown], _Memory] = OrderedDict()


def look(
    ws: Workspace,
    path: bytes,
    shown: str,
    fd: int,
    hits: Sequence[Hit],
    context: int,
    take: Callable[[Seen], int],
    *,
    short: bool = False,
) -> None:
    """Pass the rows around some hits of an open file to `take`, and record the rows that it took as shown.

    Args:
        ws: the workspace.
        path: physical project-relative path.
        shown: the same as text.
        fd: the file that was searched.
        hits: in it, ascending.
        context: lines to show before and after each.
        take: is given what can be shown; returns how many of `Seen.hits` it showed, from the first.
        short: it shows short addresses.
    """
    info = os.fstat(fd)
    if info.st_size > MAX_FILE_BYTES:
        take(hits_without_ids(hits, f"larger than {MAX_FILE_BYTES >> 20} MB"))
        return
    # A repeated search of an unchanged file needs neither its text nor its index.
    remembered = _remembered(ws, (path, short), info, hits, context)
    if remembered is not None:
        rows, note = remembered
        take(Seen(rows, list(hits), note=note))
        return
    try:
        with document.view(ws, shown) as doc:
            if short:
                # As read shows a cell's line, and edit_lines takes it.
                doc.show_as_cells()
            _look(ws, doc, store.stamp_of(info), hits, context, take, short=short)
    except WorkspaceError as err:
        if err.code in _GONE:
            take(Seen({}, [], changed=True))
        else:
            take(hits_without_ids(hits, err.message.rstrip(".")))


def look_without_ids(
    ws: Workspace, shown: str, fd: int, hits: Sequence[Hit], context: int, take: Callable[[Seen], int]
) -> None:
    """Pass the rows around some hits to `take` without IDs: as they were found, or in the file's encoding with lines around."""
    if (not context and all(_is_utf8(hit.text) for hit in hits)) or os.fstat(fd).st_size > MAX_FILE_BYTES:
        take(hits_without_ids(hits))
        return
    try:
        with document.without_ids(ws, shown) as doc:
            true = [hit for hit in hits if _is_unchanged(doc, hit)]
            ranges = [(start - 1, stop - 1) for start, stop in spans(true, context, doc.text.count)]
            rows = {row.number: row for start, stop in ranges for row in doc.rows(start, stop, ids=False)}
            take(Seen(rows, true, changed=len(true) < len(hits), note=doc.encoding_notice(ranges)))
    except WorkspaceError as err:
        take(Seen({}, [], changed=True) if err.code in _GONE else hits_without_ids(hits))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _look(
    ws: Workspace,
    doc: document.Document,
    searched: store.Stamp,
    hits: Sequence[Hit],
    context: int,
    take: Callable[[Seen], int],
    *,
    short: bool,
) -> None:
    true = [hit for hit in hits if _is_unchanged(doc, hit)]
    windows = spans(true, context, doc.text.count)
    doc.name((start - 1, stop - 1) for start, stop in windows)
    rows = {row.number: row for start, stop in windows for row in doc.rows(start - 1, stop - 1)}
    note = doc.encoding_notice((start - 1, stop - 1) for start, stop in windows)
    accepted = true[: take(Seen(rows, true, changed=len(true) < len(hits), note=note))]
    printed = spans(accepted, context, doc.text.count)
    if not printed:
        return
    doc.shown(*((start - 1, stop - 1) for start, stop in printed), short=short)
    if store.stamp_of(doc.file.stat) == searched and store.settled(searched, doc.file.looked):
        shown_rows = {number: rows[number] for start, stop in printed for number in range(start, stop)}
        _remember(ws, doc, short, searched, shown_rows, note)


def spans(hits: Sequence[Hit], context: int, count: int) -> list[Span]:
    """Return the ranges [first, last + 1) of line numbers that show the hits, joined where they meet."""
    out: list[Span] = []
    for hit in hits:
        start, stop = max(1, hit.line - context), min(hit.last + context, count) + 1
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((start, stop))
    return out


def _is_unchanged(doc: document.Document, hit: Hit) -> bool:
    """Tell whether the lines that were searched are still those of the document."""
    code = doc.text.encoding
    lines = doc.text.lines(hit.line - 1, hit.last)
    # The searched text may begin with the byte order mark, the document's first line does not.
    found = hit.text.removeprefix(codecs.BOM_UTF8) if hit.line == 1 else hit.text
    return bare_end(found) in (bare_end(b"".join(lines)), bare_end(b"\n".join(map(code.key, lines))))


def _index_state(ws: Workspace, path: bytes) -> store.Stamp | None:
    with suppress(OSError, WorkspaceError), cache.folder(ws, *store.FOLDER) as fd:
        return store.stamp_of(os.stat(f"{cache.name_of(path)}.json", dir_fd=fd, follow_symlinks=False))
    return None


# The file, and whether its lines were shown with short addresses: only those that were shown may be named.
_Shown = tuple[bytes, bool]


def _key(ws: Workspace, shown: _Shown) -> tuple[int, int, _Shown]:
    root = os.fstat(ws.fd)
    return root.st_dev, root.st_ino, shown


def _remembered(
    ws: Workspace, shown: _Shown, info: os.stat_result, hits: Sequence[Hit], context: int
) -> tuple[dict[int, Row], str] | None:
    # By the root's identity, not its path: another project may be moved to the same path.
    key = _key(ws, shown)
    memory = _memories.get(key)
    if memory is None or memory.file != store.stamp_of(info) or memory.index != _index_state(ws, shown[0]):
        return None
    numbers = [number for start, stop in spans(hits, context, memory.total) for number in range(start, stop)]
    with suppress(KeyError):
        rows = {number: memory.rows[number] for number in numbers}
        _memories.move_to_end(key)
        # Other lines of the file had the note: these may all be plain ASCII, without an escaped byte.
        odd = any(not row.text.isascii() or "\\x" in row.text for row in rows.values())
        return rows, memory.note if odd else ""
    return None


def _remember(
    ws: Workspace, doc: document.Document, short: bool, searched: store.Stamp, rows: dict[int, Row], note: str
) -> None:
    index = _index_state(ws, doc.file.path)
    # Very long rows would fill the memory that thousands of short ones need.
    if index is None or any(len(row.text) > _ROW_CHARS for row in rows.values()):
        return
    key = _key(ws, (doc.file.path, short))
    known = _memories.get(key)
    if known is not None and known.file == searched and len(known.rows) + len(rows) <= _ROWS_REMEMBERED:
        rows, note = known.rows | rows, known.note or note
    if len(rows) <= _ROWS_REMEMBERED:
        _memories[key] = _Memory(searched, index, doc.text.count, rows, note)
        _memories.move_to_end(key)
    while len(_memories) > _FILES_REMEMBERED:
        # The least recently used one goes, because each use moves its entry to the end.
        _memories.popitem(last=False)
