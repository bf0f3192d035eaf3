# rye:signed:2026-11-28T10:02:42Z:c6ded9616527c47c8c0ca1a9a47f26e206e6644f26ccaf5a079189872a5276c9:Wiu_QOlQGQ8Nx1eb1_P7uc8K6y2Efzd0Wx-338mTfDvG3I44pf7xrEcwxBk3Oz02H3bWPAyvaPjS0KUAN20gCw==:b63173adc9f5699f
"""Work with background jobs that bash started (background=true, or a model's command after its timeout), and read on in output that bash cut.

Requires: action; job_id except for list. write takes data, wait takes timeout (default 30, at most 600).
Does not: start jobs; keep more of an output than its first and last 32 MB.
Side effects: write and close_stdin feed the job's standard input; end ends the job with all that it started (asked first where
it can be, then killed). The others change nothing. Jobs live on when this server ends; any later call can use them.
Returns: output, job_id, status (running, ended, lost: its supervisor was killed), exit_code, why, offset, next_offset,
total_bytes, truncated. Both streams of a job are in one output, as they came. list: jobs [{job_id, status, exit_code, command,
working_dir, started}]. read shows up to 50 KB from `offset` (bytes from 0; negative: from the end); pass next_offset to see what is
new; a cut ends with a [tool_result: …] line naming the call that continues. wait returns at the end or after timeout, with the
last output, or that from offset on.
Prefer it to sleeping in bash: wait returns as soon as the job is over.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rye.call.context import command_budget
from rye.call.results import call_text, cut_notice, ok
from rye.errors import RyeError, UsageError
from rye.process import job_report, job_supervisor, jobs, run, terminal_text
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/bash"
__tool_description__ = "Background jobs, running processes: list, read output, wait, send input, end; read on in long output"
__item_id__ = "rye/bash/job"
__requires_rye__ = ">=0.1"
__timeout__ = 615
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
__agent_description__ = """Handle jobs of bash, and read on in output that was cut.
Requires: action; job_id, but for list.
Does not: start jobs.
Side effects: write feeds its input, end ends it whole.
Returns: output, status, exit code, next offset.
Prefer wait to sleep in bash."""
__agent_parameters__ = {
    "action": "",
    "job_id": "",
    "offset": "Byte; negative: from the end",
    "stream": "",
    "data": "",
    "timeout": "Seconds",
}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["list", "read", "wait", "write", "close_stdin", "end"],
            "description": "What to do",
        },
        "job_id": {"type": "string", "pattern": "^[0-9a-f]{16}$", "description": "The job, or the output_id of a bash result"},
        "offset": {
            "type": "integer",
            "minimum": -1000000000000000,
            "maximum": 1000000000000000,
            "description": "First byte of output, from 0; negative counts from the end",
        },
        "stream": {
            "type": "string",
            "enum": ["stdout", "stderr"],
            "default": "stdout",
            "description": "Of a bash result's kept output: which stream to read",
        },
        "data": {"type": "string", "maxLength": 1000000, "description": "Text to write; end a line with a newline"},
        "timeout": {"type": "number", "minimum": 0, "maximum": 600, "description": "Longest wait in seconds (default 30)"},
    },
    "required": ["action"],
    "additionalProperties": False,
}

_DEFAULT_WAIT = 30.0
_COMMAND_SHOWN = 80
_END_SECONDS = 6.0
_ANSWER_SECONDS = 5.0


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return what the action gives."""
    action, job_id, offset = params["action"], params.get("job_id"), params.get("offset")
    with Workspace(project_path) as ws:
        if action == "list":
            return _list(jobs.records(ws.fd))
        if job_id is None:
            raise UsageError("bad_job_call", f"{action} needs a job_id.", f"{call_text('job', action='list')} shows the jobs.")
        with jobs.home(ws.fd, job_id) as home:
            record = jobs.record(home)
            if action == "read":
                return job_report.window(home, job_id, record, offset or 0, params.get("stream", "stdout"))
            if record is None:
                why = f"{job_id} is the stored output of a command that is over."
                raise UsageError("bad_job_call", why, 'Only action="read" applies to it.')
            if action == "wait":
                return _wait(home, record, offset, params.get("timeout", _DEFAULT_WAIT))
            if action == "end":
                return _end(home, record)
            return _write(home, record, action, params.get("data"))


