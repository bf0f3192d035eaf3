"""`rye fleet`: calls in many workspaces, on many processes, each call once."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from rye.cli.shared import EXIT_NO, EXIT_OK, Verb, harmless, print_json
from rye.errors import UsageError
from rye.fleet import driver, job_file, results
from rye.fleet.driver import Progress

_EPILOG = """\
A job file has one JSON object a line: a workspace (relative to the file) and the calls to make in it, one after the other:

  {"workspace": "w/1", "calls": [
     {"item_id": "rye/file-system/edit_lines",
      "parameters": {"file_path": "a.py", "changes": [{"find": "old", "replace": "new"}]}},
     {"item_id": "rye/bash/bash", "parameters": {"command": "python -m pytest -q"}, "repeat": true}]}

  (all on one line). More fields of a job: "id" (your name for it), "on_error": "stop" (default) or "continue",
  "repeat": true for all its calls.

What holds:
  Each edit lands once, whatever dies and however often a job is handed out again: the journal knows the call.
  A command (bash, other signers' tools) that was cut off is reported as "unknown". It is run again only with "repeat": true.
  Jobs of one workspace run one after the other, in the order of the file. Workspaces run beside each other.
  Results are JSON lines, in the order in which jobs end; "status" is done, failed or unknown.
  Ctrl-C ends what runs and keeps the results; --resume does the rest, and repeats nothing that was done.

examples:
  rye fleet run jobs.jsonl --out results.jsonl
  rye fleet run jobs.jsonl --out results.jsonl --resume
  rye fleet run jobs.jsonl --scheduler tls://10.0.0.1:8786 --out results.jsonl

Workers of a cluster need this package, the workspaces, and one shared USER_SPACE: it holds the journals. Whoever reaches a Dask
scheduler can run programs on its workers: use TLS. Exit codes: 0 all done, 1 some failed or unknown, 2 usage, 130 Ctrl-C."""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye fleet run JOBS.jsonl [--workers N | --scheduler ADDRESS] [--out RESULTS.jsonl] [--resume] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=["run"], help="run the jobs of a file")
    parser.add_argument("jobs", metavar="JOBS.jsonl", help="a file of jobs, one JSON object a line")
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine (default: one for each processor)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="use the workers of this Dask scheduler")
    parser.add_argument("--out", metavar="FILE", help="a new file for the results (default: standard output)")
    parser.add_argument("--resume", action="store_true", help="go on with the run whose results --out names")
    parser.add_argument("--json", action="store_true", help="print the counts at the end as JSON; goes with --out")


def _run(args: argparse.Namespace) -> int:
    if (args.resume or args.json) and not args.out:
        raise UsageError("bad_option", "--resume and --json go with --out.", "Name the file of the results with --out.")
    if args.workers is not None and args.scheduler:
        raise UsageError("bad_option", "--workers and --scheduler exclude each other.", "Give one of them.")
    driver.require_library()
    # What Dask reports of connections that end is nothing to act upon.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    jobs = job_file.read(args.jobs)
    found = results.to_file(args.out, jobs, resume=args.resume) if args.out else results.to_stdout()
    shown = _Shown()
    started = time.monotonic()
    try:
        driver.run_jobs(jobs, found, workers=args.workers, scheduler=args.scheduler, progress=shown.update)
    except KeyboardInterrupt:
        shown.end()
        open_jobs = len(jobs) - sum(found.counts.values())
        print(f"rye fleet: cancelled with {open_jobs} of {len(jobs)} jobs left.{harmless(_way_on(args.out))}", file=sys.stderr)
        raise
    finally:
        found.close()
    shown.end()
    counts = {status: found.counts.get(status, 0) for status in ("done", "failed", "unknown")}
    seconds = time.monotonic() - started
    if args.json:
        print_json({"jobs": len(jobs), **counts, "seconds": round(seconds, 3), "out": args.out})
    else:
        summary = ", ".join(f"{count} {status}" for status, count in counts.items())
        print(f"rye fleet: {len(jobs)} jobs: {summary}, in {seconds:.1f} s", file=sys.stderr)
    return EXIT_OK if counts["done"] == len(jobs) else EXIT_NO


def _way_on(out: str | None) -> str:
    return f" Results are in {out}; --resume does the rest." if out else " Without --out it cannot be resumed."


class _Shown:
    """The line on standard error that tells how far a run is: twice a second at a terminal, else every ten seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic() - (1.0 if self._terminal else 0.0)
        self._open = False

    def update(self, now: Progress) -> None:
        """Show it, where it is time."""
        if time.monotonic() - self._last < (0.5 if self._terminal else 10.0):
            return
        self._last = time.monotonic()
        bad = "".join(f", {now.counts[one]} {one}" for one in ("failed", "unknown") if now.counts.get(one))
        line = f"rye fleet: {now.finished} of {now.total} jobs, {now.rate:.1f}/s{bad}, {now.workers} workers"
        print(f"\r{line}\x1b[K" if self._terminal else line, end="" if self._terminal else "\n", file=sys.stderr, flush=True)
        self._open = self._terminal

    def end(self) -> None:
        """Leave the line."""
        if self._open:
            print(file=sys.stderr)
            self._open = False


VERBS = {"fleet": Verb("Run calls in many workspaces, on many processes; each edit lands once.", _build, _run)}
