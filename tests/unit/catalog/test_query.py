"""Queries: what is well formed has one reading, what is not is refused with its place."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.catalog.query import Both, Either, Not, Phrase, Word, is_plain, parse, words_of
from rye.errors import UsageError

A, B, C = Word("a"), Word("b"), Word("c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a", A),
        ("a b", Both((A, B))),
        ("a AND b", Both((A, B), True)),
        ("a OR b c", Either((A, Both((B, C))))),
        ("(a OR b) c", Both((Either((A, B)), C))),
        ("NOT a", Not(A)),
        ("a NOT b", Both((A, Not(B)))),
        ("a AND NOT (b OR c)", Both((A, Not(Either((B, C)))), True)),
        ('"a b" c', Both((Phrase("a b"), C))),
        ("sign* *ing", Both((Word("sign*"), Word("*ing")))),
        ("a ? b", Both((A, B))),
        ("a or b", Both((A, Word("or"), B))),
        ("((a))", A),
        ("*", None),
        (" * ", None),
    ],
)
def test_a_query_has_one_reading(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("AND", 1),
        ("OR", 1),
        ("NOT", 1),
        ("(", 1),
        (")", 1),
        ("()", 1),
        ("a)b", 2),
        ("a AND", 3),
        ("a OR OR b", 3),
        ("(a", 1),
        ('"', 1),
        ('a "b', 3),
        ('""', 1),
        ('"?"', 1),
        ("***", 1),
        ("?", 1),
        ("AND a", 1),
        ("a AND OR b", 3),
        ("NOT ?", 1),
        ("(" * 40 + "a" + ")" * 40, 34),
        ("a (NOT)", 4),
    ],
)
def test_what_is_not_well_formed_is_refused_and_its_place_shown(text, position):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.code == "bad_query"
    assert caught.value.details == {"position": position}


@pytest.mark.parametrize("text", ["", "  ", "\t\n", "a" * 1_001])
def test_nothing_and_too_much_are_refused(text):
    with pytest.raises(UsageError):
        parse(text)


def test_the_words_asked_for_are_not_those_excluded():
    assert words_of(parse('a "b c" NOT d OR e')) == [A, Phrase("b c"), Word("e")]
    assert is_plain(parse("a b"))
    assert not is_plain(parse("a OR b"))
    assert not is_plain(parse("a AND b"))
    assert not is_plain(parse('"a b"'))


@given(st.text(alphabet='ab "()*?ANDORNOT', max_size=40))
def test_any_text_is_read_or_refused(text):
    with suppress(UsageError):
        parse(text)
