"""The record in forms that other programs read: a patch that `git apply` takes, and Agent Trace 0.1.

Format: https://agent-trace.dev, version 0.1.0 (files, conversations, ranges with 1-based line numbers, contributors).
"""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, NamedTuple

from rye.journal import tree_changes
from rye.journal.merges import lines_of
from rye.provenance.blame import BlamedLine

TRACE_VERSION: Final = "0.1.0"


class FileDiff(NamedTuple):
    """A file between two points; None: it was not there. `old` and `new` are its names."""

    old: str
    new: str
    before: bytes | None
    after: bytes | None


def patch(changes: Iterable[FileDiff]) -> str:
    """Return a patch in git's form. A change of a file that is no text is named and left out."""
    return "".join(line for one in changes for line in _patch_of(one))


def _patch_of(change: FileDiff) -> Iterator[str]:
    if change.before == change.after and change.old == change.new:
        return
    yield f"diff --git {_quoted('a/' + change.old)} {_quoted('b/' + change.new)}\n"
    if change.before is None:
        yield "new file mode 100644\n"
    elif change.after is None:
        yield "deleted file mode 100644\n"
    elif change.old != change.new:
        yield f"rename from {_quoted(change.old)}\nrename to {_quoted(change.new)}\n"
    sides = [_texts(one) for one in (change.before, change.after)]
    if sides[0] is None or sides[1] is None:
        yield "Binary files differ\n"
        return
    names = (
        "/dev/null" if change.before is None else _quoted(f"a/{change.old}"),
        "/dev/null" if change.after is None else _quoted(f"b/{change.new}"),
    )
    for line in difflib.unified_diff(sides[0], sides[1], *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _texts(data: bytes | None) -> list[str] | None:
    if data is None:
        return []
    if b"\0" in data:
        return None
    return [line.decode("utf-8", "surrogateescape") for line in lines_of(data)]


def _quoted(path: str) -> str:
    r"""Return a path as git writes it in a patch: in quotes with escapes, where it holds control characters, `"` or `\\`."""
    raw = path.encode("utf-8", "surrogateescape")
    if all(32 <= byte < 127 and byte not in b'"\\' for byte in raw):
        return path
    escaped = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in raw)
    return f'"{escaped}"'


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
