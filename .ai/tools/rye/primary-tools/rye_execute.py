# rye:signed:2026-11-28T10:02:42Z:a0b5e0bb3d0f51de863a594215155e44b27ce5aa80a2804cf406dc577ce7f2ee:rn30YnPU3MX_tiWfnJ_zNU-EbmrR9itchm6w7DyVIDYI8HlXNsJReimjNqeZHlVSMZcQw3AW58o-tbIhmNRJDQ==:b63173adc9f5699f
"""Execute any item by its id: run a tool, read a knowledge entry as context, or get a directive's instructions filled in.

Requires: item_id such as "rye/file-system/read"; parameters as the item's schema says (rye_load shows it). item_type is tool
unless given. dry_run=true verifies the signature and checks the parameters without running.
Does not: run an item whose signature is not trusted (it names what is missing); change or expand parameter values; nest
deeper than four items.
Side effects: those of the item that runs.
Returns: the item's text as output; status ("success", "error", "validation_passed"), data (its other fields), chain, item
{space, version, digest, signer, owner}, metadata {duration_ms}. A failure has error and code, and says what to do next.
Prefer it to guessing a shell command when rye_search named an item; call a tool that you have directly by its own name.
"""

from rye import primary_tools

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/primary-tools"
__tool_description__ = "Execute a tool, knowledge entry or directive by its id"
__item_id__ = "rye/primary-tools/rye_execute"
__needs__ = ["execute"]
__effects__ = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
__timeout__ = 3600

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "item_id": {"type": "string", "maxLength": 255, "description": "Such as rye/file-system/read"},
        "item_type": {
            "type": "string",
            "enum": ["tool", "knowledge", "directive"],
            "default": "tool",
            "description": "What the id names",
        },
        "parameters": {
            "type": ["object", "string"],
            "default": {},
            "description": "The item's parameters or inputs: an object, or one as JSON text",
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Verify and validate only"},
    },
    "required": ["item_id"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return the item's answer."""
    return primary_tools.execute(project_path, **params)
