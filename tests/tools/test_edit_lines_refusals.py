"""edit_lines: what it refuses, that it says all of it at once, and that it writes nothing then."""

from __future__ import annotations

import pytest

from support.calling import call, done, ids, refused, rows

TEXT = b"a\nb\nc\nd\ne\n"


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def names(project, file):
    return ids(project)


def edit(project, *changes, **more):
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), **more)


def no(code, project, *changes, **more):
    error = refused(code, "edit_lines", project, file_path="f.txt", changes=list(changes), **more)
    assert "Nothing was written" in error
    return error


def test_without_an_index(project, file):
    error = no("no_index", project, {"line_id": "abc123", "new_content": "x"})
    assert "Read the file first to generate line IDs" in error
    assert file.read_bytes() == TEXT


@pytest.mark.parametrize(
    "change",
    [
        {"line_id": "abc123", "new_content": "x"},
        {"after_line_id": "start", "new_content": "x"},
        {"before_line_id": "end", "new_content": "x"},
    ],
)
def test_without_a_read_the_answer_stays_the_same(project, file, change):
    first = no("no_index", project, change)
    # Neither the refusal, nor another one, nor a dry run is a read.
    assert no("no_index", project, change) == first
    refused("out_of_range", "rye/swe/edit_range", project, path="f.txt", start_line=99, end_line=99, new_text="x")
    done("rye/swe/insert_at", project, path="f.txt", line=1, new_text="x", dry_run=True)
    assert no("no_index", project, change) == first
    assert no("no_index", project, convert_newlines="crlf") == first
    assert file.read_bytes() == TEXT
    # Control: after a read the ends can be named, and a line that is none is told as that.
    done("read", project, file_path="f.txt")
    if "line_id" in change:
        no("invalid_line_id", project, change)
    else:
        done("edit_lines", project, file_path="f.txt", changes=[change])


@pytest.mark.parametrize("wrong", [{"line_id": "abc123", "new_content": "x"}, {"line_id": "no id", "new_content": "x"}])
def test_no_line_of_a_refusal_begins_with_a_blank(project, file, names, wrong):
    file.write_bytes(TEXT + b"more\n")
    for said in (no("stale_file", project, wrong), no("invalid_line_id", project, wrong)):
        assert not [line for line in said.split("\n") if line.startswith(" ")], said


def test_unknown_ids_name_the_nearest_and_the_available(project, file):
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(60)))
    names = ids(project)
    wrong = names[7][:-1] + ("0" if names[7][-1] != "0" else "1")
    data = call("edit_lines", project, file_path="f.txt", changes=[{"line_id": wrong, "new_content": "x"}])
    assert data["code"] == "invalid_line_id"
    assert f"invalid line ID {wrong}" in data["error"]
    assert names[7] in data["nearest"][wrong]
    assert data["available_ids"] == names[:20]
    assert f"{names[19]} and 40 more." in data["error"]
    assert "Nothing was written" in data["error"]


def test_dead_ids_tell_their_fate_and_their_neighbours(project, file, names):
    edit(project, {"line_id": names[2], "new_content": ""})
    error = no("invalid_line_id", project, {"line_id": names[2], "new_content": "x"})
    assert f"line {names[2]} was deleted (it was line 3 between {names[1]} and {names[3]})" in error
    assert f"2: [LID:{names[1]}] b" in error
    edit(project, {"line_id": names[1], "new_content": "B"})
    assert f"line {names[1]} was replaced" in no("invalid_line_id", project, {"line_id": names[1], "new_content": "x"})


def test_dead_neighbours_are_followed_to_living_ones(project, file, names):
    for name in names[1:4]:
        edit(project, {"line_id": name, "new_content": ""})
    error = no("invalid_line_id", project, {"line_id": names[2], "new_content": "x"})
    assert f"between {names[0]} and {names[4]}" in error


WRONG = {
    "no id": lambda n: {"new_content": "x"},
    "half a range": lambda n: {"start_line_id": n[0], "new_content": "x"},
    "two forms": lambda n: {"line_id": n[0], "after_line_id": n[0], "new_content": "x"},
    "reversed": lambda n: {"start_line_id": n[3], "end_line_id": n[1], "new_content": "x"},
    "empty insertion": lambda n: {"after_line_id": n[0], "new_content": ""},
    "start is no line": lambda n: {"line_id": "start", "new_content": "x"},
}


