"""Who wrote each line, beside a model that knows: over random histories with edits, moves, re-indentation, formatting, renames."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

import rye
from rye.cli.main import main
from support.calling import done
from support.shell_calls import bash

SOURCE = Path(rye.__file__).parent
COMMON = ["", "    return None", "    }", "else:", "    pass", "try:", ")"]


class Model:
    """A file whose lines know who wrote them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        source = self.random.choice(sorted(SOURCE.rglob("*.py"))).read_text().split("\n")
        start = self.random.randrange(max(1, len(source) - 120))
        self.lines: list[tuple[str, int | None]] = [(line, None) for line in source[start : start + 120]]
        self.steps: list[str] = []

    def text(self) -> str:
        return "".join(f"{line}\n" for line, _ in self.lines)

    def new_line(self) -> str:
        if self.random.random() < 0.15:
            return self.random.choice(COMMON)
        return f"{'    ' * self.random.randrange(3)}value_{self.random.randrange(10**6)} = call({self.random.random()})"

    def step(self, project: Path) -> None:
        before, number = self.text(), len(self.steps)
        self.random.choice(
            [self.insert, self.insert, self.replace, self.replace, self.delete, self.move, self.indent, self.join]
        )(number)
        if self.text() != before:
            self.steps.append(done("write", project, file_path="model.py", content=self.text())["entry_id"])

    def place(self, most: int) -> tuple[int, int]:
        size = self.random.randint(1, most)
        start = self.random.randrange(max(1, len(self.lines) - size))
        return start, min(start + size, len(self.lines))

    def insert(self, number: int) -> None:
        start, _ = self.place(1)
        self.lines[start:start] = [(self.new_line(), number) for _ in range(self.random.randint(1, 8))]

    def replace(self, number: int) -> None:
        start, stop = self.place(5)
        new = [self.new_line() for _ in range(self.random.randint(1, 5))]
        # What stays as it was stays its writer's.
        if any(line in new for line, _ in self.lines[start:stop]):
            return
        self.lines[start:stop] = [(line, number) for line in new]

    def delete(self, _: int) -> None:
        start, stop = self.place(6)
        del self.lines[start:stop]

    def move(self, _: int) -> None:
        start, stop = self.place(8)
        taken = self.lines[start:stop]
        del self.lines[start:stop]
        at = self.random.randrange(len(self.lines) + 1)
        self.lines[at:at] = taken

    def indent(self, _: int) -> None:
        start, stop = self.place(20)
        self.lines[start:stop] = [(f"    {line}" if line else line, who) for line, who in self.lines[start:stop]]

    def join(self, _: int) -> None:
        """Break a call over three lines, as a formatter does."""
        for at, (line, who) in enumerate(self.lines):
            if line.endswith(")") and "call(" in line:
                head, rest = line.split("(", 1)
                self.lines[at : at + 1] = [(f"{head}(", who), (f"        {rest[:-1]},", who), ("    )", who)]
                return


@pytest.fixture
def tracked(project):
    (project / "a.py").write_text("".join(f"line {n}\n" for n in range(10)))
    bash(project, "true")
    return project


@pytest.fixture
def lines(tracked, capsys):
    def of(path):
        assert main(["blame", path, "--project", str(tracked), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return of


def whose(found):
    return [one["change"] for one in found]


def test_random_histories(tracked, lines) -> None:
    right = total = 0
    for seed in range(6):
        model = Model(seed)
        (tracked / "model.py").write_text(model.text())
        for _ in range(20):
            model.step(tracked)
        found, wanted = whose(lines("model.py")), [None if who is None else model.steps[who] for _, who in model.lines]
        # What another history wrote was there before this one.
        judged = [(None if one not in model.steps else one) == other for one, other in zip(found, wanted, strict=True)]
        right, total = right + sum(judged), total + len(judged)
    assert right >= 0.99 * total, (right, total)


def test_lines_keep_their_writer_through_a_rename_a_move_and_an_indent(tracked, lines):
    one = bash(tracked, "sed -i 's/line 4/written by one/' a.py")["change_id"]
    bash(tracked, "mkdir sub; mv a.py sub/b.py; sed -i 's/^/    /' sub/b.py")
    bash(tracked, "tac sub/b.py > t; mv t sub/b.py")
    assert [at for at, who in enumerate(whose(lines("sub/b.py"))) if who == one] == [5]


def test_a_file_that_grows_meanwhile_has_a_writer_for_each_line_that_was_read(tracked, lines):
    over = threading.Event()

    def grow():
        with (tracked / "a.py").open("ab", 0) as file:
            while not over.is_set():
                file.write(b"x\n")
                time.sleep(0.0005)

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        found = [lines("a.py") for _ in range(30)]
    finally:
        over.set()
        growing.join()
    assert len(found[0]) < len(found[-1])


def test_a_rebase_and_a_squash_leave_the_writers(tracked, lines):
    run = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["config", "user.name", "t"], ["config", "user.email", "t@example.org"]):
        subprocess.run([*run, *arguments], cwd=tracked, check=True, capture_output=True)
    commit = "git add -A && git commit -qm x"
    bash(tracked, f"{commit}; git checkout -qb work")
    one = bash(tracked, f"sed -i 's/line 1/first/' a.py; {commit}")["change_id"]
    two = bash(tracked, f"sed -i 's/line 8/second/' a.py; {commit}")["change_id"]
    bash(tracked, f"git checkout -q main; echo last >> b.py; {commit}; git checkout -q work")
    bash(tracked, "git rebase -q main && git reset -q --soft main && git commit -qm squashed")
    found = whose(lines("a.py"))
    assert (found[1], found[8]) == (one, two)
