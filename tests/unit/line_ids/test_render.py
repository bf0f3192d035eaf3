"""White space made visible."""

from __future__ import annotations

import pytest

from rye.line_ids.render import reveal


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("a\tb", "a→\tb"),
        ("a  ", "a··"),
        ("a \t ", "a·→\t·"),
        ("  a", "  a"),
        ("   ", "···"),
        ("a\rb", "a␍b"),
        ("a\u00a0b", "a<U+00A0>b"),
        ("a\u2003b", "a<U+2003>b"),
        ("a\u2028b\u2029", "a<U+2028>b<U+2029>"),
        ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
        ("a\u202eb", "a<U+202E>b"),
        ("a\x0cb\x0b\x85", "a<U+000C>b<U+000B><U+0085>"),
        ("\x1b[31mred\x07\x7f\x9b", "<U+001B>[31mred<U+0007><U+007F><U+009B>"),
        ("naïve 日本 🙂", "naïve 日本 🙂"),
    ],
)
def test_what_hides_is_shown(text, shown):
    assert reveal(text) == shown


def test_a_crlf_is_shown_behind_the_line():
    assert reveal("a ", crlf=True) == "a·␍"
