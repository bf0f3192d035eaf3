"""The other files of a tool: `__files__` in its signed text names each with its SHA-256, so that its signature covers them.

A path is relative to the tool's folder, and stays below it. An author lists the paths (`__files__ = ["_lib/words.txt"]`, in
YAML and headers `files: [_lib/words.txt]`); `rye sign` writes the digests: `{path: digest}`. Names that begin with `_` are no
items of their own. Only bytes with the digest of the signed text are used; they are read once a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import ItemError, TrustError
from rye.items import signed_fields, spaces
from rye.items.parse import Tool
from rye.items.spaces import Space

KEY: Final = "__files__"
_MOST: Final = 100
MOST_BYTES: Final = 8 * 1024 * 1024
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def declared(tool: Tool) -> dict[str, str]:
    """Return the digest of each file that a tool names, by its path.

    Raises:
        ItemError: `malformed_item`; a path without a digest: the tool was not signed by `rye sign`.
    """
    found = paths(tool.id, tool.metadata.get(KEY, {}))
    for path, digest in found.items():
        if not _DIGEST.fullmatch(digest):
            raise _malformed(tool.id, f"its signed text has no digest of {plain(path)}; sign it again")
    return found


def paths(item_id: str, value: object) -> dict[str, str]:
    """Return the digests by path that a list or a mapping of files holds, "" where there is none. Errors as `declared`."""
    declared_files: dict[Any, Any] = (
        dict.fromkeys(value, "") if isinstance(value, list | tuple) else value if isinstance(value, dict) else {}
    )
    if not isinstance(value, list | tuple | dict) or len(declared_files) > _MOST:
        raise _malformed(item_id, f"{KEY} must be a list of at most {_MOST} paths")
    for path, digest in declared_files.items():
        parts = path.split("/") if isinstance(path, str) else [""]
        if not all(_PART.fullmatch(part) for part in parts) or not isinstance(digest, str):
            raise _malformed(item_id, f"{KEY}: {plain(str(path))} is no path of a file below the tool's folder")
    own = item_id.rpartition("/")[2]
    if any(path.rpartition(".")[0] == own for path in declared_files):
        raise _malformed(item_id, f"{KEY} names the tool's own file")
    return declared_files


def _malformed(item_id: str, why: str) -> ItemError:
    return ItemError("malformed_item", f"{item_id}: {why}.", "Correct it and sign it again.")


def read(tool: Tool, space: Space) -> dict[str, bytes]:
    """Return the content of every file that a tool names, by its path.

    Raises:
        TrustError: `tampered`, a file is missing or is another one. ItemError: `malformed_item`, `item_unreadable`.
    """
    return gathered(tool, lambda path: spaces.read_file(space, f"{folder_of(tool.id)}/{path}"))


def folder_of(item_id: str) -> str:
    """Return the folder of a tool below its space, to which the paths of its files are relative."""
    return "/".join(("tools", *item_id.split("/")[:-1]))


def gathered(tool: Tool, content_of: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the content of every file that a tool names, by its path, as `content_of` gives it. Errors as `read`."""
    found: dict[str, bytes] = {}
    for path, digest in declared(tool).items():
        content = content_of(path)
        actual = None if content is None else sha256(content).hexdigest()
        if content is None or actual != digest:
            why = f"{path} of {tool.id} is {'not there' if content is None else 'not the file that was signed'}."
            hint = "Restore it. Or review it, then run `rye sign` on the tool."
            raise TrustError("tampered", why, hint, expected=digest, actual=actual)
        found[path] = content
    if sum(map(len, found.values())) > MOST_BYTES:
        raise _malformed(tool.id, f"its files have more than {MOST_BYTES:,} bytes together")
    return found


def with_digests(raw: bytes, item_id: str, suffix: str, content_of: Callable[[str], bytes | None]) -> bytes:
    """Return a tool's file with the digests of the files that it names in its text; unchanged where it names none.

    Args:
        raw: the tool's file.
        item_id: its id.
        suffix: of its name.
        content_of: reads a file by its path below the tool's folder; None where there is none.

    Raises:
        ItemError: `malformed_item`; `file_not_found`.
    """
    if b"files" not in raw:
        return raw
    name = KEY if suffix == ".py" else "files"
    known = signed_fields.fields(raw, suffix)
    if name not in known:
        return raw
    found: dict[str, str] = {}
    for path in paths(item_id, known[name]):
        content = content_of(path)
        if content is None:
            raise ItemError("file_not_found", f"{item_id} names {path}, which is not there.", "Write it, or leave it out.")
        found[path] = sha256(content).hexdigest()
    return raw if known[name] == found else signed_fields.with_field(raw, suffix, name, found)


def bound(raw: bytes, item_id: str, suffix: str) -> bytes:
    """Return a tool's file with its id in the text, so that a signature binds it to its place.

    What has an id keeps it, and what cannot be read is for the caller to refuse.
    """
    name = "__item_id__" if suffix == ".py" else "item_id"
    try:
        return raw if name in signed_fields.fields(raw, suffix) else signed_fields.with_field(raw, suffix, name, item_id)
    except ItemError:
        return raw
