"""What a search says when it found too much or nothing: how many in which folders, what to add, and what was searched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

_SHOWN: Final = 6
_MANY: Final = 100


class Folders:
    """Counts hits and files by the folder that they lie in."""

    def __init__(self) -> None:
        self._hits: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self.total = 0

    def add(self, name: str, hits: int = 1) -> None:
        """Count the hits of one file, named from the folder that is searched."""
        folder = name.rpartition("/")[0]
        self._hits[folder] += hits
        self._files[folder] += 1
        self.total += hits

    def add_files(self, names: Sequence[str]) -> None:
        """Count files, each of which is a hit."""
        self._hits.update([name.rpartition("/")[0] for name in names])
        self.total += len(names)

    def spread(self, base: str) -> str:
        """Return the folders with the most hits, at the first depth that tells them apart; empty where all lie in one.

        Args:
            base: the searched folder as it is shown, before which nothing is put where it is `.`.
        """
        parts = {folder: folder.split("/") if folder else [] for folder in self._hits}
        first, last = min(parts.values(), default=[]), max(parts.values(), default=[])
        depth = 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
        hits: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for folder, names in parts.items():
            above = "/".join([*names[:depth], ""]) or "./"
            hits[above] += self._hits[folder]
            files[above] += self._files[folder]
        if len(hits) < 2:
            return ""
        prefix = "" if base in (".", "") else f"{base.rstrip('/')}/"
        # The most first; by name among equals, so that the same search says the same.
        most = sorted(hits.items(), key=lambda one: (-one[1], one[0]))
        shown = [_spelled(prefix, folder, count, files[folder]) for folder, count in most[:_SHOWN]]
        more = f", {len(most) - _SHOWN} more folders" if len(most) > _SHOWN else ""
        return f"{', '.join(shown)}{more}"


def _spelled(prefix: str, folder: str, count: int, files: int) -> str:
    where = f"{prefix}{folder}" if folder != "./" else (prefix or folder)
    return f"{where} {count:,}" + (f" in {files:,} files" if files > 1 else "")


def too_many(folders: Folders, base: str, options: Mapping[str, object]) -> tuple[str, str]:
    """Return in which folders the hits of a search are, and what would narrow it, in the words of a notice or empty.

    Args:
        folders: the hits by folder.
        base: the searched folder as it is shown.
        options: the parameters that narrow the search, and what was given for each; those not given are named.
    """
    spread = folders.spread(base)
    words = [name for name, given in options.items() if not given]
    # In one folder a few hits more are no reason for advice.
    advised = words and (spread or folders.total >= _MANY)
    return f" ({spread})" if spread else "", f", or narrow it with {' or '.join(words)}" if advised else ""
