"""A command line run in this process, on descriptors of its own: many times faster than a process for each command.

The descriptors 0, 1 and 2 are exchanged, not only `sys.stdout`: what a tool or a child process writes past Python is seen.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile

import pytest

from rye.cli.main import main as rye_main
from rye.sandbox import environment


def run(main, words, *, cwd, stdin=b"", env=None, only_env=None):
    """Call `main(words)` as a process would; return what `subprocess.run` would.

    `env` is added to the environment, `only_env` replaces it.
    """
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        if only_env is not None:
            for name in set(os.environ) - set(only_env):
                patch.delenv(name)
        for name, value in {**(only_env or {}), **(env or {})}.items():
            patch.setenv(name, value)
        # It would hold for the rest of the test run.
        patch.setattr(environment, "close", lambda: None)
        patch.setattr(sys, "path", [*sys.path])
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(_descriptors(files))
        code = _code(main, list(words))
        _flush()
        said = [_all(file) for file in files[1:]]
    return subprocess.CompletedProcess(list(words), code, *said)


def rye(*words, cwd, stdin=b"", env=None, only_env=None):
    """Run the command `rye` in this process."""
    return run(rye_main, [os.fspath(word) for word in words], cwd=cwd, stdin=stdin, env=env, only_env=only_env)


def _code(main, words):
    try:
        return main(words)
    except SystemExit as end:
        return end.code


@contextlib.contextmanager
def _descriptors(files):
    """Exchange 0, 1 and 2, and Python's streams on them."""
    kept = [os.dup(number) for number in range(3)]
    streams = (sys.stdin, sys.stdout, sys.stderr)
    for stream in streams[1:]:
        stream.flush()
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        sys.stdin = _text(0, "strict")
        sys.stdout = _text(1, "strict")
        sys.stderr = _text(2, "backslashreplace")
        yield
    finally:
        _flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)


def _text(number, errors):
    raw = io.FileIO(number, "w" if number else "r", closefd=False)
    buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors=errors, line_buffering=number == 2)


def _flush():
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


def _all(file):
    file.seek(0)
    return file.read()
