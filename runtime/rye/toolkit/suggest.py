"""The nearest known names to a mistaken one, for errors that instruct."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(wanted: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return up to `most` known names like `wanted`, the most alike first (letter case does not count)."""
    import difflib

    by_fold = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(wanted.casefold(), by_fold, n=most, cutoff=0.6)
    return [by_fold[name] for name in close]
