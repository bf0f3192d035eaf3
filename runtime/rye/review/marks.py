"""What the user has reviewed, and up to which change they looked: in their own space, beside the journal.

A mark is the ID of a call, or names one hunk of a file of it (`ID/3/0`: the number of the file, that of the hunk). All hunks of
all files make the call. A file without hunks counts as one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from rye.config import user_dirs
from rye.fs import atomic, stamps
from rye.workspace.workspace import Workspace

_FILE: Final = "reviewed.json"
_MOST: Final = 20_000


class ReviewMarks:
    """The marks of one project, as they were read."""

    def __init__(self, reviewed: Sequence[str], looked: str) -> None:
        """Take the marks, and the newest call that the user has seen (empty: none yet)."""
        self._reviewed = dict.fromkeys(reviewed)
        self.looked = looked

    def __contains__(self, mark: str) -> bool:
        """Tell whether something is reviewed: itself, or what it is a part of."""
        parts = mark.split("/")
        return any("/".join(parts[:count]) in self._reviewed for count in range(1, len(parts) + 1))

    def of_file(self, call_id: str, number: int, hunks: int) -> list[bool]:
        """Tell of each hunk of a call's file whether it is reviewed; a file without hunks counts as one."""
        return [f"{call_id}/{number}/{at}" in self for at in range(max(hunks, 1))]

    @property
    def reviewed(self) -> list[str]:
        """The marks, oldest first."""
        return list(self._reviewed)

    def toggle(self, mark: str, hunks: Sequence[int]) -> None:
        """Mark a call, a file or a hunk, or take its mark away.

        Args:
            mark: which.
            hunks: how many hunks each file of the call has.
        """
        call, *rest = mark.split("/")
        numbers = [int(one) for one in rest]
        every = {(at, part) for at, count in enumerate(hunks) for part in range(max(count, 1))}
        chosen = {one for one in every if list(one[: len(numbers)]) == numbers}
        known = {one for one in every if f"{call}/{one[0]}/{one[1]}" in self}
        known = known - chosen if chosen <= known else known | chosen
        self._reviewed = {one: None for one in self._reviewed if one.split("/")[0] != call}
        # Of a whole call one mark says it, however many hunks it has.
        left = [call] if known == every else [f"{call}/{at}/{part}" for at, part in sorted(known)]
        self._reviewed |= dict.fromkeys(left)


def _place(ws: Workspace) -> Path:
    return Path(user_dirs.state_dir(ws.fd), _FILE)


def read(ws: Workspace) -> ReviewMarks:
    """Return a project's marks."""
    found: dict[str, Any] = atomic.read_json(_place(ws)) or {}
    reviewed, looked = found.get("reviewed"), found.get("looked")
    known = [one for one in reviewed if isinstance(one, str)] if isinstance(reviewed, list) else []
    return ReviewMarks(known, looked if isinstance(looked, str) else "")


def version(ws: Workspace) -> str:
    """Return a text that changes whenever the marks do."""
    with suppress(OSError):
        return str(stamps.stamp(str(_place(ws))) or "")
    return ""


@contextmanager
def changed(ws: Workspace) -> Iterator[ReviewMarks]:
    """Hold a project's marks for the block, and store what it makes of them. Raises OSError."""
    with atomic.locked(_place(ws).with_suffix(".lock")):
        marks = read(ws)
        yield marks
        data = {"reviewed": marks.reviewed[-_MOST:], "looked": marks.looked}
        atomic.write(_place(ws), json.dumps(data).encode(), 0o600)
