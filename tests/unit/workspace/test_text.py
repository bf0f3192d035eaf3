"""Bytes and lines: nothing lost, split at the newline only, the same line whether scanned or looked up."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.workspace import encoding
from rye.workspace import text as module

WIDE = [encoding.Encoding("utf-16-le", b"\xff\xfe", b"\n\0"), encoding.Encoding("utf-16-be", b"\xfe\xff", b"\0\n")]
ODD = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\u0a0a\u0a00\u000dab "
STRINGS = st.text(st.sampled_from(ODD), max_size=40)


@given(st.binary(max_size=60))
def test_the_lines_joined_are_the_bytes(data):
    lines = module.split(data, encoding.UTF8)
    assert b"".join(lines) == data
    assert all(line.endswith(b"\n") for line in lines[:-1])
    assert all(b"\n" not in line[:-1] and line for line in lines)


@given(STRINGS)
def test_only_the_newline_splits(text):
    """Control: `str.splitlines` takes nine other characters for line ends."""
    lines = module.split(text.encode(), encoding.UTF8)
    assert len(lines) == text.count("\n") + bool(text and not text.endswith("\n"))
    assert len("a\x0cb\u2028c\x85d\re".splitlines()) == 5
    assert module.split("a\x0cb\u2028c\x85d\re".encode(), encoding.UTF8) == ["a\x0cb\u2028c\x85d\re".encode()]


@pytest.mark.parametrize("code", WIDE)
@given(text=STRINGS)
def test_utf16_splits_at_the_whole_unit(code, text):
    """U+0A0A and U+0A00 hold newline bytes at every distance."""
    data = text.encode(code.name)
    lines = module.split(data, code)
    assert b"".join(lines) == data
    assert [line.decode(code.name) for line in lines] == [x for x in _kept(text) if x]


def _kept(text):
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + parts[-1:]


@given(st.binary(max_size=50), st.sampled_from([encoding.UTF8, *WIDE]))
def test_any_bytes_parse_and_join_again(data, code):
    data = code.bom + data
    text = module.parse(data, code)
    assert code.bom + b"".join(text.lines()) == data
    assert text.offset(text.count) == len(data)
    assert [text.offset(at) for at in range(text.count)] == [
        len(code.bom) + sum(map(len, text.lines(0, at))) for at in range(text.count)
    ]


@pytest.mark.parametrize("code", [encoding.UTF8, *WIDE])
@given(st.lists(st.text("ab\r\u0a0a", max_size=3), max_size=30), st.data())
def test_any_window_is_cut_out_of_the_file(tmp_path_factory, code, rows, data):
    whole = code.bom + "\n".join(rows).encode(code.name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRIDE", 3)
        patch.setattr(module, "_CHUNK", 7 * len(code.newline))
        text = module.parse(whole, code)
        path = tmp_path_factory.mktemp("text") / "file"
        path.write_bytes(whole)
        fd = os.open(path, os.O_RDONLY)
        try:
            again = module.reopen(fd, code, len(whole), text.count, text.points)
            start, stop = data.draw(st.integers(0, 35)), data.draw(st.integers(0, 35))
            expected = text.lines()[start:stop]
            assert text.lines(start, stop) == again.lines(start, stop) == expected
            assert text.offset(start) == again.offset(start)
        finally:
            os.close(fd)


def test_large_files_are_scanned_in_pieces_and_have_checkpoints():
    data = b"x" * 99 + b"\n"
    text = module.parse(data * 50_000, encoding.UTF8)
    assert text.count == 50_000
    assert len(list(module.chunks(data * 50_000, encoding.UTF8))) == 5
    # At least every STRIDE lines, so that no line is far from one.
    assert max(b - a for a, b in zip(text.points.lines, text.points.lines[1:], strict=False)) <= module.STRIDE
    assert text.lines(49_999) == [data]


@given(st.lists(st.binary(max_size=3).map(lambda x: x.replace(b"\n", b"") + b"\n"), max_size=40), st.data())
def test_the_text_after_edits_is_that_of_the_new_content(lines, data):
    """Moving checkpoints over edits equals scanning the result, also edit after edit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRIDE", 3)
        head = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
        text = module.parse(head + b"".join(lines), encoding.detect(head + b"a\n"))
        for _ in range(3):
            bounds = sorted(data.draw(st.lists(st.integers(0, len(lines)), max_size=8)))
            spans = [*zip(bounds[::2], bounds[1::2], strict=False)]
            spans = [span for at, span in enumerate(spans) if not at or spans[at - 1][1] < span[0]]
            news = [data.draw(st.lists(st.sampled_from([b"new\n", b"\n"]), max_size=7)) for _ in spans]
            edits = [(start, stop, new) for (start, stop), new in zip(spans, news, strict=True)]
            for start, stop, new in reversed(edits):
                lines = [*lines[:start], *new, *lines[stop:]]
            text = text.after(edits, head + b"".join(lines))
            assert text.count == len(lines)
            for at in range(len(lines)):
                assert text.lines(at, at + 1) == [lines[at]]
                assert text.offset(at) == len(head + b"".join(lines[:at]))
            assert [*text.points.lines] == sorted({*text.points.lines})
            assert text.lines() == lines


def test_new_content_is_a_sequence_of_lines():
    for content, lines in {
        "": [],
        "\n": [""],
        "a": ["a"],
        "a\n": ["a"],
        "a\n\n": ["a", ""],
        "\n\n": ["", ""],
        "a\nb": ["a", "b"],
        "a\r\nb\r\n": ["a", "b"],
        **{text: [text] for text in ("a\rb", "a\u2028b\x0cc\x85d", "a\r")},
    }.items():
        assert module.content_lines(content) == lines, content
