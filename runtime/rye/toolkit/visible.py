"""White space made visible, for lines that are shown to be looked at closely."""

from __future__ import annotations

import re
import unicodedata

_TRAILING = re.compile(r"[ \t]+$")


def reveal(text: str, crlf: bool = False) -> str:
    """Return a line with tabs as `→`, trailing blanks as `·`, CR as `␍`, and odd spaces and format characters as `<U+00A0>`."""
    body = _TRAILING.sub(lambda match: match[0].replace(" ", "·"), text)
    return "".join(map(_char, body)) + ("␍" if crlf else "")


def _char(char: str) -> str:
    if char == "\t":
        return "→\t"
    if char == "\r":
        return "␍"
    if char != " " and (unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cf") or char in "\x0b\x0c\x85"):
        return f"<U+{ord(char):04X}>"
    return char
