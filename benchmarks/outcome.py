"""What one replayed change comes to, and the contract between the bench and an editor."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
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


@dataclass
class Tally:
    """What one editor came to over all pairs."""

    name: str
    unavailable: str = ""
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    costs: dict[int, Attempt] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, number: int, pair: Pair, attempt: Attempt, verdict: str) -> None:
        """Count one attempt; what it cost counts only where it did what was asked."""
        self.verdicts[verdict] += 1
        self.kinds[pair.kind][verdict] += 1
        if verdict == "exact":
            self.costs[number] = attempt
        else:
            self.reasons[f"{verdict}: {attempt.reason[:80]}"] += 1
            about = {"verdict": verdict, "kind": pair.kind, "pair": pair.name, "path": pair.path}
            self.failures.append({**about, "reason": attempt.reason})

    def bytes_over(self, numbers: set[int]) -> dict[str, int]:
        """Sum what was written and read for these pairs."""
        costs = [self.costs[number] for number in numbers]
        return {
            "bytes_written": sum(cost.wrote for cost in costs),
            "bytes_read": sum(cost.read for cost in costs),
            "bytes_read_without_ids": sum(cost.read_plain for cost in costs),
        }

    def summary(self, common: set[int]) -> dict[str, Any]:
        """Return plain data for `--json`; the bytes are those of the pairs in `common`."""
        if self.unavailable:
            return {"editor": self.name, "unavailable": self.unavailable}
        return {
            "editor": self.name,
            "pairs": self.verdicts.total(),
            **{verdict: self.verdicts[verdict] for verdict in VERDICTS},
            "pairs_for_bytes": len(common),
            **self.bytes_over(common),
            "seconds": round(self.seconds, 1),
            "kinds": {kind: dict(counts) for kind, counts in sorted(self.kinds.items())},
            "reasons": dict(self.reasons.most_common(20)),
            "failures": self.failures,
        }


def common_pairs(tallies: list[Tally]) -> set[int]:
    """Return the pairs that every editor made exactly: only over these can their costs be compared."""
    made = [set(tally.costs) for tally in tallies if not tally.unavailable]
    return set.intersection(*made) if made else set()


def table(tallies: list[Tally]) -> str:
    """Return one row an editor; the four verdicts are shares of all pairs, so that rows can be compared."""
    common = common_pairs(tallies)
    head = ["editor", "pairs", *VERDICTS, "exact of expressible", "bytes written", "bytes read", "IDs off"]
    rows = _aligned([head, *(_row(tally, common) for tally in tallies)])
    return f"{rows}\n(bytes: of the {len(common)} pairs that all of them made exactly)"


def _row(tally: Tally, common: set[int]) -> list[str]:
    if tally.unavailable:
        return [tally.name, tally.unavailable]
    total = tally.verdicts.total()
    shares = [_share(tally.verdicts[verdict], total) for verdict in VERDICTS]
    of_expressible = _share(tally.verdicts["exact"], total - tally.verdicts["unexpressible"])
    sizes = [f"{size:,}" for size in tally.bytes_over(common).values()]
    return [tally.name, str(total), *shares, of_expressible, *sizes]


def _share(count: int, total: int) -> str:
    return f"{100 * count / max(1, total):.2f}%"


def kind_tables(tallies: list[Tally]) -> list[tuple[str, str]]:
    """Return a titled table of counts by kind of pair, when there is more than one kind."""
    run = [tally for tally in tallies if not tally.unavailable]
    kinds = sorted({kind for tally in run for kind in tally.kinds})
    if len(kinds) < 2:
        return []
    rows = [["kind", *(tally.name for tally in run)]]
    rows += [[kind, *("/".join(str(t.kinds[kind][v]) for v in VERDICTS) for t in run)] for kind in kinds]
    return [("by kind, " + "/".join(VERDICTS), _aligned(rows))]


def _aligned(rows: list[list[str]]) -> str:
    full = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[column]) for row in full) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
