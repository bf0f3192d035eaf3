"""search_dir: swe-tooling 5.3.2, 2.3, 8.3."""

from __future__ import annotations

import pytest

from support.calling import call, done, refused

SEARCH = "rye/swe/search_dir"


@pytest.fixture
def tree(project):
    (project / "src").mkdir()
    (project / "src/a.py").write_text("def total(x):\n    return x.sum\n\n    xysum\n")
    (project / "b[1].py").write_text("total = [1]\n")
    return project


def test_matches_are_path_line_text(tree):
    data = done(SEARCH, tree, pattern="total")
    assert data["output"] == "b[1].py:1: total = [1]\nsrc/a.py:1: def total(x):"
    assert (data["count"], data["total"], data["truncated"]) == (2, 2, False)
    assert done(SEARCH, tree, pattern="total", root="src")["output"] == "src/a.py:1: def total(x):"
    assert done(SEARCH, tree, pattern="total", include="b*")["count"] == 1


def test_a_pattern_is_a_regex_and_plain_text_when_quoted(tree):
    assert done(SEARCH, tree, pattern=r"x.sum$")["count"] == 2
    for quoted in ("'x.sum'", '"x.sum"'):
        assert [one["line"] for one in done(SEARCH, tree, pattern=quoted)["matches"]] == [2]
    assert done(SEARCH, tree, pattern="x.sum", literal=True)["count"] == 1
    assert done(SEARCH, tree, pattern="TOTAL", ignore_case=True)["count"] == 2


def test_two_hundred_matches_are_shown_and_the_rest_is_told(project):
    (project / "many").write_text("needle\n" * 450)
    data = done(SEARCH, project, pattern="needle")
    lines = data["output"].split("\n")
    assert len(lines) == 201
    assert lines[-1] == (
        '[tool_result: 200 of 450 matches; 250 more omitted. Call search_dir(pattern="needle", offset=201) to see more.]'
    )
    assert [one["line"] for one in done(SEARCH, project, pattern="needle", offset=401)["matches"]] == list(range(401, 451))


def test_long_output_is_cut_at_a_match_and_paging_sees_each_once(project):
    (project / "wide").write_text("".join(f"needle {n} {'x' * 480}\n" for n in range(190)))
    seen, offset = [], 1
    while offset is not None:
        data = done(SEARCH, project, pattern="needle", offset=offset)
        assert len(data["output"]) <= 51_200
        seen += [one["line"] for one in data["matches"]]
        offset = data.get("next_offset")
    assert seen == list(range(1, 191))


def test_ids_come_when_asked_for_and_no_file_is_indexed_else(tree):
    done(SEARCH, tree, pattern="total")
    assert not (tree / ".ai/cache/tools").exists()
    match = done(SEARCH, tree, pattern="def", line_ids=True)["matches"][0]
    done("edit_lines", tree, file_path="src/a.py", changes=[{"line_id": match["line_id"], "new_content": "def f(x):"}])
    assert (tree / "src/a.py").read_text().startswith("def f(x):\n")


def test_nothing_found_is_success_and_says_what_was_not_searched(tree):
    data = done(SEARCH, tree, pattern="absent")
    assert (data["count"], data["matches"]) == (0, [])
    assert "no matches" in data["output"]


def test_a_bad_pattern_is_refused(tree):
    refused("bad_pattern", SEARCH, tree, pattern="(")
    assert call(SEARCH, tree, pattern="")["code"] == "invalid_parameters"
