"""Changes as strings, moves and copies, find and replace, several files: all or nothing, and one undo takes it back."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.calling import done, refused

from rye.edits import change_forms, find_replace

LINES = [f"line {number}" for number in range(1, 9)]


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    (project / "g.txt").write_text("one\ntwo\n")
    return path


@pytest.fixture
def seen(project, file):
    for name in ("f.txt", "g.txt"):
        done("read", project, file_path=name, line_ids="short")


def edit(project, *changes, **more):
    more = {"line_ids": "short", "diff": False, **more}
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), **more)


def no(code, project, *changes, **more):
    error = refused(code, "edit_lines", project, file_path="f.txt", changes=list(changes), line_ids="short", **more)
    assert "Nothing was written" in error
    return error


def text(path):
    return path.read_text().split("\n")[:-1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("2|x", ["line 1", "x", *LINES[2:]]),
        ("2\tx", ["line 1", "x", *LINES[2:]]),
        ("2-4|x\ny", ["line 1", "x", "y", *LINES[4:]]),
        ("2 - 4|", ["line 1", "", *LINES[4:]]),
        ("2|x\n", ["line 1", "x", "", *LINES[2:]]),
        ("2|a|b", ["line 1", "a|b", *LINES[2:]]),
        ("2+|x", ["line 1", "line 2", "x", *LINES[2:]]),
        ("+2|x", ["line 1", "x", *LINES[1:]]),
        ("end+|x", [*LINES, "x"]),
        ("+start|x", ["x", *LINES]),
        ("2-4 delete", ["line 1", *LINES[4:]]),
        ("2-3 move after 5", ["line 1", "line 4", "line 5", "line 2", "line 3", *LINES[5:]]),
        ("7-8 move before 1", ["line 7", "line 8", *LINES[:6]]),
        ("1 copy after end", [*LINES, "line 1"]),
        ("f.txt:2|x", ["line 1", "x", *LINES[2:]]),
        ({"line_id": 2, "new_content": ["x", ""]}, ["line 1", "x", "", *LINES[2:]]),
        ({"line_id": 2, "new_content": []}, ["line 1", *LINES[2:]]),
        ({"find": "line 3\nline 4\n", "replace": "x\n"}, ["line 1", "line 2", "x", *LINES[4:]]),
        ({"find": "line 3\n", "replace": ""}, ["line 1", "line 2", *LINES[3:]]),
        (
            {"find": "ine", "replace": "INE", "start_line_id": 2, "end_line_id": 3, "count": 2},
            ["line 1", "lINE 2", "lINE 3", *LINES[3:]],
        ),
    ],
)
def test_what_a_change_means(project, file, seen, change, expected):
    edit(project, change)
    assert text(file) == expected
    done("undo", project)
    assert text(file) == LINES


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=5), min_size=1, max_size=4)
)
def test_the_text_of_a_string_is_exact(lines):
    assert change_forms.from_string("7-9|" + "\n".join(lines))["new_content"] == lines


@pytest.mark.parametrize("file", ["", "b.py:", "a:b.py:"])
def test_an_address_may_be_written_as_it_is_shown(file):
    """`[LID:a1b2c3]` holds a colon, and so may a file's name."""
    name = {"file_path": file[:-1]} if file else {}
    for address in ("[LID:a1b2c3]", "LID:a1b2c3"):
        found = change_forms.from_string(f"{file}{address}-{address}|x")
        assert found == {**name, "start_line_id": address, "end_line_id": address, "new_content": ["x"]}
        found = change_forms.from_string(f"{file}{address} move after {file}{address}")
        assert (found["line_id"], found["move_after"], found.get("to_file")) == (address, address, file[:-1] or None)


@pytest.mark.parametrize(
    "text", ["a:" * 50_000, " " * 100_000, "1-" * 50_000 + "|x", ":" * 4_000 + "|", " " * 4_000 + "x", "a " * 2_000]
)
def test_a_long_string_that_is_no_change_is_refused_at_once(text):
    with pytest.raises(ValueError, match="is no change"):
        change_forms.from_string(text)


