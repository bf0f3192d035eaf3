"""Syntax colours for the lines of files, by Pygments where it is installed: classes for pieces of text, never HTML.

The lexers run in a process of their own. They are regular expressions over text that anybody may have written: one that takes
for ever would hold the whole server. After three seconds the process is ended, and what it did not come to stays plain.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final

from rye.config import user_dirs

Line = list[tuple[str, str]]
"""Pieces of a line: a class (`k` keyword, `s` text, `c` comment, `n` name, `m` number, `o` operator, or none), and its text."""

MAX_CHARS: Final = 256 * 1024
"""A longer text stays plain."""

_MAX_LINE: Final = 2_000
_SECONDS: Final = 3.0
_KEPT: Final = 256

_PROGRAM: Final = r"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
try:
    from pygments.lexers import get_lexer_for_filename
    from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String
    from pygments.util import ClassNotFound
except ImportError:
    sys.exit(3)
KINDS = ((Comment, 'c'), (Keyword, 'k'), (String, 's'), (Number, 'm'), (Operator.Word, 'k'), (Name.Tag, 'k'),
         (Name.Function, 'f'), (Name.Class, 'f'), (Name.Decorator, 'd'), (Name.Builtin, 'b'), (Name.Attribute, 'b'),
         (Literal, 's'))
def kind(token):
    return next((short for whole, short in KINDS if token in whole), '')
def coloured(name, text):
    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    lines = [[]]
    for token, value in lexer.get_tokens(text):
        first, *rest = value.split('\n')
        short = kind(token)
        if first:
            lines[-1].append([short, first])
        for part in rest:
            lines.append([[short, part]] if part else [])
    return lines
for line in sys.stdin:
    try:
        answer = coloured(*json.loads(line))
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"""


class Colours:
    """The colours of the texts that were asked for. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], list[Line] | None] = {}

    def of(self, files: Iterable[tuple[str, Sequence[str]]]) -> list[list[Line] | None]:
        """Return the pieces of each line of some files, given by path and lines; None for one that has no colours."""
        texts = [(os.path.basename(path), "\n".join(lines)) for path, lines in files]
        with self._lock:
            # All that are not known yet in one process.
            left = [one for one in dict.fromkeys(texts) if one not in self._known and _is_wanted(one[1])]
            for (name, text), found in zip_longest(left, _asked(left) if left else ()):
                # What comes back must be the text itself, whatever the lexer made of it.
                lines = ["".join(part for _, part in line) for line in found or ()]
                self._known[name, text] = found if lines[: text.count("\n") + 1] == text.split("\n") else None
            colours = [self._known.get(one) for one in texts]
            for one in list(self._known)[:-_KEPT]:
                del self._known[one]
        return colours


def _is_wanted(text: str) -> bool:
    return bool(text.strip("\n")) and len(text) <= MAX_CHARS and max(map(len, text.split("\n"))) <= _MAX_LINE


def _asked(texts: Sequence[tuple[str, str]]) -> list[Any]:
    """Return the answers of the lexers, in the order of the texts, as far as they came in time."""
    # `-I`: neither the project's folder nor a variable may put a module of its own in place of Pygments.
    program = [user_dirs.python(), "-I", "-c", _PROGRAM]
    asked = "".join(f"{json.dumps(one)}\n" for one in texts).encode()
    try:
        out = subprocess.run(program, input=asked, capture_output=True, check=False, timeout=_SECONDS, cwd="/").stdout
    except subprocess.TimeoutExpired as err:
        out = err.stdout or b""
    answers: list[Any] = []
    with suppress(ValueError):
        # A line that was cut off is no JSON.
        answers += [json.loads(line) for line in out.splitlines()]
    return answers
