"""Refusals of edits by line address: what is wrong, and the lines as they are now, which the next try may name.

Address prefixes that a caller pasted with the text of a view, `[LID:a1b2c3] x` or `12` and a tab before x, are refused only
where they equal an address that a view of this very file showed; anything else is text. A file that holds such lines itself,
such as a table of numbers or a page about these tools, may be given more of them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from rye.call.context import advice
from rye.call.results import call_text, shorten
from rye.edits.change_forms import Change
from rye.errors import EditError, WorkspaceError
from rye.line_ids import addresses, store
from rye.line_ids.document import Document
from rye.line_ids.index import Index
from rye.line_ids.render import joined_ranges
from rye.plain_class import Record, field
from rye.workspace.workspace import Workspace

MAX_SHOWN = 40
"""Lines that a refusal shows at most."""
_MOST_PLACES = 5

ENDS = ("start", "end")
"""Names of the places before the first line and behind the last one."""

# What is pasted around an ID: blanks, quotes, the brackets in which read prints it.
_AROUND = " \t\r\n\"'`[]<>@"


class Problems(Record, frozen=False):
    """What is wrong with a request, the lines that the refusal shows, and how it shows them.

    Those that nobody was shown do not count as shown by it: who sends the same request again would write over them.
    """

    form: str = "lid"
    messages: list[str] = field(factory=list)
    codes: list[str] = field(factory=list)
    lines: set[int] = field(factory=set)
    unshown: set[int] = field(factory=set)
    details: dict[str, Any] = field(factory=dict)

    def add(self, code: str, text: str, *around: int) -> None:
        """Remember a problem, and the lines that help to solve it."""
        self.codes.append(code)
        self.messages.append(text)
        self.lines.update(around)


def clean_id(line_id: object) -> str:
    """Return an ID without what was pasted with it: the mark and brackets of read, the line's text, quotes; in lower case."""
    name = str(line_id).strip(_AROUND).partition("\t")[0]
    if name[:4].lower() == "lid:":
        name = name[4:].partition("]")[0]
    # Beside a match grep prints `12-`.
    return name.strip(_AROUND).rstrip("-").lower()


def around_dead(index: Index, positions: dict[str, int], name: str) -> dict[str, int]:
    """Follow a dead line's neighbours to lines that still exist: {"after": position, "before": position}, as far as known."""
    out: dict[str, int] = {}
    for side in ("after", "before"):
        at: str | None = name
        # Bounded: in a damaged index dead lines could name each other in a circle.
        for _ in range(100):
            end = index.dead.get(at) if at else None
            at = getattr(end, side) if end else None
            if at is None or at in positions:
                break
        if at in positions:
            out[side] = positions[at]
    return out


def why_dead(index: Index, name: str, around: dict[str, int], form: str = "lid") -> str:
    """Return what became of a line that is gone."""
    end = index.dead.get(name)
    if end is not None:
        places = [around[side] for side in ("after", "before") if side in around]
        sides = [index.addresses.names(at, at + 1)[0] if form == "short" else index.marks[at].id for at in places]
        where = " between " if len(sides) == 2 else " next to " if sides else ""
        name = end.short if form == "short" else name
        return f"line {name} was {end.how} (it was line {end.line}{where}{' and '.join(sides)})."
    if name in index.dead:
        return f"line {name} was deleted or replaced a long time ago."
    kind = "address" if form == "short" else "line ID"
    return f"invalid {kind} {name}: no line of the file has it now, and none of the last that were deleted or replaced had it."


def excerpt(
    document: Document, around: set[int], context: int = 1, form: str = "lid", unshown: Collection[int] = frozenset()
) -> str:
    """Return up to `MAX_SHOWN` present lines at and around some positions, with IDs; all but `unshown` count as shown."""
    count = document.text.count
    positions_shown = sorted({n for at in sorted(around) for n in range(at - context, at + context + 1) if 0 <= n < count})[
        :MAX_SHOWN
    ]
    out: list[str] = []
    last = -1
    for at in positions_shown:
        if out and at != last + 1:
            out.append("…")
        row = document.rows(at, at + 1)[0]
        # Marked where it is cut: who took it for the whole line would write over the rest.
        text = shorten(row.text, _SHORT)
        out.append(addresses.printed(row.short or "", text) if form == "short" else f"{row.number}: [LID:{row.id}] {text}")
        last = at
    # The refusal prints these lines, so the next request may change them.
    document.shown(*joined_ranges((at, at + 1) for at in positions_shown if at not in unshown), short=form == "short")
    return "\n".join(out)


