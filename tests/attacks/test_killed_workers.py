"""A fleet whose workers, and now and then itself, are killed at random: every edit lands once, none is lost, every job has a result.

Each workspace has two edits, of one file and of two; each adds a line of its own. The driver that was killed is started again with
`--resume`. At the end files and journals are read without the fleet's help. The control gives the calls no keys, and doubles edits.
"""

from __future__ import annotations

import importlib
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

if __name__ != "__main__":
    import pytest

import rye
from rye.config import user_dirs
from rye.fleet import adapter
from rye.journal import entries
from support.harness import RUNTIME, descendants, times
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
            one, both, two = (
                {"find": f"{name} {at}\n", "replace": f"{name} {at}\n{word} {at}\n", "file_path": name}
                for name, word in (("a.txt", "one"), ("a.txt", "two"), ("b.txt", "two"))
            )
            calls = [
                {"item_id": EDIT, "parameters": {"file_path": "a.txt", "changes": changes}} for changes in ([one], [both, two])
            ]
            jobs.write(json.dumps({"workspace": f"w/{at}", "calls": calls}) + "\n")


def expected(at: int) -> dict[str, str]:
    return {"a.txt": f"a.txt {at}\ntwo {at}\none {at}\n", "b.txt": f"b.txt {at}\ntwo {at}\n"}


def workers_of(driver: int) -> list[int]:
    """Return the worker processes below a driver."""
    found = []
    for one in descendants(driver):
        with suppress(OSError):
            found += [one] if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes() else []
    return found


def results(folder: Path) -> int:
    out = folder / "out.jsonl"
    return out.read_bytes().count(b"\n") - 1 if out.exists() else 0


def kill_at_random(folder: Path, count: int, seed: int, *, pause: float, control: bool = False) -> Counter:
    """Run the jobs until all have a result; return how many processes were killed."""
    rng, killed, out = random.Random(seed), Counter(), folder / "out.jsonl"
    program = [__file__] if control else ["-m", "rye"]
    start = [sys.executable, *program, "fleet", "run", folder / "jobs.jsonl", "--workers", "2"]
    env = {**os.environ, "PYTHONPATH": f"{RUNTIME}{os.pathsep}{TESTS}"}
    while True:
        more = ["--resume"] if out.exists() else []
        driver = subprocess.Popen([*start, "--out", out, *more], env=env, stderr=subprocess.DEVNULL)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    # The first worker is killed as soon as jobs are under way: on a quick machine they are soon over.
                    driver.wait(rng.uniform(0.1, pause) if killed["worker"] else 0.01)
                    # A driver whose workers were killed as they started is started again.
                    if results(folder) >= count:
                        return killed
                    killed["driver without workers"] += 1
                    break
                # Jobs are under way once there are results. Of the control's workers two deaths are enough.
                if not results(folder) or (control and killed["worker"] == 2):
                    continue
                if killed["worker"] and rng.random() < 0.05:
                    killed["driver"] += 1
                    break
                if found := workers_of(driver.pid):
                    with suppress(OSError):
                        os.kill(rng.choice(found), signal.SIGKILL)
                        killed["worker"] += 1
        finally:
            driver.kill()
            driver.wait(PATIENCE)


def judged(folder: Path, count: int) -> Counter:
    """Read what is there, without the fleet's help; count what is wrong."""
    # Counted even where nothing is wrong, as a control of this function.
    wrong = Counter({"looked at": count})
    head, *found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    seen = Counter(record["job"] for record in found)
    wrong["without a result"] = count - len(seen)
    wrong["with two results"] = sum(number > 1 for number in seen.values())
    for record in found:
        wrong[f"not done: {record['status']}"] += record["status"] != "done"
        place, at = Path(record["workspace"]), record["job"] - 1
        for name, text in expected(at).items():
            there = (place / name).read_text()
            lines = Counter(there.splitlines())
            wrong["lost"] += sum(lines[line] == 0 for line in text.splitlines())
            wrong["doubled"] += sum(lines[line] > 1 for line in text.splitlines())
            wrong["other"] += there != text
        wrong["left over"] += any(path.name not in ("a.txt", "b.txt", ".ai") for path in place.iterdir())
        journal = Path(user_dirs.state_dir(str(place)), "journal")
        keys = Counter(entry.key for path in journal.glob("*.json") if (entry := entries.load(path)) is not None)
        wrong["journal"] += keys != {f"{head['run']}:{at + 1}:0": 1, f"{head['run']}:{at + 1}:1": 2}
    return +wrong


def run_job(workspace: str, calls: list[dict], _key: str, **_named: object) -> dict:
    """The control: make the calls of a job anew each time, without keys."""
    made = [rye.execute(call["item_id"], call["parameters"], project_path=workspace) for call in calls]
    # Killed here, they were made and nobody knows.
    time.sleep(0.2)
    return {"status": "done" if all(one["status"] == "success" for one in made) else "failed", "calls": [], "seconds": 0.2}


if __name__ == "__main__":
    from rye.cli.main import main

    # By its own name: `__main__` is another module in a worker.
    adapter.run_job = importlib.import_module("attacks.test_killed_workers").run_job
    sys.exit(main(sys.argv[1:]))


@pytest.mark.slow
def test_workers_killed_at_random_do_no_edit_twice_and_lose_none(tmp_path, rng):
    count = times(60)
    prepare(tmp_path, count)
    killed = kill_at_random(tmp_path, count, rng.randrange(10**6), pause=3.0)
    print(killed)
    assert judged(tmp_path, count) == {"looked at": count}, killed
    assert killed["worker"], "control: some were killed while jobs ran"


@pytest.mark.slow
def test_control_without_keys_edits_are_made_twice(tmp_path):
    for seed in range(10):
        (folder := tmp_path / str(seed)).mkdir()
        prepare(folder, 20)
        kill_at_random(folder, 20, seed, pause=2.0, control=True)
        if judged(folder, 20)["doubled"]:
            return
    pytest.fail("no edit was doubled in ten runs")
