"""A path at which nothing is: what may be meant is found anywhere in the project, within a bound of time."""

import pytest

from rye.workspace import path_suggestions
from support.calling import call


@pytest.fixture
def project(project):
    for name in (
        *("src/app.py", "src/flask/models.py", "tests/models.py", "docs/README.md", "src/Camel/Case.py", "a/CASE.py"),
        *("node_modules/x/only_there.py", ".hidden/only_hidden.py"),
    ):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("x\n")
    return project


def refused(project, path):
    answer = call("read", project, file_path=path)
    assert answer["code"] == "file_not_found"
    return answer["error"], answer["nearest"]


LIKELIEST = """app.py src/app.py, SRC/app.py src/app.py, src/App.py src/app.py, ./app.py src/app.py, models.py tests/models.py,
flask/models.py src/flask/models.py, test/models.py tests/models.py, src/flask/readme.md docs/README.md,
docs/README.mdx docs/README.md, camel/case.py src/Camel/Case.py, Case.py src/Camel/Case.py, flask src/flask"""


@pytest.mark.parametrize(("asked", "found"), [one.split() for one in LIKELIEST.split(",")])
def test_the_likeliest_path_is_named_first_and_the_root_is_named(project, asked, found):
    error, nearest = refused(project, asked)
    assert nearest[0] == found
    assert (f"Did you mean {found}" in error, str(project) in error) == (True, True)


def test_what_is_not_listed_is_not_suggested_either(project, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret_plan.txt").write_text("x")
    (project / "way").symlink_to(tmp_path / "outside")
    (project / "circle").symlink_to(".")
    for asked in ("only_there.py", "only_hidden.py", "nothing-like-it", "secret_plan.txt"):
        assert refused(project, asked)[1] == []
    assert "nearest" not in call("read", project, file_path="..")
    assert 'glob(pattern="src/*.py")' in refused(project, "src/*.py")[0]
    (project / "broken.lnk").symlink_to("gone")
    error, _ = refused(project, "broken.lnk")
    assert ("(a link to nothing)" in error, "Did you mean broken.lnk" in error) == (True, False)


@pytest.mark.parametrize("bound", ["_SECONDS", "_MOST_NAMES"])
def test_the_search_ends_in_time_and_after_so_many_names(project, monkeypatch, bound):
    monkeypatch.setattr(path_suggestions, bound, -1)
    assert refused(project, "app.py")[1] == []
    monkeypatch.undo()
    assert refused(project, "app.py")[1] == ["src/app.py"]


def test_every_tool_says_so(project):
    for tool, parameters in (
        ("edit_lines", {"file_path": "app.py", "changes": [{"line_id": "abcdef", "new_content": "x"}]}),
        ("rye/swe/open_file_chunk", {"path": "app.py"}),
    ):
        assert "Did you mean src/app.py?" in call(tool, project, **parameters)["error"], tool
