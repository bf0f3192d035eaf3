"""Where the time of one warm read of 200 lines goes, from the line that asks over MCP to the line that answers.

    python benchmarks/read_budget.py [--rounds 9] [--each 200] [--json]

Each step is timed by itself, in microseconds of processor, medians of the rounds, the steps taking turns; then the whole call in
Python (`rye.execute`), and the whole call over MCP in this process. What the steps leave over is the code between them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import rye
from rye.call import context
from rye.config.settings import Settings
from rye.executor import executor, run_code
from rye.executor.admission import Admission
from rye.line_ids.document import view_lines
from rye.mcp_server.listing import Selection
from rye.mcp_server.protocol import Dispatcher
from rye.mcp_server.service import Service
from rye.workspace import cache
from rye.workspace.workspace import Workspace

ITEM = "rye/file-system/read"


def steps(project: str) -> dict[str, Callable[[], object]]:
    """Return the steps of a call by name, each of which can be made again and again."""
    ready = executor.prepare(ITEM, project).ready
    given = {"file_path": "a.py", "line_ids": "short"}
    checked = ready.checker.check(given)
    workspace = Workspace(project)
    # As within a call: one open root and one reading of the settings for all that follows.
    context._current.set(context.changed(context.current(), workspace=workspace, settings=Settings()))
    code, digest, kept = ready.plan.code, ready.tool.verified.digest, ready.plan.kept

    def judged() -> object:
        admission = Admission.of(project)
        return admission.tool(admission.find("tool", ITEM))

    def locked() -> None:
        with cache.locked(workspace, b"a.py"):
            pass

    def handed() -> None:
        done = threading.Lock()
        done.acquire()
        run_code.start(done.release)
        done.acquire()

    def run() -> dict:
        return run_code.call(code, ITEM, digest, dict(checked), project, "execute", "", kept)

    return {
        "read all that decides, compare it with the last call's": lambda: executor.prepare(ITEM, project),
        "(read and judge it anew, after a change)": judged,
        "check the parameters": lambda: ready.checker.check(given),
        "confine the path": lambda: workspace.check("a.py"),
        "hand over to a thread and back": handed,
        "(run the tool's text from its start, once a process)": lambda: exec(code, {}),
        "lock the file": locked,
        "open it, load its index, read it": lambda: view_lines(project, "a.py", lambda _: None),
        "the tool as a whole": run,
    }


def whole(project: str) -> dict[str, Callable[[], object]]:
    """Return a whole call in Python, and one from the line of a request to that of its answer."""
    answers: list[bytes] = []
    dispatcher = Dispatcher(Service(project, Selection()), answers.append)

    def line(method: str, **params: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()

    def take(request: bytes) -> None:
        answers.clear()
        work = dispatcher.receive(request)
        if work is not None:
            work()
        assert b'"result"' in answers[0]

    client = {"name": "bench", "version": "1"}
    take(line("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client))
    take(line("tools/list"))
    call = line("tools/call", name="read", arguments={"file_path": "a.py"})
    parameters = {"file_path": "a.py", "line_ids": "short"}
    return {
        "`rye.execute`": lambda: rye.execute(ITEM, parameters, project_path=project),
        "from line to line over MCP": lambda: take(call),
    }


def measured(ways: dict[str, Callable[[], object]], rounds: int, each: int) -> dict[str, float]:
    """Return the median microseconds of processor of each way."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start = time.process_time()
            for _ in range(each):
                way()
            if turn:
                taken[name].append((time.process_time() - start) * 1e6 / each)
    return {name: round(statistics.median(times), 1) for name, times in taken.items()}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each step (default 9)")
    parser.add_argument("--each", type=int, default=200, help="calls in a turn (default 200)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = f"{scratch}/user"
        project = Path(scratch, "project")
        project.mkdir()
        text = "".join(f'    value_{number} = compute(alpha, beta={number}, gamma="text {number}")\n' for number in range(200))
        (project / "a.py").write_text(text, encoding="utf-8")
        ways = whole(str(project))
        for way in ways.values():
            way()
        time.sleep(0.1)
        found = measured(ways, args.rounds, args.each) | measured(steps(str(project)), args.rounds, args.each)
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    print("| step | µs of processor |\n|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
