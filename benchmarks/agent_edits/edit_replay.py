"""Every recorded edit by itself through these tools, whoever made it, and what recorded failures would have been with them.

An edit is made as a model would make it that has just read the file: by the addresses that the read printed. A recorded failure
(text not found, ambiguous, file modified since it was read) is replayed where it happened: the model reads what it had seen, the
file becomes what it was at the failure, and the edit is asked for that the model made of this file next.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import other_recordings
import recordings
from changes import lines_of
from price import PREVENTED, put
from recordings import Edit, Failure, Read, Session, Write
from rye_caller import RyeCaller

VERDICTS = ("exact", "refused", "silent")


@dataclass
class Source:
    """What became of the edits of one source."""

    edits: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


def every_session(paths: Iterable[Path]) -> Iterator[Session]:
    """Yield the sessions of all agents at some paths."""
    for path in paths:
        yield from chain(recordings.sessions([path]), other_recordings.sessions(path))


def replayed(sessions: Iterable[Session]) -> dict[str, Source]:
    """Make every edit; return what became of them by source."""
    out: dict[str, Source] = {}
    for session in sessions:
        source = out.setdefault(session.source, Source())
        source.edits["not rebuilt"] += session.unusable
        for number, event in enumerate(session.events):
            if isinstance(event, Edit):
                verdict, why = _made(session, event, event.before)
                source.edits[verdict] += 1
                source.refusals[why] += verdict != "exact"
            elif isinstance(event, Failure):
                source.failures["recorded"] += 1
                _failed(session, number, event, source)
    return out


def _made(session: Session, event: Edit, view: str) -> tuple[str, str]:
    """Read a view, let the file become what the edit begins with, and edit; return the verdict and a refusal's first words."""
    wanted, before = (text.encode("utf-8", "surrogatepass") for text in (event.after, event.before))
    path = session.relative(event.path)
    with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
        caller = RyeCaller(Path(folder))
        (caller.root / ".git").mkdir()
        put(caller.root, path, view)
        caller.read(path, 1, len(lines_of(view)), 0)
        put(caller.root, path, event.before)
        done = caller.edit(path, event.before, event.after)
        found = (caller.root / path).read_bytes()
        verdict = "exact" if done and found == wanted else "refused" if found == before else "silent"
        return verdict, caller.calls[-1].text[:120] if caller.calls else "nothing was asked"


def _failed(session: Session, number: int, failure: Failure, source: Source) -> None:
    """Replay a failure that addresses can prevent."""
    if failure.why not in PREVENTED:
        return
    later = (event for event in session.events[number + 1 :] if _path(event) == failure.path)
    event = next((event for event in later if isinstance(event, Edit | Write)), None)
    if not isinstance(event, Edit):
        source.failures[f"{failure.why}: never made"] += 1
        return
    view = _seen(session, number, failure.path) if failure.why == "modified since read" else None
    verdict, _ = _made(session, event, event.before if view is None else view)
    source.failures[f"{failure.why}: {'prevented' if verdict == 'exact' else verdict}"] += 1


def _path(event: object) -> str:
    return str(getattr(event, "path", ""))


def _seen(session: Session, number: int, path: str) -> str | None:
    """Return what a model had last seen of a whole file before an event; None where it saw no whole."""
    for event in reversed(session.events[:number]):
        if _path(event) != path:
            continue
        if isinstance(event, Edit):
            return event.after
        if isinstance(event, Write):
            return event.content
        if isinstance(event, Read) and event.start == 1 and len(event.lines) >= event.total:
            return "\n".join(event.lines) + "\n"
    return None


def table(found: dict[str, Source]) -> str:
    """Return the counts as text, the largest source first."""
    head = "| source | exact | refused | silent | not rebuilt | failures recorded | what became of those that addresses can prevent |"
    rows = []
    whole = Source()
    for name, one in sorted(found.items(), key=lambda item: -item[1].edits.total()):
        rows.append(_row(name, one))
        for part in ("edits", "failures", "refusals"):
            getattr(whole, part).update(getattr(one, part))
    lines = ["## Every recorded edit", "", head, "|---|---|---|---|---|---|---|", *rows, _row("all", whole), ""]
    return "\n".join([*lines, *(f"{count} refused: {why!r}" for why, count in whole.refusals.most_common(8) if count), ""])


def _row(name: str, one: Source) -> str:
    edits = " | ".join(f"{one.edits[verdict]:,}" for verdict in (*VERDICTS, "not rebuilt"))
    became = ", ".join(f"{why} {count}" for why, count in sorted(one.failures.items()) if why != "recorded" and count)
    return f"| {name} | {edits} | {one.failures['recorded']:,} | {became} |"


def facts(found: dict[str, Source]) -> dict[str, Any]:
    """Return the counts as JSON takes them."""
    return {name: {part: dict(counts) for part, counts in vars(one).items()} for name, one in found.items()}
