"""What an edit must do to a file's bytes and to the addresses of its lines, written from the documentation alone.

A file is a list of labelled raw lines. No code of the toolkit is used.
"""

import codecs
import re
import subprocess
from collections import Counter
from functools import cache
from random import Random
from typing import NamedTuple

# The longer ones first: that of UTF-16 begins that of UTF-32.
MARKS = {
    "utf-8": b"\xef\xbb\xbf",
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
ODD_BYTES = b"\\{|}[]^`~@"
NO_CODEC = b"caf\xe9 \xff\xfe\x81\x8d\x90\x9d"
# Equal lines are what addresses could wander between.
POOL = [
    "",
    "",
    "}",
    "}",
    "    }",
    "        ]",
    "        ]",
    "return x",
    "    return x",
    "    pass",
    "else:",
    "x = 1",
    "\tx = 1",
]
ODD_TEXTS = ["x\ty ", "a\rb", "f\x0cf", "[x", "\\x", "0"]
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class Refused(Exception):
    """The edit cannot be done, and must be refused."""


class Line(NamedTuple):
    label: int
    raw: bytes


class Made(NamedTuple):
    """A line after an edit: that of a label, or a new one of a change that replaced these lines."""

    label: int | None
    raw: bytes
    replaced: tuple[Line, ...] = ()
    is_written: bool = False


class Plan(NamedTuple):
    """What a change means: the new lines in place of [start, stop), as text, or as lines that are moved or copied."""

    start: int
    stop: int
    number: int
    new: list[str | Line | bytes]


@cache
def alphabet(codec):
    """Characters of a codec: ASCII, its own, and those whose last byte is one of `\\`, `{`, `|` and the like."""
    # In UTF-16 these hold a newline's bytes, across two characters.
    own, odd = ["\u0a05\u0100\u0a05"] if codec[:3] == "utf" else [], []
    for number in (*range(0xA1, 0x500), *range(0x2010, 0x2200), *range(0x3040, 0x9FA6, 3), *range(0xAC00, 0xD7A0, 7), 0x1F642):
        char = chr(number)
        try:
            data = char.encode(codec)
        except UnicodeError:
            continue
        if data.decode(codec) == char:
            (odd if len(data) > 1 and codec[:3] != "utf" and data[-1] in ODD_BYTES else own).append(char)
    chance = Random(codec)
    own = [*own[:1], *chance.sample(own, min(len(own), 23))]
    return [*"abcxyz \t\\{|}", *own, *chance.sample(odd, min(len(odd), 24))]


def bare(text):
    return re.sub("[ \t\r\x0b\x0c]", "", text)


def git_readings(before, after, folder):
    """The (old, new) positions that git leaves unchanged, white space told apart or not."""
    readings = []
    for name, lines in (("before", before), ("after", after)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), newline="")
    for more in ([], ["-w"]):
        how = ["--no-index", "--patience", "--no-indent-heuristic", "--text", "--no-color", "-U0", *more]
        found = subprocess.run(["git", "diff", *how, "before", "after"], cwd=folder, capture_output=True, check=False)
        shown = found.stdout.decode(errors="replace")
        old, new, out = 0, 0, set()
        for match in [*HUNK.finditer(shown), None]:
            if match is None:
                start, to, count, added = len(before), len(after), 0, 0
            else:
                start, count, to, added = (1 if part is None else int(part) for part in match.groups())
                start, to = start - (count > 0), to - (added > 0)
            out |= set(zip(range(old, start), range(new, to), strict=False))
            old, new = start + count, to + added
        readings.append(out)
    return readings


