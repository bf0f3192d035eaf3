"""Where the time of a warm call goes: `edit_lines`, `undo`, `grep` and `bash true` step by step, each step without those inside it.

    python benchmarks/call_budget.py [edit_lines undo grep bash …] [--calls 40] [--json]

Real calls are made in one process with each step timed where it stands, so a step finds the processor's caches as it does in use.
For each step: microseconds of the thread's processor and elapsed (waits for the disk and for programs), medians of the calls, and
its share of the processor's time. "The rest" is what stands between the steps; "programs" is what the call started (`rg`, the
sandbox, the command), by the processor's time of ended children.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import itertools
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import rye

LINES = 200
PROGRAMS = "programs that it started"
REST = "the rest"

# (module, attribute) of a function as its callers find it -> the step that it is. A context manager counts as it is entered.
STEPS = {
    ("rye.executor.executor", "prepare"): "find, verify and admit the tool",
    ("rye.items.schema", "Checker.check"): "check the parameters",
    ("rye.executor.executor", "_recovered"): "look for what a crash left",
    ("rye.journal.commit", "recover"): "settle what a crash left",
    ("rye.journal.tree_changes", "settle_undo"): "settle what a crash left",
    ("rye.line_ids.document", "_locked.__enter__"): "lock and open the file",
    ("rye.line_ids.document", "_open"): "read the file, load its index",
    ("rye.edits.edit_files", "_checked"): "find the lines that are named",
    ("rye.edits.apply", "prepare"): "work out text, IDs and diff",
    ("rye.edits.reversals", "prepare"): "work out text, IDs and diff",
    ("rye.journal.journal", "new_entry"): "make the journal's entry",
    ("rye.edits.apply", "syntax_warnings"): "check the syntax",
    ("rye.workspace.workspace", "Workspace.guard"): "ask whether tools may write there",
    ("rye.journal.journal", "_begin"): "write the entry as pending",
    ("rye.workspace.atomic_replace", "stage"): "write the new file, make it durable",
    ("rye.workspace.atomic_replace", "put"): "exchange, compare, make the name durable",
    ("rye.journal.journal", "_finish"): "put the entry into the journal",
    ("rye.line_ids.store", "save"): "store the index",
    ("rye.edits.undo", "_last"): "look for the last change",
    ("rye.journal.history", "History.__init__"): "read the journal's index",
    ("rye.journal.journal", "find"): "load the entry",
    ("rye.filesearch.tree", "opened"): "open the folder",
    ("rye.filesearch.tree", "Tree._records"): "run ripgrep and read it",
    ("rye.filesearch.content_search", "ContentSearch._hits"): "read the lines that match",
    ("rye.filesearch.matches", "look"): "their IDs",
    ("rye.sandbox.sandbox", "effective"): "choose the confinement",
    ("rye.journal.tree_changes", "begin"): "look at the project's tree before",
    ("rye.journal.tree_changes", "end"): "look at it after, record changes",
    ("rye.sandbox.bubblewrap", "_view"): "make the sandbox: what is hidden",
    ("rye.sandbox.bubblewrap", "_shield"): "make the sandbox: what is protected",
    ("rye.sandbox.sandbox", "confine"): "make the sandbox: the rest",
    ("rye.process.autorun.command_check", "begin"): "look at repositories before",
    ("rye.process.autorun.command_check", "end"): "look at repositories after",
    ("rye.call.command_channel", "CommandChannel.__enter__"): "serve `rt` in the command",
    ("rye.process.run", "run"): "start the command and wait for it",
    ("rye.sandbox.policy", "Confined.finish"): "take the sandbox down",
}


class Clock:
    """Times steps; what runs inside another step counts for itself alone."""

    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}
        self._inside: list[list[float]] = []

    def wrap(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is timed as a step."""

        @functools.wraps(function)
        def timed(*args: object, **named: object) -> Any:
            made = self.time(step, function, *args, **named)
            if hasattr(made, "__next__"):
                return self._each(step, made)
            if hasattr(made, "gen"):
                # The block of a context manager is no part of the step.
                enter = type(made).__enter__
                return _Entered(made, lambda: self.time(step, enter, made))
            return made

        return timed

    def _each(self, step: str, made: Iterator[Any]) -> Iterator[Any]:
        missing = object()
        while (one := self.time(step, next, made, missing)) is not missing:
            yield one

    def time(self, step: str, function: Callable[..., Any], *args: object, **named: object) -> Any:
        """Call a function; its time, less that of the steps inside it, is the step's."""
        self._inside.append([0.0, 0.0])
        processor, elapsed = time.thread_time(), time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            whole = time.thread_time() - processor, time.perf_counter() - elapsed
            inside = self._inside.pop()
            known = self.taken.setdefault(step, [0.0, 0.0])
            for at in (0, 1):
                known[at] += whole[at] - inside[at]
                if self._inside:
                    self._inside[-1][at] += whole[at]


