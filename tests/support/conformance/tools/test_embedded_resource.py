"""Returns a resource."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Returns a resource"

CONFIG_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return a resource with its text."""
    resource = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
    return {"success": True, "output": "[test://embedded-resource]", "media": [{"type": "resource", "resource": resource}]}
