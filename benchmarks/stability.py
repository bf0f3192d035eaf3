"""How many lines keep their ID when another program replaces a file, over real history and through the tools.

    PYTHONPATH=runtime python benchmarks/stability.py --repo PATH [--repo PATH ...] [--pairs 400] [--seed 1] [--form short] [--json]

For each before/after pair of a git repository: read `before` in as many pages as it takes, put `after` in its place, read
again. Counted are the lines that `git diff --patience` calls unchanged and those of them that kept their ID, IDs that two
lines share, and kept IDs on a line whose text, white space aside, is another.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pairs
import rye
from hunks import Hunk, hunks
from rye.toolkit import view_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outcome import Pair

ROWS = {"lid": re.compile(r"\[LID:([0-9a-z]+)\] "), "short": re.compile(r"([0-9]+[a-z]*)\t")}
_SPACE = b" \t\r\x0b\x0c"


class Refused(Exception):
    """The file cannot be read by lines."""


def ids(project: Path, name: str, form: str) -> list[str]:
    """Return the IDs of all lines of a file, read page by page; in the short form of empty lines, too, which print none."""
    if form == "short":
        # Asked of the library, since the view leaves the addresses of empty lines out; the view is what makes them known.
        list(_pages(project, name, form))
        return view_lines(str(project), name, lambda document: document.shorts(0, document.count))
    return [match[1] for row in _pages(project, name, form) if (match := ROWS[form].match(row))]


def _pages(project: Path, name: str, form: str) -> Iterator[str]:
    offset: int | None = 1
    while offset:
        window = {"file_path": name, "offset": offset, "limit": 100_000, "line_ids": form}
        answer = rye.execute("rye/file-system/read", window, project_path=project)
        data = answer["data"] or {}
        if answer["status"] != "success":
            raise Refused(answer["error"])
        yield from data["output"].split("\n")[: data["line_count"]]
        offset = data.get("next_offset")


def unchanged(before: bytes, after: bytes) -> Iterator[tuple[int, int]]:
    """Yield the (old line, new line) that git leaves unchanged, from 0."""
    sides = [re.findall(rb"[^\n]*\n|[^\n]+", side) for side in (before, after)]
    old = new = 0
    for hunk in [*hunks(*sides, "patience"), Hunk(*(2 * [len(sides[0])]), *(2 * [len(sides[1])]))]:
        yield from zip(range(old, hunk.start), range(new, hunk.new_start), strict=True)
        old, new = hunk.stop, hunk.new_stop


def judge(folder: Path, pair: Pair, form: str) -> Counter[str]:
    """Measure one pair."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    target = project / "file"
    target.write_bytes(pair.before)
    was = ids(project, "file", form)
    # As an editor does it: another inode.
    (project / "other").write_bytes(pair.after)
    (project / "other").replace(target)
    now = ids(project, "file", form)
    old, new = pair.before.split(b"\n"), pair.after.split(b"\n")
    kept = list(unchanged(pair.before, pair.after))
    # Control: the seed design, where a line takes the ID that any line of its text had.
    by_text = dict(zip(old, was, strict=False))
    naive = [name for text in new[: len(now)] if (name := by_text.get(text))]
    at = dict(zip(was, old, strict=False))
    tally = Counter(
        pairs=1,
        lines=len(was),
        unchanged=len(kept),
        kept=sum(was[i] == now[j] for i, j in kept),
        shared=len(was) - len(set(was)) + len(now) - len(set(now)),
        wrong=sum(bare(at[name]) != bare(text) for name, text in zip(now, new, strict=False) if name in at),
        naive_kept=sum(by_text.get(new[j]) == was[i] for i, j in kept),
        naive_shared=len(naive) - len(set(naive)),
    )
    for side, found in ((was, old), (now, new)):
        tally["miscounted"] += len(side) != len(found) - (found[-1] == b"")
    target.unlink()
    for entry in (project / ".ai/cache/tools/read/line_index").iterdir():
        entry.unlink()
    return tally


def bare(text: bytes) -> bytes:
    """Return a line's text without white space."""
    return text.removeprefix(b"\xef\xbb\xbf").translate(None, _SPACE)


def measure(repo: Path, count: int, seed: int, form: str) -> Counter[str]:
    """Measure the pairs of one repository; UTF-16 files, which git sees as bytes, are counted apart."""
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        for pair in pairs.from_history(repo, count, seed):
            if pair.before.startswith((b"\xff\xfe", b"\xfe\xff")) or pair.after.startswith((b"\xff\xfe", b"\xfe\xff")):
                tally["utf-16"] += 1
                continue
            try:
                tally += judge(Path(folder), pair, form)
            except Refused:
                tally["refused"] += 1
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repo", action="append", required=True, type=Path)
    parser.add_argument("--pairs", type=int, default=400, help="of each repository")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", choices=[*ROWS], default="lid", help="which view of the identity")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    total: Counter[str] = Counter()
    rows = {}
    started = time.monotonic()
    for repo in args.repo:
        tally = measure(repo, args.pairs, args.seed, args.form)
        rows["/".join(repo.parts[-2:])] = tally
        total += tally
    rows["total"] = total
    shares = {name: tally["kept"] / max(1, tally["unchanged"]) for name, tally in rows.items()}
    if args.json:
        print(json.dumps({name: {**tally, "share": shares[name]} for name, tally in rows.items()}))
    else:
        for name, tally in rows.items():
            naive = 100 * tally["naive_kept"] / max(1, tally["unchanged"])
            print(
                f"{name}: {tally['pairs']} pairs, {tally['lines']} lines, {tally['unchanged']} unchanged by git: "
                f"{tally['kept']} keep their ID ({100 * shares[name]:.4f}%), {tally['shared']} shared IDs, "
                f"{tally['wrong']} on another text; {tally['refused']} refused, {tally['utf-16']} UTF-16, "
                f"{tally['miscounted']} miscounted. Matching by text alone: {naive:.2f}%, {tally['naive_shared']} shared"
            )
        print(f"seed {args.seed}, {time.monotonic() - started:.0f} s")
    return int(bool(total["shared"] or total["wrong"] or total["miscounted"] or total["kept"] < 0.999 * total["unchanged"]))


if __name__ == "__main__":
    sys.exit(main())
