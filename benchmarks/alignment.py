"""How often the alignment pairs the very lines that `git diff --patience` calls unchanged, over real history.

    PYTHONPATH=runtime python benchmarks/alignment.py --repo PATH [--repo PATH ...] [--pairs 2000] [--json]

For every file modified along the first-parent history (newest first) it compares the pairs (old line, new
line) that git leaves unchanged with those of `rye.line_ids.diff`, in three ways: without sliding hunks, with
sliding but without indentation, and in full. Lines are split at the newline byte.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from rye.line_ids import diff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Blocks = list[tuple[int, int, int]]

GIT_LOG = [
    *("-c", "core.quotePath=true", "-c", "diff.noprefix=false", "-c", "diff.indentHeuristic=true"),
    *("log", "--first-parent", "-m", "-p", "--patience", "--full-index", "--no-renames", "--diff-filter=M"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--format=commit %H"),
]
HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Change(NamedTuple):
    """A file before and after one commit, and git's opinion of it."""

    path: str
    old_blob: bytes
    new_blob: bytes
    hunks: tuple[tuple[int, int, int, int], ...]
    """Changed runs: old start, old end, new start, new end (from 0, ends exclusive)."""


class Outcome(NamedTuple):
    """Lines that git calls unchanged, and those of them paired otherwise by each way."""

    path: str
    unchanged: int
    missed: dict[str, int]


def changes(repo: str) -> Iterator[Change]:
    """Stream the modified text files of the history, newest first."""
    with subprocess.Popen(["git", "-C", repo, *GIT_LOG], stdout=subprocess.PIPE) as log:
        assert log.stdout is not None
        path, blobs, hunks = "", (b"", b""), []
        for line in log.stdout:
            if line.startswith((b"diff --git ", b"commit ")):
                if hunks:
                    yield Change(path, *blobs, tuple(hunks))
                path, hunks = line.rstrip().decode().rpartition(" b/")[2], []
            elif line.startswith(b"index "):
                old, _, new = line.split()[1].partition(b"..")
                blobs = (old, new)
            elif match := HUNK.match(line):
                hunks += body_runs(log.stdout, match)
        if hunks:
            yield Change(path, *blobs, tuple(hunks))
        log.kill()


def body_runs(body: Iterator[bytes], header: re.Match[bytes]) -> list[tuple[int, int, int, int]]:
    """Read the body of one hunk; return the runs of changed lines in it."""
    old, old_count, new, new_count = (1 if g is None else int(g) for g in header.groups())
    i, j = old - (old_count > 0), new - (new_count > 0)
    old_end, new_end = i + old_count, j + new_count
    runs, start = [], None
    while i < old_end or j < new_end:
        mark = next(body)[:1]
        if mark in b"-+":
            start = start or (i, j)
            i, j = i + (mark == b"-"), j + (mark == b"+")
        elif mark == b" ":
            if start:
                runs.append((start[0], i, start[1], j))
            start = None
            i, j = i + 1, j + 1
    if start:
        runs.append((start[0], i, start[1], j))
    return runs