def _list(found: list[jobs.Record]) -> dict[str, Any]:
    rows = [
        {
            "job_id": one["job_id"],
            **job_report.status_fields(one),
            "command": one["command"],
            "working_dir": one["working_dir"],
            "started": datetime.fromtimestamp(one["started"], UTC).isoformat(timespec="seconds"),
        }
        for one in found
    ]
    lines = [f"{row['job_id']}  {job_report.status_words(row)}  {_short(row['command'])}" for row in rows]
    return ok("\n".join(lines) or "[no jobs]", jobs=rows, count=len(rows))


def _short(command: str) -> str:
    # A command line can hold control characters, which would garble the list.
    text = terminal_text.plain(" ".join(command.split()).encode("utf-8", "replace"))
    return text if len(text) <= _COMMAND_SHOWN else f"{text[: _COMMAND_SHOWN - 1]}…"


def _wait(home: int, record: jobs.Record, offset: int | None, seconds: float) -> dict[str, Any]:
    """Wait for the end; then the output from `offset` on, or its last part."""
    if record["status"] == "running":
        # Whether it answers or the time is up: the record is the one source of the status.
        jobs.ask(home, {"do": "wait"}, seconds)
        record = jobs.record(home) or record
    if offset is not None:
        return job_report.window(home, record["job_id"], record, offset, job_supervisor.OUTPUT)
    budget = command_budget() - job_report.NOTICES
    part = job_report.part(home, record, -budget, budget, job_supervisor.OUTPUT)
    text, size = terminal_text.last(part.data, budget)
    before = part.total - size
    if before:
        call = call_text("job", action="read", job_id=record["job_id"], offset=0)
        text = f"{cut_notice(size, part.total, 'bytes', call)}\n{text}"
    if record["status"] == "running":
        text += ("" if not text or text.endswith("\n") else "\n") + f"[still running after {seconds:g} s]"
    text = job_report.with_line(text, job_report.notes(record))
    fields = {"offset": before, "next_offset": part.total, "total_bytes": part.total, "truncated": before > 0}
    return ok(text, job_id=record["job_id"], **job_report.status_fields(record), **fields)


def _end(home: int, record: jobs.Record) -> dict[str, Any]:
    job_id = record["job_id"]
    if record["status"] == "lost":
        # No supervisor is left to ask: its processes are found by the variable that they carry.
        if not run.end_marked(record["mark"]):
            raise RyeError("job_unreachable", f"Not all that job {job_id} left could be ended.", "Try again in a moment.")
        text = f"The supervisor of job {job_id} had been killed; what it left was ended."
        return ok(text, job_id=job_id, **job_report.status_fields(record))
    if record["status"] == "running":
        jobs.ask(home, {"do": "end"}, _END_SECONDS)
        record = jobs.record(home) or record
    if record["status"] == "running":
        raise RyeError("job_unreachable", f"The supervisor of job {job_id} does not answer.", "Try again in a moment.")
    fields = job_report.status_fields(record)
    survivors = f"; {fields['survivors']} of its processes could not be ended" if fields.get("survivors") else ""
    return ok(f"Job {job_id}: {job_report.status_words(fields)}{survivors}.", job_id=job_id, **fields)


def _write(home: int, record: jobs.Record, action: str, data: str | None) -> dict[str, Any]:
    job_id = record["job_id"]
    if (data is None) == (action == "write"):
        said = "data belongs to write, and write needs it."
        raise UsageError("bad_job_call", said, call_text("job", action="write", job_id=..., data="y\n") + ".")
    if record["status"] != "running":
        what = f"Job {job_id} is over ({job_report.status_words(job_report.status_fields(record))})."
        raise UsageError("bad_job_call", what, "Start it again with bash.")
    answer = jobs.ask(home, {"do": action, "data": data}, _ANSWER_SECONDS)
    if answer is None:
        raise RyeError("job_unreachable", f"The supervisor of job {job_id} does not answer.", "Look with read, then try again.")
    if "error" in answer:
        why = {
            "stdin_closed": ("its standard input is closed", "Start it again with bash."),
            "stdin_full": ("it does not read the input it has", "Wait until it does, or end it."),
        }
        reason, hint = why.get(answer["error"], ("the request was refused", ""))
        raise RyeError(answer["error"], f"Nothing was written to job {job_id}: {reason}.", hint)
    size = len((data or "").encode("utf-8", "replace"))
    text = f"Wrote {size} bytes." if action == "write" else "Closed its standard input."
    return ok(text, job_id=job_id, **job_report.status_fields(record))
