"""Glob patterns and `.gitignore` rules as `glob` reads them, with and without ripgrep."""

from __future__ import annotations

import time

import pytest

from support.calling import done, refused


def plant(project, *paths):
    for path in paths:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).touch()


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


def test_a_malformed_pattern_is_refused_with_the_reason(project):
    for glob in ("[a", "{a,b", "a\\", "[z-a]", "{a,b}" * 9, "x/[", "{" * 50):
        assert refused("bad_glob", "glob", project, pattern=glob)


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
