"""The six points of a docstring."""

from __future__ import annotations

from rye.items import parse

TEXT = """Count words.
And more.

Requires: a file.
Does not: change it,
or anything.
Side effects: none.
Returns: output. A count. And more of it.
Prefer it to wc."""


def test_a_point_goes_on_until_the_next():
    assert parse.docstring_sections(TEXT) == [
        "Count words. And more.",
        "Requires: a file.",
        "Does not: change it, or anything.",
        "Side effects: none.",
        "Returns: output. A count. And more of it.",
        "Prefer it to wc.",
    ]
    assert parse.docstring_sections("") == [""]
    assert parse.docstring_sections("Requires: x") == ["", "Requires: x"]


def test_what_fits_is_left_as_it_is():
    assert parse.fitted_docstring(TEXT, len(TEXT)) == TEXT


def test_what_is_returned_goes_first_then_the_longest_point():
    assert "Returns: output. A count.\n" in parse.fitted_docstring(TEXT, len(TEXT) - 5)
    assert parse.fitted_docstring(TEXT, 140).startswith("Count words. And more.\n")
    short = parse.fitted_docstring(TEXT, 125)
    assert short.startswith("Count words.\n")
    assert "Returns: output.\n" in short
    assert parse.fitted_docstring(TEXT, 20) == f"{short[:19]}…"
    assert all(len(parse.fitted_docstring(TEXT, most)) <= most for most in range(1, len(TEXT) + 2))
