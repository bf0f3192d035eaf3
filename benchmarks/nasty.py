"""Deliberately nasty variants of real changes: the same change in the clothes that break editors.

Each transposition is a function of a line or of a file alone and is applied to both sides, so that unchanged
lines stay unchanged and the change stays the real one.
"""

from __future__ import annotations

import codecs
import itertools
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


# The point of a variant is its kind, not its size.
_LARGEST = 300_000


class Variant(NamedTuple):
    """One change: the name of its transposition and both sides."""

    kind: str
    before: bytes
    after: bytes


def variants(changes: Sequence[tuple[bytes, bytes]], count: int) -> Iterator[tuple[int, Variant]]:
    """Yield up to `count` variants of every kind, each kind from other changes.

    Args:
        changes: Real before/after bytes; those that are not plain UTF-8 with LF are passed over.
        count: How many of each kind.

    Yields:
        The number of the change that it was made from, and the variant.
    """
    plain = [number for number, sides in enumerate(changes) if all(map(_is_plain, sides))]
    for turn, (kind, transpose) in enumerate(KINDS.items()):
        start = turn * count % max(1, len(plain))
        made = _made(kind, transpose, changes, plain[start:] + plain[:start])
        yield from itertools.islice(made, count)


def _made(
    kind: str, transpose: Transposition, changes: Sequence[tuple[bytes, bytes]], order: list[int]
) -> Iterator[tuple[int, Variant]]:
    for number in order:
        sides = transpose(*changes[number])
        if sides and sides[0] != sides[1]:
            yield number, Variant(kind, *sides)


def _is_plain(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return 0 < len(data) < _LARGEST and b"\r" not in data and not data.startswith(codecs.BOM_UTF8)


def _both(of_file: Callable[[bytes], bytes]) -> Transposition:
    return lambda before, after: (of_file(before), of_file(after))


def _each_line(of_line: Callable[[bytes], bytes]) -> Transposition:
    def of_file(data: bytes) -> bytes:
        return b"".join(of_line(line) for line in data.split(b"\n")[:-1] or [data])

    return _both(lambda data: of_file(_ended(data)))


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _open(data: bytes) -> bytes:
    return data.rstrip(b"\n")


def _drawn(line: bytes, choices: int) -> int:
    """Draw by the line's own text, so that both sides and all copies of a line agree."""
    return zlib.crc32(line) % choices


def _mixed_line(line: bytes) -> bytes:
    return line + (b"\r\n" if _drawn(line, 3) == 0 else b"\n")


def _twin_line(line: bytes) -> bytes:
    texts = (b"", b"}", b"    pass", b"    return None", b"        }")
    return texts[_drawn(line, len(texts))] + b"\n"


def _separator_line(line: bytes) -> bytes:
    marks = ("\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\x1e")
    return line.replace(b" ", marks[_drawn(line, len(marks))].encode(), 2) + b"\n"


def _form_feed_line(line: bytes) -> bytes:
    return (line or b"\f").replace(b"    ", b"\f   ", 1) + b"\n"


def _lone_return_line(line: bytes) -> bytes:
    return line.replace(b"  ", b"\r ", 1) + (b"\r\r\n" if _drawn(line, 7) == 0 else b"\n")


def _undecodable_line(line: bytes) -> bytes:
    return (line.replace(b"e", b"\xff", 1) if _drawn(line, 4) == 0 else line) + b"\n"


def _latin_1(before: bytes, after: bytes) -> tuple[bytes, bytes] | None:
    """Spell every "de" with an accent, in the encoding where that is one byte."""
    try:
        sides = [data.decode().replace("de", "d\u00e9").encode("latin-1") for data in (before, after)]
    except UnicodeEncodeError:
        return None
    return (sides[0], sides[1]) if b"\xe9" in sides[0] else None


def _latin_1_far(before: bytes, after: bytes) -> tuple[bytes, bytes] | None:
    """Keep the change in ASCII and put one accented line where nothing changes."""
    if not (before.isascii() and after.isascii()):
        return None
    return b"# caf\xe9\n" + before, b"# caf\xe9\n" + after


def _undecodable_after(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Put bytes that are no text into the new side of a file that is UTF-8 beyond doubt: no call can carry them."""
    accented = "# caf\u00e9\n".encode()
    return accented + before, accented + after.replace(b"e", b"\xff")


def _long_lines(data: bytes) -> bytes:
    """Glue lines between blank ones together: text that a view has to shorten."""
    paragraphs = _ended(data).split(b"\n\n")
    return b"\n".join(b" ".join(paragraph.split(b"\n")) * 8 for paragraph in paragraphs) + b"\n"


def _utf_16(mark: bytes, codec: str) -> Transposition:
    return _both(lambda data: mark + data.decode().encode(codec))


if TYPE_CHECKING:
    Transposition = Callable[[bytes, bytes], tuple[bytes, bytes] | None]

KINDS: dict[str, Transposition] = {
    "crlf": _both(lambda data: data.replace(b"\n", b"\r\n")),
    "crlf to lf": lambda before, after: (before.replace(b"\n", b"\r\n"), after),
    "mixed newlines": _each_line(_mixed_line),
    "crlf, no final newline": _both(lambda data: _open(data).replace(b"\n", b"\r\n")),
    "no final newline": _both(_open),
    "final newline added": lambda before, after: (_open(before), _ended(after)),
    "final newline removed": lambda before, after: (_ended(before), _open(after)),
    "only final newline added": lambda before, _: (_open(before), _ended(_open(before))),
    "only final newline removed": lambda before, _: (_ended(_open(before)), _open(before)),
    "blank lines at the end": _both(lambda data: _ended(data) + b"\n\n"),
    "bom": _both(lambda data: codecs.BOM_UTF8 + data),
    "bom and crlf": _both(lambda data: codecs.BOM_UTF8 + data.replace(b"\n", b"\r\n")),
    "bom added": lambda before, after: (before, codecs.BOM_UTF8 + after),
    "bom removed": lambda before, after: (codecs.BOM_UTF8 + before, after),
    "latin-1": _latin_1,
    "latin-1 far from the change": _latin_1_far,
    "undecodable bytes, new": _undecodable_after,
    "nul, new": lambda before, after: (before, after.replace(b"e", b"\0", 1)),
    "undecodable bytes": _each_line(_undecodable_line),
    "utf-16 little-endian": _utf_16(codecs.BOM_UTF16_LE, "utf-16-le"),
    "utf-16 big-endian": _utf_16(codecs.BOM_UTF16_BE, "utf-16-be"),
    "form feed": _each_line(_form_feed_line),
    "unicode separators": _each_line(_separator_line),
    "lone carriage returns": _each_line(_lone_return_line),
    "many twins": _each_line(_twin_line),
    "long lines": _both(_long_lines),
    "from empty": lambda _, after: (b"", after),
    "to empty": lambda before, _: (before, b""),
}
