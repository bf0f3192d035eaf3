"""Turn the executor's response into an MCP tool result. Each of its two halves is complete, and small enough.

A client shows its model either `content` or `structuredContent`; both are limited to `MOST` bytes of JSON. The tool is asked
again for a smaller window, so that its own notice of the cut is true. Nothing is cut here: a result that is still too large is
stored whole as a resource, and the answer says where. That happens where a tool has no window, or must not run twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from pydantic_core import to_json

from rye.agents.toolset import text_of
from rye.call.safe_text import encodable
from rye.errors import RyeError

MOST: Final = 39_000
"""Bytes of JSON of each half; the rest up to 40,000 is left for what a client counts besides."""

REPEATABLE_BUDGET: Final = 30_000
"""The window first asked of a tool that can be asked again (bytes of UTF-8)."""

SINGLE_BUDGET: Final = 16_000
"""The window of a tool that runs once: as JSON its text takes up to twice that, in rare cases more."""

LEAST_BUDGET: Final = 1_000

_LINK = 400
_SMALL_FIELD = 400
# Fields that the text gives in full. Larger ones than a small one (the lists of grep, glob, ls …) it spells out.
_SPOKEN = ("success", "output", "stderr", "error")


_written: Final = json.JSONEncoder(ensure_ascii=False).encode


def size_of(result: dict[str, Any]) -> int:
    """Return the bytes of JSON of the larger half of a tool result."""
    data = result["structuredContent"]
    size = _size(data)
    # Where a tool gives a text, the content has it too, once, and other fields as text, at most twice as long; and a link.
    # Saves the second measurement, which would encode the whole text once more.
    surely = isinstance(data.get("output"), str) and 2 * size + _LINK <= MOST
    return size if surely else max(size, _size(result["content"]))


def next_budget(budget: int, size: int) -> int | None:
    """Return the window to ask for after a result of this size; None when it fits, or no window would help."""
    # Below the least window a smaller one cannot hold one line and its notice.
    if size <= MOST or budget <= LEAST_BUDGET:
        return None
    # In proportion, less a tenth as escapes are spread unevenly; always smaller, so that the loop ends.
    return max(LEAST_BUDGET, min(budget * MOST // size * 9 // 10, budget - LEAST_BUDGET // 2))


def _size(value: object) -> int:
    # As the protocol library writes it; many times faster than the standard library.
    return len(to_json(value))


def result_of(response: dict[str, Any]) -> dict[str, Any]:
    """Return the tool result of a response of the executor, with both halves."""
    failed = response["status"] == "error"
    data = _encodable(response["data"])
    result = {"resultType": "complete", "content": _content(data, failed=failed), "structuredContent": data, "isError": failed}
    meta = _meta(response)
    return {**result, "_meta": meta} if meta else result


def _content(data: dict[str, Any], *, failed: bool) -> list[dict[str, Any]]:
    """Return all that a result says: its text first, then what the text may not say, then where the rest is stored."""
    error = str(data.get("error") or "The tool failed without a reason.") if failed else None
    blocks = [{"type": "text", "text": text_of(data, error)}]
    fields = {name: value for name, value in data.items() if name not in _SPOKEN and _size(value) <= _SMALL_FIELD}
    if fields:
        blocks.append({"type": "text", "text": _written(fields)})
    stored_as = data.get("output_id")
    return [*blocks, _link(f"rye://output/{stored_as}")] if isinstance(stored_as, str) and stored_as.isalnum() else blocks


def _link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": uri.rpartition("/")[2], "mimeType": "text/plain"}


def _meta(response: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the item that answered, and what its user should know."""
    item = response.get("item")
    meta: dict[str, Any] = {}
    if item:
        meta["rye/item"] = {"id": response["item_id"], **{name: item[name] for name in ("space", "digest", "signer")}}
    if response.get("warnings"):
        meta["rye/warnings"] = response["warnings"]
    return meta


def _encodable(data: dict[str, Any]) -> dict[str, Any]:
    """Return data that UTF-8 can carry: a lone surrogate of a foreign tool's is shown as its escape."""
    text = data.get("output")
    try:
        # The text by itself: written as JSON only to try, it would take the longest.
        if type(text) is str:
            text.encode()
            _size({name: value for name, value in data.items() if name != "output"})
        else:
            _size(data)
    except ValueError:
        found: dict[str, Any] = encodable(data)
        return found
    return data


def stored_instead(result: dict[str, Any], store: Callable[[str], str]) -> dict[str, Any]:
    """Store a result that is too large, and return a small one that names the resource.

    Args:
        result: the tool result.
        store: stores a text and returns the URI by which it is read.
    """
    data, failed = result["structuredContent"], result["isError"]
    whole = json.dumps(data, ensure_ascii=False, indent=1)
    said = (
        f"The tool {'failed' if failed else 'ran'}; its result of {len(whole.encode()):,} bytes of JSON is larger than this "
        "server gives at once. "
    )
    links: list[dict[str, Any]] = []
    try:
        # Storing may fail (a full disk); the tool has run, so the call must answer even then.
        links.append(_link(store(whole)))
        said += f"It is stored whole as the resource {links[0]['uri']}: read it there, or ask for less in one call."
    except RyeError as err:
        said += f"{err} Ask for less in one call."
    small = {name: value for name, value in data.items() if _size(value) <= _SMALL_FIELD}
    answer: dict[str, Any] = {**dict(list(small.items())[:20]), "success": not failed, "truncated": True, "output": said}
    if links:
        answer["resource"] = links[0]["uri"]
    if failed:
        answer["error"] = small.get("error", said)
    return {**result, "content": [*_content(answer, failed=failed), *links], "structuredContent": answer}
