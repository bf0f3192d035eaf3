"""A new tool to begin with: a whole file that passes `rye lint` and works once signed, and a test of it."""

from __future__ import annotations

import re
from string import Template
from typing import TYPE_CHECKING, Final, NamedTuple

from rye.errors import ItemError
from rye.items import spaces
from rye.items.parse import FUNCTION_RUNTIME
from rye.workspace.atomic_replace import digest_of, remove, replace, temporary_name
from rye.workspace.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")

_TOOL: Final = Template('''\
"""Count the lines and words of a text file: an example, to be replaced by what your tool does.

Requires: file_path, an existing file inside the project.
Does not: change the file, or tell words of one language from another's.
Side effects: none.
Returns: output (one line for the model), line_count, word_count.
Prefer it to wc in a shell when the numbers are what you want.
"""

from rye.toolkit import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "$runtime"
__category__ = "$category"
__tool_description__ = "Count the lines and words of a file"
__item_id__ = "$item_id"
__requires_rye__ = ">=0.1"
__permissions__ = ["read"]
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "format": "workspace-path", "description": "Path to the file"},
    },
    "required": ["file_path"],
    "additionalProperties": False,
}

OUTPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "line_count": {"type": "integer", "description": "Lines in the file"},
        "word_count": {"type": "integer", "description": "Words in the file"},
    },
}


def execute(params: dict, project_path: str) -> dict:
    """Count; a failure is raised by the toolkit, and becomes the tool's answer."""
    with Workspace(project_path) as workspace, workspace.file(params["file_path"]) as file:
        text = file.read()
    lines, words = len(text.splitlines()), len(text.split())
    return {"success": True, "output": f"{lines} lines, {words} words", "line_count": lines, "word_count": words}
''')

_TEST: Final = Template('''\
"""The tool $item_id, by its function; signed, it runs as `rye execute $item_id`."""

import runpy
from pathlib import Path

import pytest

from rye import RyeError
from rye.items.lint import lint

TOOL = Path(__file__).parents[1] / ".ai/tools/$item_id.py"
execute = runpy.run_path(str(TOOL))["execute"]


def test_it_counts(tmp_path):
    (tmp_path / "a.txt").write_text("one two\\nthree\\n")
    assert execute({"file_path": "a.txt"}, str(tmp_path)) == {
        "success": True,
        "output": "2 lines, 3 words",
        "line_count": 2,
        "word_count": 3,
    }


def test_it_stays_in_the_project(tmp_path):
    with pytest.raises(RyeError):
        execute({"file_path": "../a.txt"}, str(tmp_path))


def test_it_is_well_made():
    assert lint(TOOL.read_bytes(), ".py", "$item_id") == []
''')


class Made(NamedTuple):
    """What was written, as paths below the project."""

    item_id: str
    tool: str
    test: str


def new_tool(item_id: str, project_path: str | Path) -> Made:
    """Write a new tool into a project's `.ai/tools`, and a test into its `tests`: both, or neither.

    Raises:
        ItemError: `bad_item_id`, `reserved_id`, `item_exists`.
        WorkspaceError: what keeps the files from being written.
    """
    _check(item_id)
    category = item_id.rpartition("/")[0]
    tool = f".ai/tools/{item_id}.py"
    # One folder and whole ids: pytest takes two files of one name in different folders for the same module.
    test = f"tests/test_{re.sub('[/-]', '_', item_id)}.py"
    facts = {"item_id": item_id, "category": category, "runtime": FUNCTION_RUNTIME}
    with Workspace(str(project_path)) as workspace:
        _refuse_existing(item_id, project_path)
        content = _TOOL.substitute(facts).encode()
        _write(workspace, tool, content)
        try:
            _write(workspace, test, _TEST.substitute(facts).encode())
        except BaseException:
            with workspace.place(tool) as place:
                remove(place, digest_of(content), temporary_name())
            raise
    return Made(item_id, tool, test)


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


def _write(workspace: Workspace, path: str, content: bytes) -> None:
    with workspace.place(path, create_parents=True) as place:
        if place.stat is not None:
            raise ItemError("item_exists", f"There is a file already: {path}.", "Choose another id, or move that file.")
        replace(place, content, None, temporary_name())
