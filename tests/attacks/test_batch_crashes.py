"""A batch of 20 files killed at every system call, failed there, and killed at random moments: all old or all new, never mixed."""

from __future__ import annotations

import hashlib
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
from attacks.test_crash_points import ERRORS, FILE_CALLS, calls_between_marks, needs_strace, points_of
from rye.config import user_dirs
from support.harness import Template, times

if TYPE_CHECKING:
    import random

FILES = 20
OLD = {f"d{number % 3}/f{number:02}.txt": f"line {number}\nsecond\nthird\n".encode() for number in range(FILES - 1)}
GONE = "d0/f18.txt"
NEW = {name: data.replace(b"second\n", b"SECOND\nand more\n") for name, data in OLD.items() if name != GONE}
NEW["d3/created.txt"] = b"created\n"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fresh(folder: Path, name: str) -> Path:
    project = folder / name
    for path, data in OLD.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(data)
    return project


def request() -> dict:
    """18 files patched, one created, one deleted."""
    change = {
        "operation": "replace",
        "startLine": 2,
        "endLine": 2,
        "expectedOriginalLines": ["second"],
        "newLines": ["SECOND", "and more"],
    }
    patched = [
        {"docPath": path, "originalSha256": digest(data), "changes": [change]} for path, data in OLD.items() if path in NEW
    ]
    return {
        "files": patched,
        "createFiles": [{"path": "d3/created.txt", "content": "created\n"}],
        "deleteFiles": [{"docPath": GONE, "originalSha256": digest(OLD[GONE])}],
    }


