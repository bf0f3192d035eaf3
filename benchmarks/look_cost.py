"""What a command costs with the looks before and after it: `bash true` at several sizes of a project, beside one walk over it.

    python benchmarks/look_cost.py [--rounds 40] [--files 500 20000] [--before FOLDER] [--sandbox bubblewrap|landlock]
                                   [--no-record] [--json]

Medians of milliseconds. A walk is `os.scandir` over all folders with a stat of each entry. `look` is what the call takes longer
than with a project that holds one file. `--before` names a checkout of another version with its own `.venv`: the two take turns,
and `ratio` compares them. `--no-record` leaves out the record of changes (`record.commands`), which reads the state of every file. The
repository of the project has one commit; nothing changes between the calls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PER_FOLDER = 20
# Runs in a process of each version: one line in names a project, one line out says how long a call there took.
CALLER = """
import sys, time, rye
if {landlock}:
    from rye.sandbox import bubblewrap
    bubblewrap.ability = lambda: bubblewrap.Ability(why_not="switched off")
for line in sys.stdin:
    began = time.perf_counter()
    answer = rye.execute("rye/bash/bash", {{"command": "true", "sandbox": "require" if not {landlock} else "auto"}}, project_path=line.strip())
    taken = time.perf_counter() - began
    assert answer["status"] == "success", answer
    print(taken * 1000, flush=True)
"""


def made(root: Path, files: int) -> str:
    """Make a project with so many files, 20 in each folder."""
    for number in range(files):
        folder = root / f"src{number // (PER_FOLDER * 10)}/part{number // PER_FOLDER % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    return str(root)


def walk(root: str) -> float:
    """Return how long a walk with a stat of each entry takes (ms)."""
    began = time.perf_counter()
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return (time.perf_counter() - began) * 1000


class Version:
    """A process of one version that makes calls when it is told to."""

    def __init__(self, python: str, runtime: str, space: str, *, landlock: bool) -> None:
        env = {**os.environ, "PYTHONPATH": runtime, "USER_SPACE": space}
        code = CALLER.format(landlock=landlock)
        self.process = subprocess.Popen([python, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, root: str) -> float:
        """Return how long one call took (ms)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{root}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> int:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--files", type=int, nargs="+", default=[500, 20_000])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--sandbox", choices=["bubblewrap", "landlock"], default="bubblewrap")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    landlock = given.sandbox == "landlock"
    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        if given.no_record:
            (base / "now/.ai/config").mkdir(parents=True)
            (base / "now/.ai/config/rye.yaml").write_text("record: {commands: false}\n")
        versions = {"now": Version(sys.executable, str(here / "runtime"), f"{base}/now", landlock=landlock)}
        if given.before:
            python = str(given.before / ".venv/bin/python")
            versions["before"] = Version(python, str(given.before / "runtime"), f"{base}/before", landlock=landlock)
        roots = {count: made(base / f"p{count}", count) for count in (1, *given.files)}
        taken: dict[tuple[str, int], list[float]] = {}
        for number in range(given.rounds + 1):
            for count, root in roots.items():
                measured = {name: version.call(root) for name, version in versions.items()}
                measured["walk"] = walk(root)
                # The first call of a project also makes the record of what the user had.
                names = measured if number else {f"first {name}": value for name, value in measured.items()}
                for name, value in names.items():
                    taken.setdefault((name, count), []).append(value)
        for version in versions.values():
            version.process.stdin.close()
            version.process.wait()
    rows = []
    for count in given.files:
        row = {"files": count, **{name: statistics.median(taken[name, count]) for name in (*versions, "first now", "walk")}}
        row["look"] = row["now"] - statistics.median(taken["now", 1])
        row["walks"] = row["look"] / row["walk"]
        if "before" in row:
            row["ratio"] = row["now"] / row["before"]
            row["added walks"] = (row["now"] - row["before"]) / row["walk"]
        rows.append({name: round(value, 2) for name, value in row.items()})
    if given.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print("  ".join(f"{name} {value}" for name, value in row.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
