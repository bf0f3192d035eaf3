"""Hand out jobs to Dask workers, here or of a cluster, and take their results; see `rye.fleet.adapter` for what a worker does.

A worker that dies takes nothing with it: its jobs are handed out again, and what was done is found by its key. Jobs of one
workspace run one after the other, in their order.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from rye._version import __version__
from rye.errors import RyeError, UsageError
from rye.fleet import adapter, job_file
from rye.fleet import results as fleet_results
from rye.fleet.job_file import Job
from rye.fleet.results import FleetResults

RETRIES: Final = 5
"""A job is handed out again so many times after a refusal that passes."""

MOST_ROUNDS: Final = 2
"""A job is handed out so many times, each time to four workers that die, before it counts as what ends them."""

_PASSING: Final = frozenset({"call_under_way", "conflict", "locked"})
# Of the jobs that each thread has, one waits while the other runs.
_AHEAD: Final = 2
_START_SECONDS: Final = 60
_CONNECT_SECONDS: Final = 15
# Seconds until a job whose result was lost with its worker is looked at again.
_LOST_SECONDS: Final = 0.1
# Seconds until a Ctrl-C is seen, and for which a scheduler may be silent meanwhile.
_LOOK_SECONDS: Final = 0.2
_COUNT_SECONDS: Final = 2
# The process that has used Dask, which has threads.
_used_by: set[int] = set()


class Progress(NamedTuple):
    """How far a run is.

    Attributes:
        total, finished: jobs, those of earlier attempts included.
        counts: results by status.
        rate: jobs a second since this start.
        workers: how many threads take jobs.
    """

    total: int
    finished: int
    counts: Mapping[str, int]
    rate: float
    workers: int


def run(
    workspaces: Iterable[str | os.PathLike[str]],
    calls: Sequence[Mapping[str, Any]],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    repeat: bool = False,
    on_error: str = "stop",
    progress: Callable[[Progress], None] | None = None,
) -> list[dict[str, Any]]:
    """Make the same calls in each workspace, each call once, and return a record for each workspace, in their order.

    A script that calls this keeps it under `if __name__ == "__main__":`, since workers import the script.

    Args:
        workspaces: project roots.
        calls: `{"item_id": str, "parameters": dict, "repeat"?: bool}` of each.
        workers: processes on this machine; None for one for each processor.
        scheduler: address of a Dask scheduler to use in place of processes here.
        out: a file that takes the records as JSON lines; None for none.
        resume: go on with the run that `out` holds; its workspaces with a record are left out of the list that is returned.
        repeat: commands that were cut off are run again.
        on_error: "stop" at a workspace's first call that fails, or "continue".
        progress: called after results came.

    Returns:
        `{"job", "id", "workspace", "digest", "status", "calls", "seconds"}` as `adapter.run_workspace` returns them.

    Raises:
        UsageError: `extra_missing`, `bad_jobs`, `bad_workers`, `state_not_shared`, `worker_version`; those of `results.opened`.
        RyeError: `no_workers`, `scheduler_lost`, `forked_fleet`.
        KeyboardInterrupt: what runs was ended, what came before is in `out`.
    """
    jobs = job_file.of_values(workspaces, calls, repeat=repeat, on_error=on_error)
    results = fleet_results.to_file(os.fspath(out), jobs, resume=resume) if out is not None else FleetResults()
    records: list[dict[str, Any]] = []
    try:
        run_jobs(jobs, results, workers=workers, scheduler=scheduler, each=records.append, progress=progress)
    finally:
        results.close()
    return sorted(records, key=lambda record: int(record["job"]))


def run_jobs(
    jobs: Sequence[Job],
    results: FleetResults,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    each: Callable[[dict[str, Any]], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Run the jobs that have no result yet, and add theirs. Arguments and errors as `run`."""
    open_jobs = [job for job in jobs if job.number not in results.finished]
    if workers is not None and workers < 1:
        raise UsageError("bad_workers", f"{workers} workers cannot run anything.", "Give at least 1.")
    if not open_jobs:
        return
    require_library()
    if _used_by and os.getpid() not in _used_by:
        why = "This process was forked from one that has run a fleet: the threads of Dask did not come along."
        raise RyeError("forked_fleet", why, "Start the process anew (multiprocessing's `spawn`), or call `rye fleet run`.")
    _used_by.add(os.getpid())
    with _safe_path(), _ctrl_c_blocked() as let_in, _client(workers, scheduler) as client:
        state = _judged_workers(client, let_in)
        _Driver(client, open_jobs, results, state, len(jobs), each, progress).drive(let_in)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Have processes of `multiprocessing` look for no module in the current folder, where a clone can bring one of any name."""
    from multiprocessing import util

    flags = util._args_from_interpreter_flags  # type: ignore[attr-defined]  # noqa: SLF001 - a variable would reach commands
    util._args_from_interpreter_flags = lambda: [*flags(), "-P"]  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        yield
    finally:
        util._args_from_interpreter_flags = flags  # type: ignore[attr-defined]  # noqa: SLF001


@contextmanager
def _ctrl_c_blocked() -> Iterator[Callable[[], None]]:
    """Block SIGINT, also in threads and workers that are started meanwhile, but for calls of the function that this yields.

    Raised at any other step, it would be lost in a destructor, and Dask that is half started would end with an error.
    """
    from multiprocessing import resource_tracker

    # Workers need it, and whoever starts it unblocks the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def let_in() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    try:
        yield let_in
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def require_library() -> None:
    """Raise UsageError `extra_missing` where Dask is not installed."""
    try:
        import distributed  # noqa: F401 - to see that it is there
    except ModuleNotFoundError:
        why = "Fleets need the extra `fleet`."
        raise UsageError("extra_missing", why, "Install it in your clone: pip install -e '.[fleet]'") from None


@contextmanager
def _client(workers: int | None, scheduler: str | None) -> Iterator[Any]:
    from distributed import Client

    cluster = _cluster(workers or len(os.sched_getaffinity(0))) if scheduler is None else nullcontext(scheduler)
    with cluster as address:
        try:
            client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as err:
            raise RyeError("no_workers", f"There is no scheduler at {scheduler}: {err}.", "Check the address.") from None
        with closing(client):
            yield client


@contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """Start workers on this machine, for as long as the block runs."""
    import dask
    from distributed import LocalCluster, Security

    settings = {
        "distributed.scheduler.allowed-failures": 3,
        # A worker that starts slowly on a busy machine is not given up.
        "distributed.deploy.lost-worker-timeout": "10 minutes",
        "distributed.comm.timeouts.connect": f"{_START_SECONDS}s",
        # Pages that tell what runs are served to nobody.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
        # Nobody looks at what these find: the stacks of workers a hundred times a second, delays of loops, the load.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "5s",
    }
    with tempfile.TemporaryDirectory(prefix="rye-fleet-") as folder, dask.config.set(settings):
        try:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                # With bokeh installed it would be served without a token on the port that Dask opens in any case.
                scheduler_kwargs={"dashboard": False},
                # Whoever reaches a scheduler can run programs: without TLS every user of this machine could.
                security=Security.temporary(),
                local_directory=folder,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
        except (RuntimeError, TimeoutError, OSError) as err:
            raise RyeError("no_workers", f"Workers could not be started: {err}.", "Give fewer with --workers.") from None
        try:
            yield cluster
        except BaseException:
            # At once, not at the end of their calls: a command may run for hours.
            for nanny in list(cluster.workers.values()):
                nanny.auto_restart = False
                with suppress(OSError, TypeError):
                    os.kill(nanny.pid, signal.SIGKILL)
            raise
        finally:
            cluster.close(timeout=10)


def _judged_workers(client: Any, let_in: Callable[[], None]) -> str:
    """Return the state that all workers share, once there are some.

    Raises:
        RyeError: `no_workers`. UsageError: `worker_version`, `state_not_shared`.
    """
    began = time.monotonic()
    try:
        while not (found := client.run(adapter.probe)):
            if time.monotonic() - began > _START_SECONDS:
                raise RyeError("no_workers", f"No worker came in {_START_SECONDS} s.", "Start workers for the scheduler.")
            let_in()
            time.sleep(_LOOK_SECONDS)
    except ImportError as err:
        raise UsageError("worker_version", f"A worker lacks this package: {err}.", "Install it for the workers.") from None
    versions, states = ({one[at] for one in found.values()} for at in (0, 1))
    if versions != {__version__}:
        why = f"Workers have version {', '.join(sorted(versions))} of this package, here is {__version__}."
        raise UsageError("worker_version", why, "Install one version everywhere.")
    if len(states) > 1:
        why = f"{len(found)} workers have {len(states)} different states, so one cannot know what another one did."
        raise UsageError("state_not_shared", why, "Set USER_SPACE to one folder that all workers share.")
    return str(states.pop())


class _Driver:
    """Hands out jobs and takes what comes back."""

    def __init__(
        self,
        client: Any,
        jobs: Sequence[Job],
        results: FleetResults,
        state: str,
        total: int,
        each: Callable[[dict[str, Any]], None] | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._client, self._results, self._state, self._total = client, results, state, total
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._each, self._progress = each, progress
        # Of each workspace the jobs behind the first: they wait for its end.
        self._behind: dict[str, deque[Job]] = {}
        self._ready: deque[Job] = deque()
        for job in jobs:
            self._add(job)
        self._flying: dict[Any, Job] = {}
        self._tries: dict[int, int] = {}
        self._began, self._completed = time.monotonic(), 0
        self._threads, self._most, self._counted, self._whole = 1, 0, 0.0, self._began

    def _add(self, job: Job) -> None:
        # By identity where the folder is here: two names of one workspace are one.
        place = os.path.realpath(job.workspace)
        if place in self._behind:
            self._behind[place].append(job)
        else:
            self._behind[place] = deque()
            self._ready.append(job)

    def drive(self, let_in: Callable[[], None]) -> None:
        """Run all jobs. Ends early by an exception only; then nothing is handed out any more."""
        try:
            let_in()
            self._hand_out()
            while self._flying:
                let_in()
                try:
                    future = self._ended.get(timeout=_LOOK_SECONDS)
                except Empty:
                    self._count_workers()
                    continue
                if future.status in ("pending", "lost"):
                    # Its worker died with the result; the scheduler has it done again.
                    threading.Timer(_LOST_SECONDS, self._watch, [future]).start()
                    continue
                self._take(future, self._flying.pop(future))
                self._hand_out()
                if self._progress is not None:
                    self._progress(self._state_of_run())
        except BaseException:
            with suppress(Exception):
                self._client.cancel(list(self._flying), force=True)
            raise

    def _count_workers(self) -> None:
        """Count who takes jobs, once a second at most; start others here in place of those that do not come back."""
        now = time.monotonic()
        if now - self._counted <= 1:
            return
        self._counted = now
        try:
            found = self._client.sync(self._client.scheduler.ncores, callback_timeout=_COUNT_SECONDS)
        except TimeoutError:
            # A scheduler that hangs must not keep a Ctrl-C waiting.
            return
        count = len(found)
        self._threads, self._most = sum(found.values()), max(self._most, count)
        cluster = self._client.cluster
        if cluster is None or count >= self._most:
            self._whole = now
        elif now - self._whole > _START_SECONDS:
            # Dask gives a worker up that dies while it starts: it is taken out of the plan, and a new one planned.
            cluster.scale(count)
            cluster.scale(self._most)
            self._whole = now

    def _state_of_run(self) -> Progress:
        rate = self._completed / max(time.monotonic() - self._began, 1e-6)
        counts = self._results.counts
        return Progress(self._total, sum(counts.values()), dict(counts), rate, self._threads)

    def _watch(self, future: Any) -> None:
        future.add_done_callback(self._ended.put)

    def _hand_out(self) -> None:
        self._count_workers()
        while self._ready and len(self._flying) < _AHEAD * max(1, self._threads):
            job = self._ready.popleft()
            named = {"repeat": job.repeat, "on_error": job.on_error, "state": self._state}
            key = f"{self._results.run}:{job.number}"
            # Not pure: equal jobs are different work. No retries: an exception here is a defect, and is told.
            future = self._client.submit(adapter.run_job, job.workspace, job.calls, key, **named, pure=False, retries=0)
            self._flying[future] = job
            self._watch(future)

    def _take(self, future: Any, job: Job) -> None:
        from distributed import KilledWorker

        if future.status == "finished":
            result = future.result()
            if not self._is_passing(job, result):
                self._end(job, result)
        elif future.status == "error":
            err = future.exception()
            died = isinstance(err, KilledWorker)
            why = "Workers died again and again while they ran this job" if died else f"The worker failed: {err!r}"
            self._again(job, "worker_died" if died else "worker_failed", why)
        else:
            raise RyeError("scheduler_lost", "The scheduler is gone.", "Start it again, then resume the run.")
        future.release()

    def _is_passing(self, job: Job, result: dict[str, Any]) -> bool:
        """Hand a job out again after a refusal that passes by itself; tell whether that was done."""
        codes = {answer.get("code") for answer in result["calls"]}
        tries = self._tries.get(job.number, 0)
        if not codes & _PASSING or tries >= RETRIES:
            return False
        self._tries[job.number] = tries + 1
        self._ready.append(job)
        return True

    def _again(self, job: Job, code: str, why: str) -> None:
        """Hand out a job that failed once more: another one may have ended its workers."""
        self._tries[job.number] = self._tries.get(job.number, 0) + 1
        if self._tries[job.number] < MOST_ROUNDS:
            self._ready.append(job)
            return
        error = f"{why}. What its last call did may be unknown. `rye log` in the workspace shows what was changed."
        calls = [{"item_id": call["item_id"], "status": "unknown"} for call in job.calls]
        self._end(job, {"status": "unknown", "calls": calls, "seconds": 0.0, "error": error, "code": code})

    def _end(self, job: Job, result: dict[str, Any]) -> None:
        record = self._results.add(job, result)
        self._completed += 1
        if self._each is not None:
            self._each(record)
        place = os.path.realpath(job.workspace)
        behind = self._behind[place]
        if behind:
            self._ready.appendleft(behind.popleft())
        else:
            del self._behind[place]
