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

from changes import lines_of
from recordings import Compaction, Edit, Failure, Read, Session, Write
from rye_caller import Call, RyeCaller

from hunks import quoted

WRITTEN = 5
FILLER = "…"
SNIPPET = 4
PREVENTED = ("not found", "ambiguous", "modified since read")


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


TOOLS = ("recorded", "exact", "rye")
KINDS = ("reads", "edits", "failures")


@dataclass
class Tally:
    """Costs of each set of tools, verdicts over the edits, and how often each kind of event came."""

    costs: dict[str, dict[str, Cost]] = field(
        default_factory=lambda: {name: {kind: Cost() for kind in KINDS} for name in TOOLS}
    )
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
            files, failures = Files(session), list[Failure]()
            for number, event in enumerate(session.events):
                tally.counts["sessions"] += number == 0
                if isinstance(event, Compaction):
                    caller.forget()
                elif isinstance(event, Write) and not caller.write(session.relative(event.path), event.content):
                    put(caller.root, session.relative(event.path), event.content)
                elif isinstance(event, Read | Edit):
                    path = session.relative(event.path)
                    _others(tally, event, path)
                    _in_order(tally, caller, files, number, path)
                elif isinstance(event, Failure) and event.why in PREVENTED:
                    failures.append(event)
            _refused(tally, session, failures)


def _refused(tally: Tally, session: Session, failures: list[Failure]) -> None:
    """Count the refused edits whose file the model then edited, and price them; `edit_replay` replays them."""
    for failure in failures:
        later = session.events[session.events.index(failure) + 1 :]
        made = any(isinstance(one, Edit) and one.path == failure.path for one in later)
        tally.counts[f"{failure.why}: {'made later' if made else 'never made'}"] += 1
        if made:
            recorded = tally.costs["recorded"]["failures"]
            recorded.written.append(said(failure.arguments))
            recorded.answered.append(failure.answer)


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
    kind = "reads" if isinstance(event, Read) else "edits"
    recorded, exact = tally.costs["recorded"][kind], tally.costs["exact"][kind]
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
    for old, new, at in quoted(event.before, event.after):
        exact.written.append(said({"file_path": path, "old_string": old, "new_string": new}))
        first, last = max(at - SNIPPET, 0), at + new.count("\n") + 1 + SNIPPET
        snippet = [f"{number + 1:6}\t{line}" for number, line in enumerate(lines[first:last], first)]
        exact.answered.append("\n".join([f"The file {path} has been edited. The lines around the change are now:", *snippet]))


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
    rye = tally.costs["rye"]["reads" if isinstance(event, Read) else "edits"]
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
    """What a session's files held, as far as the recording shows it then or later."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def text_at(self, number: int, present: str | None) -> str:
        """Return the text of the file that an event reads: what it has now, if that fits, else all that later events show.

        A line that nothing shows is filler; that it becomes known later must not look like a change by somebody else.
        """
        event = self.session.events[number]
        assert isinstance(event, Read)
        if present is not None and _fits(present.split("\n"), event):
            return present
        lines: list[str | None] = [None] * event.total
        for later in self.session.events[number:]:
            if isinstance(later, Compaction) or later.path != event.path:
                continue
            if isinstance(later, Edit) and _agree(lines, later.before.split("\n")):
                return later.before
            if not isinstance(later, Read) or not _overlay(lines, later):
                break
        return "\n".join(FILLER if line is None else line for line in lines) + "\n"


def _fits(lines: list[str], event: Read) -> bool:
    return lines[event.start - 1 : event.start - 1 + len(event.lines)] == event.lines


def _agree(known: list[str | None], lines: list[str]) -> bool:
    """Tell whether a whole text has every line that is known, but for an empty one at its end."""
    return abs(len(known) - len(lines)) <= 1 and all(
        line is None or (at < len(lines) and line == lines[at]) for at, line in enumerate(known) if at < len(known) - 1
    )


def _overlay(known: list[str | None], event: Read) -> bool:
    """Put the lines of a read where they are; return False where they contradict what is known."""
    start = event.start - 1
    if abs(event.total - len(known)) > 1 or start + len(event.lines) > len(known):
        return False
    if any(one is not None and one != line for one, line in zip(known[start:], event.lines, strict=False)):
        return False
    known[start : start + len(event.lines)] = event.lines
    return True


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
