"""The tools by line number: swe-tooling 2.3, 4 to 6, 8.3, conventions 2 to 4; aci 1, 3, 4. `edit_file` has a file of its own."""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from rye.workspace import seals
from rye.workspace.workspace import Workspace
from support.calling import call, done, refused

HUNDREDS = "".join(f"line {n}\n" for n in range(1, 424)).encode()
WIDE = "\ufeffä\nö\n".encode("utf-16-le")


def swe(tool, project, **parameters):
    return done(f"rye/swe/{tool}", project, **parameters)


def no(code, tool, project, **parameters):
    return refused(code, f"rye/swe/{tool}", project, **parameters)


def lines(data):
    return data["output"].split("\n")


def span(data):
    return data["start_line"], data["end_line"]


def put(project, data, name="f"):
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    (project / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return project / name


@pytest.fixture
def file(project):
    """A project with `a.txt` of 423 lines."""
    put(project, HUNDREDS, "a.txt")
    return project


def edit(project, start, end, text, path="f", **more):
    return swe("edit_range", project, path=path, start_line=start, end_line=end, new_text=text, **more)


# --- edit_range, insert_at ---


@pytest.mark.parametrize(
    ("before", "where", "text", "after"),
    [
        # First and last line: replace, delete, insert, append. One line: before it, or behind the last.
        (b"a\nb\nc\n", (2, 2), "", b"a\nc\n"),
        (b"a\nb\nc\n", (2, 1), "x", b"a\nx\nb\nc\n"),
        (b"a\nb\nc\n", (1, 0), "x\n", b"x\na\nb\nc\n"),
        (b"a\nb\nc\n", (4, 3), "x\ny", b"a\nb\nc\nx\ny\n"),
        (b"", (1, 0), "x", b"x\n"),
        (b"a\r\nb\r\nc\r\n", (2, 2), "x\ny", b"a\r\nx\r\ny\r\nc\r\n"),
        (b"a\nb\n", (1,), "x\ny\n", b"x\ny\na\nb\n"),
        (b"a\nb\n", (3,), "x\ny\n", b"a\nb\nx\ny\n"),
    ],
)
def test_lines_are_replaced_deleted_inserted_appended_and_all_other_bytes_stay(project, before, where, text, after):
    path = put(project, before)
    if len(where) == 2:
        edit(project, *where, text)
    else:
        data = swe("insert_at", project, path="f", line=where[0], new_text=text)
        assert data["output"].startswith(f"✓ Edited f:{where[0]}-{where[0] + 1}\n0 lines removed, 2 added\n")
    assert path.read_bytes() == after


def test_the_answer_needs_no_second_read(project):
    path = put(project, b"".join(b"line %d\n" % n for n in range(1, 10)))
    data = edit(project, 4, 5, "new a\nnew b\nnew c\n")
    assert path.read_bytes() == b"line 1\nline 2\nline 3\nnew a\nnew b\nnew c\nline 6\nline 7\nline 8\nline 9\n"
    assert data["output"] == (
        "✓ Edited f:4-6\n2 lines removed, 3 added\n2: line 2\n3: line 3\n4: new a\n5: new b\n6: new c\n7: line 6\n8: line 7"
    )
    facts = {name: data[name] for name in ("applied", "start_line", "end_line", "lines_removed", "lines_added", "total_lines")}
    assert facts == {"applied": True, "start_line": 4, "end_line": 6, "lines_removed": 2, "lines_added": 3, "total_lines": 10}


RANGE = {"path": "f", "new_text": "y"}
TAKES_FORMS = {"open_file_chunk": {}, "search_file": {"pattern": "x"}, "edit_range": {**RANGE, "start_line": 1, "end_line": 1}}
LATIN = {**RANGE, "path": "latin", "start_line": 1, "end_line": 1, "new_text": "→", "encoding": "latin-1"}


@pytest.mark.parametrize(
    ("tool", "parameters", "code", "said"),
    [
        ("edit_range", {**RANGE, "start_line": 0, "end_line": 3}, "out_of_range", "start_line 0 out of range (1..424)"),
        ("edit_range", {**RANGE, "start_line": 420, "end_line": 425}, "out_of_range", "end_line 425 out of range (420..424)"),
        ("edit_range", {**RANGE, "start_line": 9, "end_line": 5}, "bad_range", "end_line 5 lies before start_line 9"),
        ("edit_range", {**RANGE, "start_line": 2, "end_line": 1, "insert_form": False}, "bad_range", "insert_at"),
        ("edit_range", {**RANGE, "start_line": 1, "end_line": 0, "new_text": ""}, "nothing_to_insert", ""),
        ("edit_range", {**RANGE, "start_line": 1, "end_line": 1, "new_text": "x"}, "no_change", ""),
        ("edit_range", LATIN, "unencodable", "U+2192"),
        ("insert_at", {**RANGE, "line": 426}, "out_of_range", "line 426 out of range (1..425)"),
        ("insert_at", {**RANGE, "line": 1, "new_text": ""}, "nothing_to_insert", ""),
        ("insert_at", {"path": ".git/config", "line": 1, "new_text": "x"}, "protected_path", ""),
        ("open_file_chunk", {"path": "f", "line": 500}, "out_of_range", "line 500 out of range (1..424)"),
        ("open_file_chunk", {"path": "f", "start": 425}, "out_of_range", "start 425 out of range (1..424)"),
        ("open_file_chunk", {"path": "f", "start": 5, "end": 3}, "bad_window", "end 3 lies before start 5"),
        ("open_file_chunk", {"path": "f", "line": 5, "end": 9}, "bad_window", ""),
        ("open_file_chunk", {"path": "empty", "line": 1}, "out_of_range", "the file is empty. insert_at with line=1"),
        ("open_file_chunk", {"path": "ap.py"}, "file_not_found", "Did you mean app.py?"),
        ("read_file_viewport", {"path": "f", "offset": 424}, "out_of_range", "offset 424 out of range (0..423)"),
        ("read_file_viewport", {"path": "f", "offset": -1}, "out_of_range", ""),
        ("read_file_viewport", {"path": "pipe"}, "not_regular_file", "a named pipe"),
        ("search_file", {"path": ".git", "pattern": "x"}, "is_directory", ""),
        *[
            (tool, {"path": "f", **more, "line_ids": form}, "bad_line_ids", "lid, short or none")
            for (tool, more), form in zip(TAKES_FORMS.items(), ("lidd", "LID", ""), strict=True)
        ],
        ("search_dir", {"pattern": "("}, "bad_pattern", ""),
        ("find_file", {"pattern": "../*"}, "path_outside", ""),
    ],
)
def test_what_cannot_be_is_refused_with_the_valid_range_and_nothing_is_written(project, tool, parameters, code, said):
    before = {"f": b"x\n" * 424, "empty": b"", "app.py": b"1\n", ".git/config": b"a\n", "latin": "ä\n".encode("latin-1")}
    paths = {name: put(project, data, name) for name, data in before.items()}
    os.mkfifo(project / "pipe")
    assert said in no(code, tool, project, **parameters)
    assert {name: path.read_bytes() for name, path in paths.items()} == before


def test_a_dry_run_returns_the_diff_which_also_comes_when_asked_for_or_always(project, monkeypatch):
    path = put(project, b"a\nb\n")
    data = edit(project, 2, 2, "x", dry_run=True)
    assert data["output"] == "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+x"
    assert (data["applied"], path.read_bytes()) == (False, b"a\nb\n")
    assert "\n\n--- a/f\n" in edit(project, 2, 2, "x", show_diff=True)["output"]
    assert "---" not in edit(project, 2, 2, "y")["output"]
    monkeypatch.setenv("RAGIX_AUTO_DIFF", "1")
    assert edit(project, 2, 2, "z")["diff"].endswith("-y\n+z")


def test_safe_read_only_shows_the_patch_and_applies_nothing(project, monkeypatch):
    path = put(project, b"a\nb\n")
    edit(project, 1, 1, "A")
    monkeypatch.setenv("RAGIX_PROFILE", "safe-read-only")
    data = call("rye/swe/edit_range", project, path="f", start_line=2, end_line=2, new_text="x")
    assert (data["success"], data["code"]) == (False, "read_only_profile")
    assert (data["output"].startswith("--- a/f"), data["output"].endswith("-b\n+x")) == (True, True)
    assert (data["applied"], data["profile"], path.read_bytes()) == (False, "safe-read-only", b"A\nb\n")
    assert swe("open_file_chunk", project, path="f")
    data = call("rye/swe/undo_edit", project)
    assert (data["code"], data["output"].startswith("--- a/f")) == ("read_only_profile", True)
    assert (data["applied"], path.read_bytes()) == (False, b"A\nb\n")
    assert swe("undo_edit", project, list=True)["count"] == 1


# --- a line that was shown and is another one now is refused; one that was never shown goes through ---


@pytest.fixture
def shown(project):
    path = put(project, b"a\nb\nc\nd\n")
    swe("open_file_chunk", project, path="f")
    return path


def test_a_shown_line_that_another_program_moved_is_refused_with_what_is_there_now(project, shown):
    shown.write_bytes(b"new\n" + shown.read_bytes())
    assert "3: b" in no("lines_changed", "edit_range", project, path="f", start_line=3, end_line=3, new_text="C!")
    assert shown.read_bytes() == b"new\na\nb\nc\nd\n"
    # What the refusal showed was shown: the same number now means that line.
    edit(project, 4, 4, "C!")
    assert shown.read_bytes() == b"new\na\nb\nC!\nd\n"
    # Control: what others did to the lines beside them keeps from no edit of lines that stand.
    shown.write_bytes(b"new\na\nb\nC!\nDIFFERENT\nmore\n")
    edit(project, 3, 4, "x")
    assert shown.read_bytes() == b"new\na\nx\nDIFFERENT\nmore\n"
    # A line that was shown in no known encoding is the same line in the one that is named.
    shown.write_bytes(b"S\xe9\n")
    swe("open_file_chunk", project, path="f")
    edit(project, 1, 1, "\xe9", encoding="latin-1")
    assert shown.read_bytes() == b"\xe9\n"


def test_own_edits_are_followed_to_the_new_numbers(project, shown):
    swe("insert_at", project, path="f", line=1, new_text="1\n2\n3\n")
    edit(project, 7, 7, "D")
    edit(project, 1, 3, "")
    edit(project, 4, 4, "DD")
    assert shown.read_bytes() == b"a\nb\nc\nDD\n"
    swe("undo_edit", project)
    edit(project, 1, 1, "A")
    assert shown.read_bytes() == b"A\nb\nc\nD\n"


def test_lines_of_an_earlier_window_are_remembered_too(file):
    for window in ({"start": 1, "end": 100}, {"start": 200, "end": 300}):
        swe("open_file_chunk", file, path="a.txt", **window)
    put(file, b"new\n" + HUNDREDS, "a.txt")
    for line in (50, 250):
        no("lines_changed", "edit_range", file, path="a.txt", start_line=line, end_line=line, new_text="x")
    # An insertion names the line that it goes before.
    no("lines_changed", "insert_at", file, path="a.txt", line=90, new_text="x")
    edit(file, 150, 150, "x", path="a.txt")


def test_without_a_memory_of_views_edits_go_through_and_scrolling_begins_at_the_top(file, monkeypatch):
    monkeypatch.setenv("RAGIX_VIEW_STATE", "off")
    swe("open_file_chunk", file, path="a.txt", line=300)
    assert span(swe("scroll_file", file, path="a.txt")) == (1, 100)
    assert not (file / ".ragix").exists()
    put(file, b"new\n" + HUNDREDS, "a.txt")
    edit(file, 300, 300, "x", path="a.txt")


# --- undo_edit ---


def test_edits_are_taken_back_in_turn_and_redone(project):
    path = put(project, b"a\r\nb\n")
    edit(project, 1, 1, "x")
    swe("insert_at", project, path="f", line=1, new_text="y")
    swe("edit_file", project, path="f", old="b", new="z")
    assert path.read_bytes() == b"y\r\nx\r\nz\n"
    assert swe("undo_edit", project, dry_run=True)["applied"] is False
    first = swe("undo_edit", project)
    assert first["output"].startswith("✓ Undone f\n--- a/f\n+++ b/f\n")
    assert path.read_bytes() == b"y\r\nx\r\nb\n"
    swe("undo_edit", project)
    swe("undo_edit", project)
    assert path.read_bytes() == b"a\r\nb\n"
    no("nothing_to_undo", "undo_edit", project)
    swe("undo_edit", project, entry_id=first["entry_id"], dry_run=True)
    listed = swe("undo_edit", project, list=True)
    assert [entry["tool"].rpartition("/")[2] for entry in listed["entries"]][-3:] == ["edit_file", "insert_at", "edit_range"]


# --- open_file_chunk, scroll_file, read_file_viewport ---


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({}, 1, 100),
        ({"line": 200}, 150, 249),
        ({"line": 10}, 1, 59),
        ({"line": 420}, 370, 423),
        ({"start": 7, "end": 9}, 7, 9),
        ({"start": 400, "end": 9_999}, 400, 423),
        ({"end": 3}, 1, 3),
    ],
)
def test_windows_are_those_of_the_interface(file, asked, first, last):
    data = swe("open_file_chunk", file, path="a.txt", **asked)
    assert lines(data)[0] == f"--- a.txt (lines {first}-{last}) ---"
    assert lines(data)[1 : last - first + 2] == [f"{n}: line {n}" for n in range(first, last + 1)]
    assert (*span(data), data["total_lines"], data["truncated"]) == (first, last, 423, False)


