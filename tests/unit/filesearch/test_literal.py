"""Plain words are found as ripgrep finds them, or left to it."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rye.filesearch import matches
from rye.filesearch import tree as filesearch_tree
from rye.filesearch.ripgrep import Pattern
from rye.workspace.workspace import Workspace

PIECES = [b"ab", b"a", b"b", b"aab", b" ", b"\n", b"\r\n", b"\r", "ä".encode(), b"\xff", b"\t", b"a-b", b"\x0c"]
WORDS = ["ab", "a", "b", "ä", " a", "aab", "a\tb", "a.b", "a|b", "[ab]", "a+", "^a", "b$"]


def both(project, data, pattern, *, count=None):
    """Return what is found here (None: left to the engine) and what the engine finds, in a file of these bytes."""
    (project / "f").write_bytes(data)
    with Workspace(str(project)) as ws, filesearch_tree.opened(ws, "f") as tree:
        counted = tree.count(pattern)
        theirs = tree.hits(pattern, [tree.fd], 1_000)[tree.fd] if counted else []
        word = matches.word_of(pattern)
        fd = os.open(project / "f", os.O_RDONLY)
        try:
            ours = matches.hits(word, fd, counted if count is None else count) if word is not None else None
        finally:
            os.close(fd)
    return ours, theirs


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.sampled_from(PIECES), max_size=120).map(b"".join), word=st.sampled_from(WORDS), literal=st.booleans())
def test_random_files_give_the_same_hits(project, data, word, literal):
    ours, theirs = both(project, data, Pattern(word, literal=literal))
    assert ours == theirs if literal or word.replace("\t", "").replace(" ", "").isalpha() else ours is None


@pytest.mark.parametrize(
    "data",
    ["ab\n".encode("utf-16"), "\ufeffab\n".encode(), b"ab\n\0", b"ab\n" + b"x" * (1 << 20), b"ab\n" * 1_001],
    ids=["utf-16", "bom", "nul", "large", "many"],
)
def test_what_ripgrep_may_read_otherwise_is_left_to_it(project, data):
    assert both(project, data, Pattern("ab"))[0] is None


def test_another_count_means_another_file(project):
    assert [both(project, b"ab\nab\n", Pattern("ab"), count=count)[0] is None for count in (1, 2, 3)] == [True, False, True]
