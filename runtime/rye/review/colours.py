"""Syntax colours for the lines of files, by Pygments where it is installed: classes for pieces of text, never HTML.

The lexers run in a process of their own. They are regular expressions over text that anybody may have written: one that takes
for ever would hold the whole server. After a second the process is ended, and the text stays plain.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Final

Line = list[tuple[str, str]]
"""Pieces of a line: a class (`k` keyword, `s` text, `c` comment, `n` name, `m` number, `o` operator, or none), and its text."""

MAX_CHARS: Final = 256 * 1024
"""A longer text stays plain."""

_MAX_LINE: Final = 2_000
_SECONDS: Final = 1.0
_START_SECONDS: Final = 10.0
_KEPT: Final = 64

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
print('ready', flush=True)
for line in sys.stdin:
    try:
        answer = coloured(*json.loads(line))
    except Exception:
        answer = None
    print(json.dumps(answer), flush=True)
"""


class Colours:
    """Colours texts, one after another. Any thread may ask."""

    def __init__(self) -> None:
        """Start nothing yet: the first text does."""
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._missing = False
        self._known: OrderedDict[bytes, list[Line] | None] = OrderedDict()

    def of(self, path: str, lines: Sequence[str]) -> list[Line] | None:
        """Return the pieces of each line of a file; None where there are no colours for it."""
        text = "\n".join(lines)
        if self._missing or not text or len(text) > MAX_CHARS or max(map(len, lines)) > _MAX_LINE:
            return None
        name = os.path.basename(path)
        key = sha256(f"{name}\0{text}".encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if key not in self._known:
                found = self._asked(name, text)
                # What comes back must be the text itself, whatever the lexer made of it.
                same = found is not None and ["".join(part for _, part in line) for line in found][: len(lines)] == list(lines)
                self._known[key] = found if same else None
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return self._known[key]

    def _asked(self, name: str, text: str) -> list[Line] | None:
        try:
            child = self._child if self._child is not None and self._child.poll() is None else self._started()
            if child is None or child.stdin is None:
                return None
            child.stdin.write(json.dumps([name, text]).encode() + b"\n")
            child.stdin.flush()
            answer = _line(child, _SECONDS)
            found: list[Line] | None = json.loads(answer) if answer else None
        except (OSError, ValueError):
            answer, found = b"", None
        if not answer:
            self.close()
        return found

    def _started(self) -> subprocess.Popen[bytes] | None:
        # `-I`: neither the project's folder nor a variable may put a module of its own in place of Pygments.
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        if _line(self._child, _START_SECONDS) == b"ready\n":
            return self._child
        self._missing = True
        self.close()
        return None

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for stream in (child.stdin, child.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()
            child.wait()


def _line(child: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return the next line that a process prints; nothing where it ends, or the time is up."""
    if child.stdout is None:
        return b""
    end, out, fd = time.monotonic() + seconds, bytearray(), child.stdout.fileno()
    while not out.endswith(b"\n"):
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return b""
        block = os.read(fd, 1 << 16)
        if not block:
            return b""
        out += block
    return bytes(out)
