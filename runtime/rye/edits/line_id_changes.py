"""Edit a file by line ID: all changes are checked first, and one refusal names every problem."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, cast

from rye.call.safe_text import nearest
from rye.edits import commit
from rye.edits import splices as edits_splices
from rye.edits.apply import Applied, Show, apply, change_bom
from rye.edits.splices import FinalNewline, Newline, Splice
from rye.errors import EditError, UsageError
from rye.line_ids import addresses
from rye.line_ids.document import Document, open_for_edit
from rye.line_ids.index import Index
from rye.plain_class import Record, field
from rye.workspace.text import content_lines
from rye.workspace.workspace import Workspace

MAX_SHOWN = 40
"""Lines that a refusal shows at most."""

_AVAILABLE = 20
_ENDS = ("start", "end")
# What is pasted around an ID: blanks, quotes, the brackets in which read prints it.
_AROUND = " \t\r\n\"'`[]<>"
_FORMS = ({"line_id"}, {"start_line_id", "end_line_id"}, {"after_line_id"}, {"before_line_id"})
_PASTED = re.compile(r"^\s*\[LID:[0-9a-z]{4,}\]")


class _Plan(Record, frozen=False):
    """One change, located: lines [start, stop) of the present text, its new lines, its place in the request."""

    number: int
    start: int
    stop: int
    bodies: list[bytes]
    newline: Newline


class _Problems(Record, frozen=False):
    """What is wrong with a request, the lines that the refusal shows, and how it shows them."""

    form: str = "lid"
    messages: list[str] = field(factory=list)
    codes: list[str] = field(factory=list)
    lines: set[int] = field(factory=set)
    details: dict[str, Any] = field(factory=dict)

    def add(self, code: str, text: str, *around: int) -> None:
        self.codes.append(code)
        self.messages.append(text)
        self.lines.update(around)


def edit_lines(
    project_path: str,
    file_path: str,
    changes: Sequence[dict[str, Any]],
    *,
    tool: str,
    show: Show | None = None,
    version: str | None = None,
    on_stale: str = "refuse",
    line_ids: str = "lid",
    newline: Newline = "keep",
    final_newline: FinalNewline = "keep",
    convert_newlines: Literal["lf", "crlf"] | None = None,
    bom: Literal["keep", "add", "remove"] = "keep",
    encoding: str | None = None,
    dry_run: bool = False,
) -> Applied:
    """Apply changes by line ID to one file: all of them, or none.

    Args:
        project_path: the project's root.
        file_path: the file, from the root.
        changes: see `splices_for`.
        tool: item id for the journal.
        show: which lines of the new text the result prints.
        version: refuse unless the file is in this version.
        on_stale: see `splices_for`.
        line_ids: how refusals show lines, see `addresses.form_of`.
        newline: terminators of changed lines, see `splices.terminated`.
        final_newline: whether the file ends in a newline.
        convert_newlines: give every line this terminator.
        bom: add or remove the byte order mark, in a call without other changes.
        encoding: codec name, where it is not recognised.
        dry_run: work out the diff, write nothing.

    Raises:
        EditError: as `splices_for` and `apply`; `wrong_version`. Nothing was written.
        WorkspaceError, UsageError: as `document.view`; `no_changes`, `protected_path`, `conflict` and what the system refuses.
    """
    with Workspace(project_path) as ws:
        # First: settling a crash may change the content that is about to be read.
        recovered = commit.recover(ws)
        with open_for_edit(ws, file_path, encoding) as document:
            form = addresses.form_of(line_ids)
            since = _since(document, version, on_stale, changes, form)
            others = bool(changes) or final_newline != "keep" or convert_newlines is not None
            if bom != "keep":
                if others:
                    raise UsageError("bom_alone", "bom changes nothing else.", "Change the lines in a call of their own.")
                applied = change_bom(document, bom, tool, dry_run=dry_run)
                applied.warnings[:0] = recovered
                return applied
            if not others:
                raise UsageError("no_changes", "changes is empty, and no newline option is given.", "Give at least one change.")
            splices = splices_for(document, changes, newline=newline, on_stale=on_stale, form=form, since=since)
            assembled = edits_splices.assemble(document.text, splices, final_newline)
            if convert_newlines is not None:
                assembled = edits_splices.converted(document.text, assembled, convert_newlines)
            applied = apply(document, assembled, tool, dry_run=dry_run, show=show)
    applied.warnings[:0] = recovered
    return applied


def _since(document: Document, version: str | None, on_stale: str, changes: Sequence[dict[str, Any]], form: str) -> int | None:
    """Return the revision of the caller's view, where it is an older one that may be rebased.

    Raises:
        EditError: `wrong_version`.
    """
    if version is None or not document.known or document.index.is_version(version):
        return None
    since = document.index.revision_of(version)
    if since is None or on_stale != "rebase":
        raise _wrong_version(document, version, changes, form)
    return since


def _wrong_version(document: Document, version: str, changes: Sequence[dict[str, Any]], form: str) -> EditError:
    now = document.index.positions()
    shown = excerpt(document, {now[name] for name in _named(document.index, changes) if name in now}, form=form)
    return EditError(
        "wrong_version",
        f"{document.path} is in version {document.short_version if form == 'short' else document.version}, not {version[:80]}. "
        "Nothing was written." + (f"\nThe lines there now:\n{shown}\n" if shown else ""),
        f'Call read(file_path="{document.path}", changes_since="{version}") to see what changed.',
        version=document.version,
    )


def splices_for(
    document: Document,
    changes: Sequence[dict[str, Any]],
    *,
    newline: Newline = "keep",
    on_stale: str = "refuse",
    form: str = "lid",
    since: int | None = None,
) -> list[Splice]:
    """Return the raw splices that a list of changes by ID means on the present text.

    Args:
        document: held for editing.
        changes: each with `new_content` and one of `line_id`; `start_line_id` and `end_line_id`; `after_line_id`;
            `before_line_id` (the last two also "start" or "end"); optionally its own `newline`.
        newline: terminators of changed lines, see `edits.terminated`.
        on_stale: "refuse", or "rebase": apply to a file that others changed if every covered line is untouched.
        form: how refusals show lines, see `addresses.FORMS`.
        since: the revision that the caller saw; lines that changed after it are refused.

    Raises:
        EditError: `no_index`, `stale_file`, `invalid_line_id`, `unseen_lines`, `overlapping_changes`,
            `malformed_change`, `pasted_ids`, `unencodable`. Nothing was written.
    """
    if not document.known:
        raise EditError(
            "no_index",
            f"No line IDs exist for {document.path}. Read the file first to generate line IDs.",
            f'Call read(file_path="{document.path}"). Nothing was written.',
        )
    problems = _Problems(form)
    if document.before is not None and on_stale != "rebase":
        raise _stale(document, changes, form)
    positions = document.index.positions()
    plans = [
        plan
        for number, change in enumerate(changes, 1)
        if (plan := _plan(document, positions, number, change, newline, problems))
    ]
    # By position for the checks below; at one position in the request's order, in which insertions are joined.
    plans.sort(key=lambda plan: (plan.start, plan.stop, plan.number))
    for plan in plans:
        _check_seen(document, plan, problems, since)
    _check_overlaps(plans, problems)
    if problems.messages:
        raise _refusal(document, problems)
    return joined([edits_splices.terminated(document.text, p.start, p.stop, p.bodies, p.newline) for p in plans])


def joined(splices: list[Splice]) -> list[Splice]:
    """Join splices that meet, such as insertions at one point in the order given."""
    out: list[Splice] = []
    for splice in splices:
        if out and out[-1].stop == splice.start:
            out[-1] = edits_splices.Splice(out[-1].start, splice.stop, [*out[-1].lines, *splice.lines])
        else:
            out.append(splice)
    return out


def _plan(
    document: Document, positions: dict[str, int], number: int, change: dict[str, Any], newline: Newline, problems: _Problems
) -> _Plan | None:
    form = {key for key in change if key.endswith("_id")}
    if form not in _FORMS:
        named = " and ".join(sorted(form)) or "no line ID"
        problems.add(
            "malformed_change",
            f"Change {number} names {named}; it needs line_id, or start_line_id with end_line_id, or after_line_id, "
            "or before_line_id.",
        )
        return None
    found = {key: _locate(document, positions, number, key, change[key], problems) for key in sorted(form)}
    content = str(change.get("new_content", ""))
    bodies = _bodies(document, number, content, problems)
    if None in found.values() or bodies is None:
        return None
    own = cast("Newline", change.get("newline", newline))
    spot = cast("dict[str, int]", found)
    if "line_id" in spot:
        return _Plan(number, spot["line_id"], spot["line_id"] + 1, bodies, own)
    if "start_line_id" in spot:
        if spot["start_line_id"] > spot["end_line_id"]:
            problems.add(
                "malformed_change",
                f"Change {number} is reversed: {change['start_line_id']} is line {spot['start_line_id'] + 1}, after "
                f"{change['end_line_id']} on line {spot['end_line_id'] + 1}.",
                spot["start_line_id"],
                spot["end_line_id"],
            )
            return None
        return _Plan(number, spot["start_line_id"], spot["end_line_id"] + 1, bodies, own)
    if not bodies:
        problems.add("malformed_change", f'Change {number} inserts nothing: new_content is "" (one empty line is "\\n").')
        return None
    at = spot["after_line_id"] + 1 if "after_line_id" in spot else spot["before_line_id"]
    return _Plan(number, at, at, bodies, own)


def _locate(
    document: Document, positions: dict[str, int], number: int, key: str, line_id: object, problems: _Problems
) -> int | None:
    """Return the position an ID names; for "start" and "end" such that inserting there works for both keys."""
    if key in ("after_line_id", "before_line_id") and _bare(line_id) in _ENDS:
        # `before_line_id="end"` means the line count itself; for `after_line_id` the caller adds one.
        at = 0 if _bare(line_id) == "start" else document.text.count
        return at - 1 if key == "after_line_id" else at
    short = _short(line_id)
    if short is not None:
        if isinstance(line_id, int) and str(line_id) in positions:
            problems.add("invalid_line_id", f'Change {number}: {line_id} is an ID: write it in quotes, "{line_id}".')
            return None
        return _locate_short(document, positions, number, short, problems)
    name = _bare(line_id)
    at_ = positions.get(name)
    if at_ is None:
        around = _around_dead(document.index, positions, name)
        problems.add("invalid_line_id", f"Change {number}: {_why_dead(document.index, name, around)}", *around.values())
        if name not in document.index.dead:
            # Only IDs that the caller can have seen are suggested.
            shown = [mark.id for mark in document.index.marks.values() if mark.shown >= 0]
            problems.details.setdefault("nearest", {})[name] = nearest(name, shown)
            problems.details.setdefault("available_ids", shown[:_AVAILABLE])
    return at_


def _locate_short(document: Document, positions: dict[str, int], number: int, short: str, problems: _Problems) -> int | None:
    """Return the position that a short address names; only one that was shown can be known to anybody."""
    index = document.index
    at = index.places().get(short)
    if at is not None and index.marks[at].told:
        # What stands beside an insertion must be as it was shown, too: a number says nothing of its line's text.
        if index.marks[at].shown < index.ages.values(at, at + 1)[0]:
            problems.add("unseen_lines", f"Change {number}: line {short} changed since it was shown.", at)
            return None
        return at
    name = next((name for name, fate in index.dead.items() if fate is not None and fate.short == short), None)
    around = _around_dead(index, positions, name) if name is not None else {}
    if name is not None:
        why = _why_dead(index, name, around, "short")
    elif at is not None:
        why = f"the address {short} was never shown."
    else:
        why = f"no line has the address {short}: it was deleted or replaced long ago, or is of another state of the file."
    # Without a trace the number may be a line number: what stands there now helps most.
    here = min(addresses.split(short)[0], document.count) - 1
    problems.add("invalid_line_id", f"Change {number}: {why}", *(around.values() or ([here] if here >= 0 else [])))
    return None


def _short(line_id: object) -> str | None:
    """Return the short address that a caller names, None where it names an ID."""
    return addresses.parsed(_bare(line_id) if isinstance(line_id, str) else line_id)


def _bare(line_id: object) -> str:
    """Return an ID without what was pasted with it: the mark and brackets of read, the line's text, quotes; in lower case."""
    name = str(line_id).strip(_AROUND).partition("\t")[0]
    if name[:4].lower() == "lid:":
        name = name[4:].partition("]")[0]
    return name.strip(_AROUND).lower()


