"""What an MCP client reads rather than calls: knowledge items, and results and outputs that were too large for an answer.

URIs: `rye://knowledge/<item id>`, `rye://output/<id>`, each with `?offset=N` (in bytes) for the windows of a long text.
"""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rye import items, served, spaces, state
from rye.admission import Admission
from rye.errors import ItemError, RyeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WINDOW: Final = 256 * 1024
"""The most text that one read gives (bytes of UTF-8)."""

_KEPT_FOLDER = "results"
_MOST_KEPT = 64
_MOST_KEPT_BYTES = 64 * 1024 * 1024
_RESULT_ID = re.compile(r"r[0-9a-f]{16}")


def listed(project: str) -> list[dict[str, Any]]:
    """Return the knowledge items that verify, as the protocol lists resources."""
    among = spaces.spaces(project)
    admission = Admission(among)
    rows = (_listed_item(item_id, admission) for item_id in sorted({found[0] for found in spaces.listed("knowledge", among)}))
    return [row for row in rows if row is not None]


def _listed_item(item_id: str, admission: Admission) -> dict[str, Any] | None:
    try:
        entry = _knowledge(item_id, admission)
    except RyeError:
        # Of what does not verify nothing is shown; `rye verify` tells the user.
        return None
    title, about = (str(served.listable(entry.verified, entry.header.get(name, ""))) for name in ("title", "description"))
    return {
        "uri": f"rye://knowledge/{quote(item_id)}", "name": item_id, "mimeType": "text/markdown",
        "size": len(entry.body.encode()), **({"title": title} if title else {}), **({"description": about} if about else {}),
        "_meta": {"rye/digest": entry.verified.digest, "rye/signer": entry.verified.key.public.fingerprint},
    }  # fmt: skip


def _knowledge(item_id: str, admission: Admission) -> items.Knowledge:
    candidate = spaces.find("knowledge", item_id, admission.among)
    return items.read_knowledge(admission.verify(candidate), item_id, candidate.suffix)


TEMPLATES: Final[list[dict[str, Any]]] = [
    {
        "uriTemplate": "rye://knowledge/{+id}{?offset}", "name": "knowledge", "mimeType": "text/markdown",
        "description": "A signed knowledge item, verified when it is read.",
    },
    {
        "uriTemplate": "rye://output/{id}{?offset}", "name": "output", "mimeType": "text/plain",
        "description": "The whole of an output or result that an answer showed in part.",
    },
]  # fmt: skip
"""The URIs that can be read, as the protocol lists them."""


def read(project: str, uri: str) -> dict[str, Any]:
    """Return one window of a resource, as the protocol's contents of it.

    Raises:
        RyeError: `unknown_resource`, `bad_offset`, and what verifying the item raises.
    """
    parts = urlsplit(uri)
    sources: dict[str, tuple[Callable[[str, str], str], str]] = {
        "knowledge": (_knowledge_text, "text/markdown"), "output": (_output_text, "text/plain"),
    }  # fmt: skip
    if parts.scheme != "rye" or parts.netloc not in sources:
        raise _unknown(uri)
    source, mime = sources[parts.netloc]
    text = source(project, unquote(parts.path).strip("/"))
    return {"uri": uri, "mimeType": mime, "text": _window(text, uri.partition("?")[0], _offset(parts.query))}


def _knowledge_text(project: str, item_id: str) -> str:
    entry = _knowledge(item_id, Admission(spaces.spaces(project)))
    return served.shown(entry.verified, entry.body).lstrip("\n")


def _output_text(project: str, output_id: str) -> str:
    if not _RESULT_ID.fullmatch(output_id):
        raise _unknown(f"rye://output/{output_id}")
    try:
        return (_kept_folder(project) / output_id).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _unknown(f"rye://output/{output_id}") from None


def _offset(query: str) -> int:
    found = parse_qs(query).get("offset", ["0"])[0]
    if not (found.isascii() and found.isdigit() and len(found) < 16):
        raise UsageError(
            "bad_offset", f"offset is no number of bytes: {found!r}.", "Use the offset that the last window named."
        )
    return int(found)


def _window(text: str, uri: str, offset: int) -> str:
    """Return the part from a byte on, ended at a line's end, with the URI of the next part."""
    data = text.encode()
    if offset > len(data):
        raise UsageError("bad_offset", f"offset {offset} is past the end: there are {len(data)} bytes.", "Use a smaller one.")
    end = min(len(data), offset + WINDOW)
    if end < len(data):
        end = data.rfind(b"\n", offset, end) + 1 or end
    shown = data[offset:end].decode("utf-8", "replace")
    if end == len(data):
        return shown
    sizes = f"{end - offset} of {len(data)} bytes; {len(data) - end} more omitted"
    notice = f"[tool_result: {sizes}. Read {uri}?offset={end} to see more.]"
    return f"{shown}{notice}\n"


def _unknown(uri: str) -> ItemError:
    return ItemError("unknown_resource", f"There is no resource {uri}.", "resources/list names what can be read.")


def keep(project: str, text: str) -> str:
    """Keep a text in the user's state folder for later reads; return its URI. The oldest go when there are too many."""
    folder = _kept_folder(project)
    name = f"r{secrets.token_hex(8)}"
    fd = os.open(folder / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)
    _prune(folder)
    return f"rye://output/{name}"


def _kept_folder(project: str) -> Path:
    folder = state.state_dir(project) / _KEPT_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _prune(folder: Path) -> None:
    kept = sorted(((info.st_mtime_ns, info.st_size, path) for path in folder.iterdir() if (info := path.stat())), reverse=True)
    total = 0
    for place, (_, size, path) in enumerate(kept):
        total += size
        if place >= _MOST_KEPT or (total > _MOST_KEPT_BYTES and place):
            path.unlink(missing_ok=True)
