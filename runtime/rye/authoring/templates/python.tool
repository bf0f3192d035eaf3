"""Count the lines and words of a text file: an example, to be replaced by what your tool does.

Requires: file_path, an existing file inside the project.
Does not: change the file, or tell words of one language from another's.
Side effects: none.
Returns: output (one line for the model), line_count, word_count.
Prefer it to wc in a shell when the numbers are what you want.
"""

from rye.toolkit import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "$runtime"
__category__ = "$category"
__tool_description__ = "Count the lines and words of a file"
__item_id__ = "$item_id"
__requires_rye__ = ">=0.1"
__permissions__ = ["read"]
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "line_count": {"type": "integer", "description": "Lines in the file"},
        "word_count": {"type": "integer", "description": "Words in the file"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Count; a failure is raised by the toolkit, and becomes the tool's answer."""
    with Workspace(project_path) as workspace, workspace.file(params["file_path"]) as file:
        text = file.read()
    lines, words = len(text.splitlines()), len(text.split())
    return {"success": True, "output": f"{lines} lines, {words} words", "line_count": lines, "word_count": words}
