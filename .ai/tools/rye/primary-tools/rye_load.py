# rye:signed:2026-11-28T10:02:42Z:c2fee42b99768d6c73dac4d1e2890f8c9c0399540f18fb75b65d6701bbcf8785:WDwr-H9zBGRbdqvlS44j8ClNUzuUY06HOlzpqpKCY9UdDnQSzDciUwghpvDzhgxFC4Y4fqg1dE5ddd3PdECeBw==:b63173adc9f5699f
"""Show an item's verified text (a tool's source and schema, a knowledge entry, a directive), or copy it to another space.

Requires: item_type and item_id. source (project, user, system) picks one space; without it the first that serves the id.
destination (project or user) copies the item there under the same id, byte for byte, so that its signature stays valid.
Does not: show an item whose signature is not trusted; replace another file unless overwrite=true, nor a higher version at
all (a person may: `rye load … --allow-downgrade`); execute anything. Ids under
rye/ are served by the system bundle: a copy of one does not take its place.
Side effects: with destination, one file is written atomically, and can be undone; else none.
Returns: output (the text, at most 50 KB; a cut ends with a [tool_result: …] line naming the call that continues), metadata
{name, extension, version, …}, path, source, item {space, version, digest, signer, owner}, warnings; with destination
copied_to, destination_path, replaced.
Prefer it to read for items: it verifies first, and finds the file by its id. To read knowledge, rye_execute does the same.
"""

from rye import primary_tools

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/primary-tools"
__tool_description__ = "Print an item's text or documentation, or copy it to the project or user space"
__item_id__ = "rye/primary-tools/rye_load"
__needs__ = ["load"]
__effects__ = {"read_only": False, "destructive": True, "idempotent": True, "open_world": False}
__timeout__ = 60

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "item_type": {"type": "string", "enum": ["tool", "knowledge", "directive"], "description": "What the id names"},
        "item_id": {"type": "string", "maxLength": 255, "description": "Such as rye/core/writing-a-tool"},
        "source": {
            "type": ["string", "null"],
            "enum": ["project", "user", "system", None],
            "default": None,
            "description": "Load from this space only",
        },
        "destination": {
            "type": ["string", "null"],
            "enum": ["project", "user", None],
            "default": None,
            "description": "Copy the item to this space",
        },
        "overwrite": {"type": "boolean", "default": False, "description": "The copy may replace another file"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 1, "description": "First line, from 1"},
        "limit": {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": 100000,
            "default": None,
            "description": "Most lines to show; as many as fit without it",
        },
    },
    "required": ["item_type", "item_id"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the item's text."""
    return primary_tools.load(project_path, **params)
