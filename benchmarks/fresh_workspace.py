"""What the first call in a new folder costs: a read and an edit, beside the same two calls in a folder that is known.

    python benchmarks/fresh_workspace.py [--folders 100] [--rounds 9] [--json]

Processor and elapsed milliseconds of both calls together, medians of the rounds, in one process whose modules are loaded. A
new folder gets a state folder, a secret, locks, a line index and a journal at these calls. The edit waits for the disk, so its
elapsed time is mostly the disk's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import rye

TEXT = "".join(f"line {number} of a file that is read\n" for number in range(50))


def made(root: Path, name: str) -> Path:
    """Make a folder with one file."""
    folder = root / name
    folder.mkdir()
    (folder / "a.py").write_text(TEXT, encoding="utf-8")
    return folder


def both(folder: Path, number: int) -> None:
    """Read the file and edit one of its lines."""
    read = rye.execute("rye/file-system/read", {"file_path": "a.py", "line_ids": "short"}, project_path=folder)
    address = read["data"]["output"].split("\n")[3].partition("\t")[0]
    change = {"line_id": address, "new_content": f"changed = {number}"}
    answer = rye.execute("rye/file-system/edit_lines", {"file_path": "a.py", "changes": [change]}, project_path=folder)
    assert answer["status"] == "success", answer


def cost(folders: list[Path]) -> tuple[float, float]:
    """Return the processor and elapsed milliseconds of both calls, the mean over folders."""
    processor, elapsed = time.process_time(), time.perf_counter()
    for number, folder in enumerate(folders):
        both(folder, number)
    return tuple(
        (end - start) * 1000 / len(folders) for start, end in ((processor, time.process_time()), (elapsed, time.perf_counter()))
    )


def measure(root: Path, folders: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the medians of new folders and of one that is known."""
    known = made(root, "known")
    for number in range(20):
        both(known, -number)
    found: dict[str, list[tuple[float, float]]] = {"new": [], "known": []}
    for turn in range(rounds):
        found["new"].append(cost([made(root, f"new{turn}-{number}") for number in range(folders)]))
        found["known"].append(cost([known] * folders))
    return {
        name: {
            "processor_ms": round(statistics.median(one for one, _ in costs), 2),
            "elapsed_ms": round(statistics.median(one for _, one in costs), 2),
        }
        for name, costs in found.items()
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folders", type=int, default=100, help="new folders a round (default 100)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds (default 9)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = f"{scratch}/user"
        found = measure(Path(scratch), args.folders, args.rounds)
    added = round(found["new"]["processor_ms"] - found["known"]["processor_ms"], 2)
    if args.json:
        print(json.dumps({**found, "added_processor_ms": added}, indent=2))
        return 0
    for name, costs in found.items():
        print(f"{name:6} {costs['processor_ms']:7.2f} ms processor, {costs['elapsed_ms']:7.2f} ms elapsed")
    print(f"a new folder costs {added:.2f} ms of processor more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