def _around_dead(index: Index, positions: dict[str, int], name: str) -> dict[str, int]:
    """Follow a dead line's neighbours to lines that still exist: {"after": position, "before": position}, as far as known."""
    out: dict[str, int] = {}
    for side in ("after", "before"):
        at: str | None = name
        # Bounded: in a damaged index dead lines could name each other in a circle.
        for _ in range(100):
            fate = index.dead.get(at) if at else None
            at = getattr(fate, side) if fate else None
            if at is None or at in positions:
                break
        if at in positions:
            out[side] = positions[at]
    return out


def _why_dead(index: Index, name: str, around: dict[str, int], form: str = "lid") -> str:
    fate = index.dead.get(name)
    if fate is not None:
        by_id = {position: mark.short if form == "short" else mark.id for position, mark in index.marks.items()}
        sides = [by_id[around[side]] for side in ("after", "before") if side in around]
        where = " between " if len(sides) == 2 else " next to " if sides else ""
        name = fate.short if form == "short" else name
        return f"line {name} was {fate.how} (it was line {fate.line}{where}{' and '.join(sides)})."
    if name in index.dead:
        return f"line {name} was deleted or replaced a long time ago."
    return f"invalid line ID {name}: no line of the file has it now, and none of the last that were deleted or replaced had it."


