"""Colours never change a text, never hold the server, and are missing where they cannot be had."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rye.review import colours

pytest.importorskip("pygments")


@pytest.fixture
def of(monkeypatch):
    """Return the colours of one file."""
    # A busy machine is no lexer that hangs.
    monkeypatch.setattr(colours, "_SECONDS", 120.0)

    def asked(path, lines):
        return colours.Colours().of([(path, lines)])[0]

    return asked


def joined(lines):
    return ["".join(part for _, part in line) for line in lines]


def test_python_has_colours(of):
    found = of("a/b.py", ["def f(x):", '    """doc', '    """', "    return 1  # why", ""])
    assert ("k", "def") in [tuple(part) for part in found[0]]
    # A text of several lines is one on each of them.
    assert found[2][-1][0] == "s"
    assert joined(found)[:5] == ["def f(x):", '    """doc', '    """', "    return 1  # why", ""]


LINES = st.lists(
    st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=30), min_size=1, max_size=8
)
NAMES = st.sampled_from(["a.py", "a.html", "a.rs", "a.json", "a.sh", "Makefile", "a.md"])


@settings(max_examples=5)
@given(st.lists(st.tuples(NAMES, LINES), min_size=10, max_size=30))
def test_the_text_is_the_same_or_there_are_no_colours(files):
    for (_, lines), found in zip(files, colours.Colours().of(files), strict=True):
        assert found is None or joined(found)[: len(lines)] == lines


def test_unknown_names_and_large_texts_stay_plain(of):
    for name, lines in (("a.unknown", ["x"]), ("a.py", []), ("a.py", ["x" * 3_000]), ("a.py", ["x = 1"] * 100_000)):
        assert of(name, lines) is None
    assert of("a.py", ["x = 1"]) is not None


def test_a_lexer_that_hangs_is_ended_and_only_what_comes_after_it_stays_plain(monkeypatch):
    hang = "    import time\n    time.sleep(600 if 'HANG' in text else 0)\n    try:\n        lexer"
    slow = colours._PROGRAM.replace("    try:\n        lexer", hang)
    assert slow != colours._PROGRAM
    monkeypatch.setattr(colours, "_PROGRAM", slow)
    monkeypatch.setattr(colours, "_SECONDS", 5.0)
    made = colours.Colours()
    files = [("a.py", ["x = 1"]), ("b.py", ["HANG"]), ("c.py", ["y = 1"])]
    assert [found is not None for found in made.of(files)] == [True, False, False]
    # Remembered: it is not tried again, which would hold the next page as long.
    monkeypatch.setattr(colours, "_PROGRAM", "no Python")
    assert [found is not None for found in made.of(files)] == [True, False, False]


def test_without_pygments_nothing_has_colours(of, monkeypatch):
    monkeypatch.setattr(colours, "_PROGRAM", "import sys; sys.exit(3)")
    assert of("a.py", ["x = 1"]) is None
