"""The errors of the whole house: each has a stable code, says what went wrong, and what to do next."""

from __future__ import annotations

from typing import Any


class RyeError(Exception):
    """An expected failure, told to the caller as a result.

    Args:
        code: stable snake_case identifier, part of the public contract.
        message: one sentence that says what went wrong.
        hint: the next thing to do, as an instruction; may be empty.
        details: further fields of the failure result (JSON-able).
    """

    def __init__(self, code: str, message: str, hint: str = "", **details: Any) -> None:  # noqa: ANN401 - JSON values
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        """Give the sentence and the instruction, as a model or a person reads them."""
        gap = "" if self.message.endswith("\n") else " "
        return f"{self.message}{gap}{self.hint}".strip()


class UsageError(RyeError):
    """The call itself is malformed: unknown names, wrong types, contradictory arguments."""


class ItemError(RyeError):
    """An item cannot be found, or its text is not a well-formed item."""


class TrustError(RyeError):
    """An item is refused. `code` is the verdict (see `rye.trust`)."""


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
            f"The call ran past its limit of {seconds:g} s and was ended; nothing is written after that moment.",
            "Ask for less in one call, or give a larger limit where the tool offers one.",
        )


class CancelledError(RyeError):
    """The caller ended the call; nothing is written after it."""

    def __init__(self) -> None:
        super().__init__("cancelled", "The call was cancelled; nothing is written after that moment.", "")