def refusal(document: Document, problems: Problems) -> EditError:
    """Return the error that names every problem, with the lines as they are now."""
    listed = "\n".join(f"- {text}" for text in problems.messages)
    shown = excerpt(document, problems.lines, form=problems.form, unshown=problems.unshown)
    now = f"\nThe lines there now:\n{shown}" if shown else ""
    ids = problems.details.get("available_ids")
    if ids:
        # Several unknown IDs may have the same nearest ones.
        close = sorted({name for names in problems.details["nearest"].values() for name in names})
        rest = problems.details["available_count"] - len(ids)
        more = f" and {rest:,} more" if rest else ""
        now += f"\nNearest IDs: {', '.join(close) or 'none'}. Available: {', '.join(ids)}{more}."
    kind, names = problems.codes[0], "addresses" if problems.form == "short" else "IDs"
    hint = (
        f"Call {_reading(document, problems)}; what a refusal shows first does not count. Then send the changes again."
        if problems.unshown
        else "Correct the changes and send all of them again."
        if shown or kind in ("malformed_change", "pasted_ids")
        else f"Call {call_text('read', file_path=document.path)} and use the {names} it shows."
    )
    return EditError(
        kind, f"Nothing was written to {document.path}:\n{listed}{now}\n", hint, problems=problems.messages, **problems.details
    )


def _reading(document: Document, problems: Problems) -> str:
    """Return the call that reads the lines of which a change was refused because nobody was shown them."""
    places = joined_ranges((at, at + 1) for at in sorted(problems.unshown))
    if len(places) > _MOST_PLACES:
        places = [(places[0][0], places[-1][1])]
    marks = []
    for start, stop in places:
        ends = [document.index.addresses.names(at, at + 1)[0] for at in (start, stop - 1)]
        by_name, by_number = "-".join(dict.fromkeys(ends)), f"{start + 1}-{stop}"
        marks.append(f":@{by_name}" if problems.form == "short" else f":{by_number}")
    more = {"more": marks[1:]} if marks[1:] else {}
    return call_text("read", file_path=f"{document.path}{marks[0]}", **more)


def names_in(index: Index, changes: Sequence[Change]) -> list[str]:
    """Return the IDs of the lines that changes name, each once; a short address that no line has stays as it is."""
    out = dict[str, None]()
    for value in [value for change in changes for value in change.names.values() if clean_id(value) not in ENDS]:
        short = addresses.parsed(clean_id(value) if isinstance(value, str) else value)
        mark = index.marks.get(-1 if short is None or (at := index.place(short)) is None else at)
        out[mark.id if mark is not None else clean_id(value)] = None
    return [*out]


def wrong_version(document: Document, version: str, changes: Sequence[Change], form: str) -> EditError:
    """Say which version the file is in, with the named lines as they are now."""
    now = document.index.positions()
    shown = excerpt(document, {now[name] for name in names_in(document.index, changes) if name in now}, form=form)
    return EditError(
        "wrong_version",
        f"{document.path} is in version {document.short_version if form == 'short' else document.version}, not {version[:80]}. "
        "Nothing was written." + (f"\nThe lines there now:\n{shown}\n" if shown else ""),
        f"Call {call_text('read', file_path=document.path, changes_since=version)} to see what changed.",
        version=document.version,
    )


