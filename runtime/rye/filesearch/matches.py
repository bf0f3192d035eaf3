"""Attach line IDs to search matches, and find plain words in small files without starting a program.

A match is shown only if its line has not changed since the search. Rows that were shown are remembered in the process, so a
repeated search need not load the files' indexes. A memory counts only while the file and its index are as they were then.

`hits` finds what `Tree.hits` finds, or returns None. It leaves to ripgrep: files that ripgrep does not read byte by byte (with
a NUL or a byte order mark), large files, files with more than 1,000 matches, and patterns that are more than a plain word.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rye.errors import WorkspaceError
from rye.fs import names, stamps
from rye.line_ids import document, store
from rye.line_ids.render import Hit, Row, Seen, hits_without_ids, joined_ranges
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

# Files, rows of each, and characters of a row: very long ones would fill the memory that thousands of short ones need.
_FILES_REMEMBERED, _ROWS_REMEMBERED, _ROW_CHARS = 2_000, 500, 4_000
# By the root's identity, not its path, the file, and whether its lines were shown with short addresses: only those that were
# shown may be named. The state of file and index, the count of lines, and the rows.
_memories: dict[tuple[int, int, bytes, bool], tuple[tuple[store.Stamp, stamps.Stamp | None], int, dict[int, Row]]] = {}
# What a document of a file says that is not there as it was searched.
_GONE = ("file_not_found", "path_outside", "is_directory", "not_regular_file", "conflict")


def look(
    ws: Workspace, path: bytes, fd: int, hits: Sequence[Hit], context: int, form: str, take: Callable[[Seen], int]
) -> None:
    """Pass the rows around some hits of an open file to `take`, and record the rows that it took as shown.

    Args:
        ws: the workspace.
        path: physical project-relative path.
        fd: the file that was searched.
        hits: in it, ascending.
        context: lines to show before and after each.
        form: how lines are named, as `addresses.FORMS`; with `none` nothing is indexed or recorded.
        take: is given what can be shown; returns how many of `Seen.hits` it showed, from the first.
    """
    info, named = os.fstat(fd), form != "none"
    if info.st_size > MAX_FILE_BYTES or (not named and not context and all(_is_utf8(hit.text) for hit in hits)):
        take(hits_without_ids(hits, f"larger than {MAX_FILE_BYTES >> 20} MB" if named else ""))
        return
    root = os.fstat(ws.fd)
    key = root.st_dev, root.st_ino, path, form == "short"
    state, total, known = _memories.get(key, (None, 0, {})) if named else (None, 0, {})
    if state is not None and state == (store.stamp_of(info), store.record_stamp(ws, path)):
        numbers = [at + 1 for span in _spans(hits, context, total) for at in range(*span)]
        if known.keys() >= {*numbers}:
            take(Seen({number: known[number] for number in numbers}, list(hits)))
            return
    try:
        with (document.view if named else document.without_ids)(ws, names.show(path)) as doc:
            if form == "short":
                # As read shows a cell's line, and edit_lines takes it.
                doc.show_as_cells()
            true = [hit for hit in hits if _is_unchanged(doc, hit)]
            windows = _spans(true, context, doc.count)
            if named:
                doc.name(windows)
            rows = {row.number: row for start, stop in windows for row in doc.rows(start, stop, ids=named)}
            note = doc.encoding_notice(windows)
            count = take(Seen(rows, true, changed=len(true) < len(hits), note=note))
            if named and count:
                printed = _spans(true[:count], context, doc.count)
                doc.shown(*printed, short=form == "short")
                rows = {at + 1: rows[at + 1] for span in printed for at in range(*span)}
                unchanged = store.same_state(doc.file.stat, info) and store.settled(store.stamp_of(info), doc.file.looked)
                small = len(rows) <= _ROWS_REMEMBERED and all(len(row.text) <= _ROW_CHARS for row in rows.values())
                # A note is about some lines of the file: another search may show others.
                if unchanged and small and not note and (index := store.record_stamp(ws, path)) is not None:
                    if len(_memories) >= _FILES_REMEMBERED:
                        _memories.clear()
                    _memories[key] = (store.stamp_of(info), index), doc.count, rows
    except WorkspaceError as err:
        gone = err.code in _GONE
        take(Seen({}, [], changed=True) if gone else hits_without_ids(hits, err.message.rstrip(".") if named else ""))


def _spans(hits: Sequence[Hit], context: int, count: int) -> list[tuple[int, int]]:
    """Return the ranges [start, stop) of lines, from 0, that show the hits, joined where they meet or one line is between."""
    near = int(context > 0)
    joined = joined_ranges((max(0, hit.line - 1 - context), hit.last + context + near) for hit in hits)
    return [(start, min(stop - near, count)) for start, stop in joined]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_unchanged(doc: document.Document, hit: Hit) -> bool:
    """Tell whether the lines that were searched are still those of the document."""
    code = doc.text.encoding
    lines = doc.text.lines(hit.line - 1, hit.last)
    # The searched text may begin with the byte order mark, the document's first line does not.
    found = hit.text.removeprefix(codecs.BOM_UTF8) if hit.line == 1 else hit.text
    ends = b"\r\n"
    return found.rstrip(ends) in (b"".join(lines).rstrip(ends), b"\n".join(map(code.key, lines)).rstrip(ends))
