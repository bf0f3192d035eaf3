"""scroll_file: swe-tooling 4.2.2, convention 2."""

from __future__ import annotations

import pytest

from support.calling import done, refused

OPEN, SCROLL = "rye/swe/open_file_chunk", "rye/swe/scroll_file"


@pytest.fixture
def file(project):
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 424)))
    return project


def span(data):
    return data["start_line"], data["end_line"]


def test_windows_overlap_by_two_lines_down_and_up(file):
    assert span(done(SCROLL, file, path="a.txt")) == (1, 100)
    assert span(done(SCROLL, file, path="a.txt", direction="+")) == (99, 198)
    assert span(done(SCROLL, file, path="a.txt", direction="+")) == (197, 296)
    assert span(done(SCROLL, file, path="a.txt", direction="-")) == (99, 198)
    assert span(done(SCROLL, file, path="a.txt", direction="-")) == (1, 100)
    assert span(done(SCROLL, file, path="a.txt", direction="-")) == (1, 100)


def test_the_output_is_that_of_open(file):
    done(OPEN, file, path="a.txt", line=200)
    assert done(SCROLL, file, path="a.txt")["output"].startswith("--- a.txt (lines 248-347) ---\n248: line 248\n")


def test_no_line_is_passed_over_whatever_was_opened(file):
    for asked in ({"line": 10}, {"start": 5, "end": 7}, {"start": 1, "end": 200}, {"start": 5, "end": 5}):
        before = done(OPEN, file, path="a.txt", **asked)
        after = done(SCROLL, file, path="a.txt")
        assert before["start_line"] < after["start_line"] <= before["end_line"] + 1


def test_at_the_end_it_says_so_and_goes_on_when_the_file_grew(file):
    done(OPEN, file, path="a.txt", start=400)
    assert "has 423 lines" in refused("end_of_file", SCROLL, file, path="a.txt")
    with (file / "a.txt").open("a") as more:
        more.write("new\n" * 50)
    assert span(done(SCROLL, file, path="a.txt")) == (422, 473)


def test_a_file_that_became_shorter_shows_its_end(file):
    done(OPEN, file, path="a.txt", line=300)
    (file / "a.txt").write_text("x\n" * 150)
    assert span(done(SCROLL, file, path="a.txt")) == (51, 150)


def test_each_file_has_its_own_window_whatever_its_spelling(file):
    (file / "b.txt").write_text("y\n" * 300)
    (file / "link").symlink_to("a.txt")
    done(OPEN, file, path="a.txt", start=101)
    done(OPEN, file, path="b.txt")
    assert span(done(SCROLL, file, path="link")) == (199, 298)
    assert span(done(SCROLL, file, path="./b.txt")) == (99, 198)


def test_without_view_state_it_begins_at_the_top(file, monkeypatch):
    monkeypatch.setenv("RAGIX_VIEW_STATE", "off")
    done(OPEN, file, path="a.txt", line=300)
    assert span(done(SCROLL, file, path="a.txt")) == (1, 100)
    assert not (file / ".ragix").exists()
