"""`rye fleet`: calls in many workspaces, on many processes, each call once."""

from __future__ import annotations

import logging
import sys
import time
from types import SimpleNamespace

from rye.cli.process import EXIT_NO, EXIT_OK
from rye.cli.terminal import harmless, told_json
from rye.errors import UsageError
from rye.fleet import driver, job_file, results
from rye.fleet.driver import Progress


def run_fleet(args: SimpleNamespace) -> int:
    """Run `rye fleet`; return its exit code."""
    if (args.resume or args.json) and not args.out:
        raise UsageError("bad_option", "--resume and --json go with --out.", "Name the file of the results with --out.")
    if args.workers is not None and args.scheduler:
        raise UsageError("bad_option", "--workers and --scheduler exclude each other.", "Give one of them.")
    driver.require_library()
    # What Dask reports of connections that end is nothing to act upon.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    jobs = job_file.read(args.jobs)
    found = results.to_file(args.out, jobs, resume=args.resume) if args.out else results.FleetResults(sys.stdout.buffer)
    shown = _Shown()
    started = time.monotonic()
    try:
        driver.run_jobs(jobs, found, workers=args.workers, scheduler=args.scheduler, progress=shown.update)
    except KeyboardInterrupt:
        shown.end()
        open_jobs = len(jobs) - sum(found.counts.values())
        way_on = f"Results are in {args.out}; --resume does the rest." if args.out else "Without --out it cannot be resumed."
        print(f"rye fleet: cancelled with {open_jobs} of {len(jobs)} jobs left. {harmless(way_on)}", file=sys.stderr)
        raise
    finally:
        found.close()
    shown.end()
    counts = {status: found.counts.get(status, 0) for status in ("done", "failed", "unknown")}
    seconds = time.monotonic() - started
    for reason in found.reasons:
        print(harmless(f"rye fleet: {reason}"), file=sys.stderr)
    if not told_json(args, {"jobs": len(jobs), **counts, "seconds": round(seconds, 3), "out": args.out}):
        summary = ", ".join(f"{count} {status}" for status, count in counts.items())
        print(f"rye fleet: {len(jobs)} jobs: {summary}, in {seconds:.1f} s", file=sys.stderr)
    return EXIT_OK if counts["done"] == len(jobs) else EXIT_NO


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
