"""The errors of the package: each has a stable code, says what went wrong, and what to do next."""

from __future__ import annotations

import errno
from typing import Any, Final

EXHAUSTED: Final = {
    errno.EMFILE: "This process has too many files open. Close some, or start it with a higher limit (`ulimit -n`).",
    errno.ENFILE: "The system has too many files open. Try again when other programs have closed some.",
    errno.ENOMEM: "The system has no memory left. Try again when other programs have ended.",
    errno.ENOSPC: "Ask the user to free disk space, then try again.",
    errno.EDQUOT: "Ask the user to free disk space, then try again: the quota is used up.",
}
"""What to do where the system has run out of something. No file is at fault then, whichever was being opened."""

RUN_OUT: Final = ("no_space", "too_many_open_files", "out_of_memory")
"""Codes of errors that say so themselves."""


class RyeError(Exception):
    """An expected failure, which the caller gets as a result.

    Args:
        code: stable snake_case identifier, part of the public contract.
        message: one sentence that says what went wrong.
        hint: the next thing to do, as an instruction; may be empty. Where the error was raised because the system had run
            out of descriptors, memory or disk space, `hint` says that in its place.
        details: further fields of the failure result (JSON-able).
    """

    def __init__(self, code: str, message: str, hint: str = "", **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self._hint = hint
        self.details = details

    @property
    def hint(self) -> str:
        """The next thing to do."""
        cause = self.__context__
        if not isinstance(cause, OSError) or self.code in RUN_OUT:
            return self._hint
        return EXHAUSTED.get(cause.errno or 0, self._hint)

    def __str__(self) -> str:
        """Give the sentence and the instruction, as a model or a person reads them."""
        gap = "" if self.message.endswith("\n") else " "
        return f"{self.message}{gap}{self.hint}".strip()


class UsageError(RyeError):
    """The call itself is malformed: unknown names, wrong types, contradictory arguments."""


class ItemError(RyeError):
    """An item cannot be found, or its text is not a well-formed item."""


class TrustError(RyeError):
    """An item is refused. `code` is the verdict (see `rye.trust.verify`)."""


class WorkspaceError(RyeError):
    """A path or a file cannot be used: outside, missing, of the wrong kind, protected, failing."""


class RegistryError(RyeError):
    """A registry cannot be used, or what it answers is not what was asked for. Nothing was installed."""


class EditError(RyeError):
    """An edit is refused. Nothing was written."""


class DeadlineError(RyeError):
    """The call's time is up; nothing is written after it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            "deadline_exceeded",
            f"The call ran past its limit of {seconds:g} s and was ended; nothing is written after that.",
            "Ask for less in one call, or give a larger limit where the tool offers one.",
        )


class CancelledError(RyeError):
    """The caller ended the call; nothing is written after it."""

    def __init__(self) -> None:
        super().__init__("cancelled", "The call was cancelled; nothing is written after that.", "")
