"""What an edit, a read and an undo cost in one file that is edited very often, and what many changes in one call cost.

    python benchmarks/one_file.py [--edits 20000] [--changes 5000] [--seed N]

One process edits random lines of a file of 200 lines by their IDs. Beside it a fresh copy of the file stands in a project of its
own, and every measurement asks both in turn, so that a busy machine does not look like age. Prints processor time in ms.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rye

LINES, ROUNDS = 200, 15
ROW = re.compile(r"^\[LID:([0-9a-z]+)\]", re.MULTILINE)
READ, EDIT, UNDO = (f"rye/file-system/{name}" for name in ("read", "edit_lines", "undo"))


def call(project: Path, tool: str, **parameters: Any) -> dict[str, Any]:
    """Return the result of a call that is to succeed."""
    data: dict[str, Any] = rye.execute(tool, parameters, project_path=str(project))["data"]
    assert data["success"], data
    return data


def line_id(project: Path, number: int) -> str:
    """Return the ID of a line, read alone."""
    found = ROW.search(call(project, READ, file_path="a.txt", offset=number, limit=1)["output"])
    assert found
    return found[1]


def edit(project: Path, number: int, text: str) -> None:
    """Give a line another text."""
    call(project, EDIT, file_path="a.txt", changes=[{"line_id": line_id(project, number), "new_content": text}])


def fresh(project: Path, lines: int = LINES) -> Path:
    """Make a project with one file."""
    (project / ".git").mkdir(parents=True)
    (project / "a.txt").write_text("".join(f"line {number}\n" for number in range(lines)))
    return project


def timed(work: Callable[[], object]) -> float:
    """Return the processor time of some work (ms)."""
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


def compared(old: Path, new: Path, rng: random.Random) -> dict[str, tuple[float, float]]:
    """Return the medians of each kind of call in the new project and in the old one."""
    took: dict[str, tuple[list[float], list[float]]] = {}
    for at in range(ROUNDS):
        for which, project in enumerate((new, old)):
            number = rng.randrange(LINES) + 1
            name = line_id(project, number)
            changes = [{"line_id": name, "new_content": f"measured {at} {number}"}]
            window = {"file_path": "a.txt", "offset": number, "limit": 5}
            for what, tool, parameters in (
                ("edit", EDIT, {"file_path": "a.txt", "changes": changes}),
                ("read of 5 lines", READ, window),
                ("undo", UNDO, {}),
            ):
                both = took.setdefault(what, ([], []))
                both[which].append(timed(lambda project=project, tool=tool, given=parameters: call(project, tool, **given)))
    return {what: (statistics.median(first), statistics.median(second)) for what, (first, second) in took.items()}


def many_changes(project: Path, count: int) -> float:
    """Return what one call with `count` changes costs (ms), every second line of a file whose IDs are all known."""
    fresh(project, 4 * count)
    names: list[str] = []
    offset: int | None = 1
    while offset:
        page = call(project, READ, file_path="a.txt", offset=offset, limit=2_000)
        names += ROW.findall(page["output"])
        offset = page.get("next_offset")
    changes = [{"line_id": name, "new_content": f"new {at}"} for at, name in enumerate(names[: 2 * count : 2])]
    return timed(lambda: call(project, EDIT, file_path="a.txt", changes=changes))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    print(f"seed {args.seed}; processor time in ms")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        old, new = fresh(Path(folder, "old")), fresh(Path(folder, "new"))
        compared(old, new, rng)
        for done in range(1, args.edits + 1):
            edit(old, rng.randrange(LINES) + 1, f"edit {done}")
            if done in (args.edits // 4, args.edits // 2, args.edits):
                index = sum(path.stat().st_size for path in (old / ".ai/cache").rglob("*.json"))
                print(f"after {done} edits ({index / 1024:.0f} KB of line IDs):")
                for what, (first, last) in compared(old, new, rng).items():
                    print(f"  {what:16} {first:8.2f} {last:8.2f}   x{last / first:.2f}", flush=True)
        for count in (args.changes // 50, args.changes // 5, args.changes):
            print(f"{count} changes in one call, {4 * count} lines: {many_changes(Path(folder, str(count)), count):.0f}")


if __name__ == "__main__":
    main()