class Blobs:
    """Reads blobs through one `git cat-file --batch`."""

    def __init__(self, repo: str) -> None:
        self.cat = subprocess.Popen(["git", "-C", repo, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def lines(self, blob: bytes) -> list[bytes]:
        """Return the lines of a blob without their newline."""
        self.cat.stdin.write(blob + b"\n")
        self.cat.stdin.flush()
        header = self.cat.stdout.readline().split()
        data = self.cat.stdout.read(int(header[2]) + 1)[:-1]
        pieces = data.split(b"\n")
        return pieces if pieces[-1] else pieces[:-1]

    def close(self) -> None:
        self.cat.stdin.close()
        self.cat.stdout.close()
        self.cat.wait()


def git_partners(change: Change, old_size: int) -> list[int]:
    """Return for every old line the new line that git calls the same, or -1."""
    partners, i, j = [], 0, 0
    for old_start, old_end, new_start, new_end in [*change.hunks, (old_size, old_size, 0, 0)]:
        partners += range(j, j + old_start - i)
        partners += [-1] * (old_end - old_start)
        i, j = old_end, new_end
        assert new_start in (0, j - (new_end - new_start))
    return partners


def partners(blocks: Blocks, old_size: int) -> list[int]:
    """Return the same from blocks."""
    found = [-1] * old_size
    for i, j, length in blocks:
        found[i : i + length] = range(j, j + length)
    return found


def unslid(old: list[bytes], new: list[bytes], indent: Callable[[int], int | None]) -> Blocks:
    """Align without the slide pass."""
    budget = diff.Budget(10_000_000 + len(old) + len(new))
    return diff._blocks(*diff._changed(old, new, budget))


WAYS: dict[str, Callable[..., Blocks]] = {
    "unslid": unslid,
    "slid, no indentation": lambda old, new, indent: diff.align(old, new),
    "in full": diff.align,
}


def judge(change: Change, blobs: Blobs, spent: Counter[str]) -> Outcome:
    """Compare every way with git on one change."""
    before, after = blobs.lines(change.old_blob), blobs.lines(change.new_blob)
    old, new = ([hashlib.sha256(line).digest() for line in lines] for lines in (before, after))
    expected = git_partners(change, len(old))
    missed = {}
    for way, aligned in WAYS.items():
        started = time.perf_counter()
        blocks = aligned(old, new, lambda j: diff.indentation(after[j]))
        spent[way] += time.perf_counter() - started
        ours = partners(blocks, len(old))
        missed[way] = sum(g >= 0 and g != o for g, o in zip(expected, ours, strict=True))
    return Outcome(change.path, sum(g >= 0 for g in expected), missed)


def measure(repo: str, pairs: int, spent: Counter[str]) -> Iterator[Outcome]:
    """Judge the newest `pairs` changes of a repository, each pair of blobs once."""
    blobs, seen = Blobs(repo), set()
    for change in changes(repo):
        if len(seen) == pairs:
            break
        if (key := (change.old_blob, change.new_blob)) not in seen:
            seen.add(key)
            yield judge(change, blobs, spent)
    blobs.close()


def summary(outcomes: list[Outcome], spent: Counter[str]) -> dict[str, object]:
    """Add up, line-weighted, overall and by kind of file; name the worst files."""
    unchanged = sum(o.unchanged for o in outcomes)
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[PurePosixPath(outcome.path).suffix or "(none)"].append(outcome)
    worst = sorted(outcomes, key=lambda o: o.missed["in full"], reverse=True)[:10]
    return {
        "pairs": len(outcomes),
        "unchanged_lines": unchanged,
        "missed_lines": {way: sum(o.missed[way] for o in outcomes) for way in WAYS},
        "same_percent": {way: share(outcomes, way) for way in WAYS},
        "identical_files": {way: sum(not o.missed[way] for o in outcomes) for way in WAYS},
        "seconds": {way: round(spent[way], 2) for way in WAYS},
        "kinds": {
            kind: {"pairs": len(some), "unchanged_lines": sum(o.unchanged for o in some), **{w: share(some, w) for w in WAYS}}
            for kind, some in sorted(by_kind.items(), key=lambda item: -len(item[1]))[:10]
        },
        "worst": [{"path": o.path, "unchanged": o.unchanged, "missed": o.missed["in full"]} for o in worst],
    }


def share(outcomes: list[Outcome], way: str) -> float:
    """Return the percentage of git's unchanged lines that are paired alike."""
    unchanged = sum(o.unchanged for o in outcomes)
    return 100 - 100 * sum(o.missed[way] for o in outcomes) / max(unchanged, 1)


def show(result: dict) -> None:
    """Print the table."""
    print(f"{result['pairs']} changes, {result['unchanged_lines']} lines that git calls unchanged")
    print(f"{'way':<22}{'same pair':>12}{'missed':>8}{'files alike':>13}{'seconds':>9}")
    for way in WAYS:
        row = (result[name][way] for name in ("same_percent", "missed_lines", "identical_files", "seconds"))
        print("{:<22}{:>11.4f}%{:>8}{:>13}{:>9}".format(way, *row))
    for kind, some in result["kinds"].items():
        print(f"  {kind:<10}{some['pairs']:>6} changes{some['unchanged_lines']:>9} lines{some['in full']:>10.4f}%")
    for row in result["worst"]:
        if row["missed"]:
            print(f"  worst: {row['missed']} of {row['unchanged']} in {row['path']}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", required=True, help="a git repository, bare or not; repeatable")
    parser.add_argument("--pairs", type=int, default=2000, help="changes to take from each repository")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spent: Counter[str] = Counter()
    outcomes = [outcome for repo in options.repo for outcome in measure(repo, options.pairs, spent)]
    result = summary(outcomes, spent)
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
