"""glob as a model calls it: patterns and `.gitignore` rules, with and without ripgrep; paging, order, names."""

import os
import time

import pytest

from support.calling import done, refused


def plant(project, *paths):
    for path in paths:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).touch()


TREE = "b.py src/a.py src/lib/c.py a.txt dir.py/x not.egg-info.py src/build.py src/build/e.py x.egg-info/c.py gen.py x.log .git/HEAD"
TREE += " node_modules/b.py .github/d.py .github/workflows/ci.yml build/out"
PY = ["b.py", "not.egg-info.py", "src/a.py", "src/build.py", "src/lib/c.py"]
IGNORED = ["build/out", "gen.py", "node_modules/b.py", "src/build/e.py", "x.egg-info/c.py"]


@pytest.mark.parametrize("below", ["", "dist/project"])
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        # Files alone, in order, by their paths from the root.
        ({"pattern": "*.py"}, PY),
        ({"pattern": "*.py", "path": "src"}, PY[2:]),
        ({"pattern": "src/"}, PY[2:]),
        ({"pattern": "{root}/src/*.py"}, ["src/a.py", "src/build.py"]),
        ({"pattern": "./src/**/c.py"}, ["src/lib/c.py"]),
        ({"pattern": "*.py", "hidden": True}, [".github/d.py", *PY]),
        ({"pattern": "*.py", "no_ignore": True}, sorted([*PY, *IGNORED[1:]])),
        ({"pattern": ".github/*"}, [".github/d.py"]),
        ({"pattern": "*.log, src/*.py"}, ["src/a.py", "src/build.py"]),
        # An exact name is found whatever leaves it out; not in what is never searched.
        *[({"pattern": name}, [name]) for name in ("x.log", ".github/workflows/ci.yml", "build/out")],
        ({"pattern": "{index}"}, []),
        # Links are not listed and not followed.
        ({"pattern": "*b*"}, ["b.py", "src/build.py"]),
        ({"pattern": "b*", "path": "loop"}, ["b.py", "src/build.py"]),
    ],
)
def test_which_files_are_found(tmp_path, below, asked, found):
    # A project may lie below a folder of an ignored name.
    project = tmp_path / (below or "project")
    plant(project, *TREE.split())
    (project / ".gitignore").write_text("gen.py\n*.log\n")
    (project / "bee").symlink_to("b.py")
    (project / "loop").symlink_to(".")
    done("read", project, file_path="a.txt")
    (index,) = (project / ".ai/cache").rglob("line_index/*.json")
    given = asked["pattern"].replace("{root}", str(project)).replace("{index}", str(index.relative_to(project)))
    data = done("glob", project, **{**asked, "pattern": given})
    assert (data["files"], data["count"], data["total"], data["truncated"]) == (found, len(found), len(found), False)
    assert data["output"] == "\n".join(found) if found else "no_ignore=true" in data["output"] or "{index}" in asked["pattern"]


MALFORMED = ("[", "[a", "x/[", "{a", "{a,b", "{" * 50, "{a,b}" * 9, "a\\", "[z-a]", "\0", ".", "./")


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        *[({"pattern": pattern}, "path_outside") for pattern in ("../*", "b/../../*", "{b,../b}/*", "/etc/*", "/*")],
        *[({"pattern": pattern}, "bad_glob") for pattern in MALFORMED],
        ({"pattern": "*", "path": "a"}, "not_a_directory"),
        ({"pattern": "*", "path": "nowhere"}, "file_not_found"),
        ({"pattern": "*", "path": "out"}, "path_outside"),
    ],
)
def test_refusals(project, asked, code):
    plant(project, "a", "b/c")
    (project / "out").symlink_to("/etc")
    refused(code, "glob", project, **asked)


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


def test_the_last_modified_first(project):
    plant(project, "a", "b", "c")
    for at, name in enumerate("bca"):
        os.utime(project / name, (at, at))
    assert done("glob", project, pattern="*", sort="modified")["files"] == ["a", "c", "b"]


