"""The answer of an edit for a model's budget: the new short addresses, one line around each hunk, and nothing twice.

The caller knows the lines that it sent, so of many only the first and the last are printed, and which addresses they all have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rye.edits.splices import Splice
from rye.line_ids import addresses
from rye.line_ids.document import Document

# New lines of one hunk that are printed whole; of more, the first and the last.
_WHOLE = 4
_HUNKS = 12
_CHARS = 2_000
# A line that the caller sent, or has seen as it is now, needs no more than this to be recognised.
_KNOWN_CHARS = 40


def answer_lines(document: Document, splices: Sequence[Splice], hunks: int = _HUNKS) -> list[str]:
    """Return the lines of the answer; what they name counts as shown.

    Args:
        document: the file as it is now.
        splices: what changed, in the old numbering.
        hunks: how many places are shown; the rest are counted.
    """
    out: list[str] = []
    places = list(_places(splices))
    behind = 0
    for start, stop in places[:hunks]:
        low, high = max(start - 1, behind), min(stop + 1, document.count)
        if out and low > behind:
            out.append("…")
        out += _hunk(document, low, start, stop, high)
        behind = high
    if len(places) > hunks:
        out.append(f"… {len(places) - hunks} more places; read with changes_since shows them")
    return out


def _places(splices: Sequence[Splice]) -> Iterator[tuple[int, int]]:
    """Return the changed ranges [start, stop) in the new text, those that share a line of context joined."""
    shift, current = 0, None
    for splice in splices:
        start = splice.start + shift
        stop = start + len(splice.lines)
        shift += len(splice.lines) - (splice.stop - splice.start)
        if current is not None and start - current[1] <= 1:
            current = current[0], stop
            continue
        if current is not None:
            yield current
        current = start, stop
    if current is not None:
        yield current


def _hunk(document: Document, low: int, start: int, stop: int, high: int) -> list[str]:
    """Print lines [low, high), of which [start, stop) changed."""
    printed = range(low, high) if stop - start <= _WHOLE else [*range(low, start + 1), *range(stop - 1, high)]
    names, texts = document.shorts(low, high), document.texts(low, high)
    out: list[str] = []
    for at in printed:
        if at == stop - 1 and stop - start > _WHOLE:
            between = addresses.ranges(names[start + 1 - low : stop - 1 - low])
            out.append(f"… {between}: {stop - start - 2} more lines")
        text = texts[at - low]
        known = start <= at < stop or document.is_seen(at)
        most = _KNOWN_CHARS if known else _CHARS
        text = text if len(text) <= most else f"{text[:most]}…"
        out.append(f"{names[at - low]}\t{text}" if document.cells() else addresses.printed(names[at - low], text))
    document.note_shown((low, high), short=True)
    return out