def test_what_lies_below_is_said_with_the_call_that_shows_it_and_200_lines_are_the_most(file):
    said = '[tool_result: 100 of 423 lines; 323 more omitted. Call open_file_chunk(path="a.txt", start=101) to see more.]'
    assert lines(swe("open_file_chunk", file, path="a.txt"))[-1] == said
    assert lines(swe("open_file_chunk", file, path="a.txt", start=101))[1] == "101: line 101"
    data = swe("open_file_chunk", file, path="a.txt", start=1, end=300)
    assert (data["end_line"], data["truncated"], data["next_line"]) == (200, True, 201)


LONG = "y" * 2_000 + "… [line shortened: 2,000 of 5,000 characters shown]"
FOOTER = "[file f; lines 99-101 of 423; MORE below — call with offset=101; MORE above — call with offset=0]"


@pytest.mark.parametrize(
    ("tool", "data", "more", "output"),
    [
        ("open_file_chunk", b"a\nb\n", {}, "--- f (lines 1-2) ---\n1: a\n2: b"),
        ("open_file_chunk", b"", {}, "--- f (lines 0-0) ---\n[empty file]"),
        ("open_file_chunk", b"a\x0cb\r\nc\xe2\x80\xa8d\r\n", {}, "--- f (lines 1-2) ---\n1: a\x0cb\n2: c\u2028d"),
        ("open_file_chunk", WIDE, {}, "--- f (lines 1-2) ---\n1: ä\n2: ö"),
        ("open_file_chunk", b"y" * 5_000, {}, f"--- f (lines 1-1) ---\n1: {LONG}"),
        ("read_file_viewport", b"", {}, "[file f; lines 0-0 of 0; end of file]"),
        ("read_file_viewport", HUNDREDS, {"offset": 98, "limit": 3}, f" 99  line 99\n100  line 100\n101  line 101\n{FOOTER}"),
        ("search_file", b"one\ntwo one\nthree\n", {"pattern": "one"}, "1 : one\n2 : two one"),
        ("search_file", b"one\n", {"pattern": "'o.e'"}, "[no matches]"),
    ],
)
def test_what_is_shown(project, tool, data, more, output):
    put(project, data)
    said = swe(tool, project, path="f", **more)["output"]
    assert said.startswith("[no matches") if output == "[no matches]" else said == output


