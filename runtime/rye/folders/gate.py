"""A hook of Claude Code that lets no skill be used that the user's policy (`skills.require`) refuses.

`rye verify --hook claude-code` reads the hook's JSON from standard input and answers in its form. Before a tool runs
(PreToolUse: Skill, and Read of a file of a skill) it denies; when a session begins it names what would be denied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import RyeError, UsageError
from rye.folders import skills
from rye.trust.verify import TrustStore

MATCHER: Final = "Skill|Read"
COMMAND: Final = "verify --hook claude-code"

_DEEPEST: Final = 5


def answer(data: bytes, store: TrustStore) -> dict[str, Any]:
    """Return the hook's answer; {} where there is nothing to say.

    Raises:
        UsageError: `bad_hook_input`.
    """
    try:
        asked = json.loads(data)
        event, project = asked["hook_event_name"], str(asked["cwd"])
        given = asked.get("tool_input") or {}
        wanted = str(given.get("skill") or given.get("command") or "").split()[:1]
        file = str(given.get("file_path") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("bad_hook_input", "This is no input of a hook.", "Let Claude Code call it.") from None
    if event == "SessionStart":
        refused = [why for folder in _all(project) if (why := _refusal(folder, project, store))]
        said = f"rye refuses these skills: {' '.join(refused)}"
        more = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": said}, "systemMessage": said}
        return more if refused else {}
    if event != "PreToolUse":
        return {}
    if asked.get("tool_name") == "Skill":
        name = wanted[0].rpartition(":")[2].lstrip("/") if wanted else ""
        chosen = [folder for folder in _all(project) if name in _names(folder)]
    else:
        real = os.path.realpath(os.path.join(project, file))
        chosen = [folder for folder in _all(project) if file and real.startswith(os.path.realpath(folder) + os.sep)]
    why = next((why for folder in chosen if (why := _refusal(folder, project, store))), None)
    if why is None:
        return {}
    decided = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why}
    return {"hookSpecificOutput": decided}


def _all(project: str) -> Iterator[str]:
    """Yield the folders of skills that Claude Code takes: of the project, above and below it, the user's, and of plugins."""
    here = Path(os.path.realpath(project))
    settings = Path(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"))
    inner = []
    for folder, names, _ in os.walk(here):
        inner += [Path(folder, ".claude")] * (".claude" in names)
        deep = os.path.relpath(folder, here).count("/") >= _DEEPEST
        names[:] = [] if deep else [one for one in names if one != "node_modules" and not one.startswith(".")]
    for top in dict.fromkeys((*(one / ".claude" for one in (here, *here.parents)), *inner, settings)):
        yield from map(str, sorted(top.glob("skills/*/")))
    yield from (str(one.parent) for one in sorted(settings.glob("plugins/**/skills/*/SKILL.md")))


def _names(folder: str) -> set[str]:
    """Return the names by which a skill may be called: its folder's, and the one in its header."""
    try:
        head = Path(folder, "SKILL.md").read_text("utf-8", "replace")[:4_096]
    except OSError:
        head = ""
    written = {line.partition(":")[2].strip().strip("\"'") for line in head.splitlines() if line.startswith("name:")}
    return {os.path.basename(folder.rstrip("/")), *written}


def _refusal(folder: str, project: str, store: TrustStore) -> str | None:
    try:
        row = skills.verify(folder, store)
        if skills.allowed(row, project):
            return None
        why = f"{row['verdict']}. {row['hint'] or ''}"
    except RyeError as err:
        why = str(err)
    return f"The skill {plain(os.path.basename(folder.rstrip('/')), 100)} is refused by rye: {plain(why, 500)}"