def _bodies(document: Document, number: int, content: str, problems: _Problems) -> list[bytes] | None:
    lines = content_lines(content)
    if any(map(_PASTED.match, lines)) and not _has_pasted(document):
        problems.add(
            "pasted_ids",
            f"Change {number}: new_content begins a line with a [LID:…] prefix; IDs belong to read's output, not to the file.",
        )
        return None
    return [document.encode(line) for line in lines]


def _has_pasted(document: Document) -> bool:
    """Tell whether the file itself has lines that begin so, as a text about these tools may."""
    return re.search(rb"^\s*\[LID:", document.data or b"", re.MULTILINE) is not None


def _check_seen(document: Document, plan: _Plan, problems: _Problems, since: int | None) -> None:
    """A change covers the lines that were shown as they are, side by side; anything else is shown now, not written over."""
    marks = document.index.marks
    ages = document.index.ages.values(plan.start, plan.stop)
    unseen: list[int] = []
    for at, age in zip(range(plan.start, plan.stop), ages, strict=True):
        mark = marks.get(at)
        seen = mark is not None and mark.shown >= age and (since is None or age <= since)
        # Neighbours must have been printed since they became neighbours, or a line inserted between them could be lost unseen.
        beside = at == plan.start or (mark is not None and mark.shown >= mark.near)
        before = (
            at == plan.start
            or (unseen and unseen[-1] == at - 1)
            or (mark is not None and (other := marks.get(at - 1)) is not None and other.shown >= mark.near)
        )
        if not (seen and beside and before):
            unseen.append(at)
    if unseen:
        named = ", ".join(str(at + 1) for at in unseen[:8]) + ("…" if len(unseen) > 8 else "")
        problems.add(
            "unseen_lines",
            f"Change {plan.number} covers {len(unseen)} line(s) that were never shown as they are now "
            f"(changed, moved in, or next to removed ones since): line {named}.",
            *unseen,
        )


