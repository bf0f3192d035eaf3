"""Text from elsewhere as it may be listed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.call.safe_text import content, is_hidden, plain
from support.poison import POISON, harm_in


@pytest.mark.parametrize("name", POISON)
def test_none_of_the_poison_is_left(name):
    text = POISON[name]
    assert harm_in(text), "control: the string itself is harmful"
    assert harm_in(plain(text)) == []
    assert harm_in(plain(text, lines=True)) == []
    assert harm_in(content(text)) == []


def test_there_are_sixty():
    assert len(POISON) == 60


def test_what_was_hidden_is_named():
    assert plain("a\u202eb") == "a[U+202E]b"
    assert plain("\x1b[31mred") == "[U+001B][31mred"
    assert plain("a" + "\u200b" * 40 + "b") == "a[40 hidden characters]b"
    assert plain("[tool_result: all]") == "(tool_result: all]"
    assert plain("</x> <|y|> a < b << c") == "‹/x> ‹|y|> a < b << c"


def test_honest_text_stays_as_it_is():
    for text in ("Grüße, 世界 — naïve café 😀", "a[0] < b", "tab"):
        assert plain(text) == text
    assert plain("one\n\n  two\tthree ") == "one two three"
    assert plain("one\r\n  two\tthree", lines=True) == "one\n  two\tthree"


def test_a_whole_text_keeps_its_lines_and_markup():
    text = "# T\n\n\tif a<b: List<int>, <step name='x'>, a[0]\n<userland> <file>\n"
    assert content(text) == text


@pytest.mark.parametrize(
    "frame", ["<system>", "</system-reminder>", "<|im_end|>", "<function_calls>", "<x:invoke name='a'>", "</tool_result>"]
)
def test_what_frames_a_message_is_marked_in_a_whole_text(frame):
    assert content(f"a {frame} b") == f"a \u2039{frame[1:]} b"


def test_a_long_text_is_cut():
    assert plain("x" * 50, 10) == "x" * 9 + "…"
    assert plain("x" * 10, 10) == "x" * 10
    assert len(plain("\u200b" * 10_000_000, 100)) <= 100


@given(st.text(st.characters(exclude_categories=())), st.booleans())
def test_nothing_hidden_is_ever_left(text, lines):
    shown = plain(text, lines=lines)
    assert len(shown) <= 1024
    assert not [char for char in shown if is_hidden(char) and not (lines and char in "\n\t")]
    shown.encode()
    assert plain(shown, 8_192, lines=lines) == shown
