r"""Jupyter notebooks as cells: which lines of the file are a cell's text, and what its outputs say.

A notebook is JSON. Jupyter writes each line of a cell as one JSON string on a line of its own (`"x = 1\n",`): such a line has
an address as every line of a file, and is shown and edited as the text that it holds. A cell that is written otherwise is shown
without addresses. Only notebooks of format 4 are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from rye.call.safe_text import is_encodable
from rye.fs.records import without_twins
from rye.plain_class import Record

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Cell(Record):
    """One cell; all lines are counted from 0.

    Attributes:
        number: from 1.
        start, stop: the lines of its JSON object.
        source: the lines [low, high) that hold its text, one each. None: it is written otherwise, and has no addresses.
        hollow: whether it is empty, `"source": []` on one line, which then stands for its first line.
        lines: its text.
        ends: whether the last line of its text ends in a newline.
        content: the cell as parsed.
    """

    number: int
    start: int
    stop: int
    source: tuple[int, int] | None
    hollow: bool
    lines: list[str]
    ends: bool
    content: dict[str, Any]

    @property
    def kind(self) -> str:
        """Return "code", "markdown" or "raw", as the cell says it."""
        return str(self.content.get("cell_type", "?"))

    def outputs(self, most: int) -> tuple[list[str], list[dict[str, str]]]:
        """Return what the cell printed, as at most about `most` lines, and its pictures as parts of a tool's `media`."""
        lines, pictures = list[str](), list[dict[str, str]]()
        for output in self.content.get("outputs") or ():
            data = output.get("data") if isinstance(output.get("data"), dict) else {}
            found = [kind for kind in _PICTURES if isinstance(data.get(kind), str | list)]
            for kind in found[:1]:
                pictures.append({"type": "image", "data": "".join(_joined(data[kind]).split()), "mimeType": kind})
            text = _ANSI.sub("", _text_of(output, data, pictured=bool(found))).rstrip("\n")
            lines += text.split("\n") if text else []
        if len(lines) > most:
            half = most // 2
            left_out = f"[… {len(lines) - most} lines of output left out …]"
            lines = [*lines[: most - half], left_out, *lines[len(lines) - half :]]
        return lines, pictures


class Notebook(Record):
    """The cells of a file, in order, and the text of each line that holds a cell's line."""

    cells: list[Cell]
    texts: dict[int, str]
    content: dict[str, Any]

    def cell_at(self, start: int, stop: int) -> Cell | None:
        """Return the cell whose text the lines [start, stop) are, or where they would be inserted; None: no cell's text."""
        return next((cell for cell in self.cells if cell.source and cell.source[0] <= start and stop <= cell.source[1]), None)


def parse(data: bytes) -> Notebook | None:
    """Return the notebook that a file's content is, None where it is none."""
    try:
        content = json.loads(data, object_pairs_hook=without_twins)
    except (ValueError, RecursionError):
        return None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None
    if not isinstance(content.get("nbformat"), int) or content["nbformat"] < 4:
        return None
    raw, places = data.split(b"\n"), list(_places(data))
    if len(places) != len(cells):
        # A key is spelled with an escape.
        return None
    placed = [_cell(at + 1, place, raw, cell) for at, (place, cell) in enumerate(zip(places, cells, strict=True))]
    texts = {
        line: text
        for cell in placed
        if cell.source is not None
        for line, text in zip(range(*cell.source), cell.lines, strict=True)
    }
    return Notebook(placed, texts, content)


class _Place(NamedTuple):
    """Where a cell stands: its first line and the one behind its last; the line and text of each string of its source."""

    start: int
    stop: int
    opened: int
    strings: list[tuple[int, bytes]]
    closed: int


def _places(data: bytes) -> Iterator[_Place]:
    """Find each cell of a valid notebook. The depth of a cell's members is 3: root, list of cells, cell."""
    opens, keys = list[bytes](), list[bytes]()
    line = at = 0
    before = b""
    start, opened, closed, strings = 0, -1, -1, list[tuple[int, bytes]]()
    for found in _TOKEN.finditer(data):
        token = found[0]
        line += data.count(b"\n", at, found.start())
        at = found.start()
        in_cells = opens[:2] == [b"{", b"["] and keys[0] == b'"cells"'
        in_source = in_cells and len(opens) >= 3 and keys[2] == b'"source"'
        if token in (b"{", b"["):
            if in_cells and len(opens) == 2:
                start, opened, closed, strings = line, -1, -1, []
            elif in_source and len(opens) == 3:
                opened = line
            opens.append(token)
            keys.append(b"")
        elif token in (b"}", b"]"):
            opens.pop()
            keys.pop()
            if in_cells and len(opens) == 2:
                yield _Place(start, line + 1, opened, strings, closed)
            elif in_source and len(opens) == 3:
                closed = line
        elif token == b":" and opens[-1] == b"{":
            keys[-1] = before
        elif in_source and len(opens) == 4:
            strings += [(line, token)] if token != b"," else []
        before = token


def _cell(number: int, place: _Place, raw: list[bytes], content: dict[str, Any]) -> Cell:
    """Return a cell; it has lines with addresses where each string of its source is one line, on a line of its own."""
    source = content.get("source")
    parts = [source] if isinstance(source, str) else [str(part) for part in source] if isinstance(source, list) else []
    ends = bool(parts) and parts[-1].endswith("\n")
    if not parts and place.opened >= 0:
        at = place.opened
        hollow = place.closed == at and raw[at].strip().removesuffix(b",").endswith(b"[]")
        return Cell(
            number, place.start, place.stop, (at, at + 1) if hollow else None, hollow, [""], ends=False, content=content
        )
    low, high = place.opened + 1, place.opened + 1 + len(parts)
    alone = (
        place.opened >= 0
        and [line for line, _ in place.strings] == list(range(low, high))
        and place.closed == high
        and all(raw[line].strip().removesuffix(b",") == token for line, token in place.strings)
        and raw[place.opened].rstrip().endswith(b"[")
        and raw[high].lstrip().startswith(b"]")
    )
    bodies = [part.removesuffix("\n") for part in parts]
    is_regular = all(part.endswith("\n") for part in parts[:-1]) and not any(set(body) & {"\n", "\r"} for body in bodies)
    where = (low, high) if alone and is_regular and is_encodable(bodies) else None
    lines = bodies if where else "".join(parts).split("\n")
    return Cell(number, place.start, place.stop, where, hollow=False, lines=lines, ends=ends, content=content)


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _text_of(output: dict[str, Any], data: dict[str, Any], *, pictured: bool) -> str:
    """Return an output's text; of what has none, the kinds of data that it holds."""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    text = _joined(output.get("text", data.get("text/plain", "")))
    # A picture's text is `<Figure size 640x480 with 1 Axes>`.
    return "" if pictured else text or (f"({', '.join(data)})" if data else "")