def _check_overlaps(plans: list[_Plan], problems: _Problems) -> None:
    reach, holder = -1, 0
    for plan in plans:
        # A change that begins where another ends does not overlap it.
        if plan.start < reach:
            problems.add(
                "overlapping_changes", f"Changes {min(holder, plan.number)} and {max(holder, plan.number)} overlap.", plan.start
            )
        if plan.stop > reach:
            reach, holder = plan.stop, plan.number


def excerpt(document: Document, around: set[int], context: int = 1, form: str = "lid") -> str:
    """Return up to `MAX_SHOWN` present lines at and around some positions, with IDs, and record them as shown."""
    count = document.text.count
    wanted = sorted({n for at in sorted(around) for n in range(at - context, at + context + 1) if 0 <= n < count})[:MAX_SHOWN]
    out: list[str] = []
    last = -1
    for at in wanted:
        if out and at != last + 1:
            out.append("…")
        row = document.rows(at, at + 1)[0]
        short = addresses.printed(row.short or "", row.text[:500])
        out.append(short if form == "short" else f"{row.number}: [LID:{row.id}] {row.text[:500]}")
        last = at
    # The refusal prints these lines, so the next request may change them.
    document.shown(*_spans(wanted), short=form == "short")
    return "\n".join(out)


def _spans(positions: list[int]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for at in positions:
        if out and out[-1][1] == at:
            out[-1] = (out[-1][0], at + 1)
        else:
            out.append((at, at + 1))
    return out


def _refusal(document: Document, problems: _Problems) -> EditError:
    listed = "\n".join(f"- {text}" for text in problems.messages)
    shown = excerpt(document, problems.lines, form=problems.form)
    now = f"\nThe lines there now:\n{shown}" if shown else ""
    ids = problems.details.get("available_ids")
    if ids:
        # Several unknown IDs may have the same nearest ones.
        close = sorted({name for names in problems.details["nearest"].values() for name in names})
        now += f"\nNearest IDs: {', '.join(close) or 'none'}. Available: {', '.join(ids)}."
    kind = problems.codes[0]
    hint = (
        "Correct the changes and send all of them again."
        if shown
        else f'Call read(file_path="{document.path}") and use the IDs it shows.'
    )
    return EditError(
        kind, f"Nothing was written to {document.path}:\n{listed}{now}\n", hint, problems=problems.messages, **problems.details
    )


def _named(index: Index, changes: Sequence[dict[str, Any]]) -> list[str]:
    """Return the IDs of the lines that changes name, each once; a short address that no line has stays as it is."""
    ids = {mark.short: mark.id for mark in index.marks.values()}
    given = [value for change in changes for key, value in change.items() if key.endswith("_id") and _bare(value) not in _ENDS]
    return [*dict.fromkeys(ids.get(_short(value) or "") or _bare(value) for value in given)]


def _stale(document: Document, changes: Sequence[dict[str, Any]], form: str = "lid") -> EditError:
    """Say which of the named lines changed, how, and what is there now."""
    assert document.before is not None  # noqa: S101 - the caller's condition
    was, now = document.before.positions(), document.index.positions()
    named = _named(document.before, changes)
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
            around = _around_dead(document.index, now, name)
            lines.update(around.values())
            messages.append(f"- {_why_dead(document.index, name, around)}")
    shown = excerpt(document, lines, context=2, form=form)
    return EditError(
        "stale_file",
        f"File has changed since last read (by another program): {document.path}. Nothing was written.\n"
        + "\n".join(messages)
        + (f"\nThe lines there now:\n{shown}\n" if shown else "\n"),
        'Re-read what you need (changes_since tells what changed), then send the edit again; on_stale="rebase" applies it '
        "when the covered lines are untouched.",
        version=document.index.version,
    )
