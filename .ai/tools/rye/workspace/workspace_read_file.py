# rye:signed:2026-11-28T13:29:19Z:7e6fe73a89e7c397e361b1c2bb4954f81989ce32e79259ae4e87eb9880c219e3:8HVNN9QhVB4Y6VcGejQtJ7SOtpNg5YMrzk3XPIGjWEV66SDD9sfLuMlxDFwGwLhCfOadKirHo7hlIGprq929CQ==:b63173adc9f5699f
"""Read the authoritative text of a docPath: numbered lines, and the sha256 that a patch of it must name.

Requires: docPath, a file's project-relative path in lower case, optionally led by the project folder's name. activeFiles (the
contents that an editor holds, unsaved) win over the disk: give them here, and again with the patch.
Does not: guess: a docPath that fits two files is refused, naming both. It reads no binary file, follows no link out of the
project, and shows no line IDs (use read for those).
Side effects: none on your files; keeps line IDs in .ai/cache (or the user's state folder).
Returns: output (a line with sha256, line count and terminator, then `n: text`), and the envelope successful, result, errors,
warnings. result: path (as spelt on disk), source (active or disk), sha256 of the exact bytes (of an active file: of its text in
UTF-8), totalLines, startLine, endLine, terminator (lf, crlf, mixed, none), finalNewline, encoding. At most `limit` lines and
50 KB, cut at a line boundary; a cut ends with a [tool_result: …] line naming the call that continues. Lines over 2,000
characters are shortened visibly.
Prefer it to read when you are going to send workspace_write_patch; prefer read and edit_lines for edits of one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rye.call.context import output_budget
from rye.call.results import Page, left_out, next_call, shorten, size_of, start_index
from rye.edits.splices import line_ends
from rye.errors import RyeError, WorkspaceError
from rye.journal import recovery
from rye.line_ids import document as documents
from rye.patches.patch_batches import ActiveFiles, DocPaths
from rye.patches.patch_calls import NOTICES, succeeded
from rye.workspace import escapes
from rye.workspace.atomic_replace import digest_of
from rye.workspace.encoding import detect
from rye.workspace.text import Text, parse
from rye.workspace.workspace import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/workspace"
__tool_description__ = "Read a file by docPath, with line numbers and the SHA-256 that a patch needs"
__item_id__ = "rye/workspace/workspace_read_file"
__envelope__ = "invoke_result"
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "docPath": {
            "type": "string",
            "description": "The file: its project-relative path in lower case, optionally led by the project folder's name",
        },
        "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, from 1"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100000, "default": 2000, "description": "Most lines to return"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
        "activeFiles": {
            "type": "array",
            "maxItems": 200,
            "description": "Contents that an editor holds; they win over what is on disk",
            "items": {
                "type": "object",
                "properties": {
                    "docPath": {"type": "string", "description": "The file, as above"},
                    "content": {"type": "string", "description": "Its whole text, newlines as they are"},
                },
                "required": ["docPath", "content"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["docPath"],
    "additionalProperties": False,
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the window with the digest of the whole."""
    doc_path = params["docPath"]
    with Workspace(project_path) as ws:
        recovered = recovery.recover(ws)
        docs = DocPaths(ws)
        overlay = ActiveFiles(docs, params.get("activeFiles") or [])
        # Twice, because an editor may hold a file under the given name or under its path, and a new one has no path
        # yet.
        content = overlay.content(doc_path)
        try:
            path: str | None = docs.path_of(doc_path)
        except RyeError:
            if content is None:
                raise
            path = None
        content = overlay.content(doc_path, path) if path is not None else content
        if content is not None:
            facts = {"path": path, "source": "active", "sha256": digest_of(content)}
            return _window(doc_path, parse(content, detect(content)), facts, params, recovered)
        shown, data, text = _read_whole(ws, path or "", params.get("encoding"))
        facts = {"path": shown, "source": "disk", "sha256": digest_of(data)}
        return _window(doc_path, text, facts, params, recovered)


def _read_whole(ws: Workspace, path: str, encoding: str | None) -> tuple[str, bytes, Text]:
    """Return a file's path, bytes and text; its lines get IDs where these can be stored."""
    try:
        with documents.open_for_edit(ws, path, encoding) as document:
            return document.path, document.data or b"", document.text
    except WorkspaceError as err:
        if err.code not in documents.IDS_NOT_STORED:
            raise
    with ws.file(path) as file:
        data = file.read()
        return file.shown, data, parse(data, detect(data, encoding))


def _window(
    doc_path: str, text: Text, facts: dict[str, Any], params: dict[str, Any], warnings: Sequence[str]
) -> dict[str, Any]:
    total, offset = text.count, params["offset"]
    start_index(offset, total, "lines")
    page = Page(output_budget() - NOTICES - 2 * size_of([doc_path]))
    window = text.encoding.show_all(text.lines(offset - 1, offset - 1 + params["limit"]))
    page.fill(f"{number}: {shorten(line)}" for number, line in enumerate(window, offset))
    lines = page.lines
    stop = offset - 1 + len(lines)
    result = {
        "docPath": doc_path,
        **facts,
        "startLine": offset,
        "endLine": stop,
        "totalLines": total,
        "terminator": line_ends(text),
        "finalNewline": any(text.encoding.terminator(last) for last in text.lines(max(total - 1, 0), total)),
        "encoding": text.encoding.label,
    }
    out = [f"{doc_path} sha256={facts['sha256']} lines={total} terminator={result['terminator']} source={facts['source']}"]
    out += lines or ["[empty file]"]
    if notice := escapes.notice(text.lines(offset - 1, stop), text):
        out.append(notice)
    # The contents of editors are not repeated: the caller has them.
    given = {**params, "limit": None, **({"activeFiles": ...} if params.get("activeFiles") else {})}
    cut = left_out(out, len(lines), stop, total, "lines", next_call("workspace_read_file", given, CONFIG_SCHEMA))
    return succeeded("\n".join(out), result, warnings, **cut, total_lines=total)
