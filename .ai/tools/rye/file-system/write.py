# rye:signed:2026-11-28T06:52:39Z:bc9a761bda49762e462c114e28faa190d6bd018440485ef5147646b9ca10abaf:O2rWuX2P7YNuRdQSmbYcXPXhHhBvPE4D2t-wEcPwAYmqSLiKqOoc9YyxsUFHSOGZhfZfSdjQZO7-wdUdcV6kCg==:b63173adc9f5699f
"""Create a text file, or replace the whole content of one.

Requires: file_path inside the project and content, the complete text of the file, written exactly as given (UTF-8 without
a byte order mark unless encoding says otherwise; no newline is added or translated).
Does not: append, merge, or write outside the project, through links out of it, into .git, .ai/trusted_keys, .ai/keys and
.ai/cache, or to files that other programs run or load unasked (.vscode, .mcp.json, .envrc …) unless the user allows it.
Side effects: makes missing parent directories; replaces the file atomically, keeping the mode of an existing one; lines that
stay keep their IDs, the others are new (read them before edit_lines); recorded for undo. The same content: none.
Returns: output (a creation message, or the unified diff; with line_ids="short" the addresses of the lines), file_path, bytes_written, created, unchanged, entry_id. A diff over 50 KB is
cut at a line boundary with a [tool_result: …] line. expected_sha256 refuses unless the present content has that digest.
Prefer edit_lines for changing a part of an existing file: it sends and risks only those lines.
"""

from __future__ import annotations

import re
from typing import Any

from rye.toolkit import Replaced, call_text, cut_notice, fit_lines, ok, output_budget, replace_file

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Create or overwrite a file"
__item_id__ = "rye/file-system/write"
__effects__ = {"read_only": False, "destructive": True, "idempotent": True, "open_world": False}
__agent_defaults__ = {"line_ids": "short"}
__agent_description__ = """Create a text file, or replace all of one.
Requires: content, the whole file.
Does not: append; write files that other programs run (.git, .vscode, .envrc …).
Side effects: makes missing folders; undo takes it back.
Returns: the addresses of its lines ("1-57": line 12 is 12; lines that stay keep theirs).
Prefer it for new files only."""
__agent_parameters__ = {"file_path": "", "content": "", "encoding": ""}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "content": {"type": "string", "description": "The whole content"},
        "expected_sha256": {
            "type": "string",
            "pattern": "^(sha256:)?[0-9a-fA-F]{64}$",
            "description": "Write only if the file's present content has this SHA-256",
        },
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "line_ids": {
            "type": "string",
            "enum": ["none", "short"],
            "default": "none",
            "description": "Whether the answer names the new lines by short addresses, which edit_lines then takes",
        },
        "check": {"type": "boolean", "default": False, "description": "Ask a language server what the change broke and mended"},
        "encoding": {
            "type": "string",
            "minLength": 1,
            "default": "utf-8",
            "description": "Codec name for the content; utf-8-sig puts a byte order mark before it, others write none",
        },
    },
    "required": ["file_path", "content"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "bytes_written": {"type": "integer", "description": "Size of the file now"},
        "created": {"type": "boolean", "description": "Whether the file is new"},
        "unchanged": {"type": "boolean", "description": "Whether the file held this content already: nothing was written"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "entry_id": {"type": "string", "description": "What undo takes this back by; absent where nothing was recorded"},
        "addresses": {"type": "string", "description": 'With line_ids="short": the short addresses of all lines, as a range'},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Write the file."""

    def write() -> dict[str, Any]:
        arguments = {name: params[name] for name in ("file_path", "content", "encoding", "guard")}
        more = {"expected_sha256": params.get("expected_sha256"), "addresses": params["line_ids"] == "short"}
        return _result(replace_file(project_path, **arguments, **more, tool=__item_id__))

    if not params["check"]:
        return write()
    # It loads the client of language servers, which most calls need not pay for.
    from rye.toolkit import checked

    return checked(project_path, params["file_path"], write, None, "short" if params["line_ids"] == "short" else "lid")


def _result(replaced: Replaced) -> dict[str, Any]:
    """Return what was written, as a message or as a diff."""
    size = len(replaced.data)
    described = _described(replaced, size)
    shown, cut = fit_lines(described, output_budget())
    if cut:
        call = call_text("read", file_path=replaced.path)
        shown.append(cut_notice(len(shown), len(described), "diff lines", call))
    return ok(
        "\n".join([*shown, *(f"Warning: {warning}" for warning in replaced.warnings)]),
        file_path=replaced.path,
        bytes_written=size,
        created=replaced.before is None,
        unchanged=replaced.unchanged,
        truncated=cut,
        warnings=replaced.warnings,
        **({} if replaced.entry is None else {"entry_id": replaced.entry}),
        **({"addresses": replaced.addresses} if replaced.addresses else {}),
    )


def _described(replaced: Replaced, size: int) -> list[str]:
    if replaced.addresses:
        # Who wrote the lines needs no diff to know them, but how much else was there before.
        lines = "" if replaced.before is None else "\n".join((replaced.diff() or [])[2:])
        counts = [len(re.findall(rf"^\{sign}", lines, re.MULTILINE)) for sign in "+-"]
        verb = "Created" if replaced.before is None else "Replaced"
        change = f"+{counts[0]} -{counts[1]} lines" if lines else replaced.encodings()
        many = f" ({change})" if change else ""
        return [f"{verb} {replaced.path}{many}; its lines are {replaced.addresses}"]
    if replaced.before is None:
        return [f"Created {replaced.path} ({size} bytes)"]
    if replaced.unchanged:
        return [f"{replaced.path} is unchanged: it holds this very content already ({size} bytes). Nothing was written."]
    diff = replaced.diff()
    if diff is not None:
        return diff
    change = f"{replaced.encodings()}: " if replaced.encodings() else ""
    return [f"Replaced {replaced.path} ({len(replaced.before)} -> {size} bytes; {change}no text diff between the two)"]
