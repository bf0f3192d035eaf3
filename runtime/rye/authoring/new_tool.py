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
    _refuse_existing(item_id, project_path)
    root = os.path.realpath(project_path)
    texts = {os.path.join(root, tool): template.tool, os.path.join(root, test): template.test}
    if there := next((path for path in texts if os.path.lexists(path)), None):
        raise ItemError("item_exists", f"There is a file already: {there}.", "Choose another id, or move that file.")
    files = [OwnFile(path, text.substitute(facts).encode()) for path, text in texts.items()]
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
    template = Template(first + script_of(mark, given).template)
    return Kind(runtime, str(suffixes[0]), template, SCRIPT_TEST, "hello")


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


_PYTHON: Final = Template('''\
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

_WELL_MADE: Final = """


def test_it_is_well_made():
    assert lint(TOOL.read_bytes(), "$suffix", "$item_id") == []
"""

_PYTHON_TEST: Final = Template(
    '''\
"""The tool $item_id, by its function; signed, it runs as `rye execute $item_id`."""

import runpy
from pathlib import Path

import pytest

from rye import RyeError
from rye.authoring.lint import lint

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
        execute({"file_path": "../a.txt"}, str(tmp_path))'''
    + _WELL_MADE
)


_HEADER: Final = """\
version: "1.0.0"
tool_type: {tool_type}
executor_id: $runtime
category: $category
description: {description}
item_id: $item_id
permissions: [{permissions}]
config_schema:
  type: object
  properties:
    {parameter}
  required: [{name}]
  additionalProperties: false
"""
_COUNTS: Final = {
    "description": "Count the lines and words of a file",
    "parameter": "file_path: {type: string, format: workspace-path, description: Path to the file}",
    "name": "file_path",
}


def script(mark: str, body: str, *, effects: str = "", **texts: str) -> Template:
    """Return a script: the header, each of its lines behind the comment marker, and what stands below it."""
    lines = ["---", *_HEADER.format(**texts).splitlines(), *([f"effects: {effects}"] if effects else []), "---"]
    return Template("".join(f"{mark} {line}\n" for line in lines) + body)


_BASH: Final = script(
    "#",
    """\
# It starts in the project's root. Parameters come as variables PARAM_name, and as JSON on standard input.
set -eu
lines=$$(wc -l < "$$PARAM_file_path")
words=$$(wc -w < "$$PARAM_file_path")
# One JSON object is the result; other text would be its output.
printf '{"output": "%d lines, %d words", "line_count": %d, "word_count": %d}\\n' "$$lines" "$$words" "$$lines" "$$words"
""",
    tool_type="bash",
    permissions="read, run",
    **_COUNTS,
)

_NODE: Final = script(
    "//",
    """\
// It starts in the project's root. Parameters come as JSON on standard input; one JSON object is the result.
const fs = require("node:fs");

const { file_path } = JSON.parse(fs.readFileSync(0, "utf8"));
const text = fs.readFileSync(file_path, "utf8");
const line_count = text.split("\\n").length - 1;
const word_count = text.split(/\\s+/).filter(Boolean).length;
console.log(JSON.stringify({ output: `$${line_count} lines, $${word_count} words`, line_count, word_count }));
""",
    effects="{read_only: true, destructive: false, idempotent: true, open_world: false}",
    tool_type="node",
    permissions="read",
    **_COUNTS,
)

_SCRIPT_TEST: Final = Template(
    '''\
"""The tool $item_id, as its runtime starts it; signed, it runs as `rye execute $item_id`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rye.authoring.lint import lint

TOOL = Path(__file__).parents[1] / ".ai/tools/$item_id$suffix"
PROGRAM = shutil.which("$program")


def execute(params, project_path):
    env = {**os.environ, **{f"PARAM_{name}": str(value) for name, value in params.items()}}
    given = json.dumps(params)
    done = subprocess.run([PROGRAM, TOOL], input=given, env=env, cwd=project_path, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(PROGRAM is None, reason="$program is not installed")
def test_it_counts(tmp_path):
    (tmp_path / "a.txt").write_text("one two\\nthree\\n")
    assert execute({"file_path": "a.txt"}, tmp_path) == {"output": "2 lines, 3 words", "line_count": 2, "word_count": 3}


@pytest.mark.skipif(PROGRAM is None, reason="$program is not installed")
def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        execute({"file_path": "b.txt"}, tmp_path)'''
    + _WELL_MADE
)


_HTTP: Final = Template(
    _HEADER.format(
        tool_type="http",
        description="The latest version of a Python package on PyPI",
        permissions="network",
        parameter="name: {type: string, description: Name of the package}",
        name="name",
    )
    + """\
config:
  # A parameter is one part of the path or the query, percent-encoded; the host is fixed.
  url: "https://pypi.org/pypi/{name}/json"
  response: {output: info.version, fields: {summary: info.summary}}
"""
)

_HTTP_TEST: Final = Template(
    '''\
"""The tool $item_id, as it is described; signed, it runs as `rye execute $item_id`."""

from pathlib import Path

from rye.authoring.lint import lint

TOOL = Path(__file__).parents[1] / ".ai/tools/$item_id$suffix"'''
    + _WELL_MADE
)


def script_of(mark: str, given: str) -> Template:
    """Return a tool for any other runtime; `given` says how its parameters come."""
    return script(
        mark,
        f"""\
{mark} It starts in the project's root. Parameters come as {given}.
{mark} What it prints is the result: one JSON object with "output", or text. Write the program below.
""",
        tool_type="script",
        description="Say here in one line what it does",
        permissions="read",
        parameter="text: {type: string, description: A text}",
        name="text",
    )


SCRIPT_TEST: Final = Template(
    '''\
"""The tool $item_id; signed, it runs as `rye execute $item_id`."""

from pathlib import Path

import rye
from rye.authoring.lint import lint

PROJECT = Path(__file__).parents[1]
TOOL = PROJECT / ".ai/tools/$item_id$suffix"


def test_it_answers():
    answer = rye.execute("$item_id", {"text": "hello"}, project_path=PROJECT)
    assert answer["status"] == "success", answer.get("error")'''
    + _WELL_MADE
)


class Kind(NamedTuple):
    """One kind of tool.

    Attributes:
        runtime: what runs it.
        suffix: its file's ending.
        tool, test: what is written.
        example: the words of a first call.
        program: what the test starts.
    """

    runtime: str
    suffix: str
    tool: Template
    test: Template
    example: str = "README.md"
    program: str = ""


KINDS: Final = {
    "python": Kind(FUNCTION_RUNTIME, ".py", _PYTHON, _PYTHON_TEST),
    "bash": Kind("rye/core/runtimes/bash_script_runtime", ".sh", _BASH, _SCRIPT_TEST, program="bash"),
    "node": Kind("rye/core/runtimes/node_runtime", ".js", _NODE, _SCRIPT_TEST, program="node"),
    "http": Kind("rye/core/runtimes/http_runtime", ".yaml", _HTTP, _HTTP_TEST, "requests"),
}
