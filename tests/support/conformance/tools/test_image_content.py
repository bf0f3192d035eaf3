"""Returns a picture."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Returns a picture"

CONFIG_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return a picture of one pixel."""
    picture = {
        "type": "image",
        "mimeType": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
    }
    return {"success": True, "output": "[image/png, 1 x 1]", "media": [picture]}
