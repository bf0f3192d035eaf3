r"""File names: bytes in the file system, text in JSON, both ways without loss.

A name that is valid, printable UTF-8 shows as itself. Any other byte (not UTF-8, a control, format or separator character)
shows as `\xHH`; backslashes directly before an `x` or before such a byte are doubled, so that the text leads back
to exactly one name. Format: this project's DESIGN ("Paths").

File paths as `file:` URIs and back: any name survives, bytes that are not UTF-8 too.
"""

from __future__ import annotations

import re
from functools import lru_cache

# A run of backslashes, then what follows it: an escape, or a plain x. Tried at the run's start only: else a long run
# without either takes the square of its length.
_ESCAPED = r"(?<!\\)(\\+)(x[0-9a-f]{2}|x)"


# A call names its file several times, and the next call often the same one.
@lru_cache(maxsize=64)
def show(name: bytes) -> str:
    """Return a name or path as results show it."""
    text = name.decode("utf-8", "surrogateescape")
    if "\\" not in text and text.isprintable():
        return text
    out: list[str] = []
    for char in text:
        if char == " " or char.isprintable():
            if char == "x":
                _double_backslashes(out)
            out.append(char)
        else:
            _double_backslashes(out)
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
    return "".join(out)


def _double_backslashes(out: list[str]) -> None:
    run = 0
    while run < len(out) and out[-1 - run] == "\\":
        run += 1
    out.extend("\\" * run)


def parse(text: str) -> bytes:
    """Return the name that `show` shows as `text`; text that `show` never gives is taken literally.

    Raises:
        UnicodeEncodeError: a lone surrogate that represents no byte.
    """

    def restore(match: re.Match[str]) -> str:
        run, rest = len(match[1]), match[2]
        if run % 2 == 0:
            return "\\" * (run // 2) + rest
        if len(rest) == 3:
            return "\\" * (run // 2) + bytes([int(rest[1:], 16)]).decode("latin-1").translate(_AS_SURROGATE)
        return match[0]

    restored = re.sub(_ESCAPED, restore, text) if "\\" in text else text
    return restored.encode("utf-8", "surrogateescape")


def normal(path: str) -> str:
    """Return a path, as results show it or as the system has it (`os.fsdecode`), as results show it. Errors as `parse`."""
    return show(parse(path))


# Every escaped byte travels as its surrogate, so that one final encode gives all bytes back; ASCII bytes encode as themselves.
_AS_SURROGATE = {byte: 0xDC00 + byte for byte in range(0x80, 0x100)}
