"""Returns a sound."""

from __future__ import annotations

from typing import Any

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "conformance"
__tool_description__ = "Returns a sound"

CONFIG_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def execute(params: dict[str, Any], project_path: str) -> dict[str, Any]:
    """Return a sound without samples."""
    sound = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="}
    return {"success": True, "output": "[audio/wav, 0 s]", "media": [sound]}
