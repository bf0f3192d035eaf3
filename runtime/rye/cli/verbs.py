"""What the verbs of the command line share: their shape, the exit codes, JSON and tables on standard output."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from rye.record import Record

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRUST: Final = 3

# What the corridor answers when the call itself, or the signature, is at fault.
_USAGE_CODES = frozenset(
    {"invalid_parameters", "item_not_found", "bad_item_id", "unknown_type", "bad_call", "project_not_found", "reserved_id"}
)


class UnprintedError(OSError):
    """The answer cannot be written to standard output."""


class Verb(Record):
    """One verb.

    Attributes:
        summary: one sentence for `--help`.
        build: adds the verb's arguments to its parser.
        run: does it and returns the exit code; RyeErrors pass through to `rye.cli.main`.
    """

    summary: str
    build: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def project_of(given: str | None) -> str:
    """Return the project's root: the folder given, else the nearest one above that holds `.ai` or `.git`.

    Raises:
        UsageError: `project_not_found`.
    """
    from rye.errors import UsageError
    from rye.toolkit.workspace import find_root

    if given and not os.path.isdir(given):
        raise UsageError("project_not_found", f"There is no folder {given}.", "Give --project an existing one.")
    return os.path.abspath(given) if given else find_root(os.getcwd())


def project_to_work_in(given: str | None) -> str:
    """Return the root of the project whose files a call may change: as `project_of`.

    Never by itself the whole disk or a whole home: some clients start their servers there, and people their terminals.

    Raises:
        UsageError: `no_project`; as `project_of`.
    """
    from rye.errors import UsageError

    project = project_of(given)
    if not given and os.path.realpath(project) in (os.sep, os.path.realpath(os.path.expanduser("~"))):
        raise UsageError("no_project", f"{project} is no project's folder.", "Go into one, or say which: --project DIR.")
    return project


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


@contextmanager
def answer_stream() -> Iterator[TextIO]:
    """Point descriptor 1 at standard error for good, and give another one for the answer: no tool knows that one.

    A tool that outlives its call would else still write into the answer.

    Raises:
        UnprintedError: what was written there cannot be printed.
    """
    if not _stands_on_stdout(sys.stdout):
        yield sys.stdout
        return
    sys.stdout.flush()
    real = os.dup(1)
    os.dup2(2, 1)
    with open(real, "w", encoding=sys.stdout.encoding, errors="backslashreplace", newline="") as answer:
        try:
            yield answer
            answer.flush()
        except OSError as err:
            # The reader went away, or the disk is full: what is still buffered has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), real)
            if isinstance(err, BrokenPipeError) or err.filename is not None:
                raise
            raise UnprintedError(*err.args) from None


def _stands_on_stdout(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError, AttributeError):
        return False


def exit_code(response: dict[str, Any]) -> int:
    """Return the exit code for a response of the corridor."""
    if response["status"] != "error":
        return EXIT_OK
    # Parameters that the schema refuses are the caller's mistake, also where the refusal comes in the tool's envelope.
    if response["data"] is not None and response.get("code") != "invalid_parameters":
        return EXIT_NO
    from rye.trust import VERDICTS

    code = response.get("code")
    if code in (*VERDICTS, "lockfile_mismatch", "trust_store_unreadable"):
        return EXIT_TRUST
    return EXIT_USAGE if code in _USAGE_CODES else EXIT_NO
