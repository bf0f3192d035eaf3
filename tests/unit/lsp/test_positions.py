"""Positions of the protocol against a slow and obvious count, for every kind of line end and for characters of two units."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.lsp import positions

TEXT = st.text(st.sampled_from("ab é日😀\u2028\x0c\n\r\t"), max_size=30)


def slow_lines(text):
    """Split as the protocol says; each line with its own end."""
    parts = re.split(r"(\r\n|\r|\n)", text)
    return ["".join(parts[at : at + 2]) for at in range(0, len(parts), 2)]


@given(TEXT, st.integers(0, 70), st.integers(0, 70))
def test_columns_count_utf_16_units_and_stop_at_the_lines_end(text, line, units):
    lines = slow_lines(text)
    line = min(line, len(lines) - 1)
    body = lines[line].rstrip("\r\n")
    expected = 0
    while expected < len(body) and len(body[:expected].encode("utf-16-le")) // 2 < units:
        expected += 1
    found = positions.Positions(text).offset({"line": line, "character": units})
    assert found == sum(map(len, lines[:line])) + expected


@given(TEXT, st.data())
def test_an_offset_has_a_position_of_the_protocol_and_a_line_of_this_project(text, data):
    offset = data.draw(st.integers(0, len(text)))
    found = positions.Positions(text)
    # Lines of this project end at newlines alone.
    line, column = found.line(offset)
    assert (line, column) == (text[:offset].count("\n") + 1, len(text[:offset].rpartition("\n")[2]) + 1)
    assert found.start(line) == offset - column + 1
    within = text[offset - 1 : offset + 1] == "\r\n"
    assert found.offset(found.at(offset + within)) == offset + within


@given(TEXT, st.data())
def test_edits_change_what_they_name_and_nothing_else(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pairs = [*zip(cuts[::2], cuts[1::2], strict=False)]
    expected, at = "", 0
    for number, (start, stop) in enumerate(pairs):
        expected, at = expected + text[at:start] + f"<{number}>", stop
    edits = [positions.Edit(start, stop, f"<{number}>") for number, (start, stop) in enumerate(pairs)]
    assert positions.with_edits(text, edits) == expected + text[at:]


@pytest.mark.parametrize("name", ["a b.zz", "é.zz", "%41.zz", "a#b?c.zz", "\udcff.zz", "a\nb.zz"])
def test_any_name_survives_its_uri(name):
    assert positions.path_of(positions.uri_of(f"/x/{name}")) == f"/x/{name}"


@pytest.mark.parametrize("uri", ["http://x/a", "untitled:a", "file://host/a", "", "a.zz"])
def test_what_is_no_local_file_has_no_path(uri):
    assert positions.path_of(uri) is None
