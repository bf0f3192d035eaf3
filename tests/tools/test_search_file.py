"""search_file: swe-tooling 5.3.3."""

from __future__ import annotations

from support.calling import done, refused

SEARCH = "rye/swe/search_file"


def test_matches_are_line_text(project):
    (project / "a.py").write_text("one\ntwo one\nthree\n")
    data = done(SEARCH, project, path="a.py", pattern="one")
    assert data["output"] == "1 : one\n2 : two one"
    assert done(SEARCH, project, path="a.py", pattern="'o.e'")["count"] == 0


def test_a_cut_names_the_call_that_continues(project):
    (project / "a.py").write_text("x\n" * 9)
    data = done(SEARCH, project, path="a.py", pattern="x", limit=4)
    assert data["output"].endswith('Call search_file(path="a.py", pattern="x", limit=4, offset=5) to see more.]')


def test_a_folder_or_a_missing_file_is_refused(project):
    (project / "src").mkdir()
    refused("is_directory", SEARCH, project, path="src", pattern="x")
    refused("file_not_found", SEARCH, project, path="b.py", pattern="x")
