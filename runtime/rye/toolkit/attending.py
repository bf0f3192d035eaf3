"""What `job` does: background jobs listed, read, waited for, written to and ended; and kept long outputs read in pages."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError, UsageError
from rye.toolkit import console, jobs, process, spool, supervisor
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from rye.toolkit.jobs import Record

DEFAULT_WAIT = 30.0

_NOTICES = 400
_COMMAND_SHOWN = 80
_END_PATIENCE = 5.0
_ANSWERS = 5.0


def job(
    project_path: str, action: str, job_id: str | None = None, offset: int | None = None, stream: str = "stdout",
    data: str | None = None, timeout: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/bash/job`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `job_not_found`, `bad_job_call` (a parameter is missing, or the job is over).
        RyeError: `stdin_full`, `stdin_closed`, `job_unreachable`.
    """
    with Workspace(project_path) as ws:
        if action == "list":
            return _list(jobs.records(ws.root))
        if job_id is None:
            raise UsageError("bad_job_call", f"{action} needs a job_id.", 'job(action="list") shows the jobs.')
        with jobs.home(ws.root, job_id) as home:
            record = jobs.record(home)
            if action == "read":
                return _read(home, job_id, record, 0 if offset is None else offset, stream)
            if record is None:
                raise UsageError(
                    "bad_job_call",
                    f"{job_id} is the kept output of a command that is over.",
                    'Only action="read" applies to it.',
                )
            if action == "wait":
                return _wait(home, record, offset, DEFAULT_WAIT if timeout is None else timeout)
            if action == "end":
                return _end(home, record)
            return _write(home, record, action, data)


def _list(found: list[Record]) -> dict[str, Any]:
    rows = [
        {
            "job_id": one["job_id"], **_standing(one), "command": one["command"], "working_dir": one["working_dir"],
            "started": datetime.fromtimestamp(one["started"], UTC).isoformat(timespec="seconds"),
        }
        for one in found
    ]  # fmt: skip
    lines = [f"{row['job_id']}  {_words(row)}  {_short(row['command'])}" for row in rows]
    return ok("\n".join(lines) or "[no jobs]", jobs=rows, count=len(rows))


def _short(command: str) -> str:
    text = console.plain(" ".join(command.split()).encode("utf-8", "replace"))
    return text if len(text) <= _COMMAND_SHOWN else f"{text[: _COMMAND_SHOWN - 1]}…"


def _standing(record: Record) -> dict[str, Any]:
    """Return how a job stands, as fields."""
    fields: dict[str, Any] = {"status": record["status"], "exit_code": None}
    status = record.get("exit_status")
    if status is not None:
        code = os.waitstatus_to_exitcode(status)
        fields["exit_code"] = code if code >= 0 else None
        if code < 0:
            fields["signal"] = process.signal_name(-code)
    if record["status"] == "ended":
        fields["why"] = record["why"]
        if record.get("left"):
            fields["survivors"] = record["left"]
    if record["status"] == "lost":
        fields["why"] = "its supervisor was killed; without a sandbox, what it had started may still run: end it"
    return fields


def _words(fields: dict[str, Any]) -> str:
    if fields["status"] != "ended":
        return str(fields["status"])
    if fields["why"] != "exited":
        return {"ended": "ended on request", "timed_out": "timed out"}[fields["why"]]
    return f"exit code {fields['exit_code']}" if fields["exit_code"] is not None else f"ended by {fields.get('signal')}"


def _read(home: int, job_id: str, record: Record | None, offset: int, stream: str) -> dict[str, Any]:
    room = output_room() - _NOTICES
    part = _part(home, record, offset, room, stream)
    text, taken = console.first(_at_lines(part), room)
    after = part.start + taken
    fields = {
        "job_id": job_id, **(_standing(record) if record else {}), "offset": part.start, "next_offset": after,
        "total_bytes": part.total, "truncated": after < part.total,
    }  # fmt: skip
    if part.lost:
        text = f"[{part.lost} bytes before this are no longer kept]\n{text}"
    if after < part.total:
        which = "" if stream == "stdout" or record else f", stream={json.dumps(stream)}"
        call = f'job(action="read", job_id="{job_id}"{which}, offset={after})'
        text += ("" if text.endswith("\n") else "\n") + envelope(taken, part.total, "bytes", call, part.total - after)
    elif record and not taken:
        text += f"[no output {'so far' if part.total == 0 else 'since then'}; {_words(_standing(record))}]"
    return ok(text, **fields)


