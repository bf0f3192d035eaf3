"""Returns several kinds of parts."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Returns several kinds of parts"

CONFIG_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return a text, a picture and a resource."""
    picture = {
        "type": "image",
        "mimeType": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
    }
    resource = {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"test":"data","value":123}'}
    media = [picture, {"type": "resource", "resource": resource}]
    return {"success": True, "output": "Multiple content types test:", "media": media}
