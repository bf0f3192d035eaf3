"""A new tool to begin with: a whole file that passes `rye lint` and works once signed, and a test of it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from string import Template
from typing import Final, NamedTuple

from rye.authoring.new_tool_kinds import KINDS, SCRIPT, SCRIPT_TEST, Kind
from rye.errors import ItemError, UsageError
from rye.items import parse, scripts, spaces
from rye.journal import commit, journal
from rye.workspace import cache
from rye.workspace.workspace import Workspace

_TOOL: Final = "rye/cli/new"
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
        kind: one of `rye.authoring.new_tool_kinds.KINDS`, or the id of a runtime: what the tool is written in.

    Raises:
        UsageError: `unknown_kind`.
        ItemError: `bad_item_id`, `reserved_id`, `item_exists`.
        WorkspaceError: what keeps the files from being written.
    """
    _check(item_id)
    template = KINDS.get(kind) or _kind_of(kind, project_path)
    tool = f".ai/tools/{item_id}{template.suffix}"
    # One folder and whole ids: pytest takes two files of one name in different folders for the same module.
    test = f"tests/test_{re.sub('[/-]', '_', item_id)}.py"
    facts = {
        "item_id": item_id,
        "category": item_id.rpartition("/")[0],
        "runtime": template.runtime,
        "suffix": template.suffix,
        "program": template.program,
    }
    with Workspace(str(project_path)) as workspace:
        _refuse_existing(item_id, project_path)
        files = {tool: template.tool.substitute(facts).encode(), test: template.test.substitute(facts).encode()}
        with ExitStack() as stack:
            commit.recover(workspace)
            places = [stack.enter_context(journal.place_for(workspace, path)) for path in files]
            for place in places:
                if place.stat is not None:
                    message = f"There is a file already: {place.shown}."
                    raise ItemError("item_exists", message, "Choose another id, or move that file.")
            stack.enter_context(cache.locked(workspace, *(place.path for place in places)))
            changes = [commit.Change(place, None, data) for place, data in zip(places, files.values(), strict=True)]
            commit.write_own(workspace, changes, _TOOL)
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
    header, _, body = SCRIPT.template.partition("|\n")
    text = first + "".join(f"{mark} {line}\n" for line in header.splitlines()) + body
    text = text.replace("{mark}", mark).replace("{given}", given)
    return Kind(runtime, str(suffixes[0]), Template(text), SCRIPT_TEST, "hello")


def _check(item_id: str) -> None:
    spaces.check_id(item_id)
    if item_id.startswith(spaces.RESERVED):
        raise ItemError("reserved_id", f"{item_id}: ids under rye/ are the system bundle's.", "Choose another first part.")
    parts = item_id.split("/")
    wrong = next((part for part in parts if not _NAME.fullmatch(part)), None)
    if wrong is not None or len(parts) < 2:
        raise ItemError(
            "bad_item_id",
            f"Not an id for a new tool: {item_id}.",
            "Give category and name, each of letters and digits with single _ or - between, such as my/text/word_count.",
        )


def _refuse_existing(item_id: str, project_path: str | Path) -> None:
    project = spaces.spaces(project_path)[0]
    for known, path in spaces.items_in(project, "tool"):
        if known.lower() == item_id.lower():
            raise ItemError("item_exists", f"There is a tool {known} already: {path}.", "Choose another id.")
