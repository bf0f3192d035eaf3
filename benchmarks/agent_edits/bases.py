"""Files as they were before a recorded change: from a git history, and by fitting a recorded diff at its recorded lines."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from pairs import Blobs

if TYPE_CHECKING:
    from pathlib import Path

_VERSIONS = 300
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


class DiffHunk(NamedTuple):
    """Old lines from `start` (0 is the first) become new lines; both have the lines of context."""

    start: int
    old: list[str]
    new: list[str]


def hunks_of(diff: str) -> list[DiffHunk]:
    """Return the hunks of a unified diff of one file."""
    out: list[DiffHunk] = []
    for line in diff.split("\n"):
        if found := _HUNK.match(line):
            # A hunk without old lines names the line before it.
            out.append(DiffHunk(int(found[1]) - (found[2] != "0"), [], []))
        elif out:
            _add(out[-1], line)
    return out


def structured(patch: Iterable[dict[str, object]]) -> list[DiffHunk]:
    """Return the hunks that Claude Code records with an edit."""
    out: list[DiffHunk] = []
    for one in patch:
        hunk = DiffHunk(int(str(one["oldStart"])) - (one.get("oldLines") != 0), [], [])
        lines = one["lines"]
        for line in lines if isinstance(lines, list) else ():
            _add(hunk, str(line))
        out.append(hunk)
    return out


def _add(hunk: DiffHunk, line: str) -> None:
    if line[:1] in (" ", "-"):
        hunk.old.append(line[1:])
    if line[:1] in (" ", "+"):
        hunk.new.append(line[1:])


def patched(before: str, hunks: list[DiffHunk]) -> str | None:
    """Return a text with all hunks applied at their recorded lines; None where one does not fit there."""
    lines, shift = before.split("\n"), 0
    for hunk in hunks:
        start = hunk.start + shift
        if lines[start : start + len(hunk.old)] != hunk.old:
            return None
        lines[start : start + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old)
    return "\n".join(lines)


class History:
    """A git repository: what its files held in any commit, but for commits on branches of recordings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, str | None] = {}
        self._reader: Blobs | None = None

    def git(self, *words: str) -> bytes:
        """Return what git prints; empty where it fails."""
        return subprocess.run(
            ["git", "-C", str(self.folder), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        ).stdout

    @cached_property
    def _blobs(self) -> dict[str, dict[str, None]]:
        found: dict[str, dict[str, None]] = {}
        words = ("log", "--exclude=*entire/*", "--all", "--raw", "--no-abbrev", "--no-renames", "--format=", "-z")
        # With -z: facts and path take turns.
        parts = iter(self.git(*words).decode("utf-8", "replace").split("\0"))
        for facts in parts:
            path, fields = next(parts, ""), facts.strip().split(" ")
            for blob in fields[2:4][::-1]:
                if set(blob) != {"0"}:
                    found.setdefault(path, {})[blob] = None
        return found

    def texts(self, path: str) -> Iterator[str]:
        """Yield what a file held, the newest first, as far as `_VERSIONS` reaches."""
        for blob in itertools.islice(self._blobs.get(path, ()), _VERSIONS):
            if (text := self.blob(blob)) is not None:
                yield text

    def blob(self, name: str) -> str | None:
        """Return the text of an object, such as `HEAD:a.py`; None where there is none."""
        if name not in self._known:
            self._reader = self._reader or Blobs(self.folder)
            data = None if "\n" in name else self._reader.read(name)
            try:
                self._known[name] = None if data is None else data.decode()
            except UnicodeDecodeError:
                self._known[name] = None
        return self._known[name]


def is_repository(path: Path) -> bool:
    """Tell whether a folder is a git repository."""
    return (path / "HEAD").exists() or (path / ".git").exists()