def test_a_moved_line_keeps_its_address_also_among_twins(project, file):
    file.write_text("same\nsame\nsame\nother\n")
    done("read", project, file_path="f.txt", line_ids="short")
    answer = edit(project, "2 move after 4")["output"]
    assert answer.startswith("4+ -> 2\n")
    shown = done("read", project, file_path="f.txt", line_ids="short")["output"]
    assert [line.partition("\t")[0] for line in shown.split("\n")[:4]] == ["1", "3", "4", "2"]
    edit(project, "2|moved", "3|third")
    assert text(file) == ["same", "third", "other", "moved"]
    done("undo", project)
    done("undo", project)
    edit(project, "2|second")
    assert text(file) == ["same", "second", "same", "other"]


def test_a_move_of_a_long_block_takes_few_words(project, file):
    lines = [f"row {number}" for number in range(1_000)]
    file.write_text("".join(f"{line}\n" for line in lines))
    done("read", project, file_path="f.txt", line_ids="short")
    answer = edit(project, "2-999 move after 1000", "1 copy after end")
    assert text(file) == [lines[0], lines[999], *lines[1:999], lines[0]]
    assert len(answer["output"]) < 400


def test_several_files_change_together_or_not_at_all(project, file, seen):
    before = file.read_bytes()
    error = no("invalid_line_id", project, "2|x", "g.txt:9|y")
    assert "g.txt" in error
    assert (file.read_bytes(), (project / "g.txt").read_text()) == (before, "one\ntwo\n")
    data = edit(project, "2|x", "g.txt:1|ONE", "3-4 move after g.txt:end")
    assert text(file) == ["line 1", "x", *LINES[4:]]
    assert text(project / "g.txt") == ["ONE", "two", "line 3", "line 4"]
    assert [one["file_path"] for one in data["files"]] == ["f.txt", "g.txt"]
    assert "g.txt:\n1 -> 3\n2+ -> 4-5\n" in data["output"]
    edit(project, "g.txt:4|moved")
    done("undo", project)
    done("undo", project, batchId=data["batchId"])
    assert (file.read_bytes(), (project / "g.txt").read_text()) == (before, "one\ntwo\n")


def test_files_are_renamed_and_deleted_among_the_changes(project, file, seen):
    os.chmod(file, 0o755)
    data = edit(project, "2|x", "f.txt rename to src/new.txt", "g.txt delete file")
    new = project / "src/new.txt"
    assert not file.exists()
    assert not (project / "g.txt").exists()
    assert text(new) == ["line 1", "x", *LINES[2:]]
    assert new.stat().st_mode & 0o777 == 0o755
    assert "renamed f.txt to src/new.txt" in data["output"]
    assert "\n2 -> 9\n" in data["output"]
    # The addresses moved along.
    done("edit_lines", project, file_path="src/new.txt", changes=["5|five", "9|X"], line_ids="short")
    assert text(new)[4] == "five"
    done("undo", project)
    done("undo", project)
    assert (text(file), (project / "g.txt").read_text(), new.exists()) == (LINES, "one\ntwo\n", False)
    edit(project, "2|again")


NO_CHANGE = [{"new_content": 7, "line_id": 2}, {"line_id": [7], "new_content": "x"}, {"new_content": "", "nope": 1}, 7]
# Defect 10: a change without IDs succeeded, a reversed range inserted.
MALFORMED = [
    {"new_content": "x"},
    {"start_line_id": 1, "new_content": "x"},
    {"line_id": 1, "after_line_id": 1, "new_content": "x"},
    {"start_line_id": 4, "end_line_id": 2, "new_content": "x"},
    {"after_line_id": 1, "new_content": ""},
    {"line_id": 2},
    {"new_content": "", "find": "a", "replace": "b"},
    *["x", "12", "12-15", "f.txt delete file", "2-4 move after 3", "2-4 move after 4"],
]


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        *[("invalid_parameters", [wrong]) for wrong in NO_CHANGE],
        *[("malformed_change", ["8|x", wrong]) for wrong in MALFORMED],
        ("invalid_line_id", [{"line_id": "start", "new_content": "x"}]),
        # Defect 10: the second of two overlapping changes was dropped silently.
        ("overlapping_changes", ["2|x", "2|y"]),
        ("overlapping_changes", ["2-4|x", "3|y"]),
        ("overlapping_changes", ["1-3|x", "3-5|y"]),
        ("overlapping_changes", ["1-3|x", "1+|y"]),
        ("overlapping_changes", ["2-3 delete", "3 move after 5"]),
        ("file_exists", ["f.txt rename to g.txt"]),
        ("duplicate_file", ["2|x", "./f.txt:3|y"]),
        ("text_count", [{"find": "line", "replace": "x"}]),
        ("text_not_found", [{"find": "nowhere", "replace": "x"}]),
        ("protected_path", ["f.txt rename to .git/hooks/pre-commit"]),
        ("path_outside", ["../x:1|y"]),
    ],
)
def test_what_is_refused(project, file, seen, code, changes):
    before = file.read_bytes()
    error = refused(code, "edit_lines", project, file_path="f.txt", changes=changes, line_ids="short")
    assert file.read_bytes() == before, error
    assert (project / "g.txt").exists()
    if code == "malformed_change":
        assert "Nothing was written" in error
        assert "hange 2" in error or "both edited and deleted" in error
    assert code != "overlapping_changes" or "overlap" in error