def test_scrolling_overlaps_by_two_lines_down_and_up(file):
    windows = [("+", (1, 100)), ("+", (99, 198)), ("+", (197, 296)), ("-", (99, 198)), ("-", (1, 100)), ("-", (1, 100))]
    for direction, window in windows:
        assert span(swe("scroll_file", file, path="a.txt", direction=direction)) == window
    # No line is passed over, whatever was opened.
    for asked in ({"line": 10}, {"start": 5, "end": 7}, {"start": 1, "end": 200}, {"start": 5, "end": 5}):
        before = swe("open_file_chunk", file, path="a.txt", **asked)
        after = swe("scroll_file", file, path="a.txt")
        assert before["start_line"] < after["start_line"] <= before["end_line"] + 1
    # Each file has its own window, whatever its spelling.
    put(file, "y\n" * 300, "b.txt")
    (file / "link").symlink_to("a.txt")
    swe("open_file_chunk", file, path="b.txt")
    swe("open_file_chunk", file, path="a.txt", start=101)
    assert [span(swe("scroll_file", file, path=path)) for path in ("link", "./b.txt")] == [(199, 298), (99, 198)]
    swe("open_file_chunk", file, path="a.txt", line=200)
    assert swe("scroll_file", file, path="a.txt")["output"].startswith("--- a.txt (lines 248-347) ---\n248: line 248\n")


