"""Whose lines are whose after real histories: files of git repositories, written version by version, then rebased, squashed,
formatted, moved, stashed and undone.

`python benchmarks/blame_histories.py --n 500 --seed 1 PATH…` takes git repositories, bare or not. An agent writes each version
of a file in a call of its own; what git and formatters do then is recorded as commands are. The truth is worked out apart from
`rye blame`: by where each text came in, and by what was done with the lines afterwards. A repository's text is only measured.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import rye
from rye.journal import tree_changes
from rye.provenance import blame
from rye.workspace.workspace import Workspace
from support.real_histories import git, histories

Truth = list[set[str | None]]
"""For each line the changes that may count as its writer; None: it is older than the record."""
SIGNS = re.compile(r"[\s,;()'\"]+")


def told(line: str) -> str:
    return SIGNS.sub("", line)


class History:
    """One file's way through a project, with what is true of each line."""

    def __init__(self, folder: Path, name: str, texts: Sequence[str], rng: random.Random, *, told: bool) -> None:
        self.folder, self.path, self.rng, self.told = folder, name, rng, told
        self.file = folder / name
        self.versions: list[tuple[list[str], str | None]] = [(lines(texts[0]), None)]
        self.truth: Truth = [{None} for _ in lines(texts[0])]
        self.known: dict[str, Truth] = {texts[0]: self.truth}
        self.rest = texts[1:]
        self.file.write_text(texts[0])
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "first")
        self.recorded(lambda: git(folder, "checkout", "-q", "-b", "work"))

    def recorded(self, change: Callable[[], object]) -> str | None:
        with Workspace(str(self.folder)) as ws:
            recording = tree_changes.begin(ws, "rye/bash/bash", "a command")
            change()
            return tree_changes.end(ws, recording).entry_id

    def settle(self, truth: Truth, who: str | None) -> None:
        text = self.file.read_text()
        self.truth = self.known.setdefault(text, truth)
        self.versions.append((lines(text), who))

    # --- agents write ---

    def write(self, text: str) -> None:
        if text == self.file.read_text():
            return
        if self.rng.random() < 0.3:
            who = self.recorded(lambda: self.file.write_text(text))
        else:
            data = rye.execute("rye/file-system/write", {"file_path": self.path, "content": text}, project_path=self.folder)[
                "data"
            ]
            if data.get("code") == "protected_path":
                # A name that programs act on: only commands write it.
                data = {"entry_id": self.recorded(lambda: self.file.write_text(text))}
            assert data["entry_id"], data
            who = str(data["entry_id"])
        self.settle(self.known.get(text) or self._came_in(lines(text), str(who)), str(who))
        if self.rng.random() < 0.5:
            self.recorded(lambda: git(self.folder, "commit", "-qam", "x", check=False))

    def _came_in(self, new: list[str], who: str) -> Truth:
        """Say when each text came in: without doubt where it never stood twice, else by when there came to be more of it."""
        old = self.versions[-1][0]
        counts = [Counter(map(told, version)) for version, _ in [*self.versions, (new, who)]]
        makers = [maker for _, maker in [*self.versions, (new, who)]]
        before: dict[str, list[set[str | None]]] = {}
        for line, whose in zip(old, self.truth, strict=True):
            before.setdefault(told(line), []).append(whose)
        joined = "".join(map(told, old))
        ends, total = [], 0
        for line in old:
            total += len(told(line))
            ends.append(total)
        out: Truth = []
        for line in new:
            key = told(line)
            if max(count[key] for count in counts) == 1:
                whose = set(before[key][0]) if key in before else {who}
            else:
                whose = {who} if counts[-1][key] > counts[-2][key] else set()
                whose |= {maker for at, maker in enumerate(makers) if at and counts[at][key] > counts[at - 1][key]}
                whose |= set().union(*before.get(key, []))
            if len(key) > 3 and key not in before and (at := joined.find(key)) >= 0:
                # Only broken or joined otherwise.
                for end, known in zip(ends, self.truth, strict=True):
                    if at < end:
                        whose |= known
                    if end >= at + len(key):
                        break
            out.append(whose)
        return out

    # --- what comes behind ---

    def rebase(self) -> None:
        """Someone's commit on main is put under the work."""
        self.recorded(lambda: git(self.folder, "commit", "-qam", "rest", check=False))
        work, truth = self.file.read_text(), self.truth
        self.recorded(lambda: git(self.folder, "checkout", "-q", "main"))
        first = self.file.read_text()
        marks = [f"# from upstream {self.rng.random()}" for _ in range(3)]
        at = self.rng.choice([0, len(lines(first))])
        upstream = lines(first)
        upstream[at:at] = marks
        by = self.recorded(lambda: (self.file.write_text(joined(upstream)), git(self.folder, "commit", "-qam", "upstream")))
        self.recorded(lambda: git(self.folder, "checkout", "-q", "work"))
        assert self.file.read_text() == work
        done = self.recorded(lambda: git(self.folder, "rebase", "-q", "main", check=False))
        if (self.folder / ".git/rebase-merge").exists() or (self.folder / ".git/rebase-apply").exists():
            self.recorded(lambda: git(self.folder, "rebase", "--abort"))
            assert self.file.read_text() == work
            self.settle(truth, None)
            return
        whose = iter(truth)
        self.settle([{by, done} if line in marks else next(whose) for line in lines(self.file.read_text())], done)

    def squash(self) -> None:
        self.recorded(lambda: git(self.folder, "commit", "-qam", "rest", check=False))

        def again() -> None:
            git(self.folder, "reset", "-q", "--soft", "main")
            git(self.folder, "commit", "-qm", "squashed", check=False)

        self.recorded(again)
        self.recorded(lambda: git(self.folder, "checkout", "-q", "main"))
        self.recorded(lambda: git(self.folder, "merge", "-q", "--squash", "work", check=False))
        self.recorded(lambda: git(self.folder, "commit", "-qm", "merged", check=False))
        self.recorded(lambda: git(self.folder, "checkout", "-q", "-B", "work"))
        self.settle(self.truth, None)

    def stash(self) -> None:
        text = joined([*lines(self.file.read_text()), f"kept {self.rng.random()}"])
        self.write(text)
        self.recorded(lambda: git(self.folder, "stash", check=False))
        self.recorded(lambda: git(self.folder, "stash", "pop", check=False))
        if self.file.read_text() == text:
            self.settle(self.known[text], None)
        else:
            self.settle(self.known[self.file.read_text()], None)

    def undo(self) -> None:
        before = self.file.read_text()
        old = lines(before)
        self.write(joined(old[: len(old) // 2] + old[len(old) // 2 + 5 :]))
        rye.execute("rye/file-system/undo", {"file_path": self.path}, project_path=self.folder)
        if self.file.read_text() in self.known:
            self.settle(self.truth, None)

    def format(self) -> None:
        """A formatter breaks lines, or all lines move in."""
        old = lines(self.file.read_text())
        width = str(self.rng.choice([60, 80, 120]))
        if self.path.endswith(".py") and self.rng.random() < 0.8:
            command = [sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length", width, self.path]
            who = self.recorded(lambda: subprocess.run(command, cwd=self.folder, check=False, capture_output=True))
        else:
            who = self.recorded(lambda: self.file.write_text(joined([f"    {line}" if line else line for line in old])))
        new = lines(self.file.read_text())
        if "".join(map(told, old)) != "".join(map(told, new)):
            return self.settle(self._came_in(new, str(who)), who)
        owners = [whose for line, whose in zip(old, self.truth, strict=True) for _ in told(line)]
        out: Truth = []
        at = 0
        for line in new:
            size = len(told(line))
            mine = owners[at : at + size]
            if mine:
                shares = Counter(map(frozenset, mine)).most_common()
                out.append({who for share, count in shares if count * 2 >= size or count == shares[0][1] for who in share})
            else:
                # Nothing but signs or white space: a line of the formatter's, or of one beside it.
                out.append({who} | set().union(*owners[max(at - 1, 0) : at + 1]) | _same_signs(old, self.truth, line))
            at += size
        return self.settle(out, who)

    def move(self) -> None:
        """A block moves."""
        old = list(zip(lines(self.file.read_text()), self.truth, strict=True))
        size = min(len(old), self.rng.randint(2, 12))
        start = self.rng.randrange(len(old) - size + 1)
        block, rest = old[start : start + size], old[:start] + old[start + size :]
        at = self.rng.randrange(len(rest) + 1)
        rest[at:at] = block
        who = self.recorded(lambda: self.file.write_text(joined([line for line, _ in rest])))
        twins = Counter(told(line) for line, _ in old)
        alike: dict[str, set[str | None]] = {}
        for line, whose in old:
            alike[told(line)] = alike.get(told(line), set()) | whose
        # Of lines that look alike nobody can say which of them moved.
        self.settle([whose | alike[told(line)] if twins[told(line)] > 1 else whose for line, whose in rest], who)

    def rename(self) -> None:
        new = f"moved {self.path}"
        self.recorded(lambda: (git(self.folder, "add", "-A"), git(self.folder, "mv", self.path, new)))
        self.path, self.file = new, self.folder / new

    def run(self) -> Counter[str]:
        for text in self.rest:
            self.write(text)
        for step in self.rng.sample([self.rebase, self.squash, self.format, self.move, self.stash, self.undo], 6):
            step()
        self.rename()
        with Workspace(str(self.folder)) as ws:
            found = [None if one.entry is None else one.entry.id for one in blame.of_file(ws, self.path)]
        if self.told:
            names = [one for _, one in self.versions]
            for line, who, whose in zip(self.versions[-1][0], found, self.truth, strict=True):
                if who not in whose:
                    places = [names.index(one) if one in names else one for one in (who, *whose)]
                    print(f"    {line[:80]!r}: step {places[0]}, wanted {places[1:]}")
        right = sum(who in whose for who, whose in zip(found, self.truth, strict=True))
        sure = [len(whose) == 1 for whose in self.truth]
        alone = sum(who in whose for who, whose, one in zip(found, self.truth, sure, strict=True) if one)
        return Counter({"histories": 1, "lines": len(found), "right": right, "sure lines": sum(sure), "sure right": alone})


def _same_signs(old: list[str], truth: Truth, line: str) -> set[str | None]:
    return set().union(*(whose for one, whose in zip(old, truth, strict=True) if one.strip() == line.strip()))


def lines(text: str) -> list[str]:
    return text.split("\n")[:-1]


def joined(texts: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worst", action="store_true", help="show the wrong lines, and name their histories")
    given = parser.parse_args()
    rng = random.Random(given.seed)
    total: Counter[str] = Counter()
    each = -(-given.n // len(given.repositories))
    for repository in given.repositories:
        for name, texts in histories(repository, rng, min(each, given.n - total["histories"])):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["USER_SPACE"] = f"{folder}/user"
                project = Path(folder, "project")
                project.mkdir()
                one = History(project, name, texts, random.Random(rng.random()), told=given.worst).run()
            total += one
            if given.worst and one["right"] < one["lines"]:
                print(repository.parent.name, name, dict(one), flush=True)
    share, sure = (100 * total[right] / max(total[of], 1) for right, of in (("right", "lines"), ("sure right", "sure lines")))
    print(f"{dict(total)}: {share:.3f}% of lines right, {sure:.3f}% of those of which one writer is sure")


if __name__ == "__main__":
    main()
