"""Positions of the protocol against a slow and obvious count, for every kind of line end and for characters of two units."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.lsp.positions import Edit, Positions, with_edits

TEXT = st.text(st.sampled_from("ab é日😀\u2028\x0c\n\r\t"), max_size=30)


def slow_lines(text):
    """Split as the protocol says; each line with its own end."""
    parts = re.split(r"(\r\n|\r|\n)", text)
    return ["".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]


@given(TEXT, st.data())
def test_a_position_and_back_is_the_same_offset(text, data):
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        offset += 1
    positions = Positions(text)
    assert positions.offset(positions.at(offset)) == offset


@given(TEXT, st.integers(0, 70), st.integers(0, 70))
def test_columns_count_utf_16_units_and_stop_at_the_lines_end(text, line, units):
    lines = slow_lines(text)
    line = min(line, len(lines) - 1)
    body = lines[line].rstrip("\r\n")
    expected = 0
    while expected < len(body) and len(body[:expected].encode("utf-16-le")) // 2 < units:
        expected += 1
    found = Positions(text).offset({"line": line, "character": units})
    assert found == sum(map(len, lines[:line])) + expected


@given(TEXT, st.data())
def test_lines_of_this_project_end_at_newlines_alone(text, data):
    offset = data.draw(st.integers(0, len(text)))
    line, column = Positions(text).line(offset)
    assert line == text[:offset].count("\n") + 1
    assert column == len(text[:offset].rpartition("\n")[2]) + 1
    assert Positions(text).start(line) == offset - column + 1


@given(TEXT, st.data())
def test_edits_change_what_they_name_and_nothing_else(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edits = [Edit(one, other, f"<{at}>") for at, (one, other) in enumerate(zip(cuts[::2], cuts[1::2], strict=False))]
    kept = []
    at = 0
    for edit in edits:
        kept.append(text[at : edit.start])
        at = edit.stop
    expected = "".join(part + edit.text for part, edit in zip(kept, edits, strict=True)) + text[at:]
    assert with_edits(text, edits) == expected


def test_edits_that_overlap_are_refused():
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 2}}
    other = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 3}}
    with pytest.raises(ValueError, match="overlap"):
        Positions("abcd").edits([{"range": span, "newText": ""}, {"range": other, "newText": ""}])


def test_a_line_past_the_end_is_the_last():
    assert Positions("a\nb").offset({"line": 9, "character": 9}) == 3
