"""What a person sees at a terminal: colours, and text cut to its width. A pipe gets neither, unless colours are asked for.

`--color` decides first, then NO_COLOR, then FORCE_COLOR, then whether the stream is a terminal that has colours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final, TextIO

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
_HUNK = r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@"
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
    variable = os.environ.get("COLUMNS", "")
    try:
        if not stream.isatty():
            return None
        return (
            int(variable) if variable.isdigit() and variable != "0" else os.get_terminal_size(stream.fileno()).columns or None
        )
    except (OSError, ValueError):
        return None


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
    # Counted, not guessed by the first character: a deleted line may begin with `-- `, as a diff's own heading does.
    old = new = 0
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if old > 0 or new > 0:
            old -= line[:1] != "+" and line[:1] != "\\"
            new -= line[:1] != "-" and line[:1] != "\\"
            out.append(_in({"+": _GREEN, "-": _RED}.get(line[:1]), line))
        elif match := re.match(_HUNK, line):
            old, new = (1 if count is None else int(count) for count in match.groups())
            out.append(_in(_CYAN, line))
        elif _begins_diff(lines[at : at + 2]) or _begins_diff(lines[max(at - 1, 0) : at + 1]):
            out.append(_in(_BOLD, line))
        else:
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
