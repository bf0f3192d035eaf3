"""Always fails."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Always fails"

CONFIG_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return a failure."""
    return {"success": False, "code": "intended", "error": "This tool intentionally returns an error for testing"}