class _Entered:
    def __init__(self, made: Any, enter: Callable[[], Any]) -> None:
        self._made, self.__enter = made, enter

    def __enter__(self) -> Any:
        return self.__enter()

    def __exit__(self, *error: Any) -> Any:
        return self._made.__exit__(*error)


def watch(clock: Clock) -> None:
    """Put the clock around every step."""
    from rye.executor import run_code

    # In the caller's thread, so that one clock sees all; what a thread costs is in `read_budget.py`.
    run_code.start = lambda work: work()
    for (module, name), step in STEPS.items():
        *above, last = name.split(".")
        place = functools.reduce(getattr, above, importlib.import_module(module))
        setattr(place, last, clock.wrap(step, getattr(place, last)))


def calls(project: Path) -> dict[str, Callable[[int], object]]:
    """Return what makes one call of each tool; a call gets its number."""
    file = project / "a.py"
    file.write_text("".join(f"value_{number} = compute({number})\n" for number in range(LINES)), encoding="utf-8")

    def call(item_id: str, **parameters: object) -> dict[str, Any]:
        answer = rye.execute(item_id, parameters, project_path=project)
        assert answer["status"] == "success", answer
        return answer["data"]

    texts = (f"changed_{number} = {number}" for number in itertools.count())

    def edit(number: int) -> Callable[[], object]:
        shown = call("rye/file-system/read", file_path="a.py", offset=number % LINES + 1, limit=1, line_ids="short")["output"]
        change = {"line_id": shown.partition("\t")[0], "new_content": next(texts)}
        return lambda: call("rye/file-system/edit_lines", file_path="a.py", changes=[change])

    def undo(number: int) -> Callable[[], object]:
        edit(number)()
        return lambda: call("rye/file-system/undo")

    return {
        "edit_lines": edit,
        "undo": undo,
        "grep": lambda _: lambda: call("rye/file-system/grep", pattern="compute.100", path="."),
        "bash": lambda _: lambda: call("rye/bash/bash", command="true"),
    }


def measure(clock: Clock, prepared: Callable[[int], Callable[[], object]], count: int) -> dict[str, tuple[float, float]]:
    """Return the median microseconds of processor and elapsed of each step of a call."""
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(-5, count):
        call = prepared(number)
        clock.taken.clear()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock.time(REST, call)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime
        for step, (processor, elapsed) in {**clock.taken, PROGRAMS: (used, 0.0)}.items():
            if number >= 0:
                found.setdefault(step, []).append((processor, elapsed))
    return {
        step: tuple(
            round(statistics.median([one[at] for one in taken] + [0.0] * (count - len(taken))) * 1e6, 1) for at in (0, 1)
        )
        for step, taken in found.items()
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", nargs="*", help="of these tools only")
    parser.add_argument("--calls", type=int, default=40, help="calls of each tool (default 40)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    clock = Clock()
    found: dict[str, dict[str, tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = f"{scratch}/user"
        project = Path(scratch, "project")
        (project / ".git").mkdir(parents=True)
        made = calls(project)
        watch(clock)
        for name, prepared in made.items():
            if not args.tools or name in args.tools:
                found[name] = measure(clock, prepared, args.calls)
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, steps in found.items():
        whole = [sum(cost[at] for cost in steps.values()) for at in (0, 1)]
        print(f"\n| {name} | µs of processor | share | µs elapsed |\n|---|---|---|---|")
        for step, (processor, elapsed) in sorted(steps.items(), key=lambda one: -one[1][0]):
            if processor >= 0.5:
                print(f"| {step} | {processor:.0f} | {processor * 100 / whole[0]:.0f}% | {elapsed:.0f} |")
        print(f"| **the whole call** | {whole[0]:.0f} | | {whole[1]:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
