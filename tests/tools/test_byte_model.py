"""Random edits by every tool that writes, against a model of the file as a list of lines: no byte may differ, no edit be refused.

The model knows nothing of the tools' code. It decodes the file with the codec that it was written in, splits it at newlines, and
compares every line and every terminator. The codecs include those whose characters can end in the bytes of `\\`, `{` and `|`.
"""

from __future__ import annotations

import codecs
import random
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import rye
from support.calling import ROW
from support.harness import times
from support.workspace_calls import delete, insert, patch, replace

MARKS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
CODECS = [
    *["utf-8", "utf-8+mark", "utf-16-le", "utf-16-le+mark", "utf-16-be+mark", "utf-32-le+mark", "utf-32-be"],
    *["iso8859-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "koi8-r", "koi8-u", "cp866"],
    *["mac_roman", "shift_jis", "cp932", "euc_jp", "gb18030", "gbk", "big5", "big5hkscs", "euc_kr", "cp949", "johab"],
]
ODD_BYTES = b"\\{|}[]^`~@"
NAME = "f.txt"


@cache
def alphabet(codec: str) -> list[str]:
    """Characters of a codec: ASCII, its own, and those whose last byte is one of `\\`, `{`, `|` and the like."""
    plain = [*"abcxyz \t\\{|}", "\\x", "  ", "\x0c", "a\rb", "0"]
    own, odd = [], []
    for number in (*range(0xA1, 0x500), *range(0x2010, 0x2200), *range(0x3040, 0x9FA6, 3), *range(0xAC00, 0xD7A0, 7), 0x1F642):
        char = chr(number)
        try:
            data = char.encode(codec)
        except UnicodeError:
            continue
        if data.decode(codec) == char:
            (odd if len(data) > 1 and codec[:3] != "utf" and data[-1] in ODD_BYTES else own).append(char)
    chance = random.Random(codec)
    return plain + chance.sample(own, min(len(own), 24)) + chance.sample(odd, min(len(odd), 24))


class Model:
    """A file as its lines, each a text and a terminator, in one codec behind a mark."""

    def __init__(self, folder: Path, codec: str, chance: random.Random) -> None:
        self.codec, _, marked = codec.partition("+")
        self.bom = MARKS[self.codec] if marked else b""
        self.declared = None if marked or self.codec == "utf-8" else self.codec
        self.project, self.file, self.chance = folder, folder / NAME, chance
        self.ending = chance.choice(["\n", "\n", "\r\n", "mixed"])
        self.lines: list[tuple[str, str]] = []
        self.fresh()

    def text(self) -> str:
        pool = alphabet(self.codec)
        made = "".join(self.chance.choice(pool) for _ in range(self.chance.randrange(0, 9)))
        # A carriage return at the end of a line belongs to its terminator.
        return made.rstrip("\r\n")

    def term(self) -> str:
        return self.chance.choice(["\n", "\r\n"]) if self.ending == "mixed" else self.ending

    def fresh(self) -> None:
        """Write the file anew, as another program does."""
        self.lines = [(self.text(), self.term()) for _ in range(self.chance.randrange(1, 14))]
        if self.chance.random() < 0.3 and self.lines[-1][0]:
            self.lines[-1] = (self.lines[-1][0], "")
        self.file.write_bytes(self.bytes())

    def bytes(self) -> bytes:
        return self.bom + "".join(text + term for text, term in self.lines).encode(self.codec)

    def parsed(self) -> list[tuple[str, str]]:
        data = self.file.read_bytes()
        assert data.startswith(self.bom), "the byte order mark is gone"
        parts = data[len(self.bom) :].decode(self.codec).split("\n")
        out = [(part[:-1], "\r\n") if part.endswith("\r") else (part, "\n") for part in parts[:-1]]
        return out + ([(parts[-1], "")] if parts[-1] else [])

    def call(self, tool: str, **parameters) -> dict:
        item = tool if "/" in tool else f"rye/file-system/{tool}"
        data = rye.execute(item, parameters, project_path=str(self.project))["data"]
        assert data.get("code") != "tool_crashed", data
        return data

    def with_codec(self) -> dict:
        """The encoding as a parameter: always at a look, where nothing else tells it; sometimes at an edit."""
        return {"encoding": self.declared} if self.declared else {}

    def ids(self) -> list[str]:
        data = self.call("read", file_path=NAME, limit=1000, **self.with_codec())
        assert data["success"], data
        found = ROW.findall(data["output"])
        assert len(found) == len(self.lines), (data["output"], self.lines)
        return [name for name, _ in found]


def changed(model: Model, start: int, stop: int, new: list[str]) -> list[str]:
    """What the texts are after new lines took the place of [start, stop)."""
    texts = [text for text, _ in model.lines]
    return [*texts[:start], *new, *texts[stop:]]


def held(model: Model, start: int, stop: int, new: list[str]) -> None:
    """Hold the file to the model after lines [start, stop) became `new`; then the model is the file."""
    before, now = model.lines, model.parsed()
    assert [text for text, _ in now] == changed(model, start, stop, new)
    usual = {term for _, term in before if term} or {"\n"}
    tail = len(before) - stop
    for at, (text, term) in enumerate(now):
        last = at == len(now) - 1
        if at < start:
            old = before[at][1]
        elif at >= len(now) - tail:
            old = before[at - len(now)][1]
        else:
            assert term in usual or (last and not term), (at, text, term)
            continue
        # A line without a newline gets one when others come behind it.
        assert term == old or (not old and term in usual) or (last and not term and not before[-1][1]), (at, text, term, old)
    model.lines = now


def span(model: Model) -> tuple[int, int]:
    start = model.chance.randrange(len(model.lines))
    return start, min(len(model.lines), start + model.chance.choice([1, 1, 1, 2, 4]))


def new_lines(model: Model, least: int = 0) -> list[str]:
    return [model.text() for _ in range(model.chance.randrange(least, 4))]


def content(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def by_id(model: Model) -> str:
    names = model.ids()
    start, stop = span(model)
    form = model.chance.choice(["replace", "range", "after", "before", "end"])
    if form in ("replace", "range"):
        new = new_lines(model)
        if form == "replace":
            stop = start + 1
        keys = (
            {"line_id": names[start]} if form == "replace" else {"start_line_id": names[start], "end_line_id": names[stop - 1]}
        )
    else:
        new = new_lines(model, 1)
        start = stop = {"after": start + 1, "before": start, "end": len(names)}[form]
        keys = {
            "after": {"after_line_id": names[start - 1]},
            "before": {"before_line_id": names[min(start, len(names) - 1)]},
            "end": {"after_line_id": "end"},
        }[form]
    more = model.with_codec() if model.chance.random() < 0.3 else {}
    data = model.call("edit_lines", file_path=NAME, changes=[{**keys, "new_content": content(new)}], **more)
    return settle(model, data, start, stop, new)


def settle(model: Model, data: dict, start: int, stop: int, new: list[str]) -> str:
    """Compare after an edit; a refusal is right only where nothing would change."""
    if data["success"]:
        held(model, start, stop, new)
        return "made"
    assert model.file.read_bytes() == model.bytes()
    assert data["code"] == "no_change", data
    assert changed(model, start, stop, new) == [text for text, _ in model.lines], data
    return "no change"


def by_number(model: Model) -> str:
    model.call("rye/swe/open_file_chunk", path=NAME, start=1, **model.with_codec())
    start, stop = span(model)
    if model.chance.random() < 0.4:
        new = new_lines(model, 1)
        data = model.call("rye/swe/insert_at", path=NAME, line=start + 1, new_text=content(new), **model.with_codec())
        return settle(model, data, start, start, new)
    new = new_lines(model)
    data = model.call(
        "rye/swe/edit_range", path=NAME, start_line=start + 1, end_line=stop, new_text=content(new), **model.with_codec()
    )
    return settle(model, data, start, stop, new)


def by_snippet(model: Model) -> str:
    """Part of a line, or a sign that is also the last byte of other characters."""
    text = model.chance.choice(model.lines)[0]
    low = model.chance.randrange(len(text) + 1)
    old = model.chance.choice([text[low : low + 3], "\\", "{", "|", "}"]) or "\\"
    new = model.text().replace("\r", "")
    at = next((at for at, (line, _) in enumerate(model.lines) if old in line), None)
    if at is not None and model.lines[at][0].replace(old, new, 1).endswith("\r"):
        # A carriage return before the newline would belong to the terminator: the model counts it to the text.
        return "left out"
    data = model.call("rye/swe/edit_file", path=NAME, old=old, new=new, **model.with_codec())
    if at is None:
        assert not data["success"], (old, data)
        assert model.file.read_bytes() == model.bytes()
        return "no snippet"
    return settle(model, data, at, at + 1, [model.lines[at][0].replace(old, new, 1)])


def by_write(model: Model) -> str:
    new = new_lines(model, 1)
    text = content(new).replace("\n", model.term())
    codec = "utf-8-sig" if model.codec == "utf-8" and model.bom else model.codec
    if model.bom and codec != "utf-8-sig":
        # No codec name writes this mark: the text holds it.
        text = "\ufeff" + text
    data = model.call("write", file_path=NAME, content=text, encoding=codec)
    assert data["success"], data
    assert model.file.read_bytes() == model.bom + text.removeprefix("\ufeff").encode(model.codec)
    model.lines = model.parsed()
    return "made"


def by_patch(model: Model) -> str:
    model.ids()
    start, stop = span(model)
    old = [text for text, _ in model.lines[start:stop]]
    kind = model.chance.choice(["insert", "replace", "delete"])
    new = [] if kind == "delete" else new_lines(model, 1)
    if kind == "insert":
        stop, change = start, insert(start, *new)
    else:
        change = delete(start + 1, *old) if kind == "delete" else replace(start + 1, old, *new)
    data = model.call("rye/workspace/workspace_write_patch", files=[patch(model.project, NAME, change)])
    if data["success"] and "leave" in "".join(data["warnings"]):
        assert model.file.read_bytes() == model.bytes()
        return "no change"
    return settle(model, data, start, stop, new)


def by_undo(model: Model) -> str:
    """A change and its undo, and sometimes the undo of that."""
    before = model.bytes()
    by_id(model)
    made = model.file.read_bytes()
    if made == before:
        return "no change"
    data = model.call("undo")
    assert data["success"], data
    assert model.file.read_bytes() == before
    if model.chance.random() < 0.5:
        again = model.call("undo", entry_id=data["entry_id"])
        assert again["success"], again
        assert model.file.read_bytes() == made
    model.lines = model.parsed()
    return "undone"


def by_others(model: Model) -> str:
    model.fresh()
    return "made"


OPERATIONS = [by_id, by_id, by_number, by_snippet, by_patch, by_undo, by_write, by_others]


def run(operations: int, seed: int, folder: Path, each: int = 25) -> Counter:
    """Do so many operations, `each` on one file; return what became of them."""
    counts: Counter = Counter()
    for number in range(-(-operations // each)):
        chance = random.Random(f"{seed}.{number}")
        codec = CODECS[number % len(CODECS)]
        project = folder / f"p{number}"
        (project / ".git").mkdir(parents=True)
        model = Model(project, codec, chance)
        for step in range(each):
            if not model.lines:
                model.fresh()
            operation = chance.choice(OPERATIONS)
            before = model.bytes()
            try:
                counts[operation.__name__, operation(model)] += 1
            except BaseException:
                print(
                    f"seed {seed}.{number} step {step}: {operation.__name__} in {codec}; before {before!r}, now {model.file.read_bytes()!r}"
                )
                raise
    return counts


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_byte_differs_and_nothing_is_refused(tmp_path, user_space, seed):
    counts = run(times(len(CODECS) * 2), seed, tmp_path, 2)
    print(sorted(counts.items()))
    assert sum(count for (_, what), count in counts.items() if what in ("made", "undone")) > len(CODECS)


def test_control_a_torn_character_and_a_lost_terminator_are_seen(tmp_path, user_space):
    model = Model(tmp_path, "shift_jis", random.Random(1))
    model.lines = [("表示", "\r\n"), ("b", "\r\n")]
    for wrong in ("表示\r\nb\n", "表\\\r\nb\r\n", "表示\r\nb\r\n\r\n"):
        model.file.write_bytes(wrong.encode("shift_jis"))
        with pytest.raises(AssertionError):
            held(model, 0, 0, [])
    model.file.write_bytes(model.bytes())
    held(model, 0, 0, [])
