"""What a warm call of a program as a tool costs, beside `subprocess.run` of the same program.

    python benchmarks/program_call.py [--calls 40] [--json]

For each program, medians in milliseconds of one run, the ways taking turns, with a pause before each:

    tool         `rye.execute` of a signed tool that runs it: verified, validated, in the sandbox, its output read
    plain        `subprocess.run` of it
    bubblewrap   `subprocess.run` of the sandbox's own command line around it, without our watcher and our reading
    bound        1.5 times plain, and what bubblewrap alone costs more than plain, and 5 ms
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rye
from rye.sandbox import sandbox

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.signed_tools import put, signed, trust_key

if TYPE_CHECKING:
    from collections.abc import Callable

# Long enough for the process that will become the next program to have started.
PAUSE = 0.5
PROGRAMS = {
    "true": ["true"],
    "seq 1 10000": ["seq", "1", "10000"],
    "python3 -S -c pass": ["python3", "-I", "-S", "-c", "pass"],
    "node --version": ["node", "--version"],
    "node -e 0": ["node", "-e", "0"],
}


def put_tool(project: Path, number: int, argv: list[str]) -> str:
    """Write a signed tool that runs a program, and return its id."""
    facts = {
        "version": "1.0.0",
        "tool_type": "program",
        "executor_id": "rye/core/primitives/subprocess",
        "category": "my",
        "description": "Made for a measurement",
        "permissions": ["read", "run"],
        "config": {"command": argv[0], "args": argv[1:]},
    }
    trust_key()
    put(project, f"tools/my/tool{number}.yaml", signed(json.dumps(facts).encode(), suffix=".yaml"))
    return f"my/tool{number}"


def call(project: Path, item_id: str) -> None:
    """Call a tool; anything but success ends the measurement."""
    response = rye.execute(item_id, project_path=project)
    if response["status"] != "success":
        sys.exit(f"{item_id}: {response['error']}")


def plain(argv: list[str]) -> None:
    """Run a program as anybody would."""
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def wrapped(project: Path, argv: list[str]) -> Callable[[], None]:
    """Return what runs a program under the sandbox's own command line, which is made before."""
    program = shutil.which(argv[0]) or argv[0]
    confined = sandbox.confine(
        [program, *argv[1:]], sandbox.Policy(str(project), str(project), write_project=False), limited=False
    )

    def run() -> None:
        try:
            subprocess.run(
                confined.argv,
                check=True,
                env=confined.env,
                pass_fds=confined.fds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        finally:
            confined.close()
            confined.finish()

    return run


def timed(work: Callable[[], None]) -> float:
    """Return how long a call takes (ms)."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def measured(project: Path, calls: int) -> list[dict[str, Any]]:
    """Return one row for each program that is installed."""
    rows = []
    for number, (name, argv) in enumerate(PROGRAMS.items()):
        if not shutil.which(argv[0]):
            continue
        item_id = put_tool(project, number, argv)
        call(project, item_id)
        taken: dict[str, list[float]] = {"tool": [], "plain": [], "bubblewrap": []}
        for _ in range(calls):
            for way, times in taken.items():
                # What the pause is for is done, and nothing of it is in the time.
                time.sleep(PAUSE)
                work = {
                    "tool": lambda: call(project, item_id),
                    "plain": lambda: plain(argv),
                    "bubblewrap": wrapped(project, argv) if way == "bubblewrap" else None,
                }[way]
                assert work is not None, way
                times.append(timed(work))
        row: dict[str, Any] = {"program": name, **{way: round(statistics.median(times), 1) for way, times in taken.items()}}
        row["bound"] = round(1.5 * row["plain"] + max(0.0, row["bubblewrap"] - row["plain"]) + 5, 1)
        rows.append({**row, "met": row["tool"] <= row["bound"]})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        project = Path(folder, "project")
        project.mkdir()
        rows = measured(project, args.calls)
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(" | ".join(rows[0]))
    for row in rows:
        print(" | ".join(map(str, row.values())))


if __name__ == "__main__":
    main()
