"""An edit killed or failed at every system call: the file is the old or the new one, and the next call finds order."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rye
from rye.config import user_dirs
from support.harness import Template, times

if TYPE_CHECKING:
    import random

OLD = "".join(f"line {number}\n" for number in range(40))
NEW = OLD.replace("line 7\n", "changed\n")
# Failing these is a fault that disks, quotas and signals make; failing mmap or futex tests the interpreter.
FILE_CALLS = frozenset(
    [
        "openat",
        "openat2",
        "read",
        "readv",
        "pread64",
        "write",
        "fsync",
        "renameat2",
        "renameat",
        "rename",
        "fchmod",
        "fchown",
        "unlinkat",
        "unlink",
        "mkdir",
        "mkdirat",
        "newfstatat",
        "getdents64",
        "lseek",
        "flock",
        "faccessat2",
        "flistxattr",
        "readlinkat",
        "utimensat",
        "ioctl",
    ]
)
ERRORS = ("EIO", "ENOSPC", "EINTR")


def strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    probe = subprocess.run(
        ["strace", "-o", "/dev/null", "-e", "inject=getppid:error=EIO", "true"], capture_output=True, check=False
    )
    return probe.returncode == 0


needs_strace = pytest.mark.skipif(not strace_works(), reason="needs strace and ptrace (Debian package strace)")


def call(project: Path, tool: str, **parameters) -> dict:
    return rye.execute(f"rye/file-system/{tool}", parameters, project_path=project)


def ids_of(project: Path) -> list[str]:
    """Read the file and return its line IDs, which are unique."""
    answer = call(project, "read", file_path="f.txt")
    assert answer["status"] == "success", answer
    ids = re.findall(r"^\[LID:([0-9a-f]+)\]", answer["data"]["output"], re.MULTILINE)
    assert len(ids) == len(set(ids)) == len((project / "f.txt").read_text().splitlines())
    return ids


def fresh(folder: Path, name: str) -> tuple[Path, list[str]]:
    project = folder / name
    project.mkdir()
    (project / "f.txt").write_text(OLD)
    return project, ids_of(project)


def traced(made: Template, folder: Path, project: Path, ids: list[str], *options: str, job: str = "edit", short: bool = False):
    """Run one edit under strace; return (exit code, what the victim says or None, the trace's text)."""
    out, log = folder / "out", folder / "trace"
    out.unlink(missing_ok=True)
    pid = made.victim(
        job=job, project=str(project), changes=[{"line_id": ids[7], "new_content": "changed"}], out=str(out), short=short
    )
    tracer = subprocess.Popen(["strace", "-qq", "-o", log, *options, "-p", str(pid)], stderr=subprocess.DEVNULL)
    while re.search(r"^TracerPid:\t0$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE):
        assert tracer.poll() is None, "strace did not attach"
        time.sleep(0.000_5)
    os.kill(pid, signal.SIGCONT)
    code = made.ended()
    tracer.wait(60)
    said = json.loads(out.read_text()) if out.exists() and out.stat().st_size else None
    return code, said, log.read_text()


def calls_between_marks(trace: str) -> list[str]:
    lines = trace.split("\n")
    marks = [at for at, line in enumerate(lines) if line.startswith("getpriority(")]
    return lines[marks[0] + 1 : marks[1]]


def points_of(trace: str) -> list[tuple[str, int]]:
    """Return every system call of the edit as (name, n-th of that name since the tracer came)."""
    lines = trace.split("\n")
    marks = [at for at, line in enumerate(lines) if line.startswith("getpriority(")]
    seen: Counter = Counter()
    points = []
    for at, line in enumerate(lines):
        name = line.split("(", 1)[0]
        if not name.isidentifier():
            continue
        seen[name] += 1
        if marks[0] <= at <= marks[1]:
            points.append((name, seen[name]))
    return points


@dataclass
class Report:
    """What became of the points."""

    states: Counter = field(default_factory=Counter)
    codes: Counter = field(default_factory=Counter)


def settled(project: Path, landed_unrecorded: bool = False) -> str:
    """Hold everything to order after a fault; return which content stood there."""
    content = (project / "f.txt").read_text()
    assert content in (OLD, NEW), "torn"
    listing = call(project, "undo", list=True)
    assert listing["status"] == "success", listing
    rest = [name for name in os.listdir(project) if name.startswith(".rye-") or name.endswith(".rye-conflict")]
    assert not rest, rest
    pending = list((Path(user_dirs.state_dir(str(project))) / "journal").glob("pending/*"))
    for path in pending:
        # A record cut short: the change had not begun. It is spared for a minute, as someone may be writing it.
        assert not path.read_bytes().endswith(b"}")
        os.utime(path, (0, 0))
    assert call(project, "undo", list=True)["status"] == "success"
    assert not any(path.exists() for path in pending)
    assert (project / "f.txt").read_text() == content
    entries = listing["data"]["entries"]
    assert len(entries) == (content == NEW and not landed_unrecorded), (content == NEW, entries)
    ids = ids_of(project)
    if entries:
        assert call(project, "undo")["status"] == "success"
        assert (project / "f.txt").read_text() == OLD
    else:
        answer = call(project, "edit_lines", file_path="f.txt", changes=[{"line_id": ids[3], "new_content": "goes on"}])
        assert answer["status"] == "success", answer
    ids_of(project)
    return "new" if content == NEW else "old"


def kill_at(made: Template, folder: Path, number: int, point: tuple[str, int], report: Report) -> None:
    project, ids = fresh(folder, f"kill{number}")
    name, nth = point
    code, _, _ = traced(made, folder, project, ids, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={nth}")
    report.codes["killed" if code == -signal.SIGKILL else "not reached"] += 1
    report.states[settled(project)] += 1
    shutil.rmtree(project)


def fail_at(made: Template, folder: Path, number: int, point: tuple[str, int], error: str, report: Report) -> None:
    project, ids = fresh(folder, f"{error}{number}")
    name, nth = point
    options = ("-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={nth}")
    code, said, trace = traced(made, folder, project, ids, *options)
    about = (name, nth, error, said)
    report.codes["failed" if "(INJECTED)" in trace else "not reached"] += 1
    assert code == 0, about
    assert "crashed" not in said["result"], said["result"].get("crashed")
    assert said["leaked"] == 0, about
    landed = (project / "f.txt").read_text() == NEW
    assert said["result"]["success"] == landed, about
    if not landed:
        assert said["result"]["error"], about
        report.codes[said["result"]["code"]] += 1
    unrecorded = landed and any("Not recorded" in warning for warning in said["result"]["warnings"])
    report.states[settled(project, unrecorded)] += 1
    shutil.rmtree(project)


def all_points(made: Template, folder: Path) -> list[tuple[str, int]]:
    project, ids = fresh(folder, "whole")
    code, said, trace = traced(made, folder, project, ids)
    assert code == 0, said
    assert said == {"result": said["result"], "leaked": 0}
    assert settled(project) == "new"
    return points_of(trace)


# Where an edit changes something: these are never left out of a sample.
CHANGING = {"write", "fsync", "renameat2", "renameat", "rename", "unlinkat", "unlink", "fchmod", "flock", "mkdir", "mkdirat"}


def sample(points: list, rng: random.Random, count: int) -> list:
    sure = [point for point in points if point[0] in CHANGING]
    rest = [point for point in points if point[0] not in CHANGING]
    return sure + rng.sample(rest, min(len(rest), max(0, count - len(sure))))


@needs_strace
def test_an_edit_is_durable_before_it_is_visible(made, tmp_path):
    project, ids = fresh(tmp_path, "order")
    code, _, trace = traced(made, tmp_path, project, ids, "-y")
    assert code == 0
    here = re.escape(str(project))
    aside = rf"{here}/\.rye-[0-9a-f]{{16}}\.tmp"
    steps = [
        rf"openat\(\d+<{here}>, .*\.rye-[0-9a-f]{{16}}\.tmp.*O_EXCL",
        rf"write\(\d+<{aside}>",
        rf"fchmod\(\d+<{aside}>",
        rf"fsync\(\d+<{aside}>",
        r"renameat2\(.*RENAME_EXCHANGE\) = 0",
        rf"fsync\(\d+<{here}>\) += 0",
        r"unlinkat\(.*\.rye-[0-9a-f]{16}\.tmp",
    ]
    lines = calls_between_marks(trace)
    found = [next((at for at, line in enumerate(lines) if re.match(step, line)), None) for step in steps]
    assert None not in found, (found, lines)
    assert found == sorted(found), found
    # Nothing is written to it after the fsync.
    assert not [line for line in lines[found[3] :] if re.match(rf"write\(\d+<{aside}>", line)]


@pytest.mark.slow
@needs_strace
def test_killed_anywhere_the_file_is_old_or_new(made, tmp_path, rng):
    points = sample(all_points(made, tmp_path), rng, times(60))
    print(points)
    report = Report()
    for number, point in enumerate(points):
        kill_at(made, tmp_path, number, point, report)
    print(report)
    assert report.codes["killed"] > len(points) * 3 // 4
    assert report.states["old"] > 0
    assert report.states["new"] > 0


@pytest.mark.slow
@needs_strace
@pytest.mark.parametrize("error", ERRORS)
def test_failed_anywhere_the_answer_is_true(made, tmp_path, rng, error):
    every = [point for point in all_points(made, tmp_path) if point[0] in FILE_CALLS]
    points = sample(every, rng, times(40))
    print(points)
    report = Report()
    for number, point in enumerate(points):
        fail_at(made, tmp_path, number, point, error, report)
    print(report)
    assert report.codes["failed"] > len(points) * 3 // 4
    assert report.states["old"] > 0 or error == "EINTR"


@needs_strace
def test_writing_in_place_tears_the_file(made, tmp_path):
    torn = 0
    for nth in range(1, 4):
        for name in ("write", "close", "lseek"):
            project, ids = fresh(tmp_path, f"{name}{nth}")
            traced(
                made, tmp_path, project, ids, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={nth}", job="naive"
            )
            torn += (project / "f.txt").read_text() not in (OLD, NEW, OLD.replace("line 0\n", "changed\n"))
    assert torn > 0


def test_short_writes_change_nothing(made, tmp_path):
    project, ids = fresh(tmp_path, "short")
    pid = made.victim(job="edit", project=str(project), changes=[{"line_id": ids[7], "new_content": "changed"}], short=True)
    os.kill(pid, signal.SIGCONT)
    assert made.ended() == 0
    assert settled(project) == "new"


# --- killed at random moments ---

MIDDLE = "".join(f"{number:08} the middle stays as it is\n" for number in range(3_000))


def whole(text: str) -> bool:
    first, _, rest = text.partition("\n")
    return rest.startswith(MIDDLE) and rest[len(MIDDLE) :] == first + "\n" and first.startswith("number ")


def random_kills(made: Template, folder: Path, kills: int, rng: random.Random, job: str) -> tuple[int, int, int]:
    """Return (torn files, edits that landed, temporary files that the next call removed)."""
    project = folder / f"random_{job}"
    project.mkdir()
    file = project / "f.txt"
    file.write_text(f"number 0\n{MIDDLE}number 0\n")
    torn = swept = 0
    begun = None
    for _ in range(kills):
        ids = re.findall(r"\[LID:([0-9a-f]+)\]", call(project, "read", file_path="f.txt", limit=1)["data"]["output"])
        ids += re.findall(r"\[LID:([0-9a-f]+)\]", call(project, "read", file_path="f.txt", offset=-1)["data"]["output"])
        number = int(re.match(r"number (\d+)", file.read_text())[1])
        begun = number if begun is None else begun
        changes = [{"line_id": one, "new_content": f"number {number + 1}"} for one in ids]
        pid = made.victim(job=job, project=str(project), changes=changes, **{"from": number + 1})
        os.kill(pid, signal.SIGCONT)
        time.sleep(rng.random() * 0.12)
        os.kill(pid, signal.SIGKILL)
        assert made.ended() == -signal.SIGKILL
        text = file.read_text()
        if not whole(text):
            torn += 1
            assert job == "naive_loop", text[:200]
            file.write_text(f"number 0\n{MIDDLE}number 0\n")
        swept += sum(name.startswith(".rye-") for name in os.listdir(project))
        if job == "loop":
            _hold_to_order(project, text)
    return torn, int(re.match(r"number (\d+)", file.read_text())[1]) - (begun or 0), swept


def _hold_to_order(project: Path, text: str) -> None:
    import hashlib

    from rye.journal import journal
    from rye.journal.history import History
    from rye.workspace.workspace import Workspace

    assert call(project, "undo", list=True, limit=1)["status"] == "success"
    assert not [name for name in os.listdir(project) if name.startswith(".rye-") or name.endswith(".rye-conflict")]
    pending = (Path(user_dirs.state_dir(str(project))) / "journal").glob("pending/*")
    assert not [path for path in pending if path.read_bytes().endswith(b"}")]
    assert (project / "f.txt").read_text() == text
    with Workspace(str(project)) as ws:
        newest = next((journal.find(ws, row.id) for row in History(ws)), None)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert text.startswith("number 0\n") if newest is None else newest.after == digest


@pytest.mark.slow
def test_killed_at_random_moments(made, tmp_path, rng):
    torn, landed, swept = random_kills(made, tmp_path, times(30), rng, "loop")
    print(f"{landed} edits landed, {swept} temporary files swept")
    assert torn == 0
    assert landed > 0
    torn, _, _ = random_kills(made, tmp_path, 30, rng, "naive_loop")
    assert torn > 0
