"""What recorded reads and edits cost: tokens read, answered and written (times five), with each of three sets of tools.

`recorded` is Claude Code as the transcript has it. `exact` is a careful caller of exact-string tools with `cat -n`: it quotes
the fewest lines that stand once in the file, and is answered with a sentence and the numbered lines around the change. `rye` is this project through the text that
an MCP client shows its model.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changes import hunks, lines_of
from recordings import Compaction, Edit, Read, Session, Write
from rye_caller import Call, RyeCaller

WRITTEN = 5
FILLER = "…"
SNIPPET = 4


@dataclass
class Cost:
    """Texts that a model read, was answered, and wrote, until they are counted."""

    read: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)

    def sums(self, tokenizers: Any) -> dict[str, tuple[int, ...]]:
        """Return the tokens of each kind, and the price, in each tokenizer."""
        parts = {name: tokenizers.count(texts) for name, texts in vars(self).items()}
        sums = {name: tuple(map(sum, zip(*counted, strict=True))) or (0, 0) for name, counted in parts.items()}
        price = (a + b + WRITTEN * c for a, b, c in zip(sums["read"], sums["answered"], sums["written"], strict=True))
        return {**sums, "price": tuple(price)}


@dataclass
class Tally:
    """Costs of each set of tools, verdicts over the edits, and how often each kind of event came."""

    costs: dict[str, Cost] = field(default_factory=lambda: {name: Cost() for name in ("recorded", "exact", "rye")})
    plain: list[str] = field(default_factory=list)
    reads_of_rye: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)


def said(arguments: dict[str, Any]) -> str:
    """Return arguments as a model writes them."""
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def call_by_call(sessions: Iterable[Session], tally: Tally) -> None:
    """Price each read and each edit by itself: the model has just read the file that it edits."""
    for session in sessions:
        for event in session.events:
            if isinstance(event, Read | Edit):
                path = session.relative(event.path)
                _others(tally, event, path)
                with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
                    caller = RyeCaller(_project(Path(folder)))
                    _one(tally, caller, event, path)


def whole_sessions(sessions: Iterable[Session], tally: Tally) -> None:
    """Price sessions in order: what was shown stays known until the next compaction, however the file changed since."""
    for session in sessions:
        with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
            caller = RyeCaller(_project(Path(folder)))
            files = Files(session)
            for number, event in enumerate(session.events):
                tally.counts["sessions"] += number == 0
                if isinstance(event, Compaction):
                    caller.forget()
                elif isinstance(event, Write):
                    put(caller.root, session.relative(event.path), event.content)
                elif isinstance(event, Read | Edit):
                    path = session.relative(event.path)
                    _others(tally, event, path)
                    _in_order(tally, caller, files, number, path)


def _project(folder: Path) -> Path:
    # What makes a folder a project.
    (folder / ".git").mkdir()
    return folder


def put(root: Path, path: str, text: str) -> None:
    """Make a file hold a text, as another program would."""
    file = root / path
    data = text.encode("utf-8", "surrogatepass")
    if not file.exists() or file.read_bytes() != data:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _others(tally: Tally, event: Read | Edit, path: str) -> None:
    """Add what the recorded tools and the exact-string caller cost."""
    recorded, exact = tally.costs["recorded"], tally.costs["exact"]
    recorded.written.append(said(event.arguments))
    if isinstance(event, Read):
        tally.counts["reads"] += 1
        recorded.read.append(event.answer)
        exact.read.append("\n".join(f"{event.start + at:6}\t{line}" for at, line in enumerate(event.lines)))
        exact.written.append(said({**event.arguments, "file_path": path}))
        tally.plain.append("\n".join(event.lines))
        return
    tally.counts["edits"] += 1
    recorded.answered.append(event.answer)
    lines = lines_of(event.after)
    for old, new, at in quoted(event):
        exact.written.append(said({"file_path": path, "old_string": old, "new_string": new}))
        first, last = max(at - SNIPPET, 0), at + new.count("\n") + 1 + SNIPPET
        snippet = [f"{number + 1:6}\t{line}" for number, line in enumerate(lines[first:last], first)]
        exact.answered.append("\n".join([f"The file {path} has been edited. The lines around the change are now:", *snippet]))


def quoted(edit: Edit) -> list[tuple[str, str, int]]:
    """Return the shortest replacements of whole lines: text that stands once in the file, the new text, and its line at the end."""
    text, out = edit.before, []
    old, new = lines_of(edit.before), lines_of(edit.after)
    found = hunks(old, new)
    for at in range(len(found) - 1, -1, -1):
        hunk = found[at]
        # From the end, so that lines before it still stand as they were.
        least = found[at - 1].stop if at else 0
        before = after = 0
        while True:
            start, stop = hunk.start - before, hunk.stop + after
            quote = "\n".join(old[start:stop])
            if quote and text.count(quote) == 1:
                break
            if start > least and before <= after:
                before += 1
            elif stop < len(old):
                after += 1
            elif start > 0:
                before += 1
            else:
                return [(edit.before, edit.after, 0)]
        text_now = [*old[start : hunk.start], *new[hunk.new_start : hunk.new_stop], *old[hunk.stop : stop]]
        out.append((quote, "\n".join(text_now), hunk.new_start - before))
    return out


def _one(tally: Tally, caller: RyeCaller, event: Read | Edit, path: str) -> None:
    if isinstance(event, Read):
        put(caller.root, path, window_text(event))
        caller.read(path, event.start, len(event.lines), event.total)
        _priced(tally, caller.calls, event)
        return
    put(caller.root, path, event.before)
    caller.read(path, 1, len(lines_of(event.before)), 0)
    caller.calls.clear()
    _edited(tally, caller, event, path)


def window_text(event: Read) -> str:
    """Return a file that has a read's lines where they were; what the recording does not show is filler."""
    behind = event.total - event.start + 1 - len(event.lines)
    return "\n".join([*[FILLER] * (event.start - 1), *event.lines, *[FILLER] * max(behind, 0)]) + "\n"


