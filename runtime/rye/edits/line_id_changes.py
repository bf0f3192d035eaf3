"""Edits by line address, worked out: each change is located, checked and made a splice; one refusal names every problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rye.call.results import call_text
from rye.call.safe_text import nearest
from rye.edits import change_forms, refusals
from rye.edits import splices as edits_splices
from rye.edits.apply import Plan
from rye.edits.change_forms import Change
from rye.edits.refusals import ENDS, Problems, around_dead, clean_id, refusal, stale_error, why_dead, wrong_version
from rye.edits.splices import FinalNewline, Newline
from rye.errors import EditError
from rye.journal import journal
from rye.line_ids import addresses
from rye.line_ids.document import Document
from rye.line_ids.reconcile import Revived, Splice
from rye.plain_class import Record
from rye.workspace import seals

_AVAILABLE, _NAMED_CHARS = 20, 80
_FORMS = ({"line_id"}, {"start_line_id", "end_line_id"}, {"after_line_id"}, {"before_line_id"})
_RANGES = _FORMS[:2]


class Options(Record):
    """How the changes of a call are meant.

    Attributes:
        newline: terminators of changed lines, see `splices.terminated`.
        on_stale: "refuse", or "rebase": apply to a file that others changed if every covered line is untouched.
        form: how refusals show lines, see `addresses.FORMS`.
    """

    newline: Newline = "keep"
    on_stale: str = "refuse"
    form: str = "lid"


def _changed_by_others(document: Document) -> bool:
    before = document.before
    if before is None:
        return False
    # What a named edit wrote that was killed before it stored the line IDs is no change by others.
    return not journal.made_by_named_calls(document.ws, document.path, before.content_hash, document.index.content_hash)


class Checker:
    """The changes of one open file: located as they are added, then checked all together."""

    def __init__(
        self,
        document: Document,
        changes: Sequence[Change],
        options: Options,
        version: str | None = None,
        *,
        target: bool = False,
    ) -> None:
        """Take a document that is held for editing, and the changes that name its lines.

        `target`: it has no changes of its own; lines of other files go to it, for which its start and end need no address.

        Raises:
            EditError: `no_index`, `wrong_version`, `stale_file`. Nothing was written.
        """
        self.document, self.options = document, options
        self.problems = Problems(options.form)
        self.plans: list[Plan] = []
        # Of changes that move or copy lines: which.
        self.spots: dict[int, tuple[int, int]] = {}
        by_text = bool(changes) and all(change.kind == "find" and not change.names for change in changes)
        if not document.known and not by_text and not target:
            unread = f"No line IDs exist for {document.path}. Read the file first to generate line IDs. Nothing was written."
            short = f"{document.path} was not read: its lines have no addresses yet. Nothing was written."
            ends = " in this same process (its IDs end with it: the state folder cannot be written, or has no modes)"
            where = "" if seals.is_kept(document.ws) else ends
            hint = f"Call {call_text('read', file_path=document.path)}{where}, or change it by its text (find)."
            raise EditError("no_index", short if options.form == "short" else unread, hint)
        self._since = self._revision(version, changes)
        if options.on_stale != "rebase" and _changed_by_others(document):
            raise stale_error(document, changes, options.form)
        self._positions = document.index.positions()

    def _revision(self, version: str | None, changes: Sequence[Change]) -> int | None:
        """Return the revision of the caller's view, where it is an older one that may be rebased."""
        if version is None or not self.document.known or self.document.index.is_version(version):
            return None
        since = self.document.index.revision_of(version)
        if since is None or self.options.on_stale != "rebase":
            raise wrong_version(self.document, version, changes, self.options.form)
        return since

    def add(self, change: Change) -> None:
        """Locate a change of lines and plan it; what is wrong is remembered."""
        if change.kind == "find":
            self._add_found(change)
            return
        found = self.located(change)
        if found is None:
            return
        start, stop = found
        if change.kind in change_forms.TRANSFERS:
            self._add_transfer(change, start, stop)
            return
        lines = change_forms.lines_of(change.fields["new_content"])
        bodies = self.bodies(change, lines)
        if bodies is None or self._is_json_of(change, start, stop, lines):
            return
        if start == stop and not bodies:
            self.problems.add(
                "malformed_change", f'Change {change.number} inserts nothing: new_content is "" (one empty line is "\\n").'
            )
            return
        newline = cast("Newline", change.fields.get("newline", self.options.newline))
        raw = edits_splices.terminated(self.document.text, start, stop, bodies, newline).lines
        self.plans.append(Plan(change.number, start, stop, raw, beside=_beside(change, start)))

    def _is_json_of(self, change: Change, start: int, stop: int, lines: list[str]) -> bool:
        """Tell whether lines of a notebook's cell are given as the JSON of the file, which is a mistake."""
        book = self.document.cells()
        if book is None:
            return False
        from rye.edits import notebook_changes

        text = notebook_changes.json_line(book.cell_at(start, stop), lines)
        if text is not None:
            mistake = f"gives JSON for lines of a cell, which take the cell's text: {text[:200]!r}."
            self.problems.add("notebook_json", f"Change {change.number} {mistake}", start)
        return text is not None

    def located(self, change: Change) -> tuple[int, int] | None:
        """Return the lines [start, stop) that a change names."""
        form = set(change.names)
        forms = _FORMS if change.kind == "new_content" else _RANGES
        if form not in forms:
            named = " and ".join(sorted(form)) or "no line ID"
            wanted = "line_id, or start_line_id with end_line_id" + (
                ", or after_line_id, or before_line_id" if forms is _FORMS else ""
            )
            self.problems.add("malformed_change", f"Change {change.number} names {named}; it needs {wanted}.")
            return None
        # What find replaces is checked by its text alone.
        is_checked = change.kind != "find" and form in _RANGES
        found = {key: self.locate(change.number, key, change.fields[key], is_checked=is_checked) for key in sorted(form)}
        if None in found.values():
            return None
        spot = cast("dict[str, int]", found)
        if "line_id" in spot:
            return spot["line_id"], spot["line_id"] + 1
        if "start_line_id" not in spot:
            at = spot["after_line_id"] + 1 if "after_line_id" in spot else spot["before_line_id"]
            return at, at
        start, stop = spot["start_line_id"], spot["end_line_id"] + 1
        if start < stop:
            return start, stop
        self.problems.add(
            "malformed_change",
            f"Change {change.number} is reversed: {change.fields['start_line_id']} is line {start + 1}, after "
            f"{change.fields['end_line_id']} on line {stop}.",
            start,
            stop - 1,
        )
        return None

    def locate(self, number: int, key: str, address: object, *, is_checked: bool = False) -> int | None:
        """Return the position an address names; for "start" and "end" such that inserting there works for both keys.

        A line that was never shown is refused here, but for one of a range, whose lines are all checked later (`is_checked`).
        """
        if key in ("after_line_id", "before_line_id") and clean_id(address) in ENDS:
            # `before_line_id="end"` means the line count itself; for `after_line_id` the caller adds one.
            at = 0 if clean_id(address) == "start" else self.document.text.count
            return at - 1 if key == "after_line_id" else at
        index, name = self.document.index, clean_id(address)
        short = addresses.parsed(name if isinstance(address, str) else address)
        if short is not None:
            return self._locate_short(number, short, address, is_checked=is_checked)
        at_ = self._positions.get(name)
        if name in (*ENDS, "0"):
            self.problems.add(
                "invalid_line_id", f'Change {number}: {name} is no line: "start+|text" and "end+|text" add there.'
            )
        elif at_ is None:
            around = around_dead(index, self._positions, name)
            form = "lid" if name in index.dead else self.problems.form
            self.problems.add("invalid_line_id", f"Change {number}: {why_dead(index, name, around, form)}", *around.values())
            if name not in index.dead and form == "lid":
                # Only IDs that the caller can have seen are suggested.
                shown = [mark.id for mark in index.marks.values() if mark.shown >= 0]
                self.problems.details.setdefault("nearest", {})[name] = nearest(name, shown)
                self.problems.details.setdefault("available_ids", shown[:_AVAILABLE])
                self.problems.details.setdefault("available_count", len(shown))
        return at_

    def _locate_short(self, number: int, short: str, address: object, *, is_checked: bool) -> int | None:
        """Return the position that a short address names; only one that was shown can be known to anybody."""
        index, problems = self.document.index, self.problems
        if isinstance(address, int) and str(address) in self._positions:
            problems.add("invalid_line_id", f'Change {number}: {address} is an ID: write it in quotes, "{address}".')
            return None
        at = index.place(short)
        if at is not None and index.is_told(at):
            # What is beside an insertion must be as it was shown, too: a number says nothing of its line's text.
            age = index.ages.values(at, at + 1)[0]
            if index.marks[at].shown < age or (self._since is not None and age > self._since):
                problems.add("unseen_lines", f"Change {number}: line {short} changed since it was shown.", at)
                return None
            return at
        if at is not None:
            if is_checked and (at not in index.marks or index.marks[at].shown < 0):
                return at
            self._refuse_unshown(number, [at], short)
            return None
        name = next((name for name, end in index.dead.items() if end is not None and end.short == short), None)
        around = around_dead(index, self._positions, name) if name is not None else {}
        if name is not None:
            why = why_dead(index, name, around, "short")
        elif index.was_given(short):
            why = f"line {short} was deleted or replaced."
        else:
            why = f"no line has the address {short}, and none is known to have had it in this state of the file."
        # Without a trace the number may be a line number: what is there now helps most.
        first = min(addresses.split(short)[0], self.document.count) - 1
        problems.add("invalid_line_id", f"Change {number}: {why}", *(around.values() or ([first] if first >= 0 else [])))
        return None

    def _refuse_unshown(self, number: int, lines: list[int], name: str = "") -> None:
        """Refuse a change of lines that were never shown, or only by their IDs where it names them by number."""
        marks, named = self.document.index.marks, name or self._named_lines(lines)
        by_id = all(at in marks and marks[at].shown >= 0 for at in lines)
        why = "was shown by its ID only: name it by that." if by_id else "was never shown."
        which = f"line {named} {why}" if len(lines) == 1 else f"{len(lines)} lines were never shown: {named}."
        # A refusal that prints IDs shows no number, and the ID that it asks for was shown.
        self.problems.unshown.update(() if by_id and self.problems.form != "short" else lines)
        # They count as shown only once they were read: the ends are enough to see whether they are the right ones.
        self.problems.add("unseen_lines", f"Change {number}: {which}", *lines[:3], *lines[-3:])

    def bodies(self, change: Change, lines: list[str]) -> list[bytes] | None:
        """Return new lines in the file's encoding, None where addresses were pasted with them."""
        prefix = refusals.first_prefix(self.document.index, self.document.data or b"", lines)
        if prefix is not None:
            self.problems.add("pasted_ids", f"Change {change.number}: {refusals.explained(prefix)}")
            return None
        return [self.document.encode(line) for line in lines]

    def _add_found(self, change: Change) -> None:
        """Plan a replacement of exact text: in the lines that the change names, or in the whole file."""
        where = self.located(change) if change.names else (0, self.document.count)
        if where is None:
            return
        start, stop = where
        old, new = str(change.fields["find"]), str(change.fields["replace"])
        if not old or old == new:
            self.problems.add("malformed_change", f"Change {change.number}: find is empty, or the same as replace.")
            return
        if self.bodies(change, new.split("\n")) is None:
            return
        found = edits_splices.find(self.document, start, stop, old, new)
        expected = int(change.fields.get("count", 1))
        # Which of two that overlap is meant, nobody can tell; of many that shall all be replaced it makes no difference.
        overlap = found.overlapping and expected == 1
        # grep counts lines: a number of several may be of these.
        is_counted = found.places == expected or (expected > 1 and len(found.lines) == expected)
        if not is_counted or overlap:
            if found.places:
                many = "Places that overlap" if overlap else f"{found.places} place(s)"
                mistake = (
                    f"{many} have the text of find, not {expected}: give more of it, name lines, or find {found.places}|…."
                )
                self.problems.add("text_count", f"Change {change.number}: {mistake}", *found.lines)
                return
            near, count, is_whole = edits_splices.similar_lines(self.document, start, stop, old)
            but = "But for white space"
            if any("\\x" in text for at in near for text in self.document.texts(at, at + 1)):
                but += r", or within a \xHH that is one byte,"
            part = "it" if is_whole else "its first line" if count == 1 else f"its first {count} lines"
            more = f" {but} these lines have {part}." if near else ""
            shown = [line for at in near for line in range(at, at + count)]
            self.problems.add("text_not_found", f"Change {change.number}: no line has the text {old[:80]!r}.{more}", *shown)
            return
        self.plans += [Plan(change.number, one.start, one.stop, one.lines, quoted=True) for one in found.splices]

    def _add_transfer(self, change: Change, start: int, stop: int) -> None:
        """Plan a move or copy of lines; into another file `several_files` puts them there."""
        document, moved = self.document, change.kind.startswith("move")
        self.spots[change.number] = start, stop
        if moved:
            self.plans.append(Plan(change.number, start, stop, []))
        else:
            # Of a move the lines that go are checked with all others.
            self._check_seen(Plan(change.number, start, stop, []))
        if change.fields.get("to_file", change.file) != change.file:
            return
        at = self.target(change)
        if at is None:
            return
        if moved and start <= at <= stop:
            self.problems.add("malformed_change", f"Change {change.number} moves lines to where they are.", at)
            return
        if (book := document.cells()) and book.cell_at(at, at):
            raw = self._terminated(at, [document.encode(text) for text in document.texts(start, stop)])
        else:
            raw = [
                line if document.text.encoding.terminator(line) else self._terminated(at, [line])[0]
                for line in document.text.lines(start, stop)
            ]
        names = Revived(document.ids(start, stop), document.index.addresses.part(start, stop)) if moved else None
        self.plans.append(Plan(change.number, at, at, raw, names, beside=_beside(change, at)))

    def target(self, change: Change) -> int | None:
        """Return before which line the lines go that a change moves or copies."""
        key = "after_line_id" if change.kind.endswith("after") else "before_line_id"
        at = self.locate(change.number, key, change.fields[change.kind])
        return None if at is None else at + (key == "after_line_id")

    def take(self, change: Change, bodies: list[bytes]) -> None:
        """Plan the lines that a change moves or copies to here from another file."""
        at = self.target(change)
        if at is not None:
            raw = edits_splices.terminated(self.document.text, at, at, bodies, self.options.newline).lines
            self.plans.append(Plan(change.number, at, at, raw, beside=_beside(change, at)))

    def _terminated(self, at: int, bodies: list[bytes]) -> list[bytes]:
        return edits_splices.terminated(self.document.text, at, at, bodies).lines

    def spliced(self, final_newline: FinalNewline = "keep") -> list[Splice]:
        """Check all changes, and return what they mean on the present text: assembled splices, one for each change.

        Raises:
            EditError: `invalid_line_id`, `unseen_lines`, `overlapping_changes`, `malformed_change`, `pasted_ids`,
                `text_count`, `text_not_found`, `unencodable`. Nothing was written.
        """
        # By position for the checks below; at one position in the request's order.
        plans = sorted(self.plans, key=lambda plan: (plan.start, plan.stop, plan.number))
        for plan in plans:
            self._check_seen(plan)
        _check_overlaps(plans, self.problems)
        for moved in [plan for plan in plans if plan.number in self.spots and plan.start < plan.stop]:
            for plan in plans:
                # Within them it overlaps.
                if moved.start <= plan.beside < moved.stop and plan.start in (moved.start, moved.stop):
                    numbers = " and ".join(map(str, sorted((moved.number, plan.number))))
                    line = self._named_lines([plan.beside])
                    why = f"Changes {numbers} overlap: line {line} moves. Name one that stays, or add to it in another call."
                    self.problems.add("overlapping_changes", why, plan.beside)
        if self.problems.messages:
            raise refusal(self.document, self.problems)
        if (book := self.document.cells()) is not None:
            from rye.edits import notebook_changes

            plans = notebook_changes.encoded(self.document, book, plans)
        splices = [Splice(plan.start, plan.stop, plan.raw, plan.names) for plan in plans]
        return edits_splices.assemble(self.document.text, splices, final_newline)

    def _named_lines(self, positions: list[int]) -> str:
        is_short, numbers = self.options.form == "short", self.document.index.addresses
        names = addresses.ranges([numbers.names(at, at + 1)[0] if is_short else str(at + 1) for at in positions])
        return names if len(names) <= _NAMED_CHARS else f"{names[:_NAMED_CHARS].rpartition(',')[0]} …"

    def _check_seen(self, plan: Plan) -> None:
        """A change covers the lines that were shown as they are, side by side; others are shown now, not written over."""
        index = self.document.index
        marks, unseen = index.marks, list[int]()
        if plan.quoted:
            return
        # Of the lines and of the one on either side.
        first = max(plan.start - 1, 0)
        ages = dict(enumerate(index.ages.values(first, plan.stop + 1), first))
        for at in range(plan.start, plan.stop):
            mark, age = marks.get(at), ages[at]
            is_seen = mark is not None and mark.shown >= age and (self._since is None or age <= self._since)
            # Neighbours must have been printed since they became neighbours, or a line inserted between could be lost unseen.
            neighbours_seen = at == plan.start or (mark is not None and mark.shown >= mark.near)
            before = (
                at == plan.start
                or (unseen and unseen[-1] == at - 1)
                or (mark is not None and (other := marks.get(at - 1)) is not None and other.shown >= mark.near)
            )
            if not (is_seen and neighbours_seen and before):
                unseen.append(at)
        if not unseen and (twin := self._twin_beside_a_change(plan, ages)) is not None:
            self.problems.add(
                "unseen_lines",
                f"Change {plan.number}: line {self._named_lines([twin])} has the text of other lines, and what is beside it "
                "changed since it was shown.",
                twin,
            )
        if never := [at for at in unseen if at not in marks or marks[at].shown < 0]:
            self._refuse_unshown(plan.number, never)
        elif unseen:
            shown = self._named_lines(unseen)
            self.problems.add(
                "unseen_lines",
                f"Change {plan.number} covers {len(unseen)} line(s) that were not shown as they are now "
                f"(changed, moved in, or next to removed ones since): line {shown}.",
                *unseen,
            )

    def _twin_beside_a_change(self, plan: Plan, ages: dict[int, int]) -> int | None:
        """Return the first or last line of a change if only its place tells it from others, and what is beside it is new.

        Of equal lines, such as closing brackets, the one is told from the other by the lines around it.
        """
        index, count = self.document.index, self.document.count
        for at, neighbour in ((plan.start, plan.start - 1), (plan.stop - 1, plan.stop)):
            if plan.start >= plan.stop or not 0 <= neighbour < count:
                continue
            mark, other = index.marks.get(at), index.marks.get(neighbour)
            age = ages[neighbour]
            is_news = mark is not None and age > mark.shown and (other is None or other.shown < age)
            if is_news and self._has_twin(at):
                return at
        return None

    def _has_twin(self, at: int) -> bool:
        text = self.document.text
        key = text.encoding.key(text.lines(at, at + 1)[0])
        return sum(text.encoding.key(line) == key for line in text.lines(0, text.count)) > 1


def _beside(change: Change, at: int) -> int:
    """Return the line that an insertion at a position names, -1 for none."""
    for key in ("after_line_id", "before_line_id", *change_forms.TRANSFERS):
        if key in change.fields and clean_id(change.fields[key]) not in ENDS:
            return at - ("after" in key)
    return -1


def _check_overlaps(plans: Sequence[Plan], problems: Problems) -> None:
    reach, holder = -1, 0
    for plan in plans:
        # A change that begins where another ends does not overlap it.
        if plan.start < reach:
            numbers = f"{min(holder, plan.number)} and {max(holder, plan.number)}"
            problems.add("overlapping_changes", f"Changes {numbers} overlap: make them one.", plan.start)
        if plan.stop > reach:
            reach, holder = plan.stop, plan.number
