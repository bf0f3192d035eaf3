"""What the patch tools share: the envelope of their results, running a batch, and what became of one.

Every result has the fields `successful`, `result`, `errors` and `warnings`: `succeeded` makes them, for a failure the executor
does (see `results.envelope`). The start, success and error of a call are events in the log.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from rye.call.context import output_budget
from rye.call.results import call_text, cut_notice, fit_lines, ok, size_of
from rye.edits import patch_store
from rye.edits.apply import apply_all
from rye.errors import EditError, RyeError
from rye.journal import recovery
from rye.journal.history import History
from rye.patches.patch_batches import Worked, described, worked
from rye.patches.patches import WORDS, Batch, Problems
from rye.workspace.workspace import Workspace

NOTICES = 600
"""Bytes of a result that are reserved for its notices."""

_PROBLEMS_SHOWN = 40
_WORD = re.compile(r"[\w.:/@+-]+")

Active = list[dict[str, str]]


def succeeded(output: str, result: dict[str, Any], warnings: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    """Return a success result with its envelope."""
    return ok(output, successful=True, result=result, errors=[], warnings=[*warnings], **fields)


def run_batch(
    ws: Workspace, batch: Batch, active: Active, problems: Problems, *, apply: bool = True, dry_run: bool = False
) -> dict[str, Any]:
    """Verify a batch against the files, then show, store or apply it."""
    with worked(ws, batch, active, problems, write=apply and not dry_run) as works:
        if problems.errors:
            raise _refusal(problems)
        if dry_run:
            return _result(batch, works, problems, "dry_run")
        record = _record(batch, works, active)
        # Stored before it is applied, so that `get_patch_change` can answer for a call that never returned.
        patch_store.keep(ws, record)
        if not apply:
            return _result(batch, works, problems, "stored")
        written = [work for work in works if work.piece is not None]
        if not written:
            patch_store.keep(ws, {**record, "status": "unchanged"})
            return _result(batch, works, problems, "unchanged")
        try:
            made, _, warnings = apply_all(ws, [work.piece for work in written if work.piece is not None], batch.id)
        except RyeError as err:
            patch_store.keep(ws, {**record, "status": "not_applied", "error": str(err)})
            raise
        problems.warnings += warnings
        entries = {work.patch.id: entry for work, entry in zip(written, made, strict=True)}
        try:
            patch_store.keep(ws, {**record, "status": "applied", "entries": made})
        except OSError as err:
            # The files are changed by now, so this must not look like a failed batch.
            problems.warnings.append(f"The batch is applied, but its record could not be brought up to date: {err.strerror}.")
        return _result(batch, works, problems, "applied", entries)


def _refusal(problems: Problems) -> EditError:
    messages = [f"{one['docPath']}: {one['message']}" if one.get("docPath") else one["message"] for one in problems.errors]
    more = f"\n- and {len(messages) - _PROBLEMS_SHOWN} more" if len(messages) > _PROBLEMS_SHOWN else ""
    listed = "\n".join(f"- {line}" for line in fit_lines(messages[:_PROBLEMS_SHOWN], output_budget() // 2)[0])
    why = f"Nothing was written. The batch has {len(messages)} problem(s):\n{listed}{more}\n"
    hint = "Correct them and send the whole batch again."
    return EditError("invalid_batch", why, hint, errors=problems.errors, warnings=problems.warnings)


def _record(batch: Batch, works: Sequence[Worked], active: Active) -> dict[str, Any]:
    return {
        "batchId": batch.id,
        "time": time.time(),
        "status": "stored",
        "ids": batch.ids,
        "request": batch.request,
        "files": [{**described(work), "diff": work.diff} for work in works],
        "active": active,
        "disk": {work.path: work.before for work in works if work.source == "active"},
    }


def _result(
    batch: Batch, works: Sequence[Worked], problems: Problems, status: str, entries: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the answer: what was done in one line, the diffs, and every ID, key and description."""
    verbs = {
        "applied": "Applied",
        "stored": "Stored, not applied:",
        "dry_run": "Dry run of",
        "unchanged": "Nothing to change by",
    }
    count = sum(len(work.patch.changes) for work in works)
    head = [f"{verbs[status]} batch {batch.id}: {len(works)} file(s), {count} change(s)."]
    if status == "stored":
        head.append(f"Call {call_text('workspace_apply_patch', batchId=batch.id)} to apply it.")
    head += [f"Warning: {warning}" for warning in problems.warnings]
    request = batch.request
    keys: dict[str, Any] = {key: request[key] for key in ("batchKey", "batchLabel") if key in request}
    head += [" ".join(_named(keys, keys))] if keys else []
    result: dict[str, Any] = {"batchId": batch.id, **keys}
    files = [described(work, (entries or {}).get(work.patch.id)) for work in works]
    budget = output_budget() - NOTICES - size_of(head)
    # IDs before the diff, with at most half of the budget: every later call needs them.
    ids, ids_cut = fit_lines(id_lines(files), budget // 2)
    head += ids
    if ids_cut:
        head.append(f"[not all IDs are listed: call {call_text('get_patch_change', id=batch.id)}, or read the result]")
    diff = [line for work in works for line in work.diff]
    shown, cut = fit_lines(diff, budget - size_of(ids))
    if cut:
        rest = "workspace_read_file of each file" if status == "dry_run" else call_text("get_patch_change", id=batch.id)
        head.append(cut_notice(len(shown), len(diff), "diff lines", rest))
    if status == "dry_run":
        files = [{**fields, "diff": "\n".join(work.diff)} for fields, work in zip(files, works, strict=True)]
    result.update(status=status, fileCount=len(works), changeCount=count, files=files)
    return succeeded("\n".join([*head, *shown]), result, problems.warnings, truncated=cut)


def id_lines(files: Sequence[dict[str, Any]]) -> list[str]:
    """Return the IDs, keys and digests of a batch's files as lines of text, for callers who get nothing else."""
    lines: list[str] = []
    for file in files:
        named = _named(file, ("filePatchId", "fileKey", "fileLabel", "newSha256", "entryId"))
        lines.append(f"{file['operation']} {file['path']}: {' '.join(named)}")
        lines += [
            f"  {change.get('operation', 'change')}: {' '.join(_named(change, ('changeId', 'changeKey', *WORDS)))}"
            for change in file.get("changes", ())
        ]
    return lines


def _named(fields: dict[str, Any], names: Iterable[str]) -> list[str]:
    """Return `name=value` of the fields that are there; what is no plain word is written as JSON."""
    given = [(name, fields[name]) for name in names if fields.get(name)]
    return [
        f"{name}={value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)}"
        for name, value in given
    ]


def outcome(ws: Workspace, record: dict[str, Any], path: str | None = None) -> dict[str, Any]:
    """Return what became of a batch, or of one of its files, as far as the journal reaches.

    Returns:
        `status`, `entries` (of this file alone, where `path` names one), `undoneBy`, `notes`.
    """
    batch_id = record["batchId"]
    history = History(ws)
    entries = [entry for entry in history.of_batch(batch_id) if path in (None, entry.path)]
    # A batch that was undone may have been applied again: the newest entry of a file counts.
    undoers = [history.undoer(entry.id) for entry in {entry.path: entry for entry in reversed(entries)}.values()]
    by = sorted({history.maker(undoer) for undoer in undoers if undoer is not None})
    status = record["status"]
    if entries:
        status = "applied" if not by else "partly_undone" if None in undoers else "undone"
    fields = {"status": status, "entries": [entry.id for entry in entries], "undoneBy": by}
    fields["notes"] = recovery.notes(ws, batch_id)
    return {**fields, "error": record["error"]} if status == "not_applied" else fields
