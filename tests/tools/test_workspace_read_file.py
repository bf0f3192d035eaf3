"""workspace_read_file: the authoritative text of a docPath."""

from __future__ import annotations

import pytest

from rye.call.results import MAX_OUTPUT_BYTES
from support.workspace_calls import read, sha


def rows(answer):
    return answer["output"].split("\n")[1 : answer["result"]["endLine"] - answer["result"]["startLine"] + 2]


@pytest.mark.parametrize(
    ("data", "terminator", "final", "count"),
    [
        (b"a\nb\n", "lf", True, 2),
        (b"a\r\nb", "crlf", False, 2),
        (b"a\r\nb\n", "mixed", True, 2),
        (b"a", "none", False, 1),
        (b"", "none", False, 0),
        (b"\xef\xbb\xbfa\n", "lf", True, 1),
        (b"\xff\xfe" + "a\r\n\u0a0a\r\n".encode("utf-16-le"), "crlf", True, 2),
    ],
)
def test_what_is_told_of_a_file(project, data, terminator, final, count):
    (project / "File.txt").write_bytes(data)
    answer = read(project, "file.txt")
    told = answer["result"]
    assert (told["terminator"], told["finalNewline"], told["totalLines"]) == (terminator, final, count)
    assert told["sha256"] == sha(data)
    assert (told["path"], told["docPath"], told["source"]) == ("File.txt", "file.txt", "disk")
    assert answer["output"].split("\n")[0].startswith(f"file.txt sha256={sha(data)} lines={count}")


def test_lines_are_numbered_from_1(project):
    (project / "f").write_bytes(b"a\n\n  b: c\n")
    assert rows(read(project, "f")) == ["1: a", "2: ", "3:   b: c"]


def test_a_window_names_the_call_that_continues(project):
    (project / "f").write_bytes(b"".join(b"%d\n" % number for number in range(1, 11)))
    answer = read(project, "f", offset=3, limit=2)
    assert rows(answer) == ["3: 3", "4: 4"]
    assert answer["truncated"]
    assert answer["next_offset"] == 5
    said = '[tool_result: 2 of 10 lines; 6 more omitted. Call workspace_read_file(docPath="f", offset=5) to see more.]'
    assert answer["output"].split("\n")[-1] == said
    assert read(project, "f", offset=9)["truncated"] is False
    assert read(project, "f", offset=11)["code"] == "bad_offset"


def test_a_long_file_is_cut_by_bytes_and_can_be_read_to_its_end(project):
    lines = [f"{number:05} " + "x" * 90 for number in range(3_000)]
    (project / "f").write_text("\n".join(lines) + "\n")
    got, at = [], 1
    while at:
        answer = read(project, "f", offset=at, limit=100_000)
        assert len(answer["output"].encode()) <= MAX_OUTPUT_BYTES
        got += [row.partition(": ")[2] for row in rows(answer)]
        at = answer.get("next_offset")
    assert got == lines


def test_a_long_line_is_shortened_visibly(project):
    (project / "f").write_text("x" * 5_000 + "\n")
    assert rows(read(project, "f"))[0].endswith("… [line shortened: 2,000 of 5,000 characters shown]")


def test_an_active_file_needs_not_be_on_the_disk(project):
    active = [{"docPath": "new/file.py", "content": "é\r\n"}]
    told = read(project, "new/file.py", activeFiles=active)["result"]
    assert (told["source"], told["path"], told["sha256"]) == ("active", None, sha("é\r\n".encode()))
    assert told["terminator"] == "crlf"
    assert read(project, "new/other.py", activeFiles=active)["code"] == "file_not_found"


def test_an_active_file_is_known_by_the_file_that_it_names(project):
    (project / "App.py").write_bytes(b"disk\n")
    active = [{"docPath": "project/app.py", "content": "editor\n"}]
    assert rows(read(project, "app.py", activeFiles=active)) == ["1: editor"]


@pytest.mark.parametrize(("name", "data"), [("b.bin", b"\0\1"), ("missing", None)])
def test_refusals_are_failed_envelopes(project, name, data):
    if data is not None:
        (project / name).write_bytes(data)
    answer = read(project, name)
    assert answer["errors"][0]["code"] == answer["code"] == ("binary_file" if data else "file_not_found")


def test_text_that_is_no_unicode(project):
    assert read(project, "f", activeFiles=[{"docPath": "f", "content": "\ud800"}])["code"] == "unencodable"


def test_a_folder_is_told_to_be_no_file(project):
    (project / "folder").mkdir()
    error = read(project, "folder")["error"]
    assert error.startswith("The docPath folder is no file.")
    assert "Did you mean folder?" not in error
