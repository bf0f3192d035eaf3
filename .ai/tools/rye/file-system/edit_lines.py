# rye:signed:2026-11-28T14:03:56Z:7ff8effab0670309a9e0fa686c10deacc54c0452596af6850a9ce19678ae6165:Hzn-dZqcMD1SElGkaHWTUBhDISZ37Lji-qL-us0v3Ghb4yaGZAD3Udja-vKwphv87a1vRuwsdrzwocLaatyLBw==:b63173adc9f5699f
"""Edit a text file, or several, by line address: replace, insert, delete, move or copy whole lines without retyping what is there.

Requires: a prior read (or grep) that showed the lines: `12` before a tab, or [LID:a1b2c3]. A change is a string:
"12|new text", "12-15|one\\ntwo" (replace), "12+|text" (insert behind; "+12|", "end+|"), "12-15 delete", "12-15 move after 40"
(copy, before), "find|old|new" (exact text; "find 3|…" in 3 places; any sign for the bar; no read needed), "b.py:12|x" (another
file), "b.py delete file", "b.py rename to c.py"; or an object with new_content and line_id, start_line_id + end_line_id,
after_line_id or before_line_id ("" deletes; "a" and "a\\n" are one line), or with find + replace (and count).
In a notebook (.ipynb) give a cell as text; behind its last line "# %%" or "# %% [markdown]" and text make a new cell.
Does not: guess or apply a part: all is checked first, then all lands or none ("Nothing was written"). It refuses unknown or
dead addresses, overlaps, lines never shown as they are, several places for find; each refusal shows the lines as they are.
Side effects: rewrites files atomically (mode, encoding, line ends kept); one undo takes the call back.
Returns: output (a diff; new lines with their addresses; with short addresses a row for each change), version, entry_id.
New syntax errors are told (guard="refuse" refuses them). dry_run shows the diff only; check=true asks a language server.
Prefer it to write for any change of an existing file.
"""

from __future__ import annotations

from typing import Any

