"""What an edit, an undo, a list and a patch cost as the journal fills up to its bound: processor time, each against an empty one.

`python benchmarks/journal_age.py [--entries 10000]`
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path

ROUNDS = 15


def filled(root: str, count: int) -> None:
    """Put `count` changes of other files into the journal, as the tools write them."""
    from rye.journal import entries, history, journal
    from rye.plain_class import changed
    from rye.workspace.workspace import Workspace

    with Workspace(root) as ws:
        where = history.folder(ws)
        where.mkdir(parents=True, exist_ok=True)
        rows = []
        then = int(time.time() * 1000) - 10_000_000
        for at in range(count):
            splice = entries.Recorded(0, [b"old line\n"], [b"new line\n"], ["a1b2c3"], ["d4e5f6"])
            entry = journal.new_entry(
                ws, "rye/file-system/edit_lines", f"src/old{at}.txt", "0" * 64, "1" * 64, "utf-8", [splice]
            )
            entry = changed(entry, id=f"{then + at:011x}0000")
            path = where / f"{entry.id}.json"
            path.write_bytes(entries.dump(entries.record_of(entry)))
            rows.append(history.row_of(entry, path))
        history.append(where, rows)


def measured(root: str) -> dict[str, float]:
    """Return the median processor time of each call (milliseconds)."""
    import rye

    file = Path(root, "a.txt")
    took: dict[str, list[float]] = {}

    def call(label: str, tool: str, **parameters: object) -> dict:
        begun = time.process_time()
        data = rye.execute(tool, parameters, project_path=root)["data"]
        took.setdefault(label, []).append((time.process_time() - begun) * 1000)
        assert data["success"], data
        return data

    for at in range(ROUNDS):
        name = call("read", "rye/file-system/read", file_path="a.txt")["output"].split("LID:")[1].split("]")[0]
        call("edit", "rye/file-system/edit_lines", file_path="a.txt", changes=[{"line_id": name, "new_content": f"x{at}"}])
        call("undo(list)", "rye/file-system/undo", list=True)
        done = call("undo", "rye/file-system/undo")
        call("redo by id", "rye/file-system/undo", entry_id=done["entry_id"])
        change = {"operation": "insert", "afterLine": 0, "newLines": [f"p{at}"]}
        files = [{"docPath": "a.txt", "originalSha256": hashlib.sha256(file.read_bytes()).hexdigest(), "changes": [change]}]
        made = call("write_patch", "rye/workspace/workspace_write_patch", files=files)["result"]
        call("get_patch_change", "rye/workspace/get_patch_change", id=made["files"][0]["changes"][0]["changeId"])
    return {label: statistics.median(times) for label, times in took.items()}


def main() -> None:
    """Measure both, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", type=int, default=10_000)
    count = parser.parse_args().entries
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        found = []
        for name, fill in (("empty", 0), ("full", count - 5 * ROUNDS)):
            root = Path(folder, name)
            (root / ".git").mkdir(parents=True)
            (root / "a.txt").write_text("one\ntwo\nthree\n")
            measured(str(root))
            if fill:
                filled(str(root), fill)
            found.append(measured(str(root)))
        blocks = sum(path.stat().st_blocks * 512 for path in Path(folder, "user").rglob("*.json"))
    print(f"{count} entries, {blocks / 1e6:.0f} MB on the disk; processor time in ms")
    for label, first in found[0].items():
        print(f"{label:18} {first:8.1f} {found[1][label]:8.1f}   x{found[1][label] / first:.2f}")


if __name__ == "__main__":
    main()
