"""Random damage to every file in the project's cache and in the user's state: no crash, no wrong line, no edit elsewhere."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from rye.errors import RyeError
from rye.workspace import seals
from support.calling import call, rows
from support.harness import times

QUICK, SEED = 40, 20_261
NAMES = ("small.txt", "large.txt", "wide.txt")


class World:
    """A project, and what a model knows of it: which text it last saw under each ID."""

    def __init__(self, project: Path, user: Path, seed: int) -> None:
        self.project, self.user, self.chance = project, user, random.Random(seed)
        self.serial = 0
        self.seen: dict[str, dict[str, str]] = {name: {} for name in NAMES}
        self.found: Counter[str] = Counter()
        self.first: list[str] = []
        self.everything: dict[str, set[str]] = {name: set() for name in NAMES}
        for name, count in zip(NAMES, (40, 2_050, 60), strict=True):
            self.put(name, [self.text() for _ in range(count)])

    def text(self) -> str:
        self.serial += 1
        return f"line {self.serial} of them"

    def codec(self, name: str) -> str:
        return "utf-16" if name == "wide.txt" else "utf-8"

    def put(self, name: str, lines: list[str]) -> None:
        self.everything[name].update(lines)
        (self.project / name).write_text("".join(f"{line}\n" for line in lines), encoding=self.codec(name), newline="")

    def lines(self, name: str) -> list[str]:
        return (self.project / name).read_text(encoding=self.codec(name)).split("\n")[:-1]

    def wrong(self, what: str, *facts: object) -> None:
        self.found[what] += 1
        if len(self.first) < 5:
            self.first.append(f"{what}: {facts!r:.600}")

    def ask(self, tool: str, **parameters: object) -> dict:
        try:
            data = call(tool, self.project, **parameters)
        except (AssertionError, Exception) as err:
            if isinstance(err, RyeError):
                raise
            self.wrong("crash", tool, parameters, err)
            return {"success": False}
        self.found["refused" if not data["success"] else "answered"] += 1
        return data

    def read(self, name: str) -> None:
        true, start = self.lines(name), self.chance.randrange(30)
        data = self.ask("read", file_path=name, offset=start + 1, limit=30)
        if not data["success"]:
            return
        told = rows(data)
        # Where its lock file is damaged, a file is shown without IDs.
        texts = [text for _, text in told] or data["output"].split("\n")[: len(true[start : start + 30])]
        if texts != true[start : start + 30]:
            self.wrong("wrong lines", name, told[:3], data)
        for line_id, text in told:
            if self.seen[name].setdefault(line_id, text) != text:
                self.wrong("an ID names another line", name, line_id, self.seen[name][line_id], text)

    def edit(self, name: str) -> None:
        known = [*self.seen[name].items()]
        if not known:
            return
        line_id, text = self.chance.choice(known[-60:])
        before, fresh = self.lines(name), self.text()
        self.everything[name].add(fresh)
        stale = self.chance.choice(("refuse", "rebase"))
        data = self.ask("edit_lines", file_path=name, changes=[{"line_id": line_id, "new_content": fresh}], on_stale=stale)
        wanted = [fresh if line == text else line for line in before] if data["success"] else before
        if self.lines(name) != wanted or (data["success"] and text not in before):
            self.wrong("wrong edit", name, line_id, text, data.get("output"))
        if data["success"]:
            self.seen[name][line_id] = fresh

    def outside(self, name: str) -> None:
        """Another program inserts a line."""
        lines = self.lines(name)
        lines.insert(self.chance.randrange(len(lines) + 1), self.text())
        self.put(name, lines)

    def command(self, _: str) -> None:
        """A command appends a line: its change is recorded in the store of snapshots."""
        name, fresh = "small.txt", self.text()
        before = self.lines(name)
        self.everything[name].add(fresh)
        data = self.ask("rye/bash/bash", command=f"echo '{fresh}' >>{name}")
        if self.lines(name) != [*before, *([fresh] if data["success"] else [])]:
            self.wrong("wrong edit", name, data)

    def undo(self, _: str) -> None:
        """Take the last change back, whichever file it was in."""
        before = {name: self.lines(name) for name in NAMES}
        data = self.ask("undo", **self.chance.choice(({}, {"list": True}, {"dry_run": True})))
        for name in NAMES:
            after = self.lines(name)
            if after != before[name] and (not data["success"] or set(after) - self.everything[name]):
                self.wrong("wrong undo", name, data)
            for line_id, text in [*self.seen[name].items()]:
                # The text of an undone line is another one now; what its ID shows next is taken as known.
                if text not in after:
                    del self.seen[name][line_id]

    def look(self, name: str) -> None:
        true = self.lines(name)
        data = self.ask("rye/swe/open_file_chunk", path=name, start=1, end=20)
        if data["success"] and not all(line in data["output"] for line in true[:20]):
            self.wrong("wrong view", name, data["output"][:200])
        data = self.ask("grep", pattern=true[self.chance.randrange(len(true))] + "$", path=name)
        if data["success"] and data["count"] != 1:
            self.wrong("wrong search", name, data)

    def targets(self) -> list[Path]:
        places = (self.project / ".ai/cache", self.project / ".ragix", self.user / ".ai")
        return sorted(path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink())

    def damage(self) -> None:
        """Change one file; what a person decided about trust is put back by `mend`."""
        path = self.chance.choice(self.targets())
        kind, raw = self.chance.randrange(9), path.read_bytes()
        self.mended = (path, raw) if "trust" in path.parts else None
        at = self.chance.randrange(len(raw) + 1)
        if kind == 0:
            path.write_bytes(raw[:at])
        elif kind in (1, 2) and raw:
            at = min(at, len(raw) - 1)
            path.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << self.chance.randrange(8)]) + raw[at + 1 :])
        elif kind == 3:
            path.write_bytes(self.chance.randbytes(self.chance.randrange(200)))
        elif kind == 4:
            path.unlink()
        elif kind == 5:
            path.write_bytes(self.chance.choice(self.targets()).read_bytes())
        elif kind == 6:
            path.unlink()
            path.symlink_to(self.chance.choice(("/dev/null", "/nowhere", str(self.project / "small.txt"))))
        elif kind == 7:
            path.unlink()
            path.mkdir()
        else:
            cut = self.chance.randrange(1, 40)
            path.write_bytes(raw[:at] + self.chance.randbytes(cut) + raw[at + cut :])

    def mend(self) -> None:
        if self.mended:
            path, raw = self.mended
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
            path.chmod(0o600)

    def step(self) -> None:
        name = self.chance.choice(NAMES)
        if self.chance.random() < 0.2:
            self.outside(name)
        self.damage()
        for what in self.chance.sample((self.read, self.edit, self.read, self.undo, self.look, self.command), 3):
            what(name)
        self.mend()


def run(project: Path, user: Path, count: int, seed: int) -> World:
    world = World(project, user, seed)
    for name in NAMES:
        world.read(name)
        world.edit(name)
        world.look(name)
    for _ in range(count):
        world.step()
        if world.found["crash"] > 20:
            break
    return world


WRONG = ("crash", "wrong lines", "an ID names another line", "wrong edit", "wrong undo", "wrong view", "wrong search")


@pytest.mark.slow
def test_damaged_files_are_never_believed(project, user_space):
    world = run(project, user_space, times(QUICK), SEED)
    assert world.found["answered"] > QUICK
    assert {what: world.found[what] for what in WRONG} == dict.fromkeys(WRONG, 0), world.first


def test_control_a_change_without_the_seal_shows(project, user_space, monkeypatch):
    """Believed without its seal, one changed number in the index is a wrong line."""
    world = World(project, user_space, SEED)
    world.read("small.txt")
    (path,) = (project / ".ai/cache/tools/read/line_index").glob("*.json")

    def unchecked(_key, _label, raw):
        record = json.loads(raw)
        record.pop("seal")
        return record

    monkeypatch.setattr(seals, "unsealed", unchecked)
    record = json.loads(path.read_bytes())
    ids = [row["id"] for row in record["lines"]]
    for row, name in zip(record["lines"], [*ids[1:], ids[0]], strict=True):
        row["id"] = name
    path.write_text(json.dumps(record, separators=(",", ":")))
    for _ in range(5):
        world.read("small.txt")
    assert world.found["an ID names another line"] > 0
