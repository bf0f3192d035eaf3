"""`rye log`, `rye diff`, `rye blame`, `rye review`: what was changed, what differs, and who wrote each line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from rye.call import command_channel
from rye.cli import terminal
from rye.cli.process import EXIT_OK
from rye.cli.shared import current_in, project_of, require_extra, require_person, typed_path
from rye.cli.terminal import harmless, note, print_json, print_table, printable, tell, told_json
from rye.edits import change_texts
from rye.errors import RyeError, UsageError
from rye.fs import names
from rye.journal import file_history, history, tree_changes
from rye.journal.history import Row
from rye.provenance import blame, exports, points
from rye.workspace.workspace import Workspace


def run_log(args: SimpleNamespace) -> int:
    """Run `rye log`; return its exit code."""
    with _workspace(args.project) as ws:
        past = history.History(ws)
        rows = list(past)
        if args.since is not None:
            rows = rows[: _place(rows, args.since)]
        if args.new:
            rows = change_texts.since_looked(ws, rows)
        if args.path is not None:
            found = file_history.of_file(ws, _from_root(ws, args.path), rows)
            known = {step.entry.id for step in found.steps if step.entry is not None}
            rows = [row for row in rows if row.id in known]
        if args.actor is not None:
            rows = [row for row in rows if args.actor in row.actor]
        shown = [change_texts.logged(ws, past, row) for row in rows[: max(args.limit, 0)]]
        if args.new and len(shown) == len(rows) and args.actor is None and args.path is None:
            change_texts.looked(ws, past)
    if told_json(args, shown):
        return EXIT_OK
    print_table([_in_table(one) for one in shown], ("id", "time", "by", "what", "files", "lines", "state"), prose="what")
    if not shown:
        note(_why_nothing(past))
    if len(rows) > len(shown):
        print(f"{len(rows) - len(shown)} older changes; --limit {len(rows)} shows all.")
    return EXIT_OK


def _in_table(one: dict[str, Any]) -> dict[str, Any]:
    first, *more = one["files"]
    state = f"undone by {one['undone_by']}" if one["undone_by"] else f"undoes {one['undoes']}" if one["undoes"] else ""
    return {
        "id": one["id"],
        "time": one["time"],
        "by": one["actor"] or "-",
        "what": one["about"] or change_texts.short_tool(one["tool"]),
        "files": f"{first} and {len(more)} more" if more else first,
        "lines": f"+{one['added']} -{one['removed']}{' …' if one['has_more'] else ''}",
        "state": state,
    }


def run_diff(args: SimpleNamespace) -> int:
    """Run `rye diff`; return its exit code."""
    with _workspace(args.project) as ws:
        rows = list(history.History(ws))
        changes = change_texts.since_looked(ws, rows) if args.new else _rows_between(rows, args.points)
        found, root = points.between(ws, rows, changes, None if args.path is None else _from_root(ws, args.path)), ws.real
    made = exports.patch(found, root)
    if args.json:
        files = [{"path": one.path, "known": one.is_known} for one in found]
        print_json({"patch": made.decode("utf-8", "backslashreplace"), "files": files})
        return EXIT_OK
    _print_patch(made)
    for one in found:
        if not one.is_known:
            note(f"{one.path}: what it held then is not stored, so its change is left out.")
        elif any(side is not None and side.kind == "other" for side in one[1:]):
            note(f"{one.path}: a pipe, socket or device has no place in a patch.")
    if not changes:
        note(_why_nothing(rows))
    return EXIT_OK


def _why_nothing(rows: Iterable[Row]) -> str:
    if next(iter(rows), None) is None:
        return "Nothing is recorded here yet: edits and commands that these tools make in this project will be."
    return "No recorded change fits. `rye log` shows all."


def _print_patch(made: bytes) -> None:
    """Print a patch: byte for byte, or for a terminal, with colours and nothing that could steer it."""
    text = made.decode("utf-8", "surrogateescape")
    if terminal.has_colour(sys.stdout):
        text = terminal.painted(harmless(text))
    elif sys.stdout.isatty():
        text = harmless(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(made)
        return
    sys.stdout.write(text)


def _rows_between(rows: list[Row], points: str) -> list[Row]:
    """Return the changes between two points, newest first."""
    if not points:
        return rows[:1]
    first, dots, last = points.partition("..")
    if not dots:
        at = _place(rows, first)
        return rows[at : at + 1]
    low = _place(rows, first) if first else len(rows)
    return rows[_place(rows, last) if last else 0 : low]


def _place(rows: list[Row], entry_id: str) -> int:
    """Return the position of a change, given by its ID or its batch's."""
    for at, row in enumerate(rows):
        if entry_id in (row.id, row.batch):
            return at
    why = f"There is no change {entry_id[:80]!r} in this project's record."
    raise UsageError("unknown_entry", why, "`rye log` shows them.")


