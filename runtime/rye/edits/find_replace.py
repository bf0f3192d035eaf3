"""Find and replace exact text in lines of an open file: the count must match, or nothing is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from rye.edits.splices import Splice, terminated
from rye.line_ids.document import Document


class FoundText(NamedTuple):
    """Where a text was found: the lines that the matches touch (from 0), and the splices that replace them.

    Of matches that overlap (`b a b` in `b a b a b`) the first is among `places`; `overlapping` tells of others.
    """

    places: int
    lines: list[int]
    splices: list[Splice]
    overlapping: bool


def find(document: Document, start: int, stop: int, old: str, new: str) -> FoundText:
    """Find a text in lines [start, stop); it may span lines, and a newline at its end is the line's own."""
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    texts = document.texts(start, stop)
    all_text, starts = _joined(texts), _starts(texts)
    places, every = _places(all_text, old), _places(all_text, old, overlapping=True)
    splices = [
        terminated(document.text, start + low, start + high, [document.encode(line) for line in lines])
        for low, high, lines in _replaced(all_text, starts, places, len(old), new)
    ]
    lines = sorted({start + bisect_right(starts, place) - 1 for place in every})
    return FoundText(len(places), lines, splices, len(every) > len(places))


def replaced(texts: Sequence[str], old: str, new: str) -> list[tuple[int, int, list[str]]]:
    """Return (first line, line behind the last, new lines) of each range of lines that matches of `old` touch."""
    all_text = _joined(texts)
    return _replaced(all_text, _starts(texts), _places(all_text, old), len(old), new)


def _replaced(all_text: str, starts: list[int], places: list[int], size: int, new: str) -> list[tuple[int, int, list[str]]]:
    out: list[tuple[int, int, list[str]]] = []
    for low, high, inside in _regions(places, size, starts):
        pieces, at = list[str](), starts[low]
        for place in inside:
            pieces += [all_text[at:place], new]
            at = place + size
        lines = "".join([*pieces, all_text[at : starts[high]]]).split("\n")
        # What took the newline of the last line leaves it without one here; the file's end is kept as it was.
        out.append((low, high, lines[:-1] if lines[-1] == "" else lines))
    return out


def _joined(texts: Sequence[str]) -> str:
    return "\n".join([*texts, ""])


def _starts(texts: Sequence[str]) -> list[int]:
    return list(accumulate([len(text) + 1 for text in texts], initial=0))


def _places(all_text: str, old: str, *, overlapping: bool = False) -> list[int]:
    """Return where a text begins, each match behind the end of the one before; or all, also those that overlap."""
    out, at, step = list[int](), all_text.find(old), 1 if overlapping else len(old)
    while at >= 0:
        out.append(at)
        at = all_text.find(old, at + step)
    return out


def _regions(places: list[int], size: int, starts: list[int]) -> list[tuple[int, int, list[int]]]:
    """Return the ranges of lines [low, high) that matches touch, with the matches in each; a line is in one range only."""
    out: list[tuple[int, int, list[int]]] = []
    line = 0
    for place in places:
        while starts[line + 1] <= place:
            line += 1
        high = line + 1
        # A match that ends in a newline joins the next line to what is put in its place.
        while high < len(starts) - 1 and starts[high] <= place + size:
            high += 1
        if out and line < out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]), [*out[-1][2], place])
        else:
            out.append((line, high, [place]))
    return out


def similar_lines(document: Document, start: int, stop: int, old: str) -> list[int]:
    """Return up to five lines that are the first line of a text but for white space."""
    first_line = "".join(old.strip("\n").partition("\n")[0].split())
    if not first_line:
        return []
    return [at for at, text in enumerate(document.texts(start, stop), start) if first_line in "".join(text.split())][:5]
