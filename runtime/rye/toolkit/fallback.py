"""The search without ripgrep: the same questions, answered by `rye.toolkit.scan` in a child that can be killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError
from rye.toolkit import regex_subset
from rye.toolkit.child import Command, name_of_fd, own_module
from rye.toolkit.workspace import IGNORED_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.toolkit.ripgrep import Pattern, View

STALL_SECONDS = 2.0
"""The child ends itself when a few lines take `re` so long."""

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are not searched without ripgrep, and named."""


class Fallback:
    """Builds the commands that `Ripgrep` builds, for the child in Python."""

    name = "python"

    def files(self, view: View, rules_fd: int | None = None) -> Command:
        """List files: records that end in NUL."""
        return _command("files", None, view, rules_fd)

    def counts(self, pattern: Pattern, view: View, rules_fd: int | None = None) -> Command:
        """Count each file's matches: `name NUL count` a line."""
        return _command("counts", pattern, view, rules_fd)

    def counts_in(self, pattern: Pattern, fd: int) -> Command:
        """Count the matches of one file, given as a descriptor."""
        return _command("counts", pattern, fds=(fd,))

    def matches(self, pattern: Pattern, fds: Sequence[int], most: int) -> Command:
        """Find the first `most` matches of each file, given as descriptors: JSON lines."""
        return _command("matches", pattern, fds=tuple(fds), most=most)

    def check(self, pattern: Pattern) -> Command:
        """Translate the pattern and search nothing."""
        return _command("matches", pattern)

    def refusal(self, pattern: Pattern, said: bytes) -> UsageError | None:  # noqa: ARG002 - as Ripgrep
        """Patterns are refused before the child is started."""
        return None


def too_slow(pattern: Pattern) -> UsageError:
    """Return the refusal of a pattern that `re` tries in too many ways."""
    return UsageError(
        "pattern_too_slow",
        f"The pattern {pattern.text[:200]!r} takes Python's engine too long on these files; the search was ended after "
        f"{STALL_SECONDS:g} s without progress.",
        "Avoid repeats within repeats, such as (a+)+; or install ripgrep (pip install ripgrep), where this cannot happen.",
    )


def _command(
    mode: str, pattern: Pattern | None, view: View | None = None, rules_fd: int | None = None,
    fds: tuple[int, ...] = (), most: int = 0,
) -> Command:  # fmt: skip
    if pattern is not None:
        regex_subset.translate(pattern, ascii_only=True)
    task: dict[str, Any] = {
        "mode": mode, "pattern": pattern, "view": view[:3] if view else None,
        "closed": view.closed if view else (), "rules": rules_fd,
        "files": [(fd, name_of_fd(fd)) for fd in fds], "most": most, "ignored": IGNORED_DIRECTORIES,
        "stall": STALL_SECONDS, "max_bytes": MAX_FILE_BYTES,
    }  # fmt: skip
    inherited = fds if rules_fd is None else (*fds, rules_fd)
    return own_module("rye.toolkit.scan", json.dumps(task), inherited, libraries=False)
