"""What an edit must do to a file's bytes, written from the documentation alone: no code of the toolkit is used."""

from __future__ import annotations

import codecs
import re
from collections import Counter

# The longer ones first: that of UTF-16 begins that of UTF-32.
BOMS = {
    b"\xef\xbb\xbf": "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class Refused(Exception):
    """The edit cannot be done, and must be refused."""


class Content:
    """A file's bytes as mark, lines and codec."""

    def __init__(self, data, codec="utf-8"):
        self.bom = next((mark for mark in BOMS if data.startswith(mark)), b"")
        self.codec = BOMS.get(self.bom, codec)
        self.unit = {"utf-16": 2, "utf-32": 4}.get(self.codec[:6], 1)
        self.lf = "\n".encode(self.codec)
        self.crlf = "\r\n".encode(self.codec)
        self.lines = self._split(data[len(self.bom) :])

    def _split(self, data):
        if self.unit == 1:
            return re.findall(rb"[^\n]*\n|[^\n]+", data)
        out, start = [], 0
        for at in range(0, len(data), self.unit):
            if data[at : at + self.unit] == self.lf:
                out.append(data[start : at + self.unit])
                start = at + self.unit
        return out + ([data[start:]] if start < len(data) else [])

    def ending(self, line):
        """A raw line's terminator."""
        whole = len(line) % self.unit == 0
        return next((end for end in (self.crlf, self.lf) if whole and line.endswith(end)), b"")

    def body(self, line):
        return line[: len(line) - len(self.ending(line))]

    def shown(self, at):
        return self.body(self.lines[at]).decode(self.codec, "backslashreplace")

    def texts(self):
        return [self.shown(at) for at in range(len(self.lines))]

    def near(self, at, replaced):
        """The terminator that lines put at `at` take: of what they replace, of the line before, of the line behind."""
        around = [*replaced, *self.lines[max(0, at - 1) : at][-1:], *self.lines[at + len(replaced) :][:1]]
        found = [end for end in map(self.ending, around) if end]
        counts = Counter(filter(None, map(self.ending, self.lines[:256])))
        return found[0] if found else counts.most_common(1)[0][0] if counts else self.lf

    def encoded(self, text, ascii_only):
        try:
            if "\0" in text:
                raise Refused
            return text.encode("ascii" if ascii_only else self.codec)
        except UnicodeEncodeError:
            raise Refused from None

    def edited(self, spans, *, newline="keep", final="keep", convert=None, ascii_only=False):
        """The bytes after spans (start, stop, new content), in the order given where they meet, became their lines."""
        if overlapping(spans):
            raise Refused
        open_end = bool(self.lines) and not self.ending(self.lines[-1])
        out, at = [], 0
        for start, stop, content in sorted(spans, key=lambda span: span[:2]):
            out += [(line, False) for line in self.lines[at:start]]
            old = self.lines[start:stop]
            last = self.near(start, old)
            for number, text in enumerate(sequence(content)):
                if number < len(old) and self.ending(old[number]):
                    last = self.ending(old[number])
                ending = {"keep": last, "lf": self.lf, "crlf": self.crlf}[newline]
                out.append((self.encoded(text, ascii_only) + ending, True))
            at = stop
        out += [(line, False) for line in self.lines[at:]]
        self._close(out)
        self._end(out, final, open_end)
        lines = [line for line, _ in out]
        if convert:
            wanted = self.lf if convert == "lf" else self.crlf
            lines = [self.body(line) + wanted if self.ending(line) else line for line in lines]
        return self.bom + b"".join(lines)

    def _close(self, out):
        """What was the open last line gets a terminator when lines stand behind it."""
        for at, (line, new) in enumerate(out[:-1]):
            if not self.ending(line):
                if len(line) % self.unit:
                    raise Refused
                out[at] = (line + self.near(len(self.lines) - 1, []), new)

    def _end(self, out, final, open_end):
        if not out:
            return
        line, new = out[-1]
        body, wants = self.body(line), final == "add"
        if final == "keep":
            wants = not open_end or not body if new else bool(self.ending(line))
        if not wants and not body:
            raise Refused
        if wants and not self.ending(line):
            if len(line) % self.unit:
                raise Refused
            at = next((n for n in range(len(self.lines) - 1, -1, -1) if self.lines[n] == line), 0)
            line = line + self.near(at, [])
        out[-1] = (line if wants else body, new)


def sequence(content):
    """New content as lines: "" is none, a final newline adds none, CRLF separates too."""
    parts = re.split("\n", content)
    if parts[-1] == "":
        parts.pop()
        return [part.removesuffix("\r") for part in parts]
    return [part.removesuffix("\r") for part in parts[:-1]] + parts[-1:]


def overlapping(spans):
    """Whether two spans touch the same line, or one inserts within another."""
    return any(
        max(a, c) < min(b, d) or (a == b and c < a < d) or (c == d and a < c < b)
        for n, (a, b, _) in enumerate(spans)
        for c, d, _ in spans[:n]
    )
