"""What a reviewer does with one project's changes: read, take back, restore, mark, end a job.

Everything is done by the same tools that a model calls, so that it is recorded and can be taken back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rye import api
from rye.call.context import CallOptions
from rye.errors import RyeError
from rye.executor.executor import Call
from rye.journal.entries import Entry
from rye.review import actions, calls, diffs, marks
from rye.workspace.workspace import Workspace, identity_of


class Done(NamedTuple):
    """What became of an order: a text for the user, and the order; None: the page has no such one any more."""

    said: str
    order: actions.Order | None = None


class Desk:
    """One project under review. Any thread may ask."""

    def __init__(self, root: str) -> None:
        """Review the project at `root`."""
        self.root = root
        self.calls = calls.Calls(root)
        self._identity = identity_of(root)

    def workspace(self) -> Workspace:
        """Open the project. Raises RyeError where another folder was moved to its path since the start."""
        ws = Workspace(self.root)
        try:
            ws.hold_to(self._identity)
        except RyeError:
            ws.close()
            raise
        return ws

    def tool(self, item_id: str, **parameters: Any) -> dict[str, Any]:
        """Call a tool and return its data."""
        call = Call("tool", item_id, parameters, self.root, options=CallOptions(root=self._identity))
        found: dict[str, Any] = api.answer(call, None)["data"]
        return found

    def version(self, ws: Workspace) -> str:
        """Return a text that changes whenever the changes or the marks do."""
        return f"{self.calls.version(ws)} {marks.version(ws)}"

    def shown(self, ws: Workspace, now: calls.Timeline, call: calls.Call) -> tuple[list[Entry], list[diffs.FileDiff]]:
        """Return a call's entries, and what they did with the lines around. Raises OSError."""
        made = calls.entries_of(ws, call)
        rows = list(now.rows.values())
        return made, list(diffs.of_entries(ws, made, rows[: rows.index(call.first) + 1]))

    def act(self, ws: Workspace, call: calls.Call, text: str) -> Done:
        """Carry out an order (see `actions.order_of`) on a call."""
        files = list(diffs.of_entries(ws, calls.entries_of(ws, call)))
        order = actions.order_of(text, files)
        if order is None:
            return Done("This button is not of this page. Look again.")
        if order.verb == "mark":
            with marks.changed(ws) as known:
                known.toggle(order.mark(call.id), [len(one.hunks) for one in files])
            return Done("", order)
        return Done(self._undo(order, actions.undo_calls(order, self.calls.timeline(ws), call, files)), order)

    def _undo(self, order: actions.Order, wanted: list[dict[str, Any]]) -> str:
        """Call `undo` once or more; return what to tell the user."""
        if not wanted:
            return "Nothing was done: it was not taken back."
        notes = ["Taken back." if order.verb == "undo" else "Restored."]
        for parameters in wanted:
            answer = self.tool("rye/file-system/undo", **parameters)
            if not answer["success"]:
                before = "" if parameters is wanted[0] else "The rest was not done. "
                return f"{before or 'Nothing was done. '}{answer['error']}"
            notes += answer.get("warnings") or ()
        return " ".join(notes)

    def end_job(self, name: str) -> str:
        """End a job; return what to tell the user."""
        answer = self.tool("rye/bash/job", action="end", job_id=name)
        return str(answer["output"] if answer["success"] else answer["error"])
