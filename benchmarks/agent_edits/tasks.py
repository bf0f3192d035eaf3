r"""226 fully specified editing tasks in 21 families, generated: the matrix of Explicit Edit Benchmark, in texts of our own.

The families, their scales, and the plain and Unicode variant of each task are those that the benchmark's documentation names
(github.com/alexshpunt/explicit-edit-benchmark, docs/tasks.md). A task is the files before and after, and the operations that a
model would see in its words; a caller puts them into the terms of its tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

SCALES = (10, 100, 1000)


class Replace(NamedTuple):
    """Every `old` in a file becomes `new`; of a file with `title`, only those from the line of that text to the line `end`."""

    file: str
    old: str
    new: str
    count: int = 1
    title: str = ""
    end: str = ""


class Insert(NamedTuple):
    """Lines go behind or before the only line that is `anchor`; with `title`, the first such line at or behind that one."""

    file: str
    anchor: str
    lines: tuple[str, ...]
    before: bool = False
    title: str = ""


class Block(NamedTuple):
    """Lines from `first` to `last`, both marker lines, are deleted, moved or copied.

    `verb`: delete, move, copy, or rewrite (what lies between the markers becomes `lines`). They go behind the line `place` of
    `to`, at its end where `place` is empty. `first` is the line with that text, `last` the next one that is that text.
    """

    file: str
    first: str
    last: str
    verb: str
    to: str = ""
    place: str = ""
    lines: tuple[str, ...] = ()


Operation = Replace | Insert | Block


class Task(NamedTuple):
    """One task: its id, the files before and after, what is to be done."""

    id: str
    family: str
    before: dict[str, str]
    after: dict[str, str]
    operations: tuple[Operation, ...]


def tasks() -> Iterator[Task]:
    """Yield all tasks, always the same."""
    for variant in ("plain", "unicode"):
        words = _Words(variant)
        for family in (_languages, _finding, _selecting, _literals, _blocks):
            yield from family(words)


class _Words:
    """The texts of a variant: its Unicode twin has characters that careless tools change."""

    def __init__(self, variant: str) -> None:
        self.variant = variant
        odd = variant == "unicode"
        self.odd = odd
        self.old = "former\u200bGateway" if odd else "formerGateway"
        self.new = "current\u200bGateway" if odd else "currentGateway"
        self.note = (
            "# kept: a\u00a0b | a\u202fb | a\u2060b | \u2010\u2011\u2212 | e\u0301\u00e9\n" if odd else "# kept as it is\n"
        )

    def name(self, number: int) -> str:
        """Return the title of a numbered case."""
        return f"keeps\u00a0case\u2011{number:04}" if self.odd else f"keeps case {number:04}"

    def case(self, number: int, value: str | None = None) -> str:
        """Return a numbered case: the same lines as every other, but for its number."""
        rows = [f"case '{self.name(number)}':", f"    gateway = '{value or self.old}'", f"    attempts = {number % 4}"]
        return "\n".join([*rows, "    for answer in ask(gateway, attempts):", "        check(answer)", "done\n"])

    def task(
        self, family: str, scale: int, before: dict[str, str], after: dict[str, str], *operations: Operation, case: str = ""
    ) -> Task:
        """Return a task, with a file beside it that nobody may touch."""
        beside = {"untouched.txt": f"Nobody edits this.\n{self.note}"}
        return Task(f"{family}-{scale}{case and '-'}{case}-{self.variant}", family, before | beside, after | beside, operations)


_LANGUAGES = {
    "ts": ("", "export const step{n} = {{ gateway: {v}, tries: 3 }};\n", ""),
    "tsx": ("<List>\n", "  <Step id={{{n}}} gateway={v} />\n", "</List>\n"),
    "py": ("STEPS = [\n", "    Step({n}, gateway={v}),\n", "]\n"),
    "go": ("var steps = []Step{\n", "\t{{ID: {n}, Gateway: {v}}},\n", "}\n"),
    "rs": ("const STEPS: &[Step] = &[\n", "    Step {{ id: {n}, gateway: {v} }},\n", "];\n"),
    "cs": ("class Steps {\n", "    static Step S{n} = new({v});\n", "}\n"),
    "java": ("class Steps {\n", "    static Step s{n} = new Step({v});\n", "}\n"),
    "kt": ("object Steps {\n", "    val s{n} = Step({v})\n", "}\n"),
    "sql": ("", "INSERT INTO steps VALUES ({n}, {v});\n", ""),
    "sh": ("#!/bin/sh\n", "run_step {n} {v}\n", ""),
    "json": ("{\n", '  "step{n}": {v},\n', '  "last": true\n}\n'),
    "yaml": ("steps:\n", "  - id: {n}\n    gateway: {v}\n", ""),
    "md": ("# Steps\n\n", "{n}. Ask {v} and wait.\n", ""),
    "fr.md": ("# Étapes\n\n", "{n}. Après l’été, demandez à {v} déjà.\n", ""),
    "ru.md": ("# Шаги\n\n", "{n}. Спросите {v} ещё раз.\n", ""),
    "zh.md": ("# 步骤\n\n", "{n}。请询问 {v}，然后等待。\n", ""),
    "ar.md": ("# خطوات\n\n", "{n}. اسأل {v} ثم انتظر.\n", ""),
    "mixed.md": ("# Steps 步骤 Шаги\n\n", "{n}. Ask 请问 {v} и ждите.\n", ""),
}


def _languages(words: _Words) -> Iterator[Task]:
    for ending, (head, row, tail) in _LANGUAGES.items():
        file = f"steps.{ending}"
        old, new = (f'"{word}"' for word in (words.old, words.new))
        rows = [row.format(n=number, v=old) for number in range(1, 11)]
        before = {file: head + "".join(rows) + tail}
        every = {file: head + "".join(row.format(n=number, v=new) for number in range(1, 11)) + tail}
        fifth = row.format(n=5, v=new)
        one = {file: head + "".join([*rows[:4], fifth, *rows[5:]]) + tail}
        added = row.format(n=11, v=new)
        more = {file: head + "".join([*rows[:4], added, *rows[4:]]) + tail}
        yield words.task("language-replace", 10, before, every, Replace(file, old, new, 10), case=ending)
        yield words.task("language-select", 10, before, one, Replace(file, rows[4], fifth), case=ending)
        first = rows[4].split("\n")[0]
        yield words.task("language-insert", 1, before, more, Insert(file, first, _lines(added), before=True), case=ending)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n"))


def _finding(words: _Words) -> Iterator[Task]:
    for count in SCALES:
        routes = [f"route {number} GET /items/{number} {1000 + number}ms\n" for number in range(count)]
        half = count // 2

        def text(value: str, routes: list[str] = routes, half: int = half) -> str:
            return words.note + "".join([*routes[:half], f"setting {value} tries 3\n", *routes[half:]])

        yield words.task(
            "unique", count, {"s.conf": text(words.old)}, {"s.conf": text(words.new)}, Replace("s.conf", words.old, words.new)
        )
    for count in (1, *SCALES):
        before, after = (_cases(words, count, value) for value in (words.old, words.new))
        yield words.task(
            "replace-all", count, {"c.txt": before}, {"c.txt": after}, Replace("c.txt", words.old, words.new, count)
        )
    for files in (1, 10, 100):
        names = [f"cases/part-{number:03}.txt" for number in range(1, files + 1)]
        each = 1000 // files
        outside = {"outside.txt": words.case(0)}
        before, after = ({name: _cases(words, each, value) for name in names} for value in (words.old, words.new))
        changes = (Replace(name, words.old, words.new, each) for name in names)
        yield words.task("multi-file", files, before | outside, after | outside, *changes)
    for count in (1, 10, 30):
        pairs = {f"conf/{n}.txt": (f"{words.old}-{n}", f"{words.new}-{n * 7}") for n in range(1, count + 1)}
        old, new = (
            {
                name: f"{words.note}gateway {pair[at]}\ntries {at}\n".replace("tries 1", "tries 0")
                for name, pair in pairs.items()
            }
            for at in (0, 1)
        )
        yield words.task("distinct-edits", count, old, new, *(Replace(name, *pair) for name, pair in pairs.items()))


def _cases(words: _Words, count: int, value: str | None = None, chosen: dict[int, str] | None = None) -> str:
    special = chosen or {}
    return words.note + "\n".join(special.get(number, words.case(number, value)) for number in range(1, count + 1))


def _selecting(words: _Words) -> Iterator[Task]:
    for count in (1, *SCALES):
        middle = -(-count // 2)
        after = _cases(words, count, chosen={middle: words.case(middle, words.new)})
        change = Replace("c.txt", words.old, words.new, 1, _title(words, middle), "done")
        yield words.task("select-one", count, {"c.txt": _cases(words, count)}, {"c.txt": after}, change)
    for count in SCALES:
        some = (1, -(-count // 2), count)
        before = {"c.txt": _cases(words, count)}
        after = _cases(words, count, chosen={number: words.case(number, words.new) for number in some})
        changes = [Replace("c.txt", words.old, words.new, 1, _title(words, number), "done") for number in some]
        yield words.task("select-subset", count, before, {"c.txt": after}, *changes)
        gone = _cases(words, count, chosen=dict.fromkeys(some, ""))
        blocks = [Block("c.txt", _title(words, number), "done", "delete") for number in some]
        yield words.task("delete-subset", count, before, {"c.txt": gone}, *blocks)
        extra = "        check(answer.kind)"
        longer = {number: words.case(number).replace("done\n", f"{extra}\ndone\n") for number in some}
        inserts = [Insert("c.txt", "done", (extra,), before=True, title=_title(words, number)) for number in some]
        yield words.task("insert-subset", count, before, {"c.txt": _cases(words, count, chosen=longer)}, *inserts)


def _title(words: _Words, number: int) -> str:
    return words.case(number).split("\n")[0]


def _literals(words: _Words) -> Iterator[Task]:
    mark = "\u2060" if words.odd else ""
    for case, old, new in (
        ("regex", r"^(\d*)\.[^/]*\.txt$", r"^(\d+)\.[^/]*\.txt$"),
        ("quotes", 'she said "was" \\ ${name}', 'she said "is" \\ ${name}'),
        ("crlf", "was\r\nhere", "is\r\nhere"),
        ("tabs", "was\t\there", "is\t\there"),
        ("no-final-newline", "was here", "is here"),
    ):
        end = "" if case == "no-final-newline" else "\n"
        before, after = ({"t.txt": f"{words.note}{text}{mark}{end}"} for text in (old, new))
        yield words.task("literal", 1, before, after, Replace("t.txt", old + mark, new + mark), case=case)
    if words.odd:
        for case, old, new in (
            ("nbsp", "x\u00a0y", "x y"),
            ("narrow-space", "x\u202fy", "x y"),
            ("zero-width", "x\u200by", "xy"),
            ("word-joiner", "x\u2060y", "xy"),
            ("hyphen", "x\u2011y", "x-y"),
            ("minus", "x\u2212y", "x-y"),
            ("decomposed", "re\u0301sume", "r\u00e9sume"),
            ("cyrillic", "\u0440ort", "port"),
        ):
            alike = f"alike: x y | x\u00a0y | x\u202fy | xy | x\u2060y | x-y | x\u2011y | x\u2212y | {old} | {new}\n"
            before, after = ({"t.txt": f"{alike}wanted: {text}\n"} for text in (old, new))
            yield words.task(
                "unicode-fix", 1, before, after, Replace("t.txt", old, new, 1, f"wanted: {old}", f"wanted: {old}"), case=case
            )


def _blocks(words: _Words) -> Iterator[Task]:
    first, last = f"# FROM {words.name(42)}", f"# UPTO {words.name(42)}"
    for rows in SCALES:
        body = "".join(f"    sample {number} {words.old} {number % 4}\n" for number in range(rows))
        block = f"{first}\n{body}{last}\n"
        head, tail = f"{words.note}{words.case(9001)}\n# HEAD\n", f"# TAIL\n{words.case(9002)}"
        here = {"b.txt": head + block + tail}
        given = tuple(f"    sample {number} {words.new}" for number in range(rows))
        text = "".join(f"{line}\n" for line in given)
        new = ("    sample 0 only",)
        there = {"b.txt": head + block + tail, "to.txt": f"{words.note}# PLACE\n{words.case(9003)}"}
        moved = {"b.txt": head + tail, "to.txt": there["to.txt"] + block}

        def one(
            family: str, after: dict[str, str], change: Operation, before: dict[str, str] = here, scale: int = rows
        ) -> Task:
            return words.task(family, scale, before, after, change)

        yield one(
            "replace-block",
            {"b.txt": f"{head}{first}\n{new[0]}\n{last}\n{tail}"},
            Block("b.txt", first, last, "rewrite", lines=new),
        )
        yield one("delete-block", {"b.txt": head + tail}, Block("b.txt", first, last, "delete"))
        within = tail.replace("# TAIL\n", f"# TAIL\n{block}")
        yield one("move-block", {"b.txt": head + within}, Block("b.txt", first, last, "move", "b.txt", "# TAIL"))
        yield one(
            "copy-block", there | {"to.txt": there["to.txt"] + block}, Block("b.txt", first, last, "copy", "to.txt"), there
        )
        yield one("copy-within", {"b.txt": head + block + tail + block}, Block("b.txt", first, last, "copy", "b.txt"))
        yield one("move-between", moved, Block("b.txt", first, last, "move", "to.txt"), there)
        added = _lines(words.case(9004, words.new))
        yield one("insert-block", {"b.txt": head + block + words.case(9004, words.new) + tail}, Insert("b.txt", last, added))
        short = {"b.txt": head + tail}
        yield one("insert-payload", {"b.txt": head + text + tail}, Insert("b.txt", "# TAIL", given, before=True), short)
