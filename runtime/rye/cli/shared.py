"""What the verbs of the command line share: their shape, the exit codes, JSON and tables on standard output.

Whether a person is there: what gives trust or signs is never done by an agent's command unless its user allowed it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, TextIO

from rye.call import context
from rye.config import user_dirs
from rye.errors import RyeError, UsageError


def at_terminal() -> bool:
    """Tell whether a person can be asked: input and error output are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def require_person(action: str) -> None:
    """Refuse without a terminal, whatever is configured.

    Raises:
        RyeError: `needs_person`, with what to ask the user.
    """
    if not at_terminal():
        raise _needs_person(action)


def require_person_or_key(action: str, key: str | None = None, *, key_option: bool = False) -> None:
    """Refuse as `require_person`, unless the user's own configuration allows agents to sign, or a key file is named.

    `key_option` says that the command has `--key`.
    """
    # The user's own configuration only: a project that could allow this would sign for its user.
    if key is None and not at_terminal() and context.settings().get("signing.agents") != "allow":
        by_key = "; a release script names its key with --key" if key_option else ""
        raise _needs_person(
            action, f", or to set `signing: {{agents: allow}}` in their own {user_dirs.settings_file()}{by_key}"
        )


def _needs_person(action: str, otherwise: str = "") -> RyeError:
    hint = f"Ask your user to run this command in a terminal{otherwise}."
    return RyeError("needs_person", f"Only a person at a terminal may {action}.", hint)


