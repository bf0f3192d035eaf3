"""Every kind of call while a small disk is nearly full: each changes a file whole or not at all, says so, and leaves nothing.

Before each call the free room is another random amount; the user's space lies on the same disk or elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import rye
from support.harness import times

FILES, LINES = 3, 300
ROOM = (0, 0, 4_096, 8_192, 16_384, 40_960, 65_536, 120_000, 300_000)
# What a full disk may make of a call. A patch of a file that another one filled up is no problem of the batch.
FAIR = {
    "no_space",
    "state_unwritable",
    "command_failed",
    "nothing_to_undo",
    "already_undone",
    "changed_since",
    "cache_unwritable",
    # The index had no room, so what a read showed is unknown: loud, and nothing is written.
    "unseen_lines",
    "invalid_line_id",
}


@contextmanager
def small_disk(folder: Path):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


class Session:
    """A project on the disk, what its files hold, and calls of every kind that changes them."""

    def __init__(self, disk: Path, rng: random.Random) -> None:
        self.disk, self.rng, self.project = disk, rng, disk / "project"
        (self.project / ".git").mkdir(parents=True)
        self.names = [f"f{number}.txt" for number in range(FILES)]
        for name in self.names:
            (self.project / name).write_bytes(b"".join(b"line %d of a file worth keeping\n" % at for at in range(LINES)))
        self.content = {name: self.read(name) for name in self.names}
        self.step = 0

    def read(self, name: str) -> bytes:
        return (self.project / name).read_bytes()

    def call(self, item: str, **parameters: object) -> dict:
        data = rye.execute(item, parameters, project_path=str(self.project))["data"]
        assert data.get("code") not in ("tool_crashed", "tool_failed"), data
        return data

    def fill(self) -> None:
        """Leave another amount of room than before."""
        filler = self.disk / "filler"
        filler.unlink(missing_ok=True)
        free = os.statvfs(self.disk)
        with suppress(OSError), filler.open("wb") as file:
            file.write(b"x" * max(0, free.f_bavail * free.f_bsize - self.rng.choice(ROOM)))

    def edit(self, name: str) -> dict:
        at = self.rng.randrange(100)
        shown = self.call("rye/file-system/read", file_path=name, offset=at + 1, limit=1)
        found = re.match(r"\[LID:(\w+)\]", shown["output"]) if shown["success"] else None
        if found is None:
            return shown
        change = {"line_id": found[1], "new_content": f"edited {self.step}"}
        done = self.call("rye/file-system/edit_lines", file_path=name, changes=[change])
        if done["success"]:
            lines = self.content[name].split(b"\n")
            lines[at] = b"edited %d" % self.step
            self.content[name] = b"\n".join(lines)
        return done

    def write(self, name: str) -> dict:
        old = self.content[name]
        new = old + b"more\n" * 5_000 if self.rng.random() < 0.3 else old[: 20 * LINES] + b"step %d\n" % self.step
        done = self.call("rye/file-system/write", file_path=name, content=new.decode())
        if done["success"]:
            self.content[name] = new
        return done

    def patch(self, _name: str) -> dict:
        change = {"operation": "insert", "afterLine": 0, "newLines": [f"p{self.step}"]}
        digest = {name: hashlib.sha256(self.content[name]).hexdigest() for name in self.names}
        files = [{"docPath": name, "originalSha256": digest[name], "changes": [change]} for name in self.names]
        done = self.call("rye/workspace/workspace_write_patch", files=files)
        if done["success"]:
            self.content = {name: b"p%d\n" % self.step + data for name, data in self.content.items()}
        return done

    def undo(self, _name: str) -> dict:
        done = self.call("rye/file-system/undo")
        # An undo of a command may stop half way, and then says how far it got; each file is old or new.
        changed = {name for name in self.names if self.read(name) != self.content[name]}
        if done["success"]:
            named = {*done.get("file_paths", ()), done.get("file_path")}
            assert changed <= named, done
            self.content.update({name: self.read(name) for name in changed})
        return done

    def command(self, _name: str) -> dict:
        return self.call("rye/bash/bash", command="echo hi; echo more >> other.txt")

    def search(self, _name: str) -> dict:
        return self.call("rye/file-system/grep", pattern="line 7 ")

    def one(self) -> tuple[str, dict]:
        self.step += 1
        self.fill()
        kind = self.rng.choice([self.edit, self.write, self.patch, self.undo, self.command, self.search])
        return kind.__name__, kind(self.rng.choice(self.names))


def run(disk: Path, steps: int, seed: int) -> Counter:
    """Make so many calls; return how each kind ended."""
    print("seed", seed)
    session = Session(disk, random.Random(seed))
    ends: Counter = Counter()
    for _ in range(steps):
        kind, data = session.one()
        about = (session.step, kind, data)
        code = data.get("code") or "done"
        ends[kind, code] += 1
        assert data["success"] or code in FAIR, about
        # What advises to free space says nothing else in one breath.
        assert "Success" not in data.get("error", ""), about
        assert not any("Nothing was changed" in text for text in data.get("warnings") or ()), about
        for name in session.names:
            assert session.read(name) == session.content[name], about
        left = [name for name in os.listdir(session.project) if name.startswith(".rye-")]
        assert not left, (left, about)
    return ends


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")


@pytest.mark.slow
@pytest.mark.parametrize("same", [True, False], ids=["user space on it", "user space elsewhere"])
def test_calls_on_a_disk_that_is_nearly_full(tmp_path, monkeypatch, rng, same):
    with small_disk(tmp_path / "disk") as disk:
        space = disk / "user" if same else tmp_path / "user"
        space.mkdir()
        monkeypatch.setenv("USER_SPACE", str(space))
        ends = run(disk, times(100), rng.randrange(1 << 30))
    print(sorted(ends.items()))
    assert sum(count for (_, code), count in ends.items() if code == "no_space") > 0, "the disk was never full"
    assert sum(count for (_, code), count in ends.items() if code == "done") > 0
