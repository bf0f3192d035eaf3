"""Plain words are found as ripgrep finds them, or left to it."""

from __future__ import annotations

import os
import random

import pytest

from rye.filesearch import matches
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern
from rye.workspace.workspace import Workspace

SEED = 31
PIECES = [b"ab", b"a", b"b", b"aab", b" ", b"\n", b"\r\n", b"\r", "ä".encode(), b"\xff", b"\t", b"a-b", b"\x0c"]


def both(project, data, pattern, *, count=None):
    """Return what is found here and what the engine finds, in a file of these bytes."""
    (project / "f").write_bytes(data)
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, "f") as tree:
        wanted = pattern._replace(crlf=True)
        counted = tree.count(wanted)
        theirs = tree.hits(wanted, [tree.fd], 1_000)[tree.fd] if counted else []
        word = matches.word_of(wanted)
        fd = os.open(project / "f", os.O_RDONLY)
        try:
            ours = matches.hits(word, fd, counted if count is None else count) if word is not None else None
        finally:
            os.close(fd)
    return ours, theirs


@pytest.mark.parametrize("number", range(40))
def test_random_files_give_the_same_hits(project, number):
    dice = random.Random(SEED + number)
    data = b"".join(dice.choices(PIECES, k=dice.randrange(120)))
    pattern = Pattern(dice.choice(["ab", "a", "b", "ä", " a", "aab", "a\tb"]))
    ours, theirs = both(project, data, pattern)
    assert ours == theirs


@pytest.mark.parametrize("data", [b"", b"ab", b"ab\n", b"\nab", b"abab\nab", b"x\n" * 50_000 + b"ab\n", b"\r\nab\r\n"])
def test_edges_give_the_same_hits(project, data):
    ours, theirs = both(project, data, Pattern("ab"))
    assert ours == theirs


@pytest.mark.parametrize(
    "data",
    ["ab\n".encode("utf-16"), "\ufeffab\n".encode(), b"ab\n\0", b"ab\n" + b"x" * (1 << 20), b"ab\n" * 1_001],
    ids=["utf-16", "bom", "nul", "large", "many"],
)
def test_what_ripgrep_may_read_otherwise_is_left_to_it(project, data):
    assert both(project, data, Pattern("ab"))[0] is None


def test_another_count_means_another_file(project):
    assert both(project, b"ab\nab\n", Pattern("ab"))[0] is not None
    assert both(project, b"ab\nab\n", Pattern("ab"), count=1)[0] is None
    assert both(project, b"ab\nab\n", Pattern("ab"), count=3)[0] is None


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        (Pattern("total"), b"total"),
        (Pattern("def total"), b"def total"),
        (Pattern("ä_1"), "ä_1".encode()),
        (Pattern("a.b", literal=True), b"a.b"),
        (Pattern("a\\b", literal=True), b"a\\b"),
        (Pattern("a.b"), None),
        (Pattern(""), None),
        (Pattern("ab", ignore_case=True), None),
        (Pattern("ab", multiline=True), None),
        (Pattern("a\nb", literal=True), None),
        *((Pattern(f"a{char}b"), None) for char in r"\.+*?()|[]{}^$"),
    ],
)
def test_only_plain_words_are_words(pattern, word):
    assert matches.word_of(pattern) == word
