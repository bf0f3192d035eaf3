r"""What a command prints, made readable as plain text.

Escape codes are removed, a line redrawn after carriage returns or backspaces shows its last state, bytes that are no UTF-8
are shown as `\xHH`, other control characters as `\xHH`, characters that hide or turn text around as `<U+202E>`.
"""

from __future__ import annotations

import codecs
import io
import re

# ECMA-48: CSI; OSC, DCS, SOS, PM and APC strings up to BEL or ST; two- and three-byte escapes.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,256}[ -/]{0,16}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,4}[0-~]"
    r"|\x1b[0-Z\\^-~]"
)
# An escape that the end of the text cuts off.
_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,256}[ -/]{0,16}|[\]PX^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]{0,4})\Z")
_HIDING = "\u200b\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
_ODD = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDING}]")


def plain(data: bytes) -> str:
    """Return the text of some whole output."""
    return _plain(_BEGUN.sub("", data.decode("utf-8", "backslashreplace")))


def _plain(text: str) -> str:
    if _ODD.search(text) is None:
        return text
    # Escapes first: they hold characters that the steps below would show one by one.
    text = _ESCAPE.sub("", text).replace("\r\n", "\n")
    if "\r" in text or "\b" in text:
        # Line by line, because a carriage return moves within its line only.
        text = "\n".join(map(_last_state, text.split("\n")))
    return _ODD.sub(lambda match: _visible(match[0]), text)


def _last_state(line: str) -> str:
    """Return what a redrawn line shows in the end: the text behind its last carriage return, backspaces applied."""
    states = [state for state in line.split("\r") if state]
    if not states or "\b" not in states[-1]:
        return states[-1] if states else ""
    out: list[str] = []
    for char in states[-1]:
        if char != "\b":
            out.append(char)
        elif out:
            out.pop()
    return "".join(out)


def _visible(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 0xA0 else f"<U+{ord(char):04X}>"


# Clients cut by lines as well: a line counts for so much at least (bytes), and 8 KB are no more than 1,365 lines.
_LEAST_LINE = 6


def fits(text: str, budget: int) -> bool:
    """Tell whether a whole text is within `budget` bytes."""
    return _size(text) <= budget and sum(max(_LEAST_LINE, _size(line)) for line in text.splitlines(keepends=True)) <= budget


class Plain:
    """The same for output that comes in pieces: what a piece cuts off is held back for the next."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._pending = ""

    def feed(self, data: bytes) -> str:
        """Return the text that a piece completes."""
        text = self._pending + self._decoder.decode(data)
        sequence_start = _BEGUN.search(text) if "\x1b" in text else None
        # A carriage return at the end waits: with a newline next it is a line's end, alone it is a redraw.
        cut = sequence_start.start() if sequence_start else len(text) - text.endswith("\r")
        # An escape that never ends would be held for ever and grow with the output; beyond 8 KB it is dropped.
        self._pending = text[cut:] if len(text) - cut < 8_192 else ""
        return _plain(text[:cut])

    def rest(self) -> str:
        """Return what was held back, at the end."""
        text, self._pending = self._pending + self._decoder.decode(b"", final=True), ""
        return _plain(_BEGUN.sub("", text))


def first(data: bytes, budget: int) -> tuple[str, int]:
    """Return as many whole lines from the beginning as fit into `budget` bytes of text, and how many bytes of output they are.

    Of a first line that does not fit alone, as much as does.
    """
    whole = _fitting(io.BytesIO(data).readlines(), budget)
    return (plain(b"".join(whole)), sum(map(len, whole))) if whole else _piece(data, budget, 1)


def last(data: bytes, budget: int) -> tuple[str, int]:
    """Return the same from the end."""
    whole = _fitting(io.BytesIO(data).readlines()[::-1], budget)[::-1]
    return (plain(b"".join(whole)), sum(map(len, whole))) if whole else _piece(data, budget, -1)


def _fitting(lines: list[bytes], budget: int) -> list[bytes]:
    for count, line in enumerate(lines):
        budget -= max(_LEAST_LINE, _size(plain(line)))
        if budget < 0:
            return lines[:count]
    return lines


def _piece(data: bytes, budget: int, step: int) -> tuple[str, int]:
    count = min(len(data), budget)
    while count:
        piece = _whole_characters(data, count, step)
        text = plain(piece)
        if _size(text) <= budget:
            return text, len(piece)
        # Shrink in proportion to the excess: one byte at a time would take quadratic time for a long line.
        count = min(count - 1, count * budget // _size(text))
    return "", 0


def _whole_characters(data: bytes, count: int, step: int) -> bytes:
    """Return a piece whose inner edge splits no character of UTF-8."""
    at = count if step > 0 else len(data) - count
    for _ in range(3):
        if 0 < at < len(data) and data[at] & 0xC0 == 0x80:
            at -= step
    return data[:at] if step > 0 else data[at:]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
