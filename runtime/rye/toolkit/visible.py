"""Lines as they are shown: white space made visible, long ones shortened."""

from __future__ import annotations

import re
import unicodedata

from rye.toolkit.output import MAX_LINE_CHARS

_TRAILING = r"[ \t]+$"


def shorten(text: str) -> str:
    """Return a line, or of one over `MAX_LINE_CHARS` its beginning, with how much there is of it."""
    if len(text) <= MAX_LINE_CHARS:
        return text
    return f"{text[:MAX_LINE_CHARS]}… [line shortened: {MAX_LINE_CHARS:,} of {len(text):,} characters shown]"


def shortened(lines: list[str]) -> list[str]:
    """Return `shorten` of each line; where none is long, which one look tells, the lines themselves."""
    return lines if len(max(lines, key=len, default="")) <= MAX_LINE_CHARS else list(map(shorten, lines))


def reveal(text: str, crlf: bool = False) -> str:
    """Return a line with tabs as `→`, trailing blanks as `·`, CR as `␍`, and odd spaces and format characters as `<U+00A0>`."""
    body = re.sub(_TRAILING, lambda match: match[0].replace(" ", "·"), text)
    return "".join(map(_char, body)) + ("␍" if crlf else "")


def _char(char: str) -> str:
    if char == "\t":
        return "→\t"
    if char == "\r":
        return "␍"
    if char != " " and (unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cf") or char in "\x0b\x0c\x85"):
        return f"<U+{ord(char):04X}>"
    return char
