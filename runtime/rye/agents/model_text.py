"""What a model reads of a result: one text, in which each thing is said once.

The MCP server and the toolsets make their answers here, so a model reads the same whichever way a tool was called. A tool's
`output` is complete in itself; its other fields are for programs and stay out. A command that ended by itself is a result,
whatever its exit code: only what a tool could not do is an error.
"""

from __future__ import annotations

import json
import re
import threading
from typing import Any, Final, NamedTuple

from rye.call.results import first_few
from rye.sandbox.policy import NETWORK_ON
from rye.snapshots.passed_over import CACHE

COMMAND_FAILED: Final = "command_failed"
"""The code of a command that ran to its end and did not exit with 0."""

_NOTICE: Final = re.compile(r"^\[tool_result: .*\]$", re.MULTILINE)
_MOST_TOLD: Final = 3
_MOST_SESSIONS: Final = 4_096
_EXPECTED: Final = "[sandbox: bubblewrap]"
_UNSPOKEN: Final = frozenset({"success", "output", "stderr", "sandbox", "media"})


class Answer(NamedTuple):
    """The text that a model reads, and whether the tool failed to do what was asked."""

    text: str
    is_error: bool


def _data(response: dict[str, Any]) -> dict[str, Any]:
    data = response.get("data") or {}
    # rye_execute answers with the inner call's fields one level down.
    return {**inner, **data} if isinstance(inner := data.get("data"), dict) and "chain" in data else data


def _answer_of(response: dict[str, Any]) -> Answer:
    data = _data(response)
    if response["status"] != "error":
        return Answer(_joined([*(_output(data) or _fields(data)), *_job_ending(data)]), is_error=False)
    if data.get("code") == COMMAND_FAILED:
        return Answer(_joined([*_output(data), _ending(data)]), is_error=False)
    error = str(response.get("error") or data.get("error") or "The tool failed without a reason.")
    return Answer("\n\n".join([error, *_output(data)]), is_error=True)


def _output(data: dict[str, Any]) -> list[str]:
    """Return what a tool printed, standard error behind a mark, without parts that are empty."""
    output, errors = data.get("output"), data.get("stderr")
    parts = [output] if isinstance(output, str) and output else []
    if isinstance(errors, str) and errors:
        parts.append(f"[stderr]\n{errors}")
    # Some clients cut the middle out of a long answer, and with it the line that names the call which continues.
    if parts and data.get("output_id") and (found := _NOTICE.search(parts[0])) and found.end() < len(parts[0].rstrip()):
        parts.append(found[0])
    return parts


def _ending(data: dict[str, Any]) -> str:
    """Return the line that says how a command ended."""
    how = f"ended by {data['signal']}" if data.get("signal") else f"exit code {data.get('exit_code')}"
    silent = "" if data.get("output") or data.get("stderr") else "; it printed nothing"
    return f"[{how}{silent}]" + (f" {data['hint']}" if data.get("hint") else "")


def _job_ending(data: dict[str, Any]) -> list[str]:
    """Return how a job ended whose output is shown; of one that runs, where its next output will begin."""
    if data.get("status") == "running" and not data.get("truncated") and data.get("next_offset", 0) > data.get("offset", 0):
        return [f"[running; next offset {data['next_offset']}]"]
    if data.get("status") != "ended" or "total_bytes" not in data:
        return []
    return [_ending(data) if data.get("why") == "exited" else f"[{str(data.get('why')).replace('_', ' ')}]"]


def _fields(data: dict[str, Any]) -> list[str]:
    """Return the fields of a result that has no text."""
    fields = {name: value for name, value in data.items() if name not in _UNSPOKEN}
    # A command that printed nothing has said all there is.
    if "exit_code" in data:
        return ["[exit code 0; it printed nothing]"]
    return [json.dumps(fields or {"success": True}, ensure_ascii=False)]


def _unrecorded(data: dict[str, Any]) -> list[str]:
    """Return the line that says what undo cannot take back; caches, which programs fill by themselves, are not told."""
    left_out = data.get("not_recorded")
    told = [f"{path} ({why})" for path, why in left_out.items() if why != CACHE] if isinstance(left_out, dict) else []
    return [f"[not recorded for undo: {first_few(told, _MOST_TOLD)}]"] if told else []


def _joined(parts: list[str]) -> str:
    return "".join(part if part.endswith("\n") else f"{part}\n" for part in parts[:-1]) + parts[-1]


class Sessions:
    """Remembers what each session was told of its sandbox, and of what is not recorded. Any thread may use it.

    It is said again only when it changes. A whole sandbox is what the description of bash promises: it is not told.
    """

    def __init__(self) -> None:
        self._told: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def answer(self, response: dict[str, Any], session: str = "") -> Answer:
        """Return a response of the executor as its model reads it, without what is no news to the session.

        Args:
            response: as `rye.execute` returns it.
            session: whose model reads it.
        """
        found = _answer_of(response)
        report = (response.get("data") or {}).get("sandbox")
        lines = [*_unrecorded(_data(response)), *([sandbox_line(report)] if isinstance(report, dict) else [])]
        return Answer(_joined([found.text, *(line for line in lines if self._is_news(session, line))]), found.is_error)

    def _is_news(self, session: str, line: str) -> bool:
        subject = line.partition(":")[0]
        with self._lock:
            # Sessions come and go; the one that is forgotten is told once more.
            if session not in self._told and len(self._told) >= _MOST_SESSIONS:
                self._told.clear()
            told = self._told.setdefault(session, {"[sandbox": _EXPECTED})
            known, told[subject] = told.get(subject), line
            return known != line


def sandbox_line(report: dict[str, Any]) -> str:
    """Return the one line that says what confines commands, and what is missing against the settings."""
    missing = report.get("missing")
    named = missing.items() if isinstance(missing, dict) else ()
    lacking = [f"{name} ({why})" for name, why in named if why != NETWORK_ON]
    return f"[sandbox: {report.get('kind', 'none')}{'; not held: ' if lacking else ''}{', '.join(lacking)}]"