def test_of_two_places_that_overlap_none_is_chosen(project):
    (project / "f.txt").write_text("b\na\nb\na\nb\n")
    error = no("text_count", project, {"find": "b\na\nb", "replace": "x"})
    assert "overlap" in error
    # Control: more of the text says which; and where all that repeats is replaced, it makes no difference.
    edit(project, {"find": "a\nb\na\nb", "replace": "x"})
    assert text(project / "f.txt") == ["b", "x"]
    (project / "f.txt").write_text("        deep\n")
    edit(project, {"find": "  ", "replace": "\t", "count": 4}, on_stale="rebase")
    assert text(project / "f.txt") == ["\t\t\t\tdeep"]


def test_several_places_of_a_text_are_shown_with_their_addresses(project, file):
    error = no("text_count", project, {"find": "line", "replace": "x"})
    assert "8 place(s)" in error
    assert "\n3\tline 3\n" in error
    edit(project, {"find": "line", "replace": "row", "count": 8})
    assert text(file) == [line.replace("line", "row") for line in LINES]


@given(
    st.lists(st.text("ab\n", max_size=6), min_size=1, max_size=3).map("".join),
    st.text("ab\n", min_size=1, max_size=3),
    st.text("xa\n", max_size=3),
)
def test_find_and_replace_is_that_of_the_text(content, old, new):
    class Document:
        lines = content.split("\n")

        def texts(self, start, stop):
            return self.lines[start:stop]

    whole = "".join(f"{line}\n" for line in Document.lines)
    regions = find_replace.replaced(Document.lines, old, new)
    out, at = [], 0
    for start, stop, lines in regions:
        out += [*Document.lines[at:start], *lines]
        at = stop
    out += Document.lines[at:]
    joined = "".join(f"{line}\n" for line in out)
    wanted = whole.replace(old, new)
    # A last line without its newline gets one back: files keep their end.
    assert joined == (wanted if wanted.endswith("\n") or not wanted else wanted + "\n")


def test_crlf_and_utf_16_keep_their_ends(project, file):
    file.write_bytes("eins\r\nzwei\r\ndrei\r\n".encode("utf-16"))
    done("read", project, file_path="f.txt", line_ids="short")
    edit(project, "1 move after 3", {"find": "zwei", "replace": "zwei\nzwo"})
    assert file.read_bytes().decode("utf-16") == "zwei\r\nzwo\r\ndrei\r\neins\r\n"


def test_a_last_line_without_newline_moves_and_takes_others_behind_it(project, file):
    file.write_bytes(b"a\nb\nc")
    done("read", project, file_path="f.txt", line_ids="short")
    edit(project, "3 move before 1")
    assert file.read_bytes() in (b"c\na\nb", b"c\na\nb\n")
    done("undo", project)
    edit(project, "1 move after 3")
    assert file.read_bytes() in (b"b\nc\na", b"b\nc\na\n")


def test_the_end_and_start_of_a_file_that_was_never_read_take_lines(project, file, seen):
    (project / "new.txt").write_text("first\n")
    edit(project, "2 copy after new.txt:end", "3 move before new.txt:start")
    assert text(project / "new.txt") == ["line 3", "first", "line 2"]
    # Control: a line of it is unknown until it was shown.
    (project / "other.txt").write_text("first\n")
    assert "other.txt" in no("no_index", project, "other.txt:1|x")
