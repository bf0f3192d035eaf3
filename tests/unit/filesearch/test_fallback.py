"""The search without ripgrep gives ripgrep's answers where the two engines read a pattern alike, and says that it is another."""

from __future__ import annotations

import os

import pytest

from rye.filesearch import ripgrep
from support.calling import call, done, refused

BINARY = ripgrep.locate(os.stat("/"))
needs_ripgrep = pytest.mark.skipif(BINARY is None, reason="ripgrep is not installed")

FILES = {
    b"a.py": "foo\nBar é 42\n\n  def foo(bar):\n".encode(),
    b"b.txt": b"one\r\ntwo foo\r\nlast",
    b"marked.txt": b"\xef\xbb\xbffoo\n",
    b"wide.txt": "foo wide\n".encode("utf-16"),
    b"binary": b"foo\n\0foo\n",
    b"broken.txt": b"foo \xff\xe9\nbar\xed\xa0\x80\n",
    b"empty": b"",
    b".hidden": b"foo\n",
    b"new\nline": b"foo\n",
    b"\xff\xfe.py": b"foo\n",
    b"src/a.py": b"foo\nfoo\n",
    b"src/lib/b.py": b"bar foo bar\n",
    b"src/lib/keep.log": b"foo\n",
    b"dist/a.py": b"foo\n",
    b"node_modules/x/a.py": b"foo\n",
    b".github/a.yml": b"foo\n",
    b".gitignore": b"*.log\n/dist\n!src/lib/keep.log\nx?y\n# note\n",
    b"src/.gitignore": b"lib/b.*\n",
    b"x1y": b"foo\n",
}
PATTERNS = ["foo", "^foo$", r"\bbar\b", "o+", r"\d+", "é", "[^a-z]", "$", r"\s{2}\w", "(?i)BAR", "a|b", ".", r"foo\s*$", "x*"]


@pytest.fixture
def tree(project):
    for name, data in FILES.items():
        path = os.path.join(os.fsencode(project), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return project


def both(monkeypatch, tool, project, /, **parameters):
    """What ripgrep answers, and what is answered without it, without the line that says so."""
    theirs = done(tool, project, **parameters)
    with monkeypatch.context() as patch:
        patch.setattr(ripgrep, "locate", lambda _: None)
        ours = done(tool, project, **parameters)
    ours["output"] = "\n".join(line for line in ours["output"].split("\n") if not line.startswith("[searched by Python"))
    return theirs, ours


@needs_ripgrep
@pytest.mark.parametrize("pattern", PATTERNS)
def test_contents_are_found_alike(tree, monkeypatch, pattern):
    for options in ({}, {"hidden": True, "no_ignore": True}, {"path": "src"}, {"include": "*.py", "ignore_case": True}):
        theirs, ours = both(monkeypatch, "grep", tree, pattern=pattern, **options)
        # Bytes that are no UTF-8 fit `.` and negated classes in `re` alone.
        for data in (theirs, ours) if pattern in (".", "[^a-z]") else ():
            data["matches"] = [one for one in data["matches"] if one["file"] != "broken.txt"]
            data["output"] = ""
        assert ours["matches"] == theirs["matches"]
        assert ours["output"] == theirs["output"]
    for options in ({"literal": True}, {"mode": "count"}) if pattern not in (".", "[^a-z]") else ():
        theirs, ours = both(monkeypatch, "grep", tree, pattern=pattern, **options)
        assert ours["matches"] == theirs["matches"], options


@needs_ripgrep
@pytest.mark.parametrize(
    "pattern", ["*.py", "**/*.py", "src/**", "*", "[!a]*", "{a,b}.*", "?.py", "src/**/a.py", ".*", "**/lib/*"]
)
def test_names_are_found_alike(tree, monkeypatch, pattern):
    for options in ({}, {"hidden": True}, {"no_ignore": True}, {"path": "src/lib"}, {"sort": "modified", "limit": 3}):
        theirs, ours = both(monkeypatch, "glob", tree, pattern=pattern, **options)
        assert ours == theirs


def test_the_answer_says_that_it_is_the_fallback_and_where_patterns_differ(tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    data = done("grep", tree, pattern="foo")
    assert "pip install ripgrep" in data["output"]
    assert r"\p{…}" in data["output"]
    assert "[searched by Python's re" in done("rye/swe/search_dir", tree, pattern="foo")["output"]
    assert done("grep", tree, pattern="f(?=oo)")["total"] == done("grep", tree, pattern="foo")["total"]


@needs_ripgrep
def test_control_with_ripgrep_the_answer_says_nothing_of_it(tree):
    assert "Python" not in done("grep", tree, pattern="foo")["output"]


@pytest.mark.parametrize("pattern", ["(a", "[a", "[[:alpha:]]", "[a&&b]", r"\p{L}", "(?<name>a)", "a\nb", r"a\nb", "*a"])
def test_a_pattern_that_re_reads_otherwise_is_refused(tree, monkeypatch, pattern):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    assert refused("bad_pattern", "grep", tree, pattern=pattern)


def test_a_search_across_lines_needs_ripgrep(tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    assert "pip install ripgrep" in refused("ripgrep_missing", "grep", tree, pattern="a.*b", multiline=True)


def test_an_escaped_backslash_before_an_n_is_no_newline(tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    assert done("grep", tree, pattern=r"a\\n")["total"] == 0


def test_a_large_file_is_named_and_not_searched(tree, monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    with open(tree / "large", "wb") as file:
        file.writelines(b"foo" * 349_525 + b"\n" for _ in range(65))
    data = call("grep", tree, pattern="foo", path=".")
    assert "large (File too large)" in data["output"]
    assert "large" not in {one["file"] for one in data["matches"]}
