r"""The common subset of regular expressions that the search without ripgrep understands, translated for Python's `re`.

In the subset: literal characters; `.`; `[...]` with characters, ranges, `^` and the escapes below; `\d \w \s \D \W \S`;
`^ $ \b`; `( )`, `(?: )`, `|`; `* + ? {m} {m,} {m,n}`, each also lazy; `\n \t \r \f \v \a \xHH \x{H…} \uHHHH`; a backslash
before punctuation; `(?i)` at the beginning. It means what ripgrep means by it: Unicode classes, `.` and negated classes match
no byte that is not UTF-8, and a line's end is no part of a line.

Outside it, refused with the reason: other `(?…)`, `\p{…}`, `\A \z \< \B`, class operations, `[:names:]`, a repeat of an
assertion or of a repeat, cased letters beyond ASCII when case is ignored, and across lines a pattern that matches nothing at
all.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from rye.errors import UsageError
from rye.toolkit.ripgrep import Pattern, bad_pattern

Ranges = list[tuple[int, int]]

_TOP = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_MAX_REPEAT = 1_000
_MAX_DEPTH = 100
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7}
_DIGIT_COUNT = {"x": 2, "u": 4, "U": 8}
_SPACE = [(9, 13), (32, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
          (0x205F, 0x205F), (0x3000, 0x3000)]  # fmt: skip
# Alphabetic by Unicode without being letters, and the joiners.
_MORE_WORD = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189), (0x200C, 0x200D)]


class Part(NamedTuple):
    """A translated piece: whether it can match nothing, and whether it is an assertion."""

    regex: str
    empty: bool = False
    assertion: bool = False


def translate(pattern: Pattern, *, ascii_only: bool = False) -> str:
    """Return the expression for `re`, to be searched in text where bytes that are not UTF-8 are lone surrogates.

    Args:
        pattern: what was asked for.
        ascii_only: the text will be ASCII, so that small classes do.

    Raises:
        UsageError: `bad_pattern`, with a caret at the place; `pattern_unsupported` outside the subset.
    """
    if pattern.literal:
        if "\n" in pattern.text and not pattern.multiline:
            raise bad_pattern(pattern.text, 'the literal "\\n" is not allowed in a regex')
        reader = _Reader(pattern, "", ascii_only=ascii_only)
        return "".join(reader.one(ord(char)) for char in pattern.text)
    folded = pattern.text.startswith("(?i)")
    text = pattern.text[4:] if folded else pattern.text
    asked = pattern._replace(ignore_case=pattern.ignore_case or folded)
    whole = _Reader(asked, text, ascii_only=ascii_only).whole()
    if whole.empty and pattern.multiline:
        raise unsupported(pattern.text, 0, "a pattern that can match nothing, across lines")
    return whole.regex


def unsupported(text: str, at: int, what: str) -> UsageError:
    """Return the refusal of what only ripgrep understands."""
    return UsageError(
        "pattern_unsupported",
        f"The pattern {text[:200]!r} has, at character {at + 1}, {what}: the search without ripgrep does not do this.",
        "Install ripgrep (pip install ripgrep), or write the pattern with literals, classes, groups and repeats only.",
    )


def merged(ranges: Ranges) -> Ranges:
    """Return ranges in order, none touching another."""
    out: Ranges = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def inverted(ranges: Ranges) -> Ranges:
    """Return all other characters; bytes that are not UTF-8 are none."""
    out: Ranges = []
    at = 0
    for low, high in merged([*ranges, _SURROGATES]):
        if at < low:
            out.append((at, low - 1))
        at = high + 1
    return [*out, (at, _TOP)] if at <= _TOP else out


_words: Ranges = []


def word_ranges() -> Ranges:
    """Return the characters of words: letters, marks, decimal and letter numbers, connectors; made at first use."""
    if not _words:
        kinds = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc"}
        found = [(code, code) for code in range(_TOP + 1) if unicodedata.category(chr(code)) in kinds]
        _words.extend(merged(found + _MORE_WORD))
    return _words


class _Reader:
    """Reads a pattern from left to right and translates as it goes."""

    def __init__(self, pattern: Pattern, text: str, *, ascii_only: bool) -> None:
        self._pattern, self._text, self._at = pattern, text, 0
        self._ascii = ascii_only
        self._depth = 0
        # What a match of one line never contains.
        self._ends = [] if pattern.multiline else [(10, 10), (13, 13)] if pattern.crlf else [(10, 10)]

    def whole(self) -> Part:
        found = self._choice()
        if self._at < len(self._text):
            raise self._bad("unopened group")
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _bad(self, why: str) -> UsageError:
        caret = " " * (self._at + len(self._pattern.text) - len(self._text))
        return bad_pattern(self._pattern.text, f"regex parse error:\n    {self._pattern.text}\n    {caret}^\nerror: {why}")

    def _not_here(self, what: str) -> UsageError:
        return unsupported(self._pattern.text, self._at + len(self._pattern.text) - len(self._text), what)

    def _choice(self) -> Part:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._not_here(f"groups nested more than {_MAX_DEPTH} deep")
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        self._depth -= 1
        return Part("|".join(one.regex for one in options), any(one.empty for one in options))

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return Part("".join(one.regex for one in parts), all(one.empty for one in parts))

    def _repeated(self, part: Part) -> Part:
        if self._peek() not in ("*", "+", "?", "{") or not self._peek():
            return part
        if part.assertion:
            raise self._not_here("a repeated assertion")
        low, mark = self._quantifier()
        if self._peek() == "?":
            self._at += 1
            mark += "?"
        if self._peek() and self._peek() in "*+?{":
            raise self._not_here("a repeat of a repeat")
        return Part(f"(?:{part.regex}){mark}", part.empty or low == 0)

    def _quantifier(self) -> tuple[int, str]:
        start = self._at
        char = self._text[start]
        self._at += 1
        if char != "{":
            return (1 if char == "+" else 0), char
        end = self._text.find("}", start)
        low, comma, high = self._text[start + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not low.isdecimal() or not low.isascii() or (high and not (high.isdecimal() and high.isascii())):
            self._at = start
            raise self._bad("a { opens a repetition such as {2} or {2,5}; write \\{ for the character")
        if high and int(high) < int(low):
            raise self._bad("the repetition's range runs backwards")
        if max(int(low), int(high or 0)) > _MAX_REPEAT:
            raise self._not_here(f"a repetition of more than {_MAX_REPEAT}")
        self._at = end + 1
        return int(low), f"{{{int(low)}{comma}{int(high) if high else ''}}}"

    def _atom(self) -> Part:
        char = self._peek()
        if char in "*+?{":
            raise self._bad("repetition operator missing expression")
        if char == "(":
            return self._group()
        if char == "[":
            return Part(self._class())
        self._at += 1
        if char == ".":
            return Part(_written(inverted(self._ends or [(10, 10), *([(13, 13)] if self._pattern.crlf else [])])))
        if char in "^$":
            return Part(self._edge(char), empty=True, assertion=True)
        if char == "\\":
            return self._escape()
        return Part(self.one(ord(char)))

    def _group(self) -> Part:
        start = self._at
        self._at += 1
        if self._peek() == "?":
            if self._text[self._at : self._at + 2] != "?:":
                raise self._not_here("a group that begins with (? and not with (?:")
            self._at += 2
        inner = self._choice()
        if self._peek() != ")":
            self._at = start
            raise self._bad("unclosed group")
        self._at += 1
        return Part(f"(?:{inner.regex})", inner.empty)

    def _edge(self, char: str) -> str:
        """Return `^` or `$`: at an end of the text, or of a line where there are several in it."""
        crlf, several = self._pattern.crlf, self._pattern.multiline
        if char == "^":
            return "(?:\\A" + ("|(?<=\\n)" if several else "") + ("|(?<=\\r)(?!\\n)" if crlf else "") + ")"
        newline = ("|(?<!\\r)(?=\\n)" if crlf else "|(?=\\n)") if several else ""
        return "(?:\\Z" + ("|(?=\\r)" if crlf else "") + newline + ")"

    def _escape(self) -> Part:
        char = self._peek()
        if char in ("b", "B"):
            self._at += 1
            if char == "B" or self._peek() == "{":
                # ripgrep also looks for \B between the carriage return and the newline of a line's end.
                raise self._not_here("another word boundary than \\b")
            word = _written(self._word())
            return Part(f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))", empty=True, assertion=True)
        found = self._named()
        return Part(_written(self._within(found))) if found is not None else Part(self.one(self._character()))

    def _named(self) -> Ranges | None:
        """Read `d`, `w`, `s` or their negations behind a backslash; None where something else stands there."""
        char = self._peek()
        if not char or char not in "dwsDWS":
            return None
        self._at += 1
        found = self._digits() if char in "dD" else self._word() if char in "wW" else _SPACE
        return inverted(found) if char.isupper() else found

    def _digits(self) -> Ranges:
        if self._ascii:
            return [(48, 57)]
        return merged([(at, at) for at in range(_TOP + 1) if unicodedata.category(chr(at)) == "Nd"])

    def _word(self) -> Ranges:
        return [(48, 57), (65, 90), (95, 95), (97, 122)] if self._ascii else word_ranges()

    def _character(self) -> int:
        """Read the single character behind a backslash."""
        char = self._peek()
        if not char:
            raise self._bad("incomplete escape sequence")
        self._at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _DIGIT_COUNT:
            return self._code(_DIGIT_COUNT[char])
        if char.isascii() and not char.isalnum() and char not in "<> " and char.isprintable():
            return ord(char)
        self._at -= 1
        raise self._not_here(f"the escape \\{char}")

    def _code(self, digits: int) -> int:
        if self._peek() == "{":
            end = self._text.find("}", self._at)
            text = self._text[self._at + 1 : end] if end > 0 else ""
        else:
            end = self._at + digits - 1
            text = self._text[self._at : self._at + digits]
            digits = len(text) - digits
        try:
            code = int(text, 16) if digits >= 0 and text.isalnum() else -1
        except ValueError:
            code = -1
        if not 0 <= code <= _TOP or _SURROGATES[0] <= code <= _SURROGATES[1]:
            raise self._bad("a hexadecimal code of a character is expected")
        self._at = end + 1
        return code

    def _class(self) -> str:
        start = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        items: Ranges = []
        first = True
        while self._peek() != "]" or first:
            if not self._peek():
                self._at = start
                raise self._bad("unclosed character class")
            items += self._class_item(first=first)
            first = False
        self._at += 1
        return _written(self._within(inverted(items) if negated else items))

    def _class_item(self, *, first: bool) -> Ranges:
        two = self._text[self._at : self._at + 2]
        if two[:1] == "[" or two in ("&&", "--", "~~"):
            raise self._not_here("a class within a class, or an operation on classes")
        if two[:1] == "-" and not first and two != "-]":
            raise self._not_here("a - inside a class; put it first, last, or behind a backslash")
        if two[:1] == "\\":
            self._at += 1
            named = self._named()
            if named is not None:
                # These hold both cases of their letters.
                return named
            low = self._character()
        else:
            low = ord(two[0])
            self._at += 1
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return self._folded([(low, low)])
        self._at += 1
        if self._peek() in ("[", "-"):
            raise self._not_here("an operation on classes")
        if self._peek() == "\\":
            self._at += 1
            high = self._character()
        else:
            high = ord(self._peek())
            self._at += 1
        if high < low:
            raise self._bad("invalid character class range, the start must be <= the end")
        return self._folded([(low, high)])

    def _within(self, ranges: Ranges) -> Ranges:
        """Take a line's ends out of a class, as no match of one line contains them."""
        return inverted(merged([*inverted(ranges), *self._ends])) if self._ends else merged(ranges)

    def one(self, code: int) -> str:
        """Return a single character, in both cases where case is ignored."""
        if (code, code) in self._ends:
            raise self._bad(f'the literal "{chr(code).encode("unicode_escape").decode()}" is not allowed in a regex')
        return _written(self._folded([(code, code)]))

    def _folded(self, ranges: Ranges) -> Ranges:
        """Add the other case of letters where case is ignored."""
        if not self._pattern.ignore_case:
            return ranges
        out = list(ranges)
        for low, high in ranges:
            if high > 127 and any(_cased(code) for code in range(max(low, 128), high + 1)):
                raise self._not_here("letters beyond ASCII whose case is to be ignored")
            for code in range(low, min(high, 127) + 1):
                twin = ord(chr(code).swapcase())
                out.append((twin, twin))
                # The Kelvin sign and the long s fold to ASCII letters.
                if chr(code) in "kKsS":
                    odd = 0x212A if chr(code) in "kK" else 0x17F
                    out.append((odd, odd))
        return out


def _cased(code: int) -> bool:
    return chr(code).lower() != chr(code).upper()


def _written(ranges: Ranges) -> str:
    """Return a class of `re`; one that holds nothing never matches."""
    if not ranges:
        return "(?!)"
    return "[" + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in merged(ranges)) + "]"


def _code(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
