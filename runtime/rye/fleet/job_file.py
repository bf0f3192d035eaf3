"""Jobs, as a file of JSON lines or Python values give them: a workspace and the calls to make in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final

from rye.errors import UsageError
from rye.fs.records import without_twins
from rye.items import schema
from rye.plain_class import Record

MAX_LINE: Final = 16 * 1024 * 1024
"""A longer line of a job file is refused (bytes)."""

_MOST_TOLD: Final = 20


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
    try:
        with open(path, "rb") as file:
            jobs = _jobs(((number, f"{path}:{number}", line) for number, line in _lines(file) if line.strip()), base)
    except OSError as err:
        raise UsageError("jobs_unreadable", f"{path} cannot be read: {err.strerror}.", "Name a file of JSON lines.") from None
    if not jobs:
        raise UsageError("bad_jobs", f"{path} has no job.", "Give one JSON object a line; `rye fleet --help` shows one.")
    return jobs


def of_values(workspaces: Iterable[Any], calls: Sequence[Any], *, repeat: bool, on_error: str) -> list[Job]:
    """Return a job for each workspace, with the same calls.

    Raises:
        UsageError: `bad_jobs`.
    """
    shared = {"calls": list(calls), "repeat": repeat, "on_error": on_error}
    named = (os.fspath(one) if isinstance(one, os.PathLike) else one for one in workspaces)
    given = ((number, f"workspace {number}", {"workspace": one, **shared}) for number, one in enumerate(named, 1))
    return _jobs(given, os.getcwd())


def _jobs(given: Iterable[tuple[int, str, Any]], base: str) -> list[Job]:
    """Return the jobs of (number, place, JSON line or fields); what is wrong with the first of them is named all at once."""
    jobs: list[Job] = []
    problems: list[str] = []
    for number, place, fields in given:
        try:
            jobs.append(_job(number, _parsed(fields) if isinstance(fields, bytes) else fields, base))
        except _ProblemError as err:
            problems.append(f"{place}: {err}")
            if len(problems) > _MOST_TOLD:
                break
    if problems:
        message = "\n".join(problems[:_MOST_TOLD]) + ("\n…" if len(problems) > _MOST_TOLD else "")
        raise UsageError("bad_jobs", f"{message}\n", "Correct them; nothing was run.", problems=problems[:_MOST_TOLD])
    return jobs


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise UsageError("bad_jobs", f"{file.name}:{number}: the line is longer than {MAX_LINE:,} bytes.", "Shorten it.")
        yield number, line


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=without_twins)
    except (ValueError, RecursionError) as err:
        raise _ProblemError(f"no JSON in UTF-8: {err}") from None


def _job(number: int, fields: Any, base: str) -> Job:
    """Return the job that an object says. Raises _ProblemError."""
    try:
        made = _checker().check(fields)
    except UsageError as err:
        raise _ProblemError("; ".join(err.details.get("problems", [err.message]))) from None
    root = os.path.normpath(os.path.join(base, made["workspace"]))
    return Job(number, root, made["calls"], made["repeat"], made["on_error"], made["id"])


@cache
def _checker() -> schema.SchemaChecker:
    properties = {"item_id": {"type": "string"}, "parameters": {"type": "object"}, "repeat": {"type": "boolean"}}
    call = {"type": "object", "required": ["item_id"], "properties": properties, "additionalProperties": False}
    fields = {
        "workspace": {"type": "string", "pattern": "^[^\\x00]+$"},
        "calls": {"type": "array", "items": call, "minItems": 1},
        "repeat": {"type": "boolean", "default": False},
        "on_error": {"enum": ["stop", "continue"], "default": "stop"},
        "id": {"type": "string", "default": ""},
    }
    return schema.SchemaChecker(
        {"type": "object", "required": ["workspace", "calls"], "properties": fields, "additionalProperties": False}
    )
