"""Who wrote which lines, as other programs read it: Agent Trace 0.1.

Format: https://agent-trace.dev, version 0.1.0 (files, conversations, ranges with 1-based line numbers, contributors).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from rye.journal import tree_changes
from rye.provenance.blame import BlamedLine

TRACE_VERSION: Final = "0.1.0"


def agent_trace(files: Iterable[tuple[str, Sequence[BlamedLine]]], revision: str, version: str) -> dict[str, Any]:
    """Return an Agent Trace record that says who wrote which lines of some files.

    Args:
        files: path and blamed lines.
        revision: the commit that the files belong to; empty without one.
        version: this program's own.
    """
    record: dict[str, Any] = {
        "version": TRACE_VERSION,
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"name": "rye", "version": version},
        "files": [{"path": path, "conversations": list(_conversations(lines))} for path, lines in files],
    }
    return record | ({"vcs": {"type": "git", "revision": revision}} if revision else {})


def _conversations(lines: Sequence[BlamedLine]) -> Iterator[dict[str, Any]]:
    ranges: dict[tuple[str, str], list[dict[str, int]]] = {}
    numbered = groupby(enumerate(lines, 1), key=lambda pair: _contributor(pair[1]))
    for contributor, group in numbered:
        found = [number for number, _ in group]
        ranges.setdefault(contributor, []).append({"start_line": found[0], "end_line": found[-1]})
    for (kind, actor), spans in ranges.items():
        about = {"metadata": {"actor": actor}} if actor else {}
        yield {"contributor": {"type": kind}, "ranges": spans, **about}


def _contributor(line: BlamedLine) -> tuple[str, str]:
    """Return whose a line is: `ai` for a named client, `unknown` for anyone else."""
    entry = line.entry
    if entry is None or entry.tool == tree_changes.SOMEONE_ELSE or not entry.actor:
        return "unknown", ""
    return "ai", entry.actor
