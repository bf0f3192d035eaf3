"""`rye.toolkit` is the promise to tool authors: these names, documented, and enough for the file tools of the bundle."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from rye import toolkit

ROOT = Path(__file__).parents[2]


def test_the_names_are_those_of_the_page_for_authors_and_each_is_documented():
    page = (ROOT / ".ai/knowledge/rye/core/writing-a-tool.md").read_text(encoding="utf-8")
    rows = page.partition("| name | what it is for |\n")[2].partition("\n\n")[0].splitlines()
    # What the functions of the table return, and take.
    named = {*re.findall(r"`(\w+)", " ".join(row.split("|")[1] for row in rows)), "Applied", "Edited", "Replaced", "Show"}
    assert sorted(named) == toolkit.__all__ == sorted(toolkit._HOMES) == dir(toolkit)
    assert [name for name in named if not getattr(toolkit, name).__doc__] == []
    with pytest.raises(AttributeError):
        toolkit.index_whole


@pytest.mark.parametrize("tool", ["read", "write", "edit_lines"])
def test_the_file_tools_import_the_toolkit_and_the_standard_library_alone(tool):
    tree = ast.parse((ROOT / f".ai/tools/rye/file-system/{tool}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if name.partition(".")[0] == "rye"} == {"rye.toolkit"}


def test_an_edit_prints_as_many_lines_as_it_is_asked_for_and_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {at}\n" for at in range(100)))
    root = str(tmp_path)

    def look(document):
        document.printed(0, document.count)
        document.shown((0, document.count))
        return document.ids(0, 100)

    ids = toolkit.view_lines(root, "a.txt", look)
    changes = [{"start_line_id": ids[0], "end_line_id": ids[99], "new_content": "x\n" * 100}]
    applied = toolkit.edit_lines(root, "a.txt", changes, tool="my/tool", show=toolkit.Show(500))
    assert applied.cut
    assert 0 < len("\n".join(applied.printed())) <= 500
    # A line that was not printed was not shown: it cannot be edited as a part of a range.
    more = [{"line_id": toolkit.view_lines(root, "a.txt", lambda document: document.ids(90, 91))[0], "new_content": "y"}]
    with pytest.raises(toolkit.EditError, match="never shown"):
        toolkit.edit_lines(root, "a.txt", more, tool="my/tool")
