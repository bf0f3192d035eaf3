r"""Jupyter notebooks as cells: which lines of the file are a cell's text, and what its outputs say.

A notebook is JSON. Jupyter and Colab write each value on a line of its own, so that each line of a cell is one JSON string
(`"x = 1\n",`): it has an address as every line of a file, and is shown and edited as the text that it holds. A file that is
laid out otherwise is shown without addresses, and so is a cell whose text is one string. Only format 4 is known.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from rye.call.safe_text import is_encodable
from rye.fs.records import without_twins
from rye.plain_class import Record

_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# A line with one value, or one that opens or closes a list or an object; any may be a member.
_LINE: Final = re.compile(
    rf'(?:\xef\xbb\xbf)?\s*(?:{_STRING}\s*:\s*)?(?:[\[{{]|[\]}}],?|(?:{_STRING}|\[\]|\{{\}}|[^\s\[\]{{}},:"]+),?)\s*'.encode()
)
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Cell(Record):
    """One cell; all lines are counted from 0.

    Attributes:
        number: from 1.
        start, stop: the lines of its JSON object; the whole file's where `placed` is False: it is laid out otherwise.
        source: the lines [low, high) that hold its text, one each. None: it is written otherwise, and has no addresses.
        hollow: whether it is empty, `"source": []` on one line, which then stands for its first line.
        lines: its text.
        ends: whether the last line of its text ends in a newline.
        content: the cell as parsed.
    """

    number: int
    start: int
    stop: int
    placed: bool
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
    raw = data.rstrip().split(b"\n")
    try:
        content = json.loads(data, object_pairs_hook=without_twins)
        placed = is_laid_out(content, raw)
    except (ValueError, RecursionError):
        return None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and _prints(cell.get("outputs")) for cell in cells):
        return None
    numbers = content.get("nbformat"), content.get("nbformat_minor", 0)
    if not all(isinstance(one, int) for one in numbers) or numbers < (4, 0):
        return None
    found, at = list[Cell](), _line_of(content, "cells") + 1
    for number, cell in enumerate(cells, 1):
        start, stop = (at, at + _height(cell)) if placed else (0, len(raw))
        found.append(_cell(number, start, stop, cell, placed=placed))
        at = stop
    texts = {
        line: text
        for cell in found
        if cell.source is not None
        for line, text in zip(range(*cell.source), cell.lines, strict=True)
    }
    return Notebook(found, texts, content)


def _prints(outputs: Any) -> bool:
    """Tell whether these can be a cell's outputs."""
    return not outputs or (isinstance(outputs, list) and all(isinstance(one, dict) for one in outputs))


def is_laid_out(value: Any, lines: list[bytes]) -> bool:
    """Tell whether lines of JSON have each value that is in this one on a line of its own."""
    return _height(value) == len(lines) and all(map(_LINE.fullmatch, lines))


def _height(value: Any) -> int:
    """Return how many lines a value takes where each that is in it has its own."""
    if not value or not isinstance(value, list | dict):
        return 1
    return 2 + sum(map(_height, value.values() if isinstance(value, dict) else value))


def _line_of(container: dict[str, Any], name: str) -> int:
    """Return the line of a member, counted from the object's first line."""
    names = [*container]
    return 1 + sum(_height(container[one]) for one in names[: names.index(name)])


def _cell(number: int, start: int, stop: int, content: dict[str, Any], *, placed: bool) -> Cell:
    """Return a cell; it has lines with addresses where each string of its source is one line of its text."""
    source = content.get("source")
    parts = [source] if isinstance(source, str) else [str(part) for part in source] if isinstance(source, list) else []
    bodies = [part.removesuffix("\n") for part in parts]
    where, hollow = None, placed and source == []
    if hollow:
        where = start + _line_of(content, "source"), start + _line_of(content, "source") + 1
    elif placed and source and source == parts:
        is_regular = all(part.endswith("\n") for part in parts[:-1]) and not any(set(body) & {"\n", "\r"} for body in bodies)
        low = start + _line_of(content, "source") + 1
        where = (low, low + len(parts)) if is_regular and is_encodable(bodies) else None
    lines = (bodies or [""]) if where else "".join(parts).split("\n")
    ends = bool(parts) and parts[-1].endswith("\n")
    return Cell(number, start, stop, placed, where, hollow=hollow, lines=lines, ends=ends, content=content)


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _text_of(output: dict[str, Any], data: dict[str, Any], *, pictured: bool) -> str:
    """Return an output's text; of what has none, the kinds of data that it holds."""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    text = _joined(output.get("text", data.get("text/plain", "")))
    # A picture's text is `<Figure size 640x480 with 1 Axes>`.
    return "" if pictured else text or (f"({', '.join(data)})" if data else "")
