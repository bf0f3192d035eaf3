"""One command in its sandbox, with the look before it and the look after it: for `bash`, jobs and tools of other signers.

The order holds for all of them: the command is named (`rye.workspace.running_commands`), its sandbox is made, the project is
looked at, the command runs, its channel ends, the project is looked at again, and what was made for the sandbox goes. What it
changed is recorded around that (`rye.journal.tree_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rye.process.autorun import command_check
from rye.process.autorun.command_check import Look
from rye.sandbox.policy import Confined, Mode
from rye.workspace.workspace import Workspace


class Guarded(NamedTuple):
    """A command that can be started, once; `end` it also where it was not.

    Attributes:
        confined: the command in its sandbox; close it once it was started.
        look: the look that is to be made when it is over.
    """

    confined: Confined
    look: Look

    def end(self, root: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
        """Look at what the command left, and take away what was made for it.

        Args:
            root: an open descriptor of the project, which may have another path by now.

        Returns:
            What the look set aside, and the new protected names that were moved aside.
        """
        try:
            # First: the look compares the names that are taken away then.
            set_aside = command_check.end(self.look, self.confined.report, root)
        finally:
            moved = self.confined.finish(root)
        return set_aside, moved


def begin(
    ws: Workspace,
    token: str,
    confine: Callable[[str], Confined],
    ours: Callable[[Iterable[str]], set[str]],
    mode: Mode,
    required: Sequence[str] = (),
) -> Guarded:
    """Make a command's sandbox, then look at the project for it.

    Args:
        ws: the project.
        token: names the running command; empty where its record could not be begun.
        confine: makes the sandbox for a token.
        ours: see `rye.process.autorun.command_check.begin`.
        mode: under "require" a command is refused where no look can be made: what it put into a repository would stay.
        required: what "require" insists on; nothing means all.

    Raises:
        RyeError: `sandbox_unavailable`; and what `confine` raises.
    """
    confined = confine(token)
    try:
        look = command_check.begin(ws, token, confined, ours)
        if mode == "require":
            # Late: at its job's end a supervisor has no time for what it needs not.
            from rye.sandbox import sandbox

            # It held before the look.
            sandbox.insist(confined.report, required or ("protected_names",))
    except BaseException:
        confined.close()
        confined.finish(ws.fd)
        raise
    return Guarded(confined, look)
