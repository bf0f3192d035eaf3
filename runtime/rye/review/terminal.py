"""`rye review --tty`: the changes, jobs and waiting keys of a project in a terminal, read and acted on by keys.

It shows what the pages show, by the same modules: calls, diffs, orders, marks, approvals. Texts of a project are shown with
their control characters written out, so that none steers the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Input, OptionList, RichLog, Static, TabbedContent, TabPane
from textual.widgets.option_list import Option

from rye.call.safe_text import plain
from rye.edits import change_texts
from rye.errors import RyeError
from rye.process import jobs
from rye.review import calls, marks
from rye.review.approvals import Approvals, Waiting
from rye.review.calls import Call, Facts, Query, Timeline
from rye.review.desk import Desk
from rye.review.diffs import FileDiff, Hunk
from rye.review.marks import Marks

MOST_CALLS: Final = 1_000
"""So many calls are listed; a search finds older ones."""

_LINES_PER_HUNK: Final = 200
_WIDTH: Final = 400
_LOOK_SECONDS: Final = 0.5
_MOST_OUTPUT: Final = 40_000
_LISTS: Final = 7
_SHOWS: Final = ("", "new", "open", "undone")


class Part(NamedTuple):
    """One entry of a call's list: the whole call, a file, or a hunk; `order` is what stands behind a verb for it."""

    order: str
    text: Text