def test_a_name_that_results_show_is_accepted_wherever_a_name_or_a_pattern_is_asked_for(project):
    names = ["a:1:b", "caf\udce9\n.txt", "[id].tsx", "src/[a-b]/x?.py", "a*b", "back\\slash", "blank ", "-rf"]
    for name in names:
        plant(project, name)
        (project / name).write_text("needle\n")
    shown = done("glob", project, pattern="**")["files"]
    assert len(shown) == len(names)
    for name in shown:
        assert done("read", project, file_path=name)["total_lines"] == 1
        for given in ({"path": name}, {"include": name}):
            assert done("grep", project, pattern="needle", **given)["total"] >= 1
        assert name in done("glob", project, pattern=name)["files"]
        assert name in done("rye/swe/find_file", project, pattern=name)["files"]
        for tool, given in (("search_file", {"path": name}), ("search_dir", {"include": name})):
            assert done(f"rye/swe/{tool}", project, pattern="needle", **given)["total"] >= 1
    assert {one["name"] for one in done("ls", project, path="src/[a-b]/")["entries"]} == {"x?.py"}
    assert done("glob", project, pattern="[id].tsx")["files"] == ["[id].tsx"]
    # Control: as a pattern it still means what it means.
    plant(project, "i.tsx")
    assert done("glob", project, pattern="[id].tsx")["files"] == ["[id].tsx", "i.tsx"]


# --- what a pattern and a rule mean ---


def found(project, glob, **more):
    return set(done("glob", project, pattern=glob, hidden=True, limit=5_000, **more)["files"])


@pytest.mark.parametrize(
    ("glob", "fits", "not_fits"),
    [
        ("*.py", ["a.py", "src/b.py", ".py"], ["a.pyc", "b.py/b"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/lib/a.py", "x/src/a.py"]),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/x/y"], ["x/src"]),
        ("**/lib/**/a.*", ["lib/a.py", "x/lib/y/z/a.c"], ["a.py", "x/a.py"]),
        ("a/**/b/**/c", ["a/b/c", "a/b/x/b/c", "a/x/b/y/z/c"], ["a/c", "a/d/b"]),
        ("[!a]*", ["b", "x/b"], ["a1", "x/a1"]),
        ("[^a-c]?", ["dx"], ["ax", "d"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("{a,b/{c,d}}.py", ["a.py", "b/c.py", "b/d.py"], ["c.py", "b.py"]),
        ("x{,y}", ["x", "xy"], ["y"]),
        (r"\[id\].tsx", ["[id].tsx", "p/[id].tsx"], ["i.tsx"]),
        ("a*b*c", ["abc", "a/abc", "axbxbxc"], ["ab", "acb"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("?", ["é"], ["ab"]),
        ("a+(b).$", ["a+(b).$"], ["ab"]),
    ],
)
def test_a_pattern_fits_whole_paths(project, engine, glob, fits, not_fits):
    plant(project, *fits, *not_fits)
    assert found(project, glob, no_ignore=True) == {*fits}


def test_no_pattern_takes_long(project):
    plant(project, "a" * 250, "/".join(["a" * 20] * 60))
    started = time.process_time()
    for glob in ("*a" * 60 + "b", "**/a*" * 40 + "/b", "**/*/" * 40 + "b", "{a,b}*" * 8 + "c"):
        assert found(project, glob) == set()
    assert time.process_time() - started < 2


# The rules, what they leave out, and what stays; then the same asked for below a folder.
RULES = [
    ("*.py\n!a.py", ["b.py", "x/b.py"], ["a.py"]),
    ("/src", ["src"], ["x/src"]),
    ("src/*", ["src/a"], ["x/src/a"]),
    ("# c\n\n  \na ", ["a"], ["# c"]),
    (r"\#a" + "\n" + r"\!b", ["#a", "!b"], ["a", "b"]),
    ("[\n{\nz", ["z"], ["["]),
    ("a\r\nb\r\n", ["a", "b"], ["c"]),
    ("out/", ["x/out/a"], ["out"]),
]
BELOW = [
    ("*.py", "src", ["src/a.py", "src/x/a.py"], ["src/a"]),
    ("/src/gen", "src", ["src/gen"], ["src/x/gen"]),
    ("/src/gen", "doc", [], ["doc/gen"]),
    # Who asks for a folder by name wants to see it.
    ("src/", "src", ["src/x/src/a"], ["src/a", "src/y/src"]),
    ("x/\n!src/**/x/", "src/lib", [], ["src/lib/y/x/a"]),
    ("s*/[ab]/**", "src/b", [], ["src/b/a"]),
    ("**/src/x", "src", ["src/x", "src/y/src/x"], ["src/y/x"]),
]


@pytest.mark.parametrize(("rules", "below", "ignored", "kept"), [*((rules, ".", *rest) for rules, *rest in RULES), *BELOW])
def test_the_last_rule_that_fits_decides_also_below_its_folder(project, engine, rules, below, ignored, kept):
    plant(project, *ignored, *kept)
    (project / ".gitignore").write_text(rules, newline="")
    more = {} if below == "." else {"path": below}
    assert found(project, "**/*", **more) - {".gitignore"} == {*kept}
    assert found(project, "**/*", no_ignore=True, **more) >= {*kept, *ignored}