class File:
    """What the oracle knows of one file: its bytes as labelled lines, and which label every address ever had."""

    def __init__(self, path, codec, rng, labels):
        self.path, self.rng, self.labels = path, rng, labels
        self.kind, _, marked = codec.partition("+")
        self.codec = "utf-8" if self.kind == "broken" else self.kind
        self.bom = MARKS[self.codec] if marked else b""
        self.encoding = {} if marked or self.codec == "utf-8" else {"encoding": self.codec}
        self.unit = {"utf-16": 2, "utf-32": 4}.get(self.codec[:6], 1)
        self.lf, self.crlf = "\n".encode(self.codec), "\r\n".encode(self.codec)
        # Label -> address now, address -> label ever.
        self.address, self.owner = {}, {}
        # What a view printed as it is: lines, and pairs of lines side by side.
        self.shown, self.beside = set(), set()
        # The lines at the last contact, where others wrote since.
        self.before = None
        self.put(self.bom + b"".join(self.raw_lines(3, 30)))

    @property
    def name(self):
        return self.path.name

    # Bytes.

    def put(self, data):
        """Write content, and hold it as lines of new labels."""
        self.path.write_bytes(data)
        data, out, start = data[len(self.bom) :], [], 0
        for at in range(0, len(data), self.unit):
            if data[at : at + self.unit] == self.lf:
                out.append(data[start : at + self.unit])
                start = at + self.unit
        self.lines = [Line(next(self.labels), raw) for raw in out + ([data[start:]] if start < len(data) else [])]

    def data(self, lines=None):
        return self.bom + b"".join(line.raw for line in (self.lines if lines is None else lines))

    def ending(self, raw):
        whole = len(raw) % self.unit == 0
        return next((end for end in (self.crlf, self.lf) if whole and raw.endswith(end)), b"")

    def body(self, raw):
        return raw[: len(raw) - len(self.ending(raw))]

    def text_of(self, raw):
        return self.body(raw).decode(self.codec, "backslashreplace")

    @property
    def texts(self):
        return [self.text_of(line.raw) for line in self.lines]

    @property
    def ascii_only(self):
        """Whether a text that is not ASCII cannot be written: no codec explains the file."""
        try:
            b"".join(line.raw for line in self.lines).decode(self.codec)
        except UnicodeDecodeError:
            return True
        return False

    def new_text(self):
        chance = self.rng.random()
        if chance < 0.65:
            return self.rng.choice(POOL)
        if chance < 0.8:
            return f"unmistakable line {next(self.labels)}"
        letters = alphabet("ascii" if self.kind == "broken" else self.codec)
        return self.rng.choice([*ODD_TEXTS, *letters[12:13] * 3, "".join(self.rng.choices(letters, k=self.rng.randint(0, 8)))])

    def new_texts(self, least, most):
        return [self.new_text() for _ in range(self.rng.randint(least, most))]

    def raw_lines(self, least, most):
        ends = self.rng.choice([[self.lf], [self.lf], [self.crlf], [self.lf, self.crlf]])
        lines = [
            (NO_CODEC if self.kind == "broken" and self.rng.random() < 0.3 else text.encode(self.codec)) + self.rng.choice(ends)
            for text in self.new_texts(least, most)
        ]
        if lines and self.rng.random() < 0.2:
            lines[-1] = "x".encode(self.codec)
        # A last line that no codec explains holds the guess of an encoding off.
        return [*lines, NO_CODEC] if self.kind == "broken" else lines

    def near(self, at, replaced):
        """The terminator that lines put at `at` take: of what they replace, of the line before, of the line behind."""
        raw = [line.raw for line in self.lines]
        around = [*replaced, *raw[max(0, at - 1) : at][-1:], *raw[at + len(replaced) :][:1]]
        found = [end for end in map(self.ending, around) if end]
        counts = Counter(filter(None, map(self.ending, raw[:256])))
        return found[0] if found else counts.most_common(1)[0][0] if counts else self.lf

    def edited(self, plans, *, newline="keep", final_newline="keep", convert_newlines=None):
        """The lines after plans, in their order where they meet. Raises Refused."""
        out, at = [], 0
        for plan in sorted(plans, key=lambda plan: plan[:3]):
            out += [Made(*line) for line in self.lines[at : plan.start]]
            old = tuple(self.lines[plan.start : plan.stop])
            last = self.near(plan.start, [line.raw for line in old])
            for number, new in enumerate(plan.new):
                if number < len(old) and self.ending(old[number].raw):
                    last = self.ending(old[number].raw)
                if isinstance(new, str):
                    if "\0" in new or (self.ascii_only and not new.isascii()):
                        raise Refused
                    raw = new.encode(self.codec) + {"keep": last, "lf": self.lf, "crlf": self.crlf}[newline]
                    out.append(Made(None, raw, old, is_written=True))
                else:
                    label, raw = new if isinstance(new, Line) else (None, new)
                    out.append(Made(label, raw if self.ending(raw) else raw + self.near(plan.start, []), old, is_written=True))
            at = plan.stop
        out += [Made(*line) for line in self.lines[at:]]
        for at, made in enumerate(out[:-1]):
            if not self.ending(made.raw):
                out[at] = self.closed(made)
        if out:
            out[-1] = self.ended(out[-1], final_newline)
        if convert_newlines:
            end = self.lf if convert_newlines == "lf" else self.crlf
            out = [one._replace(raw=self.body(one.raw) + end) if self.ending(one.raw) else one for one in out]
        return out

    def closed(self, made):
        """What was the open last line gets a terminator when lines stand behind it."""
        if len(made.raw) % self.unit:
            raise Refused
        return made._replace(raw=made.raw + self.near(len(self.lines) - 1, []))

    def ended(self, made, final):
        """The last line, with a terminator or not."""
        body, wants = self.body(made.raw), final == "add"
        if final == "keep":
            was_open = bool(self.lines) and not self.ending(self.lines[-1].raw)
            wants = not was_open or not body if made.is_written else bool(self.ending(made.raw))
        if not wants and not body:
            raise Refused
        return made._replace(raw=body) if not wants else made if self.ending(made.raw) else self.closed(made)

    # Addresses.

    def check(self, names, after):
        """Check the addresses after a change of ours that made these lines; return what is wrong."""
        if len(names) != len(after):
            yield f"{self.name} has {len(names)} lines, expected {len(after)}"
            return
        lines, used, last, gone = [], set(), -1, ()
        for name, made in zip(names, after, strict=True):
            if made.label is not None:
                known = self.address.get(made.label)
                # In a large file a line has no ID before it is shown.
                if name != known and (known is not None or name in self.owner):
                    yield f"own: {made.label} {made.raw!r} had the address {known}, now {name}"
                lines.append(Line(made.label, made.raw))
                continue
            if made.replaced is not gone:
                gone, last = made.replaced, -1
            owner = self.owner.get(name)
            if owner is not None:
                at = next((at for at, (old, _) in enumerate(gone) if old == owner), None)
                is_equal = at is not None and bare(self.text_of(gone[at].raw)) == bare(self.text_of(made.raw))
                if not is_equal or at <= last or owner in used:
                    yield f"own: a new line {made.raw!r} has the address {name} of {owner}; replaced: {gone}"
                last = -1 if at is None else at
                used.add(owner)
                self.shown.discard(owner)
            lines.append(Line(next(self.labels) if owner is None else owner, made.raw))
        self.lines = lines
        yield from self.settle(names)

    def settle(self, names):
        """Note the addresses of the lines, each checked against all that is known."""
        known = [name for name in names if name]
        if len(set(known)) != len(known):
            yield f"two lines share an address: {names}"
        self.address = {line.label: name for line, name in zip(self.lines, names, strict=True) if name}
        for label, name in self.address.items():
            if self.owner.setdefault(name, label) != label:
                yield f"{name} was {self.owner[name]}, now it is {label}"

    def follow(self, names, folder, tally):
        """Take the addresses that lines have after others wrote, if they may have them."""
        before, self.before = self.before, None
        was, pairs = {line.label: at for at, line in enumerate(before)}, None
        owners, now = [self.owner.get(name) for name in names], []
        for at, (name, owner, (label, raw)) in enumerate(zip(names, owners, self.lines, strict=True)):
            if owner in (None, label):
                continue
            if owner in was and bare(self.text_of(before[was[owner]].raw)) == bare(self.text_of(raw)):
                if pairs is None:
                    pairs = set().union(*git_readings([self.text_of(one.raw) for one in before], self.texts, folder))
                if (was[owner], at) in pairs:
                    # Git, too, takes this line for that one: so they are.
                    continue
            yield f"others: {name} named line {was.get(owner, -1) + 1}, now it names line {at + 1}, {raw!r}"
        for owner, (label, raw) in zip(owners, self.lines, strict=True):
            is_new = owner is None and (label in owners or self.address.get(label) is not None)
            tally["lines that others left"] += label in was
            tally["lines that others left, with a new address"] += is_new
            now.append(Line(next(self.labels) if is_new else label if owner is None else owner, raw))
            if owner in was and before[was[owner]].raw != raw:
                self.shown.discard(owner)
        self.lines = now
        yield from self.settle(names)
