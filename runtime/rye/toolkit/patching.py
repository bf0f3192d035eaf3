"""What the workspace tools do: the authoritative text of a docPath, patch batches, and what became of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rye.errors import EditError, RyeError, UsageError, WorkspaceError
from rye.record import Record
from rye.toolkit import commits, invocation, patch_store, patches
from rye.toolkit import document as documents
from rye.toolkit.batches import land_all
from rye.toolkit.commits import Committed
from rye.toolkit.doc_paths import DocPaths
from rye.toolkit.editing import fit
from rye.toolkit.encoding import detect
from rye.toolkit.history import History
from rye.toolkit.output import MAX_LINE_CHARS, envelope, output_room
from rye.toolkit.patched import TOOL, ActiveFiles, described, worked
from rye.toolkit.replace import digest_of
from rye.toolkit.text import Text, parse
from rye.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rye.toolkit.journal import Entry
    from rye.toolkit.patched import Worked
    from rye.toolkit.patches import Batch, Problems

_READ = "rye/workspace/workspace_read_file"
_APPLY = "rye/workspace/workspace_apply_patch"
_GET = "rye/workspace/get_patch_change"
_NOTICES = 600
_PROBLEMS_SHOWN = 40

Answer = dict[str, Any]
Active = list[dict[str, str]]


# --- workspace_read_file ---


def read_file(
    project_path: str, doc_path: str, offset: int = 1, limit: int = 2_000, active: Active | None = None
) -> Answer:  # fmt: skip
    """Return the result of `rye/workspace/workspace_read_file`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        RyeError: as `DocPaths.resolve` and `document.view`; `bad_offset` past the end. All with the envelope in their details.
    """

    def work() -> Answer:
        with Workspace(project_path) as ws:
            recovered = commits.recover(ws)
            docs = DocPaths(ws)
            overlay = ActiveFiles(docs, active or [])
            content = overlay.content(doc_path)
            try:
                path: str | None = docs.resolve(doc_path)
            except RyeError:
                if content is None:
                    raise
                path = None
            content = overlay.content(doc_path, path) if path is not None else content
            if content is not None:
                facts = {"path": path, "source": "active", "sha256": digest_of(content)}
                return _window(doc_path, parse(content, detect(content)), facts, offset, limit, recovered)
            shown, data, text = _read_whole(ws, path or "")
            facts = {"path": shown, "source": "disk", "sha256": digest_of(data)}
            return _window(doc_path, text, facts, offset, limit, recovered)

    return invocation.answered(_READ, project_path, work, docPath=doc_path)


def _read_whole(ws: Workspace, path: str) -> tuple[str, bytes, Text]:
    """Return a file's path, bytes and text; its lines keep IDs where these can be kept."""
    try:
        with documents.held_for_edit(ws, path) as document:
            return document.path, document.data or b"", document.text
    except WorkspaceError as err:
        if err.code not in documents.UNKEPT:
            raise
    with ws.file(path) as file:
        data = file.read()
        return file.shown, data, parse(data, detect(data))


def _window(doc_path: str, text: Text, facts: Answer, offset: int, limit: int, warnings: Sequence[str]) -> Answer:
    total = text.count
    if offset > max(total, 1):
        raise UsageError(
            "bad_offset", f"offset {offset} is past the end: {doc_path} has {total} line(s).",
            f"Use an offset from 1 to {max(total, 1)}.",
        )  # fmt: skip
    room = output_room() - _NOTICES - 2 * len(doc_path.encode("utf-8", "replace"))
    lines: list[str] = []
    for number, shown in enumerate(text.encoding.show_all(text.lines(offset - 1, offset - 1 + limit)), offset):
        line = shown
        if len(line) > MAX_LINE_CHARS:
            line = f"{line[:MAX_LINE_CHARS]}… [line shortened: {MAX_LINE_CHARS:,} of {len(shown):,} characters shown]"
        room -= len(line.encode("utf-8", "replace")) + len(str(number)) + 3
        if room < 0 and lines:
            break
        lines.append(f"{number}: {line}")
    stop = offset - 1 + len(lines)
    result = {
        "docPath": doc_path, **facts, "startLine": offset, "endLine": stop, "totalLines": total,
        "terminator": _terminator(text), "finalNewline": _ends(text), "encoding": text.encoding.label,
    }  # fmt: skip
    fields: Answer = {"truncated": stop < total, "total_lines": total}
    out = [f"{doc_path} sha256={facts['sha256']} lines={total} terminator={result['terminator']} source={facts['source']}"]
    out += lines or ["[empty file]"]
    if stop < total:
        fields["next_offset"] = stop + 1
        call = f'workspace_read_file(docPath="{doc_path}", offset={stop + 1})'
        out.append(envelope(len(lines), total, "lines", call, total - stop))
    return invocation.succeeded("\n".join(out), result, warnings, **fields)


