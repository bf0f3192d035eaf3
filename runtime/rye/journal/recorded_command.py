"""A command whose changes are recorded: begun, then run to its end, or made a background job, before or while it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from rye.errors import RyeError
from rye.journal import file_history, tree_changes
from rye.process import guarded_run, jobs, run
from rye.sandbox.policy import Confined, Mode
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace

JOB_SECONDS = 3600.0
"""A command that was not started as a job is ended after so long as one."""


class Command(NamedTuple):
    """A command that was begun.

    Attributes:
        token: its name in the record of running commands; empty where that cannot be used.
        text: what the record of changes and the job show.
        folder: where it starts, below the root.
        recordings: the record of its changes, once it was begun: with the look before the command.
        job_ids: the job that it became, if it did.
    """

    ws: Workspace
    token: str
    text: str
    folder: str
    recordings: list[tree_changes.Recording]
    guarded: guarded_run.Guarded
    job_ids: list[str]

    @property
    def confined(self) -> Confined:
        """The command in its sandbox."""
        return self.guarded.confined

    def become_job(
        self, cwd_fd: int, seconds: float | None, stdin: bytes = b"", running: tuple[run.Tree, Sequence[int]] | None = None
    ) -> str:
        """Start it as a job, or make a job of it while it is `running`; see `rye.process.jobs.start`."""
        facts = {"command": self.text, "working_dir": self.folder or ".", "sandbox": self.confined.report}
        look = self.guarded.look
        after = tree_changes.after_job(self.recordings[0])
        self.job_ids.append(
            jobs.start(self.ws.fd, self.confined, cwd_fd, facts, seconds, stdin, look, after, self.token, running)
        )
        return self.job_ids[0]

    def hand_on(self, cwd_fd: int, tree: run.Tree, outputs: Sequence[int]) -> bool:
        """Make a job of it while it runs; tell whether that was done."""
        with suppress(RyeError):
            self.become_job(cwd_fd, JOB_SECONDS, running=(tree, outputs))
        return bool(self.job_ids)

    def drop(self) -> None:
        """Forget it, where it was not started."""
        for one in self.recordings:
            tree_changes.drop(self.ws, one)
        self.guarded.end(self.ws.fd)

    def end(self) -> tuple[tree_changes.RecordedChanges, list[dict[str, str]]]:
        """Look at what it changed and left; return that, and what was set aside. Not for a job."""
        try:
            set_aside = self.guarded.end(self.ws.fd)
        finally:
            recorded = tree_changes.end(self.ws, self.recordings[0]) if self.recordings else tree_changes.RecordedChanges()
        return recorded, set_aside


@contextmanager
def begun(
    ws: Workspace, tool: str, text: str, folder: str, confine: Callable[[str], Confined], mode: Mode, required: Sequence[str]
) -> Iterator[Command]:
    """Begin what guards a command and, with the look before it, the record of its changes; yields it while it runs here."""
    with running_commands.running(ws.fd) as token:
        recordings: list[tree_changes.Recording] = []

        def record() -> None:
            recordings.append(tree_changes.begin(ws, token, tool, text))

        try:
            ours = functools.partial(file_history.by_our_tools, ws)
            guarded = guarded_run.begin(ws, token, confine, ours, mode, required, record)
        except BaseException:
            for one in recordings:
                tree_changes.drop(ws, one)
            raise
        try:
            yield Command(ws, token, text, folder, recordings, guarded, [])
        finally:
            guarded.confined.close()
