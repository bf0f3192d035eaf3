# rye:signed:2026-11-22T06:25:05Z:2efd15d80e06e66b2224f03789577c3a5f78bd633a882fa679d5db676a6b8b44:DyeJd7Y-e6jJ_IircXZRk5G42CXa6FbfSdkqkyI3sn5ALnhhyenF3q8yyAl1yXSDejJ7dcPUh3Lx3JwrgSiXAw==:b63173adc9f5699f
"""Edit a text file by line ID: replace, delete or insert whole lines without retyping the old text.

Requires: a prior read (or grep) of the file, whose [LID:…] IDs name the lines. Each change has new_content and one of:
line_id (replace that line); start_line_id + end_line_id (replace the range, inclusive); after_line_id or before_line_id
(insert; "start" and "end" of the file allowed). new_content is lines without IDs: "" deletes, "\\n" is one empty line,
"a" and "a\\n" are one line.
Does not: match text, guess, or apply a part: all changes are checked first, then all land or none ("Nothing was written").
It refuses unknown or dead IDs (telling what became of them), overlaps, lines never shown, files changed by others since.
Side effects: rewrites the file atomically (mode, encoding, line endings, other bytes kept); recorded for undo.
Returns: output (unified diff, then the changed lines with their new IDs and two lines around, so no re-read is needed),
changes_applied, lines_changed, version, entry_id. Over 50 KB the output is cut with a [tool_result: …] line.
on_stale="rebase" applies to a file changed by others if every covered line is untouched. dry_run shows the diff only.
check=true asks a language server what the edit broke or mended.
Prefer it to write for any change of an existing file.
"""

from __future__ import annotations

from typing import Any

from rye.toolkit import Applied, Show, cut_notice, edit_lines, fit_lines, ok, output_budget

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Edit lines of a file by their persistent IDs: replace, insert, delete"
__item_id__ = "rye/file-system/edit_lines"
__requires_rye__ = ">=0.1"
__agent_defaults__ = {"line_ids": "short", "on_stale": "rebase", "diff": False}
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "changes": {
            "type": "array",
            "description": "Changes by line ID, all checked first, then applied together; [] only to set newlines",
            "items": {
                "type": "object",
                "properties": {
                    "line_id": {"type": ["string", "integer"], "minLength": 1, "description": "Replace this line"},
                    "start_line_id": {
                        "type": ["string", "integer"],
                        "minLength": 1,
                        "description": "First line of a range to replace",
                    },
                    "end_line_id": {
                        "type": ["string", "integer"],
                        "minLength": 1,
                        "description": "Last line of the range, inclusive",
                    },
                    "after_line_id": {
                        "type": ["string", "integer"],
                        "minLength": 1,
                        "description": 'Insert behind this line ("start", "end" allowed)',
                    },
                    "before_line_id": {
                        "type": ["string", "integer"],
                        "minLength": 1,
                        "description": 'Insert before this line ("start", "end" allowed)',
                    },
                    "new_content": {"type": "string", "description": 'The new lines; "" deletes'},
                    "newline": {"type": "string", "enum": ["keep", "lf", "crlf"], "description": "Terminator of these lines"},
                },
                "required": ["new_content"],
                "additionalProperties": False,
            },
        },
        "version": {
            "type": "string",
            "minLength": 1,
            "description": "Refuse unless the file is still in this version (from read)",
        },
        "on_stale": {
            "type": "string",
            "enum": ["refuse", "rebase"],
            "default": "refuse",
            "description": "What to do when another program changed the file since it was last read",
        },
        "line_ids": {
            "type": "string",
            "enum": ["lid", "short", "none", "all"],
            "default": "lid",
            "description": "How the answer names lines: [LID:a1b2c3], a short number before a tab, or not at all (all: lid)",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Return the diff, write nothing"},
        "newline": {
            "type": "string",
            "enum": ["keep", "lf", "crlf"],
            "default": "keep",
            "description": "Terminator of changed lines (keep: as their neighbours)",
        },
        "final_newline": {
            "type": "string",
            "enum": ["keep", "add", "remove"],
            "default": "keep",
            "description": "Whether the file ends in a newline",
        },
        "convert_newlines": {"type": "string", "enum": ["lf", "crlf"], "description": "Convert the whole file's terminators"},
        "bom": {
            "type": "string",
            "enum": ["keep", "add", "remove"],
            "default": "keep",
            "description": "Add or remove the byte order mark; with changes=[]",
        },
        "diff": {"type": "boolean", "default": True, "description": "Show a unified diff in the answer"},
        "check": {"type": "boolean", "default": False, "description": "Ask a language server what the change broke and mended"},
        "encoding": {"type": "string", "minLength": 1, "description": "Codec name, only where it is not recognised"},
    },
    "required": ["file_path", "changes"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "changes_applied": {"type": "integer", "description": "Changes made"},
        "lines_changed": {"type": "integer", "description": "Lines that differ now"},
        "lines": {"type": "array", "description": "The changed lines: line_num and id"},
        "version": {"type": "string", "description": "The file's version, for later calls"},
        "entry_id": {"type": "string", "description": "What undo takes this back by"},
        "file_path": {"type": "string", "description": "The file, from the project's root"},
        "dry_run": {"type": "boolean", "description": "Whether nothing was written"},
        "truncated": {"type": "boolean", "description": "Whether the output was cut"},
        "warnings": {"type": "array", "description": "What went less than well"},
    },
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Apply all changes, or none."""
    wanted = {name: value for name, value in params.items() if name not in ("check", "diff")}

    def edit() -> dict[str, Any]:
        budget = output_budget()
        # The rest is for the lines as they are now.
        diff_budget = budget * 3 // 5
        show = Show(budget - diff_budget, ids=params["line_ids"] != "none", short=params["line_ids"] == "short")
        applied = edit_lines(project_path, **wanted, tool=__item_id__, show=show)
        return _result(applied, params, diff_budget)

    if not params["check"]:
        return edit()
    # It loads the client of language servers, which most calls need not pay for.
    from rye.toolkit import checked

    return checked(project_path, params["file_path"], edit)


def _result(applied: Applied, params: dict[str, Any], diff_budget: int) -> dict[str, Any]:
    """Return the diff, then the changed lines with their IDs."""
    wanted = params["diff"] or params["dry_run"]
    diff, cut = fit_lines(applied.diff, diff_budget) if wanted else ([], False)
    cut = cut or applied.cut
    output = [*diff]
    if applied.brief:
        output += [*([""] if diff else []), *applied.brief]
    if applied.lines:
        output += ["", "Lines now:", *applied.printed()]
    for warning in applied.warnings:
        output += ["", f"Warning: {warning}"]
    if cut:
        total = len(applied.diff) + sum(stop - start for start, stop in applied.regions())
        call = f'read(file_path="{params["file_path"]}")'
        output.append(cut_notice(len(diff) + len(applied.lines), total, "lines", call))
    if params["line_ids"] == "short" and not params["dry_run"]:
        output.append(f"[version {applied.document.short_version}]")
    lines = [{"line_num": row.number, "id": row.id} for row in applied.lines]
    return ok(
        "\n".join(output),
        **({"dry_run": True} if params["dry_run"] else {"entry_id": applied.entry, "lines": lines}),
        changes_applied=0 if params["dry_run"] else len(params["changes"]),
        lines_changed=sum(max(splice.stop - splice.start, len(splice.lines)) for splice in applied.splices),
        truncated=cut,
        file_path=applied.document.path,
        version=applied.document.version,
        warnings=applied.warnings,
    )
