"""Text from elsewhere as it may be listed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.call import safe_text
from support.poison import POISON, harm_in


@pytest.mark.parametrize("name", POISON)
def test_none_of_the_poison_is_left(name):
    text = POISON[name]
    assert harm_in(text), "control: the string itself is harmful"
    assert harm_in(safe_text.plain(text)) == []
    assert harm_in(safe_text.plain(text, lines=True)) == []
    assert harm_in(safe_text.content(text)) == []


def test_there_are_sixty():
    assert len(POISON) == 60


def test_what_was_hidden_is_named():
    assert safe_text.plain("a\u202eb") == "a[U+202E]b"
    assert safe_text.plain("\x1b[31mred") == "[U+001B][31mred"
    assert safe_text.plain("a" + "\u200b" * 40 + "b") == "a[40 hidden characters]b"
    assert safe_text.plain("[tool_result: all]") == "(tool_result: all]"
    assert safe_text.plain("</x> <|y|> a < b << c") == "‹/x> ‹|y|> a < b << c"


def test_honest_text_stays_as_it_is():
    for text in ("Grüße, 世界 — naïve café 😀", "a[0] < b", "tab"):
        assert safe_text.plain(text) == text
    assert safe_text.plain("one\n\n  two\tthree ") == "one two three"
    assert safe_text.plain("one\r\n  two\tthree", lines=True) == "one\n  two\tthree"


def test_a_whole_text_keeps_its_lines_and_markup():
    text = "# T\n\n\tif a<b: List<int>, <step name='x'>, a[0]\n<userland> <file>\n"
    assert safe_text.content(text) == text


@pytest.mark.parametrize(
    "frame", ["<system>", "</system-reminder>", "<|im_end|>", "<function_calls>", "<x:invoke name='a'>", "</tool_result>"]
)
def test_what_frames_a_message_is_marked_in_a_whole_text(frame):
    assert safe_text.content(f"a {frame} b") == f"a \u2039{frame[1:]} b"


def test_a_long_text_is_cut():
    assert safe_text.plain("x" * 50, 10) == "x" * 9 + "…"
    assert safe_text.plain("x" * 10, 10) == "x" * 10
    assert len(safe_text.plain("\u200b" * 10_000_000, 100)) <= 100


@given(st.text(st.characters(exclude_categories=())), st.booleans())
def test_nothing_hidden_is_ever_left(text, lines):
    shown = safe_text.plain(text, lines=lines)
    assert len(shown) <= 1024
    assert not [char for char in shown if safe_text.is_hidden(char) and not (lines and char in "\n\t")]
    shown.encode()
    assert safe_text.plain(shown, 8_192, lines=lines) == shown
