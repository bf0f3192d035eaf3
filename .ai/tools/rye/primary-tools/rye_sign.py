# rye:signed:2026-11-28T10:02:42Z:453ff37d446d3198a426df49f718e7c5f19ea8bb8d897505a75a7b96cecb4401:Mav2szQENAvG6R1WcjYecX5jIKjiTXaSJ9pK58xGGYqDIV1hGiH6_iBYy2WFSGNYip-0dwLxxH5OCUYnpJaUDg==:b63173adc9f5699f
"""Sign an item of the project or the user's space with the user's key, so that it may run; needs the user's permission.

Requires: `signing: {agents: allow}` in the user's own configuration, and a key (`rye keys generate`). item_id is an id, or a
pattern with * or ? (without a slash it looks in every category).
Does not: sign unless the user allowed agents to; sign items of the system bundle, files outside .ai, .json tools; let a
malformed or misplaced item through.
Side effects: writes the signature line into the file, atomically. A file signed as it is now is left alone.
Returns: status "signed", item_id, path, location, signature {timestamp, hash, ed25519_sig, pubkey_fp}, message; for a pattern
status "completed", signed [ids], failed [{item, error, details}], total, summary. Without permission: code needs_person.
Prefer it to nothing else: no other tool signs. Read an item before you sign it; whoever trusts the key then runs it.
"""

from rye import primary_tools

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/primary-tools"
__tool_description__ = "Sign items with the user's key, if the user allows agents to"
__item_id__ = "rye/primary-tools/rye_sign"
__needs__ = ["sign"]
__effects__ = {"read_only": False, "destructive": False, "idempotent": True, "open_world": False}
__timeout__ = 120

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "item_type": {"type": "string", "enum": ["tool", "knowledge", "directive"], "description": "What the id names"},
        "item_id": {"type": "string", "minLength": 1, "maxLength": 255, "description": "An id, or a pattern such as my/*"},
        "source": {
            "type": "string",
            "enum": ["project", "user"],
            "default": "project",
            "description": "The space that the item is in",
        },
    },
    "required": ["item_type", "item_id"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return what became of the items."""
    return primary_tools.sign(project_path, **params)
