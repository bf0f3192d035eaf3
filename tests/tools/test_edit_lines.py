"""edit_lines: every form of change by ID, every refusal, and what it returns; an ID as it was pasted; byte order marks."""

from __future__ import annotations

import time

import pytest

from rye.call.results import MAX_OUTPUT_BYTES
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


def test_the_fields_of_a_result(project, file, names):
    data = edit(project, {"line_id": names[1], "new_content": "B"}, {"line_id": names[4], "new_content": "E\nF"})
    assert set(data) == {
        "success",
        "output",
        "changes_applied",
        "lines_changed",
        "truncated",
        "file_path",
        "version",
        "warnings",
        "entry_id",
        "lines",
    }
    assert (data["changes_applied"], data["lines_changed"], data["truncated"]) == (2, 3, False)
    assert data["output"].startswith("--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,6 @@\n a\n-b\n+B\n c\n d\n-e\n+E\n+F\n")
    assert file.read_bytes() == b"a\nB\nc\nd\nE\nF\n"


@pytest.mark.parametrize("change", [lambda n: f"{n[1]}|x", lambda n: {"line_id": n[1], "new_content": "x"}])
def test_one_change_stands_for_a_list_of_one(project, file, names, change):
    done("edit_lines", project, file_path="f.txt", changes=change(names))
    assert file.read_bytes() == b"a\nx\nc\nd\ne\n"