def test_at_the_end_scrolling_says_so_and_goes_on_when_the_file_grew_or_shrank(file):
    swe("open_file_chunk", file, path="a.txt", start=400)
    assert "has 423 lines" in no("end_of_file", "scroll_file", file, path="a.txt")
    put(file, HUNDREDS + b"new\n" * 50, "a.txt")
    assert span(swe("scroll_file", file, path="a.txt")) == (422, 473)
    put(file, b"x\n" * 150, "a.txt")
    assert span(swe("scroll_file", file, path="a.txt")) == (51, 150)


def test_following_the_footer_of_a_viewport_shows_every_line_once_and_ends(file):
    data = swe("read_file_viewport", file, path="a.txt")
    assert lines(data)[-1] == "[file a.txt; lines 1-100 of 423; MORE below — call with offset=100]"
    assert (data["line_count"], data["next_offset"], data["truncated"]) == (100, 100, True)
    data = swe("read_file_viewport", file, path="a.txt", offset=300, limit=150)
    assert [line.strip() for line in lines(data)[:-1]] == [f"{n}  line {n}" for n in range(301, 424)]
    assert data["output"].endswith("[file a.txt; lines 301-423 of 423; end of file; MORE above — call with offset=0]")


# --- find_file, search_dir, search_file ---


