"""Recording and taking back what commands change, killed at every system call: old, new or a recorded truth, never mixed.

Most system calls change nothing that outlives the process. So each case runs once from call to call, and before each call all
that lies in the project and in the user's space is compared with how it was before the last one: names, inodes, modes, times of
the last change and contents. Where nothing differs, a kill leaves the same as one call later: locks and memory go with the process,
which has no thread and no child there. One call of each such row, chosen at random, is killed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import rye
from rye.config import user_dirs
from rye.journal import tree_changes
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace
from support.harness import Template, times
from support.stepper import Point, Stepper, between_marks, fingerprint, works
from support.tree_photo import Photo, assert_same, change_many, photo

LINES = [f"line {number}\n" for number in range(30)]
REQUEST = {"limit": 20, "offset": 1, "list": False, "dry_run": False}


def undo(project: Path, **parameters: object) -> dict:
    answer = rye.execute("rye/file-system/undo", parameters, project_path=project)
    assert answer["data"] is not None, answer
    assert answer["data"].get("code") != "tool_crashed", answer
    return answer["data"]


def undone(project: Path, **parameters: object) -> dict:
    data = undo(project, **parameters)
    assert data["success"], (parameters, data)
    return data


def listed(project: Path) -> list[dict]:
    return undone(project, list=True, limit=100)["entries"]


def look(project: Path) -> None:
    with Workspace(str(project)) as ws, running_commands.running(ws.fd) as token:
        tree_changes.end(ws, tree_changes.begin(ws, token, "rye/bash/bash", "true"))


def recorded(project: Path, change: Callable[[], object]) -> str:
    with Workspace(str(project)) as ws, running_commands.running(ws.fd) as token:
        recording = tree_changes.begin(ws, token, "rye/bash/bash", "a command")
        change()
        found = tree_changes.end(ws, recording)
    assert found.entry_id, found
    return found.entry_id


def fresh(folder: Path, name: str) -> Path:
    project = folder / name
    project.mkdir()
    (project / "a.txt").write_text("".join(LINES))
    (project / "gone.txt").write_text("gone\n")
    (project / "moved.txt").write_bytes(b"\0moved")
    (project / "x.sh").write_text("echo\n")
    (project / "x.sh").chmod(0o640)
    look(project)
    return project


def everything_back(project: Path, then: Photo, about: object) -> None:
    """Take back every recorded change, the newest first: all that happened must be in the record."""
    for _ in range(20):
        left = [one for one in listed(project) if one["undone_by"] is None and one["undoes"] is None]
        if not left:
            break
        undone(project, entry_id=left[0]["entry_id"])
    assert_same(photo(project), then, about)


class Case(NamedTuple):
    """What is killed.

    Attributes:
        prepare: brings a project to where the victim starts; returns the victim's order.
        check: holds everything to order after the kill; returns which state stood there.
    """

    prepare: Callable[[Path], dict]
    check: Callable[[Path, object], str]


# --- a command that is recorded ---


def check_record(project: Path, about: object) -> str:
    now = photo(project)
    look(project)
    assert_same(photo(project), now, about)
    found = listed(project)
    everything_back(project, ORIGINAL, about)
    assert all(one["tool"] == "rye/bash/bash" for one in found), (about, found)
    return "new" if "twin.txt" in now else "old" if now == ORIGINAL else "part, recorded"


# --- something taken back ---


def undo_case(prepare: Callable[[Path], tuple[dict, Photo, Photo, str]]) -> Case:
    """`prepare` returns the undo's parameters, the states before and after it, and the entry that it takes back."""
    states: dict[str, tuple[Photo, Photo, str]] = {}

    def prepared(project: Path) -> dict:
        request, old, new, entry = prepare(project)
        states[str(project)] = (old, new, entry)
        return {"job": "undo", "request": {**REQUEST, **request}}

    def check(project: Path, about: object) -> str:
        old, new, entry = states.pop(str(project))
        found = listed(project)
        # The list goes on with what was cut off, or drops it.
        now = photo(project)
        assert now in (old, new), (
            about,
            "mixed",
            undo(project, list=True, limit=3),
            {path for path in now.keys() | old.keys() if now.get(path) != old.get(path)},
        )
        by = [one["entry_id"] for one in found if one["undoes"] == entry and one["undone_by"] is None]
        assert len(by) == (now == new), (about, found)
        look(project)
        assert listed(project) == found, (about, listed(project), found)
        if by:
            undone(project, entry_id=by[0])
            assert_same(photo(project), old, about)
        else:
            again = undo(project, **request_of(found, entry))
            assert again["success"], (about, again)
        return "new" if by else "old"

    def request_of(found: list[dict], entry: str) -> dict:
        return {"entry_id": entry}

    return Case(prepared, check)


def whole_undo(project: Path) -> tuple[dict, Photo, Photo, str]:
    old = photo(project)
    entry = recorded(project, lambda: change_many(project))
    return {"entry_id": entry}, photo(project), old, entry


def redo(project: Path) -> tuple[dict, Photo, Photo, str]:
    request, old, new, _ = whole_undo(project)
    by = str(undone(project, **request)["entry_id"])
    return {"entry_id": by}, new, old, by


