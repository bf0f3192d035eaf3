"""What the verbs of the command line share: the project, typed paths, missing extras, who is there, and where answers go.

What gives trust or signs is never done by an agent's command unless its user allowed it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rye.call import context
from rye.cli.process import UnprintedError
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.fs import names


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


def project_of(folder: str | None) -> str:
    """Return the project's root: the folder given, else the one that `rye.workspace.workspace.find_root` finds.

    Raises:
        UsageError: `project_not_found`.
    """
    from rye.workspace.workspace import find_root

    if folder and not os.path.isdir(folder):
        raise UsageError("project_not_found", f"There is no folder {folder}.", "Give --project an existing one.")
    return os.path.abspath(folder) if folder else find_root()


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
    current = current_in(project)
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
    found = existing_path(word, project)
    return found if found is not None else _joined(current_in(project), names.show(os.fsencode(word)))


def current_in(project: str) -> str:
    """Return the path of the current folder from a project's root; it lies outside where it was removed."""
    try:
        return os.path.relpath(os.getcwd(), project)
    except FileNotFoundError:
        return ".."


def _joined(current: str, path: str) -> str:
    if path.startswith("/") or current == "." or current.startswith(".."):
        return path
    return os.path.join(names.show(os.fsencode(current)), path) if path else path


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
