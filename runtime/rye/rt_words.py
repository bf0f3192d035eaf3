"""What the tools' messages say in calls, said in commands: whoever reads them at a terminal can type those.

A call of a tool that has a verb becomes `rt …`; of any other, `rye execute ID name=value …`.
"""

from __future__ import annotations

import re
import shlex

# The message's own words, and what one types here. Longer ones first: others are a part of them.
_WORDS = (
    ("insert_at with line=1 (rt insert PATH 1)", "rt insert PATH 1"), ("insert_at (rt insert)", "rt insert"),
    ("edit_range (rt edit)", "rt edit"), ("literal=true", "-F"), ("hidden=true", "--hidden"), ("no_ignore=true", "--no-ignore"),
    ("dry_run shows", "--dry-run shows"), ("list=true", "--list"), ("edit by line IDs", "edit by line number"),
    ("Use rye/bash/bash with head", "Use head"), ("project_path (or --project)", "--project"),
    ("project_path a directory", "--project a directory"), ("as ls, glob or grep show it", "as rt find or rt grep show it"),
    ("Use ls on its parent", "Use rt find"), ("Give multiline=true to match across lines.", "rt grep matches within a line."),
)  # fmt: skip
_IDS = {
    "read": "rye/file-system/read", "write": "rye/file-system/write", "edit_lines": "rye/file-system/edit_lines",
    "undo": "rye/file-system/undo", "ls": "rye/file-system/ls", "glob": "rye/file-system/glob", "grep": "rye/file-system/grep",
    "job": "rye/bash/job", "lsp": "rye/lsp/lsp", "get_patch_change": "rye/workspace/get_patch_change",
    "workspace_read_file": "rye/workspace/workspace_read_file", "open_file_chunk": "rye/swe/open_file_chunk",
    "workspace_apply_patch": "rye/workspace/workspace_apply_patch",
}  # fmt: skip
# A call, with the word that leads to it: names, and values that are texts in quotes, numbers, words, or left to be filled in.
_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[\w.…]+|\[\])'
_CALL = re.compile(rf"\b(?:(?P<lead>[Cc]all|by) )?(?P<name>{'|'.join(_IDS)})\((?P<args>\w+={_VALUE}(?:, \w+={_VALUE})*)\)")
_ARG = re.compile(rf"(\w+)=({_VALUE})")
_VERBS = {"Call": "Run ", "call": "run ", "by": "by "}


def in_words(said: str) -> str:
    """Return a tool's message with commands in place of its calls."""
    said = _CALL.sub(_command, said)
    for tool, verb in _WORDS:
        said = said.replace(tool, verb)
    return said


def _command(match: re.Match[str]) -> str:
    given = {name: _value(text) for name, text in _ARG.findall(match["args"])}
    words = _verb(match["name"], given) or ["rye", "execute", _IDS[match["name"]], *(f"{k}={v}" for k, v in given.items())]
    return f"{_VERBS.get(match['lead'], '')}`{' '.join(word if word == '…' else shlex.quote(word) for word in words)}`"


def _value(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _verb(name: str, given: dict[str, str]) -> list[str] | None:
    """Return the `rt` command for a call; None where there is none."""
    path = given.get("file_path", given.get("path", "."))
    if name in ("read", "open_file_chunk"):
        at = given.get("offset") or given.get("line") or given.get("start")
        return ["rt", "open", f"{path}:{at}" if at else path]
    if name == "ls":
        return ["rt", "find", "*", *([path] if path != "." else [])]
    if name == "undo" and "list" in given:
        return ["rt", "undo", "--list", *(["--offset", given["offset"]] if "offset" in given else [])]
    if name == "undo" and "entry_id" in given:
        return ["rt", "undo", given["entry_id"]]
    return None
