r"""Changes of a notebook's lines, given as the text of its cells, made changes of the JSON that the file holds.

Lines of a cell's text take text. Between two cells, or behind the last, text becomes new cells: `# %%`, `# %% [markdown]` and
`# %% [raw]` begin one each. Whole cells can be deleted, moved and copied. All other lines are JSON, as they stand in the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from rye.call.safe_text import is_encodable
from rye.edits.apply import Plan
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Revived
from rye.plain_class import changed
from rye.workspace.notebook import Cell, Notebook, is_laid_out

_MARK: Final = re.compile(r"# %%(?: \[(code|markdown|raw)\])?\s*\Z")


def encoded(document: Document, book: Notebook, plans: Sequence[Plan]) -> list[Plan]:
    """Return plans that write JSON, for plans that write text, ascending.

    A line next to them whose comma comes or goes gets a plan of its own, and keeps its ID. Of a file that is laid out otherwise
    no line is a cell's, and all plans are of JSON.
    """
    if not all(cell.placed for cell in book.cells):
        return [*plans]
    inside: dict[int, list[Plan]] = {}
    out, new, mended = list[Plan](), list[Plan](), list[Plan]()
    edges = {line for cell in book.cells for line in (cell.start, cell.stop)}
    # At the ends of the file no text is JSON: the ends of its cells are meant.
    outer = {0: book.cells[0].start, document.count: book.cells[-1].stop} if book.cells else {}
    for asked in plans:
        edge = outer.get(asked.start) if asked.start == asked.stop else None
        plan = asked if edge is None else changed(asked, start=edge, stop=edge)
        cell = book.cell_at(plan.start, plan.stop)
        if cell is not None:
            mark = _mark(document, cell, plan)
            if mark is None or mark > 0:
                inside.setdefault(cell.number, []).append(changed(plan, raw=plan.raw[:mark]))
            if mark is not None:
                # Behind the last line that is shown of a cell is behind the cell.
                new.append(Plan(plan.number, cell.stop, cell.stop, plan.raw[mark:]))
        elif plan.start == plan.stop and plan.start in edges:
            new.append(plan)
        else:
            out.append(plan)
    for number, group in inside.items():
        made, ends = _in_cell(document, book.cells[number - 1], group)
        out += made
        mended += ends
    # The last of the cells that stay: what stands behind a cell decides on its comma.
    deleted = {line for plan in plans if not plan.raw for line in range(plan.start, plan.stop)}
    staying = [cell for cell in book.cells if cell.start not in deleted]
    last, ids = (staying[-1] if staying else None), {str(cell.content["id"]) for cell in staying if "id" in cell.content}
    for at, plan in enumerate(new, 1):
        is_followed = at < len(new) or (last is not None and plan.start <= last.start)
        out.append(changed(plan, raw=_new_cells(document, book, plan, ids, is_followed=is_followed)))
    mended += _end_of_last(document, last, out)
    return sorted([*out, *mended], key=lambda plan: (plan.start, plan.stop))


def _mark(document: Document, cell: Cell, plan: Plan) -> int | None:
    """Return at which of its lines a text at the end of a cell begins another one; None: nowhere.

    Where the cell's own text holds such lines, it is as well text, unless it begins with one behind the last line.
    """
    if plan.stop != (cell.source or (0, 0))[1] or plan.names is not None:
        return None
    marks = [at for at, text in enumerate(_texts(document, plan)) if _MARK.match(text)]
    is_behind = plan.start == plan.stop
    if any(map(_MARK.match, cell.lines)):
        marks = [at for at in marks[:1] if at == 0 and is_behind]
    return next((at for at in marks if at or is_behind), None)


def _in_cell(document: Document, cell: Cell, plans: Sequence[Plan]) -> tuple[list[Plan], list[Plan]]:
    """Return the plans of one cell's text as JSON, and those of lines that become or cease to be its last."""
    low, high = cell.source or (0, 0)
    # The text that the cell will have: each line with the line of the file that holds it now.
    texts, firsts, at = list[tuple[int | None, str]](), list[int](), low
    for plan in plans:
        texts += [(line, cell.lines[line - low]) for line in range(at, plan.start)]
        firsts.append(len(texts))
        texts += [(None, text) for text in _texts(document, plan)]
        at = plan.stop
    texts += [(line, cell.lines[line - low]) for line in range(at, high)]
    if cell.hollow or not texts:
        return [_whole_source(document, cell, plans[0].number, [text for _, text in texts])], []
    indent, last = _indent(document.text.lines(low, low + 1)[0]), len(texts) - 1

    def line(at: int) -> bytes:
        return _string(indent, texts[at][1], last=at == last, ends=cell.ends) + _newline(document)

    made = [
        changed(plan, raw=[line(at) for at in range(first, first + len(plan.raw))])
        for plan, first in zip(plans, firsts, strict=True)
    ]
    ends = [
        Plan(plans[0].number, old, old + 1, [line(at)], _same_name(document, old), quoted=True)
        for at, (old, _) in enumerate(texts)
        if old is not None and (at == last) != (old == high - 1)
    ]
    return made, ends


def _same_name(document: Document, at: int) -> Revived:
    return Revived(document.ids(at, at + 1), document.index.addresses.part(at, at + 1))


