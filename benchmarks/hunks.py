"""The difference of two line sequences, by git's histogram diff.

Lines are numbered by equality and git compares the numbers: so any encoding and any notion of a line can be
compared, and no byte of a text can confuse the diff.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_DIFF = ("git", "diff", "--no-index", "--no-ext-diff", "--no-color", "--text", "-U0", "--histogram")


class Hunk(NamedTuple):
    """Old lines `old_start:old_end` become new lines `new_start:new_end`, counted from zero."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def hunks(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[Hunk]:
    """Return the differing stretches in order; between two of them at least one line is equal."""
    numbers: dict[Hashable, int] = {}
    old = _numbered(before, numbers)
    new = _numbered(after, numbers)
    if old == new:
        return []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "old").write_bytes(old)
        (Path(folder) / "new").write_bytes(new)
        done = subprocess.run([*_DIFF, "old", "new"], cwd=folder, capture_output=True, check=False)
    return [_hunk(*match.groups()) for match in _HEADER.finditer(done.stdout)]


def _numbered(lines: Sequence[Hashable], numbers: dict[Hashable, int]) -> bytes:
    return b"".join(b"%d\n" % numbers.setdefault(line, len(numbers)) for line in lines)


def _hunk(old_at: bytes, old_count: bytes | None, new_at: bytes, new_count: bytes | None) -> Hunk:
    return Hunk(*_span(old_at, old_count), *_span(new_at, new_count))


def _span(at: bytes, count: bytes | None) -> tuple[int, int]:
    length = 1 if count is None else int(count)
    # An empty side names the line before the gap, a full one its own first line.
    start = int(at) - 1 if length else int(at)
    return start, start + length
