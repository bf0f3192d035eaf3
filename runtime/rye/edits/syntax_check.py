"""Syntax after an edit: Python, JSON, TOML and YAML are parsed in this process, and a new error is told with its place.

Of languages without a parser here only brackets are counted: where they paired before, and do not any more, that is told.

Small files only, so that an edit stays fast: up to 256 KB, and about 50 ms of parsing.
"""

from __future__ import annotations

import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

from rye.call.context import advice
from rye.errors import EditError

MAX_BYTES = 256 << 10
_SECONDS = 0.05
# Its parser is Python, at about 1 MB/s, and cannot be stopped on the way.
_MAX_TOML = 40 << 10
# These hold JSON with comments.
_WITH_COMMENTS = ("tsconfig", "jsconfig", ".eslintrc", "devcontainer")
_WITH_BRACKETS = r"\.(?:c|cc|cpp|cs|s?css|cxx|dart|go|h|hh|hpp|java|jsx?|mjs|[cm]?ts|tsx|kts?|mm?|php|proto|rs|scala|swift|zig)"
_STRINGS_OF_RUST = re.compile(rb'"(?:\\.|[^"\\\n])*+"|\'(?:\\.|[^\'\\\n])\'')
_STRINGS = re.compile(rb'"(?:\\.|[^"\\\n])*+"|\'(?:\\.|[^\'\\\n])*+\'')


class Broken(NamedTuple):
    """A syntax error: what is wrong, and the line (from 1)."""

    language: str
    message: str
    line: int


def told(
    path: str, before: bytes | None, after: bytes, guard: str, named: Callable[[int], str] = "line {}".format
) -> list[str]:
    """Return the warning about a syntax error that a new content has and the old one had not.

    Args:
        path: the file.
        before: its content before; None where there was no file.
        after: its content now.
        guard: "refuse" the error, or "tell" of it.
        named: names a line of the new content by its number.

    Raises:
        EditError: `syntax_error`, with `guard` "refuse". Nothing was written.
    """
    found = new_error(path, before, after)
    if found is None or isinstance(found, str):
        return [found] if found else []
    still = " any more" if before is not None and not isinstance(first_error(path, before), Broken) else ""
    text = f"No valid {found.language}{still}: {found.message}, in {path} at {named(found.line)}"
    if guard == "refuse":
        line = _line(after, found.line).decode("utf-8", "replace")[:200]
        hint = advice("guard", 'Correct it, or give guard="tell" to write it all the same.', "Correct it.")
        raise EditError("syntax_error", f"{text}: {line!r}. Nothing was written.", hint)
    return [f"{text}."]


class _TooLongError(Exception):
    """The time is up."""


def first_error(path: str, data: bytes) -> Broken | str | None:
    """Return a file's first syntax error, a text that says why it was not checked, or None: it has none, or is no such file."""
    parser = _parser_of(path)
    if parser is None or not data:
        return None
    if len(data) > MAX_BYTES or (parser is _toml and len(data) > _MAX_TOML):
        return f"Syntax of {path} not checked: it has {len(data) >> 10} KB."
    try:
        return parser(data)
    except _TooLongError:
        return f"Syntax of {path} not checked: that takes longer than {_SECONDS * 1000:.0f} ms."
    except (RecursionError, MemoryError):
        return f"Syntax of {path} not checked: it is nested too deeply."
    except ValueError:
        # The encoding is another matter, which the edit itself has judged; so is a NUL.
        return None


def new_error(path: str, before: bytes | None, after: bytes) -> Broken | str | None:
    """Return the syntax error that a change made, as `first_error` does; None where the old content had it already."""
    now = first_error(path, after)
    if not isinstance(now, Broken):
        return now or _unpaired(path, before or b"", after)
    was = first_error(path, before) if before is not None else None
    if isinstance(was, Broken) and (was.message, _line(before or b"", was.line)) == (now.message, _line(after, now.line)):
        return None
    return now


def _unpaired(path: str, before: bytes, after: bytes) -> str | None:
    """Return what to say of brackets that paired before a change, counted in the whole file, and do not after it."""
    if len(after) > MAX_BYTES or not re.fullmatch(_WITH_BRACKETS, os.path.splitext(path.lower())[1]):
        return None
    # Comments may hold single ones: then they did not pair before, or the count stays as it was. A quote in Rust may begin
    # a lifetime's name.
    strings = _STRINGS if not path.lower().endswith(".rs") else _STRINGS_OF_RUST
    before, after = strings.sub(b"", before), strings.sub(b"", after)
    for left, right in ("{}", "()", "[]"):
        opened, closed = after.count(left.encode()), after.count(right.encode())
        if opened != closed and before.count(left.encode()) == before.count(right.encode()):
            return f"Brackets of {path} pair no more: {opened} {left} and {closed} {right}."
    return None


def _line(data: bytes, number: int) -> bytes:
    return data.split(b"\n")[number - 1 : number][0].strip() if data.count(b"\n") >= number - 1 else b""


def _parser_of(path: str) -> Callable[[bytes], Broken | None] | None:
    name = path.rpartition("/")[2].lower()
    suffix = name.rpartition(".")[2]
    if suffix == "json" and (name.startswith(_WITH_COMMENTS) or "/.vscode/" in f"/{path}"):
        return None
    return {"py": _python, "pyi": _python, "json": _json, "ipynb": _json, "toml": _toml, "yaml": _yaml, "yml": _yaml}.get(
        suffix
    )


def _python(data: bytes) -> Broken | None:
    import symtable

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Only parsed: nothing of the file runs. Not by `ast`, which takes twice as long to make objects of the tree.
            # Without a name: of an error Python reads the line in the file that has it, in the current folder.
            symtable.symtable(data, "", "exec")  # type: ignore[arg-type] # bytes, whose coding line counts
    except SyntaxError as err:
        return Broken(f"Python {sys.version_info[0]}.{sys.version_info[1]}", str(err.msg), err.lineno or 1)
    return None


def _json(data: bytes) -> Broken | None:
    import json

    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as err:
        return Broken("JSON", err.msg, err.lineno)
    return None


def _toml(data: bytes) -> Broken | None:
    import tomllib

    try:
        tomllib.loads(data.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as err:
        found = re.search(r" \(at line (\d+), column \d+\)$| \(at end of document\)$", str(err))
        line = int(found[1]) if found and found[1] else data.count(b"\n") + (not data.endswith(b"\n"))
        return Broken("TOML", str(err)[: found.start()] if found else str(err), max(line, 1))
    return None


def _yaml(data: bytes) -> Broken | None:
    import yaml

    end = time.perf_counter() + _SECONDS
    try:
        for at, _ in enumerate(yaml.parse(data.decode("utf-8-sig"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
            if at % 64 == 0 and time.perf_counter() > end:
                raise _TooLongError
    except yaml.YAMLError as err:
        # A template, such as a chart's, is YAML only once it is filled in.
        if re.search(rb"^[ \t]*\{[{%]", data, re.MULTILINE):
            return None
        mark = getattr(err, "problem_mark", None)
        message = getattr(err, "problem", None) or str(err).partition("\n")[0]
        return Broken("YAML", message, mark.line + 1 if mark is not None else 1)
    return None