FORMS = {
    "replace": (lambda n: {"line_id": n[1], "new_content": "x"}, b"a\nx\nc\nd\ne\n"),
    "replace by more": (lambda n: {"line_id": n[1], "new_content": "x\ny\n"}, b"a\nx\ny\nc\nd\ne\n"),
    "delete": (lambda n: {"line_id": n[1], "new_content": ""}, b"a\nc\nd\ne\n"),
    "empty line": (lambda n: {"line_id": n[1], "new_content": "\n"}, b"a\n\nc\nd\ne\n"),
    "range": (lambda n: {"start_line_id": n[1], "end_line_id": n[3], "new_content": "x"}, b"a\nx\ne\n"),
    "range of one": (lambda n: {"start_line_id": n[1], "end_line_id": n[1], "new_content": "x"}, b"a\nx\nc\nd\ne\n"),
    "delete all": (lambda n: {"start_line_id": n[0], "end_line_id": n[4], "new_content": ""}, b""),
    "after": (lambda n: {"after_line_id": n[1], "new_content": "x"}, b"a\nb\nx\nc\nd\ne\n"),
    "before": (lambda n: {"before_line_id": n[1], "new_content": "x"}, b"a\nx\nb\nc\nd\ne\n"),
    "before start": (lambda n: {"before_line_id": "start", "new_content": "x"}, b"x\na\nb\nc\nd\ne\n"),
    "after start": (lambda n: {"after_line_id": "start", "new_content": "x"}, b"x\na\nb\nc\nd\ne\n"),
    "before end": (lambda n: {"before_line_id": "end", "new_content": "x"}, b"a\nb\nc\nd\ne\nx\n"),
    "after end": (lambda n: {"after_line_id": "end", "new_content": "x"}, b"a\nb\nc\nd\ne\nx\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(project, file, names, form):
    change, expected = FORMS[form]
    edit(project, change(names))
    assert file.read_bytes() == expected


def test_several_changes_land_together_whatever_their_order(project, file, names):
    edit(
        project,
        {"after_line_id": names[4], "new_content": "z"},
        {"line_id": names[0], "new_content": ""},
        {"before_line_id": names[2], "new_content": "1"},
        {"after_line_id": names[1], "new_content": "2"},
        {"start_line_id": names[2], "end_line_id": names[3], "new_content": "3"},
    )
    assert file.read_bytes() == b"b\n1\n2\n3\ne\nz\n"


def test_the_new_ids_of_the_changed_lines_are_returned(project, file, names):
    data = edit(project, {"line_id": names[2], "new_content": "x\ny"})
    assert [row["line_num"] for row in data["lines"]] == [1, 2, 3, 4, 5, 6]
    assert [row["id"] for row in data["lines"]] == ids(project)
    edit(project, {"start_line_id": data["lines"][2]["id"], "end_line_id": data["lines"][3]["id"], "new_content": "z"})
    assert file.read_bytes() == b"a\nb\nz\nd\ne\n"


def test_newline_options(project, file, names):
    edit(
        project,
        {"line_id": names[0], "new_content": "A", "newline": "lf"},
        {"line_id": names[1], "new_content": "B"},
        newline="crlf",
    )
    assert file.read_bytes() == b"A\nB\r\nc\nd\ne\n"
    edit(project, {"line_id": names[2], "new_content": "C"}, convert_newlines="crlf")
    assert file.read_bytes() == b"A\r\nB\r\nC\r\nd\r\ne\r\n"
    assert ids(project)[3:] == names[3:]


def test_an_empty_last_line_cannot_lose_its_newline(project, file):
    """It once was written and reported as a crash, the index a line longer than the file."""
    file.write_bytes(b"a\n\n")
    no("empty_last_line", project, {"line_id": ids(project)[0], "new_content": "A"}, final_newline="remove")
    assert file.read_bytes() == b"a\n\n"


def test_the_version_guard(project, file):
    version = done("read", project, file_path="f.txt")["version"]
    names = ids(project)
    data = edit(project, {"line_id": names[0], "new_content": "A"}, version=version)
    error = no("wrong_version", project, {"line_id": names[1], "new_content": "B"}, version=version)
    assert data["version"] in error
    edit(project, {"line_id": names[1], "new_content": "B"}, version=data["version"])
    assert file.read_bytes() == b"A\nB\nc\nd\ne\n"


def test_a_dry_run_writes_nothing(project, file, names):
    info = file.stat()
    data = edit(project, {"line_id": names[0], "new_content": "A"}, dry_run=True)
    assert "+A" in data["output"]
    assert (data["dry_run"], data["changes_applied"]) == (True, 0)
    assert file.read_bytes() == TEXT
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (info.st_mtime_ns, info.st_ino)
    assert done("undo", project, list=True)["count"] == 0
    edit(project, {"line_id": names[0], "new_content": "A"})
    assert file.read_bytes() == b"A\nb\nc\nd\ne\n"


def test_a_change_of_nothing_is_said(project, file, names):
    assert "no-op" in no("no_change", project, {"line_id": names[1], "new_content": "b"})


@pytest.mark.parametrize("content", ["[LID:{}] x", "ok\n  [LID:{}] y"])
def test_pasted_prefixes_are_refused(project, file, names, content):
    change = {"line_id": names[0], "new_content": content.format(names[1])}
    assert f"begins a line with [LID:{names[1]}]" in no("pasted_ids", project, change)
    assert file.read_bytes() == TEXT
    # Control: what no view of this file showed is text.
    edit(project, {"line_id": names[0], "new_content": content.format("abc123")})
    assert b"[LID:abc123]" in file.read_bytes()


def test_pasted_prefixes_are_allowed_where_the_file_has_such_lines(project, file):
    file.write_bytes(b"[LID:a1b2c3] an example\nb\n")
    edit(project, {"line_id": ids(project)[1], "new_content": "[LID:d4e5f6] another"})
    assert file.read_bytes() == b"[LID:a1b2c3] an example\n[LID:d4e5f6] another\n"


def test_what_the_encoding_cannot_hold(project, file):
    file.write_bytes(b"caf\xe9\nb\n")
    name = ids(project, encoding="latin-1")[1]
    assert "U+65E5" in no("unencodable", project, {"line_id": name, "new_content": "日"})
    edit(project, {"line_id": name, "new_content": "é"})
    assert file.read_bytes() == b"caf\xe9\n\xe9\n"


def test_appending_a_twin_to_an_open_end(project, file):
    file.write_bytes(b"a\n}")
    names = ids(project)
    edit(project, {"after_line_id": "end", "new_content": "}"})
    assert file.read_bytes() == b"a\n}\n}"
    assert ids(project)[:2] == names


@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_the_mode_is_kept(project, file, names, mode):
    file.chmod(mode)
    edit(project, {"line_id": names[0], "new_content": "A"})
    assert file.stat().st_mode & 0o777 == mode


def test_a_link_stays_a_link_and_shares_the_ids(project, file, names):
    (project / "link").symlink_to("f.txt")
    done("edit_lines", project, file_path="link", changes=[{"line_id": names[0], "new_content": "A"}])
    assert (project / "link").is_symlink()
    assert file.read_bytes() == b"A\nb\nc\nd\ne\n"


@pytest.mark.parametrize(
    ("path", "code"),
    [("missing", "file_not_found"), ("folder", "is_directory"), ("../x", "path_outside"), (".git/config", "protected_path")],
)
def test_what_cannot_be_edited(project, path, code):
    (project / "folder").mkdir()
    (project / ".git").mkdir()
    (project / ".git/config").write_text("a\n")
    name = ids(project, path)[0] if code == "protected_path" else "abc123"
    refused(code, "edit_lines", project, file_path=path, changes=[{"line_id": name, "new_content": "x"}], dry_run=True)
    refused(code, "edit_lines", project, file_path=path, changes=[{"line_id": name, "new_content": "x"}])


def test_a_long_result_is_cut_with_the_envelope(project, file, names):
    data = edit(project, {"line_id": names[0], "new_content": "".join(f"line {n}\n" for n in range(9_000))})
    assert data["truncated"]
    assert len(data["output"].encode()) <= MAX_OUTPUT_BYTES + 500
    assert data["output"].split("\n")[-1].startswith("[tool_result: ")
    assert file.read_bytes().count(b"\n") == 9_004


def test_the_times_of_the_file_are_believed_only_when_settled(project, file):
    """Two edits by another program within the clock's grain are both seen."""
    for n in range(5):
        file.write_bytes(b"%d\n" % n)
        assert rows(done("read", project, file_path="f.txt"))[0][1] == str(n)
        time.sleep(0.001)


@pytest.mark.slow
def test_thousands_of_changes_in_one_call_cost_in_proportion(project):
    (project / "f.txt").write_bytes(b"".join(b"line %d\n" % n for n in range(20_000)))
    names = [name for offset in range(1, 20_000, 2_000) for name in ids(project, "f.txt", offset=offset, limit=2_000)]
    taken = {}
    for count in (500, 5_000):
        step = 20_000 // count
        changes = [{"line_id": names[at * step + count % 7], "new_content": f"{count} {at}"} for at in range(count)]
        started = time.process_time()
        done("edit_lines", project, file_path="f.txt", changes=changes)
        taken[count] = time.process_time() - started
        names = [name for offset in range(1, 20_000, 2_000) for name in ids(project, "f.txt", offset=offset, limit=2_000)]
    assert taken[5_000] < 10 * taken[500] + 1, taken
    lines = (project / "f.txt").read_bytes().splitlines()
    assert lines[5_000 % 7 :: 4] == [b"5000 %d" % at for at in range(5_000)]


def test_a_dry_run_of_a_rename_makes_no_folder(project):
    (project / "a.py").write_text("x = 1\n")
    data = done("edit_lines", project, file_path="a.py", changes=["a.py rename to new/dir/b.py"], dry_run=True)
    assert data["notes"] == ["renamed a.py to new/dir/b.py"]
    assert not (project / "new").exists()
    done("edit_lines", project, file_path="a.py", changes=["a.py rename to new/dir/b.py"])
    assert (project / "new/dir/b.py").read_text() == "x = 1\n"


# --- what is refused: all of it at once, and nothing is written then ---


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
    assert "Read the file first to generate line IDs" in first
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


def test_a_line_that_is_gone_refuses_the_range_that_it_stood_in_until_that_was_read(project, file, names):
    file.write_bytes(b"a\nb\nd\ne\n")
    change = {"start_line_id": names[1], "end_line_id": names[3], "new_content": "x"}
    assert "next to removed ones" in no("unseen_lines", project, change, on_stale="rebase")
    done("read", project, file_path="f.txt")
    edit(project, change)
    assert file.read_bytes() == b"a\nx\ne\n"


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


def test_a_stale_file_is_refused_with_what_became_of_the_lines(project, file, names):
    """Defect 11: it answered "Invalid line IDs"."""
    file.write_bytes(b"top\na\nB\nc\nd\ne\n")
    changes = ({"line_id": names[1], "new_content": "x"}, {"line_id": f"[LID:{names[3]}]", "new_content": "y"})
    error = no("stale_file", project, *changes)
    assert "File has changed since last read" in error
    assert f"line {names[1]} was replaced" in error
    assert f"{names[3]}: unchanged, moved from line 4 to 5" in error
    assert "] B" in error
    assert file.read_bytes() == b"top\na\nB\nc\nd\ne\n"
    edit(project, {"line_id": names[3], "new_content": "y"})
    assert file.read_bytes() == b"top\na\nB\nc\ny\ne\n"


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


# --- IDs as they are pasted, and byte order marks ---


@pytest.mark.parametrize(
    "form", ["{}", "[LID:{}]", "LID:{}", "lid:{}", '"{}"', "'{}'", "`{}`", " {}\n", "[LID:{}] two", "<{}>"]
)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_an_id_is_taken_as_it_was_pasted(project, form, case):
    (project / "f.txt").write_bytes(b"one\ntwo\n")
    line_id = case(ids(project)[1])
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": form.format(line_id), "new_content": "2"}])
    assert (project / "f.txt").read_bytes() == b"one\n2\n"


@pytest.mark.parametrize("end", ["end", '"end"', "END"])
def test_the_end_of_the_file_is_taken_as_it_was_pasted(project, end):
    (project / "f.txt").write_bytes(b"one\n")
    ids(project)
    done("edit_lines", project, file_path="f.txt", changes=[{"after_line_id": end, "new_content": "two"}])
    assert (project / "f.txt").read_bytes() == b"one\ntwo\n"


def test_values_of_another_type_are_explained(project):
    (project / "f.txt").write_bytes(b"one\n")
    error = refused("invalid_parameters", "edit_lines", project, file_path=["f.txt"], changes=[])
    assert "file_path" in error
    assert "write it without quotes: 1" in refused("invalid_parameters", "read", project, file_path="f.txt", offset="1")
    assert "write it without quotes: true" in refused(
        "invalid_parameters", "read", project, file_path="f.txt", show_whitespace="true"
    )


@pytest.mark.parametrize("count", [0, 3, 3_000])
def test_a_byte_order_mark_comes_and_goes_and_lines_keep_their_ids(project, count):
    data = b"".join(b"line %d\n" % number for number in range(count))
    (project / "f.txt").write_bytes(data)
    names = ids(project)
    added = done("edit_lines", project, file_path="f.txt", changes=[], bom="add")
    assert (project / "f.txt").read_bytes() == b"\xef\xbb\xbf" + data
    assert "utf-8 -> utf-8+bom" in added["output"]
    if count:
        assert ids(project) == names
        done("edit_lines", project, file_path="f.txt", changes=[{"line_id": names[1], "new_content": "x"}])
        assert (project / "f.txt").read_bytes() == b"\xef\xbb\xbf" + data.replace(b"line 1\n", b"x\n", 1)
        done("undo", project)
    assert done("undo", project)["undone"] == added["entry_id"]
    assert (project / "f.txt").read_bytes() == data
    done("edit_lines", project, file_path="f.txt", changes=[], bom="add")
    done("edit_lines", project, file_path="f.txt", changes=[], bom="remove")
    assert (project / "f.txt").read_bytes() == data


def test_marks_that_cannot_be_changed(project):
    (project / "f.txt").write_bytes(b"one\n")
    refused("no_change", "edit_lines", project, file_path="f.txt", changes=[], bom="remove")
    (project / "g.txt").write_bytes("\ufeffone\n".encode("utf-16-le"))
    refused("bom_needed", "edit_lines", project, file_path="g.txt", changes=[], bom="remove")
    (project / "h.txt").write_bytes(b"caf\xe9\n")
    refused("bom_needed", "edit_lines", project, file_path="h.txt", changes=[], bom="add", encoding="latin-1")
    change = {"line_id": ids(project)[0], "new_content": "x"}
    refused("bom_alone", "edit_lines", project, file_path="f.txt", changes=[change], bom="add")
    data = call("edit_lines", project, file_path="f.txt", changes=[], bom="add", dry_run=True)
    assert data["success"]
    assert (project / "f.txt").read_bytes() == b"one\n"
