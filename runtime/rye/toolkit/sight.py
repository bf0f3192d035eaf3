"""Lines of searched files with their IDs, as they stand in the very file that was searched.

What a search found in an open file is shown only where the same line stands there for the line index too. For files seen
before and not changed since, what was shown then is remembered in the process, so that a repeated search need not load their
indexes; the memory is checked against the states of the file and of its index, and may be lost at any time.
"""

from __future__ import annotations

import codecs
import os
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

from rye.errors import WorkspaceError
from rye.record import Record
from rye.toolkit import cache, document, index_store
from rye.toolkit.rows import Row, Seen, bare, bare_end

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rye.toolkit.rows import Hit
    from rye.toolkit.workspace import Workspace

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are shown without line IDs."""

_FILES_REMEMBERED = 2_000
_ROWS_REMEMBERED = 500
_ROW_CHARS = 4_000

Span = tuple[int, int]


class _Memory(Record):
    file: index_store.Stamp
    kept: index_store.Stamp
    total: int
    rows: dict[int, Row]


_memories: OrderedDict[tuple[int, int, bytes], _Memory] = OrderedDict()


def look(
    ws: Workspace, path: bytes, shown: str, fd: int, hits: Sequence[Hit], context: int, take: Callable[[Seen], int]
) -> None:  # fmt: skip
    """Give `take` the rows around some hits of an open file; what it takes is recorded as shown.

    Args:
        ws: the workspace.
        path: physical project-relative path.
        shown: the same as text.
        fd: the file that was searched.
        hits: in it, ascending.
        context: lines to show before and after each.
        take: is told what can be shown; returns how many of `Seen.hits` it showed, from the first.
    """
    info = os.fstat(fd)
    if info.st_size > MAX_FILE_BYTES:
        take(bare(hits, f"larger than {MAX_FILE_BYTES >> 20} MB"))
        return
    remembered = _remembered(ws, path, info, hits, context)
    if remembered is not None:
        take(Seen(remembered, list(hits)))
        return
    try:
        with document.view(ws, shown) as held:
            _look(ws, held, index_store.stamp_of(info), hits, context, take)
    except WorkspaceError as err:
        if err.code in ("file_not_found", "path_outside", "is_directory", "not_regular_file", "conflict"):
            take(Seen({}, [], changed=True))
        else:
            take(bare(hits, err.message.rstrip(".")))


def _look(
    ws: Workspace, held: document.Document, searched: index_store.Stamp, hits: Sequence[Hit], context: int,
    take: Callable[[Seen], int],
) -> None:  # fmt: skip
    true = [hit for hit in hits if _stands(held, hit)]
    wanted = spans(true, context, held.text.count)
    held.name((start - 1, stop - 1) for start, stop in wanted)
    rows = {row.number: row for start, stop in wanted for row in held.rows(start - 1, stop - 1)}
    taken = true[: take(Seen(rows, true, changed=len(true) < len(hits)))]
    printed = spans(taken, context, held.text.count)
    if not printed:
        return
    held.shown(*((start - 1, stop - 1) for start, stop in printed))
    if index_store.stamp_of(held.file.stat) == searched and index_store.settled(searched):
        _remember(ws, held, searched, {number: rows[number] for start, stop in printed for number in range(start, stop)})


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


def _stands(held: document.Document, hit: Hit) -> bool:
    """Tell whether the lines that were searched are those of the document."""
    code = held.text.encoding
    lines = held.text.lines(hit.line - 1, hit.last)
    found = hit.text.removeprefix(codecs.BOM_UTF8) if hit.line == 1 else hit.text
    return bare_end(found) in (bare_end(b"".join(lines)), bare_end(b"\n".join(map(code.key, lines))))


def _index_state(ws: Workspace, path: bytes) -> index_store.Stamp | None:
    with suppress(OSError, WorkspaceError), cache.folder(ws, *index_store.FOLDER) as fd:
        return index_store.stamp_of(os.stat(f"{cache.name_of(path)}.json", dir_fd=fd, follow_symlinks=False))
    return None


def _key(ws: Workspace, path: bytes) -> tuple[int, int, bytes]:
    root = os.fstat(ws.fd)
    return root.st_dev, root.st_ino, path


def _remembered(
    ws: Workspace, path: bytes, info: os.stat_result, hits: Sequence[Hit], context: int
) -> dict[int, Row] | None:  # fmt: skip
    key = _key(ws, path)
    memory = _memories.get(key)
    if memory is None or memory.file != index_store.stamp_of(info) or memory.kept != _index_state(ws, path):
        return None
    numbers = [number for start, stop in spans(hits, context, memory.total) for number in range(start, stop)]
    with suppress(KeyError):
        rows = {number: memory.rows[number] for number in numbers}
        _memories.move_to_end(key)
        return rows
    return None


def _remember(ws: Workspace, held: document.Document, searched: index_store.Stamp, rows: dict[int, Row]) -> None:
    index = _index_state(ws, held.file.path)
    if index is None or any(len(row.text) > _ROW_CHARS for row in rows.values()):
        return
    key = _key(ws, held.file.path)
    known = _memories.get(key)
    if known is not None and known.file == searched and len(known.rows) + len(rows) <= _ROWS_REMEMBERED:
        rows = known.rows | rows
    if len(rows) <= _ROWS_REMEMBERED:
        _memories[key] = _Memory(searched, index, held.text.count, rows)
        _memories.move_to_end(key)
    while len(_memories) > _FILES_REMEMBERED:
        _memories.popitem(last=False)
