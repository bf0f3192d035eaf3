"""The six points of a tool's docstring, in the order in which a model reads them.

What the tool does comes first, unmarked; then lines that begin with `Requires:`, `Does not:`, `Side effects:`, `Returns:`, and
`Prefer it to` (or `Prefer `). A point goes on until the next one begins.
"""

from __future__ import annotations

import re
from typing import Final

MARKS: Final = ("Requires:", "Does not:", "Side effects:", "Returns:", "Prefer ")
"""How the points after the first begin."""

_SENTENCE: Final = re.compile(r"(?<=\.)\s+")


def points(docstring: str) -> list[str]:
    """Return the points that a docstring has, each on one line; the first is what the tool does, and may be empty."""
    found = [""]
    for line in docstring.split("\n"):
        if line.startswith(MARKS):
            found.append(line.strip())
        else:
            found[-1] = f"{found[-1]} {line.strip()}".strip()
    return found


def fitted(docstring: str, most: int) -> str:
    """Return a docstring within a number of characters: points lose their last sentences until all fit.

    What it returns goes first, which a model sees anyway; then that of the longest point. Every point keeps its first
    sentence. What is too long even then ends with `…`.
    """
    if len(docstring) <= most:
        return docstring
    kept = [_SENTENCE.split(point) for point in points(docstring)]
    while len(text := "\n".join(" ".join(point) for point in kept)) > most:
        long = [point for point in kept if len(point) > 1]
        if not long:
            return f"{text[: most - 1]}…"
        returned = [point for point in long if point[0].startswith("Returns:")]
        max(returned or long, key=lambda point: len(" ".join(point))).pop()
    return text
