"""A notebook as `read` shows it: each cell's text by address, and its outputs, bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from rye.line_ids.document import Document

if TYPE_CHECKING:
    from rye.workspace.notebook import Cell

_OUTPUT_LINES: Final = 20
_OUTPUT_CHARS: Final = 400
_PICTURES: Final = 4
_CELL_LINES: Final = 5_000
_LAYOUT: Final = "`python -m json.tool --indent 1 IN OUT` lays the file out"


class Window(Protocol):
    """What collects printed lines: those so far, which were printed with addresses, the bytes that are left."""

    ids: bool
    short: bool
    full: bool
    budget: int
    lines: list[str]
    shown: list[tuple[int, int]]

    def show(self, start: int, stop: int) -> int:
        """Print lines [start, stop) as far as they fit; return where it stopped."""


def notebook_view(
    document: Document, window: Window, start: int, limit: int, *, is_range: bool = False
) -> tuple[int, list[str], list[dict[str, str]]]:
    """Print the cells from line `start` on, each with its text and outputs; return where that stopped, and the pictures.

    `limit` counts lines of text; of a range that was asked for, lines of the file.

    A cell's lines stand under the addresses of its first and last line of the file: those name the cell as a whole.
    """
    lines, media, stop = list[str](), list[dict[str, str]](), document.count
    budget_left, until = limit, start + limit if is_range else document.count
    book = document.cells()
    for cell in book.cells if book is not None else ():
        if cell.stop <= start:
            continue
        if cell.start >= until:
            return until, lines, media
        if window.full or budget_left <= 0:
            if cell.start > start:
                return cell.start, lines, media
            # Several cells on one line of the file: no offset leads to the next one.
            return stop, [*lines, f"[more cells are left out: {_LAYOUT}]"], media
        low, high = cell.source or (cell.start, cell.start)
        first = max(low, start)
        header = f"[cell {cell.number}, {cell.kind}{_named(document, window, cell)}]"
        printed = [header]
        window.budget -= len(header) + 1
        before = len(window.lines)
        end = max(first, min(high, until))
        reached = window.show(first, min(end, first + budget_left)) if high > low else high
        printed += window.lines[before:]
        if cell.source is None:
            why = "they are not one string a line in the file" if cell.placed else _LAYOUT
            printed += _plain(window, [*cell.lines, f"[lines without addresses: {why}]"])
        budget_left -= len(printed) - 1
        lines += printed
        if reached < high:
            return (until if reached == end else reached), lines, media
        output, pictures = cell.outputs(_OUTPUT_LINES)
        if output or pictures:
            lines += _plain(window, ["[output]", *output, *(f"[{one['mimeType']}]" for one in pictures)])
        # Pictures are large; a model's interface takes few of them in one answer.
        media += pictures[: max(_PICTURES - len(media), 0)]
        if window.ids and cell.placed and cell.stop - cell.start <= _CELL_LINES:
            # Whoever saw its text and its outputs may delete or move the cell as a whole.
            document.name([(cell.start, cell.stop)])
            window.shown.append((cell.start, cell.stop))
    return stop, lines, media


def _named(document: Document, window: Window, cell: Cell) -> str:
    """Return the addresses of a cell's first and last line."""
    if not window.ids or not cell.placed:
        return ""
    start, stop = cell.start, cell.stop
    if window.short:
        return f", lines {document.shorts(start, start + 1)[0]}-{document.shorts(stop - 1, stop)[0]}"
    return f", [LID:{document.ids(start, start + 1)[0]}] to [LID:{document.ids(stop - 1, stop)[0]}]"


def _plain(window: Window, lines: list[str]) -> list[str]:
    """Return lines without addresses, as far as they fit."""
    out: list[str] = []
    for line in lines:
        text = line if len(line) <= _OUTPUT_CHARS else f"{line[:_OUTPUT_CHARS]}…"
        window.budget -= len(text.encode("utf-8", "replace")) + 1
        if window.budget < 0:
            window.full = True
            return [*out, "[…]"]
        out.append(text)
    return out
