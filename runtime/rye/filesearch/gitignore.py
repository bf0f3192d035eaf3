"""`.gitignore` rules: parsed, matched, and rewritten for a folder below their own.

As ripgrep reads them: the last rule that fits decides, `!` takes back, a pattern with a slash before its end is bound to the
folder of its file, a slash at the end means folders only. Braces are alternatives here, as in ripgrep and unlike in git. A line
that is no pattern is passed over. Rules and names are compared as bytes, of which each is a character here (Latin-1): a `?` is
one of them.
"""

from __future__ import annotations

import codecs
import os
import re
import string
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rye.errors import UsageError
from rye.filesearch import globs

MAX_BYTES = 1 << 20
"""Of a larger file only so much is read."""


class Rule(NamedTuple):
    """One line of a file; `pattern` is bound to the file's folder (it begins with `**/` where it was not)."""

    pattern: str
    fits: Callable[[str], object]
    takes_back: bool
    folders_only: bool


def parse(data: bytes) -> list[Rule]:
    """Return the rules of a file's content, in order."""
    text = data[:MAX_BYTES].removeprefix(codecs.BOM_UTF8).decode("latin-1")
    return [rule for line in text.split("\n") if (rule := _rule(line.removesuffix("\r"))) is not None]


def _rule(line: str) -> Rule | None:
    if line.startswith("#"):
        return None
    # Spaces at the end do not count unless escaped.
    line = line if line.endswith("\\ ") else line.rstrip(string.whitespace)
    takes_back = line.startswith("!")
    # An escaped `!` or `#` at the start is that character itself.
    line = line[1:] if takes_back or line.startswith(("\\!", "\\#")) else line
    is_anchored = line.startswith("/")
    line = line[1:] if is_anchored else line
    folders_only = line.endswith("/")
    line = line[:-1] if folders_only else line
    if not line:
        return None
    # Without a slash a rule is about names at any depth.
    if not is_anchored and "/" not in line:
        line = f"**/{line}"
    try:
        fits = re.compile("|".join(map(globs.translate, globs.expand(line))), re.DOTALL).fullmatch
        return Rule(line, fits, takes_back, folders_only)
    # A line that is no pattern ignores nothing; the file's other lines still count.
    except (UsageError, re.error):
        return None


def verdict(rules: Sequence[Rule], path: str, *, folder: bool) -> bool | None:
    """Tell whether a path relative to the rules' folder is ignored; False where a rule takes that back, None for no rule."""
    path = os.fsencode(path).decode("latin-1")
    # From the end: the last rule that fits decides, so the first hit here is final.
    for rule in reversed(rules):
        if (folder or not rule.folders_only) and rule.fits(path):
            return not rule.takes_back
    return None


def rules_below(rules: Iterable[Rule], below: Sequence[bytes]) -> list[bytes]:
    """Return the rules rewritten as lines of a file in the folder `below` (components).

    A rule that ignores one of these folders itself is dropped: who asks for that folder by name wants to see it.
    """
    lines: list[str] = []
    names = [name.decode("latin-1") for name in below]
    for rule in rules:
        for pattern in globs.expand(rule.pattern):
            rests = _rests(pattern.split("/"), names)
            lines += [f"{'!' * rule.takes_back}/{'/'.join(rest)}{'/' * rule.folders_only}" for rest in rests]
    return [line.encode("latin-1") for line in lines]


def _rests(parts: list[str], below: Sequence[str]) -> list[list[str]]:
    """Return what is left of a pattern once its beginning has matched the folders `below`, in every way."""
    # A `**` may take any number of the folders, so several rests of one pattern can be possible.
    states = [parts]
    for name in below:
        states = [rest for state in states for rest in _step(state, name)]
    return [state for state in states if state and state != ["**"]]


def _step(parts: list[str], name: str) -> list[list[str]]:
    if not parts:
        return []
    # `**` takes this folder, or takes none and leaves it to the rest.
    if parts[0] == "**":
        return [parts, *_step(parts[1:], name)]
    fits = re.fullmatch(globs.component(parts[0], parts[0]), name, re.DOTALL)
    return [parts[1:]] if fits else []
