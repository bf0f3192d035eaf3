"""Colours never change a text, never hold the server, and are missing where they cannot be had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.review import colours

pytest.importorskip("pygments")


@pytest.fixture(scope="module")
def one():
    # A busy machine is no lexer that hangs.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(colours, "_SECONDS", 120.0)
        patch.setattr(colours, "_START_SECONDS", 120.0)
        made = colours.Colours()
        yield made
        made.close()


def joined(lines):
    return ["".join(part for _, part in line) for line in lines]


def test_python_has_colours(one):
    found = one.of("a/b.py", ["def f(x):", '    """doc', '    """', "    return 1  # why", ""])
    assert ("k", "def") in [tuple(part) for part in found[0]]
    # A text of several lines is one on each of them.
    assert found[2][-1][0] == "s"
    assert joined(found)[:5] == ["def f(x):", '    """doc', '    """', "    return 1  # why", ""]


LINES = st.lists(
    st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=("Cs",)), max_size=30), min_size=1, max_size=8
)


@given(LINES, st.sampled_from(["a.py", "a.html", "a.rs", "a.json", "a.sh", "Makefile", "a.md"]))
def test_the_text_is_the_same_or_there_are_no_colours(one, lines, name):
    found = one.of(name, lines)
    assert found is None or joined(found)[: len(lines)] == lines


def test_unknown_names_and_large_texts_stay_plain(one):
    assert one.of("a.unknown", ["x"]) is None
    assert one.of("a.py", []) is None
    assert one.of("a.py", ["x" * 3_000]) is None
    assert one.of("a.py", ["x = 1"] * 100_000) is None
    assert one.of("a.py", ["x = 1"]) is not None


def test_a_lexer_that_hangs_is_ended_and_the_next_text_has_colours(monkeypatch):
    slow = colours._PROGRAM.replace(
        "    try:\n        lexer", "    import time\n    time.sleep(600 if 'HANG' in text else 0)\n    try:\n        lexer"
    )
    assert slow != colours._PROGRAM
    monkeypatch.setattr(colours, "_PROGRAM", slow)
    monkeypatch.setattr(colours, "_START_SECONDS", 120.0)
    monkeypatch.setattr(colours, "_SECONDS", 0.5)
    made = colours.Colours()
    assert made.of("a.py", ["HANG"]) is None
    assert made._child is None
    # Remembered: it is not tried again, which would start a new process.
    assert made.of("a.py", ["HANG"]) is None
    assert made._child is None
    monkeypatch.setattr(colours, "_SECONDS", 120.0)
    assert made.of("a.py", ["x = 1"]) is not None
    made.close()


def test_without_pygments_nothing_has_colours(monkeypatch):
    monkeypatch.setattr(colours, "_PROGRAM", "import sys; sys.exit(3)")
    made = colours.Colours()
    assert made.of("a.py", ["x = 1"]) is None
    assert made.of("a.py", ["y = 1"]) is None
