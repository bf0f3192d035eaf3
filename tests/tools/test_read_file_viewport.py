"""read_file_viewport: every rule of aci's paragraph on it."""

from __future__ import annotations

import os

import pytest

from support.calling import done, refused

VIEW = "rye/swe/read_file_viewport"


@pytest.fixture
def file(project):
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 424)))
    return project


def test_a_window_has_right_aligned_numbers_and_a_footer(file):
    lines = done(VIEW, file, path="a.txt", offset=98, limit=3)["output"].split("\n")
    assert lines == [
        " 99  line 99",
        "100  line 100",
        "101  line 101",
        "[file a.txt; lines 99-101 of 423; MORE below — call with offset=101; MORE above — call with offset=0]",
    ]


def test_the_first_window_has_100_lines_and_nothing_above(file):
    data = done(VIEW, file, path="a.txt")
    assert data["output"].split("\n")[-1] == "[file a.txt; lines 1-100 of 423; MORE below — call with offset=100]"
    assert (data["line_count"], data["next_offset"], data["truncated"]) == (100, 100, True)


def test_following_the_footer_shows_every_line_once_and_ends(file):
    shown, offset = [], 0
    while offset is not None:
        data = done(VIEW, file, path="a.txt", offset=offset, limit=150)
        shown += data["output"].split("\n")[:-1]
        offset = data.get("next_offset")
    assert [line.strip() for line in shown] == [f"{n}  line {n}" for n in range(1, 424)]
    assert data["output"].endswith("[file a.txt; lines 301-423 of 423; end of file; MORE above — call with offset=0]")


@pytest.mark.parametrize(("limit", "count"), [(0, 1), (-5, 1), (500, 423), (9_999, 423)])
def test_the_limit_is_clamped(file, limit, count):
    assert done(VIEW, file, path="a.txt", limit=limit)["line_count"] == count


def test_500_lines_are_the_most(file):
    (file / "b.txt").write_text("x\n" * 900)
    assert done(VIEW, file, path="b.txt", limit=800)["line_count"] == 500


def test_errors_name_the_valid_range_and_tell_wrong_kinds_apart(file):
    assert "offset 423 out of range (0..422)" in refused("out_of_range", VIEW, file, path="a.txt", offset=423)
    refused("out_of_range", VIEW, file, path="a.txt", offset=-1)
    refused("file_not_found", VIEW, file, path="b.txt")
    os.mkfifo(file / "pipe")
    assert "a named pipe" in refused("not_regular_file", VIEW, file, path="pipe")


def test_an_empty_file_is_its_own_end(file):
    (file / "empty").write_bytes(b"")
    assert done(VIEW, file, path="empty")["output"] == "[file empty; lines 0-0 of 0; end of file]"
