"""The changes of a project as a page that a client shows (MCP Apps, SEP-1865): for clients that say that they can.

The page is one file without anything from outside. It speaks with the client only, which calls this server's `undo` for it: to
list changes, and to take them back. Each other tool says that no page may call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

EXTENSION: Final = "io.modelcontextprotocol/ui"
MIME: Final = "text/html;profile=mcp-app"
URI: Final = "ui://rye/changes"
TOOL: Final = "rye/file-system/undo"
"""The tool whose results the page shows, and the only one that it calls."""

_PAGE: Final = Path(__file__).parent / "static" / "changes.html"


def shown_by(extensions: Mapping[str, Any] | None) -> bool:
    """Tell whether a client shows pages, by the extensions that it declared."""
    own = (extensions or {}).get(EXTENSION) or {}
    types = own.get("mimeTypes")
    return isinstance(types, list) and MIME in types


def with_page(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tools as such a client lists them: with the page that shows a tool's results, and who may call each."""
    return [{**tool, "_meta": {**tool["_meta"], "ui": _meta(tool["_meta"]["rye/item_id"])}} for tool in tools]


def _meta(item_id: str) -> dict[str, Any]:
    if item_id == TOOL:
        return {"resourceUri": URI, "visibility": ["model", "app"]}
    return {"visibility": ["model"]}


def wants_fields(item_id: str, arguments: dict[str, Any]) -> bool:
    """Tell whether a call is one whose fields the page reads."""
    return item_id == TOOL and arguments.get("list") is True


def page() -> dict[str, Any]:
    """Return the page, as the protocol's contents of a resource: it loads nothing, and asks for no permission."""
    meta = {"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}}
    return {"uri": URI, "mimeType": MIME, "text": _PAGE.read_text(encoding="utf-8"), "_meta": meta}
