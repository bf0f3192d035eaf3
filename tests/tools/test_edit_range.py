"""edit_range: swe-tooling 6.1, 6.3.1, 6.4, conventions 3 and 4; aci's line-range semantics."""

from __future__ import annotations

import os
import random

import pytest

from support.calling import call, done, refused

EDIT = "rye/swe/edit_range"


def edit(project, start, end, text, path="f.txt", **more):
    return done(EDIT, project, path=path, start_line=start, end_line=end, new_text=text, **more)


def put(project, data, name="f.txt"):
    (project / name).write_bytes(data)
    return project / name


def test_a_range_is_replaced_and_the_answer_needs_no_second_read(project):
    file = put(project, b"".join(b"line %d\n" % n for n in range(1, 10)))
    data = edit(project, 4, 5, "new a\nnew b\nnew c\n")
    assert file.read_bytes() == b"line 1\nline 2\nline 3\nnew a\nnew b\nnew c\nline 6\nline 7\nline 8\nline 9\n"
    assert data["output"] == (
        "✓ Edited f.txt:4-6\n2 lines removed, 3 added\n2: line 2\n3: line 3\n4: new a\n5: new b\n6: new c\n7: line 6\n8: line 7"
    )
    facts = {name: data[name] for name in ("applied", "start_line", "end_line", "lines_removed", "lines_added", "total_lines")}
    assert facts == {"applied": True, "start_line": 4, "end_line": 6, "lines_removed": 2, "lines_added": 3, "total_lines": 10}


@pytest.mark.parametrize(
    ("before", "start", "end", "text", "after"),
    [
        (b"a\nb\nc\n", 2, 2, "", b"a\nc\n"),
        (b"a\nb\nc\n", 1, 3, "", b""),
        (b"a\nb\nc\n", 2, 2, "\n", b"a\n\nc\n"),
        (b"a\nb\nc\n", 2, 2, "x", b"a\nx\nc\n"),
        (b"a\nb\nc\n", 2, 1, "x", b"a\nx\nb\nc\n"),
        (b"a\nb\nc\n", 1, 0, "x\n", b"x\na\nb\nc\n"),
        (b"a\nb\nc\n", 4, 3, "x\ny", b"a\nb\nc\nx\ny\n"),
        (b"a\nb\nc", 4, 3, "x", b"a\nb\nc\nx"),
        (b"a\nb\nc", 3, 3, "x\n", b"a\nb\nx"),
        (b"", 1, 0, "x", b"x\n"),
        (b"a\r\nb\r\nc\r\n", 2, 2, "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", 2, 1, "x", b"a\r\nx\r\nb\nc\r\n"),
        ("\ufeffä\nö\n".encode("utf-16-le"), 2, 2, "ü", "\ufeffä\nü\n".encode("utf-16-le")),
    ],
)
def test_the_forms_replace_delete_insert_append_keep_all_other_bytes(project, before, start, end, text, after):
    file = put(project, before)
    edit(project, start, end, text)
    assert file.read_bytes() == after


@pytest.mark.parametrize(
    ("start", "end", "said", "code"),
    [
        (500, 501, "start_line 500 out of range (1..424)", "out_of_range"),
        (0, 3, "start_line 0 out of range (1..424)", "out_of_range"),
        (420, 425, "end_line 425 out of range (420..424)", "out_of_range"),
        (426, 425, "start_line 426 out of range (1..425)", "out_of_range"),
        (9, 5, "end_line 5 lies before start_line 9", "bad_range"),
    ],
)
def test_bounds_errors_name_the_valid_range_and_write_nothing(project, start, end, said, code):
    before = b"x\n" * 424
    file = put(project, before)
    assert said in refused(code, EDIT, project, path="f.txt", start_line=start, end_line=end, new_text="y")
    assert file.read_bytes() == before


def test_the_insert_form_can_be_refused(project):
    put(project, b"a\nb\n")
    said = refused("bad_range", EDIT, project, path="f.txt", start_line=2, end_line=1, new_text="x", insert_form=False)
    assert "insert_at" in said


def test_a_dry_run_returns_the_diff_and_writes_nothing(project):
    file = put(project, b"a\nb\n")
    data = edit(project, 2, 2, "x", dry_run=True)
    assert data["output"] == "--- a/f.txt\n+++ b/f.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+x"
    assert (data["applied"], file.read_bytes()) == (False, b"a\nb\n")


def test_the_diff_comes_when_asked_for_or_always(project, monkeypatch):
    put(project, b"a\nb\n")
    assert "\n\n--- a/f.txt\n" in edit(project, 2, 2, "x", show_diff=True)["output"]
    assert "---" not in edit(project, 2, 2, "y")["output"]
    monkeypatch.setenv("RAGIX_AUTO_DIFF", "1")
    assert edit(project, 2, 2, "z")["diff"].endswith("-y\n+z")


