"""Trace warm calls of five tools: how often it passes from module to module, and what it computes more than once.

    python benchmarks/call_trace.py [--verbose] [tool …]

`changed_outside` is a `read` after another program changed the file: its line IDs are reconciled, which aligns the old lines
with the new ones. An edit says itself what it replaces, so it aligns only where old and new lines have some in common.

For each tool the call is made several times in one process, and the last one is traced with `sys.setprofile`. A tool file
counts as a module. The columns: calls between modules; modules entered; settings read; workspaces opened; lines aligned;
indexes saved; trust decisions loaded. `--verbose` also lists the pairs of modules and how many calls pass between them. The last
line is what it costs to hand work over to a waiting thread and to hear that it is done: each call does so once.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import rye
from rye.executor import run_code

RUNTIME = str(Path(rye.__file__).parent) + "/"
# Column -> functions (module, name) whose calls it counts.
COUNTED = {
    "settings": {("config.settings", "_user_file")},
    "workspaces": {("workspace.workspace", "_Root.__init__")},
    "alignments": {("line_ids.diff", "align")},
    "index saves": {("line_ids.store", "save"), ("line_ids.store", "note_shown")},
    "trust loads": {("trust.decisions", "load")},
}


class Trace:
    """What one call did: pairs of modules with the number of calls between them, and how often each function was called."""

    def __init__(self):
        self.pairs = Counter()
        self.counts = Counter()
        self.modules = set()

    def __call__(self, frame, event, _argument):
        if event != "call":
            return
        here = _module(frame)
        if here is None or frame.f_code.co_name.startswith("<"):
            return
        self.modules.add(here)
        back = frame.f_back
        while back is not None and back.f_code.co_name.startswith("<") and _module(back) is not None and back is not frame:
            # A comprehension or a lambda belongs to the function around it.
            back = back.f_back
        caller = _module(back) if back is not None else None
        self.counts[here, frame.f_code.co_qualname] += 1
        if caller not in (here, None):
            self.pairs[caller, here] += 1


def _module(frame):
    """Return a frame's module below `rye`, the ID of a tool file, or None for everything else."""
    name = frame.f_code.co_filename
    if name.startswith(RUNTIME):
        return name.removeprefix(RUNTIME).removesuffix(".py").replace("/", ".")
    return name if name.startswith("<") and "/" in name else None


def traced(work):
    """Return the trace of `work()` in all threads."""
    trace = Trace()
    # Only new threads are traced: none may be reused.
    run_code._free.clear()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    run_code._free.clear()
    return trace


def _call(item, **parameters):
    answer = rye.execute(item, parameters, project_path=str(Path.cwd()))
    if answer["status"] != "success":
        sys.exit(f"{item}: {answer['error']}")
    return answer["data"]


def _prepare():
    Path("a.py").write_text("".join(f"line {at}\n" for at in range(200)))
    _call("rye/file-system/read", file_path="a.py")


def _read():
    # The times of a file just written prove nothing yet: the first read after that stores that they do.
    time.sleep(0.1)
    _call("rye/file-system/read", file_path="a.py", limit=20)
    return lambda: _call("rye/file-system/read", file_path="a.py", limit=20)


def _edit():
    lines = _call("rye/file-system/read", file_path="a.py", limit=5)["output"].splitlines()
    line_id = lines[2].split("]")[0].removeprefix("[LID:")
    text = f"changed from {line_id}"
    return lambda: _call("rye/file-system/edit_lines", file_path="a.py", changes=[{"line_id": line_id, "new_content": text}])


def _changed_outside():
    path = Path("a.py")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["another program's line\n", *lines[1:]]) + "and one more\n")
    return lambda: _call("rye/file-system/read", file_path="a.py", limit=20)


def _undo():
    _edit()()
    return lambda: _call("rye/file-system/undo")


CALLS = {
    "read": _read,
    "changed_outside": _changed_outside,
    "edit_lines": _edit,
    "undo": _undo,
    "bash": lambda: lambda: _call("rye/bash/bash", command="echo hi"),
    "grep": lambda: lambda: _call("rye/file-system/grep", pattern="line 1", path="."),
}


def main(words):
    verbose = "--verbose" in words
    chosen = [word for word in words if word != "--verbose"] or list(CALLS)
    header = ["tool", "calls between modules", "modules", *COUNTED]
    print(" | ".join(header))
    for name in chosen:
        for _ in range(2):
            CALLS[name]()()
        trace = traced(CALLS[name]())
        counts = [sum(trace.counts[one] for one in functions) for functions in COUNTED.values()]
        print(" | ".join(map(str, [name, sum(trace.pairs.values()), len(trace.modules), *counts])))
        if verbose:
            for (caller, callee), count in trace.pairs.most_common():
                print(f"    {count:4} {caller} -> {callee}")
            for (module, function), count in trace.counts.most_common():
                print(f"    {count:4}   {module}.{function}")


def hand_over():
    """Return the seconds from giving work to a waiting thread until its end is heard."""
    ended = threading.Event()
    begun = time.perf_counter()
    run_code.start(ended.set)
    ended.wait()
    return time.perf_counter() - begun


if __name__ == "__main__":
    import os

    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        Path(folder, "user").mkdir()
        Path(folder, "project", ".git").mkdir(parents=True)
        os.chdir(f"{folder}/project")
        _prepare()
        main(sys.argv[1:])
        print(f"hand-over to a thread and back: {statistics.median(hand_over() for _ in range(2_000)) * 1e6:.1f} µs")
