"""A new tool to begin with: a whole file that passes `rye lint` and works once signed, and a test of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from rye.errors import ItemError, UsageError
from rye.items import parse, scripts, spaces
from rye.items.parse import FUNCTION_RUNTIME
from rye.journal import own_files
from rye.journal.own_files import OwnFile

_TOOL: Final = "rye/cli/new"
_TEMPLATES: Final = Path(__file__).parent / "templates"
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")


class Made(NamedTuple):
    """What was written, as paths below the project."""

    item_id: str
    tool: str
    test: str


def new_tool(item_id: str, project_path: str | Path, kind: str = "python") -> Made:
    """Write a new tool into a project's `.ai/tools`, and a test into its `tests`: both, or neither, as one recorded change.

    Args:
        item_id: category and name, such as `my/text/word_count`.
        project_path: the project root.
        kind: one of `rye.authoring.new_tool.KINDS`, or the id of a runtime: what the tool is written in.

    Raises:
        UsageError: `unknown_kind`.
        ItemError: `bad_item_id`, `reserved_id`, `item_exists`.
        WorkspaceError: what keeps the files from being written.
    """
    _check(item_id)
    chosen = KINDS.get(kind) or _kind_of(kind, project_path)
    tool = f".ai/tools/{item_id}{chosen.suffix}"
    # One folder and whole ids: pytest takes two files of one name in different folders for the same module.
    test = f"tests/test_{re.sub('[/-]', '_', item_id)}.py"
    _refuse_existing(item_id, project_path)
    root = os.path.realpath(project_path)
    paths = [os.path.join(root, one) for one in (tool, test)]
    if there := next((path for path in paths if os.path.lexists(path)), None):
        raise ItemError("item_exists", f"There is a file already: {there}.", "Choose another id, or move that file.")
    texts = [Template((_TEMPLATES / name).read_text("utf-8")) for name in (chosen.tool, chosen.test)]
    facts = {**chosen._asdict(), "item_id": item_id, "category": item_id.rpartition("/")[0]}
    files = [OwnFile(path, text.substitute(facts).encode()) for path, text in zip(paths, texts, strict=True)]
    own_files.write(files, _TOOL, [root], guarded=True, replace=False)
    return Made(item_id, tool, test)


def _kind_of(runtime: str, project_path: str | Path) -> Kind:
    """Return the kind of tool that a runtime outside of the system bundle runs."""
    found = scripts.text_of(runtime, spaces.spaces(project_path)) if "/" in runtime else None
    suffixes = found.get("suffixes") if found is not None and found.get("tool_type") == "runtime" else None
    if found is None or not suffixes or (why := parse.wrong_claim(runtime, found)):
        name = runtime.rpartition("/")[2]
        hint = f"Kinds: {', '.join(KINDS)}, or the id of a runtime that lists its suffixes. {scripts.ten_lines(f'.{name}')}"
        raise UsageError("unknown_kind", f"There is no kind of tool {runtime!r}{f': {why}' if suffixes else ''}.", hint)
    mark, first = found.get("comment", "#"), f"{found['after']}\n" if found.get("after") == "<?php" else ""
    prefix = found["config"].get("parameter_env") if isinstance(found.get("config"), dict) else None
    given = f"variables {prefix}name, and as JSON on standard input" if prefix else "JSON on standard input"
    return Kind(runtime, str(suffixes[0]), "script.tool", "script.test", "hello", first=first, mark=mark, given=given)


def _check(item_id: str) -> None:
    spaces.check_id(item_id)
    if item_id.startswith(spaces.RESERVED):
        raise ItemError("reserved_id", f"{item_id}: ids under rye/ are the system bundle's.", "Choose another first part.")
    parts = item_id.split("/")
    wrong = next((part for part in parts if not _NAME.fullmatch(part)), None)
    if wrong is not None or len(parts) < 2:
        hint = "Give category and name, each of letters and digits with single _ or - between, such as my/text/word_count."
        raise ItemError("bad_item_id", f"Not an id for a new tool: {item_id}.", hint)


def _refuse_existing(item_id: str, project_path: str | Path) -> None:
    project = spaces.spaces(project_path)[0]
    for known, path in spaces.items_in(project, "tool"):
        if known.lower() == item_id.lower():
            raise ItemError("item_exists", f"There is a tool {known} already: {path}.", "Choose another id.")


class Kind(NamedTuple):
    """One kind of tool.

    Attributes:
        runtime: what runs it.
        suffix: its file's ending.
        tool, test: the templates of what is written.
        example: the words of a first call.
        program: what the test starts.
        first, mark, given: of a script, what stands before all, what begins a comment, and how its parameters come.
    """

    runtime: str
    suffix: str
    tool: str
    test: str
    example: str = "README.md"
    program: str = ""
    first: str = ""
    mark: str = ""
    given: str = ""


KINDS: Final = {
    "python": Kind(FUNCTION_RUNTIME, ".py", "python.tool", "python.test"),
    "bash": Kind("rye/core/runtimes/bash_script_runtime", ".sh", "bash.tool", "program.test", program="bash"),
    "node": Kind("rye/core/runtimes/node_runtime", ".js", "node.tool", "program.test", program="node"),
    "http": Kind("rye/core/runtimes/http_runtime", ".yaml", "http.tool", "http.test", "requests"),
}