def test_mode_links_and_names_are_kept_and_it_can_be_undone(project):
    file = put(project, b"a\nb\n", "run.sh")
    file.chmod(0o750)
    (project / "link").symlink_to("run.sh")
    assert edit(project, 1, 1, "x", path="link")["file_path"] == "run.sh"
    assert (os.stat(file).st_mode & 0o777, (project / "link").is_symlink()) == (0o750, True)
    done("rye/swe/undo_edit", project)
    assert file.read_bytes() == b"a\nb\n"
    assert os.stat(file).st_mode & 0o777 == 0o750


def test_lines_keep_their_ids_through_an_edit_by_number(project):
    put(project, b"a\nb\nc\n")
    rows = done("read", project, file_path="f.txt")["output"].split("\n")
    data = edit(project, 1, 1, "x\ny", line_ids=True)
    assert data["output"].split("\n")[-2:] == [f"{n}: {row}" for n, row in ((3, rows[1]), (4, rows[2]))]


def test_text_that_the_encoding_cannot_hold_or_no_change_is_refused(project):
    put(project, "ä\n".encode("latin-1") * 3)
    said = refused("unencodable", EDIT, project, path="f.txt", start_line=1, end_line=1, new_text="→", encoding="latin-1")
    assert "U+2192" in said
    put(project, b"a\n", "g")
    refused("no_change", EDIT, project, path="g", start_line=1, end_line=1, new_text="a")
    refused("nothing_to_insert", EDIT, project, path="g", start_line=1, end_line=0, new_text="")


def test_a_large_edit_is_shown_as_far_as_it_fits(project):
    put(project, b"a\n")
    data = edit(project, 1, 1, "".join(f"{n} {'x' * 200}\n" for n in range(1_000)), show_diff=True)
    assert len(data["output"].encode()) <= 51_200
    assert data["truncated"]
    assert data["output"].split("\n")[-1].startswith("[tool_result: ")


def test_random_edits_are_what_a_list_of_lines_says(project, monkeypatch):
    # Each round writes the file anew, which would be a change of lines that were shown.
    monkeypatch.setenv("RAGIX_VIEW_STATE", "off")
    dice = random.Random(20)
    for _ in range(60):
        ending = dice.choice(["\n", "\r\n"])
        lines = [dice.choice(["", "a", "b", "ä\x0c"]) for _ in range(dice.randrange(1, 9))]
        file = put(project, "".join(line + ending for line in lines).encode())
        start = dice.randrange(1, len(lines) + 2)
        end = start - 1 if start > len(lines) else dice.randrange(start - 1, len(lines) + 1)
        new = [f"new{at}" for at in range(dice.randrange(end < start, 4))]
        edit(project, start, end, "".join(f"{line}\n" for line in new))
        lines[start - 1 : end] = new
        assert file.read_bytes() == "".join(line + ending for line in lines).encode()


def test_control_the_naive_way_fails_that(project):
    file = put(project, b"a\r\nb\x0cc\r\n")
    lines = file.read_text().splitlines()
    lines[0:1] = ["x"]
    file.write_text("\n".join(lines) + "\n")
    assert file.read_bytes() != b"x\r\nb\x0cc\r\n"


@pytest.mark.parametrize("source", ["environment", "user", "project"])
def test_safe_read_only_shows_the_patch_and_applies_nothing(project, user_space, monkeypatch, source):
    file = put(project, b"a\nb\n")
    config = "swe: {profile: safe-read-only}\n"
    if source == "environment":
        monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    else:
        where = (user_space if source == "user" else project) / ".ai/config/rye.yaml"
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(config)
        monkeypatch.setenv("RAGIX_PROFILE", "unsafe")
    data = call(EDIT, project, path="f.txt", start_line=2, end_line=2, new_text="x")
    assert (data["success"], data["code"]) == (False, "read_only_profile")
    assert data["output"].startswith("--- a/f.txt")
    assert data["output"].endswith("-b\n+x")
    assert (data["applied"], data["profile"], file.read_bytes()) == (False, "safe-read-only", b"a\nb\n")
    assert call("rye/swe/open_file_chunk", project, path="f.txt")["success"]


def test_the_kill_switch_stops_it_before_anything_is_read(project, monkeypatch):
    monkeypatch.setenv("RAGIX_ENABLE_SWE", "0")
    assert "RAGIX_ENABLE_SWE" in refused("swe_disabled", EDIT, project, path="f.txt", start_line=1, end_line=1, new_text="x")
