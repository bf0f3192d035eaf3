"""What a command prints: JSON, tables and notes; at a terminal in colours, cut to its width, and nothing that could steer it.

A pipe gets no colours, unless they are asked for, and nothing of it is cut.

`--color` decides first, then NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal that has colours.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, TextIO

_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "31", "32", "33", "36"
STYLES: Final = {
    "heading": _BOLD,
    "ok": _GREEN,
    "valid": _GREEN,
    "note": _YELLOW,
    "problem": _RED,
    "error": _RED,
    "faint": _DIM,
}
# Not compiled: most commands print no colours.
_HUNK: Final = {"+": _GREEN, "-": _RED, " ": None, "\\": None}
_LINE_ID = r"((?:\d+: )?\[LID:[0-9a-z]+\]) "
# One decision for the whole command; `choose` makes it anew for each.
_decision = {"when": "auto"}


def choose(when: str | None) -> None:
    """Set what `--color` said: `auto`, `always` or `never`; None: `auto`."""
    _decision["when"] = when or "auto"


def has_colour(stream: TextIO) -> bool:
    """Tell whether text for this stream is coloured."""
    if _decision["when"] != "auto":
        return _decision["when"] == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def styled(text: str, style: str, stream: TextIO) -> str:
    """Return text in one of `STYLES`, or as it is: where the stream takes no colours, and for any other word."""
    code = STYLES.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text and has_colour(stream) else text


def columns(stream: TextIO) -> int | None:
    """Return how many columns a terminal has; None for a pipe or a file, whose lines are never cut."""
    if not stream.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def cells(text: str) -> int:
    """Return how many columns a text takes: two for a wide letter, none for a combining one."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, width: int) -> str:
    """Return text of at most `width` columns, a cut marked with `…`."""
    if cells(text) <= width:
        return text
    out, used = "", 1
    for char in text:
        used += cells(char)
        if used > width:
            break
        out += char
    return f"{out.rstrip()}…" if width > 0 else ""


def painted(text: str, rows: Sequence[tuple[str, Sequence[str]]] = ((_LINE_ID, (_DIM,)),)) -> str:
    """Return a tool's text with colours: the lines of its diffs, and others by what they look like and their parts' codes."""
    out: list[str] = []
    in_hunk = False
    lines = text.split("\n")
    for at, line in enumerate(lines):
        # A deleted line may begin with `-- `: a heading is two lines.
        if _begins_diff(lines[at : at + 2]) or _begins_diff(lines[max(at - 1, 0) : at + 1]):
            in_hunk = False
            out.append(_in(_BOLD, line))
        elif line.startswith("@@ -"):
            in_hunk = True
            out.append(_in(_CYAN, line))
        elif in_hunk and line[:1] in _HUNK:
            out.append(_in(_HUNK[line[:1]], line))
        else:
            in_hunk = False
            out.append(_row(line, rows))
    return "\n".join(out)


def _row(line: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    for pattern, codes in rows:
        if (match := re.match(pattern, line)) is not None:
            parts = [part or "" for part in match.groups()]
            rest = line[sum(map(len, parts[: len(codes)])) :]
            return "".join([*(_in(code, part) for code, part in zip(codes, parts, strict=False)), rest])
    return line


def _begins_diff(pair: list[str]) -> bool:
    return len(pair) == 2 and pair[0].startswith("--- ") and pair[1].startswith("+++ ")


def _in(code: str | None, line: str) -> str:
    return f"\x1b[{code}m{line}\x1b[0m" if code else line


def print_json(obj: object, stream: TextIO | None = None) -> None:
    """Print JSON, indented, on `stream` (standard output); characters that its encoding lacks are escaped."""
    import json

    stream = stream or sys.stdout
    text = json.dumps(obj, indent=2, ensure_ascii=False)
    try:
        # Tried first: JSON can escape every character, so no answer fails for its terminal's encoding.
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(obj, indent=2)
    print(text, file=stream)


def told_json(args: SimpleNamespace, content: object, stream: TextIO | None = None) -> bool:
    """Print an answer as JSON where that is asked for; tell whether it was."""
    if args.json:
        print_json(content, stream)
    return bool(args.json)


def tell(args: SimpleNamespace, content: object, text: str | Iterable[str], code: int = os.EX_OK) -> int:
    """Print an answer as JSON where that is asked for, else as this text or these lines; return the exit code."""
    if not told_json(args, content):
        for line in [harmless(text)] if isinstance(text, str) else map(printable, text):
            print(line)
    return code


def tell_rows(args: SimpleNamespace, content: object, rows: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> int:
    """Print an answer as JSON where that is asked for, else rows as a table of these fields; return 0."""
    if not told_json(args, content):
        print_table(rows, fields)
    return os.EX_OK


def print_table(rows: Iterable[Mapping[str, Any]], fields: Sequence[str], *, prose: str | None = None) -> None:
    """Print the named fields of rows as aligned text under a heading; None prints as nothing.

    At a terminal the column `prose` is cut, so that a row fits. Other values are never cut, nor is anything in a pipe.
    """
    headings = [name.replace("_", " ").upper() for name in fields]
    lines = [[printable("" if row.get(name) is None else str(row[name])) for name in fields] for row in rows]
    widths = [max(map(cells, column)) for column in zip(headings, *lines, strict=True)]
    room = columns(sys.stdout)
    if prose is not None and room is not None:
        at = fields.index(prose)
        others = sum(widths) - widths[at] + 2 * (len(widths) - 1)
        # A column too narrow to say anything is not cut further: the terminal wraps it.
        widths[at] = min(widths[at], max(room - others, 16))
        lines = [[*line[:at], cut(line[at], widths[at]), *line[at + 1 :]] for line in lines]
    for at, line in enumerate([headings, *lines]):
        padded = [value + " " * (width - cells(value)) for value, width in zip(line, widths, strict=True)]
        styles = [
            "heading" if at == 0 else value if name == "verdict" else "" for name, value in zip(fields, line, strict=True)
        ]
        padded[-1] = line[-1]
        shown = [styled(value, style, sys.stdout) for value, style in zip(padded, styles, strict=True)]
        print("  ".join(shown).rstrip())


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1_000:.1f} KB"


def printable(text: str) -> str:
    """Return text on one line that cannot steer a terminal: what does not print is escaped."""
    return harmless(text).replace("\n", "\\n").replace("\t", "\\t")


def harmless(text: str) -> str:
    """Return text whose control characters cannot steer a terminal: they are shown as escapes; lines and tabs stay."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(text: str) -> None:
    """Say what stands beside an answer, on standard error; no text in it can steer a terminal."""
    print(harmless(f"rye: {text}"), file=sys.stderr)
