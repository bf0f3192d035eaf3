"""Before/after pairs from a git history and from a corpus folder."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from outcome import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A symbolic link or a submodule has no lines.
_FILE_MODES = {"100644", "100755"}
_SHOWN = ("--raw", "-z", "--no-renames", "--diff-filter=M", "--no-abbrev", "--format=%H")
_LOG = ("log", "--all", "--no-merges", *_SHOWN)


class Change(NamedTuple):
    """One modified file of one commit, by blob."""

    commit: str
    path: str
    old: str
    new: str


def from_history(repo: Path, count: int, seed: int) -> list[Pair]:
    """Draw `count` changes of text files out of all of a repository's history.

    Args:
        repo: A work tree or a bare repository.
        count: How many; fewer come back when the history has no more.
        seed: Fixes the draw.

    Returns:
        The pairs, in the order drawn.
    """
    changes = sorted(set(_changes(repo)), key=lambda change: (change.commit, change.path))
    # The same change in two branches would count twice.
    distinct = list({(change.old, change.new): change for change in changes}.values())
    random.Random(seed).shuffle(distinct)
    with _Blobs(repo) as blobs:
        found = (_pair(repo, change, blobs) for change in distinct)
        return list(itertools.islice((pair for pair in found if pair), count))


def from_corpus(folder: Path, count: int, seed: int) -> list[Pair]:
    """Draw `count` pairs of a built corpus, evenly over its kinds."""
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]
    random.Random(seed).shuffle(rows)
    kinds: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    dealt = itertools.chain.from_iterable(itertools.zip_longest(*(kinds[kind] for kind in sorted(kinds))))
    return [_corpus_pair(folder, row) for row in itertools.islice(filter(None, dealt), count)]


def is_text(data: bytes) -> bool:
    """Tell text from binary as git does, but know UTF-16 by its mark."""
    return data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in data[:8000]


def _corpus_pair(folder: Path, row: dict[str, str]) -> Pair:
    before, after = ((folder / row[side]).read_bytes() for side in ("before", "after"))
    return Pair(row["name"], row["path"], before, after, row["kind"])


def _pair(repo: Path, change: Change, blobs: _Blobs) -> Pair | None:
    before, after = blobs.read(change.old), blobs.read(change.new)
    if before is None or after is None or not (is_text(before) and is_text(after)):
        return None
    return Pair(f"{'/'.join(repo.parts[-2:])}@{change.commit[:12]}", change.path, before, after)


def _changes(repo: Path) -> Iterator[Change]:
    done = subprocess.run(["git", "-C", str(repo), *_LOG], capture_output=True, check=True)
    commit = ""
    fields = iter(done.stdout.decode("utf-8", "surrogateescape").split("\0"))
    for field in fields:
        row = field.lstrip("\n")
        if row.startswith(":"):
            old_mode, new_mode, old, new, _ = row[1:].split(" ")
            path = next(fields)
            if {old_mode, new_mode} <= _FILE_MODES and old != new:
                yield Change(commit, path, old, new)
        elif row:
            commit = row


class _Blobs:
    """One `git cat-file --batch`, asked for blob after blob."""

    def __init__(self, repo: Path) -> None:
        self._process = subprocess.Popen(
            ["git", "-C", str(repo), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> _Blobs:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self, blob: str) -> bytes | None:
        """Return a blob's bytes, None when the repository lacks it."""
        self._process.stdin.write(blob.encode() + b"\n")
        self._process.stdin.flush()
        header = self._process.stdout.readline().split()
        if header[1:2] != [b"blob"]:
            return None
        data = self._process.stdout.read(int(header[2]))
        self._process.stdout.read(1)
        return data
