"""What a search says when it found too much or nothing: how many in which folders, what to add, and what was searched."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

_DEEPEST: Final = 4
_MOST_FOLDERS: Final = 4_096
_SHOWN: Final = 6
_MANY: Final = 100
_HERE: Final = "./"


class Folders:
    """Counts hits by folder, at several depths, in memory bounded by 4,096 folders a depth."""

    def __init__(self) -> None:
        self._hits: list[Counter[str]] = [Counter() for _ in range(_DEEPEST)]
        self._files: list[Counter[str]] = [Counter() for _ in range(_DEEPEST)]
        # By the files' own folders, not yet spread over the depths above.
        self._new: dict[str, tuple[int, int]] = {}
        self.total = 0

    def add(self, name: str, hits: int = 1) -> None:
        """Count the hits of one file, named from the folder that is searched."""
        self._count(name.rpartition("/")[0], hits, 1)

    def add_files(self, names: Iterable[bytes]) -> None:
        """Count files, each of which is a hit."""
        for folder, count in Counter([name.rpartition(b"/")[0] for name in names]).items():
            self._count(os.fsdecode(folder), count, count)

    def _count(self, folder: str, hits: int, files: int) -> None:
        self.total += hits
        known_hits, known_files = self._new.get(folder, (0, 0))
        self._new[folder] = known_hits + hits, known_files + files
        if len(self._new) > _MOST_FOLDERS:
            for depth in range(_DEEPEST):
                self._spread_new(depth)
            self._new.clear()

    def _spread_new(self, depth: int) -> None:
        """Count what is new at one depth."""
        hits_at, files_at = self._hits[depth], self._files[depth]
        for folder, (hits, files) in self._new.items():
            parent = "/".join(folder.split("/", depth + 1)[: depth + 1]) + "/" if folder else _HERE
            if parent in hits_at or len(hits_at) < _MOST_FOLDERS:
                hits_at[parent] += hits
                files_at[parent] += files

    def spread(self, base: str, *, by_file: bool) -> str:
        """Return the folders with the most hits, at the first depth that tells them apart; empty where all lie in one.

        Nothing is added after it.

        Args:
            base: the searched folder as it is shown, before which nothing is put where it is `.`.
            by_file: a hit is a file, so that files need no count of their own.
        """
        # Deeper than the first depth that tells the folders apart nothing is asked.
        for at in range(_DEEPEST):
            self._spread_new(at)
            if len(self._hits[at]) > 1:
                break
        else:
            return ""
        prefix = "" if base in (".", "") else f"{base.rstrip('/')}/"
        # The most first; by name among equals, so that the same search says the same.
        first = sorted(self._hits[at].items(), key=lambda one: (-one[1], one[0]))
        shown = [_spelled(prefix, folder, count, 0 if by_file else self._files[at][folder]) for folder, count in first[:_SHOWN]]
        more = f", {len(first) - _SHOWN} more folders" if len(first) > _SHOWN else ""
        return f"{', '.join(shown)}{more}"


def _spelled(prefix: str, folder: str, count: int, files: int) -> str:
    where = f"{prefix}{folder}" if folder != _HERE else (prefix or _HERE)
    return f"{where} {count:,}" + (f" in {files:,} files" if files > 1 else "")


def too_many(folders: Folders, base: str, options: Mapping[str, object], *, by_file: bool = False) -> list[str]:
    """Return the line that says in which folders the hits of a search are, and what would narrow it.

    Args:
        folders: the hits by folder.
        base: the searched folder as it is shown.
        options: the parameters that narrow the search, and what was given for each; those not given are named.
        by_file: see `Folders.spread`.
    """
    spread = folders.spread(base, by_file=by_file)
    words = [name for name, given in options.items() if not given]
    add = f" Narrow it with {' or '.join(words)}." if words else ""
    # In one folder a few hits more are no reason for advice.
    if not spread and folders.total < _MANY:
        return []
    return [f"[{spread}.{add}]"] if spread else [f"[{add.strip()}]"] if add else []