def call(project: Path, item: str, **parameters) -> dict:
    answer = rye.execute(item, parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer


def contents(project: Path) -> dict[str, bytes]:
    """Return every file of the project but the tools' own cache."""
    found = (path for path in project.rglob("*") if path.is_file() and ".ai" not in path.parts)
    return {str(path.relative_to(project)): path.read_bytes() for path in found}


def traced(made: Template, folder: Path, project: Path, *options: str):
    """Run one batch under strace; return (exit code, what the victim says or None, the trace's text)."""
    out, log = folder / "out", folder / "trace"
    out.unlink(missing_ok=True)
    pid = made.victim(job="batch", project=str(project), request=request(), out=str(out))
    tracer = subprocess.Popen(["strace", "-qq", "-o", log, *options, "-p", str(pid)], stderr=subprocess.DEVNULL)
    while re.search(r"^TracerPid:\t0$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE):
        assert tracer.poll() is None, "strace did not attach"
        time.sleep(0.000_5)
    os.kill(pid, signal.SIGCONT)
    code = made.ended()
    tracer.wait(60)
    said = json.loads(out.read_text()) if out.exists() and out.stat().st_size else None
    return code, said, log.read_text()


@dataclass
class Report:
    """What became of the points: how the victim ended, and what stood there after the next call."""

    codes: Counter = field(default_factory=Counter)
    before: Counter = field(default_factory=Counter)
    states: Counter = field(default_factory=Counter)


def which(found: dict[str, bytes]) -> str:
    return "old" if found == OLD else "new" if found == NEW else "mixed"


def torn_record(project: Path) -> bool:
    """Tell whether all that is left is a record cut short: nothing had begun. It is spared for a minute."""
    left = list(Path(user_dirs.commits_dir(str(project))).glob("*"))
    for path in left:
        assert path.suffix == ".prepare", left
        os.utime(path, (0, 0))
    return bool(left)


def settled(project: Path, report: Report) -> str:
    """Hold everything to order after a fault, by the next call, whatever it is; return which content stands there."""
    # Temporary files beside the targets are no mixture yet.
    before = which({path: data for path, data in contents(project).items() if "/.rye-" not in path})
    report.before[before] += 1
    answer = call(project, "rye/file-system/ls")
    assert before != "mixed" or "that was cut off" in answer["warnings"][0], answer
    after = which(contents(project))
    report.states[after] += 1
    assert after != "mixed", sorted(contents(project))
    if torn_record(project):
        assert after == "old"
        call(project, "rye/file-system/ls")
    assert not Path(user_dirs.commits_dir(str(project))).exists()
    listing = call(project, "rye/file-system/undo", list=True)["data"]
    assert listing["total"] == (FILES if after == "new" else 0)
    if after == "new":
        call(project, "rye/file-system/undo")
        assert which(contents(project)) == "old"
    else:
        call(project, "rye/workspace/workspace_write_patch", **request())
        assert which(contents(project)) == "new"
    return after


def gone(project: Path) -> None:
    shutil.rmtree(user_dirs.state_dir(str(project)), ignore_errors=True)
    shutil.rmtree(project)


def all_points(made: Template, folder: Path) -> list[tuple[str, int]]:
    project = fresh(folder, "whole")
    code, said, trace = traced(made, folder, project)
    assert code == 0, said
    assert said["result"]["success"], said
    assert said["leaked"] == 0
    assert settled(project, Report()) == "new"
    gone(project)
    return points_of(trace)


def kill_at(made: Template, folder: Path, number: int, point: tuple[str, int], report: Report) -> None:
    project = fresh(folder, f"kill{number}")
    name, nth = point
    code, _, _ = traced(made, folder, project, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={nth}")
    report.codes["killed" if code == -signal.SIGKILL else "not reached"] += 1
    settled(project, report)
    gone(project)


def fail_at(made: Template, folder: Path, number: int, point: tuple[str, int], error: str, report: Report) -> None:
    project = fresh(folder, f"{error}{number}")
    name, nth = point
    code, said, trace = traced(made, folder, project, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={nth}")
    assert code == 0, (point, code)
    result = (said or {"result": None})["result"]
    assert result is not None, point
    assert "crashed" not in result, (point, result)
    report.codes["failed" if "(INJECTED)" in trace else "not reached"] += 1
    unsettled = result.get("code") == "unsettled"
    after = settled(project, report)
    if not unsettled:
        assert after == ("new" if result["success"] else "old"), (point, error, result)
    report.codes["unsettled" if unsettled else "done" if result["success"] else "refused"] += 1
    gone(project)


# Where a batch changes something.
CHANGING = {"write", "fsync", "renameat2", "renameat", "rename", "unlinkat", "unlink", "mkdir", "rmdir"}


def sample(points: list, rng: random.Random, count: int) -> list:
    """Return some points, three quarters of them where something is changed."""
    sure = [point for point in points if point[0] in CHANGING]
    rest = [point for point in points if point[0] not in CHANGING]
    return rng.sample(sure, min(len(sure), count * 3 // 4)) + rng.sample(rest, min(len(rest), count // 4))


@needs_strace
def test_all_is_durable_before_the_first_file_changes(made, tmp_path):
    project = fresh(tmp_path, "order")
    code, _, trace = traced(made, tmp_path, project, "-y")
    assert code == 0
    lines = calls_between_marks(trace)

    def at(pattern):
        return [number for number, line in enumerate(lines) if re.search(pattern, line)]

    here = re.escape(str(project))
    staged = at(rf"^fsync\(\d+<{here}/d\d/\.rye-[0-9a-f]{{16}}\.tmp>")
    record, decided, done = (
        at(r"^fsync\(\d+<.*\.prepare>"),
        at(r"^rename\(.*\.prepare\", .*\.commit\""),
        at(r"^rename\(.*\.commit\", .*\.done\""),
    )
    exchanged = [number for number in at(r"^renameat2\(") if re.search(rf"{here}/d\d", lines[number])]
    assert len(staged) == FILES - 1
    assert len(exchanged) == FILES
    assert len(record) == len(decided) == len(done) == 1
    assert record[0] < staged[0] < staged[-1] < decided[0] < exchanged[0] < exchanged[-1] < done[0]
    folders = [number for number in at(rf"^fsync\(\d+<{here}/d\d>\)") if staged[-1] < number < decided[0]]
    assert len(folders) == 4


@pytest.mark.slow
@needs_strace
def test_killed_anywhere_all_files_are_old_or_all_new(made, tmp_path, rng):
    points = sample(all_points(made, tmp_path), rng, times(16))
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
def test_failed_anywhere_the_answer_is_true(made, tmp_path, rng):
    points = sample([point for point in all_points(made, tmp_path) if point[0] in FILE_CALLS], rng, times(10))
    report = Report()
    for number, point in enumerate(points):
        error = rng.choice(ERRORS)
        print(point, error)
        fail_at(made, tmp_path, number, point, error, report)
    print(report)
    assert report.codes["failed"] > len(points) // 2


# --- killed at random moments ---

REST = "".join(f"{number:08} the rest stays as it is\n" for number in range(200))


def generations(project: Path) -> set[int]:
    """Return which numbers the files hold; several mean that they are mixed."""
    out = set()
    for number in range(FILES):
        first, _, rest = (project / f"f{number:02}.txt").read_text().partition("\n")
        assert rest == REST
        out.add(int(first.removeprefix("number ")))
    return out


def random_kills(made: Template, folder: Path, kills: int, rng: random.Random, job: str) -> tuple[int, int, int]:
    """Return (kills after which the next call left the files mixed, batches that landed, kills that left them mixed)."""
    project = folder / f"random_{job}"
    project.mkdir()

    def reset(number):
        for at in range(FILES):
            (project / f"f{at:02}.txt").write_text(f"number {number}\n{REST}")

    reset(0)
    mixed = cut = landed = 0
    for _ in range(kills):
        (number,) = generations(project)
        one = digest(f"number {number}\n{REST}".encode())
        digests = {f"f{at:02}.txt": one for at in range(FILES)}
        pid = made.victim(job=job, project=str(project), digests=digests, **{"from": number})
        os.kill(pid, signal.SIGCONT)
        time.sleep(rng.random() * (0.5 if job == "batch_loop" else 0.02))
        os.kill(pid, signal.SIGKILL)
        assert made.ended() == -signal.SIGKILL
        cut += len(generations(project)) > 1
        call(project, "rye/file-system/ls")
        now = generations(project)
        landed += max(now) - number
        if len(now) > 1:
            mixed += 1
            assert job != "batch_loop", now
            reset(max(now))
        elif job == "batch_loop":
            assert not list(project.glob(".rye-*"))
            assert not list(project.glob("*.rye-conflict"))
    return mixed, landed, cut


@pytest.mark.slow
def test_killed_at_random_moments(made, tmp_path, rng):
    mixed, landed, cut = random_kills(made, tmp_path, times(12), rng, "batch_loop")
    print(f"{landed} batches landed, {cut} kills left files that the next call had to settle")
    assert mixed == 0
    mixed, _, _ = random_kills(made, tmp_path, 12, rng, "naive_batch_loop")
    assert mixed > 0
