"""edit_file: swe-tooling 6.2."""

from __future__ import annotations

import pytest
from calling import done, refused

EDIT = "rye/swe/edit_file"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a b\nb c\n", "b", "X", b"a X\nb c\n"),
        (b"a\nb\nc\n", "a\nb\n", "x\n", b"x\nc\n"),
        (b"a\nb\nc\n", "\nb", "", b"a\nc\n"),
        (b"a\nb\nc\n", "a\n", "x", b"xb\nc\n"),
        (b"a\nb", "b", "b\n", b"a\nb\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        ("\ufeffaĀ\n".encode("utf-16-be"), "Ā", "ß", "\ufeffaß\n".encode("utf-16-be")),
        (b"x\n" * 3 + b"tail", "tail", "", b"x\n" * 3),
    ],
)
def test_the_first_exact_place_is_replaced_and_no_other_byte(project, before, old, new, after):
    (project / "f").write_bytes(before)
    done(EDIT, project, path="f", old=old, new=new)
    assert (project / "f").read_bytes() == after


def test_the_answer_shows_the_lines_and_names_the_other_places(project):
    (project / "f").write_bytes(b"one\nx = 1\nx = 1\nfour\nx = 1\n")
    data = done(EDIT, project, path="f", old="x = 1\n", new="x = 2\n")
    assert data["output"].split("\n") == [
        "✓ Edited f:2-2", "1 line removed, 1 added", "1: one", "2: x = 2", "3: x = 1", "4: four",
        "[the text stands at 3 places; only the first was changed. The others, in the numbering before: line 3, 5]",
    ]  # fmt: skip
    assert data["other_places"] == [3, 5]


def test_a_snippet_that_is_not_there_is_refused_with_the_nearest_lines(project):
    (project / "f").write_bytes(b"def total(prices):\n    return 1\n")
    said = refused("snippet_not_found", EDIT, project, path="f", old="def totals(price):", new="x")
    assert "1: def total(prices):" in said
    assert (project / "f").read_bytes().startswith(b"def total(prices)")


def test_wide_text_is_matched_at_whole_characters_only(project):
    (project / "f").write_bytes("\ufeff\u0161\u6100\n".encode("utf-16-le"))
    refused("snippet_not_found", EDIT, project, path="f", old="\u0061", new="x")


def test_the_same_text_again_is_no_change(project):
    (project / "f").write_bytes(b"a\n")
    refused("no_change", EDIT, project, path="f", old="a", new="a")
