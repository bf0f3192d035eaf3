"""A text for one look is that of `parse`, whatever the content, at every line and offset."""

from __future__ import annotations

import os
import random

import pytest

from rye.workspace import text
from rye.workspace.encoding import UTF8, detect

SEED = 11


def contents():
    dice = random.Random(SEED)
    yield from (b"", b"\n", b"a", b"a\n", b"\r\n\r\n", b"a\r\nb", b"\n\n\nx")
    for ending in (b"\n", b"\r\n"):
        for closed in (True, False):
            body = ending.join(b"x" * dice.randrange(90) for _ in range(15_000))
            yield body + ending * closed
    yield b"y" * 700_000 + b"\n" + b"z" * 300_000
    yield b"a\n" * (1 << 17) + b"b"
    # Characters across the seams of what is read at a time.
    yield from (b"x" * shift + "€ä\U0001f600\n".encode() * 60_000 for shift in range(4))


@pytest.mark.parametrize("number", range(17))
def test_glances_agree_with_parse(tmp_path, number):
    data = [*contents()][number]
    (tmp_path / "f").write_bytes(data)
    whole = text.parse(data, UTF8)
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    streamed = text.streamed(fd, UTF8)
    for other in (text.glanced(data, UTF8), streamed):
        assert (other.count, other.size) == (whole.count, whole.size)
        assert other.lines() == whole.lines()
        dice = random.Random(SEED)
        for _ in range(6):
            start = dice.randrange(whole.count + 1)
            assert other.lines(start, start + 7) == whole.lines(start, start + 7)
            offset = whole.offset(start)
            assert other.offset(start) == offset
            # The end of a file that ends within a line belongs to that line.
            assert other.line_at(offset) == start - (start == whole.count and not data.endswith(b"\n") and data != b"")
            if start < whole.count:
                assert other.line_at(offset + len(whole.lines(start, start + 1)[0]) - 1) == start
    os.close(fd)


def test_wide_texts_are_counted_in_whole_characters():
    data = "\ufeffaĊ\nb਀\nc".encode("utf-16-le")
    glanced = text.glanced(data, detect(data))
    assert (glanced.count, glanced.lines()) == (3, text.parse(data, detect(data)).lines())


LONG = b"a line\n" * 50_000


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\n",
        b"a\0b\n",
        b"\xef\xbb\xbfa\n",
        LONG + b"\xff\n" + LONG,
        LONG + b"\xc3",
        "ä\n".encode() + LONG + b"\xe2\x82",
        LONG + b"\xed\xa0\x80\n",
        "ä\n".encode("utf-16"),
    ],
)
def test_what_is_not_plainly_utf8_is_left_to_the_careful_way(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    assert text.streamed(fd, UTF8) is None
    os.close(fd)
