"""What the verbs of the command line share: their shape, the exit codes, JSON and tables on standard output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRUST: Final = 3


class Verb(NamedTuple):
    """One verb.

    Attributes:
        summary: one sentence for `--help`.
        build: adds the verb's arguments to its parser.
        run: does it and returns the exit code; RyeErrors pass through to `rye.cli.main`.
    """

    summary: str
    build: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def print_json(obj: object, stream: TextIO | None = None) -> None:
    """Print JSON, indented, on `stream` (standard output); characters that its encoding lacks are escaped."""
    import json

    stream = stream or sys.stdout
    text = json.dumps(obj, indent=2, ensure_ascii=False)
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(obj, indent=2)
    print(text, file=stream)


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print the named fields of rows as aligned text under a heading; no cell is cut, None is an empty cell."""
    lines = [[column.replace("_", " ").upper() for column in columns]]
    lines += [[printable("" if row.get(name) is None else str(row[name])) for name in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def printable(text: str) -> str:
    """Return text on one line that cannot steer a terminal: what does not print, or cannot be encoded, is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)
