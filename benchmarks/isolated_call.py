"""What it costs to run another signer's tool in a confined process: warm, back to back and cold.

    python benchmarks/isolated_call.py [--calls 100] [--json]

Beside it stand the same tool in this process, as the system's own run, and a Python that is started and does nothing. Medians of
one run, the ways taking turns. "Warm" leaves a pause before each call, in which the waiting child is started; "back to back"
leaves none; "cold" is the first call of a project.
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
from typing import TYPE_CHECKING, Any

import rye
from rye.executor import executor

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.signed_tools import put_tool

if TYPE_CHECKING:
    from collections.abc import Callable

TOOL = 'return {"success": True, "output": params["text"]}'
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
READS = "__permissions__ = ['read']"
# A child that waits was started and has loaded what most tools use.
PAUSE = 0.6


def call(project: Path) -> dict[str, Any]:
    response = rye.execute("my/tool", {"text": "x" * 100}, project_path=project)
    assert response["status"] == "success", response
    return response


def here(project: Path) -> None:
    confined, executor._runs_here = executor._runs_here, lambda tool: True
    try:
        call(project)
    finally:
        executor._runs_here = confined


def measured(folder: Path, calls: int) -> dict[str, Any]:
    """Return medians in milliseconds, and under which sandbox."""
    projects = [folder / f"project{number}" for number in range(calls + 2)]
    for project in projects:
        put_tool(project, "my/tool", TOOL, SCHEMA, more=READS)
    steady, hurried, *fresh = projects
    kind = call(steady)["isolation"]["kind"]
    call(hurried)
    ways: dict[str, Callable[[], object]] = {
        "in this process": lambda: here(steady),
        "confined, warm": lambda: call(steady),
        "confined, back to back": lambda: call(hurried),
        "confined, cold": lambda: call(fresh.pop()),
        "python3 -I -S -c pass": lambda: subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True),
        "python3 -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(calls):
        for name, way in ways.items():
            if name == "confined, back to back":
                way()
            else:
                time.sleep(PAUSE)
            started = time.perf_counter()
            way()
            taken[name].append((time.perf_counter() - started) * 1000)
    return {
        "sandbox": kind,
        "calls": calls,
        "milliseconds": {name: round(statistics.median(times), 2) for name, times in taken.items()},
        "slowest_tenth_from": {name: round(sorted(times)[len(times) * 9 // 10], 2) for name, times in taken.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rye-bench-") as name:
        os.environ["USER_SPACE"] = f"{name}/user"
        found = measured(Path(name), args.calls)
    if args.json:
        print(json.dumps(found))
        return
    print(f"{found['calls']} calls each, sandbox: {found['sandbox']}; medians (and where the slowest tenth begins), ms")
    for way, median in found["milliseconds"].items():
        print(f"{way:26} {median:8.2f}  ({found['slowest_tenth_from'][way]:.2f})")


if __name__ == "__main__":
    main()
