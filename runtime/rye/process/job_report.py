"""Windows of a job's output, and its status in fields and words: for the job tool and for MCP resources."""

from __future__ import annotations

from typing import Any

from rye.call.context import command_budget
from rye.call.results import cut_notice, ok
from rye.errors import UsageError
from rye.process import job_supervisor, output_files, run, terminal_text
from rye.process.jobs import Record

NOTICES = 400
"""Bytes of an answer that are reserved for notes about the output."""

_WHY = {
    "ended": "ended on request",
    "timed_out": "timed out",
    "unprotected": "ended because a protected name was replaced from outside",
}


def status_fields(record: Record) -> dict[str, Any]:
    """Return the status of a job, as fields of a result."""
    code, by_signal = run.code_and_signal(record.get("exit_status"))
    fields: dict[str, Any] = {"status": record["status"], "exit_code": code}
    if by_signal:
        fields["signal"] = by_signal
    if record["status"] == "ended":
        fields["why"] = record["why"]
        if record.get("left"):
            fields["survivors"] = record["left"]
    fields |= {name: record[name] for name in ("uncovered", "set_aside") if record.get(name)} | (record.get("changes") or {})
    if record["status"] == "lost":
        fields["why"] = "its supervisor was killed; without a sandbox, what it had started may still run: end it"
    return fields


def status_words(fields: dict[str, Any]) -> str:
    """Say the same in a few words."""
    if fields["status"] != "ended":
        return str(fields["status"])
    if fields["why"] != "exited":
        return _WHY[fields["why"]]
    return f"exit code {fields['exit_code']}" if fields["exit_code"] is not None else f"ended by {fields.get('signal')}"


def notes(record: Record) -> str:
    """Say what the sandbox did at the job's end; empty for nothing."""
    # Late: most jobs have nothing of it.
    from rye.process.autorun import command_check

    lines = []
    if path := record.get("uncovered"):
        lines.append(
            f"[sandbox: another file was put at {path} from outside, as git does for its own configuration. The sandbox covers "
            "the old one only, so the job was ended. Start it again.]"
        )
    if findings := record.get("set_aside"):
        lines.append(command_check.message(findings))
    return "\n".join(lines)


def part(home: int, record: Record | None, offset: int, most: int, stream: str) -> output_files.Part:
    """Return bytes of a job's output, or of a stream that a command left. Raises UsageError: `bad_job_call`."""
    name = job_supervisor.OUTPUT if record else stream
    try:
        return output_files.read(home, name, offset, most)
    except (OSError, ValueError):
        why = f"No output of {name} is stored."
        raise UsageError("bad_job_call", why, "The command's result held all of it, or name the other stream.") from None


def window(home: int, job_id: str, record: Record | None, offset: int, stream: str) -> dict[str, Any]:
    """Return the result that shows the output from `offset` on, as far as the call's limit allows.

    Args:
        home: the open folder of the job or of the stored output.
        job_id: its name.
        record: the job's record; None for a stored output.
        offset: in bytes; negative counts from the end.
        stream: which stream of a stored output.

    Raises:
        UsageError: `bad_job_call`, when that stream was not stored.
    """
    most = command_budget() - NOTICES
    found = part(home, record, offset, most, stream)
    text, size = terminal_text.first(_whole_lines(found), most)
    after = found.start + size
    fields = {
        "job_id": job_id,
        **(status_fields(record) if record else {}),
        "offset": found.start,
        "next_offset": after,
        "total_bytes": found.total,
        "truncated": after < found.total,
    }
    if found.lost:
        text = f"[{found.lost} bytes before this are no longer stored]\n{text}"
    if after < found.total:
        call = output_files.reading_call(job_id, "stdout" if record else stream, after)
        text += ("" if text.endswith("\n") else "\n") + cut_notice(size, found.total, "bytes", call, found.total - after)
    # An empty answer would look like a failure to read: say that the job has printed nothing, and how it is.
    elif record and not size:
        since = "so far" if found.total == 0 else "since then"
        text += f"[no output {since}; {status_words(status_fields(record))}]"
    if record and after == found.total:
        text = with_line(text, notes(record))
    return ok(text, **fields)


def with_line(text: str, line: str) -> str:
    """Add a line to a text, if there is one."""
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}" if line else text


def _whole_lines(found: output_files.Part) -> bytes:
    """Return what was read up to its last whole line, where more follows."""
    # A cut line may split a character or an escape code; the last part of all is returned as it is.
    cut = found.data.rfind(b"\n") + 1
    return found.data[:cut] if cut and found.start + len(found.data) < found.total else found.data
