"""Calls of every kind while the disk is nearly full, or while what is stored is damaged: no crash, no wrong line, no edit elsewhere.

A session knows what each file holds, and which text was shown under each ID. Before each call something is disturbed: the free room
of a small disk is another one, or a file of the project's cache or of the user's state is changed at random.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from rye.errors import RyeError
from rye.workspace import seals
from support.calling import call, rows
from support.harness import times

NAMES = {"small.txt": 40, "large.txt": 2_050, "wide.txt": 60}
ROOM = (0, 0, 4_096, 8_192, 16_384, 40_960, 65_536, 120_000, 300_000)
# What a full disk may make of a call. A patch of a file that another one filled up is no problem of the batch.
FAIR = {
    "no_space", "state_unwritable", "command_failed", "nothing_to_undo", "already_undone", "changed_since", "cache_unwritable",
    # The index had no room, so what a read showed is unknown: loud, and nothing is written.
    "unseen_lines", "invalid_line_id", "stale_file",
}  # fmt: skip
WRONG = (
    "crash", "wrong lines", "an ID names another line", "wrong edit", "wrong undo", "wrong view", "wrong search", "unfair refusal",
    "two words in one answer", "left over",
)  # fmt: skip


class Session:
    """A project, what its files hold and what a model knows of them; each call is held to that, and what is wrong is counted."""

    def __init__(self, project: Path, chance: random.Random, disturb: Callable[[], None], fair: set[str] | None = None) -> None:
        self.project, self.chance, self.disturb, self.fair = project, chance, disturb, fair
        self.serial = 0
        self.found: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.first: list[str] = []
        self.seen: dict[str, dict[str, str]] = {name: {} for name in NAMES}
        self.everything: dict[str, set[str]] = {name: set() for name in NAMES}
        self.content: dict[str, list[str]] = {}
        for name, count in NAMES.items():
            self.put(name, [self.text() for _ in range(count)])

    def text(self) -> str:
        """A line that is no other one's."""
        self.serial += 1
        return f"line {self.serial} of them"

    def codec(self, name: str) -> str:
        return "utf-16" if name == "wide.txt" else "utf-8"

    def put(self, name: str, lines: list[str]) -> None:
        self.expect(name, lines)
        (self.project / name).write_text("".join(f"{line}\n" for line in lines), encoding=self.codec(name), newline="")

    def expect(self, name: str, lines: list[str]) -> None:
        self.everything[name].update(lines)
        self.content[name] = lines

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
        code = "done" if data["success"] else data.get("code")
        self.codes[code] += 1
        if code != "done" and self.fair is not None and code not in self.fair:
            self.wrong("unfair refusal", tool, data)
        # What advises to free space says nothing else in one breath.
        if "Success" in (data.get("error") or "") or any("Nothing was changed" in one for one in data.get("warnings") or ()):
            self.wrong("two words in one answer", data)
        return data

    def read(self, name: str) -> None:
        start = self.chance.randrange(30)
        true = self.content[name][start : start + 30]
        data = self.ask("read", file_path=name, offset=start + 1, limit=30)
        if not data["success"]:
            return
        told = rows(data)
        # Where the index cannot be kept, a file is shown without IDs.
        if ([text for _, text in told] or data["output"].split("\n")[: len(true)]) != true:
            self.wrong("wrong lines", name, told[:3], data)
        for line_id, text in told:
            if self.seen[name].setdefault(line_id, text) != text:
                self.wrong("an ID names another line", name, line_id, self.seen[name][line_id], text)

    def edit(self, name: str) -> None:
        known = [*self.seen[name].items()]
        if not known:
            return
        line_id, text = self.chance.choice(known[-60:])
        before, fresh, stale = self.content[name], self.text(), self.chance.choice(("refuse", "rebase"))
        data = self.ask("edit_lines", file_path=name, changes=[{"line_id": line_id, "new_content": fresh}], on_stale=stale)
        if data["success"]:
            if text not in before:
                self.wrong("wrong edit", name, line_id, text, data.get("output"))
            self.expect(name, [fresh if line == text else line for line in before])
            self.seen[name][line_id] = fresh

    def write(self, name: str) -> None:
        """Write the small file anew, now and then a large one: what was shown of it is unknown."""
        name = "small.txt"
        lines = [*self.content[name][:40], *(self.text() for _ in range(3_000 if self.chance.random() < 0.3 else 1))]
        if self.ask("write", file_path=name, content="".join(f"{line}\n" for line in lines))["success"]:
            self.expect(name, lines)

    def patch(self, _: str) -> None:
        """Insert a line at the beginning of two files, as one batch."""
        fresh, names = self.text(), ("small.txt", "large.txt")
        digest = {name: hashlib.sha256((self.project / name).read_bytes()).hexdigest() for name in names}
        change = {"operation": "insert", "afterLine": 0, "newLines": [fresh]}
        files = [{"docPath": name, "originalSha256": digest[name], "changes": [change]} for name in names]
        if self.ask("rye/workspace/workspace_write_patch", files=files)["success"]:
            for name in names:
                self.expect(name, [fresh, *self.content[name]])

    def outside(self, name: str) -> None:
        """Another program inserts a line."""
        lines = [*self.content[name]]
        lines.insert(self.chance.randrange(len(lines) + 1), self.text())
        with suppress(OSError):
            self.put(name, lines)

    def command(self, _: str) -> None:
        """A command appends a line: its change is recorded in the store of snapshots."""
        fresh = self.text()
        self.everything["small.txt"].add(fresh)
        data = self.ask("rye/bash/bash", command=f"echo '{fresh}' >>small.txt; test $? = 0")
        if data["success"]:
            self.expect("small.txt", [*self.content["small.txt"], fresh])

    def undo(self, _: str) -> None:
        """Take the last change back, whichever file it was in. One that stops half way says how far it got."""
        data = self.ask("undo", **self.chance.choice(({}, {"list": True}, {"dry_run": True})))
        named = {*(data.get("file_paths") or ()), data.get("file_path")}
        for name in NAMES:
            after = self.lines(name)
            if after != self.content[name]:
                if name not in named or not data["success"] or set(after) - self.everything[name]:
                    self.wrong("wrong undo", name, data)
                self.expect(name, after)
            # The text of an undone line is another one now; what its ID shows next is taken as known.
            self.seen[name] = {line_id: text for line_id, text in self.seen[name].items() if text in set(after)}

    def look(self, name: str) -> None:
        true = self.content[name]
        data = self.ask("rye/swe/open_file_chunk", path=name, start=1, end=20)
        if data["success"] and not all(line in data["output"] for line in true[:20]):
            self.wrong("wrong view", name, data["output"][:200])
        data = self.ask("grep", pattern=true[self.chance.randrange(len(true))] + "$", path=name)
        if data["success"] and data["count"] != 1:
            self.wrong("wrong search", name, data)

    def step(self, *kinds: Callable[[str], None]) -> None:
        name = self.chance.choice([*NAMES])
        self.disturb()
        for kind in kinds:
            kind(name)
            for each in NAMES:
                if self.lines(each) != self.content[each]:
                    self.wrong("wrong edit", each, kind.__name__)
                    self.expect(each, self.lines(each))
        if left := [one for one in os.listdir(self.project) if one.startswith(".rye-")]:
            self.wrong("left over", left)

    def held(self) -> None:
        """Nothing was wrong."""
        assert {what: self.found[what] for what in WRONG} == dict.fromkeys(WRONG, 0), self.first


