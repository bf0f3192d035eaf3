"""A careless editor, which takes no lock, at one file: every version of it is kept, or we were told.

Many processes of our own are in `test_killed_writers.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.errors import WorkspaceError
from rye.workspace import atomic_replace
from rye.workspace.workspace import Workspace
from support.harness import can_exchange, times

EDIT, READ = "rye/file-system/edit_lines", "rye/file-system/read"
# What a second editor of the same line is told, and tries again after.
RETRY = {"invalid_line_id", "stale_file", "conflict", "locked"}

EDITOR = r"""
import ctypes, json, os, random, sys, time
file, count, seed = sys.argv[1].encode(), int(sys.argv[2]), sys.argv[3]  # and the longest pause
rng = random.Random(seed)
call = ctypes.CDLL(None, use_errno=True).renameat2
fresh = file + b".editor"
displaced = []
for number in range(1, count + 1):
    with open(fresh, "w") as out:
        out.write(f"version {number}\n" + "other text\n" * 20)
    if call(-100, fresh, -100, file, 2):
        sys.exit(f"the file was not there: errno {ctypes.get_errno()}")
    with open(fresh) as old:
        displaced.append(old.readline())
    # A new file each time: truncating the displaced one would change it under whoever still reads it.
    os.unlink(fresh)
    time.sleep(rng.random() * float(sys.argv[4]))
print(json.dumps(displaced))
"""


@contextmanager
def editor(file: Path, count: int, pause: float):
    """Have an editor replace the file `count` times; yields a function that tells whether it still does, and its findings."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", EDITOR, file, str(count), str(seed), str(pause)], stdout=subprocess.PIPE, text=True
    )
    findings: list[str] = []
    reader = threading.Thread(target=lambda: findings.append(child.stdout.read()))
    reader.start()
    try:
        yield lambda: child.poll() is None, findings
        reader.join()
        assert child.wait(60) == 0
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        reader.join()
        child.stdout.close()


def replace_by_rye(project: Path, number: int) -> bool:
    """Change a line under the editor's nose; True when it landed, False when we were told."""
    with Workspace(str(project)) as ws, ws.place("file") as place, ws.file("file") as file:
        old = file.read()
        new = old + b"ours %d\n" % number if number % 3 else old.split(b"\n", 1)[0] + b"\nours\n"
        try:
            atomic_replace.replace(place, new, hashlib.sha256(old).hexdigest(), atomic_replace.temporary_name())
        except WorkspaceError as err:
            if err.code != "conflict":
                raise
            return False
    return True


def replace_by_tool(project: Path, number: int) -> bool:
    answer = rye.execute(READ, {"file_path": "file"}, project_path=project)
    assert answer["status"] == "success" or answer["code"] == "conflict", answer
    if answer["status"] != "success":
        return False
    last = answer["data"]["output"].rsplit("[LID:", 1)[1][:6]
    change = {"after_line_id": last, "new_content": f"ours {number}"}
    answer = rye.execute(EDIT, {"file_path": "file", "changes": [change], "on_stale": "rebase"}, project_path=project)
    assert answer.get("code") in RETRY | {None}, answer
    return answer["status"] == "success"


def replace_naively(project: Path, number: int) -> bool:
    """Check, write, sync, rename, as good editors do."""
    file, fresh = project / "file", project / ".naive"
    old = file.read_bytes()
    if hashlib.sha256(file.read_bytes()).digest() != hashlib.sha256(old).digest():
        return False
    fresh.write_bytes(old + b"ours %d\n" % number)
    fd = os.open(fresh, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    fresh.replace(file)
    return True


def against_an_editor(project: Path, change, count: int, pause: float = 0.004) -> tuple[int, int, int, int]:
    """Return (our changes that landed, that were refused, versions kept as .rye-conflict, versions lost)."""
    project.mkdir(exist_ok=True)
    file = project / "file"
    file.write_text("version 0\n")
    landed = refused = 0
    with editor(file, count, pause) as (at_work, findings):
        while at_work():
            if change(project, landed + refused):
                landed += 1
            else:
                refused += 1
    kept = {path.read_text().split("\n", 1)[0] for path in project.glob("*.rye-conflict")}
    # A version is accounted for when the editor itself replaced it (with or without our change), when it stands, or is kept.
    seen = {line.strip() for line in json.loads(findings[0])} | {file.read_text().split("\n", 1)[0]} | kept
    lost = {f"version {number}" for number in range(count + 1)} - seen
    for path in project.glob("*.rye-conflict"):
        path.unlink()
    assert not [name for name in os.listdir(project) if name.startswith(".rye-")]
    return landed, refused, len(kept), len(lost)


@pytest.fixture
def _exchange(tmp_path):
    if not can_exchange(tmp_path):
        pytest.skip("this file system cannot exchange two names")


@pytest.mark.slow
@pytest.mark.usefixtures("_exchange")
@pytest.mark.parametrize(("change", "count", "pause"), [(replace_by_rye, 400, 0.004), (replace_by_tool, 100, 0.05)])
def test_no_version_of_an_editor_is_lost_unreported(project, change, count, pause):
    landed, refused, kept, lost = against_an_editor(project, change, times(count), pause)
    print(f"{landed} landed, {refused} refused, {kept} kept as .rye-conflict, {lost} lost")
    assert lost == 0
    assert landed > 0


@pytest.mark.usefixtures("_exchange")
def test_checking_before_the_rename_loses_some(project):
    lost = 0
    for _ in range(10):
        lost += against_an_editor(project, replace_naively, 300)[3]
        if lost:
            break
    assert lost > 0
