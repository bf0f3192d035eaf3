"""A fleet whose workers, and now and then itself, are killed at random: every edit lands once, none is lost, every job has a result.

Each workspace has two edits, of one file and of two; each edit adds a line of its own. The driver that was killed is started
again with `--resume`. At the end the files and journals are read without the fleet's help:

- lost: a line of a job is in no file. Doubled: it is there twice. Other: a file has something else than its own lines.
- a job has no result or two, or one that is not `done`; a call's key is in the journal less or more than once.

The control gives the calls no keys, and doubles edits.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.journal import entries
from support.harness import RUNTIME, times
from support.waiting import PATIENCE

TESTS = Path(__file__).parents[1]
EDIT = "rye/file-system/edit_lines"


def prepare(folder: Path, count: int) -> None:
    """Make workspaces and their job file."""
    with open(folder / "jobs.jsonl", "w", encoding="utf-8") as jobs:
        for at in range(count):
            place = folder / "w" / str(at)
            place.mkdir(parents=True)
            for name in ("a.txt", "b.txt"):
                (place / name).write_text(f"{name} {at}\n")
            # Found by its text, so that no read has to come before it.
            one = {"find": f"a.txt {at}\n", "replace": f"a.txt {at}\none {at}\n"}
            two = {"find": f"b.txt {at}\n", "replace": f"b.txt {at}\ntwo {at}\n"}
            both = {"find": f"a.txt {at}\n", "replace": f"a.txt {at}\ntwo {at}\n"}
            calls = [
                {"item_id": EDIT, "parameters": {"file_path": "a.txt", "changes": [one]}},
                {"item_id": EDIT, "parameters": {"file_path": "a.txt", "changes": [both, {**two, "file_path": "b.txt"}]}},
            ]
            jobs.write(json.dumps({"workspace": f"w/{at}", "calls": calls}) + "\n")


def expected(at: int) -> dict[str, str]:
    return {"a.txt": f"a.txt {at}\ntwo {at}\none {at}\n", "b.txt": f"b.txt {at}\ntwo {at}\n"}


def _descendants(pid: int) -> list[int]:
    """Return the worker processes below a driver."""
    parents: dict[int, int] = {}
    for one in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(one.parent.name)] = int(one.read_text().rpartition(")")[2].split()[1])
    found, todo = [], [pid]
    while todo:
        below = [child for child, parent in parents.items() if parent in todo]
        found += below
        todo = below
    workers = []
    for one in found:
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes():
                workers.append(one)
    return workers


def command(folder: Path, workers: int, *, control: bool) -> list[str]:
    start = ["-m", "support.fleet_control"] if control else ["-m", "rye"]
    out = folder / "out.jsonl"
    words = ["fleet", "run", str(folder / "jobs.jsonl"), "--workers", str(workers), "--out", str(out)]
    return [sys.executable, *start, *words, *(["--resume"] if out.exists() else [])]


def _results(folder: Path) -> int:
    out = folder / "out.jsonl"
    return out.read_bytes().count(b"\n") - 1 if out.exists() else 0


def kill_at_random(
    folder: Path, count: int, seed: int, *, pause: float, workers: int = 2, seconds: float = 3_600.0, control: bool = False
) -> Counter:
    """Run the jobs until all have a result or the time is over; return how many processes were killed."""
    rng = random.Random(seed)
    killed: Counter = Counter()
    env = {**os.environ, "PYTHONPATH": f"{RUNTIME}{os.pathsep}{TESTS}"}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        driver = subprocess.Popen(command(folder, workers, control=control), env=env, stderr=subprocess.DEVNULL)
        try:
            while time.monotonic() < end:
                with suppress(subprocess.TimeoutExpired):
                    # The first worker is killed as soon as jobs are under way: on a quick machine they are soon over.
                    driver.wait(rng.uniform(0.1, pause) if killed["worker"] else 0.01)
                    # A driver whose workers were killed as they started is started again.
                    if _results(folder) >= count:
                        return killed
                    killed["driver without workers"] += 1
                    break
                # Jobs are under way once there are results.
                if not _results(folder):
                    continue
                if killed["worker"] and rng.random() < 0.05:
                    driver.kill()
                    killed["driver"] += 1
                    break
                if found := _descendants(driver.pid):
                    with suppress(OSError):
                        os.kill(rng.choice(found), signal.SIGKILL)
                        killed["worker"] += 1
        finally:
            driver.kill()
            driver.wait(PATIENCE)
    return killed


def judged(folder: Path, count: int, *, journals: bool = True) -> Counter:
    """Read what is there, without the fleet's help; count what is wrong."""
    wrong: Counter = Counter()
    # Counted even where nothing is wrong, as a control of this function.
    wrong["looked at"] = count
    records = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    run, results = records[0]["run"], records[1:]
    seen = Counter(record["job"] for record in results)
    wrong["without a result"] = count - len(seen)
    wrong["with two results"] = sum(number > 1 for number in seen.values())
    for record in results:
        wrong[f"not done: {record['status']}"] += record["status"] != "done"
        place, at = Path(record["workspace"]), record["job"] - 1
        for name, text in expected(at).items():
            found = (place / name).read_text()
            lines = Counter(found.splitlines())
            for line in text.splitlines():
                wrong["lost"] += lines[line] == 0
                wrong["doubled"] += lines[line] > 1
            wrong["other"] += found != text
        left = sorted(path.name for path in place.iterdir() if path.name not in ("a.txt", "b.txt", ".ai"))
        wrong["left over"] += bool(left)
        if journals:
            where = Path(user_dirs.state_dir(str(place)), "journal")
            keys = Counter(entry.key for path in where.glob("*.json") if (entry := entries.load(path)) is not None)
            wrong["journal"] += keys != {f"{run}:{at + 1}:0": 1, f"{run}:{at + 1}:1": 2}
    return +wrong


@pytest.mark.slow
def test_workers_killed_at_random_do_no_edit_twice_and_lose_none(tmp_path, rng):
    count = times(200)
    prepare(tmp_path, count)
    killed = kill_at_random(tmp_path, count, rng.randrange(10**6), pause=3.0)
    print(killed)
    assert judged(tmp_path, count) == {"looked at": count}, killed
    assert killed["worker"], "control: some were killed while jobs ran"


@pytest.mark.slow
def test_control_without_keys_edits_are_made_twice(tmp_path):
    prepare(tmp_path, 200)
    for seed in range(10):
        kill_at_random(tmp_path, 200, seed, pause=2.0, control=True)
        wrong = judged_files(tmp_path, 200)
        if wrong["doubled"]:
            return
        (tmp_path / "out.jsonl").unlink(missing_ok=True)
    pytest.fail("no edit was doubled in ten runs")


def judged_files(folder: Path, count: int) -> Counter:
    lines = [Counter((folder / "w" / str(at) / "a.txt").read_text().splitlines()) for at in range(count)]
    return Counter(doubled=sum(max(one.values()) > 1 for one in lines))
