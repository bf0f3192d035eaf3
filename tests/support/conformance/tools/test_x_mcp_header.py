"""Has a parameter that clients repeat in a header."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Has a parameter that clients repeat in a header"

CONFIG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "description": "Any text", "x-mcp-header": "Region"}},
}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return the parameter."""
    return {"success": True, "output": params.get("region", "")}
