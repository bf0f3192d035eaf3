"""What one replayed change comes to, and the contract between the bench and an editor."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

VERDICTS = ("exact", "refused", "silent", "unexpressible")


@dataclass(frozen=True)
class Pair:
    """One real change: a file's bytes before and after it.

    Attributes:
        name: Where it comes from, so that a failure can be found again.
        path: The file's path at its source; only its last part is used for the replay.
        before: The bytes the editor starts from.
        after: The bytes it must end with.
        kind: `history`, `release`, or the name of the transposition that made it nasty.
    """

    name: str
    path: str
    before: bytes
    after: bytes
    kind: str = "history"


@dataclass(frozen=True)
class Attempt:
    """What an editor's caller did, and what the editor answered.

    Attributes:
        accepted: The editor said that the edit landed.
        reason: Its words when it did not, or the caller's when nothing could be sent.
        wrote: Bytes of the JSON arguments of the edit calls.
        read: Bytes of the text results of the read calls.
        read_plain: The same with line addresses off, where the editor has that choice.
        sayable: False when the change cannot be put into the editor's terms.
    """

    accepted: bool
    reason: str = ""
    wrote: int = 0
    read: int = 0
    read_plain: int = 0
    sayable: bool = True


class Unavailable(Exception):
    """An editor that cannot be run here; the message is what the table shows."""


class Editor(Protocol):
    """A caller that knows the change and one editor to make it with."""

    def attempt(self, target: Path, pair: Pair) -> Attempt:
        """Make `pair`'s change on `target`, which holds `pair.before`."""
        ...

    def close(self) -> None:
        """End whatever the editor needs running."""
        ...


def judge(pair: Pair, attempt: Attempt, found: bytes | None) -> str:
    """Compare bytes; only a refusal that left the file alone counts as one.

    Args:
        pair: The change asked for.
        attempt: What the editor answered.
        found: The file's bytes afterwards, None when it is gone.

    Returns:
        One of `VERDICTS`.
    """
    if attempt.accepted:
        return "exact" if found == pair.after else "silent"
    if found != pair.before:
        return "silent"
    return "refused" if attempt.sayable else "unexpressible"


def json_bytes(arguments: Any) -> int:
    """Count what a model would write to make this call."""
    return len(json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def text_bytes(text: str) -> int:
    """Count what a model would read of this result."""
    return len(text.encode("utf-8", "surrogatepass"))
