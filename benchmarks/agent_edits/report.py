"""The tables of a run: prices as ratios in both tokenizers, and what a read, an answer and an edit cost."""

from __future__ import annotations

from typing import Any

from price import WRITTEN, Tally
from tokenizers import NAMES


def rows(tally: Tally, tokenizers: Any) -> dict[str, Any]:
    """Return the figures of a run."""
    sums = {name: cost.sums(tokenizers) for name, cost in tally.costs.items()}
    edits = max(tally.counts["edits"], 1)
    plain = _sum(tokenizers.count(tally.plain))
    shown = _sum(tokenizers.count(tally.reads_of_rye))
    edit_words = [text for text in tally.costs["rye"].written if '"changes"' in text]
    return {
        "counts": dict(tally.counts),
        "refusals": dict(tally.refusals.most_common(12)),
        "tokens": {
            name: {kind: dict(zip(NAMES, counted, strict=True)) for kind, counted in found.items()}
            for name, found in sums.items()
        },
        "ratio to recorded": _ratio(sums["rye"]["price"], sums["recorded"]["price"]),
        "ratio to exact": _ratio(sums["rye"]["price"], sums["exact"]["price"]),
        "reads to plain": _ratio(shown, plain),
        "answer of an edit": _mean(sums["rye"]["answered"], edits),
        "written an edit": _mean(_sum(tokenizers.count(edit_words)), edits),
        "recorded answer": _mean(sums["recorded"]["answered"], edits),
    }


def table(name: str, found: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [
        f"## {name}",
        "",
        f"| tools | tokenizer | read | answered | written | read + answered + {WRITTEN} x written |",
        "|---|---|---|---|---|---|",
    ]
    for tools, kinds in found["tokens"].items():
        for tokenizer in NAMES:
            cells = " | ".join(f"{kinds[kind][tokenizer]:,}" for kind in ("read", "answered", "written", "price"))
            lines.append(f"| {tools} | {tokenizer} | {cells} |")
    lines += ["", *(f"{key}: {found[key]}" for key in found if key != "tokens")]
    return "\n".join(lines)


def _sum(counted: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counted, strict=True))) or (0, 0)


def _ratio(ours: tuple[int, ...], theirs: tuple[int, ...]) -> dict[str, float]:
    return {name: round(a / max(b, 1), 3) for name, a, b in zip(NAMES, ours, theirs, strict=True)}


def _mean(counted: tuple[int, ...], count: int) -> dict[str, float]:
    return {name: round(one / count, 1) for name, one in zip(NAMES, counted, strict=True)}