def stale_error(document: Document, changes: Sequence[Change], form: str = "lid") -> EditError:
    """Say which of the named lines changed, how, and what is there now."""
    assert document.before is not None  # the caller's condition
    was, now = document.before.positions(), document.index.positions()
    named = names_in(document.before, changes)
    messages: list[str] = []
    lines: set[int] = set()
    for name in named:
        if name in now:
            at = now[name]
            lines.add(at)
            age = document.index.ages.values(at, at + 1)[0]
            moved = f"moved from line {was[name] + 1} to {at + 1}" if was.get(name, at) != at else f"still line {at + 1}"
            fresh = age == document.index.revision
            messages.append(f"- {name}: {'its white space or place changed; now' if fresh else 'unchanged,'} {moved}")
        else:
            around = around_dead(document.index, now, name)
            lines.update(around.values())
            messages.append(f"- {why_dead(document.index, name, around)}")
    shown = excerpt(document, lines, context=2, form=form)
    before = document.before.short_version if form == "short" else document.before.version
    again = call_text("read", file_path=document.path, changes_since=before)
    return EditError(
        "stale_file",
        f"File has changed since last read (by another program): {document.path}. Nothing was written.\n"
        + "\n".join(messages)
        + (f"\nThe lines there now:\n{shown}\n" if shown else "\n"),
        f"Call {again} to see what changed, then send the edit again."
        + advice("on_stale", ' on_stale="rebase" applies it as it is where the lines that it covers are untouched.'),
        version=document.index.version,
    )


_PREFIX = re.compile(r"\s*(?:\d+: )?\[LID:(?P<lid>[0-9a-z]+)\]|(?:\d+: )?(?P<short>\d+[a-z]*)\t")
# What stands in a view, or where a search shows a match, in place of the rest of a long line; characters of others.
_SHORT = 500
_CUT = re.compile(
    r"… \[line shortened: [\d,]+ of [\d,]+ characters shown\]|\[[\d,]+ characters before\]… | …\[[\d,]+ characters after\]"
)
_IN_FILE = re.compile(rb"^(?:\s*(?:\d+: )?\[LID:[0-9a-z]+\]|(?:\d+: )?\d+[a-z]*\t)", re.MULTILINE)


def first_prefix(index: Index, data: bytes, lines: Sequence[str]) -> str | None:
    """Return the first pasted prefix of some new lines, or the mark of a line that a view cut; None without any.

    Args:
        index: of the file that they go to.
        data: the file's present content.
        lines: the new text.
    """
    cut = next(filter(None, (_CUT.search(line) for line in lines if " characters " in line)), None)
    # A view of this very file cut none where all are short.
    if cut and not _CUT.search(data.decode("utf-8", "replace")) and max(map(len, data.split(b"\n"))) > _SHORT:
        return cut[0].strip()
    prefixes = [(match["lid"], match["short"], match[0]) for line in lines if (match := _PREFIX.match(line))]
    if not prefixes:
        return None
    ids = {mark.id for mark in index.marks.values() if mark.shown >= 0} | index.dead.keys()
    dead = {end.short for end in index.dead.values() if end is not None}
    for lid, short, prefix in prefixes:
        address = addresses.parsed(short) if short else None
        at = index.place(address) if address is not None else None
        if (lid in ids) if lid else (address in dead or (at is not None and index.is_told(at))):
            return None if _IN_FILE.search(data) else prefix
    return None


def refuse(index: Index, data: bytes, lines: Sequence[str], path: str) -> None:
    """Refuse new lines with a pasted prefix.

    Raises:
        EditError: `pasted_ids`. Nothing was written.
    """
    prefix = first_prefix(index, data, lines)
    if prefix is not None:
        raise EditError("pasted_ids", f"{explained(prefix)} Nothing was written to {path}.", "Send the text alone.")


def refuse_in_file(ws: Workspace, path: bytes, shown: str, data: bytes, content: str) -> None:
    """Refuse a whole new content with a prefix that views of the file at a physical path showed. Errors as `refuse`."""
    if not any(sign in content for sign in ("\t", "[LID:", " characters ")):
        return
    stored = None
    with suppress(WorkspaceError):
        stored = store.load(ws, path, dense=False)
    if stored is not None:
        refuse(stored.index, data, content.split("\n"), shown)


def explained(prefix: str) -> str:
    """Return the sentence that says what is wrong."""
    if _CUT.search(f" {prefix} "):
        return f"The new text holds {prefix}: of a line that was shown in part the rest would be lost. Use find|old|new."
    shown = prefix.strip().replace("\t", "")
    return f"The new text begins a line with {shown}, the address of a line as a view showed it, which is not part of the file."
