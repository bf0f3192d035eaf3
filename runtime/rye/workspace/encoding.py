"""Which encoding a file's bytes are in, how one line of it is shown, and how new text is put into it."""

from __future__ import annotations

import codecs
from typing import Any

from rye.call.context import advice
from rye.call.results import call_text, parameter_text
from rye.errors import EditError, UsageError, WorkspaceError
from rye.plain_class import Record, changed

_BOMS = (
    (codecs.BOM_UTF8, "utf-8", b"\n"),
    # Before UTF-16, whose little-endian mark is a prefix of this one.
    (codecs.BOM_UTF32_LE, "utf-32-le", b"\n\0\0\0"),
    (codecs.BOM_UTF32_BE, "utf-32-be", b"\0\0\0\n"),
    (codecs.BOM_UTF16_LE, "utf-16-le", b"\n\0"),
    (codecs.BOM_UTF16_BE, "utf-16-be", b"\0\n"),
)
_WIDE = {name for _, name, newline in _BOMS if len(newline) > 1}
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\0asm", "WebAssembly module"),
    (b"RIFF", "RIFF media"),
    (b"OggS", "Ogg media"),
    (b"\xca\xfe\xba\xbe", "Java class"),
)
_OR_PROGRAM = {"PDF document": " (`pdftotext FILE -` prints its text, where that is installed)"}
_SNIFF = 8_192
_SAMPLE = 262_144


class Encoding(Record):
    r"""How a file's text is encoded.

    Attributes:
        name: Python codec name.
        bom: the byte order mark that the file begins with, left as it is.
        newline: the bytes of `"\n"`; its length is the unit at which they are looked for.
        certain: False for a guess that nobody confirmed, and where bytes do not decode: they are carried through, and new
            text must be ASCII.
    """

    name: str = "utf-8"
    bom: bytes = b""
    newline: bytes = b"\n"
    certain: bool = True

    @property
    def crlf(self) -> bytes:
        r"""Return the bytes of `"\r\n"`."""
        return "\r\n".encode(self.name) if len(self.newline) > 1 else b"\r\n"

    @property
    def label(self) -> str:
        """Return the name for results: the codec, `+bom` where there is a mark, `?` where bytes did not decode."""
        return self.name + ("+bom" if self.bom else "") + ("" if self.certain else "?")

    def body(self, line: bytes) -> bytes:
        """Return a raw line without its terminator."""
        # In UTF-16 and UTF-32 the newline's bytes can also lie across two characters.
        if not line.endswith(self.newline) or len(line) % len(self.newline):
            return line
        crlf = self.crlf
        return line[: -len(crlf)] if line.endswith(crlf) else line[: -len(self.newline)]

    def terminator(self, line: bytes) -> bytes:
        """Return a raw line's terminator, empty for a last line without one."""
        return line[len(self.body(line)) :]

    def bodies(self, lines: list[bytes]) -> list[bytes]:
        """Return raw lines without their terminators."""
        return [self.body(line) for line in lines]

    def terminators(self, lines: list[bytes]) -> list[bytes]:
        """Return the terminators of raw lines."""
        return [self.terminator(line) for line in lines]

    def key(self, line: bytes) -> bytes:
        """Return what identifies the line's text: UTF-8 where it decodes, else its raw bytes, without terminator."""
        body = self.body(line)
        if self.name == "utf-8":
            return body
        try:
            return body.decode(self.name).encode()
        except UnicodeError:
            return body

    def show(self, line: bytes) -> str:
        r"""Return the line's text for display; bytes that do not decode show as `\xHH`."""
        return self.body(line).decode(self.name, "backslashreplace")

    def show_all(self, lines: list[bytes]) -> list[str]:
        """Return `show` of each line; of plain lines in one go, which is most of what a read costs."""
        joined = b"".join(lines)
        # With a carriage return anywhere, splitting at LF would leave it in the text.
        if self.name != "utf-8" or b"\r" in joined or not lines:
            return [self.show(line) for line in lines]
        texts = joined.decode(self.name, "backslashreplace").split("\n")
        return texts if len(texts) == len(lines) else texts[:-1]

    def encode(self, text: str, path: str | None = None) -> bytes:
        """Return new text in this encoding; `path` names the file for errors.

        Raises:
            EditError: `unencodable`, naming the first character that the file cannot hold.
        """
        try:
            # Python encodes NUL, but the next read would take the file for binary.
            if "\0" in text:
                raise UnicodeEncodeError(self.name, text, text.index("\0"), text.index("\0") + 1, "NUL")
            return text.encode(self.name if self.certain else "ascii")
        except UnicodeEncodeError as err:
            char = text[err.start]
            culprit = f"the character {char!r} (U+{ord(char):04X}) at position {err.start + 1} of the new text"
            of = path or "the file"
            message = f"The encoding of {of} ({self.label}) cannot hold {culprit}. Nothing was written."
            instead = f"change the file with {edit_with(..., path)}"
            otherwise = advice("encoding", f"give {parameter_text(encoding=...)}", instead)
            hint = f"Replace that character, or {otherwise} where the encoding is another."
            if not self.certain and "\0" not in text:
                guess, known = (
                    (self.name, f"only a guess ({self.name})") if self.name != "utf-8" else (..., "unknown, not UTF-8")
                )
                message = f"The encoding of {of} is {known}: it must be named before {culprit} is written. Nothing was written."
                given = advice("encoding", f"Give {parameter_text(encoding=guess)}", f"Change it with {edit_with(guess, path)}")
                hint = f"{given} if it is right, or the right one." if guess is not ... else f"{given}, such as latin-1."
            raise EditError("unencodable", message, hint) from None