@pytest.mark.parametrize("name", WRONG)
def test_malformed_changes(project, file, names, name):
    """Defect 10: a change without IDs succeeded, a reversed range inserted."""
    data = call(
        "edit_lines", project, file_path="f.txt", changes=[{"line_id": names[4], "new_content": "E"}, WRONG[name](names)]
    )
    assert data["code"] in ("malformed_change", "invalid_line_id")
    assert "Nothing was written" in data["error"]
    assert "Change 2" in data["error"]
    assert file.read_bytes() == TEXT


@pytest.mark.parametrize(
    "wrong", [{"new_content": 7, "line_id": "x"}, {"line_id": [7], "new_content": "x"}, {"new_content": "", "nope": 1}, 7]
)
def test_what_is_no_change_at_all(project, file, names, wrong):
    refused("invalid_parameters", "edit_lines", project, file_path="f.txt", changes=[wrong])


@pytest.mark.parametrize("wrong", [{"line_id": "x"}, "x", "12", "12-15", {"new_content": "", "find": "a", "replace": "b"}])
def test_what_asks_for_nothing_or_for_two_things(project, file, names, wrong):
    assert "Change 1" in no("malformed_change", project, wrong)


OVERLAPS = {
    "same line": lambda n: ({"line_id": n[1], "new_content": "x"}, {"line_id": n[1], "new_content": "y"}),
    "line in range": lambda n: (
        {"start_line_id": n[1], "end_line_id": n[3], "new_content": "x"},
        {"line_id": n[2], "new_content": "y"},
    ),
    "ranges": lambda n: (
        {"start_line_id": n[0], "end_line_id": n[2], "new_content": "x"},
        {"start_line_id": n[2], "end_line_id": n[4], "new_content": "y"},
    ),
    "insertion in range": lambda n: (
        {"start_line_id": n[0], "end_line_id": n[2], "new_content": "x"},
        {"after_line_id": n[0], "new_content": "y"},
    ),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_overlaps(project, file, names, name):
    """Defect 10: the second of two overlapping changes was dropped silently."""
    assert "overlap" in no("overlapping_changes", project, *OVERLAPS[name](names))
    assert file.read_bytes() == TEXT


def test_insertions_around_a_range_do_not_overlap_it(project, file, names):
    edit(
        project,
        {"start_line_id": names[1], "end_line_id": names[2], "new_content": "x"},
        {"after_line_id": names[0], "new_content": "1"},
        {"after_line_id": names[2], "new_content": "2"},
    )
    assert file.read_bytes() == b"a\n1\nx\n2\nd\ne\n"


def test_all_problems_are_told_at_once(project, file, names):
    error = no(
        "invalid_line_id",
        project,
        {"line_id": "ffffff", "new_content": "x"},
        {"new_content": "x"},
        {"start_line_id": names[3], "end_line_id": names[1], "new_content": "x"},
        {"line_id": names[0], "new_content": f"[LID:{names[1]}] x"},
        {"line_id": names[4], "new_content": "1"},
        {"line_id": names[4], "new_content": "2"},
    )
    for part in (
        "Change 1: invalid",
        "Change 2 names no line ID",
        "Change 3 is reversed",
        "Change 4: The new text begins a line with",
        "5 and 6 overlap",
    ):
        assert part in error
    assert file.read_bytes() == TEXT


def test_a_line_that_came_between_refuses_the_range_until_it_was_read(project, file, names):
    file.write_bytes(b"a\nb\nnew\nc\nd\ne\n")
    change = {"start_line_id": names[0], "end_line_id": names[4], "new_content": "x"}
    error = no("unseen_lines", project, change, on_stale="rebase")
    assert "] new" in error
    # The refusal shows it, and does not count: the same once more is no sign that it was seen.
    assert "line 3 was never shown" in no("unseen_lines", project, change)
    done("grep", project, pattern="new", path="f.txt")
    done("read", project, file_path="f.txt", offset=2, limit=3)
    edit(project, change)
    assert file.read_bytes() == b"x\n"


def test_a_line_that_was_never_shown_refuses_the_range(project, file):
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(100)))
    first = rows(done("read", project, file_path="f.txt", limit=2))[0][0]
    last = rows(done("read", project, file_path="f.txt", offset=99))[-1][0]
    change = {"start_line_id": first, "end_line_id": last, "new_content": "x"}
    error = no("unseen_lines", project, change)
    assert "96 lines were never shown: read or grep 3-98 first" in error
    assert error.count("[LID:") == 40
    assert no("unseen_lines", project, change) == error
    done("read", project, file_path="f.txt")
    edit(project, change)
    assert file.read_bytes() == b"x\n"


