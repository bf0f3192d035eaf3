"""What is said of a tool that failed: where the traceback of a crash is kept, and which permission it seems to lack.

A traceback can hold paths and secrets, and the caller may be a model: it goes into a file of the project's state folder,
which the answer names and only the user reads. `rye execute` shows it to a person at a terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rye.call import context
from rye.config import user_dirs
from rye.fs import atomic

if TYPE_CHECKING:
    from rye.items.parse import Tool

FOLDER: Final = "crashes"
_MOST_KEPT = 50
_LONGEST = 256 * 1024

# What a tool says when a permission is missing: (permission, those that it has then, a pattern of its words).
_SIGNS: Final = (
    ("read", r"FileNotFoundError|NotADirectoryError|No such file or directory|not found: |project_not_found|ENOENT"),
    ("write", r"Read-only file system|EROFS|read-only"),
    ("network", "gaierror|Name or service not known|in name resolution|Network is unreachable|ENETUNREACH|Could not resolve"),
    ("run", r"subprocess(?s:.*)PermissionError|: Permission denied|: Operation not permitted|spawn\S* (?:EACCES|EPERM)"),
)


def crash(tool: Tool, kind: str, trace: str, log: str) -> dict[str, Any]:
    """Return the answer to a crash: `{"success", "code": "tool_crashed", "error_id", "error", "log"?}`.

    Args:
        tool: which crashed.
        kind: the name of the exception's class.
        trace: the traceback; it is kept in the file `log`, where there can be one.
        log: the name of the logger that is told as well.
    """
    import logging

    error_id = os.urandom(4).hex()
    logging.getLogger(log).error("tool_crashed", extra={"item": tool.id, "error_id": error_id, "trace": trace})
    path = _kept(tool, error_id, trace)
    where = f"Its traceback is in {path}" if path else f"The log has the details under {error_id}"
    return {
        "success": False,
        "code": "tool_crashed",
        "error_id": error_id,
        **({"log": path} if path else {}),
        "error": f"The tool {tool.id} failed unexpectedly ({kind}). {where}.",
    }


def _kept(tool: Tool, error_id: str, trace: str) -> str:
    """Write a traceback into the project's state folder; return the file, or nothing where that cannot be written."""
    workspace: Any = context.current().workspace
    if workspace is None:
        return ""
    try:
        folder = f"{user_dirs.state_dir(workspace.fd)}/{FOLDER}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = f"{folder}/{error_id}.txt"
        text = f"{tool.id} {tool.version} ({tool.verified.digest[:16]})\n\n{trace[-_LONGEST:]}"
        atomic.write(path, text.encode("utf-8", "backslashreplace"), 0o600, durably=False)
        _prune(folder)
    except OSError:
        return ""
    return path


def _prune(folder: str) -> None:
    """Keep the newest of a project's tracebacks."""
    with os.scandir(folder) as entries:
        found = sorted(((entry.stat().st_mtime, entry.path) for entry in entries), reverse=True)
    for _, path in found[_MOST_KEPT:]:
        with suppress(OSError):
            os.unlink(path)


def trace_of(data: dict[str, Any]) -> str:
    """Return the traceback that an answer names, for a person; nothing where there is none."""
    path = data.get("log")
    if data.get("code") != "tool_crashed" or not isinstance(path, str):
        return ""
    inside = path.startswith(f"{user_dirs.user_ai()}/state/") and re.search(rf"/{FOLDER}/[0-9a-f]{{8}}\.txt\Z", path)
    # What a tool answers can name any file; ours are known by their place.
    if not inside:
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def with_permission(data: dict[str, Any], tool: Tool, signed_with: Iterable[str]) -> dict[str, Any]:
    """Return a failed result of a confined tool, with a sentence on the permission that it seems to lack.

    Args:
        data: the result.
        tool: with the permissions that its chain leaves it.
        signed_with: those that it declares itself.
    """
    words = f"{data.get('error', '')} {data.get('stderr', '')} {trace_of(data)}"
    for permission, pattern in _SIGNS:
        if permission in tool.permissions or not re.search(pattern, words):
            continue
        if permission == "write" and "read" not in tool.permissions:
            continue
        advice = _advice(permission, tool, signed_with)
        # Of a command that ended, neither a terminal nor a model is shown the error: its output was, and then the hint.
        return {
            **data,
            "missing_permission": permission,
            "hint": data.get("hint") or advice,
            "error": f"{data.get('error', '')} {advice}",
        }
    return data


def _advice(permission: str, tool: Tool, signed_with: Iterable[str]) -> str:
    if permission in signed_with:
        return f"(This tool's runtime leaves it no `{permission}` permission: name another runtime, and sign it again.)"
    key = "__permissions__ = " if tool.suffix == ".py" else "permissions: "
    listed = ", ".join(f'"{one}"' for one in (*tool.permissions, permission))
    return f"(This tool has no `{permission}` permission: add {key}[{listed}] to its file, and sign it again.)"
