"""Explains to a command's caller what the sandbox did: which limit the command met, what to do.

A program that meets the sandbox prints the kernel's error only, such as "Read-only file system", or that a file is not there
which an earlier command has left in its own temporary folder or home.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from rye.config import user_dirs
from rye.fs import atomic
from rye.process import job_report
from rye.process.autorun import command_check
from rye.sandbox import hidden_paths
from rye.workspace import protected_paths

# The last one where the sandbox has put an empty folder at an absent name.
_REFUSED: Final = re.compile(
    r"Device or resource busy|Read-only file system|Permission denied|Operation not permitted|Is a directory"
)
_OFFLINE: Final = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Network is unreachable|Name or service not known|getaddrinfo"
)
# What a shell, env, make or Python says of a program that is there, where its interpreter is not.
_NO_PROGRAM: Final = re.compile(
    r"([^\s:'\"\u2018]*/[^\s:'\"\u2019]+)['\u2019]?: (?:cannot execute: required file not found|No such file|not found"
    r"|[^:]*: bad interpreter)|No such file or directory: '([^']*/[^']+)'"
)
_OWN_FOLDERS: Final = (
    "[sandbox: the temporary folder and home of a command are its own, and go with it. What a later command needs belongs into "
    "the project.]"
)
_STEPS: Final = 4
_GIT: Final = re.compile(r"\.git/(?:config|hooks|modules|worktrees|commondir|info)\b[^'\"\s:]*|\.git\b")
_LINES: Final = 200


def explained(result: dict[str, Any], root: str, set_aside: list[dict[str, str]]) -> dict[str, Any]:
    """Add what the sandbox did: what it set aside, and which limit a failed command met."""
    notes = [command_check.message(set_aside)]
    if not result["success"]:
        notes += _hints(result["sandbox"], root, f"{result['stderr']}\n{result['output']}")
    if set_aside:
        result["set_aside"] = set_aside
    for line in notes:
        result["output"] = job_report.with_line(result["output"], line)
    return result


def _hints(report: dict[str, Any], root: str, text: str) -> list[str]:
    """Return one line for each limit of the sandbox that a failed command's text names.

    Args:
        report: the sandbox's report.
        root: the real path of the project.
        text: what the command printed.
    """
    if report["kind"] == "none":
        return []
    # Errors are at the end; patterns over a build log of megabytes would take longer than the command.
    lines = text.splitlines()[-_LINES:]
    refused = [line for line in lines if _REFUSED.search(line)]
    found = dict.fromkeys(hint for line in refused for hint in _of_line(report, root, line))
    if "home_hidden" in report["holds"]:
        missing = dict.fromkeys(a or b for line in lines for a, b in _NO_PROGRAM.findall(line))
        found |= dict.fromkeys(hint for name in list(missing)[:_STEPS] if (hint := _of_program(root, name)))
        own = re.compile(rf"(?<![\w.])(?:/tmp|/var/tmp|{re.escape(user_dirs.home())})/")
        if not found and any("No such file" in line and root not in line and own.search(line) for line in lines):
            found |= {_OWN_FOLDERS: None}
    if "network_off" in report["holds"] and any(_OFFLINE.search(line) for line in lines):
        found["[sandbox: the network is off for this command, by the call or by sandbox.network in the user's settings.]"] = (
            None
        )
    return list(found)


def _of_line(report: dict[str, Any], root: str, line: str) -> Iterator[str]:
    covered = "protected_names" in report["holds"]
    settings = f"{user_dirs.user_ai()}/config/rye.yaml"
    # Whole names only: `my.vscode-theme` or `x.mcp.json` in a message is no protected name.
    names = sorted((*protected_paths.NAMES, *protected_paths.WITH_HOOKS), key=len, reverse=True)
    name = next((one for one in names if re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w-])", line)), None)
    if covered and name is not None:
        yield (
            f"[sandbox: {name} is protected, since other programs run or load the file there. Tell the user what to put "
            f"there; only the user can allow it, by `protected: {{allow: [{name}]}}` in {settings}.]"
        )
    elif covered and _GIT.search(line):
        yield (
            "[sandbox: git's configuration, hooks, submodules and worktrees of the project are protected, since they name "
            "programs that git runs. Ask the user to run this git command in a terminal.]"
        )
    elif covered and re.search(r"(?<![\w.-])\.ai(?![\w-])", line):
        yield "[sandbox: .ai is protected from commands. Change items in it with write or edit_lines.]"
    elif "writes_outside" in report["holds"] and root not in line and _is_closed(line, root):
        yield "[sandbox: a command can write only in the project, and for its own time in /tmp and its home.]"


def _of_program(root: str, name: str) -> str:
    """Return the hint for a program that needs another one which the sandbox hides; empty where it needs none."""
    path = os.path.join(root, name)
    for _ in range(_STEPS):
        real = os.path.realpath(path)
        if not hidden_paths.is_below(real, root):
            if not os.access(real, os.X_OK) or not hidden_paths.is_hidden(real, root):
                return ""
            by = "" if name == real else f", which runs {name},"
            way = (
                "Work in the project, or ask the user to put there what you need."
                if os.path.isdir(real)
                else "Use an interpreter from PATH, or ask the user to put its folder on the PATH of this program."
            )
            return f"[sandbox: {real}{by} is there, but hidden from commands, as homes and other folders of users are. {way}]"
        path = _interpreter(real)
    return ""


def _interpreter(script: str) -> str:
    """Return the path behind `#!`; that of nothing where there is none."""
    with suppress(OSError):
        mark, _, rest = atomic.read_regular(script, 4096, follow=False)[0].partition(b"\n")[0].partition(b"#!")
        if not mark and rest.split():
            return os.fsdecode(rest.split()[0])
    return os.devnull


def _is_closed(line: str, root: str) -> bool:
    """Tell whether a message is of an absolute path at which the sandbox takes nothing."""
    path = re.search(r"(?:^|[^\w./-])(/[\w.-]+/[\w./-]*)", line)
    if path is None:
        return False
    return "Read-only file system" in line or ("Permission denied" in line and hidden_paths.is_hidden(path[1], root))
