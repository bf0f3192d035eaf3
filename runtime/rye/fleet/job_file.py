"""Jobs, as a file of JSON lines or Python values give them: a workspace and the calls to make in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from rye.errors import UsageError
from rye.plain_class import Record

MAX_LINE: Final = 16 * 1024 * 1024
"""A longer line of a job file is refused (bytes)."""

_MOST_TOLD: Final = 20
_FIELDS: Final = {"workspace", "calls", "repeat", "on_error", "id"}
_CALL_FIELDS: Final = {"item_id", "parameters", "repeat"}


class _ProblemError(Exception):
    """What is wrong with a job, without its place."""


class Job(Record):
    """One job.

    Attributes:
        number: its line in the file, from 1; of Python values its place.
        workspace: the project's root, absolute.
        calls: as `rye.fleet.adapter.run_workspace` takes them.
        repeat: commands may be run again after they were cut off.
        on_error: "stop" or "continue".
        id: the caller's own name for it; empty where it has none.
    """

    number: int
    workspace: str
    calls: list[dict[str, Any]]
    repeat: bool = False
    on_error: str = "stop"
    id: str = ""

    @property
    def digest(self) -> str:
        """Twelve hex digits over all that it says."""
        fields = [self.workspace, self.calls, self.repeat, self.on_error, self.id]
        return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:12]


def read(path: str) -> list[Job]:
    """Return the jobs of a file; blank lines are left out, relative workspaces are below the file's folder.

    Raises:
        UsageError: `bad_jobs`, naming the lines; `jobs_unreadable`.
    """
    base = os.path.dirname(os.path.abspath(path))
    jobs: list[Job] = []
    problems: list[str] = []
    try:
        with open(path, "rb") as file:
            for number, line in _lines(file):
                try:
                    if line.strip():
                        jobs.append(_job(number, _parsed(line), base))
                except _ProblemError as err:
                    problems.append(f"{path}:{number}: {err}")
                    if len(problems) > _MOST_TOLD:
                        break
    except OSError as err:
        raise UsageError("jobs_unreadable", f"{path} cannot be read: {err.strerror}.", "Name a file of JSON lines.") from None
    _refuse(problems)
    if not jobs:
        raise UsageError("bad_jobs", f"{path} has no job.", "Give one JSON object a line; `rye fleet --help` shows one.")
    return jobs


def of_values(workspaces: Iterable[Any], calls: Sequence[Any], *, repeat: bool, on_error: str) -> list[Job]:
    """Return a job for each workspace, with the same calls.

    Raises:
        UsageError: `bad_jobs`.
    """
    jobs: list[Job] = []
    problems: list[str] = []
    for number, workspace in enumerate(workspaces, 1):
        named = os.fspath(workspace) if isinstance(workspace, os.PathLike) else workspace
        fields = {"workspace": named, "calls": list(calls), "repeat": repeat, "on_error": on_error}
        try:
            jobs.append(_job(number, fields, os.getcwd()))
        except _ProblemError as err:
            problems.append(f"workspace {number}: {err}")
            if len(problems) > _MOST_TOLD:
                break
    _refuse(problems)
    return jobs


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise UsageError("bad_jobs", f"{file.name}:{number}: the line is longer than {MAX_LINE:,} bytes.", "Shorten it.")
        yield number, line


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        message = "\n".join(problems[:_MOST_TOLD]) + ("\n…" if len(problems) > _MOST_TOLD else "")
        raise UsageError("bad_jobs", f"{message}\n", "Correct them; nothing was run.", problems=list(problems[:_MOST_TOLD]))


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError as err:
        raise _ProblemError(f"byte {err.start + 1} is no UTF-8") from None
    except json.JSONDecodeError as err:
        raise _ProblemError(f"no JSON: {err.msg} at column {err.colno}") from None
    except RecursionError:
        raise _ProblemError("no JSON: it is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _ProblemError(f"the field {next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _job(number: int, fields: Any, base: str) -> Job:
    """Return the job that an object says. Raises _ProblemError."""
    _fields("the job", fields, _FIELDS, {"workspace": str, "calls": list})
    workspace, calls = fields["workspace"], fields["calls"]
    if not workspace or "\0" in workspace:
        raise _ProblemError("workspace is empty, or holds a NUL")
    if not calls:
        raise _ProblemError("calls is empty")
    for at, call in enumerate(calls):
        _fields(f"calls[{at}]", call, _CALL_FIELDS, {"item_id": str})
        if not isinstance(call.get("parameters", {}), dict):
            raise _ProblemError(f"calls[{at}].parameters is no object")
    for name, one in [("the job", fields), *((f"calls[{at}]", call) for at, call in enumerate(calls))]:
        if not isinstance(one.get("repeat", False), bool):
            raise _ProblemError(f"repeat of {name} is neither true nor false")
    on_error, named = fields.get("on_error", "stop"), fields.get("id", "")
    if on_error not in ("stop", "continue"):
        raise _ProblemError('on_error is neither "stop" nor "continue"')
    if not isinstance(named, str):
        raise _ProblemError("id is no text")
    try:
        json.dumps([workspace, calls, named], ensure_ascii=False, allow_nan=False).encode()
    except (UnicodeEncodeError, ValueError, TypeError):
        raise _ProblemError("a text or number in it is not valid JSON") from None
    root = os.path.normpath(os.path.join(base, workspace))
    return Job(number, root, [dict(call) for call in calls], bool(fields.get("repeat", False)), on_error, named)


def _fields(name: str, fields: Any, known: set[str], needed: Mapping[str, type]) -> None:
    if not isinstance(fields, Mapping):
        raise _ProblemError(f"{name} is no object")
    unknown = sorted(map(str, fields.keys() - known))
    if unknown:
        raise _ProblemError(f"{name} has the unknown field {unknown[0]!r}; known are {', '.join(sorted(known))}")
    for field, kind in needed.items():
        if not isinstance(fields.get(field), kind):
            kind_name = "text" if kind is str else "a list"
            raise _ProblemError(f"{name} has no {field}, or one that is not {kind_name}")
