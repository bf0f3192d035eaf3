# rye:signed:2026-11-21T09:25:31Z:9c5a632d10d725813c28287abf56b8e545c18383c27ead9bca4310266de80600:R8VFK_bQNwLL1ki9tZzSmcoePgaSPws0svL8WoeqQ7lGy5xLKAox6so1uHd232EaOFAYFemTf7Lb82v9FMONCg==:b63173adc9f5699f
"""Ask a language server about a file: compiler errors, definitions, references, hover text, symbols; rename or format.

Requires: file_path; for definition, references, hover and rename also line_id (from read or grep) and symbol, a name in that line;
new_name for rename. A language server on this machine; a missing one is named with the command that installs it.
Does not: run the project's code or a server that the project brings, look outside the project, or rename files.
Side effects: rename and format change files, all or none, through the journal: undo(batchId=…) takes them back; dry_run=true shows
the diff only. Other actions change nothing. A server is started and stays warm in a long-lived process.
Returns: output, server, server_state, and diagnostics [{line, column, severity, message, code, line_id}], locations [{file, line,
column, line_id, text}], symbols, text, or files and batchId. Every place in the project has its line ID, ready for
edit_lines. Long lists end with a [tool_result: …] line.
action: diagnostics (default), definition, references, hover, symbols (of the file; query searches the project), rename, format.
Prefer it to grep for who uses a name, to retyping for renames; use edit_lines with check=true to test one edit.
"""

from rye.toolkit import language_actions

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/lsp"
__tool_description__ = "Compiler errors, where a function or class is defined, used or called, rename, format (LSP)"
__item_id__ = "rye/lsp/lsp"
__requires_rye__ = ">=0.1"
__timeout__ = 200
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to file"},
        "action": {
            "type": "string",
            "enum": ["diagnostics", "definition", "references", "hover", "symbols", "rename", "format"],
            "default": "diagnostics",
            "description": "What to ask or do",
        },
        "line_id": {"type": "string", "minLength": 1, "maxLength": 40, "description": "ID of the line that holds the symbol"},
        "symbol": {"type": "string", "minLength": 1, "maxLength": 500, "description": "A name as it stands in that line"},
        "occurrence": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 1,
            "description": "Which one, where the line holds the name several times",
        },
        "new_name": {"type": "string", "minLength": 1, "maxLength": 500, "description": "The new name, for rename"},
        "query": {"type": "string", "maxLength": 500, "description": "For symbols: search the whole project for this name"},
        "timeout": {
            "type": "number",
            "minimum": 1,
            "maximum": 180,
            "default": 60,
            "description": "Seconds to wait for the server",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "For rename and format: show the diff, write nothing"},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the server's answer."""
    return language_actions.lsp(project_path, **params)
