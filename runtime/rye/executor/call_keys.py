"""Calls that take effect once, however often they are made: their caller gives each a key (`CallOptions.key`).

Who retries a call cannot know whether the attempt before was cut off before or after its effect. So:

- An edit's entry in the journal holds the key. Entry and change land together, also where a crash comes between, which the
  journal's recovery settles. A later attempt finds the entry, and nothing is written again.
- A command's effect is in no journal. That it begins is noted before, its result after. A later attempt gets the result; where
  there is none, what became of the command is unknown, and it is run again only where the caller says so (`repeat`).
- What only reads, or gives the same result each time, is simply done again.

Attempts of one call wait for each other. A command's note is `<state>/calls/<digest of the key>`; it goes with the
number of the journal's entries, and with them the knowledge of the call.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from rye.call import context
from rye.call.context import CallOptions
from rye.config import user_dirs
from rye.errors import RyeError, UsageError, WorkspaceError
from rye.fs import atomic
from rye.items.parse import Tool
from rye.journal import history, recovery, tree_changes
from rye.workspace.workspace import Workspace

MAX_KEY: Final = 200
"""A longer key is refused (characters)."""

_PATIENCE: Final = 30.0
"""How long an attempt waits for another one of the same call (seconds)."""
_MOST_CALLS: Final = 10_000
_MOST_BYTES: Final = 256 * 1024 * 1024
_PRUNE_EVERY: Final = 200


def once(ws: Workspace, tool: Tool, options: CallOptions, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of a named call: that of an earlier attempt where there is one, else what `run` returns.

    Raises:
        UsageError: `bad_key`.
        WorkspaceError: `call_under_way`, another attempt did not end; `state_unwritable`. Nothing was run.
        RyeError: `outcome_unknown`, an earlier attempt of a command was cut off. Nothing was run.
    """
    if len(options.key) > MAX_KEY or not options.key.isprintable():
        raise UsageError("bad_key", "The call's key is too long or does not print.", f"Give at most {MAX_KEY} characters.")
    if _only_reads(tool):
        return run()
    with _locked(ws, sha256(options.key.encode("utf-8", "surrogateescape")).hexdigest()[:32]) as note:
        if _is_edit(tool):
            found = _applied(ws, options.key) or run()
        elif (earlier := _earlier(note, options, tool)) is not None:
            found = earlier
        else:
            _write(note, {"tool": tool.id, "began": time.time()})
            try:
                found = run()
            except RyeError:
                # Refused before it ran.
                note.unlink(missing_ok=True)
                raise
            _write(note, {"data": context.without_secrets(found)})
    with suppress(OSError):
        atomic.prune(note.parent, _MOST_CALLS, _MOST_BYTES, every=_PRUNE_EVERY)
    return found


def _unwritable(err: OSError) -> WorkspaceError:
    return WorkspaceError(
        "state_unwritable",
        f"The user's state folder cannot be written ({err.strerror}), so a named call cannot be told from its repetition. "
        "Nothing was run.",
        "Make it writable, or set USER_SPACE to a folder that is.",
    )


@contextmanager
def _locked(ws: Workspace, name: str) -> Iterator[Path]:
    """Hold the lock of a call, whose hidden file goes a day after it was last held; give the path of its note."""
    with atomic.in_order("a call's key", again=True), ExitStack() as stack:
        try:
            note = Path(user_dirs.state_dir(ws.fd), "calls", name)
            note.parent.mkdir(mode=0o700, exist_ok=True)
            lock = note.with_name(f".{name}")
            stack.enter_context(atomic.locked(lock, patience=_PATIENCE, meanwhile=context.check_deadline, strict=True))
            os.utime(lock)
        except TimeoutError:
            raise _under_way() from None
        except OSError as err:
            raise _unwritable(err) from None
        yield note


def _under_way() -> WorkspaceError:
    why = "Another attempt of this call is under way. Nothing was run."
    return WorkspaceError("call_under_way", why, "Wait for its end, then make the call again with the same key.")


def _earlier(path: Path, options: CallOptions, tool: Tool) -> dict[str, Any] | None:
    """Return the result of a command's earlier attempt; None where there was none, or it is to be repeated."""
    note = atomic.read_json(path)
    if note is None:
        return None
    if isinstance(note.get("data"), dict):
        return {**note["data"], "repeated": True}
    if options.repeat:
        return None
    raise RyeError(
        "outcome_unknown",
        f"An earlier attempt of this call of {tool.id} was cut off while it ran: what it did is unknown. It was not run again.",
        "`rye log` shows what it changed in the project. Make the call with another key, or say that it may be repeated.",
    )


def _only_reads(tool: Tool) -> bool:
    """Tell whether a call changes nothing; of another signer's tool its permissions tell, not what it claims."""
    return _declares(tool, "read_only") if tool.verified.key.role == "system" else set(tool.permissions) <= {"read"}


def _is_edit(tool: Tool) -> bool:
    """Tell whether what a call changes is in the journal under its key, or is the same each time: the system's own tools."""
    own = tool.verified.key.role == "system"
    return own and (not _declares(tool, "open_world") or _declares(tool, "idempotent"))


def _declares(tool: Tool, effect: str) -> bool:
    declared = tool.metadata.get("__effects__")
    # A tool that declares nothing reaches everything.
    return bool(declared.get(effect)) if isinstance(declared, dict) else effect == "open_world"


def _applied(ws: Workspace, key: str) -> dict[str, Any] | None:
    """Return the result of an edit that the journal holds under this key; None where it holds none."""
    recovery.recover(ws)
    tree_changes.settle_undo(ws)
    # Somebody holds the file just now, so that the change cannot be settled yet.
    if key in recovery.pending_keys(ws):
        raise _under_way()
    rows = history.History(ws).of_key(key)
    return _answer(ws, rows) if rows else None


def _answer(ws: Workspace, rows: list[history.Row]) -> dict[str, Any]:
    newest_last = rows[::-1]
    files: list[dict[str, Any]] = []
    for row in newest_last:
        entry = history.entry_of(ws, row)
        digest = None if entry is None or entry.files is not None else entry.after
        files.append({"file_path": row.path, "entry_id": row.id, "digest": digest})
    named = ", ".join(dict.fromkeys(row.path for row in newest_last))
    batch = rows[0].batch
    return {
        "success": True,
        "output": f"An earlier attempt of this call made the change of {named}. Nothing was written again.",
        "repeated": True,
        "entry_id": rows[0].id,
        **({"batchId": batch} if batch is not None else {}),
        "file_path": newest_last[0].path,
        "files": files,
    }


def _write(note: Path, told: dict[str, Any]) -> None:
    """Note of a command that it began, or its result."""
    try:
        atomic.write(note, json.dumps(told).encode("ascii"), 0o600)
    except OSError as err:
        raise _unwritable(err) from None
