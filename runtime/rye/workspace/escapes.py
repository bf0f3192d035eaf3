r"""Bytes that do not decode: views show them as `\xHH`, and new text that holds such an escape becomes the byte again.

A caller who sends back what was shown must not turn one byte into four characters. Where the file also holds the escape as
plain text, nobody can tell which is meant: then the edit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rye.call.context import advice
from rye.call.results import call_text, parameter_text
from rye.errors import EditError
from rye.workspace.encoding import Encoding, edit_with
from rye.workspace.text import Text

_ESCAPE = r"(\\x[89a-f][0-9a-f])"
_SAMPLE_LINES = 2_000


def encode(text: str, code: Encoding, data: bytes, path: str) -> bytes:
    r"""Return new text in a file's encoding; `\xHH` becomes a byte again where views of the file show one so.

    Args:
        text: the new text.
        code: the file's encoding.
        data: the file's whole content.
        path: its name for errors.

    Raises:
        EditError: `unencodable`; `ambiguous_escape` where the file also holds that escape as plain text.
    """
    parts = re.split(_ESCAPE, text)
    # Bytes that do not decode are never ASCII.
    if len(parts) == 1 or data.isascii():
        return code.encode(text, path)
    escaped, plain = shown_escapes(data, code)
    out: list[bytes] = []
    literal = parts[0]
    for escape, part in zip(parts[1::2], parts[2::2], strict=True):
        if escape not in escaped:
            literal += escape + part
            continue
        # In UTF-16 and UTF-32 a line is made of units of two or four bytes, so single bytes cannot be put back.
        if escape in plain or len(code.newline) > 1:
            raise EditError(
                "ambiguous_escape",
                f"The new text holds {escape}. In {path} that is plain text, or a byte that does not decode as {code.name}. "
                "Nothing was written.",
                advice(
                    "encoding",
                    f'Read the file with its encoding, such as encoding="{encoding_to_try(data)}", and edit it with the same.',
                    f"Change it with {edit_with(encoding_to_try(data))}.",
                ),
            )
        out += [code.encode(literal, path), bytes.fromhex(escape[2:])]
        literal = part
    return b"".join([*out, code.encode(literal, path)])


@lru_cache(maxsize=1)
def shown_escapes(data: bytes, code: Encoding) -> tuple[set[str], set[str]]:
    r"""Return which `\xHH` views of a content show for bytes that do not decode, and which it holds as plain text."""
    # Bytes that do not decode are left out here, so what matches is plain text.
    plain = set(re.findall(_ESCAPE, data.decode(code.name, "ignore")))
    if len(code.newline) > 1:
        return set(re.findall(_ESCAPE, data.decode(code.name, "backslashreplace"))), plain
    # `surrogateescape` maps byte 0xNN to U+DCNN, from which the byte is read off.
    found = re.findall("[\udc80-\udcff]", data.decode(code.name, "surrogateescape"))
    return {f"\\x{ord(char) - 0xDC00:02x}" for char in found}, plain


def within(text: str, code: Encoding, data: bytes) -> set[int]:
    r"""Return the places of a shown text that lie within a `\xHH` for one byte: no text of the file begins or ends there.

    Args:
        text: as it is shown.
        code: the file's encoding.
        data: the file's whole content.
    """
    found = [one.start() for one in re.finditer(_ESCAPE, text)]
    escaped = shown_escapes(data, code)[0] if found else ()
    return {at + part for at in found if text[at : at + 4] in escaped for part in (1, 2, 3)}


def notice(lines: Iterable[bytes], text: Text) -> str:
    r"""Return what a view of raw lines says of an uncertain encoding: a guess, or bytes that show as `\xHH`; else nothing."""
    code = text.encoding
    if code.certain or all(map(bytes.isascii, lines)):
        return ""
    if code.name != "utf-8":
        return (
            f"[the file is not UTF-8; {code.name} is a guess. To write other than ASCII, "
            + advice(
                "encoding",
                f"confirm it with {parameter_text(encoding=code.name)}, or give the right one",
                f"use {edit_with(code.name)}",
            )
            + "]"
        )
    likely = encoding_to_try(b"".join(text.lines(0, _SAMPLE_LINES)))
    call = call_text("read", file_path=..., encoding=likely)
    again = advice("encoding", f"read again with {parameter_text(encoding=likely)}", f"{call} shows them")
    return f"[bytes that are not utf-8 are shown as \\xHH: {again}, or with the encoding that the file has]"


def encoding_to_try(data: bytes) -> str:
    """Return the encoding that bytes which are not UTF-8 are most likely in: a suggestion, used only when it is asked for."""
    # Its tables are loaded only for a file that no usual encoding reads.
    from rye.workspace.encoding_guess import guess

    return next(iter(guess(data)), "latin-1")
