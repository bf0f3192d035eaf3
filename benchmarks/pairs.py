"""Before/after pairs from a git history, and the same made harder."""

from __future__ import annotations

import itertools
import random
import subprocess
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import nasty
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
    with closing(Blobs(repo)) as blobs:
        found = (_pair(repo, change, blobs) for change in distinct)
        return list(itertools.islice((pair for pair in found if pair), count))


def harder(drawn: list[Pair], count: int) -> list[Pair]:
    """Return up to `count` pairs of each kind that makes a change harder, made of real ones; see `nasty`."""
    made = nasty.variants([(pair.before, pair.after) for pair in drawn], count)
    return [replace(drawn[number], before=one.before, after=one.after, kind=one.kind) for number, one in made]


def is_text(data: bytes) -> bool:
    """Tell text from binary as git does, but know UTF-16 by its mark."""
    return data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in data[:8000]


def _pair(repo: Path, change: Change, blobs: Blobs) -> Pair | None:
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


class Blobs:
    """One `git cat-file --batch`, asked for blob after blob; it ends with its input."""

    def __init__(self, repo: Path) -> None:
        words = ["git", "-C", str(repo), "cat-file", "--batch"]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.close = self._process.communicate

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a blob, by its number or such as `HEAD:a.py`; None when the repository lacks it."""
        self._process.stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
        self._process.stdin.flush()
        facts = self._process.stdout.readline().split()
        if len(facts) != 3 or not facts[2].isdigit():
            return None
        data = self._process.stdout.read(int(facts[2]) + 1)[:-1]
        return data if facts[1] == b"blob" else None
