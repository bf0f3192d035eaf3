"""What differs between two texts, in hunks; and the same as string replacements by a careful caller."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_DIFF = ("git", "diff", "--no-index", "--no-ext-diff", "--no-color", "--text", "-U0")


class Hunk(NamedTuple):
    """Old lines [start, stop) become new lines [new_start, new_stop), counted from zero; all else is equal."""

    start: int
    stop: int
    new_start: int
    new_stop: int


def hunks(before: Sequence[Hashable], after: Sequence[Hashable], way: str = "histogram") -> list[Hunk]:
    """Return the differing stretches in order, as git finds them; between two of them at least one line is equal."""
    numbers: dict[Hashable, int] = {}
    old, new = (b"".join(b"%d\n" % numbers.setdefault(line, len(numbers)) for line in lines) for lines in (before, after))
    if old == new:
        return []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "old").write_bytes(old)
        (Path(folder) / "new").write_bytes(new)
        done = subprocess.run([*_DIFF, f"--{way}", "old", "new"], cwd=folder, capture_output=True, check=False)
    return [
        Hunk(*_span(start, count), *_span(new_start, new_count))
        for start, count, new_start, new_count in _HEADER.findall(done.stdout)
    ]


def _span(at: bytes, count: bytes) -> tuple[int, int]:
    length = int(count or 1)
    # An empty side names the line before the gap, a full one its own first line.
    start = int(at) - 1 if length else int(at)
    return start, start + length


def quoted(before_text: str, after_text: str) -> list[tuple[str, str, int]]:
    """Return the shortest replacements of whole lines: text that stands once in the file, the new text, and its line at the end.

    No two of the texts share a line, so they can be replaced in any order. They come from the file's end.
    """
    old, new = _terminated(before_text), _terminated(after_text)
    out: list[tuple[Hunk, str, str, int]] = []
    # From the end, so that lines before a change still stand as they were.
    left = hunks(old, new)
    while left:
        hunk = left.pop()
        start, stop, before, after = hunk.start, hunk.stop, 0, 0
        while not (quote := "".join(old[start:stop])) or _count(before_text, quote) != 1:
            if start > 0 and (before <= after or stop == len(old)):
                start, before = start - 1, before + 1
            elif stop < len(old):
                stop, after = stop + 1, after + 1
            else:
                return [(before_text, after_text, 0)]
        if out and stop > out[-1][0].start:
            # Both as one, from the start of this to the end of the one behind.
            behind = out.pop()[0]
            gap = behind.stop - hunk.stop
            left.append(Hunk(hunk.start, behind.stop, hunk.new_start, hunk.new_stop + gap + _grown(behind)))
            continue
        text = "".join([*old[start : hunk.start], *new[hunk.new_start : hunk.new_stop], *old[hunk.stop : stop]])
        # A newline at both ends need not be said, where the text is unique without it.
        bare = quote.removesuffix("\n")
        if quote != bare and text.endswith("\n") and bare and _count(before_text, bare) == 1:
            quote, text = bare, text.removesuffix("\n")
        size = stop - hunk.stop
        whole = Hunk(start, stop, hunk.new_start - before, hunk.new_stop + size)
        out.append((whole, quote, text, hunk.new_start - before))
    return [(quote, text, at) for _, quote, text, at in out]


def _count(text: str, part: str) -> int:
    """Return in how many places a part stands, also where these overlap; 2 stands for more."""
    first = text.find(part)
    return 0 if first < 0 else 1 if text.find(part, first + 1) < 0 else 2


def _grown(hunk: Hunk) -> int:
    """Return how many lines more a hunk has in the new text."""
    return (hunk.new_stop - hunk.new_start) - (hunk.stop - hunk.start)


def _terminated(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [last for last in [text.rpartition("\n")[2]] if last]
