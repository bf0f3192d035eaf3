"""Where the hits of a search are, by folder."""

from __future__ import annotations

from rye.filesearch.narrowing import Folders, too_many


def counted(*names):
    folders = Folders()
    for name in names:
        folders.add(name, 2)
    return folders


def test_the_first_depth_that_tells_folders_apart_is_shown():
    assert counted("a/b/x", "a/b/y", "a/c/z").spread(".") == "a/b/ 4 in 2 files, a/c/ 2"
    assert counted("a/x", "y").spread("src") == "src/ 2, src/a/ 2"
    assert counted("a/x", "a/y").spread(".") == ""


def test_many_folders_are_counted_not_listed():
    folders = counted(*(f"{number}/x" for number in range(10_000)))
    assert folders.spread(".").endswith("9994 more folders")


def test_options_that_were_given_are_not_advised():
    many = counted(*(f"a/{number}" for number in range(60)))
    assert too_many(many, ".", {"path": "a", "include": None}) == ("", ", or narrow it with include")
    assert too_many(many, ".", {"path": "a", "include": "*.py"}) == ("", "")
    assert too_many(counted("a/x"), ".", {"path": None}) == ("", "")