class Review(App[None]):
    """The view of one project."""

    TITLE = "rye review"
    CSS = """
    #calls { width: 45%; } #parts { width: 1fr; } #said { height: auto; max-height: 5; background: $panel; }
    #search { display: none; } #search.on { display: block; } .lower { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move(1)", "Down", show=False),
        Binding("k", "move(-1)", "Up", show=False),
        Binding("u", "act('undo')", "Take back"),
        Binding("U", "act('redo')", "Restore"),
        Binding("r", "act('mark')", "Reviewed"),
        Binding("L", "seen", "Seen all"),
        Binding("slash", "search", "Search"),
        Binding("f", "filter", "Show: all, new, open, undone"),
        Binding("s", "stop_job", "Stop job"),
        Binding("c", "approve", "Approve key"),
        Binding("1", "tab('changes')", "Changes", show=False),
        Binding("2", "tab('jobs')", "Jobs", show=False),
        Binding("3", "tab('keys')", "Keys", show=False),
        Binding("h", "side('calls')", "List", show=False),
        Binding("l", "side('parts')", "Diff", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, root: str) -> None:
        """Show the project at `root`."""
        super().__init__()
        self._desk = Desk(root)
        self._approvals = Approvals(root, self._tell)
        self._seen = self._jobs_seen = ""
        self._query = Query()
        self._call: Call | None = None
        self._waiting: list[Waiting] = []
        self._asking: Callable[[str], str] | None = None

    def compose(self) -> ComposeResult:
        """Lay out the view."""
        with TabbedContent(id="tabs"):
            with TabPane("1 Changes", id="changes"), Horizontal():
                yield DataTable(id="calls", cursor_type="row")
                yield OptionList(id="parts")
            with TabPane("2 Jobs", id="jobs"), Vertical():
                yield DataTable(id="joblist", cursor_type="row")
                yield RichLog(id="output", classes="lower", wrap=True)
            with TabPane("3 Keys", id="keys"), Vertical():
                yield DataTable(id="keylist", cursor_type="row")
                yield RichLog(id="admits", classes="lower", wrap=True)
        yield Input(id="search", placeholder="text in paths, commands, callers; Enter searches, Escape ends")
        yield Static(id="said")
        yield Footer()

    def on_mount(self) -> None:
        """Fill the lists, and look for news from now on."""
        self.query_one("#calls", DataTable).add_columns("", "when", "who", "what", "+", "-")
        self.query_one("#joblist", DataTable).add_columns("job", "status", "command")
        self.query_one("#keylist", DataTable).add_columns("key", "items")
        self._look()
        self.set_interval(_LOOK_SECONDS, self._look)
        self.query_one("#calls").focus()

    # --- what is shown ---

    def _look(self) -> None:
        """Show what changed since the last look."""
        if not self._is_open():
            return
        try:
            with self._desk.workspace() as ws:
                version = self._desk.version(ws)
                if version != self._seen:
                    self._seen = version
                    now, known = self._desk.calls.timeline(ws), marks.read(ws)
                    found = self._desk.calls.find(ws, now, self._query, known).calls[:MOST_CALLS]
                    self._list(now, found, self._desk.calls.facts(ws, found), known)
                records = jobs.records(ws.fd)
            news = " ".join(f"{one['job_id']}{one['status']}" for one in records)
            if news != self._jobs_seen:
                self._jobs_seen = news
                self._list_jobs(records)
            self._list_keys()
        except (RyeError, OSError) as err:
            self._tell(str(err))

    def _is_open(self) -> bool:
        """Tell whether the lists are there: timers and events may come while the view closes."""
        return len(self.query("#calls, #parts, #joblist, #output, #keylist, #admits, #said")) == _LISTS

    def _list(self, now: Timeline, found: Any, facts: Mapping[str, Facts], known: Marks) -> None:
        table = self.query_one("#calls", DataTable)
        chosen = self._call.id if self._call is not None else ""
        table.clear()
        for call in found:
            fact, row = facts[call.id], call.first
            what = fact.about or ", ".join(fact.paths[:3])
            state = f"{'✓' if call.id in known else ' '}{'↶' if now.is_undone(call) else ' '}"
            counts = ["" if one is None else str(one) for one in (fact.added, fact.removed)]
            cells = [
                state,
                change_texts.when(row)[5:16].replace("T", " "),
                row.actor or calls.NOBODY,
                f"{calls.tool_name(row)}: {what}",
            ]
            table.add_row(*(Text(plain(one, 60)) for one in cells), *counts, key=call.id)
        places = [call.id for call in found]
        if places:
            table.move_cursor(row=places.index(chosen) if chosen in places else 0)
            self._show(places[table.cursor_row])
        else:
            self._call = None
            self.query_one("#parts", OptionList).clear_options()

    def _show(self, call_id: str) -> None:
        """Show a call's files and hunks."""
        with self._desk.workspace() as ws:
            now, known = self._desk.calls.timeline(ws), marks.read(ws)
            if call_id not in now.places:
                return
            same = self._call is not None and self._call.id == call_id
            call = now.call(call_id)
            _, files = self._desk.shown(ws, now, call)
        parts, self._call = self.query_one("#parts", OptionList), call
        at = parts.highlighted if same else None
        parts.clear_options()
        parts.add_options([Option(one.text, id=f"o{one.order.replace(' ', '-')}") for one in _parts(call, files, now, known)])
        parts.highlighted = at if at is not None and at < parts.option_count else 0

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Follow the cursor of a list."""
        name = event.row_key.value if event.row_key is not None else None
        if name is None or not self._is_open():
            return
        if event.data_table.id == "calls" and (self._call is None or name != self._call.id):
            self._show(name)
        elif event.data_table.id == "joblist":
            answer = self._desk.tool("rye/bash/job", action="read", job_id=name, offset=-_MOST_OUTPUT)
            self._fill("#output", str(answer.get("output") or answer.get("error") or ""))
        elif event.data_table.id == "keylist":
            one = next((one for one in self._waiting if one.key.public.digest == name), None)
            rows = [f"{row.item_id}  {row.effects}" for row in one.rows] if one is not None else []
            self._fill("#admits", "It would admit:\n" + "\n".join(rows or ["nothing yet"]))

    def _fill(self, where: str, text: str) -> None:
        log = self.query_one(where, RichLog)
        log.clear()
        log.write(Text(plain(text, _MOST_OUTPUT, lines=True)))

    def _list_jobs(self, records: list[dict[str, Any]]) -> None:
        table = self.query_one("#joblist", DataTable)
        at = table.cursor_row
        table.clear()
        for one in records:
            table.add_row(*(Text(plain(str(one[name]), 100)) for name in ("job_id", "status", "command")), key=one["job_id"])
        table.move_cursor(row=min(at, max(len(records) - 1, 0)))

    def _list_keys(self) -> None:
        waiting = self._approvals.waiting()
        if [one.seen for one in waiting] == [one.seen for one in self._waiting]:
            return
        self._waiting = waiting
        table = self.query_one("#keylist", DataTable)
        table.clear()
        for one in waiting:
            table.add_row(Text(one.key.public.fingerprint), str(len(one.rows)), key=one.key.public.digest)

    def _tell(self, text: str) -> None:
        self.query_one("#said", Static).update(Text(plain(text, 2_000, lines=True)))

    # --- what is done ---

    def action_move(self, by: int) -> None:
        """Move the cursor of the list that has the focus."""
        if isinstance(self.focused, DataTable | OptionList):
            move = self.focused.action_cursor_down if by > 0 else self.focused.action_cursor_up
            move()

    def action_side(self, name: str) -> None:
        """Go to the list of calls, or to the parts of one."""
        self.query_one(f"#{name}").focus()

    def action_tab(self, name: str) -> None:
        """Show another list."""
        self.query_one("#tabs", TabbedContent).active = name
        self.query_one({"changes": "#calls", "jobs": "#joblist", "keys": "#keylist"}[name]).focus()

    def action_act(self, verb: str) -> None:
        """Take back, restore or mark: the call, or the part that is chosen in the diff."""
        call = self._call
        if call is None or self.query_one("#tabs", TabbedContent).active != "changes":
            return
        parts = self.query_one("#parts", OptionList)
        order = ""
        if self.focused is parts and parts.highlighted is not None:
            order = (parts.get_option_at_index(parts.highlighted).id or "o")[1:].replace("-", " ")
        try:
            with self._desk.workspace() as ws:
                done = self._desk.act(ws, self._desk.calls.timeline(ws).call(call.id), f"{verb} {order}".strip())
            self._tell(done.said)
        except LookupError:
            self._tell("This change is no longer recorded.")
        except (RyeError, OSError) as err:
            self._tell(f"Nothing was done. {err}")
        self._look()

    def action_seen(self) -> None:
        """Note that the user has seen all changes until now."""
        with self._desk.workspace() as ws, marks.changed(ws) as known:
            now = self._desk.calls.timeline(ws)
            known.looked = now.calls[0].first.id if now.calls else known.looked
        self._tell("All changes until now count as seen.")

    def action_filter(self) -> None:
        """Go on to the next filter."""
        show = _SHOWS[(_SHOWS.index(self._query.show) + 1) % len(_SHOWS)]
        self._ask_for(self._query._replace(show=show))

    def _ask_for(self, query: Query) -> None:
        self._query, self._seen = query, ""
        self._tell(f"Shown: {query.show or 'all'}{f', with {query.text}' if query.text else ''}")
        self._look()

    def action_search(self) -> None:
        """Ask for a text to search for."""
        self._ask_line("text in paths, commands, callers; Enter searches, Escape ends", self._query.text, self._search)

    def _search(self, text: str) -> str:
        self._ask_for(self._query._replace(text=text.strip()))
        return ""

    def action_stop_job(self) -> None:
        """End the chosen job."""
        table = self.query_one("#joblist", DataTable)
        if self.query_one("#tabs", TabbedContent).active == "jobs" and table.row_count:
            name = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value or ""
            self._tell(self._desk.end_job(name))
            self._look()

    def action_approve(self) -> None:
        """Show the code for the chosen key, and ask for it."""
        table = self.query_one("#keylist", DataTable)
        if self.query_one("#tabs", TabbedContent).active != "keys" or not self._waiting:
            return
        one = self._waiting[min(table.cursor_row, len(self._waiting) - 1)]
        digest, seen = one.key.public.digest, one.seen
        try:
            self._approvals.ask(digest, seen)
        except RyeError as err:
            self._tell(str(err))
            return
        self._ask_line(
            "the code; Enter approves the key, Escape does not", "", lambda code: self._approvals.confirm(digest, seen, code)
        )

    def _ask_line(self, hint: str, value: str, then: Callable[[str], str]) -> None:
        line = self.query_one("#search", Input)
        line.placeholder, line.value, self._asking = hint, value, then
        line.add_class("on")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        then, text = self._asking, event.value
        self._end_line()
        try:
            said = then(text) if then is not None else ""
        except RyeError as err:
            said = str(err)
        if said:
            self._tell(said)
        self._look()

    def key_escape(self) -> None:
        """Leave the line that is asked for."""
        if self._asking is not None:
            self._end_line()

    def _end_line(self) -> None:
        self._asking = None
        self.query_one("#search", Input).remove_class("on")
        active = self.query_one("#tabs", TabbedContent).active
        self.query_one({"jobs": "#joblist", "keys": "#keylist"}.get(active, "#calls")).focus()


def _parts(call: Call, files: list[FileDiff], now: Timeline, known: Marks) -> Iterator[Part]:
    """Yield a call, its files and their hunks as the list shows them."""
    state = _state(call.id in known, undone=now.is_undone(call))
    yield Part(
        "",
        Text(
            f"{state}{calls.tool_name(call.first)}, {call.files} file(s), by {plain(call.first.actor or calls.NOBODY)}", "bold"
        ),
    )
    for at, one in enumerate(files):
        state = _state(f"{call.id}/{at}" in known, undone=now.undoer_of(one.entry_id, one.path) is not None)
        notes = "".join(f"\n  {plain(note, _WIDTH)}" for note in one.notes)
        yield Part(f"{at}", Text(f"{state}{plain(one.path, _WIDTH)}  +{one.added} -{one.removed}{notes}", "bold"))
        for number, hunk in enumerate(one.hunks):
            undone = now.undoer_of(one.entry_id, one.path, hunk.number) is not None
            yield Part(f"{at} {number}", _hunk(hunk, _state(f"{call.id}/{at}/{number}" in known, undone=undone)))


def _state(reviewed: bool, *, undone: bool) -> str:
    return f"{'✓ reviewed ' if reviewed else ''}{'↶ taken back ' if undone else ''}"


def _hunk(hunk: Hunk, state: str) -> Text:
    text = Text(f"{state}@@ -{hunk.old + 1},{len(hunk.removed)} +{hunk.new + 1},{len(hunk.added)} @@ {plain(hunk.note)}", "dim")
    for sign, lines, colour in (("-", hunk.removed, "red"), ("+", hunk.added, "green")):
        for line in lines[:_LINES_PER_HUNK]:
            text.append(f"\n{sign} {plain(line, _WIDTH, lines=True)}", colour)
        if len(lines) > _LINES_PER_HUNK:
            text.append(f"\n{sign} … {len(lines) - _LINES_PER_HUNK:,} more lines", "dim")
    return text


def show(root: str) -> None:
    """Show the view at this process's terminal until the user ends it."""
    Review(root).run()