@pytest.fixture
def tree(project):
    code = ("src/api/routes.py", "src/api/my_routes_old.py", "src/app.py", "tests/test_routes.py", "node_modules/routes.js")
    for name in (*code, "[id].tsx"):
        put(project, "x\n", name)
    put(project, "*_old.py\n", ".gitignore")
    put(project, "def total(x):\n    return x.sum\n\n    xysum\n", "src/a.py")
    put(project, "total = [1]\n", "b[1].py")
    return project


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"pattern": "routes"}, ["src/api/routes.py", "tests/test_routes.py"]),
        ({"pattern": "test_*.py"}, ["tests/test_routes.py"]),
        ({"pattern": "src/**/*.py"}, ["src/a.py", "src/api/routes.py", "src/app.py"]),
        ({"pattern": "pi/rout"}, ["src/api/routes.py"]),
        ({"pattern": "routes", "no_ignore": True, "root": "src"}, ["src/api/my_routes_old.py", "src/api/routes.py"]),
        ({"pattern": r"\[id\].tsx"}, ["[id].tsx"]),
    ],
)
def test_names_are_found_by_a_part_or_a_glob(tree, asked, found):
    data = swe("find_file", tree, **asked)
    assert data["files"] == [line for line in lines(data) if line not in data["notices"]] == found


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        ({"pattern": "total"}, "b[1].py:1: total = [1]\nsrc/a.py:1: def total(x):"),
        ({"pattern": "total", "include": "b*"}, "b[1].py:1: total = [1]"),
        ({"pattern": r"x.sum$"}, "src/a.py:2:     return x.sum\nsrc/a.py:4:     xysum"),
        ({"pattern": "'x.sum'"}, "src/a.py:2:     return x.sum"),
        ({"pattern": "x.sum", "literal": True}, "src/a.py:2:     return x.sum"),
        ({"pattern": "DEF", "ignore_case": True}, "src/a.py:1: def total(x):"),
    ],
)
def test_matches_are_path_line_text_of_a_regex_or_of_plain_text(tree, asked, output):
    data = swe("search_dir", tree, **asked)
    assert (data["output"], data["count"], data["truncated"]) == (output, output.count("\n") + 1, False)


