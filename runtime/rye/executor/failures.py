"""What is said of a tool that failed: where the traceback of a crash is kept, and which permission it seems to lack.

A traceback can hold paths and secrets, and the caller may be a model: it goes into a file of the project's state folder,
which the answer names and only the user reads. `rye execute` shows it to a person at a terminal.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rye.call import context
from rye.call.results import call_text
from rye.config import user_dirs
from rye.fs import atomic
from rye.process import process_tree

if TYPE_CHECKING:
    from rye.items.parse import Tool

FOLDER: Final = "crashes"
_MOST_KEPT = 50
_LONGEST = 256 * 1024

# What a tool says when a permission is missing, whichever sandbox refuses; the surest signs first.
_SIGNS: Final = (
    ("run", r"subprocess\.py(?s:.*)PermissionError|spawn.* (?:EACCES|EPERM)|/s?bin/[^\s'\":]+: Permission denied"),
    ("run", r"Permission denied: '[^']*/s?bin/[^']+'"),
    ("network", "gaierror|Name or service not known|in name resolution|Network is unreachable|ENETUNREACH|EAI_AGAIN"),
    ("network", r"Could not resolve|\bsocket\b(?s:.*)(?:PermissionError|Permission denied)"),
)
# bubblewrap hides a project that may not be read, and mounts one that may not be written read-only.
_SIGNS_OF_MOUNTS: Final = (
    ("read", r"FileNotFoundError|NotADirectoryError|No such file or directory|not found: |project_not_found|ENOENT"),
    ("write", r"Read-only file system|EROFS|read-only"),
    ("run", r": Permission denied|: Operation not permitted"),
)
# Landlock refuses both in the same words.
_REFUSED: Final = re.compile(r".*(?:Permission denied|Operation not permitted|\bEACCES\b|\bEPERM\b).*")
_ABSOLUTE: Final = re.compile(r"(?<![^\s'\"=(])/[^\s'\":]+(?!: line)")

REPLACED: Final = "Files of the package rye were exchanged since this process began: start it (the server) again."


def crash(tool: Tool, kind: str, trace: str) -> dict[str, Any]:
    """Return the answer to a crash: `{"success", "code": "tool_crashed", "error_id", "error", "log"?}`.

    Args:
        tool: which crashed.
        kind: the name of the exception's class.
        trace: the traceback; it is kept in the file `log`, where there can be one.
    """
    error_id = os.urandom(4).hex()
    path = _kept(tool, error_id, trace)
    missing = re.search(r"No module named '([\w.]+)'\s*\Z", trace) if kind == "ModuleNotFoundError" else None
    what = f"{kind}: {missing[1]}" if missing else kind
    where = f"Its traceback is in {path}" if path else "Its traceback is lost: the user's state folder cannot be written"
    advice = REPLACED if is_replaced() else f"{call_text('undo', list=True)} shows what it changed before, if anything."
    return {
        "success": False,
        "code": "tool_crashed",
        "error_id": error_id,
        **({"log": path} if path else {}),
        "error": f"The tool {tool.id} failed unexpectedly ({what}). {where}. {advice}",
    }


def is_replaced() -> bool:
    """Tell whether files of this package were exchanged since this process began: what it loads later fits it no more."""
    ticks = int(process_tree.stat_fields(os.getpid())[19])
    began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    files = [one.__file__ for name, one in list(sys.modules.items()) if name.partition(".")[0] == "rye"]
    return any(not os.path.exists(one) or os.stat(one).st_ctime > began for one in files if one)


def _kept(tool: Tool, error_id: str, trace: str) -> str:
    """Write a traceback into the project's state folder; return the file, or nothing where that cannot be written."""
    workspace: Any = context.current().workspace
    try:
        folder = f"{user_dirs.state_dir(workspace.fd)}/{FOLDER}"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = f"{folder}/{error_id}.txt"
        text = f"{tool.id} {tool.version} ({tool.verified.digest[:16]})\n\n{trace[-_LONGEST:]}"
        atomic.write(path, text.encode("utf-8", "backslashreplace"), 0o600, durably=False)
        atomic.prune(folder, _MOST_KEPT, _MOST_KEPT * _LONGEST)
    except OSError:
        return ""
    return path


def trace_of(data: dict[str, Any]) -> str:
    """Return the traceback that an answer names, for a person; nothing where there is none."""
    path = data.get("log")
    if data.get("code") != "tool_crashed" or not isinstance(path, str):
        return ""
    inside = path.startswith(f"{user_dirs.user_ai()}/state/") and re.search(rf"/{FOLDER}/[0-9a-f]{{8}}\.txt\Z", path)
    # What a tool answers can name any file; ours are known by their place.
    return (atomic.read(path) or b"").decode("utf-8", "replace") if inside else ""


def with_permission(
    data: dict[str, Any], tool: Tool, signed_with: Iterable[str], isolation: Mapping[str, Any], root: str
) -> dict[str, Any]:
    """Return a failed result of a confined tool, with a sentence on the permission that it seems to lack.

    Args:
        data: the result.
        tool: with the permissions that its chain leaves it.
        signed_with: those that it declares itself.
        isolation: the sandbox's report.
        root: the project's real path.
    """
    words = f"{data.get('error', '')}\n{data.get('stderr', '')}\n{trace_of(data)}"
    permission = _lacking(words, tool.permissions, isolation["kind"], root)
    if not permission:
        return data
    advice = _advice(permission, tool, signed_with)
    # Of a command that ended, neither a terminal nor a model is shown the error: its output was, and then the hint.
    return {
        **data,
        "missing_permission": permission,
        "hint": data.get("hint") or advice,
        "error": f"{data.get('error', '')} {advice}",
    }


def _lacking(words: str, permissions: Collection[str], kind: str, root: str) -> str:
    """Return the permission that these words show to be missing, or nothing."""
    if kind == "none":
        return ""
    for permission, pattern in (*_SIGNS, *(_SIGNS_OF_MOUNTS if kind == "bubblewrap" else ())):
        if permission not in permissions and re.search(pattern, words):
            # Who may not read cannot see that it may not write.
            return "read" if permission == "write" and "read" not in permissions else permission
    if kind != "bubblewrap" and any(_names_project(line, root) for line in _REFUSED.findall(words)):
        return next((one for one in ("read", "write", "run") if one not in permissions), "")
    return ""


def _names_project(line: str, root: str) -> bool:
    """Tell whether a refusal can be about the project: it names a path below it, or no absolute path."""
    # A shell names its script first: `/tmp/…/show.sh: line 9: b.txt: Permission denied`.
    paths = _ABSOLUTE.findall(re.sub(r"^\S+: line \d+: ", "", line))
    return not paths or any(f"{path}/".startswith(f"{root}/") for path in paths)


def _advice(permission: str, tool: Tool, signed_with: Iterable[str]) -> str:
    if permission in signed_with:
        return f"(This tool's runtime leaves it no `{permission}` permission: name another runtime, and sign it again.)"
    key = "__permissions__ = " if tool.suffix == ".py" else "permissions: "
    listed = ", ".join(f'"{one}"' for one in (*tool.permissions, permission))
    return f"(This tool has no `{permission}` permission: add {key}[{listed}] to its file, and sign it again.)"
