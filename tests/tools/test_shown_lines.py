"""Edits by line number: a line that was shown and is another one now is refused; one that was never shown goes through."""

from __future__ import annotations

import pytest

from support.calling import done, refused

OPEN, RANGE, INSERT, UNDO = "rye/swe/open_file_chunk", "rye/swe/edit_range", "rye/swe/insert_at", "rye/swe/undo_edit"


@pytest.fixture
def file(project):
    path = project / "st.txt"
    path.write_bytes(b"a\nb\nc\nd\n")
    return path


def test_a_shown_line_that_another_program_moved_is_refused_with_what_is_there_now(project, file):
    done(OPEN, project, path="st.txt")
    file.write_bytes(b"new\n" + file.read_bytes())
    error = refused("lines_changed", RANGE, project, path="st.txt", start_line=3, end_line=3, new_text="C!")
    assert "3: b" in error
    assert file.read_bytes() == b"new\na\nb\nc\nd\n"
    # What the refusal showed was shown: the same number now means that line.
    done(RANGE, project, path="st.txt", start_line=4, end_line=4, new_text="C!")
    assert file.read_bytes() == b"new\na\nb\nC!\nd\n"


def test_control_nothing_shown_and_nothing_changed_go_through(project, file):
    done(RANGE, project, path="st.txt", start_line=3, end_line=3, new_text="C!")
    assert file.read_bytes() == b"a\nb\nC!\nd\n"
    done(OPEN, project, path="st.txt")
    done(RANGE, project, path="st.txt", start_line=2, end_line=2, new_text="B!")
    assert file.read_bytes() == b"a\nB!\nC!\nd\n"


def test_an_insertion_names_the_line_that_it_goes_before(project, file):
    done(OPEN, project, path="st.txt")
    file.write_bytes(b"new\n" + file.read_bytes())
    refused("lines_changed", INSERT, project, path="st.txt", line=3, new_text="x")


def test_a_change_of_other_lines_is_no_reason(project, file):
    done(OPEN, project, path="st.txt")
    file.write_bytes(b"a\nb\nc\nDIFFERENT\nmore\n")
    done(RANGE, project, path="st.txt", start_line=2, end_line=3, new_text="x")
    assert file.read_bytes() == b"a\nx\nDIFFERENT\nmore\n"


def test_own_edits_are_followed_to_the_new_numbers(project, file):
    done(OPEN, project, path="st.txt")
    done(INSERT, project, path="st.txt", line=1, new_text="1\n2\n3\n")
    done(RANGE, project, path="st.txt", start_line=7, end_line=7, new_text="D")
    done(RANGE, project, path="st.txt", start_line=1, end_line=3, new_text="")
    done(RANGE, project, path="st.txt", start_line=4, end_line=4, new_text="DD")
    assert file.read_bytes() == b"a\nb\nc\nDD\n"
    done(UNDO, project)
    done(RANGE, project, path="st.txt", start_line=1, end_line=1, new_text="A")
    assert file.read_bytes() == b"A\nb\nc\nD\n"


def test_lines_of_an_earlier_window_are_remembered_too(project, file):
    file.write_bytes(b"".join(b"%d\n" % n for n in range(1, 401)))
    done(OPEN, project, path="st.txt", start=1, end=100)
    done(OPEN, project, path="st.txt", start=200, end=300)
    file.write_bytes(b"new\n" + file.read_bytes())
    refused("lines_changed", RANGE, project, path="st.txt", start_line=50, end_line=50, new_text="x")
    refused("lines_changed", RANGE, project, path="st.txt", start_line=250, end_line=250, new_text="x")
    done(RANGE, project, path="st.txt", start_line=150, end_line=150, new_text="x")


def test_without_a_memory_of_views_they_go_through(project, file, monkeypatch):
    monkeypatch.setenv("RAGIX_VIEW_STATE", "off")
    done(OPEN, project, path="st.txt")
    file.write_bytes(b"new\n" + file.read_bytes())
    done(RANGE, project, path="st.txt", start_line=3, end_line=3, new_text="x")
