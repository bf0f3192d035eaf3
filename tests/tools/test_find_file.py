"""find_file: swe-tooling 5.3.1, 2.3."""

from __future__ import annotations

import pytest

from support.calling import done, refused

FIND = "rye/swe/find_file"


@pytest.fixture
def tree(project):
    for name in (
        "src/api/routes.py",
        "src/api/my_routes_old.py",
        "src/app.py",
        "tests/test_routes.py",
        "node_modules/routes.js",
        "[id].tsx",
    ):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    (project / ".gitignore").write_text("*_old.py\n")
    return project


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"pattern": "routes"}, ["src/api/routes.py", "tests/test_routes.py"]),
        ({"pattern": "routes", "root": "src"}, ["src/api/routes.py"]),
        ({"pattern": "test_*.py"}, ["tests/test_routes.py"]),
        ({"pattern": "src/**/*.py"}, ["src/api/routes.py", "src/app.py"]),
        ({"pattern": "pi/rout"}, ["src/api/routes.py"]),
        ({"pattern": "routes", "no_ignore": True, "root": "src"}, ["src/api/my_routes_old.py", "src/api/routes.py"]),
        ({"pattern": r"\[id\].tsx"}, ["[id].tsx"]),
        ({"pattern": "]"}, ["[id].tsx"]),
        ({"pattern": "nothing"}, []),
    ],
)
def test_names_are_found_by_a_part_or_a_glob(tree, asked, found):
    data = done(FIND, tree, **asked)
    assert data["files"] == found
    assert [line for line in data["output"].split("\n") if line not in data["notices"]] == (found or [])


def test_a_cut_names_the_call_that_continues(tree):
    data = done(FIND, tree, pattern=".py", limit=2)
    assert data["output"].split("\n")[-1] == (
        "[tool_result: 2 of 3 files (src/ 2, tests/ 1); 1 more omitted. "
        'Call find_file(pattern=".py", limit=2, offset=3) to see more, or narrow it with root or pattern.]'
    )
    assert done(FIND, tree, pattern=".py", limit=2, offset=3)["files"] == ["tests/test_routes.py"]


def test_it_stays_in_the_project(tree):
    refused("path_outside", FIND, tree, pattern="x", root="..")
    refused("path_outside", FIND, tree, pattern="../*")
