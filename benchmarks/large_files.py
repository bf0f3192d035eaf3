"""What a window and a one-line edit cost in files of 200, 20,000 and 1,000,000 lines, beside plain tools in the same run.

    python benchmarks/large_files.py [--lines 200 20000 1000000] [--runs 5] [--json]

For each size, in a process of its own: plain reading and splitting of the file; `sed -n` of the same 200 lines; the first read
of a window through the corridor, the same window again (median), a window not shown before; a one-line edit (median) beside
reading, hashing twice, writing and fsyncing the same bytes; the peak memory of the process. Times in milliseconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WINDOW = 200


def main() -> None:
    """Measure each size in a child of its own, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="+", default=[200, 20_000, 1_000_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(args.one, args.runs)))
        return
    rows = []
    for lines in args.lines:
        command = [sys.executable, __file__, "--one", str(lines), "--runs", str(args.runs)]
        print(f"measuring {lines:,} lines …", file=sys.stderr)
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    if args.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)


def show(rows: list[dict[str, float]]) -> None:
    """Print one line a figure, one column a size."""
    width = max(map(len, rows[0]))
    for name in rows[0]:
        print(f"{name:<{width}}  " + "  ".join(f"{row[name]:>12,.1f}" for row in rows))


def measure(lines: int, runs: int) -> dict[str, float]:
    """Return the figures of one size."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        project = Path(folder, "project")
        (project / ".git").mkdir(parents=True)
        path = project / "big.txt"
        make(path, lines)
        # A file whose times are of this very moment is hashed at every read: see `index_store.settled`.
        time.sleep(0.1)
        bench = Bench(project, path, lines)
        plain = median(runs, lambda: path.read_bytes().split(b"\n"))
        sed = median(runs, bench.sed)
        import rye  # noqa: F401 - loaded before the clock starts

        bench.call("read", file_path="small.txt")
        first = timed(lambda: bench.window(lines // 2))
        again = median(runs, lambda: bench.window(lines // 2))
        other = timed(lambda: bench.window(max(1, lines // 4)))
        edit = median(runs, bench.edit)
        copy = median(runs, bench.copy)
        return {
            "lines": lines,
            "file MB": path.stat().st_size / 1e6,
            "plain read+split ms": plain,
            "sed -n ms": sed,
            "first window ms": first,
            "same window again ms": again,
            "another window ms": other,
            "edit one line ms": edit,
            "read+2 hashes+write+fsync ms": copy,
            "edit / plain": edit / copy,
            "peak memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def make(path: Path, lines: int) -> None:
    """Write a text file of about 55 bytes a line."""
    source = random.Random(7)
    with path.open("w") as file:
        for number in range(lines):
            file.write(f"line {number} of the file with {source.random():.12f} in it\n")
    path.with_name("small.txt").write_text("warm\n")


class Bench:
    """The operations that are timed."""

    def __init__(self, project: Path, path: Path, lines: int) -> None:
        self.project, self.path, self.lines = project, path, lines
        self.edits = 0
        self.target = ""

    def call(self, tool: str, **parameters: object) -> dict:
        import rye

        response = rye.execute(f"rye/file-system/{tool}", parameters, project_path=self.project)
        assert response["status"] == "success", response["error"]
        return response["data"]

    def window(self, offset: int) -> None:
        data = self.call("read", file_path="big.txt", offset=max(1, offset - WINDOW), limit=WINDOW)
        self.target = re.findall(r"\[LID:(\w+)\]", data["output"])[-1]

    def edit(self) -> None:
        self.edits += 1
        change = {"line_id": self.target, "new_content": f"changed {self.edits}"}
        data = self.call("edit_lines", file_path="big.txt", changes=[change])
        number = next(row["line_num"] for row in data["lines"] if f"[LID:{row['id']}] changed {self.edits}" in data["output"])
        self.target = next(row["id"] for row in data["lines"] if row["line_num"] == number)

    def sed(self) -> None:
        low = max(1, self.lines // 2 - WINDOW)
        subprocess.run(["sed", "-n", f"{low},{low + WINDOW - 1}p", self.path], check=True, stdout=subprocess.DEVNULL)

    def copy(self) -> None:
        data = self.path.read_bytes()
        hashlib.sha256(data).hexdigest()
        hashlib.sha256(data).hexdigest()
        with self.path.with_name("copy.txt").open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.path.with_name("copy.txt").unlink()


def timed(act) -> float:
    """Return the milliseconds that `act` takes."""
    start = time.perf_counter()
    act()
    return (time.perf_counter() - start) * 1000


def median(runs: int, act) -> float:
    """Return the median milliseconds of several runs."""
    return statistics.median(timed(act) for _ in range(runs))


if __name__ == "__main__":
    main()
