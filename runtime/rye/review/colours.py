"""Syntax colours for the lines of files, by Pygments where it is installed: classes for pieces of text, never HTML.

The lexers run in a process of their own. They are regular expressions over text that anybody may have written: one that takes
for ever would hold the whole server. After three seconds the process is ended, and what it did not come to stays plain.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final

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
        self._known: OrderedDict[bytes, list[Line] | None] = OrderedDict()

    def learn(self, files: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Colour some files, given by path and lines, those that are not known yet; all of them in one process."""
        with self._lock:
            wanted = {_key(*file): file for file in files if _is_wanted(file[1])}
            left = [(key, *file) for key, file in wanted.items() if key not in self._known]
            if not left:
                return
            answers = _asked([(os.path.basename(path), "\n".join(lines)) for _, path, lines in left])
            for number, (key, _, lines) in enumerate(left):
                found = answers[number] if number < len(answers) else None
                # What comes back must be the text itself, whatever the lexer made of it.
                same = found is not None and ["".join(part for _, part in line) for line in found][: len(lines)] == list(lines)
                self._known[key] = found if same else None
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def of(self, path: str, lines: Sequence[str]) -> list[Line] | None:
        """Return the pieces of each line of a file that was learned; None where there are no colours for it."""
        return self._known.get(_key(path, lines)) if _is_wanted(lines) else None


def _is_wanted(lines: Sequence[str]) -> bool:
    return any(lines) and sum(map(len, lines)) + len(lines) <= MAX_CHARS and max(map(len, lines)) <= _MAX_LINE


def _key(path: str, lines: Sequence[str]) -> bytes:
    return sha256("\n".join((os.path.basename(path), *lines)).encode("utf-8", "surrogatepass")).digest()


def _asked(texts: Sequence[tuple[str, str]]) -> list[Any]:
    """Return the answers of the lexers, in the order of the texts, as far as they came in time."""
    # `-I`: neither the project's folder nor a variable may put a module of its own in place of Pygments.
    program = [sys.executable, "-I", "-c", _PROGRAM]
    asked = "".join(f"{json.dumps(one)}\n" for one in texts).encode()
    try:
        out = subprocess.run(program, input=asked, capture_output=True, check=False, timeout=_SECONDS, cwd="/").stdout
    except subprocess.TimeoutExpired as err:
        out = err.stdout or b""
    except OSError:
        out = b""
    answers: list[Any] = []
    with suppress(ValueError):
        # A line that was cut off is no JSON.
        answers += [json.loads(line) for line in out.splitlines()]
    return answers