# --- a disk that is nearly full ---


def room_of(disk: Path, chance: random.Random) -> Callable[[], None]:
    """Return what leaves another amount of room on a disk than before."""

    def fill() -> None:
        filler = disk / "filler"
        filler.unlink(missing_ok=True)
        free = os.statvfs(disk)
        with suppress(OSError), filler.open("wb") as file:
            file.write(b"x" * max(0, free.f_bavail * free.f_bsize - chance.choice(ROOM)))

    return fill


@pytest.mark.slow
@pytest.mark.parametrize("same", [True, False], ids=["user space on it", "user space elsewhere"])
def test_calls_on_a_disk_that_is_nearly_full(small_disk, tmp_path, monkeypatch, rng, same):
    disk = small_disk("size=3m")
    space = disk / "user" if same else tmp_path / "user"
    space.mkdir()
    monkeypatch.setenv("USER_SPACE", str(space))
    (disk / "project/.git").mkdir(parents=True)
    session = Session(disk / "project", rng, room_of(disk, rng), FAIR)
    for _ in range(times(100)):
        kind = rng.choice([session.edit, session.write, session.patch, session.undo, session.command, session.look])
        session.step(*([session.read, kind] if kind == session.edit else [kind]))
    print(sorted(session.codes.items()))
    session.held()
    assert session.codes["no_space"] > 0, "the disk was never full"
    assert session.codes["done"] > 0


# --- damage to what is stored ---


class Damage:
    """Changes one file of the project's cache or of the user's state; what a person decided about trust is put back the next time."""

    def __init__(self, project: Path, user: Path, chance: random.Random) -> None:
        self.chance, self.project, self.places = chance, project, (project / ".ai/cache", project / ".ragix", user / ".ai")
        self.decided: tuple[Path, bytes] | None = None

    def targets(self) -> list[Path]:
        return sorted(path for place in self.places for path in place.rglob("*") if path.is_file() and not path.is_symlink())

    def __call__(self) -> None:
        self.mend()
        if not (targets := self.targets()):
            return
        path = self.chance.choice(targets)
        kind, raw = self.chance.randrange(9), path.read_bytes()
        self.decided = (path, raw) if "trust" in path.parts else None
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
            path.write_bytes(self.chance.choice(targets).read_bytes())
        elif kind == 6:
            path.unlink()
            path.symlink_to(self.chance.choice(("/dev/null", "/nowhere", str(self.project / "small.txt"))))
        elif kind == 7:
            path.unlink()
            path.mkdir()
        else:
            path.write_bytes(raw[:at] + self.chance.randbytes(self.chance.randrange(1, 40)) + raw[at:])

    def mend(self) -> None:
        if self.decided:
            path, raw = self.decided
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
            path.chmod(0o600)


@pytest.mark.slow
def test_damaged_files_are_never_believed(project, user_space, rng):
    session = Session(project, rng, Damage(project, user_space, rng))
    kinds = (session.read, session.edit, session.read, session.undo, session.look, session.command, session.patch)
    for name in NAMES:
        for kind in (session.read, session.edit, session.look):
            kind(name)
    for _ in range(times(40)):
        more = [session.outside] if rng.random() < 0.2 else []
        session.step(*more, *rng.sample(kinds, 3))
        if session.found["crash"] > 20:
            break
    session.held()
    assert session.codes["done"] > 40


def test_control_a_change_without_the_seal_shows(project, monkeypatch):
    """Believed without its seal, one changed number in the index is a wrong line."""
    session = Session(project, random.Random(1), lambda: None)
    session.read("small.txt")
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
        session.read("small.txt")
    assert session.found["an ID names another line"] > 0
