"""Counts of what the editors came to, and the tables that show them."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from outcome import VERDICTS

if TYPE_CHECKING:
    from outcome import Attempt, Pair


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