def _priced(tally: Tally, calls: Sequence[Call], event: Read | Edit) -> None:
    rye = tally.costs["rye"]
    for call in calls:
        tally.counts["calls of rye"] += 1
        rye.written.append(said(call.arguments))
        (rye.read if call.name == "read" else rye.answered).append(call.text)
        if isinstance(event, Read):
            tally.reads_of_rye.append(call.text)
            tally.counts["refused reads"] += call.is_error


def _edited(tally: Tally, caller: RyeCaller, event: Edit, path: str) -> None:
    wanted = event.after.encode("utf-8", "surrogatepass")
    done = caller.edit(path, event.before, event.after)
    found = (caller.root / path).read_bytes()
    verdict = (
        "exact"
        if done and found == wanted
        else "refused"
        if found == event.before.encode("utf-8", "surrogatepass")
        else "silent"
    )
    tally.counts[verdict] += 1
    if verdict != "exact":
        tally.refusals[caller.calls[-1].text[:160] if caller.calls else "the caller has no words"] += 1
        put(caller.root, path, event.after)
    _priced(tally, caller.calls, event)


class Files:
    """What is known of a session's files at each of its events, from what the recording shows later."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def text_at(self, number: int, present: str | None) -> str:
        """Return the text of the file that the event reads, as far as it is known, so that the window is right."""
        event = self.session.events[number]
        assert isinstance(event, Read)
        if _fits(present, event):
            return str(present)
        for later in self.session.events[number + 1 :]:
            if isinstance(later, Write | Edit) and later.path == event.path:
                known = later.before if isinstance(later, Edit) else None
                return str(known) if _fits(known, event) else _overlaid(present, event)
        return _overlaid(present, event)


def _fits(text: str | None, event: Read) -> bool:
    lines = None if text is None else text.split("\n")
    return lines is not None and lines[event.start - 1 : event.start - 1 + len(event.lines)] == event.lines


def _overlaid(present: str | None, event: Read) -> str:
    """Return the present text with the window's lines in it, where it has as many lines; else the window in filler."""
    lines = [] if present is None else present.split("\n")
    if len(lines) not in (event.total, event.total + 1):
        return window_text(event)
    lines[event.start - 1 : event.start - 1 + len(event.lines)] = event.lines
    return "\n".join(lines)


def _in_order(tally: Tally, caller: RyeCaller, files: Files, number: int, path: str) -> None:
    event = files.session.events[number]
    caller.calls.clear()
    if isinstance(event, Edit):
        put(caller.root, path, event.before)
        _edited(tally, caller, event, path)
        return
    assert isinstance(event, Read)
    file = caller.root / path
    present = file.read_bytes().decode("utf-8", "surrogatepass") if file.exists() else None
    put(caller.root, path, files.text_at(number, present))
    caller.read_again(path, event.start, len(event.lines), event.total)
    _priced(tally, caller.calls, event)
