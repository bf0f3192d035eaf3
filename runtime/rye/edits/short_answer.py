"""The receipt of an edit for a model's budget: for each change the addresses that its lines have now, and no text twice.

The caller knows the lines that it sent. Text is printed only where a line holds more than that: a line that `find` changed and
that the caller had not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from rye.edits.splices import Splice
from rye.line_ids import addresses
from rye.line_ids.document import Document

# Changes with a row of their own; characters of lines that are printed, and of a list of addresses.
_ROWS, _PRINTED, _NAMED = 12, 500, 400


def answer_lines(before: Document, document: Document, asked: Sequence[Splice]) -> list[str]:
    """Return the lines of the receipt; what it names or prints counts as shown, and so do seen lines that it now stands beside.

    Args:
        before: the file as it was.
        document: the file as it is now.
        asked: what the changes put in place of which lines, ascending, in the old numbering.
    """
    out, more = list[str](), list[str]()
    places, left, shift = 0, _PRINTED, 0
    for splice in asked:
        start, count = splice.start + shift, len(splice.lines)
        shift += count - (splice.stop - splice.start)
        if before.text.lines(splice.start, splice.stop) == splice.lines:
            continue
        places += 1
        new = document.shorts(start, start + count)
        is_known = all(before.is_seen(at) for at in range(splice.start, splice.stop))
        texts = [] if is_known else document.texts(start, start + count)
        size = sum(map(len, texts))
        if texts and size <= left:
            left -= size
            out += [f"{name}\t{text}" for name, text in zip(new, texts, strict=True)]
            is_known = True
        elif places > _ROWS:
            more += new
        elif row := _row(before, document, splice, new):
            out.append(row)
        beside = [at for at in (start - 1, start + count) if 0 <= at < document.count and document.is_seen(at)]
        shown = [(start, start + count)] if is_known else []
        document.note_shown(*shown, *((at, at + 1) for at in beside), short=True)
    if more:
        named = addresses.ranges(more)
        out.append(f"… -> {named if len(named) <= _NAMED else named[:_NAMED].rpartition(',')[0] + ' …'}")
    return out


def _row(before: Document, document: Document, splice: Splice, new: list[str]) -> str:
    """Return what became of the lines of one change: `12-15 -> 3677-3679`, `12+ -> 380`; nothing of lines that moved."""
    old = before.index.addresses.names(splice.start, splice.stop)
    if old and not new:
        is_moved = any(document.index.place(name) is not None for name in (old[0], old[-1]))
        return "" if is_moved else f"{addresses.ranges(old)} deleted"
    behind = before.index.addresses.names(splice.start - 1, splice.start) if splice.start else []
    place = addresses.ranges(old) if old else f"{behind[0]}+" if behind else "+start"
    return f"{place} -> {addresses.ranges(new)}"