def run_blame(args: SimpleNamespace) -> int:
    """Run `rye blame`; return its exit code."""
    with _workspace(args.project) as ws:
        paths = [_from_root(ws, path) for path in args.path]
        files = [(path, blame.of_file(ws, path)) for path in paths]
        revision = _revision(ws)
    if args.agent_trace:
        from rye._version import __version__

        print_json(exports.agent_trace(files, revision, __version__))
        return EXIT_OK
    if len(files) > 1:
        raise UsageError("bad_call", "Several files are given.", "Give one, or --agent-trace for all in one record.")
    lines = [_blamed(number, one) for number, one in enumerate(files[0][1], 1)]
    who = max((len(one["who"]) for one in lines), default=0)
    return tell(
        args,
        lines,
        (
            f"{one['change'] or '-':<15} {one['who']:<{who}} {one['time'] or '-':<20} {one['line']:>5}| {one['text']}"
            for one in lines
        ),
    )


def _blamed(number: int, line: blame.BlamedLine) -> dict[str, Any]:
    entry = line.entry
    return {
        "line": number,
        "change": None if entry is None else entry.id,
        "who": "-" if line.step is None else file_history.author_in_words(entry),
        "tool": None if entry is None else entry.tool,
        "time": None if entry is None else change_texts.when(entry),
        "text": line.text.decode("utf-8", "replace"),
    }


def _revision(ws: Workspace) -> str:
    import re

    found = re.search(r" at ([0-9a-f]{40,64})", tree_changes.git_position(ws, whole=True))
    return found[1] if found else ""


def _workspace(folder: str | None) -> Workspace:
    ws = Workspace(project_of(folder))
    if command_channel.VARIABLE in os.environ and next(iter(history.History(ws)), None) is None:
        ws.close()
        # An empty list would say that nothing was changed.
        why = "The record of changes cannot be seen from inside a command or a job: the sandbox hides it."
        raise RyeError("record_hidden", why, "Run this outside of it; undo, read and the other file tools do work here.")
    tree_changes.catch_up(ws)
    return ws


def _from_root(ws: Workspace, path: str) -> str:
    """Return a typed path as the journal has it; relative ones are tried from the current folder first."""
    if not path:
        # It would be the folder itself; this refuses it.
        ws.components(path)
    absolute = os.path.join(ws.real, current_in(ws.real), path)
    if os.path.lexists(absolute):
        # The folder's links are followed, the file's own is not: the record is of names.
        folder, name = os.path.split(absolute)
        inside = os.path.join(os.path.realpath(folder), name)
        if f"{inside}/".startswith(f"{ws.real}/"):
            return names.show(os.fsencode(os.path.relpath(inside, ws.real)))
    return typed_path(os.path.normpath(path), ws.real)


def run_review(args: SimpleNamespace) -> int:
    """Run `rye review`; return its exit code."""
    # Where a program reads what is printed, it would have the address, and with it what the user may do.
    require_person("open the pages")
    require_extra("review", "starlette", "uvicorn")
    from rye.review import site

    def tell(text: str) -> None:
        for line in text.split("\n"):
            print(printable(line), file=sys.stderr, flush=True)

    try:
        site.serve(project_of(args.project), args.port, tell)
    except KeyboardInterrupt:
        print("Ended.", file=sys.stderr)
    return EXIT_OK