def _at_lines(part: spool.Part) -> bytes:
    """Return what was read up to its last whole line, where more follows."""
    cut = part.data.rfind(b"\n") + 1
    return part.data[:cut] if cut and part.start + len(part.data) < part.total else part.data


def _part(home: int, record: Record | None, offset: int, most: int, stream: str) -> spool.Part:
    name = supervisor.OUTPUT if record else stream
    try:
        return spool.read(home, name, offset, most)
    except (OSError, ValueError):
        raise UsageError(
            "bad_job_call", f"Nothing was kept of {name}.", "The command's result held all of it, or name the other stream."
        ) from None


def _wait(home: int, record: Record, offset: int | None, seconds: float) -> dict[str, Any]:
    """Wait for the end; then the output from `offset` on, or its last part."""
    if record["status"] == "running":
        jobs.ask(home, {"do": "wait"}, seconds)
        record = jobs.record(home) or record
    if offset is not None:
        return _read(home, record["job_id"], record, offset, supervisor.OUTPUT)
    room = output_room() - _NOTICES
    part = _part(home, record, -room, room, supervisor.OUTPUT)
    text, taken = console.last(part.data, room)
    before = part.total - taken
    if before:
        call = f'job(action="read", job_id="{record["job_id"]}", offset=0)'
        text = f"{envelope(taken, part.total, 'bytes', call)}\n{text}"
    if record["status"] == "running":
        text += ("" if not text or text.endswith("\n") else "\n") + f"[still running after {seconds:g} s]"
    fields = {"offset": before, "next_offset": part.total, "total_bytes": part.total, "truncated": before > 0}
    return ok(text, job_id=record["job_id"], **_standing(record), **fields)


def _end(home: int, record: Record) -> dict[str, Any]:
    job_id = record["job_id"]
    if record["status"] == "lost":
        found = process.end_marked(record["mark"])
        return ok(
            f"The supervisor of job {job_id} had been killed; {found} processes that it left were ended.", job_id=job_id,
            **_standing(record), ended=found,
        )  # fmt: skip
    if record["status"] == "running":
        jobs.ask(home, {"do": "end"}, _END_PATIENCE)
        record = jobs.record(home) or record
        end = time.monotonic() + 1.0
        while record["status"] == "running" and time.monotonic() < end:
            time.sleep(0.02)
            record = jobs.record(home) or record
    if record["status"] == "running":
        raise RyeError("job_unreachable", f"The supervisor of job {job_id} does not answer.", "Try again in a moment.")
    fields = _standing(record)
    left = f"; {fields['survivors']} of its processes could not be ended" if fields.get("survivors") else ""
    return ok(f"Job {job_id}: {_words(fields)}{left}.", job_id=job_id, **fields)


def _write(home: int, record: Record, action: str, data: str | None) -> dict[str, Any]:
    job_id = record["job_id"]
    if (data is None) == (action == "write"):
        raise UsageError(
            "bad_job_call", "data belongs to write, and write needs it.", 'job(action="write", job_id=…, data="y\\n").'
        )
    if record["status"] != "running":
        raise UsageError("bad_job_call", f"Job {job_id} is over ({_words(_standing(record))}).", "Start it again with bash.")
    answer = jobs.ask(home, {"do": action, "data": data}, _ANSWERS)
    if answer is None:
        raise RyeError("job_unreachable", f"The supervisor of job {job_id} does not answer.", "Look with read, then try again.")
    if "error" in answer:
        why = {
            "stdin_closed": ("its standard input is closed", "Start it again with bash."),
            "stdin_full": ("it does not read the input it has", "Wait until it does, or end it."),
        }  # fmt: skip
        said, hint = why.get(answer["error"], ("the request was refused", ""))
        raise RyeError(answer["error"], f"Nothing was written to job {job_id}: {said}.", hint)
    size = len((data or "").encode("utf-8", "replace"))
    return ok(f"Wrote {size} bytes." if action == "write" else "Closed its standard input.", job_id=job_id, **_standing(record))
