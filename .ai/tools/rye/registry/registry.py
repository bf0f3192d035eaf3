# rye:signed:2026-11-28T10:02:42Z:31e7d3dcf9d6e799ecc3a4dbbe973aa589a5dc2ef55a7a41debb13321fb8e132:t07PhQmhSg3jXDXuKCvt-U7EV-3bmCKhPzwtMO0ncuxNdR5a5WeMyEK0-LlFsuvvcfbjEdRD56zT0wwaP-e6Cg==:b63173adc9f5699f
"""Share signed items through a registry (an OCI registry, or a directory): search, list, inspect, verify, pull, push, yank.

Requires: action; for search a query; for all but search and list a reference: namespace/category/name[:version][@sha256:…],
with item_type. Without registry the user's default one is used; another must be in the user's setting registry.allowed.
Does not: install anything whose signature, id, version and key the user's own trust does not admit; take a lower version than
was seen or locked; replace a file edited here; sign; add trust. Push and yank only if the user set registry.agents to allow.
Side effects: pull writes the item to the project's or the user's space in one step, undoable, renews its lockfile, and notes
the version; push and yank write to the registry; the rest only fill a cache.
Returns: output; search and list: results [{item_type, item_id, version, yanked, signer, description, digest}], total; pull:
item_id, version, signer, path, warnings; inspect: verdict, permissions, requires_rye, signer, installed, versions, and the diff
to what is installed, in output. Refusals have codes such as untrusted_key, downgrade, edited_locally, needs_person.
Prefer it to downloading a tool by webfetch or bash: what it installs was verified. rye_search looks in what is installed.
"""

from rye import primary_tools

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/registry"
__tool_description__ = "Search, inspect, pull and push signed items in a registry"
__item_id__ = "rye/registry/registry"
__needs__ = ["registry"]
__effects__ = {"read_only": False, "destructive": True, "idempotent": True, "open_world": True}
__timeout__ = 120

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "action": {
            "type": "string",
            "enum": ["search", "list", "inspect", "verify", "pull", "push", "yank"],
            "description": "What to do",
        },
        "item_type": {
            "type": "string",
            "enum": ["tool", "knowledge", "directive", "bundle"],
            "default": "tool",
            "description": "What the reference names",
        },
        "reference": {
            "type": ["string", "null"],
            "default": None,
            "maxLength": 800,
            "description": "Such as my/text/report:1.2.0; without version the highest",
        },
        "query": {"type": ["string", "null"], "default": None, "maxLength": 500, "description": "search: words"},
        "namespace": {
            "type": ["string", "null"],
            "default": None,
            "maxLength": 255,
            "description": "search, list: where to look; else the user's configured ones",
        },
        "registry": {
            "type": ["string", "null"],
            "default": None,
            "maxLength": 500,
            "description": "oci://host[:port][/prefix] or a directory; else the user's default",
        },
        "destination": {
            "type": "string",
            "enum": ["project", "user"],
            "default": "project",
            "description": "pull, inspect: the space",
        },
        "reason": {"type": "string", "default": "", "maxLength": 500, "description": "yank: why"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 20, "description": "search, list: most rows"},
    },
    "required": ["action"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return what the registry answers, as the process that runs this tool checks it."""
    return primary_tools.registry(project_path, **params)