from rye.toolkit import Applied, Edited, Show, call_text, cut_notice, edit_files, fit_lines, ok, output_budget

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/file-system"
__tool_description__ = "Edit lines of a file by their persistent IDs: replace, insert, delete"
__item_id__ = "rye/file-system/edit_lines"
__agent_defaults__ = {"line_ids": "short", "on_stale": "rebase", "diff": False}
__agent_description__ = """Edit a text file, or several at once, by the addresses that read and grep print before lines. Each change is one string:
"12|new text" or "12-15|one\\ntwo" replaces, "12+|text" inserts behind ("+12|" before, "end+|"), "12-15 delete",
"12-15 move after 40" (or copy, before); "find|old|new" replaces exact text that stands once ("find 3|…" three times; any sign
for the bar: "find#a|b#c"). "b.py:" before any of these is another file; "b.py rename to c.py", "b.py delete file".
Requires: lines that were shown (find needs none); of a notebook the text of cells.
Does not: guess, or apply a part; a refusal shows the lines.
Side effects: writes files; one undo takes the call back.
Returns: addresses, old -> new; new syntax errors.
Prefer it to write for existing files."""
__agent_parameters__ = {"file_path": "", "changes": "", "dry_run": "Show the diff"}
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
        "changes": {
            "type": "array",
            "description": 'Changes ("12-15|new text" or objects), applied together or not at all; [] only to set newlines',
            "items": {
                "type": ["string", "object"],
                "properties": {
                    "file_path": {"type": "string", "format": "workspace-path", "description": "Another file than the call's"},
                    "line_id": {"type": ["string", "integer"], "minLength": 1, "description": "Replace this line"},
                    "start_line_id": {"type": ["string", "integer"], "minLength": 1, "description": "First line of a range"},
                    "end_line_id": {"type": ["string", "integer"], "minLength": 1, "description": "Last line, inclusive"},
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
                    "new_content": {
                        "type": ["string", "array"],
                        "items": {"type": "string"},
                        "description": 'The new lines, as text or a list; "" or [] deletes',
                    },
                    "find": {
                        "type": "string",
                        "minLength": 1,
                        "description": "Exact text to replace, in these lines or the file",
                    },
                    "replace": {"type": "string", "description": "What replaces it"},
                    "count": {"type": "integer", "minimum": 1, "description": "How many places must have it (1)"},
                    "move_after": {"type": ["string", "integer"], "minLength": 1, "description": "Move them behind this one"},
                    "move_before": {"type": ["string", "integer"], "minLength": 1, "description": "Move them before this one"},
                    "copy_after": {"type": ["string", "integer"], "minLength": 1, "description": "Copy them behind this one"},
                    "copy_before": {"type": ["string", "integer"], "minLength": 1, "description": "Copy them before this one"},
                    "to_file": {"type": "string", "format": "workspace-path", "description": "Move or copy to this file"},
                    "rename_to": {"type": "string", "format": "workspace-path", "description": "Rename the file"},
                    "delete_file": {"type": "boolean", "const": True, "description": "Delete the file"},
                    "newline": {"type": "string", "enum": ["keep", "lf", "crlf"], "description": "Terminator of these lines"},
                },
                "additionalProperties": False,
            },
        },
        "version": {"type": "string", "minLength": 1, "description": "Refuse unless the file is still in this version"},
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
        "guard": {"type": "string", "enum": ["tell", "refuse"], "default": "tell", "description": "On a new syntax error"},
        "notebook": {
            "type": "string",
            "enum": ["cells", "json"],
            "default": "cells",
            "description": "Lines of a notebook's cells (.ipynb): as their text, or as the file's JSON",
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
        "files": {"type": "array", "description": "Of several files: file_path, version, lines_changed of each"},
        "notes": {"type": "array", "description": "Files renamed or deleted"},
        "batchId": {"type": "string", "description": "Of several files: what undo takes all of them back by"},
        "entry_ids": {"type": "array", "description": "Of several files: the change of each"},
    },
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Apply all changes, or none."""
    arguments = {name: value for name, value in params.items() if name not in ("check", "diff")}

    def edit() -> dict[str, Any]:
        budget = output_budget()
        # The rest is for the lines as they are now.
        diff_budget = budget * 3 // 5
        show = Show(budget - diff_budget, ids=params["line_ids"] != "none", short=params["line_ids"] == "short")
        edited = edit_files(project_path, **arguments, tool=__item_id__, show=show)
        if len(edited.files) == 1 and not edited.notes and edited.batch is None:
            return _result(edited.files[0], params, diff_budget)
        return _results(edited, params, diff_budget)

    if not params["check"]:
        return edit()
    # It loads the client of language servers, which most calls need not pay for.
    from rye.toolkit import checked

    return checked(project_path, params["file_path"], edit, params["changes"], params["line_ids"])


def _result(applied: Applied, params: dict[str, Any], diff_budget: int) -> dict[str, Any]:
    """Return what became of one file."""
    output, shown, total = _printed(applied, params, diff_budget, applied.entry)
    output += _warnings(applied.warnings, params)
    if shown < total:
        output.append(cut_notice(shown, total, "lines", call_text("read", file_path=params["file_path"])))
    lines = [{"line_num": row.number, "id": row.id} for row in applied.lines]
    named = {} if applied.entry is None else {"entry_id": applied.entry}
    return ok(
        "\n".join(output),
        **({"dry_run": True} if params["dry_run"] else {**named, "lines": lines}),
        changes_applied=0 if params["dry_run"] else len(params["changes"]),
        lines_changed=_changed(applied),
        truncated=shown < total,
        file_path=applied.document.path,
        version=applied.document.version,
        warnings=applied.warnings,
    )


def _results(edited: Edited, params: dict[str, Any], diff_budget: int) -> dict[str, Any]:
    """Return what became of several files."""
    output, cut = list[str](), False
    for applied in edited.files:
        printed, shown, total = _printed(applied, params, diff_budget // len(edited.files))
        output += [f"{applied.document.path}:", *printed]
        cut = cut or shown < total
    named = [f"[entry_id {edited.batch[-6:]}: all of it]"] if edited.batch and params["line_ids"] == "short" else []
    output += [*edited.notes, *named, *_warnings(edited.warnings, params)]
    if cut:
        output.append(f"[some lines were left out: {call_text('read', file_path=..., changes_since=...)} shows them]")
    files = [
        {"file_path": one.document.path, "version": one.document.version, "lines_changed": _changed(one)}
        for one in edited.files
    ]
    return ok(
        "\n".join(output),
        **({"dry_run": True} if params["dry_run"] else {"batchId": edited.batch, "entry_ids": edited.entries}),
        changes_applied=0 if params["dry_run"] else len(params["changes"]),
        files=files,
        notes=edited.notes,
        truncated=cut,
        warnings=edited.warnings,
    )


def _printed(
    applied: Applied, params: dict[str, Any], diff_budget: int, entry: str | None = None
) -> tuple[list[str], int, int]:
    """Return the diff where it is wanted, and the changed lines with their addresses; how many lines, and of how many."""
    whole = applied.diff if params["diff"] or params["dry_run"] else []
    diff, _ = fit_lines(whole, diff_budget)
    output = [*diff]
    if applied.brief:
        output += [*([""] if diff else []), *applied.brief]
    if applied.lines:
        output += ["", "Lines now:", *applied.printed()]
    if params["line_ids"] == "short" and not params["dry_run"]:
        output.append(f"[version {applied.document.short_version}{f'; entry_id {entry[-6:]}' if entry else ''}]")
    now = sum(stop - start for start, stop in applied.regions()) if applied.cut else len(applied.lines)
    return output, len(diff) + len(applied.lines), len(whole) + now


def _warnings(warnings: list[str], params: dict[str, Any]) -> list[str]:
    blank = [] if params["line_ids"] == "short" else [""]
    return [line for warning in warnings for line in (*blank, f"Warning: {warning}")]


def _changed(applied: Applied) -> int:
    return sum(max(splice.stop - splice.start, len(splice.lines)) for splice in applied.splices)