def confirm(question: str) -> bool:
    """Ask a person; anything but `yes` is no. Errors as `require_person`."""
    require_person("say yes to this")
    print(f"{question} Type yes to go on: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"


EXIT_OK: Final = 0
EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_TRUST: Final = 3

# What the executor answers when the call itself, or the signature, is at fault.
_USAGE_CODES = frozenset(
    {"invalid_parameters", "item_not_found", "bad_item_id", "unknown_type", "bad_call", "project_not_found", "reserved_id"}
)


class UnprintedError(OSError):
    """The answer cannot be written to standard output."""


def project_of(folder: str | None) -> str:
    """Return the project's root: the folder given, else the one that `rye.workspace.workspace.find_root` finds.

    Raises:
        UsageError: `project_not_found`.
    """
    from rye.workspace.workspace import find_root

    if folder and not os.path.isdir(folder):
        raise UsageError("project_not_found", f"There is no folder {folder}.", "Give --project an existing one.")
    return os.path.abspath(folder) if folder else find_root(os.getcwd())


def project_to_work_in(folder: str | None) -> str:
    """Return the root of the project whose files a call may change: as `project_of`, but never a whole home unless named.

    Raises:
        UsageError: `no_project`; as `project_of`.
    """
    from rye.workspace.workspace import root_to_work_in

    return project_of(folder) if folder else root_to_work_in(None)


def existing_path(word: str, project: str) -> str | None:
    """Return the project-relative path that a typed word names, as tools take it; None where nothing is there.

    The word is tried from the current folder first, then from the project root, as answers show paths.
    """
    from rye.fs import names

    current = os.path.relpath(os.getcwd(), project)
    shown = names.show(os.fsencode(word))
    # In this order: what a person types is relative to where they are, what they copy is as an answer showed it.
    for path in dict.fromkeys([_joined(current, shown), shown, word]):
        try:
            if os.path.lexists(os.path.join(os.fsencode(project), names.parse(path))):
                return path
        except (ValueError, UnicodeEncodeError):
            continue
    return None


def typed_path(word: str, project: str) -> str:
    """Return the project-relative path for a typed word; where nothing is there, the path from the current folder."""
    from rye.fs import names

    found = existing_path(word, project)
    return found if found is not None else _joined(os.path.relpath(os.getcwd(), project), names.show(os.fsencode(word)))


def _joined(current: str, path: str) -> str:
    if path.startswith("/") or current == "." or current.startswith(".."):
        return path
    from rye.fs import names

    return os.path.join(names.show(os.fsencode(current)), path) if path else path


def print_json(obj: object, stream: TextIO | None = None) -> None:
    """Print JSON, indented, on `stream` (standard output); characters that its encoding lacks are escaped."""
    stream = stream or sys.stdout
    text = json.dumps(obj, indent=2, ensure_ascii=False)
    try:
        # Tried first: JSON can escape every character, so no answer fails for its terminal's encoding.
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(obj, indent=2)
    print(text, file=stream)


def told_json(args: SimpleNamespace, content: object, stream: TextIO | None = None) -> bool:
    """Print an answer as JSON where that is asked for; tell whether it was."""
    if args.json:
        print_json(content, stream)
    return bool(args.json)


def tell(args: SimpleNamespace, content: object, text: str) -> int:
    """Print an answer as JSON where that is asked for, else as this text; return EXIT_OK."""
    if not told_json(args, content):
        print(harmless(text))
    return EXIT_OK


def tell_rows(args: SimpleNamespace, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> int:
    """Print rows as JSON where that is asked for, else as a table of these fields; return EXIT_OK."""
    if not told_json(args, rows):
        print_table(rows, columns)
    return EXIT_OK


def print_table(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, prose: str | None = None) -> None:
    """Print the named fields of rows as aligned text under a heading; None prints as nothing.

    At a terminal the column `prose` is cut, so that a row fits. Other values are never cut, nor is anything in a pipe.
    """
    from rye.cli import terminal

    headings = [column.replace("_", " ").upper() for column in columns]
    lines = [[printable("" if row.get(name) is None else str(row[name])) for name in columns] for row in rows]
    widths = [max(map(terminal.cells, column)) for column in zip(headings, *lines, strict=True)]
    room = terminal.columns(sys.stdout)
    if prose is not None and room is not None:
        at = columns.index(prose)
        others = sum(widths) - widths[at] + 2 * (len(widths) - 1)
        # A column too narrow to say anything is not cut further: the terminal wraps it.
        widths[at] = min(widths[at], max(room - others, 16))
        lines = [[*line[:at], terminal.cut(line[at], widths[at]), *line[at + 1 :]] for line in lines]
    for at, line in enumerate([headings, *lines]):
        padded = [value + " " * (width - terminal.cells(value)) for value, width in zip(line, widths, strict=True)]
        styles = [
            "heading" if at == 0 else value if name == "verdict" else "" for name, value in zip(columns, line, strict=True)
        ]
        padded[-1] = line[-1]
        shown = [terminal.styled(value, style, sys.stdout) for value, style in zip(padded, styles, strict=True)]
        print("  ".join(shown).rstrip())


def size_text(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1_000:.1f} KB"


def printable(text: str) -> str:
    """Return text on one line that cannot steer a terminal: what does not print, or cannot be encoded, is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe.encode(encoding, "backslashreplace").decode(encoding)


def harmless(text: str) -> str:
    """Return text whose control characters cannot steer a terminal: they are shown as escapes; lines and tabs stay."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def note(text: str) -> None:
    """Say what stands beside an answer, on standard error; no text in it can steer a terminal."""
    print(harmless(f"rye: {text}"), file=sys.stderr)


@contextmanager
def answer_stream() -> Iterator[TextIO]:
    """Point descriptor 1 at standard error for good, and return another one for the answer, which no tool knows.

    Otherwise a tool that outlives its call could still write into the answer.

    Raises:
        UnprintedError: what was written there cannot be printed.
    """
    if not _writes_to_stdout(sys.stdout):
        yield sys.stdout
        return
    sys.stdout.flush()
    real = os.dup(1)
    # From here on a print of a tool, or of a child that it leaves running, reaches standard error.
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


def _writes_to_stdout(stream: TextIO) -> bool:
    try:
        return stream.fileno() == 1
    except (OSError, ValueError, AttributeError):
        return False


def require_extra(extra: str, *distributions: str) -> None:
    """Raise UsageError `extra_missing` where one of an extra's distributions is not installed."""
    if not all(map(is_installed, distributions)):
        raise UsageError("extra_missing", f"This needs the extra `{extra}`.", f"Install it: {install_command(extra)}")


def is_installed(distribution: str) -> bool:
    """Tell whether a distribution is there, without the half second that importing it can take."""
    from importlib import metadata

    try:
        return bool(metadata.version(distribution))
    except metadata.PackageNotFoundError:
        return False


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this very installation: a checkout stays editable."""
    import shlex

    editable = "-e " if _direct_url().get("dir_info", {}).get("editable") else ""
    # Never the bare name: no index holds this project, and anyone could register the name there.
    folder = clone() or "/path/to/clone"
    return f"pip install {editable}{shlex.quote(f'{folder}[{extra}]')}"


def clone() -> str:
    """Return the folder that this installation came from, or nothing."""
    from urllib.parse import unquote, urlsplit

    url = urlsplit(_direct_url().get("url", ""))
    return unquote(url.path) if url.scheme == "file" else ""


def _direct_url() -> dict[str, Any]:
    """Return what the installer noted of where this distribution came from; {} where it noted nothing."""
    from importlib import metadata

    try:
        found = json.loads(metadata.distribution("rye-workspace").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def exit_code(response: dict[str, Any]) -> int:
    """Return the exit code for a response of the executor."""
    if response["status"] != "error":
        return EXIT_OK
    # Parameters that the schema refuses are the caller's mistake, also where the refusal comes in the tool's envelope.
    if response["metadata"]["ran"] and response.get("code") != "invalid_parameters":
        # Of a command that ended by itself it is the command's own.
        code = (response["data"] or {}).get("exit_code")
        return code if response.get("code") == "command_failed" and code.__class__ is int and 0 < code < 256 else EXIT_NO
    from rye.trust.verify import VERDICTS

    code = response.get("code")
    # First: an id that nobody serves is the caller's mistake, although files may be judged by the same word.
    if code in _USAGE_CODES:
        return EXIT_USAGE
    return EXIT_TRUST if code in (*VERDICTS, "lockfile_mismatch", "trust_store_unreadable") else EXIT_NO