def test_a_line_gone_from_the_range_refuses_it(project, file, names):
    file.write_bytes(b"a\nb\nd\ne\n")
    change = {"start_line_id": names[0], "end_line_id": names[4], "new_content": "x"}
    no("stale_file", project, {"line_id": names[0], "new_content": "A"})
    done("read", project, file_path="f.txt", limit=1)
    data = call("edit_lines", project, file_path="f.txt", changes=[change])
    assert data["success"] or data["code"] == "unseen_lines"
    assert file.read_bytes() in (b"x\n", b"a\nb\nd\ne\n")


def test_a_stale_file_is_refused_with_what_became_of_the_lines(project, file, names):
    """Defect 11: it answered "Invalid line IDs"."""
    file.write_bytes(b"top\na\nB\nc\nd\ne\n")
    error = no("stale_file", project, {"line_id": names[1], "new_content": "x"}, {"line_id": names[3], "new_content": "y"})
    assert "File has changed since last read" in error
    assert f"line {names[1]} was replaced" in error
    assert f"{names[3]}: unchanged, moved from line 4 to 5" in error
    assert "] B" in error
    assert file.read_bytes() == b"top\na\nB\nc\nd\ne\n"
    edit(project, {"line_id": names[3], "new_content": "y"})
    assert file.read_bytes() == b"top\na\nB\nc\ny\ne\n"


def test_a_stale_line_named_as_printed(project, file, names):
    file.write_bytes(b"top\na\nb\nc\nd\ne\n")
    error = no("stale_file", project, {"line_id": f"[LID:{names[3]}]", "new_content": "y"})
    assert f"{names[3]}: unchanged, moved from line 4 to 5" in error


def test_rebase_applies_to_untouched_lines(project, file, names):
    file.write_bytes(b"top\na\nb\nc\nd\nE\n")
    data = edit(project, {"line_id": names[3], "new_content": "D"}, on_stale="rebase")
    assert file.read_bytes() == b"top\na\nb\nc\nD\nE\n"
    assert "5" in data["output"]


@pytest.mark.parametrize("content", [b"a\nb\nc\n  d\ne\n", b"a\nb\nc\nDD\ne\n", b"a\nb\nc\ne\n"])
def test_rebase_refuses_touched_lines(project, file, names, content):
    file.write_bytes(content)
    call_ = call(
        "edit_lines", project, file_path="f.txt", changes=[{"line_id": names[3], "new_content": "D"}], on_stale="rebase"
    )
    assert call_["code"] in ("unseen_lines", "invalid_line_id")
    assert "Nothing was written" in call_["error"]
    assert file.read_bytes() == content


@pytest.mark.parametrize("by", ["edit_lines", "edit_range", "an editor"])
def test_a_range_over_a_place_where_lines_were_deleted_is_editable_after_a_read(project, by):
    file = project / "f.txt"
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(1, 13)))
    names = ids(project, "f.txt")
    if by == "edit_lines":
        done("edit_lines", project, file_path="f.txt", changes=[{"line_id": names[4], "new_content": ""}])
    elif by == "edit_range":
        done("rye/swe/edit_range", project, path="f.txt", start_line=5, end_line=5, new_text="")
    else:
        file.write_bytes(file.read_bytes().replace(b"line 5\n", b""))
    across = {"start_line_id": names[3], "end_line_id": names[5], "new_content": "both\n"}
    if by == "an editor":
        # Control: nobody has seen the two lines side by side yet.
        refused("stale_file", "edit_lines", project, file_path="f.txt", changes=[across])
    ids(project, "f.txt")
    done("edit_lines", project, file_path="f.txt", changes=[across])
    assert file.read_bytes() == b"".join(b"line %d\n" % n for n in (1, 2, 3)) + b"both\n" + b"".join(
        b"line %d\n" % n for n in range(7, 13)
    )
