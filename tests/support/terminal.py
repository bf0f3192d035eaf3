"""`rye` as a person runs it: in a process whose input and error output are a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from support.harness import environment

_PROMPT = b"Type yes to go on: "


def typed(*words, cwd, answers=(), env=None, seconds=60, module="rye", until=None, columns=0):
    """Run a command at a terminal, answer its questions in turn; return its exit code and all that it showed.

    With `until` it is ended once it showed that, and its keyboard is at its end from the beginning. `columns` is the terminal's own width.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 * bool(columns), columns, 0, 0))
    # Without colours, unless a test asks for a terminal that has them.
    settings = environment(**{"TERM": "dumb", **(env or {})})
    command = [sys.executable, "-m", module, *map(str, words)]
    process = subprocess.Popen(command, cwd=cwd, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, left, end = b"", list(answers), time.monotonic() + seconds
    try:
        if until is not None:
            os.write(ours, b"\x04" * 9)
        while chunk := _next(ours, end):
            shown += chunk
            if until is not None and re.search(until, shown):
                return None, shown.decode().replace("\r\n", "\n")
            if left and shown.count(_PROMPT) > len(answers) - len(left):
                os.write(ours, left.pop(0).encode() + b"\n")
        return process.wait(max(end - time.monotonic(), 1)), shown.decode().replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _next(fd, end):
    if not select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
        raise TimeoutError
    try:
        return os.read(fd, 65_536)
    except OSError:  # the other side is gone
        return b""