UTF8 = Encoding()


def edit_with(name: Any, path: str | None = None) -> str:
    """Return the call that changes a file in a named encoding, for tools that take no encoding themselves."""
    return call_text("edit_lines", file_path=path or ..., changes=..., encoding=name)


def detect(data: bytes, declared: str | None = None) -> Encoding:
    """Return the encoding of a file's content.

    A byte order mark decides; then `declared`; then UTF-8 if all bytes decode; then a guess, which is not certain; else UTF-8
    that is not certain.

    Raises:
        WorkspaceError: `binary_file`, with type and size.
        UsageError: `unknown_encoding`, for a name that is no text encoding with one-byte newlines.
    """
    for bom, name, newline in _BOMS:
        if data.startswith(bom):
            return Encoding(name, bom, newline)
    if declared is not None:
        return _declared(declared)
    if b"\0" in data[:_SNIFF] or binary_kind(data):
        raise binary(data)
    # `isascii` runs at the speed of memory, and most files need no more.
    if data.isascii() or _decodes(data, "utf-8"):
        return UTF8
    from rye.workspace.encoding_guess import guess

    fitting = next((one for one in guess(data) if _decodes(data, one)), None)
    return Encoding(certain=False) if fitting is None else changed(_declared(fitting), certain=False)


def mark_of(name: str) -> bytes:
    """Return the byte order mark of an encoding, empty where it has none."""
    return next((bom for bom, known, _ in _BOMS if known == name), b"")


def bom_of(declared: str) -> bytes:
    """Return the byte order mark that a codec's name asks for: UTF-8's with `utf-8-sig`, none with any other."""
    return codecs.BOM_UTF8 if codecs.lookup(declared).name == "utf-8-sig" else b""


def _declared(name: str) -> Encoding:
    try:
        codec = codecs.lookup(name).name.removesuffix("-sig")
        newline = "\n".encode(codec)
        # The codec `idna` passes the newline test, but encodes host names only.
        if (newline == b"\n" and codec != "idna") or codec in _WIDE:
            return Encoding(codec, newline=newline)
    # ValueError: a NUL in the name; or the codec cannot encode at all.
    except (LookupError, ValueError):
        pass
    why = f"Not a text encoding that can be edited by lines: {name}."
    raise UsageError("unknown_encoding", why, "Give a codec name such as latin-1, cp1252, shift_jis, gb18030 or utf-16-le.")


def _decodes(data: bytes, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(name)()
    try:
        # In pieces: the whole text of a large file would cost several times its size.
        for at in range(0, len(data), _SAMPLE):
            decoder.decode(data[at : at + _SAMPLE])
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def is_text(data: bytes, code: Encoding) -> bool:
    """Tell whether a content can be text in an encoding: all of it decodes, and it begins as no known kind of binary file."""
    return not binary_kind(data) and _decodes(data[len(code.bom) :], code.name)


def binary_kind(data: bytes) -> str | None:
    """Return the kind of a binary content by its first bytes; None where they may be text."""
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


def binary(data: bytes) -> WorkspaceError:
    """Return the refusal of a file that is not text."""
    kind = binary_kind(data)
    # What is known to be an image or an archive is no text in any encoding.
    wide = parameter_text(encoding="utf-16-le")
    or_text = "" if kind else f"; for UTF-16 without a byte order mark give {wide}"
    why = f"Binary file ({kind or 'unknown type, contains NUL bytes'}, {len(data):,} bytes); it has no lines to read or edit."
    hint = f"Use bash to inspect it{_OR_PROGRAM.get(kind or '', '')}{or_text and advice('encoding', or_text)}."
    return WorkspaceError("binary_file", why, hint)