def _whole_source(document: Document, cell: Cell, number: int, texts: list[str]) -> Plan:
    """Return the plan that writes a cell's `source` anew: `[]` becomes a list of lines, or the other way round."""
    low, high = cell.source or (0, 0)
    start, stop = (low, high) if cell.hollow else (low - 1, high + 1)
    head, tail = document.text.lines(start, start + 1)[0], document.text.lines(stop - 1, stop)[0]
    indent, comma, newline = _indent(head), b"," if tail.rstrip().endswith(b",") else b"", _newline(document)
    if not texts:
        return Plan(number, start, stop, [indent + b'"source": []' + comma + newline])
    inner = indent + _step(document, cell)
    lines = [_string(inner, text, last=at == len(texts) - 1, ends=cell.ends) + newline for at, text in enumerate(texts)]
    return Plan(number, start, stop, [indent + b'"source": [' + newline, *lines, indent + b"]" + comma + newline])


def _new_cells(document: Document, book: Notebook, plan: Plan, ids: set[str], *, is_followed: bool) -> list[bytes]:
    """Return the JSON of the cells that a text between cells means; JSON of cells is taken as it is, but for an ID in `ids`.

    `is_followed`: a cell will stand behind it.
    """
    texts, newline = _texts(document, plan), _newline(document)
    neighbour = next(cell for cell in book.cells if plan.start in (cell.start, cell.stop))
    given, lines = _as_json(texts)
    for cell in (one for one in given or () if "id" in one):
        # No two cells of a notebook may have one ID: a copy has its own.
        if str(cell["id"]) in ids:
            cell["id"], lines = _new_id(), []
        ids.add(str(cell["id"]))
    if not lines:
        indent, step = (
            _indent(document.text.lines(neighbour.start, neighbour.start + 1)[0]).decode(),
            _step(document, neighbour).decode(),
        )
        cells = [_cell(book, *part) for part in _parts(texts)] if given is None else given
        # Half of a character, as JSON can have it, is in a file only as an escape.
        objects = [json.dumps(cell, ensure_ascii=not is_encodable(cell), indent=step) for cell in cells]
        lines = [f"{indent}{line}" for line in ",\n".join(objects).split("\n")]
    lines[-1] += "," * is_followed
    return [line.encode() + newline for line in lines]


def _as_json(texts: list[str]) -> tuple[list[Any] | None, list[str]]:
    """Return the cells that a text has as JSON, None for plain text; and its lines, without a comma at the end, where they are
    laid out as the lines of a notebook.
    """
    joined = "\n".join(texts).rstrip().removesuffix(",")
    with suppress(ValueError, RecursionError):
        cells = json.loads(f"[{joined}]")
        if cells and all(isinstance(cell, dict) and "cell_type" in cell for cell in cells):
            lines = joined.split("\n")
            return cells, lines if is_laid_out(cells, [b"[", *map(str.encode, lines), b"]"]) else []
    return None, []


def _parts(texts: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Split a text into cells at its marks."""
    kind, lines, is_open = "code", list[str](), False
    for text in texts:
        found = _MARK.match(text)
        if found is None:
            lines.append(text)
            continue
        if is_open or any(line.strip() for line in lines):
            yield kind, lines
        kind, lines, is_open = found[1] or "code", [], True
    yield kind, lines


def _cell(book: Notebook, kind: str, lines: list[str]) -> dict[str, Any]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    named = (book.content["nbformat"], book.content.get("nbformat_minor", 0)) >= (4, 5)
    source = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    return {
        "cell_type": kind,
        **({"execution_count": None} if kind == "code" else {}),
        **({"id": _new_id()} if named else {}),
        "metadata": {},
        **({"outputs": []} if kind == "code" else {}),
        "source": source,
    }


def _new_id() -> str:
    return os.urandom(4).hex()


def _end_of_last(document: Document, last: Cell | None, plans: Sequence[Plan]) -> list[Plan]:
    """Return the plan of the last line of the cell that becomes the last one, or ceases to be it: its comma goes or comes."""
    if last is None:
        return []
    at = last.stop - 1
    is_followed = any(plan.start == plan.stop > at and plan.raw for plan in plans)
    line = document.text.lines(at, last.stop)[0]
    body = line.strip()
    if any(plan.start <= at < plan.stop for plan in plans) or body not in (b"}", b"},") or (body == b"},") == is_followed:
        return []
    fixed = _indent(line) + (b"}," if is_followed else b"}") + _newline(document)
    return [Plan(plans[0].number, at, last.stop, [fixed], _same_name(document, at), quoted=True)]


def json_line(cell: Cell | None, lines: Sequence[str]) -> str | None:
    """Return the text that new lines of a cell hold in JSON, where each is written as the file has it; None: they are text."""
    if cell is None or not lines:
        return None
    found = [re.fullmatch(r'\s+("(?:[^"\\]|\\.)*\\n"|"(?:[^"\\]|\\.)*"(?=,?\Z)),?', line) for line in lines]
    if all(found) and (len(lines) > 1 or lines[0].rstrip().removesuffix(",").endswith('\\n"')):
        with suppress(ValueError):
            return "".join(json.loads(one[1]) for one in found if one is not None)
    return None


def _texts(document: Document, plan: Plan) -> list[str]:
    return [body.decode("utf-8", "replace") for body in document.text.encoding.bodies(plan.raw)]


def _string(indent: bytes, text: str, *, last: bool, ends: bool) -> bytes:
    written = json.dumps(text + ("" if last and not ends else "\n"), ensure_ascii=False).encode()
    return indent + written + (b"" if last else b",")


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


def _step(document: Document, cell: Cell) -> bytes:
    """Return the indentation of one level in this file."""
    outer, inner = (_indent(line) for line in document.text.lines(cell.start, cell.start + 2))
    return inner.removeprefix(outer) or b" "


def _newline(document: Document) -> bytes:
    return document.text.encoding.terminator(document.text.lines(0, 1)[0]) or b"\n"
