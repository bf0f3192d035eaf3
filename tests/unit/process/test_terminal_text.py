"""Output of commands as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.process import terminal_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain \xc3\xa9\t\n", "plain é\t\n"),
        (b"\x1b[1;31mred\x1b[0m \x1b[38:2::1:2:3mrgb\x1b[m", "red rgb"),
        (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        (b"\x1bPq#0;2\x1b\\sixel\x1b(B\x1b=\x1b7", "sixel"),
        (b"\xc2\x9b31mC1", "C1"),
        (b"end\x1b[3", "end"),
        (b"\x1b]never ended\nnext", "\\x1b]never ended\nnext"),
        (b"10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        (b"10%\r50%\r", "50%"),
        (b"abc\b\b\bxyz\n", "xyz\n"),
        (b"\b\bx", "x"),
        (b"\xff\xfe\x80", "\\xff\\xfe\\x80"),
        (b"\x00\x07\x7f", "\\x00\\x07\\x7f"),
        ("\u202eevil\u200b".encode(), "<U+202E>evil<U+200B>"),
        ("👩\u200d💻".encode(), "👩\u200d💻"),
        (b"", ""),
    ],
)
def test_what_is_shown(data, text):
    assert terminal_text.plain(data) == text


def test_endless_escapes_take_no_endless_time():
    for evil in (b"\x1b[" + b"1;" * 100_000, b"\x1b]" * 100_000, b"\x1b" * 200_000, b"\r" * 200_000, b"\b" * 200_000):
        assert len(terminal_text.plain(evil)) <= len(evil) * 4


@given(
    st.lists(st.sampled_from([b"a", b"\xc3", b"\xa9", b"\x1b", b"[", b"3", b"m", b"]", b"\x07", b"\n", b"\xff"]), max_size=40)
)
def test_pieces_give_the_same_text_as_the_whole(pieces):
    reader = terminal_text.Plain()
    assert "".join(map(reader.feed, pieces)) + reader.rest() == terminal_text.plain(b"".join(pieces))


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode), st.integers(1, 200))
def test_a_part_fits_and_says_how_much_it_is(data, room):
    for part, taken in (
        (terminal_text.first(data, room), data[: terminal_text.first(data, room)[1]]),
        (terminal_text.last(data, room), data[len(data) - terminal_text.last(data, room)[1] :]),
    ):
        assert len(part[0].encode()) <= room
        assert part[0] == terminal_text.plain(taken)
    if terminal_text.fits(terminal_text.plain(data), room):
        assert terminal_text.first(data, room) == terminal_text.last(data, room) == (terminal_text.plain(data), len(data))


def test_parts_end_at_lines_and_a_line_too_long_is_cut_between_characters():
    # A line counts for six bytes at least.
    assert terminal_text.first(b"one\ntwo\nthree\n", 13) == ("one\ntwo\n", 8)
    assert terminal_text.last(b"one\ntwo\nthree\n", 12) == ("two\nthree\n", 10)
    assert terminal_text.first("éééé".encode(), 5) == ("éé", 4)
    assert terminal_text.last("éééé".encode(), 5) == ("éé", 4)
    assert terminal_text.first(b"\xff\xff", 5) == ("\\xff", 1)
