"""A server over stdio through many mixed calls: descriptors, threads, memory and the cost of a call must stay where they were.

    python benchmarks/long_server.py [--calls 20000] [--seed N]

Every kind of call is made, with refusals, bad arguments, commands that fail or are cancelled, and background jobs. Prints a row
for each tenth: open descriptors, threads, resident memory (MB), processor time of the server per call (ms), and the median cost of
an `undo` (ms). The last lines are the ratios of the last tenth to the second one, when everything is loaded, and what an `undo`
costs the old server beside a new one on a new project, asked in turn.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.mcp_peer import Peer

SETTLING, UNDOS = 10, 20
LINES = 60
CATEGORIES = ("rye/file-system", "rye/bash", "rye/swe", "rye/workspace")


class Calls:
    """Random calls, each with the share it has in the whole."""

    def __init__(self, server: Peer, project: Path, rng: random.Random) -> None:
        self.server, self.project, self.rng = server, project, rng
        self.answers: Counter[str] = Counter()
        self.jobs = 0

    def make(self) -> None:
        """Make one call of a random kind."""
        kinds = [
            *[self.read] * 20,
            *[self.edit] * 14,
            *[self.search] * 14,
            *[self.listing] * 10,
            *[self.write] * 8,
            *[self.edit_by_number] * 8,
            *[self.undo] * 6,
            *[self.refused] * 12,
            *[self.outside] * 3,
            *[self.command] * 2,
            self.cancelled,
            self.job,
        ]
        self.rng.choice(kinds)()

    def call(self, name: str, **arguments: object) -> dict:
        result = self.server.call(name, arguments)
        self.answers[f"{name} {'refused' if result['isError'] else 'done'}"] += 1
        return result

    def file(self) -> str:
        return f"f{self.rng.randrange(12)}.txt"

    def read(self) -> None:
        name, key = self.rng.choice([("read", "file_path"), ("open_file_chunk", "path"), ("workspace_read_file", "docPath")])
        self.call(name, **{key: self.file()})

    def edit(self) -> None:
        name = self.file()
        shown = self.server.call("read", {"file_path": name, "offset": self.rng.randrange(LINES) + 1, "limit": 1})
        found = shown["structuredContent"]["output"].split("]")[0]
        line_id = found.removeprefix("[LID:").split(":")[-1] if found.startswith("[") else found.split()[0]
        changes = [{"line_id": line_id, "new_content": f"line {self.rng.random()}"}]
        self.call("edit_lines", file_path=name, changes=changes)

    def edit_by_number(self) -> None:
        at = self.rng.randrange(LINES) + 1
        self.call("edit_range", path=self.file(), start_line=at, end_line=at, new_text=f"by number {self.rng.random()}\n")

    def write(self) -> None:
        self.call("write", file_path=self.file(), content="".join(f"line {self.rng.random()}\n" for _ in range(LINES)))

    def undo(self) -> None:
        self.call("undo")

    def search(self) -> None:
        name, arguments = self.rng.choice(
            [("grep", {"pattern": "line 0\\.1"}), ("glob", {"pattern": "*.txt"}), ("rye_search", {"query": "read a file"})]
        )
        self.call(name, **arguments)

    def listing(self) -> None:
        name, arguments = self.rng.choice([("ls", {}), ("undo", {"list": True, "limit": 3}), ("job", {"action": "list"})])
        self.call(name, **arguments)

    def refused(self) -> None:
        name, arguments = self.rng.choice(
            [
                ("read", {"file_path": "missing.txt"}),
                ("read", {"file_path": "../outside"}),
                ("read", {"file_path": ".git/config", "limit": 0}),
                ("edit_lines", {"file_path": "f1.txt", "changes": [{"line_id": "ffffff", "new_content": "x"}]}),
                ("write", {"file_path": ".git/hooks/post-commit", "content": "x"}),
                ("grep", {"pattern": "("}),
                ("ls", {"path": "f1.txt"}),
                ("undo", {"entry_id": "000000000000000"}),
            ]
        )
        self.call(name, **arguments)

    def outside(self) -> None:
        """Have another program change a file, as editors and git do."""
        file = self.project / self.file()
        file.write_text(f"from outside {self.rng.random()}\n" + file.read_text(errors="replace"))

    def command(self) -> None:
        self.call(
            "bash", command=self.rng.choice(["true", "echo out; exit 3", "cat f1.txt", "git status --short", "kill -9 $$"])
        )

    def cancelled(self) -> None:
        number, _ = self.server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 60"}})
        self.server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        self.answers["bash cancelled"] += 1

    def job(self) -> None:
        result = self.call("bash", command="sleep 0.01", background=True)
        self.jobs += not result["isError"]


def state_of(server: Peer) -> tuple[int, int, float]:
    """Return open descriptors, threads, resident MB."""
    folder = Path("/proc", str(server.process.pid))
    return len(os.listdir(folder / "fd")), len(os.listdir(folder / "task")), server.resident()


def seconds(server: Peer) -> float:
    """Return the processor time that the server itself has taken."""
    # In nanoseconds and without its children, which `stat` would count in steps of 10 ms.
    tasks = Path("/proc", str(server.process.pid), "task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def costs_of_undo(*servers: Peer) -> list[float]:
    """Return for each server the median processor time of an `undo` (ms); they are asked in turn."""
    took: list[list[float]] = [[] for _ in servers]
    for number in range(UNDOS):
        for server, costs in zip(servers, took, strict=True):
            done = server.call("write", {"file_path": "undone.txt", "content": f"one\ntwo\n{number}\n"})
            assert not done["isError"], done
            begun = seconds(server)
            done = server.call("undo", {"file_path": "undone.txt"})
            costs.append((seconds(server) - begun) * 1000)
            assert not done["isError"], done
    return [statistics.median(costs) for costs in took]


def started(project: Path) -> Peer:
    """Make a project and start a server for it."""
    (project / ".git").mkdir(parents=True)
    for at in range(12):
        (project / f"f{at}.txt").write_text("".join(f"line {number}\n" for number in range(LINES)))
    return Peer(project, *[word for name in CATEGORIES for word in ("--category", name)])


def measured(project: Path, calls: int, rng: random.Random) -> None:
    """Print (calls so far, descriptors, threads, MB, ms a call, ms an undo) after each tenth, then the ratios."""
    server = started(project)
    rows: list[tuple[int, int, int, float, float, float]] = []
    try:
        random_calls = Calls(server, project, rng)
        print(f"{'calls':>7} {'descr':>6} {'threads':>8} {'MB':>6} {'ms/call':>8} {'ms/undo':>8}")
        first = costs_of_undo(server)[0]
        print(f"{0:7} {'':6} {'':8} {'':6} {'':8} {first:8.2f}", flush=True)
        for tenth in range(1, 11):
            begun = seconds(server)
            for _ in range(calls // 10):
                random_calls.make()
            each = (seconds(server) - begun) / (calls // 10) * 1000
            undo = costs_of_undo(server)[0]
            for _ in range(SETTLING):
                # Cancelled commands end by themselves; their descriptors go with them.
                server.call("bash", {"command": "true"})
            rows.append((calls * tenth // 10, *state_of(server), each, undo))
            print("{:7} {:6} {:8} {:6.1f} {:8.2f} {:8.2f}".format(*rows[-1]), flush=True)
        print(", ".join(f"{name} {count}" for name, count in sorted(random_calls.answers.items())))
        new = started(project.with_name("new"))
        old_undo, new_undo = costs_of_undo(server, new)
        new.close()
    finally:
        server.close()
    early, late = rows[1], rows[-1]
    for at, name in ((1, "descriptors"), (2, "threads"), (3, "memory"), (4, "cost of a call")):
        print(f"{name}: {early[at]:.1f} -> {late[at]:.1f}, x{late[at] / early[at]:.2f}")
    print(f"undo: {new_undo:.2f} ms in a new server, {old_undo:.2f} ms in the old one, x{old_undo / new_undo:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        measured(Path(folder, "project"), args.calls, random.Random(args.seed))


if __name__ == "__main__":
    main()
