"""open_file_chunk as a model calls it: swe-tooling 4.1, 4.2.1; aci 1, 3, 4."""

from __future__ import annotations

import pytest

from support.calling import done, refused

OPEN = "rye/swe/open_file_chunk"


def numbered(project, count, name="a.txt"):
    (project / name).write_text("".join(f"line {n}\n" for n in range(1, count + 1)))


def window(data):
    return data["output"].split("\n")


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({}, 1, 100),
        ({"line": 200}, 150, 249),
        ({"line": 10}, 1, 59),
        ({"line": 420}, 370, 423),
        ({"line": 1}, 1, 50),
        ({"start": 7, "end": 9}, 7, 9),
        ({"start": 300}, 300, 399),
        ({"start": 400, "end": 9_999}, 400, 423),
        ({"end": 3}, 1, 3),
    ],
)
def test_windows_are_those_of_the_interface(project, asked, first, last):
    numbered(project, 423)
    data = done(OPEN, project, path="a.txt", **asked)
    lines = window(data)
    assert lines[0] == f"--- a.txt (lines {first}-{last}) ---"
    assert lines[1 : last - first + 2] == [f"{n}: line {n}" for n in range(first, last + 1)]
    assert (data["start_line"], data["end_line"], data["total_lines"], data["truncated"]) == (first, last, 423, False)


def test_an_explicit_window_has_at_most_200_lines_and_says_that_it_was_cut(project):
    numbered(project, 423)
    data = done(OPEN, project, path="a.txt", start=1, end=300)
    assert (data["end_line"], data["truncated"], data["next_line"]) == (200, True, 201)


def test_what_lies_below_is_said_with_the_call_that_shows_it(project):
    numbered(project, 423)
    data = done(OPEN, project, path="a.txt")
    assert window(data)[-1] == (
        '[tool_result: 100 of 423 lines; 323 more omitted. Call open_file_chunk(path="a.txt", start=101) to see more.]'
    )
    assert window(done(OPEN, project, path="a.txt", start=101))[1] == "101: line 101"


def test_a_short_file_shows_what_there_is(project):
    numbered(project, 3)
    assert done(OPEN, project, path="a.txt")["output"] == "--- a.txt (lines 1-3) ---\n1: line 1\n2: line 2\n3: line 3"
    (project / "empty").write_bytes(b"")
    assert done(OPEN, project, path="empty")["output"] == "--- empty (lines 0-0) ---\n[empty file]"
    assert "the file is empty. insert_at with line=1" in refused("out_of_range", OPEN, project, path="empty", line=1)


def test_lines_that_are_not_there_are_refused_with_the_valid_range(project):
    numbered(project, 424)
    assert "line 500 out of range (1..424)" in refused("out_of_range", OPEN, project, path="a.txt", line=500)
    assert "start 425 out of range (1..424)" in refused("out_of_range", OPEN, project, path="a.txt", start=425)
    assert "end 3 lies before start 5" in refused("bad_window", OPEN, project, path="a.txt", start=5, end=3)
    refused("bad_window", OPEN, project, path="a.txt", line=5, end=9)


def test_each_wrong_path_is_refused_in_its_own_words(project):
    numbered(project, 3, "app.py")
    (project / "src").mkdir()
    assert "Did you mean app.py?" in refused("file_not_found", OPEN, project, path="ap.py")
    refused("is_directory", OPEN, project, path="src")
    refused("path_outside", OPEN, project, path="../x")


def test_terminators_and_encodings_are_read_as_everywhere(project):
    (project / "crlf").write_bytes(b"a\x0cb\r\nc\xe2\x80\xa8d\r\n")
    assert done(OPEN, project, path="crlf")["output"].endswith("1: a\x0cb\n2: c\u2028d")
    (project / "wide").write_bytes("\ufeffä\nß\n".encode("utf-16-le"))
    assert window(done(OPEN, project, path="wide"))[1:] == ["1: ä", "2: ß"]


def test_ids_come_when_asked_for_and_serve_an_edit(project):
    numbered(project, 300)
    data = done(OPEN, project, path="a.txt", line=200, line_ids=True)
    row = next(line for line in window(data) if line.startswith("200: "))
    done("edit_lines", project, file_path="a.txt", changes=[{"line_id": row[10:16], "new_content": "changed"}])
    assert (project / "a.txt").read_text().split("\n")[199] == "changed"


def test_a_large_file_shows_the_same_window_known_or_not_ascii_or_not(project):
    for name, word in (("plain", "word"), ("other", "wörd")):
        lines = [f"{n} {word} {'x' * 60}" for n in range(90_000)]
        (project / name).write_text("\n".join(lines))
        expected = [f"{n}: {lines[n - 1]}" for n in range(69_951, 70_051)]
        assert window(done(OPEN, project, path=name, line=70_001))[1:101] == expected
        assert done(OPEN, project, path=name, line=90_000)["total_lines"] == 90_000
        done(OPEN, project, path=name, line=3, line_ids=True)
        assert window(done(OPEN, project, path=name, line=70_001))[1:101] == expected


def test_text_that_would_be_too_much_is_cut_at_a_line(project):
    (project / "wide").write_text("".join(f"{'x' * 1_900}\n" for _ in range(60)))
    data = done(OPEN, project, path="wide")
    assert data["truncated"]
    assert len(data["output"]) <= 51_200
    assert data["next_line"] == data["end_line"] + 1
    (project / "long").write_text("y" * 5_000)
    assert "[line shortened: 2,000 of 5,000 characters shown]" in done(OPEN, project, path="long")["output"]
