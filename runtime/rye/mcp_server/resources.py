"""What an MCP client reads rather than calls: knowledge items, and results and outputs that were too large for an answer.

URIs: `rye://knowledge/<item id>`, and `rye://output/<id>` or `rye://output/<id>/stderr` for what bash and its jobs printed, and
for results that the server stored; each with `?offset=N` (in bytes) for the windows of a long text.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from rye.errors import ItemError, RyeError, UsageError
from rye.executor import texts
from rye.executor.admission import Admission
from rye.items import parse, spaces
from rye.process import job_report, jobs, output_files

WINDOW: Final = 256 * 1024
"""The most of a knowledge item that one read gives (bytes of UTF-8); of an output it is what a tool's answer may have."""


def listed(project: str) -> list[dict[str, Any]]:
    """Return the knowledge items that verify, as the protocol lists resources."""
    among = spaces.spaces(project)
    admission = Admission(among)
    rows = []
    for item_id in sorted({found[0] for found in spaces.served_items("knowledge", among)}):
        # Of what does not verify nothing is shown; `rye verify` tells the user.
        with suppress(RyeError):
            rows.append(_row(item_id, _knowledge(item_id, admission)))
    return rows


def _row(item_id: str, entry: parse.Knowledge) -> dict[str, Any]:
    title, about = (str(texts.listable(entry.verified, entry.header.get(name, ""))) for name in ("title", "description"))
    return {
        "uri": f"rye://knowledge/{quote(item_id)}",
        "name": item_id,
        "mimeType": "text/markdown",
        "size": len(entry.body.encode()),
        **({"title": title} if title else {}),
        **({"description": about} if about else {}),
        "_meta": {"rye/digest": entry.verified.digest, "rye/signer": entry.verified.key.public.fingerprint},
    }


def _knowledge(item_id: str, admission: Admission) -> parse.Knowledge:
    candidate = spaces.find("knowledge", item_id, admission.search_path)
    return parse.read_knowledge(admission.admit(candidate), item_id, candidate.suffix)


TEMPLATES: Final[list[dict[str, Any]]] = [
    {
        "uriTemplate": "rye://knowledge/{+id}{?offset}",
        "name": "knowledge",
        "mimeType": "text/markdown",
        "description": "A signed knowledge item, verified when it is read.",
    },
    {
        "uriTemplate": "rye://output/{+id}{?offset}",
        "name": "output",
        "mimeType": "text/plain",
        "description": "The whole of an output or result that an answer showed in part.",
    },
]
"""The URIs that can be read, as the protocol lists them."""


def read(project: str, uri: str) -> dict[str, Any]:
    """Return one window of a resource, as the protocol's contents of it.

    Raises:
        RyeError: `unknown_resource`, `bad_offset`, and what verifying the item raises.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise _unknown(uri) from None
    sources: dict[str, tuple[Callable[[str, str, int], str], str]] = {
        "knowledge": (_knowledge_window, "text/markdown"),
        "output": (_output_window, "text/plain"),
    }
    if parts.scheme != "rye" or parts.netloc not in sources:
        raise _unknown(uri)
    source, mime = sources[parts.netloc]
    return {"uri": uri, "mimeType": mime, "text": source(project, unquote(parts.path).strip("/"), _offset(parts.query))}


def _knowledge_window(project: str, item_id: str, offset: int) -> str:
    entry = _knowledge(item_id, Admission.of(project))
    return _window(texts.shown(entry.verified, entry.body).lstrip("\n"), f"rye://knowledge/{quote(item_id)}", offset)


def _output_window(project: str, path: str, offset: int) -> str:
    """Return a window as `job` reads it: its last line names the call of `job` that continues."""
    output_id, _, stream = path.partition("/")
    # The id becomes a file name, so nothing but its own alphabet passes.
    if not output_files.ID.match(output_id) or stream not in ("", "stdout", "stderr"):
        raise _unknown(f"rye://output/{path}")
    with jobs.home(project, output_id) as home:
        shown = job_report.window(home, output_id, jobs.record(home), offset, stream or "stdout")
    return str(shown["output"])


def _offset(query: str) -> int:
    found = parse_qs(query).get("offset", ["0"])[0]
    # `isdigit` is true for other scripts' digits, and `int` reads numbers of any length.
    if not (found.isascii() and found.isdigit() and len(found) < 16):
        why = f"offset is no number of bytes: {found!r}."
        raise UsageError("bad_offset", why, "Use the offset that the last window named.")
    return int(found)


def _window(text: str, uri: str, offset: int) -> str:
    """Return the part from a byte on, ended at a line's end, with the URI of the next part."""
    data = text.encode()
    if offset > len(data):
        raise UsageError("bad_offset", f"offset {offset} is past the end: there are {len(data)} bytes.", "Use a smaller one.")
    end = min(len(data), offset + WINDOW)
    if end < len(data):
        # At a line's end where there is one: a cut inside a character would show as U+FFFD.
        end = data.rfind(b"\n", offset, end) + 1 or end
    shown = data[offset:end].decode("utf-8", "replace")
    if end == len(data):
        return shown
    sizes = f"{end - offset} of {len(data)} bytes; {len(data) - end} more omitted"
    notice = f"[tool_result: {sizes}. Read {uri}?offset={end} to see more.]"
    return f"{shown}{notice}\n"


def _unknown(uri: str) -> ItemError:
    return ItemError("unknown_resource", f"There is no resource {uri}.", "resources/list names what can be read.")


def store(project: str, text: str) -> str:
    """Store a text with the outputs of commands in the user's state folder, for as long as those; return its id.

    Raises:
        ItemError: `not_stored`, when the folder cannot be written.
    """
    outputs = output_files.StoredOutputs(project)
    with suppress(OSError):
        if (file := outputs.create("stdout")) is not None:
            with closing(file):
                file.write(text.encode("utf-8", "replace"))
            return str(outputs.id)
    raise ItemError("not_stored", "The user's state folder cannot be written.", "Ask your user to free space there.")
