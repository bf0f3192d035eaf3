"""Diagnostics of one file after a one-line edit: through the tool, and through the bare server, in one run.

    python benchmarks/lsp_latency.py [--edits 10]

Prints, for each language whose server is installed, the cold start and the median of the warm ones, and their ratio.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("USER_SPACE", tempfile.mkdtemp())

import rye
from rye.errors import RyeError
from rye.lsp import queries, servers
from rye.lsp import session as lsp_session
from rye.workspace.workspace import Workspace

LANGUAGES = {
    "a.py": "def f(a: int) -> int:\n    return a\n\n\nf('x')\n" + "".join(f"x{n}: int = f({n})\n" for n in range(200)),
    "a.ts": "function f(a: number): number { return a }\nf('x')\n"
    + "".join(f"const x{n}: number = f({n})\n" for n in range(200)),
    "a.c": '#include <stdio.h>\nint f(int a) { return a; }\nint y = "x";\n'
    + "".join(f"int x{n}(void) {{ return f({n}); }}\n" for n in range(200)),
}


def edited(path: Path, text: str, number: int) -> str:
    """Write the file with one line more or another one at its end; return its text."""
    comment = "#" if path.suffix == ".py" else "//"
    new = f"{text}{comment} edit {number}\n"
    path.write_text(new)
    return new


def bare(root: Path, name: str, text: str, edits: int) -> tuple[float, list[float]]:
    """Return how long the server itself takes, cold and warm (seconds)."""
    with Workspace(str(root)) as ws:
        server = servers.server_for(ws.root, name)
        started = time.perf_counter()
        session = lsp_session.session(ws.root, server, lambda: queries.start_confined(server.argv, ws.root))
        path = os.path.join(ws.root, name)
        times = []
        for number in range(edits + 1):
            if number:
                started = time.perf_counter()
            session.show(path, edited(root / name, text, number))
            session.diagnostics(path, 60)
            session.cold = False
            times.append(time.perf_counter() - started)
    lsp_session.close_all()
    return times[0], times[1:]


def through(root: Path, name: str, text: str, edits: int) -> tuple[float, list[float]]:
    """Return how long calls of the tool take, cold and warm (seconds)."""
    times = []
    for number in range(edits + 1):
        edited(root / name, text, number)
        started = time.perf_counter()
        answer = rye.execute("rye/lsp/lsp", {"file_path": name}, project_path=root)
        times.append(time.perf_counter() - started)
        assert answer["status"] == "success", answer
    lsp_session.close_all()
    return times[0], times[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--edits", type=int, default=10)
    edits = parser.parse_args().edits
    print(f"{'file':6} {'server cold':>12} {'tool cold':>10} {'server warm':>12} {'tool warm':>10} {'ratio':>6}")
    for name, text in LANGUAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / name).write_text(text)
            try:
                cold, warm = bare(root, name, text, edits)
            except RyeError as err:
                print(f"{name:6} {err}", file=sys.stderr)
                continue
            tool_cold, tool_warm = through(root, name, text, edits)
            own, ours = statistics.median(warm), statistics.median(tool_warm)
            print(f"{name:6} {cold:10.2f} s {tool_cold:8.2f} s {own * 1000:9.0f} ms {ours * 1000:7.0f} ms {ours / own:6.2f}")


if __name__ == "__main__":
    main()