def _ends(text: Text) -> bool:
    last = text.lines(text.count - 1, text.count) if text.count else []
    return bool(last) and bool(text.encoding.terminator(last[0]))


def _terminator(text: Text) -> str:
    """Return how the lines end: "lf", "crlf", "mixed", or "none" for a text without a newline."""
    code = text.encoding
    if len(code.newline) == 1:
        data = text.slice(0, text.size)
        crlf = data.count(b"\r\n")
        kinds = {"crlf": crlf, "lf": data.count(b"\n") - crlf}
    else:
        endings = [code.terminator(line) for line in text.lines()]
        kinds = {"crlf": endings.count(code.crlf), "lf": endings.count(code.newline)}
    there = [name for name, count in kinds.items() if count]
    return there[0] if len(there) == 1 else "mixed" if there else "none"


# --- workspace_write_patch, workspace_apply_patch ---


class _Order(Record):
    """How a batch is to be carried out: with which active contents, and whether it is stored and applied at all."""

    active: Active
    apply: bool = True
    dry_run: bool = False

    @property
    def write(self) -> bool:
        return self.apply and not self.dry_run


def write_patch(project_path: str, request: dict[str, Any]) -> Answer:
    """Return the result of `rye/workspace/workspace_write_patch`; see its CONFIG_SCHEMA for the request.

    Raises:
        RyeError: `invalid_batch` with every problem in `errors`; `conflict` and what else `commits.commit` raises. Nothing was
            written. All with the envelope in their details.
    """
    order = _Order(request.get("activeFiles", []), request.get("apply", True), request.get("dryRun", False))
    asked = {key: value for key, value in request.items() if key not in ("activeFiles", "apply", "dryRun")}

    def work() -> Answer:
        with Workspace(project_path) as ws:
            problems = patches.Problems(warnings=commits.recover(ws))
            batch = patches.parse(asked, patch_store.new_id, problems)
            return _carry_out(ws, batch, order, problems)

    counts = {"files": sum(len(asked.get(key, ())) for key in ("files", "createFiles", "deleteFiles"))}
    return invocation.answered(TOOL, project_path, work, **counts)


def apply_patch(project_path: str, batch_id: str, active: Active | None = None, *, dry_run: bool = False) -> Answer:
    """Return the result of `rye/workspace/workspace_apply_patch`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        RyeError: `unknown_batch`, `already_applied`; and as `write_patch`, as everything is verified again.
    """

    def work() -> Answer:
        with Workspace(project_path) as ws:
            problems = patches.Problems(warnings=commits.recover(ws))
            record = patch_store.batch(ws, batch_id)
            fate = _fate(ws, record)
            if fate["status"] in ("applied", "partly_undone"):
                raise EditError(
                    "already_applied", f"Batch {batch_id} is applied already. Nothing was written.",
                    f'Call get_patch_change(id="{batch_id}") to see it; undo(batchId="{batch_id}") takes it back.',
                )  # fmt: skip
            batch = patches.parse(record["request"], iter(record["ids"]).__next__, problems)
            return _carry_out(ws, batch, _Order(active or [], dry_run=dry_run), problems)

    return invocation.answered(_APPLY, project_path, work, batchId=batch_id)


