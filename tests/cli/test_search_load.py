"""`rye search` and `rye load` as processes, and their completion."""

from __future__ import annotations

import json

import pytest

from support.in_process import rye
from support.signed_tools import put, put_tool, tool_text


@pytest.fixture
def here(project, monkeypatch):
    (project / ".ai").mkdir()
    monkeypatch.chdir(project)
    put_tool(project, "my/marmalade")
    return project


def test_search_prints_what_fits_best_first(here):
    done = rye("search", "undo", "my", "last", "change", cwd=here)
    assert done.returncode == 0
    assert done.stdout.startswith(b"tool rye/file-system/undo  (system, ")
    done = rye("load", "knowledge", "rye/file-system/file-operations", cwd=here)
    assert (done.returncode, b"# Working with files" in done.stdout) == (0, True)


def test_search_narrows_by_scope_category_space_and_type(here):
    def ids(*words):
        done = rye("search", "*", "--json", "--limit", "100", *words, cwd=here)
        return [row["id"] for row in json.loads(done.stdout)["results"]]

    assert ids("--category", "rye/primary-tools") == ids("--scope", "tool.rye.primary-tools.*") != []
    assert ids("--space", "project") == ["my/marmalade"]
    assert "rye/core/executing-items" in ids("--type", "knowledge")
    assert ids("--type", "knowledge", "--category", "rye/bash") == ["rye/bash/running-and-sandbox"]


def test_search_says_what_is_wrong_and_what_was_left_out(here):
    assert rye("search", "a)b", cwd=here).returncode == 2
    assert rye("search", "marmalade", "--scope", "tool", "--type", "tool", cwd=here).returncode == 2
    nothing = rye("search", "xyzzyx", cwd=here)
    assert (nothing.returncode, nothing.stdout) == (1, b"")
    put(here, "tools/my/bare.py", tool_text("my/bare"))
    assert b"1 unverified item not searched" in rye("search", "marmalade", cwd=here).stderr


def test_a_word_that_no_item_has_hides_nothing_of_the_others(project):
    found = json.loads(rye("search", "xylophone tool", "--json", cwd=project).stdout)["results"]
    alone = json.loads(rye("search", "tool", "--json", cwd=project).stdout)["results"]
    assert [row["id"] for row in found[:5]] == [row["id"] for row in alone[:5]]
    # Half of the words, and so much less than all of them.
    assert 0.05 < found[0]["score"] < 0.5
    assert rye("search", "xylophone", cwd=project).returncode == 1