def part_undo(project: Path) -> tuple[dict, Photo, Photo, str]:
    text = (project / "a.txt").read_bytes()
    request, old, _, entry = whole_undo(project)
    return {**request, "file_path": "a.txt"}, old, with_file(old, text), entry


def merged_undo(project: Path) -> tuple[dict, Photo, Photo, str]:
    """One hunk out of two, in a file that changed elsewhere since."""
    texts = {at: f"changed {at}\n" for at in (3, 12)}
    file = project / "a.txt"
    entry = recorded(project, lambda: file.write_text("".join(texts.get(at, line) for at, line in enumerate(LINES))))
    recorded(project, lambda: file.write_text(file.read_text() + "later\n"))
    wanted = "".join(texts[at] if at == 3 else line for at, line in enumerate(LINES)) + "later\n"
    old = photo(project)
    return {"entry_id": entry, "file_path": "a.txt", "hunks": [2]}, old, with_file(old, wanted.encode()), entry


def with_file(state: Photo, content: bytes) -> Photo:
    return {**state, "a.txt": ("file", state["a.txt"][1], content, *state["a.txt"][3:])}


def hunk_of(change: Callable[[Path], str]) -> Callable[[Path], tuple[dict, Photo, Photo, str]]:
    """One hunk out of two of an edit, or of a written file."""

    def prepared(project: Path) -> tuple[dict, Photo, Photo, str]:
        entry = change(project)
        old = photo(project)
        wanted = "".join("changed 3\n" if at == 3 else line for at, line in enumerate(LINES))
        return {"entry_id": entry, "hunks": [2]}, old, with_file(old, wanted.encode()), entry

    return prepared


def call(project: Path, tool: str, **parameters: object) -> dict:
    answer = rye.execute(f"rye/file-system/{tool}", {"file_path": "a.txt", **parameters}, project_path=project)
    assert answer["status"] == "success", answer
    return answer["data"]


def edited(project: Path) -> str:
    ids = re.findall(r"^\[LID:([0-9a-f]+)\]", call(project, "read")["output"], re.MULTILINE)
    changes = [{"line_id": ids[at], "new_content": f"changed {at}"} for at in (3, 12)]
    return str(call(project, "edit_lines", changes=changes)["entry_id"])


def written(project: Path) -> str:
    content = "".join(f"changed {at}\n" if at in (3, 12) else line for at, line in enumerate(LINES))
    return str(call(project, "write", content=content)["entry_id"])


# --- a file in folders that are made for it ---


def written_in_folders(project: Path) -> tuple[dict, Photo, Photo, str]:
    before = photo(project)
    entry = str(call(project, "write", file_path="n/e/w.txt", content="new\n")["entry_id"])
    return {"entry_id": entry}, photo(project), before, entry


def written_in_folders_again(project: Path) -> tuple[dict, Photo, Photo, str]:
    request, old, new, _ = written_in_folders(project)
    by = str(undone(project, **request)["entry_id"])
    return {"entry_id": by}, new, old, by


def patched_in_folders(project: Path) -> dict:
    """Two files in one new folder, as one change."""
    new = photo(project)
    files = [{"path": f"n/e/{name}", "content": "new\n"} for name in ("v.txt", "w.txt")]
    answer = rye.execute("rye/workspace/workspace_write_patch", {"createFiles": files}, project_path=project)
    assert answer["status"] == "success", answer
    batch = answer["data"]["result"]["batchId"]
    PATCHED[str(project)] = photo(project), new, batch
    return {"job": "undo", "request": {**REQUEST, "batchId": batch}}


def check_patched(project: Path, about: object) -> str:
    old, new, batch = PATCHED.pop(str(project))
    found = listed(project)
    now = photo(project)
    assert now in (old, new), (about, "mixed", now.keys() ^ old.keys(), found)
    by = {one["batchId"] for one in found if one["undoes"] is not None and one["undone_by"] is None}
    assert len(by) == (now == new), (about, found)
    undone(project, batchId=by.pop() if by else batch)
    assert_same(photo(project), old if now == new else new, about)
    return "new" if now == new else "old"


PATCHED: dict[str, tuple[Photo, Photo, str]] = {}


# --- the store's bound ---


