"""glob as a model calls it."""

from __future__ import annotations

import os

import pytest

from support.calling import done, refused


def plant(project, *paths):
    for path in paths:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text("")


def test_files_only_in_order_relative_to_the_project(project):
    plant(project, "b.py", "src/a.py", "src/lib/c.py", "a.txt", "dir.py/x")
    data = done("glob", project, pattern="*.py")
    assert data["files"] == ["b.py", "src/a.py", "src/lib/c.py"]
    assert data["output"] == "b.py\nsrc/a.py\nsrc/lib/c.py"
    assert (data["count"], data["total"], data["truncated"]) == (3, 3, False)
    assert done("glob", project, pattern="*.py", path="src")["files"] == ["src/a.py", "src/lib/c.py"]
    assert done("glob", project, pattern="*/*.py")["files"] == ["src/a.py"]
    assert done("glob", project, pattern="src/")["files"] == ["src/a.py", "src/lib/c.py"]
    assert done("glob", project, pattern=f"{project}/src/*.py")["files"] == ["src/a.py"]
    assert done("glob", project, pattern=f"{project}/*.py")["files"] == ["b.py"]
    assert done("glob", project, pattern="./src/**/c.py")["files"] == ["src/lib/c.py"]


def test_sorted_before_cut_with_paging(project):
    plant(project, *(f"f{number:03}" for number in reversed(range(250))))
    data = done("glob", project, pattern="f*")
    assert data["files"] == [f"f{number:03}" for number in range(100)]
    assert data["output"].endswith(
        '[tool_result: 100 of 250 files; 150 more omitted. Call glob(pattern="f*", offset=101) to see more, or narrow it with path or pattern.]'
    )
    assert done("glob", project, pattern="f*", offset=201)["files"][-1] == "f249"
    refused("bad_offset", "glob", project, pattern="f*", offset=251)
    assert not done("glob", project, pattern="f00*", limit=10)["truncated"]


def test_an_exact_name_is_found_whatever_leaves_it_out(project):
    plant(project, "x.log", ".github/workflows/ci.yml", "build/out", "a.yml")
    (project / ".gitignore").write_text("*.log\n")
    (project / ".git").mkdir()
    done("read", project, file_path="a.yml")
    for name in ("x.log", ".github/workflows/ci.yml", "build/out"):
        assert done("glob", project, pattern=name)["files"] == [name]
    assert done("glob", project, pattern="out", path="build")["files"] == ["build/out"]
    assert done("glob", project, pattern="*.log")["files"] == []
    # What is never searched is not found by its name either.
    (index,) = (project / ".ai/cache").rglob("*.json")
    assert done("glob", project, pattern=str(index.relative_to(project)))["files"] == []


def test_the_last_modified_first(project):
    plant(project, "a", "b", "c")
    for at, name in enumerate("bca"):
        os.utime(project / name, (at, at))
    assert done("glob", project, pattern="*", sort="modified")["files"] == ["a", "c", "b"]


def test_what_is_left_out_and_how_to_see_it(project):
    plant(
        project,
        "a.py",
        "node_modules/b.py",
        "x.egg-info/c.py",
        "not.egg-info.py",
        ".github/d.py",
        "build/e.py",
        "gen.py",
        "src/build.py",
    )
    (project / ".gitignore").write_text("gen.py\n")
    assert done("glob", project, pattern="*.py")["files"] == ["a.py", "not.egg-info.py", "src/build.py"]
    assert ".github/d.py" in done("glob", project, pattern="*.py", hidden=True)["files"]
    assert len(done("glob", project, pattern="*.py", no_ignore=True)["files"]) == 7
    assert done("glob", project, pattern=".github/*")["files"] == [".github/d.py"]
    assert "no_ignore=true" in done("glob", project, pattern="*.rs")["output"]


def test_a_project_below_a_folder_of_an_ignored_name(tmp_path):
    plant(tmp_path, "dist/project/.git/HEAD", "dist/project/a.py")
    assert done("glob", tmp_path / "dist/project", pattern="*")["files"] == ["a.py"]


@pytest.mark.parametrize("pattern", ["../*", "a/../../*", "{a,../b}/*", "/etc/*", "/*"])
def test_a_pattern_that_leads_out_is_refused(project, pattern):
    plant(project, "a/b")
    refused("path_outside", "glob", project, pattern=pattern)


def test_links_are_not_listed_and_not_followed(project):
    plant(project, "a/b")
    (project / "link").symlink_to("a/b")
    (project / "loop").symlink_to(".")
    (project / "out").symlink_to("/etc")
    assert done("glob", project, pattern="**")["files"] == ["a/b"]
    assert done("glob", project, pattern="*", path="loop/a")["files"] == ["a/b"]
    refused("path_outside", "glob", project, pattern="*", path="out")


def test_a_shown_name_is_a_pattern_and_a_path(project):
    name = b"caf\xe9\n.txt"
    with open(os.fsencode(project) + b"/" + name, "wb") as file:
        file.write(b"x\n")
    shown = done("glob", project, pattern="caf*")["files"]
    assert shown == [r"caf\xe9\x0a.txt"]
    assert done("glob", project, pattern=shown[0])["files"] == shown
    assert done("read", project, file_path=shown[0])["total_lines"] == 1


def test_refusals(project):
    plant(project, "a")
    for pattern in ("[", "{a", "a\\", "\0", ".", "./"):
        refused("bad_glob", "glob", project, pattern=pattern)
    refused("not_a_directory", "glob", project, pattern="*", path="a")
    refused("file_not_found", "glob", project, pattern="*", path="b")


def test_a_name_that_results_show_is_accepted_wherever_a_name_or_a_pattern_is_asked_for(project):
    names = ["[id].tsx", "src/[a-b]/x?.py", "a*b", "back\\slash", "new\nline", "blank ", "\udcff.txt", "-rf", "caf\u00e9"]
    for name in names:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("needle\n")
    shown = done("glob", project, pattern="**")["files"]
    assert len(shown) == len(names)
    for name in shown:
        for tool, given in (
            ("read", {"file_path": name}),
            ("grep", {"pattern": "needle", "path": name}),
            ("grep", {"pattern": "needle", "include": name}),
            ("glob", {"pattern": name}),
            ("rye/swe/find_file", {"pattern": name}),
            ("rye/swe/search_file", {"path": name, "pattern": "needle"}),
            ("rye/swe/search_dir", {"include": name, "pattern": "needle"}),
        ):
            data = done(tool, project, **given)
            found = data.get("files", [])
            assert name in found if isinstance(found, list) and found else tool == "read" or data["total"] >= 1, (tool, data)
    assert {one["name"] for one in done("ls", project, path="src/[a-b]/")["entries"]} == {"x?.py"}
    assert done("glob", project, pattern="[id].tsx")["files"] == ["[id].tsx"]
    # Control: as a pattern it still means what it means.
    (project / "i.tsx").write_text("x\n")
    assert done("glob", project, pattern="[id].tsx")["files"] == ["[id].tsx", "i.tsx"]