def _carry_out(ws: Workspace, batch: Batch, order: _Order, problems: Problems) -> Answer:
    """Verify a batch against the files, then show, store or apply it."""
    with worked(ws, batch, order.active, problems, write=order.write) as works:
        if problems.errors:
            raise _refusal(problems)
        if order.dry_run:
            return _told(batch, works, problems, "dry_run")
        record = _record(batch, works)
        patch_store.keep(ws, record)
        if not order.apply:
            return _told(batch, works, problems, "stored")
        landing = [work for work in works if work.piece is not None]
        try:
            pieces = [work.piece for work in landing if work.piece is not None]
            committed = land_all(ws, pieces, TOOL, batch.id) if pieces else Committed([], [])
        except RyeError as err:
            patch_store.keep(ws, {**record, "status": "not_applied", "error": str(err)})
            raise
        problems.warnings += committed.warnings
        entries = {work.patch.id: entry for work, entry in zip(landing, committed.entries, strict=True)}
        try:
            patch_store.keep(ws, {**record, "status": "applied", "entries": committed.entries})
        except RyeError as err:
            problems.warnings.append(f"The batch is applied, but its record could not be brought up to date: {err.message}")
        return _told(batch, works, problems, "applied", entries)


def _refusal(problems: Problems) -> EditError:
    said = [f"{one['docPath']}: {one['message']}" if one.get("docPath") else one["message"] for one in problems.errors]
    more = f"\n- and {len(said) - _PROBLEMS_SHOWN} more" if len(said) > _PROBLEMS_SHOWN else ""
    listed = "\n".join(f"- {line}" for line in fit(said[:_PROBLEMS_SHOWN], output_room() // 2)[0])
    return EditError(
        "invalid_batch", f"Nothing was written. The batch has {len(said)} problem(s):\n{listed}{more}\n",
        "Correct them and send the whole batch again.", errors=problems.errors, warnings=problems.warnings,
    )  # fmt: skip


def _record(batch: Batch, works: Sequence[Worked]) -> dict[str, Any]:
    return {
        "batchId": batch.id, "time": time.time(), "status": "stored", "ids": batch.ids, "request": batch.request,
        "files": [{**described(work), "diff": work.diff} for work in works],
    }  # fmt: skip


def _told(
    batch: Batch, works: Sequence[Worked], problems: Problems, status: str, entries: dict[str, str] | None = None
) -> Answer:  # fmt: skip
    """Return the answer: what was done in one line, the diffs, and every ID, key and description."""
    verb = {"applied": "Applied", "stored": "Stored, not applied:", "dry_run": "Dry run of"}[status]
    count = sum(len(work.patch.changes) for work in works)
    head = [f"{verb} batch {batch.id}: {len(works)} file(s), {count} change(s)."]
    if status == "stored":
        head.append(f'Call workspace_apply_patch(batchId="{batch.id}") to apply it.')
    head += [f"Warning: {warning}" for warning in problems.warnings]
    diff = [line for work in works for line in work.diff]
    shown, cut = fit(diff, output_room() - _NOTICES - sum(len(line.encode("utf-8", "replace")) + 1 for line in head))
    if cut:
        rest = "workspace_read_file of each file" if status == "dry_run" else f'get_patch_change(id="{batch.id}")'
        head.append(envelope(len(shown), len(diff), "diff lines", rest))
    request = batch.request
    result: Answer = {"batchId": batch.id, **{key: request[key] for key in ("batchKey", "batchLabel") if key in request}}
    files = [described(work, (entries or {}).get(work.patch.id)) for work in works]
    if status == "dry_run":
        files = [{**told, "diff": "\n".join(work.diff)} for told, work in zip(files, works, strict=True)]
    result.update(status=status, fileCount=len(works), changeCount=count, files=files)
    return invocation.succeeded("\n".join([*head, *shown]), result, problems.warnings, truncated=cut)


# --- get_patch_change ---


def get_change(project_path: str, any_id: str, offset: int = 1) -> Answer:
    """Return the result of `rye/workspace/get_patch_change`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        RyeError: `unknown_patch_id`, `bad_offset`; with the envelope in its details.
    """

    def work() -> Answer:
        with Workspace(project_path) as ws:
            warnings = commits.recover(ws)
            record = patch_store.find(ws, any_id)
            fate = _fate(ws, record)
        head, diff, part = _part(record, any_id)
        if offset > max(len(diff), 1):
            raise UsageError(
                "bad_offset", f"offset {offset} is past the end: there are {len(diff)} diff lines.",
                f"Use an offset from 1 to {max(len(diff), 1)}.",
            )  # fmt: skip
        head.append(f"Batch {record['batchId']}: {fate['status']}." + "".join(f"\n{line}" for line in fate["notes"]))
        shown, cut = fit(diff[offset - 1 :], output_room() - _NOTICES - len("\n".join(head).encode("utf-8", "replace")))
        reached = offset - 1 + len(shown)
        out = [*head, *shown]
        fields: Answer = {"truncated": cut}
        if cut:
            fields["next_offset"] = reached + 1
            call = f'get_patch_change(id="{any_id}", offset={reached + 1})'
            out.append(envelope(len(shown), len(diff), "diff lines", call, len(diff) - reached))
        result = {"batchId": record["batchId"], **_keys(record["request"], "batch"), **part, **fate}
        return invocation.succeeded("\n".join(out), result, warnings, **fields)

    return invocation.answered(_GET, project_path, work, id=any_id)


def _keys(asked: Answer, kind: str) -> Answer:
    return {key: asked[key] for key in (f"{kind}Key", f"{kind}Label") if key in asked}


def _part(record: Answer, any_id: str) -> tuple[list[str], list[str], Answer]:
    """Return the headline, the diff and the fields of what an ID names: the batch, a file patch, or a change."""
    files = record["files"]
    if any_id == record["batchId"]:
        label = record["request"].get("batchLabel", "")
        every = [{key: value for key, value in one.items() if key != "diff"} for one in files]
        diff = [line for one in files for line in one["diff"]]
        return [f"{len(files)} file(s). {label}".rstrip()], diff, {"kind": "batch", "files": every}
    asked = {one["filePatchId"]: request for one, request in zip(files, _requests(record["request"]), strict=True)}
    for one in files:
        bare = {key: value for key, value in one.items() if key != "diff"}
        if any_id == one["filePatchId"]:
            head = f"{one['operation']} {one['path']}. {one.get('fileLabel', '')}".rstrip()
            return [head], one["diff"], {"kind": "file", "file": bare}
        for told, change in zip(one["changes"], asked[one["filePatchId"]].get("changes", ()), strict=False):
            if any_id == told["changeId"]:
                del bare["changes"]
                head = f"{told['operation']} in {one['path']}. {told.get('description', '')}".rstrip()
                return [head], _change_diff(change), {"kind": "change", "file": bare, "change": {**change, **told}}
    raise EditError("unknown_patch_id", f"The stored batch has lost {any_id}.", "Ask for the batch itself.")


def _requests(request: Answer) -> list[Answer]:
    """Return the file patches of a request in the order in which `patches.parse` gives them IDs."""
    return [*request.get("files", ()), *request.get("createFiles", ()), *request.get("deleteFiles", ())]


def _change_diff(change: Answer) -> list[str]:
    old, new = change.get("expectedOriginalLines", []), change.get("newLines", [])
    at = change.get("startLine", change.get("afterLine", 0) + 1)
    return [
        f"@@ lines {at} to {at + len(old) - 1} @@" if old else f"@@ before line {at} @@",
        *(f"-{x}" for x in old),
        *(f"+{x}" for x in new),
    ]


def _fate(ws: Workspace, record: Answer) -> Answer:
    """Return what became of a batch, from the journal as far as it reaches: `status`, `entries`, `undoneBy`, `notes`."""
    batch_id = record["batchId"]
    history = History(ws)
    entries = [entry for entry in history if entry.batch == batch_id]
    undone, known = history.undone, history.read
    # A batch that was undone may have been applied again: the newest entry of a file counts.
    newest = {entry.path: entry for entry in reversed(entries)}.values()
    by = sorted({_maker(known, undone[entry.id]) for entry in newest if entry.id in undone})
    status = record["status"]
    if entries:
        standing = any(entry.id not in undone for entry in newest)
        status = "applied" if not by else "partly_undone" if standing else "undone"
    told = {"status": status, "entries": [entry.id for entry in entries], "undoneBy": by, "notes": commits.notes(ws, batch_id)}
    return {**told, "error": record["error"]} if status == "not_applied" else told


def _maker(known: Mapping[str, Entry], entry_id: str) -> str:
    return (known[entry_id].batch or entry_id) if entry_id in known else entry_id
