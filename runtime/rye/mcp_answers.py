"""From the corridor's response to an MCP tool result whose two halves are each complete in itself, and small enough.

A client shows its model either `content` or `structuredContent`; both are held to `MOST` bytes of JSON. The tool itself is
asked for a smaller window, so that what it says of the cut is true. Nothing is cut here: a result that is too large all the
same (of a tool that heeds no window, or that must not run twice) is kept whole as a resource, and the answer says where.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rye.errors import RyeError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST: Final = 39_000
"""Bytes of JSON of each half; the rest up to 40,000 is left for what a client counts besides."""

REPEATABLE_ROOM: Final = 30_000
"""The window first asked of a tool that can be asked again (bytes of UTF-8)."""

ONLY_ROOM: Final = 16_000
"""The window of a tool that runs once: as JSON its text takes up to twice that, in rare cases more."""

LEAST_ROOM: Final = 1_000

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
    surely = isinstance(data.get("output"), str) and 2 * size + _LINK <= MOST
    return size if surely else max(size, _size(result["content"]))


def next_room(room: int, size: int) -> int | None:
    """Return the window to ask for after a result of this size; None when it fits, or no window would help."""
    if size <= MOST or room <= LEAST_ROOM:
        return None
    return max(LEAST_ROOM, min(room * MOST // size * 9 // 10, room - LEAST_ROOM // 2))


def _size(value: object) -> int:
    from pydantic_core import to_json

    # As the protocol library writes it; many times faster than the standard library.
    return len(to_json(value))


def result_of(response: dict[str, Any]) -> dict[str, Any]:
    """Return the tool result of a response of the corridor, with both halves."""
    failed = response["status"] == "error"
    data = response["data"]
    if data is None:
        told = {"error": response.get("error", ""), "code": response.get("code", "failed"), **response.get("details", {})}
        data = {"success": False, **told}
    data = _encodable(data)
    result = {
        "resultType": "complete",
        "content": _content(data, failed=failed),
        "structuredContent": data,
        "isError": failed,
    }
    meta = _meta(response)
    return {**result, "_meta": meta} if meta else result


def _content(data: dict[str, Any], *, failed: bool) -> list[dict[str, Any]]:
    """Return all that a result says: its text first, then what the text may not say, then where the rest is kept."""
    blocks = [{"type": "text", "text": _text(data, failed=failed)}]
    fields = {name: value for name, value in data.items() if name not in _SPOKEN and _size(value) <= _SMALL_FIELD}
    if fields:
        blocks.append({"type": "text", "text": _written(fields)})
    kept_as = data.get("output_id")
    return [*blocks, _link(f"rye://output/{kept_as}")] if isinstance(kept_as, str) and kept_as.isalnum() else blocks


def _text(data: dict[str, Any], *, failed: bool) -> str:
    """Return a result as a model reads it: what went wrong, what it gives, what a command said on standard error."""
    parts = [str(data.get("error") or "The tool failed without a reason.")] if failed else []
    if isinstance(data.get("output"), str):
        parts += [data["output"]] if data["output"] or not failed else []
    elif not failed:
        parts.append(_written(data))
    errors = data.get("stderr")
    if isinstance(errors, str) and errors:
        parts.append(f"[stderr]\n{errors}")
    return "\n\n".join(parts) if failed else "\n".join(parts)


def _link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": uri.rpartition("/")[2], "mimeType": "text/plain"}


def _meta(response: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the item that answered, and what its user should be told."""
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
        found: dict[str, Any] = _escaped(data)
        return found
    return data


def _escaped(value: Any) -> Any:  # noqa: ANN401 - JSON values
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_escaped(name): _escaped(one) for name, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value


def kept(result: dict[str, Any], keep: Callable[[str], str]) -> dict[str, Any]:
    """Return an answer in place of one that is too large, after the whole was kept.

    Args:
        result: the tool result.
        keep: stores a text and returns the URI by which it is read.
    """
    data, failed = result["structuredContent"], result["isError"]
    whole = json.dumps(data, ensure_ascii=False, indent=1)
    said = (
        f"The tool {'failed' if failed else 'ran'}; its result of {len(whole.encode()):,} bytes of JSON is larger than this "
        "server gives at once. "
    )
    links: list[dict[str, Any]] = []
    try:
        links.append(_link(keep(whole)))
        said += f"It is kept whole as the resource {links[0]['uri']}: read it there, or ask for less in one call."
    except RyeError as err:
        said += f"{err} Ask for less in one call."
    small = {name: value for name, value in data.items() if _size(value) <= _SMALL_FIELD}
    told: dict[str, Any] = {**dict(list(small.items())[:20]), "success": not failed, "truncated": True, "output": said}
    if links:
        told["resource"] = links[0]["uri"]
    if failed:
        told["error"] = small.get("error", said)
    return {**result, "content": [*_content(told, failed=failed), *links], "structuredContent": told}