def full(project: Path) -> dict:
    """A store that passes its bound with the next command: old contents are dropped, and the changes that need them."""
    for number in range(4):
        recorded(
            project, lambda number=number: (project / f"big{number % 2}").write_bytes(random.Random(number).randbytes(40_000))
        )
    settings = Path(os.environ["USER_SPACE"], ".ai/config/rye.yaml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("record: {max_bytes: 150000}\n")
    return {"job": "record"}


def check_full(project: Path, about: object) -> str:
    now = photo(project)
    look(project)
    store = Path(user_dirs.state_dir(str(project))) / "tree/contents.sqlite"
    assert store.stat().st_size <= 150_000 + 65_536, about
    recorded(project, lambda: (project / "after").write_text("after\n"))
    everything = listed(project)
    undone(project, entry_id=everything[0]["entry_id"])
    assert_same(photo(project), now, about)
    for one in everything[1:]:
        answer = undo(project, entry_id=one["entry_id"])
        assert answer["success"] or answer["code"] in ("changed_since", "already_undone", "unknown_entry"), (about, answer)
    Path(os.environ["USER_SPACE"], ".ai/config/rye.yaml").unlink()
    return "new" if "twin.txt" in now else "old"


# --- an edit of ours beside a command that runs ---


RUNNING: dict[str, tree_changes.Recording] = {}


def beside(project: Path) -> dict:
    with Workspace(str(project)) as ws:
        RUNNING[str(project)] = tree_changes.begin(ws, running_commands.begin(ws.fd), "rye/bash/bash", "a command")
    (project / "a.txt").write_text("".join(LINES) + "by the command\n")
    (project / "gone.txt").unlink()
    ids = re.findall(r"^\[LID:([0-9a-f]+)\]", call(project, "read")["output"], re.MULTILINE)
    return {"job": "edit_a", "changes": [{"line_id": ids[3], "new_content": "changed"}]}


def check_beside(project: Path, about: object) -> str:
    listed(project)
    now = photo(project)
    with Workspace(str(project)) as ws:
        tree_changes.end(ws, RUNNING.pop(str(project)))
    assert_same(photo(project), now, about)
    made = b"changed\n" in now["a.txt"][2]
    found = [(one["tool"], one["file_path"]) for one in listed(project)]
    edits = [one for one in found if one[0] == "rye/file-system/edit_lines"]
    # Each change has one author.
    assert len(edits) == made, (about, found)
    everything_back(project, ORIGINAL, about)
    return "new" if made else "old"


CASES = {
    "a command": Case(lambda _: {"job": "record"}, check_record),
    "a command beside an edit": Case(beside, check_beside),
    "undo": undo_case(whole_undo),
    "redo": undo_case(redo),
    "undo of one file": undo_case(part_undo),
    "undo of a hunk, merged": undo_case(merged_undo),
    "undo of a hunk of an edit": undo_case(hunk_of(edited)),
    "undo of a hunk of a written file": undo_case(hunk_of(written)),
    "undo of a file in new folders": undo_case(written_in_folders),
    "redo of a file in new folders": undo_case(written_in_folders_again),
    "undo of files in new folders": Case(patched_in_folders, check_patched),
    "the store's bound": Case(full, check_full),
}
ORIGINAL: Photo = {}


def followed(made: Template, folder: Path, project: Path, order: dict) -> Stepper:
    """Start a victim and follow it; it goes on with the first step that is asked for."""
    out = folder / "out"
    out.unlink(missing_ok=True)
    pid = made.victim(project=str(project), out=str(out), **order)
    stepper = Stepper(pid)
    os.kill(pid, signal.SIGCONT)
    return stepper


def rows(made: Template, folder: Path, name: str) -> list[list[Point]]:
    """Run a case whole; return its system calls in rows: before each call of one row the same stands on the disk."""
    case = CASES[name]
    project = fresh(folder, "whole")
    ORIGINAL.clear()
    ORIGINAL.update(photo(project))
    stepper = followed(made, folder, project, case.prepare(project))
    out: list[list[Point]] = []
    last = b""
    for point in between_marks(stepper.entries()):
        assert len(os.listdir(f"/proc/{stepper.pid}/task")) == 1
        now = fingerprint(project, os.environ["USER_SPACE"])
        if now != last:
            out.append([])
        out[-1].append(point)
        last = now
    assert made.ended() == 0
    said = json.loads((folder / "out").read_text())["result"]
    assert "crashed" not in said, said["crashed"]
    assert case.check(project, "whole") == "new"
    shutil.rmtree(project)
    return out


def kill_at(made: Template, folder: Path, name: str, point: Point) -> tuple[bool, str]:
    """Kill a case before one of its system calls; return whether it came there, and which state stood there."""
    case = CASES[name]
    project = fresh(folder, "killed")
    stepper = followed(made, folder, project, case.prepare(project))
    for one in between_marks(stepper.entries()):
        if one == point:
            stepper.kill()
    killed = made.ended() == -signal.SIGKILL
    state = case.check(project, (name, point))
    shutil.rmtree(project)
    return killed, state


def run(made: Template, folder: Path, name: str, chosen: Callable[[list[list[Point]]], list[Point]]) -> Counter:
    """Kill one case at the chosen ones of its system calls; return how often each state stood there."""
    states: Counter = Counter()
    found = rows(made, folder, name)
    for point in chosen(found):
        killed, state = kill_at(made, folder, name, point)
        states["killed" if killed else "not reached"] += 1
        states[state] += 1
    states["system calls"], states["states on the disk"] = sum(map(len, found)), len(found)
    return states


@pytest.mark.slow
@pytest.mark.skipif(not works(), reason="needs ptrace")
@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere(made, tmp_path, rng, name):
    states = run(made, tmp_path, name, lambda found: [rng.choice(row) for row in rng.sample(found, min(len(found), times(20)))])
    print(states)
    # Some of the states are those before the victim began, and after it ended.
    assert states["killed"] > min(10, states["states on the disk"] // 2)
