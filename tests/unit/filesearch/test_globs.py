"""Glob patterns and `.gitignore` rules, as data."""

from __future__ import annotations

import random
import re
import time

import pytest

from rye.errors import UsageError
from rye.filesearch import gitignore, globs


@pytest.mark.parametrize(
    ("glob", "fits", "not_fits"),
    [
        ("*.py", ["a.py", "src/b.py", ".py"], ["a.pyc", "a.py/b"]),
        ("src/*.py", ["src/a.py"], ["a.py", "src/lib/a.py", "x/src/a.py"]),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.txt"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "a"]),
        ("**/lib/**/a.*", ["lib/a.py", "x/lib/y/z/a.c"], ["a.py", "x/a.py"]),
        ("a/**/b/**/c", ["a/b/c", "a/b/x/b/c", "a/x/b/y/z/c"], ["a/c", "a/b"]),
        ("[!a]*", ["b", "x/b"], ["a1", "x/a1"]),
        ("[^a-c]?", ["dx"], ["ax", "d"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("{a,b/{c,d}}.py", ["a.py", "b/c.py", "b/d.py"], ["c.py", "b.py"]),
        ("x{,y}", ["x", "xy"], ["y"]),
        (r"\[id\].tsx", ["[id].tsx", "p/[id].tsx"], ["i.tsx"]),
        ("a*b*c", ["abc", "a/abc", "axbxbxc"], ["ab", "acb"]),
        ("a**b", ["ab", "axb"], ["a/b"]),
        ("?", ["é", "\udcff"], ["ab"]),
        ("a+(b).$", ["a+(b).$"], ["ab"]),
        ("line\nbreak", ["line\nbreak"], []),
    ],
)
def test_a_pattern_fits_whole_paths(glob, fits, not_fits):
    test = globs.compiled(glob)
    assert [path for path in fits if not test(path)] == []
    assert [path for path in not_fits if test(path)] == []


@pytest.mark.parametrize("glob", ["[a", "{a,b", "a\\", "[z-a]", "{a,b}" * 9, "x/[", "{" * 50])
def test_a_malformed_pattern_is_refused_with_the_reason(glob):
    with pytest.raises(UsageError) as caught:
        globs.compiled(glob)
    assert caught.value.code == "bad_glob"


def test_no_pattern_takes_long():
    started = time.process_time()
    for glob in ("*a" * 60 + "b", "**/a*" * 40 + "/b", "**/*/" * 40 + "b", "{a,b}*" * 8 + "c"):
        for path in ("a" * 250, "/".join(["a" * 20] * 180)):
            globs.compiled(glob)(path)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("rules", "ignored", "kept"),
    [
        ("*.py\n!a.py", ["b.py", "x/b.py"], ["a.py"]),
        ("/src", ["src"], ["x/src"]),
        ("src/*", ["src/a"], ["src", "x/src/a"]),
        ("# c\n\n  \na ", ["a"], ["# c"]),
        (r"\#a" + "\n" + r"\!b", ["#a", "!b"], ["a", "b"]),
        ("[\n{\nz", ["z"], ["["]),
        ("a\r\nb\r\n", ["a", "b"], []),
    ],
)
def test_the_last_rule_that_fits_decides(rules, ignored, kept):
    parsed = gitignore.parse(rules.encode())
    assert [path for path in ignored if gitignore.verdict(parsed, path, folder=False) is not True] == []
    assert [path for path in kept if gitignore.verdict(parsed, path, folder=False)] == []


def test_a_slash_at_the_end_is_about_folders():
    rules = gitignore.parse(b"out/")
    assert gitignore.verdict(rules, "x/out", folder=True)
    assert not gitignore.verdict(rules, "x/out", folder=False)


@pytest.mark.parametrize(
    ("rules", "below", "carried"),
    [
        ("*.py", ["src"], ["/**/*.py"]),
        ("/src/gen", ["src"], ["/gen"]),
        ("/src/gen", ["doc"], []),
        ("src/", ["src"], ["/**/src/"]),
        ("!src/**/x/", ["src", "lib"], ["!/**/x/"]),
        ("s*/[ab]/**", ["src", "b"], []),
        ("**/src/x", ["src"], ["/**/src/x", "/x"]),
    ],
)
def test_rules_are_carried_to_a_folder_below(rules, below, carried):
    assert gitignore.rules_below(gitignore.parse(rules.encode()), below) == carried


@pytest.mark.parametrize("glob", ["*.py", "**/*.py", "*py", "**/*_test.go", "*.tar.gz", "*-x", "*."])
def test_an_ending_means_what_its_expression_says(glob):
    expression = re.compile(globs.translate(glob if "/" in glob else f"**/{glob}"), re.DOTALL)
    ending = glob.rpartition("*")[2]
    chance = random.Random(20)
    letters = ["a", "/", ".", "\n", "x", "-", "\udc80", ending]
    for _ in range(3_000):
        name = "".join(chance.choices(letters, k=chance.randrange(1, 6))).strip("/")
        if name and "//" not in name:
            assert bool(globs.compiled(glob)(name)) == bool(expression.fullmatch(name)), name
