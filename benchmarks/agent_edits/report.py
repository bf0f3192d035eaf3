"""The tables of a run: prices as ratios in both tokenizers, and what a read, an answer and an edit cost."""

from __future__ import annotations

from typing import Any

from price import KINDS, TOOLS, WRITTEN, Tally
from tokenizers import NAMES

_PARTS = ("read", "answered", "written", "price")


def rows(tally: Tally, tokenizers: Any) -> dict[str, Any]:
    """Return the figures of a run."""
    sums = {tools: {kind: cost.sums(tokenizers) for kind, cost in kinds.items()} for tools, kinds in tally.costs.items()}
    counts = {"reads": max(tally.counts["reads"], 1), "edits": max(tally.counts["edits"], 1), "failures": 0}
    edit_words = [text for text in tally.costs["rye"]["edits"].written if '"changes":' in text]
    edits = counts["edits"]
    found: dict[str, Any] = {"counts": dict(tally.counts), "refusals": dict(tally.refusals.most_common(12)), "tokens": sums}
    for other in ("recorded", "exact"):
        found[f"price against {other}"] = _ratio(_whole(sums["rye"]), _whole(sums[other]))
        found[f"price against {other}, as many reads as edits"] = _ratio(_even(sums["rye"], counts), _even(sums[other], counts))
    return found | {
        "reads against plain text": _ratio(_sum(tokenizers.count(tally.reads_of_rye)), _sum(tokenizers.count(tally.plain))),
        "answer of an edit": _mean(sums["rye"]["edits"]["answered"], edits),
        "written an edit": _mean(_sum(tokenizers.count(edit_words)), edits),
        "recorded: answer, written an edit": [
            _mean(sums["recorded"]["edits"][part], edits) for part in ("answered", "written")
        ],
    }


def table(name: str, found: dict[str, Any]) -> str:
    """Return the figures as text."""
    head = f"| tools | calls | tokenizer | read | answered | written | read + answered + {WRITTEN} x written |"
    lines = [f"## {name}", "", head, "|---|---|---|---|---|---|---|"]
    for tools in TOOLS:
        for kind in KINDS:
            sums = found["tokens"][tools][kind]
            for at, tokenizer in enumerate(NAMES):
                cells = " | ".join(f"{sums[part][at]:,}" for part in _PARTS)
                if sums["price"][at]:
                    lines.append(f"| {tools} | {kind} | {tokenizer} | {cells} |")
    lines += ["", *(f"{key}: {found[key]}" for key in found if key != "tokens")]
    return "\n".join(lines)


def task_table(count: int, outcomes: dict[str, Any], tokenizers: Any) -> str:
    """Return the outcomes of the generated tasks as text."""
    head = (
        "| tools | exact | refused | silent | most bytes for a moved or copied block | bytes written | bytes read "
        "| tokens read | answered | written |"
    )
    lines = [f"## {count} generated tasks", "", head, "|---|---|---|---|---|---|---|---|---|---|"]
    for name, one in outcomes.items():
        sums = one.cost.sums(tokenizers)
        cells = (" / ".join(f"{counted:,}" for counted in sums[part]) if any(sums[part]) else "" for part in _PARTS[:3])
        verdicts = (one.verdicts[verdict] for verdict in ("exact", "refused", "silent"))
        read = one.read or sum(len(text.encode("utf-8", "replace")) for text in one.cost.read)
        sizes = " | ".join(f"{size:,}" for size in (max(one.carried, default=0), one.written, read))
        lines.append(f"| {name} | {' | '.join(map(str, verdicts))} | {sizes} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _whole(kinds: dict[str, dict[str, tuple[int, ...]]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(kinds[kind]["price"] for kind in KINDS), strict=True)))


def _even(kinds: dict[str, dict[str, tuple[int, ...]]], counts: dict[str, int]) -> tuple[float, ...]:
    """Return the price of a read and an edit, failures left out."""
    read, edit = ([one / counts[kind] for one in kinds[kind]["price"]] for kind in ("reads", "edits"))
    return tuple(a + b for a, b in zip(read, edit, strict=True))


def _sum(counted: list[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counted, strict=True))) or (0, 0)


def _ratio(ours: tuple[float, ...], theirs: tuple[float, ...]) -> dict[str, float]:
    return {name: round(a / max(b, 1), 3) for name, a, b in zip(NAMES, ours, theirs, strict=True)}


def _mean(counted: tuple[int, ...], count: int) -> dict[str, float]:
    return {name: round(one / count, 1) for name, one in zip(NAMES, counted, strict=True)}