def test_a_search_that_finds_nothing_says_so_and_the_ids_of_one_that_does_are_taken_by_edit_lines(tree):
    data = swe("search_dir", tree, pattern="absent")
    assert (data["count"], data["matches"], "no matches" in data["output"]) == (0, [], True)
    match = swe("search_dir", tree, pattern="def", line_ids=True)["matches"][0]
    done("edit_lines", tree, file_path="src/a.py", changes=[{"line_id": match["line_id"], "new_content": "def f(x):"}])
    assert (tree / "src/a.py").read_text().startswith("def f(x):\n")


# --- what is remembered of a view, and what becomes of a memory that is gone, damaged, hostile or in the way ---


def open_chunk(project, **where):
    return swe("open_file_chunk", project, path="a.txt", **where)


def first(project):
    return swe("scroll_file", project, path="a.txt")["start_line"]


def test_the_state_lies_in_the_project_under_its_own_gitignore(file):
    subprocess.run(["git", "init", "-q"], cwd=file, check=True)
    open_chunk(file, line=200)
    state = json.loads((file / ".ragix/state.json").read_text())
    assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{64}", state.pop("seal"))
    (shown,) = state["views"]["a.txt"].pop("shown")
    assert (shown[0], len(shown[1])) == (150, 100 * 8)
    assert state == {"format": 1, "views": {"a.txt": {"start_line": 150, "chunk_size": 100, "overlap": 2}}}
    assert (file / ".ragix/.gitignore").read_text() == "*\n"
    said = subprocess.run(["git", "status", "--short"], cwd=file, capture_output=True, text=True, check=True).stdout
    assert ".ragix" not in said
    assert sorted(os.listdir(file / ".ragix")) == [".gitignore", "state.json"]


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"x" * (2 << 20)),
        *(b'{"format": 2}', b'{"format": 1, "views": []}', b'{"format": 1, "views": {"a.txt": 7}}'),
        None,
    ],
)
def test_a_damaged_state_counts_as_none_and_heals(file, damage):
    with Workspace(str(file)) as ws:
        key = seals.secret(ws)
    for raw in (damage, None if damage is None else seals.sealed(key, "state", damage[1:])):
        open_chunk(file, line=200)
        if raw is None:
            shutil.rmtree(file / ".ragix")
        else:
            (file / ".ragix/state.json").write_bytes(raw)
        assert (first(file), first(file)) == (1, 99)
    # Control: an intact one is used.
    open_chunk(file, line=200)
    assert first(file) == 248


def test_a_state_without_the_projects_seal_counts_as_none(file, monkeypatch):
    open_chunk(file, line=200)
    forged = {"format": 1, "views": {"a.txt": {"start_line": 150, "chunk_size": 100}}}
    (file / ".ragix/state.json").write_text(json.dumps(forged))
    assert first(file) == 1
    # The control: where no seal is asked for, the forged one is believed.
    (file / ".ragix/state.json").write_text(json.dumps(forged))
    monkeypatch.setattr(seals, "unsealed", lambda *words: json.loads(words[-1]))
    assert first(file) == 248


@pytest.mark.parametrize("name", [".ragix", ".ragix/state.json"])
def test_a_link_in_its_place_is_not_followed(file, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "state.json").write_text("{}")
    place = file / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if name == ".ragix" else outside / "state.json")
    open_chunk(file)
    first(file)
    assert sorted(os.listdir(outside)) == ["state.json"]
    assert (outside / "state.json").read_text() == "{}"


def test_a_file_in_its_place_is_no_obstacle(file):
    (file / ".ragix").write_text("mine\n")
    open_chunk(file)
    assert (file / ".ragix").read_text() == "mine\n"


def test_only_the_last_200_files_are_remembered(file):
    for number in range(205):
        (file / f"f{number}").write_text("x\n")
        call("rye/swe/open_file_chunk", file, path=f"f{number}")
    names = [*json.loads((file / ".ragix/state.json").read_text())["views"]]
    assert (len(names), names[0], names[-1]) == (200, "f5", "f204")


def test_views_that_are_remembered_side_by_side_are_all_kept(file):
    for number in range(12):
        (file / f"f{number}").write_text("x\n" * 300)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: call("rye/swe/open_file_chunk", file, path=f"f{n}", line=200), range(12)))
    assert len(json.loads((file / ".ragix/state.json").read_text())["views"]) == 12
