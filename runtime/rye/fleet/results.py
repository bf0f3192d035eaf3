"""The file of a fleet's results: JSON lines, each written whole and flushed. The first names the run, by which it is resumed.

    {"fleet": 1, "run": "5f0c…"}
    {"job": 1, "id": "", "workspace": "/w/1", "digest": "…", "status": "done", "calls": […], "seconds": 0.02}

A last line that was cut short by a crash counts as not written, and is removed when the run is resumed.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from rye.errors import UsageError
from rye.fleet.job_file import Job

_FORMAT: Final = 1
_REASONS: Final = 3
_HEADER, _RECORD = b'{"fleet": ', b'{"job": '


class FleetResults:
    """Where results go: a file, standard output, or nowhere.

    Attributes:
        run: names this run in the keys of its calls.
        finished: line numbers of the jobs that have a result already.
        counts: how many results there are, by status, earlier ones included.
        reasons: of the first three that are not done, which job it is and why.
    """

    def __init__(self, stream: BinaryIO | None = None, run: str = "") -> None:
        """Write to a stream, or only count; the run has a new name, unless it is resumed."""
        self._stream = stream
        self.run = run or os.urandom(8).hex()
        self.finished: set[int] = set()
        self.counts: dict[str, int] = {}
        self.reasons: list[str] = []

    def add(self, job: Job, result: dict[str, Any]) -> dict[str, Any]:
        """Write one job's result; return its record. Raises OSError."""
        named = {"job": job.number, "id": job.id, "workspace": job.workspace, "digest": job.digest}
        record = named | result
        self.write(record)
        self.counts[result["status"]] = self.counts.get(result["status"], 0) + 1
        if result["status"] != "done" and len(self.reasons) < _REASONS:
            bad: dict[str, Any] = next((one for one in result["calls"] if one["status"] in ("error", "unknown")), {})
            why = result.get("error") or bad.get("error") or (bad.get("data") or {}).get("error") or "it was cut off"
            self.reasons.append(f"job {job.number} in {job.workspace}: {result['status']}: {' '.join(str(why).split())[:300]}")
        return record

    def write(self, record: dict[str, Any]) -> None:
        """Write a line, whole."""
        if self._stream is not None:
            self._stream.write(json.dumps(record).encode("ascii") + b"\n")
            self._stream.flush()

    def close(self) -> None:
        """Make the results durable, where they are in a file."""
        if self._stream is not None and self._stream is not sys.stdout.buffer:
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._stream = None


def to_file(path: str, jobs: Sequence[Job], *, resume: bool) -> FleetResults:
    """Return a file for results: a new one, or with `resume` one that a run of the same jobs began.

    Raises:
        UsageError: `results_exist`, `not_results`, `jobs_changed`, `results_in_use`, `results_unwritable`. Nothing was changed.
    """
    try:
        file = open(path, "a+b")  # noqa: SIM115 - for the whole run
    except OSError as err:
        raise UsageError("results_unwritable", f"{path} cannot be written: {err.strerror}.", "Name another file.") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(0)
        data = file.read()
        if data and not resume:
            raise UsageError("results_exist", f"{path} is not empty.", "Give --resume to go on with its run, or another file.")
        complete_lines = data[: data.rfind(b"\n") + 1]
        torn, begin = data[len(complete_lines) :], _RECORD if complete_lines else _HEADER
        # Only a line of ours that was cut short is removed.
        if not torn.startswith(begin[: len(torn)]):
            raise _no_results(path)
        results = _resumed(file, path, complete_lines, jobs) if complete_lines else FleetResults(file)
        # What follows the last line's end was being written when the run was cut off.
        file.truncate(len(complete_lines))
        if not complete_lines:
            results.write({"fleet": _FORMAT, "run": results.run})
        return results
    except BlockingIOError:
        file.close()
        raise UsageError("results_in_use", f"Another run writes to {path}.", "Wait for it, or name another file.") from None
    except BaseException:
        file.close()
        raise


def _resumed(file: BinaryIO, path: str, data: bytes, jobs: Sequence[Job]) -> FleetResults:
    head, *lines = data.splitlines()
    try:
        header = json.loads(head)
        if header["fleet"] != _FORMAT:
            raise ValueError(header["fleet"])
        results = FleetResults(file, str(header["run"]))
        records = [json.loads(line) for line in lines]
        known = {job.number: job for job in jobs}
        for record in records:
            job = known.get(record["job"])
            if job is None or record["digest"] != job.digest:
                why = f"Job {record['job']} is another than the one whose result is in {path}."
                hint = "Resume with the same job file (lines may be added at its end), or begin a new run with another --out."
                raise UsageError("jobs_changed", why, hint)
            if record["job"] not in results.finished:
                results.finished.add(record["job"])
                results.counts[record["status"]] = results.counts.get(record["status"], 0) + 1
    except (ValueError, LookupError, TypeError):
        raise _no_results(path) from None
    return results


def _no_results(path: str) -> UsageError:
    return UsageError("not_results", f"{path} holds no results of a fleet.", "Name the file of the run to resume.")
