# rye:signed:2026-11-28T10:02:42Z:eacd8ea6144ca25af03a503847c7af5a7ea0734208c68d05b57952456ff85c15:LSZyBDadDhCKwMtjhGSAMRUjKbFOKW-niptJv61uFbONK2i0UmCxCB2_9AWADNt2bhgkALyGJMC1bQ85sQ9CDA==:b63173adc9f5699f
"""Find tools, knowledge (the documentation) and directives by words; the best match first, each with its id and type.

Requires: query: plain words ("edit a line by id"), "a phrase", wild*, AND OR NOT in capitals, ( ); `*` lists a whole scope.
scope narrows by type and place: "tool", "knowledge.rye.core.*", "tool.rye.file-system.*".
Does not: search your project's files (use grep), nor show anything of an item whose signature is not trusted. A query that is
not well formed is an error that shows the place.
Side effects: none.
Returns: output (one item a paragraph), results [{type, id, title, description, preview, category, source, version in metadata,
score, signer}], total, truncated, next_offset, unverified (how many items were left out, by verdict). Of plain words not every
one need be found; operators are exact. A query that is an item's id, or a tool's name, answers with all of that item.
Prefer it to guessing when you do not know which item does a task, or how something here works; then rye_load shows an item,
rye_execute runs it.
"""

from rye import primary_tools

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "rye/primary-tools"
__tool_description__ = "Find tools, documentation and directives by words"
__item_id__ = "rye/primary-tools/rye_search"
__needs__ = ["search"]
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
__timeout__ = 60
__agent_description__ = """Find tools and documentation. A name or id gives the long form.
Requires: query; "a phrase", AND, OR, NOT, wild*.
Does not: search your files (grep does).
Side effects: none.
Returns: items; of tools not offered (lsp renames symbols, webfetch, patches …) the switch that offers them.
Prefer it to guessing."""
__agent_parameters__ = {"query": "", "scope": "Such as tool.rye.lsp.* or knowledge", "limit": "", "offset": ""}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "maxLength": 1000, "description": "Words, or an expression"},
        "scope": {"type": "string", "maxLength": 300, "description": "Type and place, such as tool.rye.file-system.*"},
        "space": {
            "type": "string",
            "enum": ["all", "project", "user", "system"],
            "default": "all",
            "description": "Where items come from",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "Most results"},
        "offset": {"type": "integer", "minimum": 1, "maximum": 1000000, "default": 1, "description": "First result, from 1"},
        "sort_by": {"type": "string", "enum": ["score", "name", "date"], "default": "score", "description": "Order"},
        "fields": {
            "type": "array",
            "maxItems": 6,
            "items": {"type": "string", "enum": ["title", "name", "description", "category", "tags", "body"]},
            "description": "Search only these fields",
        },
        "filters": {
            "type": "object",
            "description": 'What fields must be: {"tags": "mcp", "version": ">=1.2", "type": ["tool"], "owner": "!x"}',
        },
        "fuzzy": {
            "type": "object",
            "properties": {
                "enabled": {"type": "boolean", "default": True, "description": "Switch it on"},
                "max_distance": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1, "description": "Errors a word"},
            },
            "additionalProperties": False,
            "description": "Bare words may be misspelt",
        },
        "proximity": {
            "type": "object",
            "properties": {
                "enabled": {"type": "boolean", "default": True, "description": "Switch it on"},
                "max_distance": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5, "description": "Words between"},
            },
            "additionalProperties": False,
            "description": "Bare words must stand near to one another",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Return what fits."""
    return primary_tools.search(project_path, **params)
