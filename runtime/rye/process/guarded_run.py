"""One command in its sandbox, with the look before it and the look after it: for `bash`, jobs and tools of other signers.

The order holds for all of them: the command is named (`rye.workspace.running_commands`), its sandbox is made, the project is
looked at, the command runs, its channel ends, the project is looked at again, and what was made for the sandbox goes. What it
changed is recorded around that (`rye.journal.tree_changes`).

Bubblewrap makes its mounts while the project is looked at, and starts the command when that is done: it waits at a pipe of
which it holds both ends, so that it waits for ever where this process is killed meanwhile, and is ended with its reaper.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

from rye.plain_class import changed
from rye.process.autorun import command_check
from rye.process.autorun.command_check import Look
from rye.process.mount_watch import identity_at
from rye.sandbox.policy import Confined, Mode
from rye.workspace.workspace import Workspace


class Guarded:
    """A command that can be started, once; `end` it also where it was not.

    Attributes:
        confined: the command in its sandbox; close it once it was started.
    """

    def __init__(self, confined: Confined, look: Look | Callable[[], Look]) -> None:
        """Take the command, and the look that is to be made when it is over, or what makes the one before it."""
        self.confined = confined
        self._look = look

    @property
    def look(self) -> Look:
        """Return the look that is to be made when the command is over; the one before it is made now if it was not."""
        if not isinstance(self._look, Look):
            self._look = self._look()
        return self._look

    def end(self, root: int) -> list[dict[str, str]]:
        """Look at what the command left, and take away what was made for it.

        Args:
            root: an open descriptor of the project, which may have another path by now.

        Returns:
            What was set aside, new protected names among it.
        """
        set_aside: list[dict[str, str]] = []
        try:
            # First: the look compares the names that are taken away then. Without one before, nothing ran.
            if isinstance(self._look, Look):
                set_aside = command_check.end(self._look, self.confined.report, root)
        finally:
            set_aside += self.confined.finish(root)
        return set_aside


def begin(
    ws: Workspace,
    token: str,
    confine: Callable[[str], Confined],
    ours: Callable[[Iterable[str]], set[str]],
    mode: Mode,
    required: Sequence[str] = (),
    first: Callable[[], object] | None = None,
) -> Guarded:
    """Make a command's sandbox; look at the project for it, where bubblewrap makes the sandbox once it was started.

    Args:
        ws: the project.
        token: names the running command; empty where its record could not be begun.
        confine: makes the sandbox for a token.
        ours: see `rye.process.autorun.command_check.begin`.
        mode: under "require" a command is refused where no look can be made: what it put into a repository would stay.
        required: what "require" insists on; nothing means all.
        first: what else is to be done before the command runs; it is called with the look before it.

    Raises:
        RyeError: `sandbox_unavailable`, later from `confined.ready`; and what `confine` raises.
    """
    confined = confine(token)
    try:
        # Before bubblewrap mounts over them: what is exchanged from now on has lost its mount.
        covered = {path: identity_at(path) for path in confined.covered}
        gate = _gate() if confined.report["kind"] == "bubblewrap" else -1

        def look() -> Look:
            if first is not None:
                first()
            made = command_check.begin(ws, token, confined, ours, covered)
            if mode == "require":
                # Late: at its job's end a supervisor has no time for what it needs not.
                from rye.sandbox import sandbox

                # It held before the look.
                sandbox.insist(confined.report, required or ("protected_names",))
            if gate >= 0:
                os.write(gate, b"x")
            return made

        if gate < 0:
            return Guarded(confined, look())
        program, *words = confined.argv
        waiting = changed(confined, argv=[program, "--block-fd", str(gate), *words], fds=(*confined.fds, gate))
        guarded = Guarded(waiting, look)
        guarded.confined = changed(waiting, ready=lambda: guarded.look)
    except BaseException:
        confined.close()
        confined.finish(ws.fd)
        raise
    return guarded


def _gate() -> int:
    """Return one descriptor of both ends of a pipe."""
    reading, writing = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reading)
        os.close(writing)
