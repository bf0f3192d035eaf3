r"""File names: bytes in the file system, text in JSON, both ways without loss.

A name that is valid, printable UTF-8 shows as itself. Any other byte (not UTF-8, a control, format or separator character)
shows as `\xHH`; backslashes standing directly before an `x` or before such a byte are doubled, so that the text leads back
to exactly one name. Format: this project's DESIGN ("Paths").
"""

from __future__ import annotations

import re
import unicodedata

# A run of backslashes, then what it stands before: an escape, or a plain x. Tried at the run's start only: else a long run
# without either takes the square of its length.
_ESCAPED = r"(?<!\\)(\\+)(x[0-9a-f]{2}|x)"
# What a case-folding ext4 ignores in names, beside format characters (Unicode: Default_Ignorable_Code_Point).
_IGNORED = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
_PROTECTED_BELOW_AI = frozenset({"trusted_keys", "keys", "cache"})


def show(name: bytes) -> str:
    """Return the text that stands for a name or path in results."""
    out: list[str] = []
    for char in name.decode("utf-8", "surrogateescape"):
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
        UnicodeEncodeError: a lone surrogate that stands for no byte.
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


# Every escaped byte travels as its surrogate, so that one final encode gives all bytes back; ASCII bytes encode as themselves.
_AS_SURROGATE = {byte: 0xDC00 + byte for byte in range(0x80, 0x100)}


def folded(part: bytes) -> str:
    """Fold a component as case-insensitive and normalising file systems do, so that no spelling slips past a rule."""
    text = unicodedata.normalize("NFKC", part.decode("utf-8", "replace"))
    if not text.isascii():
        text = "".join(c for c in text if unicodedata.category(c) != "Cf" and not re.match(_IGNORED, c))
    return text.casefold().split(":", 1)[0].rstrip(". ")


def protected(parts: tuple[bytes, ...]) -> str | None:
    """Return the protected place that physical components lie in (`.git`, `.ai/trusted_keys` …), or None.

    Protected wherever they stand: the trust store, keys and cache of any space, and git's internals.
    """
    spelled = [folded(part) for part in parts]
    for at, name in enumerate(spelled):
        if name in (".git", "git~1"):
            return ".git"
        if name in (".ai", "ai~1"):
            below = spelled[at + 1] if at + 1 < len(spelled) else ""
            if below in _PROTECTED_BELOW_AI or below.startswith("truste~"):
                return f".ai/{below}"
    return None
