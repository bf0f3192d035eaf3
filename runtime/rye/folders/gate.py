"""A hook of Claude Code that lets no skill be used that the user's policy (`skills.require`) refuses.

`rye verify --hook claude-code` reads the hook's JSON from standard input and answers in its form. Before a tool runs
(PreToolUse: Skill, and Read of a file of a skill) it denies; when a session begins it names what would be denied.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import RyeError, UsageError
from rye.folders import signing, skills
from rye.fs import atomic
from rye.trust.verify import TrustStore

MATCHER: Final = "Skill|Read"
COMMAND: Final = "verify --hook claude-code"

_MOST_TEXT: Final = 1 << 20


def answer(data: bytes, store: TrustStore) -> dict[str, Any]:
    """Return the hook's answer; {} where there is nothing to say.

    Raises:
        UsageError: `bad_hook_input`.
    """
    try:
        asked = json.loads(data)
        event, project = asked["hook_event_name"], str(asked["cwd"])
        given = asked.get("tool_input") or {}
        called = str(given.get("skill") or given.get("command") or "").strip().lstrip("/")
        file = str(given.get("file_path") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError("bad_hook_input", "This is no input of a hook.", "Let Claude Code call it.") from None
    if event == "SessionStart":
        refused = [why for text in _texts(project, below=True) if (why := _refusal(text, project, store))]
        said = f"rye refuses these skills: {' '.join(refused)}"
        more = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": said}, "systemMessage": said}
        return more if refused else {}
    if event != "PreToolUse":
        return {}
    if asked.get("tool_name") == "Skill":
        chosen = [one for one in _texts(project, below=True) if _is_called(one, called)]
    else:
        chosen = _around(os.path.join(project, file), project) if file else []
    why = next((why for text in chosen if (why := _refusal(text, project, store))), None)
    if why is None:
        return {}
    decided = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why}
    return {"hookSpecificOutput": decided}


def _settings() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"))


def _texts(project: str, *, below: bool) -> list[Path]:
    """Return what Claude Code takes for skills: each SKILL.md, and each command (`commands/*.md`), which it treats as one.

    They lie in the project, above it, in each folder of it (where `below`), in the user's settings and in plugins.
    """
    here = Path(os.path.realpath(project))
    tops = [one / ".claude" for one in (here, *here.parents)]
    for folder, names, _ in os.walk(here) if below else ():
        tops += [Path(folder, ".claude")] * (".claude" in names)
        names[:] = [one for one in names if one != ".git"]
    settings = _settings()
    # `**` goes through no links, `*` does.
    own = ("skills/*/SKILL.md", "skills/**/SKILL.md", "commands/**/*.md")
    places = [(top, pattern) for top in dict.fromkeys((*tops, settings)) for pattern in own]
    places += [(settings, pattern) for pattern in ("plugins/**/skills/*/SKILL.md", "plugins/**/commands/**/*.md")]
    return list(dict.fromkeys(one for top, pattern in places for one in sorted(top.glob(pattern))))


def _around(file: str, project: str) -> list[Path]:
    """Return the SKILL.md of each skill that a file belongs to, by its path or by where its links lead."""
    written, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))
    settings = (str(_settings()), os.path.realpath(_settings()))
    near = [
        one / "SKILL.md"
        for path in (written, real)
        for one in path.parents
        if "skills" in one.parts and (".claude" in one.parts or str(one).startswith(settings)) and (one / "SKILL.md").is_file()
    ]
    linked = [one for one in _texts(project, below=False) if Path(os.path.realpath(one.parent)) in real.parents]
    return list(dict.fromkeys((*near, *(one for one in linked if one.name == "SKILL.md"))))


def _is_called(text: Path, called: str) -> bool:
    """Tell whether a call may mean a skill: by the name of its folder or file, or by the one in its header."""
    # A plugin's name may stand before it, and arguments after it.
    forms = {one for form in (called, *called.split()[:1]) for one in (form, form.rpartition(":")[2])}
    names = [text.parent.name if text.name == "SKILL.md" else text.stem]
    head = ""
    try:
        head = atomic.read_regular(text, _MOST_TEXT)[0].decode("utf-8", "replace")
        names.append(str(skills.header_of(head).get("name", "")))
    except (OSError, ValueError):
        # Another reader may find a name here: each that it could write counts.
        head = head.split("---", 2)[1] if head.count("---") > 1 else head
        if "\\" in head or any(one.casefold() in head.casefold() for one in forms if one):
            return True
    known = {form.strip().casefold() for name in names for form in (name, name.rpartition(":")[2])}
    return any(form.casefold() in known for form in forms)


def _refusal(text: Path, project: str, store: TrustStore) -> str | None:
    """Return why the user's policy refuses a skill or command; None where it does not."""
    is_skill = text.name == "SKILL.md"
    try:
        row = skills.verify(str(text.parent), store)[0] if is_skill else {"verdict": "unsigned", "hint": _OF_COMMANDS}
        if row["verdict"] == "unsigned":
            row = _of_plugin(text, store) or row
        if skills.allowed(row, project):
            return None
        why = f"{row['verdict']}. {row['hint'] or ''}"
    except RyeError as err:
        why = str(err)
    name = f"skill {text.parent.name}" if is_skill else f"command {text.stem}"
    return f"The {plain(name, 100)} is refused by rye: {plain(why, 500)}"


def _of_plugin(text: Path, store: TrustStore) -> dict[str, Any] | None:
    """Return the row of the plugin that a text belongs to, if a signature of the whole plugin covers the text."""
    plugin = next((one for one in text.parents if (one / ".claude-plugin/plugin.json").is_file()), None)
    if plugin is None or signing.signature_of(str(plugin)) is None:
        return None
    row, files = signing.verify(str(plugin), store)
    return row if row["verdict"] != "valid" or text.relative_to(plugin).as_posix() in files else None


_OF_COMMANDS: Final = (
    "A command can be neither signed nor pinned: make a skill of it, review it, and add that with `rye skill add`."
)
