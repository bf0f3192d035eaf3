"""What is stored for a project is damaged between two calls: no crash, no wrong line, no edit elsewhere.

Files of the project's cache and of the user's state are damaged in ways that are drawn; what each file of the project holds, and
which text was shown under each ID, is known.
"""

import json
from pathlib import Path

import pytest

from rye.workspace import seals
from support.calling import call, rows
from support.harness import times

NAMES = {"small.txt": 40, "large.txt": 2_050, "wide.txt": 60}
DAMAGES = {
    "cut": lambda path, raw, rng: path.write_bytes(raw[: rng.randrange(len(raw) + 1)]),
    "a bit": lambda path, raw, rng: path.write_bytes(flipped(raw, rng.randrange(len(raw) * 8)) if raw else b"x"),
    "garbage": lambda path, raw, rng: path.write_bytes(rng.randbytes(rng.randrange(200))),
    "bytes between": lambda path, raw, rng: path.write_bytes(raw[:99] + rng.randbytes(rng.randrange(1, 40)) + raw[99:]),
    "gone": lambda path, raw, rng: path.unlink(),
    "another's": lambda path, raw, rng: path.write_bytes(
        rng.choice([*filter(Path.is_file, path.parent.iterdir())]).read_bytes()
    ),
    "a link": lambda path, raw, rng: (path.unlink(), path.symlink_to(rng.choice(["/dev/null", "/nowhere/x", "small.txt"]))),
    "a folder": lambda path, raw, rng: (path.unlink(), path.mkdir()),
}


def flipped(raw, bit):
    data = bytearray(raw)
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


class Session:
    """A project, what its files hold and what a model knows of them; each call is held to that."""

    def __init__(self, project, rng):
        self.project, self.rng, self.serial, self.edits = project, rng, 0, 0
        self.seen = {name: {} for name in NAMES}
        self.content = {name: [self.text() for _ in range(count)] for name, count in NAMES.items()}
        for name in NAMES:
            encoding = "utf-16" if name == "wide.txt" else "utf-8"
            (project / name).write_text("".join(f"{line}\n" for line in self.content[name]), encoding, newline="")

    def text(self):
        """A line that is no other one's."""
        self.serial += 1
        return f"line {self.serial} of them"

    def held(self):
        for name, lines in self.content.items():
            assert (self.project / name).read_bytes().decode("utf-16" if name == "wide.txt" else "utf-8").split("\n")[
                :-1
            ] == lines
        assert not [one for one in self.project.iterdir() if one.name.startswith(".rye-")]

    def read(self, name):
        start = self.rng.randrange(30)
        wanted = self.content[name][start : start + 30]
        data = call("read", self.project, file_path=name, offset=start + 1, limit=30)
        if data["success"]:
            # Where the index cannot be kept, a file is shown without IDs.
            shown = rows(data)
            assert ([text for _, text in shown] or data["output"].split("\n")[: len(wanted)]) == wanted
            for line_id, text in shown:
                assert self.seen[name].setdefault(line_id, text) == text, "an ID names another line"

    def edit(self, name):
        """Edit a line by an ID of before, and take that back, or not."""
        line_id, text = self.rng.choice([*self.seen[name].items()][-60:] or [("ffffff", "")])
        before, fresh = self.content[name], self.text()
        change = {"line_id": line_id, "new_content": fresh}
        data = call(
            "edit_lines", self.project, file_path=name, changes=[change], on_stale=self.rng.choice(["refuse", "rebase"])
        )
        if data["success"]:
            self.edits += 1
            self.content[name], self.seen[name][line_id] = [fresh if line == text else line for line in before], fresh
            self.held()
            if call("undo", self.project)["success"]:
                self.content[name], self.seen[name][line_id] = before, text

    def look(self, name):
        wanted = self.content[name][:20]
        data = call("rye/swe/open_file_chunk", self.project, path=name, start=1, end=20)
        assert not data["success"] or all(line in data["output"] for line in wanted)
        data = call("grep", self.project, pattern=f"{wanted[-1]}$", path=name)
        assert not data["success"] or data["count"] == 1

    def command(self, _name):
        """Its change is recorded in the store of snapshots."""
        fresh = self.text()
        if call("rye/bash/bash", self.project, command=f"echo '{fresh}' >>small.txt")["success"]:
            self.content["small.txt"] = [*self.content["small.txt"], fresh]

    def step(self):
        for kind in (self.read, self.edit, self.look, self.read):
            kind(self.rng.choice([*NAMES]))
            self.held()


def stored(project, user):
    places = (project / ".ai/cache", project / ".ragix", user / ".ai")
    return sorted(path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink())


@pytest.mark.slow
def test_damaged_files_are_never_believed(project, user_space, rng):
    session = Session(project, rng)
    for name in NAMES:
        session.read(name)
        session.edit(name)
    session.command("")
    session.step()
    done = set()
    for _ in range(times(80)):
        path, how = rng.choice(stored(project, user_space)), rng.choice([*DAMAGES])
        raw = path.read_bytes()
        DAMAGES[how](path, raw, rng)
        done.add(how)
        session.step()
        if rng.random() < 0.2:
            session.command("")
        if "trust" in path.parts:
            # What a person decided is not made anew.
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(raw)
            path.chmod(0o600)
    assert done == {*DAMAGES}
    assert session.edits > 8


def test_control_a_change_without_the_seal_shows(project, rng, monkeypatch):
    """Believed without its seal, one changed number in the index is a wrong line."""
    session = Session(project, rng)
    session.read("small.txt")
    (path,) = (project / ".ai/cache/tools/read/line_index").glob("*.json")
    monkeypatch.setattr(
        seals, "unsealed", lambda _key, _label, raw: {name: value for name, value in json.loads(raw).items() if name != "seal"}
    )
    record = json.loads(path.read_bytes())
    ids = [row["id"] for row in record["lines"]]
    for row, name in zip(record["lines"], [*ids[1:], ids[0]], strict=True):
        row["id"] = name
    path.write_text(json.dumps(record, separators=(",", ":")))
    with pytest.raises(AssertionError, match="an ID names another line"):
        [session.read("small.txt") for _ in range(5)]
