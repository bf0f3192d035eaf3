"""edit_lines: every form of change, what is refused and why, what it returns; one file, several files, all or nothing."""

import json
import os
import re
import subprocess
import time
from hashlib import sha256
from random import Random
from unittest import mock

import pytest

import rye
from rye.errors import WorkspaceError
from rye.workspace import seals
from support.calling import call, done, ids, refused, rows
from support.stories import play

LINES = [f"line {number}" for number in range(1, 9)]
ABCDE = "a\nb\nc\nd\ne\n"
READ, IDS = ("read",), ("ids",)


def text(lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_text(text(LINES))
    (project / "g.txt").write_text("one\ntwo\n")
    return path


@pytest.fixture
def seen(project, file):
    for name in ("f.txt", "g.txt"):
        done("read", project, file_path=name, line_ids="short")


def edit(project, *changes, **more):
    more = {"line_ids": "short", "diff": False, **more}
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), **more)


def shown(path):
    return path.read_text().split("\n")[:-1]


# --- what a change means ---

# A change of the eight lines, and the lines after it.
MEANS = [
    ("2|x", ["line 1", "x", *LINES[2:]]),
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
    ({"line_id": 2, "new_content": ["x", ""]}, ["line 1", "x", "", *LINES[2:]]),
    ({"line_id": 2, "new_content": ""}, ["line 1", *LINES[2:]]),
    ({"line_id": 2, "new_content": "\n"}, ["line 1", "", *LINES[2:]]),
    ({"line_id": 2, "new_content": "x\ny\n"}, ["line 1", "x", "y", *LINES[2:]]),
    ({"start_line_id": 2, "end_line_id": 4, "new_content": "x"}, ["line 1", "x", *LINES[4:]]),
    ({"start_line_id": 1, "end_line_id": 8, "new_content": ""}, []),
    ({"before_line_id": 2, "new_content": "x"}, ["line 1", "x", *LINES[1:]]),
    *[({f"{side}_line_id": "start", "new_content": "x"}, ["x", *LINES]) for side in ("before", "after")],
    *[({f"{side}_line_id": end, "new_content": "x"}, [*LINES, "x"]) for side, end in (("before", "end"), ("after", '"END"'))],
    ({"find": "line 3\nline 4\n", "replace": "x\n"}, ["line 1", "line 2", "x", *LINES[4:]]),
    ({"find": "line 3\n", "replace": ""}, ["line 1", "line 2", *LINES[3:]]),
    ({"find": "ine", "replace": "X", "start_line_id": 2, "end_line_id": 3, "count": 2}, ["line 1", "lX 2", "lX 3", *LINES[3:]]),
    # Several land together, whatever their order; insertions around a range do not overlap it.
    (["8+|z", "1 delete", "+3|1", "2+|2", "3-4|3"], ["line 2", "1", "2", "3", *LINES[4:], "z"]),
]


@pytest.mark.parametrize(("change", "after"), MEANS)
def test_what_a_change_means(project, file, seen, change, after):
    edit(project, *(change if isinstance(change, list) else [change]))
    assert shown(file) == after
    done("undo", project)
    assert shown(file) == LINES


@pytest.mark.parametrize("name", ["f.txt", "b.py", "a:b.py"])
def test_an_address_may_be_written_as_it_is_shown(project, file, name):
    """`[LID:a1b2c3]` holds a colon, and so may a file's name."""
    (project / name).write_text("one\ntwo\n")
    one, two = ids(project, name)
    place = "" if name == "f.txt" else f"{name}:"
    for form in ("[LID:{}]", "LID:{}"):
        done("edit_lines", project, file_path="f.txt", changes=[f"{place}{form.format(one)} move after {place}end"])
        done("edit_lines", project, file_path="f.txt", changes=[f"{place}{form.format(two)}-{form.format(two)}|x"])
        assert shown(project / name) == ["x", "one"]
        for _ in range(2):
            done("undo", project)
    for form in ("{}", "lid:{}", '"{}"', "'{}'", "`{}`", " {}\n", "[LID:{}] two", "<{}>"):
        change = {"line_id": form.format(two.upper()), "new_content": "2"}
        done("edit_lines", project, file_path=name, changes=[change])
        assert shown(project / name) == ["one", "2"]
        done("undo", project)


def test_an_id_of_digits_that_is_given_as_a_number_is_asked_for_in_quotes(project):
    names = {str(at): sha256(b"1:%d" % at).hexdigest()[:6] for at in range(1_000)}
    text, name = next(one for one in names.items() if one[1].isdigit() and one[1][0] != "0")
    (project / "f.txt").write_text(f"{text}\n")
    assert ids(project) == [name]
    change = {"line_id": int(name), "new_content": "x"}
    error = refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[change])
    assert f'write it in quotes, "{name}"' in error


@pytest.mark.parametrize(
    ("change", "line"),
    [
        *[(change, "x") for change in ("@4|x", "4-|x", "f.txt:@4-|x", "4-\tx", "2-4-|x", "+4-|x", "find|line 4|x")],
        ("f.txt:find#line 4#a|b", "a|b"),
        *[(change, "x") for change in ("4 find|line 4|x", "3-5 find 1 |line 4|x", '{"find": "line 4", "replace": "x"}')],
        ('{"find": "line 3\nline 4", "replace": "x"}', "x"),
        *[(change, "x") for change in ({"find": "line 4", "replace": "x"}, {"line_id": "4-", "new_content": "x"})],
        # A line that only looks so is text.
        ("4|find|a|b", "find|a|b"),
        ("4\tcmd:find|a|b", "cmd:find|a|b"),
    ],
)
def test_a_change_is_taken_in_every_form(project, file, change, line):
    tools = rye.toolset(project, ["rye/file-system"])
    for written in ([change], change, json.dumps([change])):
        tools.call("read", {"file_path": "f.txt"})
        answer = tools.call("edit_lines", {"file_path": "f.txt", "changes": written})
        assert line in shown(file), (written, answer)
        tools.call("undo", {})


# --- what is refused: all of it at once, and nothing is written then ---

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
    *[{"find": "line 1", "replace": "line 1"}, {"find": "line 1"}, "2-3+|x", "4- delete"],
    *["x", "12", "1:3|x", "f.txt delete file", "2-4 move after 3", "2-4 move after 4", "nonsense", "find|a|b|c", "find|a", "4"],
    # At once, however long.
    *["a:" * 50_000, " " * 100_000, "1-" * 50_000 + "|x", ":" * 4_000 + "|", " " * 4_000 + "x", "a " * 2_000],
]


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        *[("invalid_parameters", [wrong]) for wrong in NO_CHANGE],
        *[("malformed_change", ["8|x", wrong]) for wrong in MALFORMED],
        ("malformed_change", ["4", "nonsense"]),
        *[("invalid_line_id", [end]) for end in ("end|x", "0+|x", {"line_id": "start", "new_content": "x"})],
        *[("overlapping_changes", [one, "2-4|x"]) for one in ("2-4|y", "3|y", "1-2|x", "2+|y", "3 move after 5")],
        *[("overlapping_changes", [one, "2-3 move after 5"]) for one in ("+2|x", "3+|x", "7 move after 3", "7 copy before 2")],
        *[("malformed_change", ["f.txt rename to n.txt", "f.txt delete file"][::step]) for step in (1, -1)],
        *[
            ("invalid_line_id", some)
            for some in (["99 move after g.txt:1", "g.txt:77|x"], ["99 find|a|b"], ["2 move after 99"])
        ],
        ("no_changes", []),
        ("file_exists", ["f.txt rename to g.txt"]),
        *[("is_link", [f"link.txt {verb}"]) for verb in ("delete file", "rename to n.txt")],
        ("duplicate_file", ["2|x", "./f.txt:3|y"]),
        ("text_count", [{"find": "line", "replace": "x"}]),
        ("text_not_found", [{"find": "nowhere", "replace": "x"}]),
        ("protected_path", ["f.txt rename to .git/hooks/pre-commit"]),
        ("path_outside", ["../x:1|y"]),
        ("no_change", ["2|line 2"]),
        ("no_index", ["h.txt:1|x"]),
        ("file_not_found", ["none.txt:1|x"]),
        ("is_directory", ["folder:1|x"]),
        ("protected_path", [".git/config:1|x"]),
    ],
)
def test_what_is_refused(project, file, seen, code, changes):
    (project / "folder").mkdir()
    (project / ".git").mkdir()
    (project / "link.txt").symlink_to("g.txt")
    for name in ("h.txt", ".git/config"):
        (project / name).write_text("a\n")
    done("read", project, file_path=".git/config", line_ids="short")
    before = file.read_bytes()
    for more in ({}, {"dry_run": True}):
        error = refused(code, "edit_lines", project, file_path="f.txt", changes=changes, line_ids="short", **more)
        assert (file.read_bytes(), (project / "g.txt").exists()) == (before, True), error
    if code == "malformed_change":
        assert "Nothing was written" in error
        assert "hange 2" in error or " is both " in error
        forms = ("find#old#new", "12-15|one", "end+|", "12-15 delete", "move after", "rename to")
        assert changes[1] not in ("nonsense", "4") or [error.count(form) for form in forms] == [1] * len(forms)
    at = {"overlapping_changes": "overlap", "no_change": "no-op", "invalid_line_id": "Change 1:", "file_not_found": "makes a"}
    assert error.count(at.get(code, error)) == 1
    said = {"find|a": "needs both", "2-4|y": "overlap: make them one.", "end|x": "is no line", "0+|x": "is no line"}
    assert all(said.get(str(one), "") in error for one in changes)


STORIES = {
    "each change may have line ends of its own": [
        ("others", ABCDE),
        IDS,
        ("edit", [{"line_id": "<1>", "new_content": "A", "newline": "lf"}, "<2>|B"], {"newline": "crlf"}),
        ("is", "A\nB\r\nc\nd\ne\n"),
        ("edit", ["<3>|C"], {"convert_newlines": "crlf"}),
        ("is", "A\r\nB\r\nC\r\nd\r\ne\r\n"),
    ],
    "of two places that overlap none is chosen": [
        ("others", "b\na\nb\na\nb\n"),
        ("not", "text_count", [{"find": "b\na\nb", "replace": "x"}], "overlap"),
        # More of the text says which; and where all that repeats is replaced, it makes no difference.
        ("edit", [{"find": "a\nb\na\nb", "replace": "x"}]),
        ("is", "b\nx\n"),
        ("others", "        deep\n"),
        ("edit", [{"find": "  ", "replace": "\t", "count": 4}], {"on_stale": "rebase"}),
        ("is", "\t\t\t\tdeep\n"),
    ],
    "of a text of several lines those places are shown that have most of it but for white space": [
        ("others", "a\n" * 20 + "a\n  b\nc\n" * 2),
        ("not", "text_not_found", ["find|a\nb\nd|x"], "have its first 2 lines.", "now:\n20\ta\n21\ta\n22\t  b\n23\tc\n"),
        ("not", "text_not_found", ["find|a\nb\nc|x"], "But for white space these lines have it.", "now:\n20\ta\n"),
        ("not", "text_not_found", ["find|c |x"], "But for white space these lines have it.", "now:\n22\t  b\n23\tc\n"),
    ],
    "several places of a text are shown with their addresses": [
        ("others", "one\ntwo\nthree\ntwo\nthree\n"),
        ("not", "text_count", [{"find": "two", "replace": "x"}], "2 place(s)", "\n4\ttwo\n5\tthree\n"),
        ("edit", [{"find": "two\nthree\n", "replace": "2\n", "count": 2}]),
        ("is", "one\n2\n2\n"),
    ],
    "very many places in one line": [("others", "a," * 700_000), ("edit", ["find 700000|,|;"]), ("is", "a;" * 700_000)],
    "a pasted prefix is refused, and is text where no view of this file showed it": [
        ("others", ABCDE),
        IDS,
        *[
            ("not", "pasted_ids", [{"line_id": "<1>", "new_content": pasted}], "begins a line with [LID:<2>]")
            for pasted in ("[LID:<2>] x", "ok\n  [LID:<2>] y")
        ],
        ("edit", [{"line_id": "<1>", "new_content": "[LID:abc123] x"}]),
        ("is", "[LID:abc123] x\nb\nc\nd\ne\n"),
        # The file has such lines now.
        ("edit", [{"line_id": "<2>", "new_content": "[LID:d4e5f6] another"}]),
    ],
    "dead IDs tell their fate and their neighbours": [
        ("others", ABCDE),
        IDS,
        ("edit", ["<3> delete"]),
        ("not", "invalid_line_id", ["<3>|x"], "line <3> was deleted (it was line 3 between <2> and <4>)"),
        ("edit", ["<2>|B"]),
        ("not", "invalid_line_id", ["<2>|x"], "line <2> was replaced"),
        ("edit", ["<4> delete"]),
        # Dead neighbours are followed to living ones.
        ("not", "invalid_line_id", ["<3>|x"], "between <1> and <5>"),
    ],
    "all problems are told at once": [
        ("others", ABCDE),
        IDS,
        (
            "not",
            "invalid_line_id",
            ["ffffff|x", {"new_content": "x"}, "<4>-<2>|x", "<1>|[LID:<2>] x", "<5>|1", "<5>|2"],
            *["Change 1: invalid", "end_line_id, or after_line_id", "Change 3 is reversed", "5 and 6 overlap"],
            "Change 4: The new text begins a line with",
        ),
    ],
    "a line that came between refuses the range until it was read": [
        ("others", ABCDE),
        IDS,
        ("others", "a\nb\nnew\nc\nd\ne\n"),
        ("not", "unseen_lines", ["<1>-<5>|x"], "] new", {"on_stale": "rebase", "line_ids": "lid"}),
        # The refusal shows it, and does not count: the same once more is no sign that it was seen.
        ("not", "unseen_lines", ["<1>-<5>|x"], "was never shown"),
        ("read", {"offset": 2, "limit": 3}),
        ("edit", ["<1>-<5>|x"]),
        ("is", "x\n"),
    ],
    "a line that is gone refuses the range that it stood in until that was read": [
        ("others", ABCDE),
        IDS,
        ("others", "a\nb\nd\ne\n"),
        ("not", "unseen_lines", ["<2>-<4>|x"], "next to removed ones", {"on_stale": "rebase"}),
        READ,
        ("edit", ["<2>-<4>|x"]),
        ("is", "a\nx\ne\n"),
    ],
    "a stale file is refused with what became of the lines": [
        ("others", ABCDE),
        IDS,
        ("others", "top\na\nB\nc\nd\ne\n"),
        (
            "not",
            "stale_file",
            ["<2>|x", "[LID:<4>]|y"],
            *["File has changed since last read", "line <2> was replaced", "] B", "<4>: unchanged, moved from line 4 to 5"],
            {"line_ids": "lid"},
        ),
        ("not", "invalid_line_id", [{"line_id": "no id", "new_content": "x"}]),
        ("edit", ["<4>|y"]),
        ("is", "top\na\nB\nc\ny\ne\n"),
    ],
    **{
        f"rebase refuses a line that others {what}": [
            ("others", ABCDE),
            IDS,
            ("others", now),
            ("not", code, ["<4>|D"], {"on_stale": "rebase"}),
        ]
        for what, now, code in (
            ("indented", "a\nb\nc\n  d\ne\n", "unseen_lines"),
            ("changed", "a\nb\nc\nDD\ne\n", "invalid_line_id"),
            ("removed", "a\nb\nc\ne\n", "invalid_line_id"),
        )
    },
}


@pytest.mark.parametrize("name", STORIES)
def test_story(project, name):
    play(project, *STORIES[name])


@pytest.mark.parametrize("change", ["abc123|x", "+start|x", "end+|x"])
def test_without_a_read_the_answer_stays_the_same(project, change, monkeypatch):
    (project / "f.txt").write_text(ABCDE)
    asked = {"file_path": "f.txt", "changes": [change]}
    first = refused("no_index", "edit_lines", project, **asked)
    assert "Read the file first to generate line IDs" in first
    refused("out_of_range", "rye/swe/edit_range", project, path="f.txt", start_line=99, end_line=99, new_text="x")
    done("rye/swe/insert_at", project, path="f.txt", line=1, new_text="x", dry_run=True)
    assert refused("no_index", "edit_lines", project, **asked) == first
    refused("no_index", "edit_lines", project, file_path="f.txt", changes=[], convert_newlines="crlf")
    # As where the file system of the user's space has no modes: others could read the secret.
    monkeypatch.setattr(seals, "_read", lambda _: None)
    assert "in this same process (its IDs end with it" in refused("no_index", "edit_lines", project, **asked)
    # Control: after a read the ends can be named, and a line that is none is told as that.
    done("read", project, file_path="f.txt")
    data = call("edit_lines", project, **asked)
    assert data["success"] == (change != "abc123|x")
    assert data["success"] or data["code"] == "invalid_line_id"


def test_unknown_ids_name_the_nearest_and_the_available(project, file):
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(60)))
    names = ids(project)
    wrong = names[7][:-1] + ("0" if names[7][-1] != "0" else "1")
    data = call("edit_lines", project, file_path="f.txt", changes=[{"line_id": wrong, "new_content": "x"}])
    assert (data["code"], data["available_ids"]) == ("invalid_line_id", names[:20])
    assert names[7] in data["nearest"][wrong]
    assert all(said in data["error"] for said in (f"invalid line ID {wrong}", f"{names[19]} and 40 more."))


def test_a_line_that_was_never_shown_refuses_the_range(project, file):
    file.write_bytes(b"".join(b"line %d\n" % n for n in range(100)))
    first = rows(done("read", project, file_path="f.txt", limit=2))[0][0]
    last = rows(done("read", project, file_path="f.txt", offset=99))[-1][0]
    change = {"file_path": "f.txt", "changes": [{"start_line_id": first, "end_line_id": last, "new_content": "x"}]}
    error = refused("unseen_lines", "edit_lines", project, **change)
    told = ("96 lines were never shown: 3-98.\n" in error, 'read(file_path="f.txt:3-98")' in error, error.count("[LID:"))
    assert told == (True, True, 10)
    assert refused("unseen_lines", "edit_lines", project, **change) == error
    done("read", project, file_path="f.txt")
    done("edit_lines", project, **change)
    assert file.read_bytes() == b"x\n"


# --- what it returns ---


def test_the_fields_of_a_result(project, file):
    file.write_text(ABCDE)
    names = ids(project)
    changes = [{"line_id": names[1], "new_content": "B"}, {"line_id": names[4], "new_content": "E\nF"}]
    data = done("edit_lines", project, file_path="f.txt", changes=changes)
    counts = {"changes_applied", "lines_changed", "truncated"}
    assert set(data) == {"success", "output", "file_path", "version", "warnings", "entry_id", "lines"} | counts
    assert [data[name] for name in sorted(counts)] == [2, 3, False]
    assert data["output"].startswith("--- a/f.txt\n+++ b/f.txt\n@@ -1,5 +1,6 @@\n a\n-b\n+B\n c\n d\n-e\n+E\n+F\n")
    assert file.read_bytes() == b"a\nB\nc\nd\nE\nF\n"
    # The new IDs of the changed lines, and of those around them.
    assert [row["line_num"] for row in data["lines"]] == [1, 2, 3, 4, 5, 6]
    assert [row["id"] for row in data["lines"]] == ids(project)
    edit(project, {"start_line_id": data["lines"][4]["id"], "end_line_id": data["lines"][5]["id"], "new_content": "z"})
    assert file.read_bytes() == b"a\nB\nc\nd\nz\n"


def test_a_dry_run_writes_nothing(project, file, seen):
    info = file.stat()
    data = edit(project, "1|A", dry_run=True, diff=True)
    assert ("+A" in data["output"], data["dry_run"], data["changes_applied"]) == (True, True, 0)
    assert edit(project, "f.txt rename to new/dir/b.py", dry_run=True)["notes"] == ["renamed f.txt to new/dir/b.py"]
    assert (file.stat().st_mtime_ns, file.stat().st_ino, shown(file)) == (info.st_mtime_ns, info.st_ino, LINES)
    assert (done("undo", project, list=True)["count"], (project / "new").exists()) == (0, False)
    edit(project, "1|A", "f.txt rename to new/dir/b.py")
    assert shown(project / "new/dir/b.py") == ["A", *LINES[1:]]


# --- several files, moves, renames ---


@pytest.mark.parametrize("err", [OSError(28, "No space"), WorkspaceError("no_space", "No space.", "Make room.")])
def test_a_change_whose_line_ids_cannot_be_stored_is_made_and_says_so(project, file, seen, monkeypatch, err):
    monkeypatch.setattr("rye.line_ids.store.save", mock.Mock(side_effect=err))
    said = edit(project, "2|x")["warnings"]
    assert (shown(file)[1], len(said)) == ("x", 1)
    assert re.search(r"could not be stored \((\[Errno 28\] )?No space\)\. Read the file again", said[0])


def test_several_files_change_together_or_not_at_all(project, file, seen):
    asked = {"file_path": "f.txt", "changes": ["2|x", "g.txt:9|y"]}
    assert "g.txt" in refused("invalid_line_id", "edit_lines", project, **asked)
    both = refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=["99|x", "g.txt:find|no|y"])
    assert 'again. Call read(file_path="g.txt")' in both
    assert (shown(file), shown(project / "g.txt")) == (LINES, ["one", "two"])
    data = edit(project, "2|x", "g.txt:1|ONE", "3-4 move after g.txt:end")
    assert (shown(file), shown(project / "g.txt")) == (["line 1", "x", *LINES[4:]], ["ONE", "two", "line 3", "line 4"])
    assert [one["file_path"] for one in data["files"]] == ["f.txt", "g.txt"]
    assert "g.txt:\n1 -> 3\n2+ -> 4-5\n" in data["output"]
    name = re.search(r"^\[entry_id (\w{6}): all of it\]$", data["output"], re.MULTILINE)[1]
    refused("unknown_entry", "undo", project, entry_id=name[1:])
    edit(project, "g.txt:4|moved")
    done("undo", project)
    done("undo", project, entry_id=name)
    assert (shown(file), shown(project / "g.txt")) == (LINES, ["one", "two"])


def test_the_answer_to_a_name_replaced_in_many_files_is_short(project, file):
    for number in range(20):
        (project / f"{number}.txt").write_text("a long line of text which holds a name that nobody saw\n" * 30)
    assert len(edit(project, *[f"{number}.txt:find 30|name|x" for number in range(20)])["output"]) < 20 * 100


def test_files_are_renamed_and_deleted_among_the_changes(project, file, seen):
    os.chmod(file, 0o755)
    data = edit(project, "2|x", "rename to src/new.txt", "g.txt: delete file")
    new = project / "src/new.txt"
    assert (file.exists(), (project / "g.txt").exists(), shown(new)) == (False, False, ["line 1", "x", *LINES[2:]])
    assert new.stat().st_mode & 0o777 == 0o755
    assert ("renamed f.txt to src/new.txt" in data["output"], "\n2 -> 9\n" in data["output"]) == (True, True)
    # The addresses moved along, and none of them is given to another line.
    data = done("edit_lines", project, file_path="src/new.txt", changes=["5|five", "9|X"], line_ids="short")
    assert (shown(new)[4], "5 -> 2h\n" in data["output"]) == ("five", True)
    done("undo", project)
    back = done("undo", project)["output"]
    assert (shown(file), shown(project / "g.txt"), new.exists()) == (LINES, ["one", "two"], False)
    assert "renamed src/new.txt to f.txt\n@@ -1,5 +1,5 @@\n line 1\n-x\n+line 2\n" in back
    edit(project, "2|again")


def test_the_end_and_start_of_a_file_that_was_never_read_take_lines(project, file, seen):
    (project / "new.txt").write_text("first\n")
    edit(project, "2 copy after new.txt:end", "3 move before new.txt:start")
    assert shown(project / "new.txt") == ["line 3", "first", "line 2"]
    (project / "old.txt").write_bytes(b"caf\xe9\n")
    done("read", project, file_path="old.txt", encoding="latin-1", line_ids="short")
    edit(project, "old.txt:1 copy after new.txt:end")
    assert shown(project / "new.txt")[3:] == ["caf\xe9"]


def test_a_text_within_a_byte_that_is_shown_as_an_escape_is_not_found(project):
    (project / "old.txt").write_bytes("é\n".encode() * 20 + b"a \x95 x95\n")
    assert r"within a \xHH" in refused("text_not_found", "edit_lines", project, file_path="old.txt", changes=["find|95 x|y"])
    done("edit_lines", project, file_path="old.txt", changes=["find|x95|y"])
    assert (project / "old.txt").read_bytes().endswith(b"a \x95 y\n")


# --- byte order marks ---


@pytest.mark.parametrize("count", [0, 3, 3_000])
def test_a_byte_order_mark_comes_and_goes_and_lines_keep_their_ids(project, count):
    data, mark = b"".join(b"line %d\n" % number for number in range(count)), b"\xef\xbb\xbf"
    (project / "f.txt").write_bytes(data)
    names = ids(project)
    assert "+bom" in edit(project, bom="add", dry_run=True)["output"]
    added = edit(project, bom="add", diff=True)
    assert (project / "f.txt").read_bytes() == mark + data
    assert "utf-8 -> utf-8+bom, byte order mark added" in added["output"]
    if count:
        assert ids(project) == names
        edit(project, {"line_id": names[1], "new_content": "x"})
        assert (project / "f.txt").read_bytes() == mark + data.replace(b"line 1\n", b"x\n", 1)
        done("undo", project)
    assert done("undo", project)["undone"] == added["entry_id"]
    assert (project / "f.txt").read_bytes() == data
    edit(project, bom="add")
    edit(project, bom="remove")
    assert (project / "f.txt").read_bytes() == data


@pytest.mark.parametrize(
    ("content", "more", "code"),
    [
        (b"one\n", {"bom": "remove"}, "no_change"),
        (b"x\nx\n", {"changes": ["1 move after 2"]}, "no_change"),
        ("\ufeffone\n".encode("utf-16-le"), {"bom": "remove"}, "bom_needed"),
        (b"caf\xe9\n", {"bom": "add", "encoding": "latin-1"}, "bom_needed"),
        (b"one\n", {"bom": "add", "changes": ["1|x"]}, "bom_alone"),
        (b"one\n", {"bom": "add", "version": "1.7-abcdef12"}, "wrong_version"),
        (b"one\n", {"final_newline": "add", "changes": ["1|x", "g.txt:1|x"]}, "one_file"),
        *[(b"a\n\n", {"final_newline": "remove", "changes": some}, "empty_last_line") for some in ([], ["2|x\n"])],
    ],
)
def test_marks_that_cannot_be_changed(project, content, more, code):
    (project / "f.txt").write_bytes(content)
    done("read", project, file_path="f.txt", line_ids="short")
    refused(code, "edit_lines", project, **{"file_path": "f.txt", "changes": [], **more})
    assert (project / "f.txt").read_bytes() == content


@pytest.mark.parametrize(
    ("before", "change", "more", "after", "diff"),
    [
        (b"a\r\nb\r\n", {"line_id": 0, "new_content": "a"}, {"newline": "lf"}, b"a\nb\r\n", "-a [CRLF]\n+a [LF]\n b"),
        (b"a\nb", {"line_id": 1, "new_content": "B"}, {}, b"a\nB", "+B\n\\ No newline at end of file"),
        (b"a\nb\n", {"line_id": 1, "new_content": []}, {"final_newline": "remove"}, b"a", "+a\n\\ No newline at end of file"),
    ],
)
def test_terminators_follow_the_neighbours_and_are_seen_in_the_diff(project, file, before, change, more, after, diff):
    file.write_bytes(before)
    names = ids(project)
    change = {**change, "line_id": names[change["line_id"]]}
    assert diff in edit(project, change, diff=True, **more)["output"]
    assert file.read_bytes() == after


def test_the_printed_diff_is_one_that_git_applies(project, file):
    chance = Random(5)
    for _ in range(40):
        texts = [
            "".join(chance.choices("ab} \t\x0b\x0c\x85\xe9\u2028", k=chance.randint(0, 4)))
            for _ in range(chance.randint(2, 25))
        ]
        file.write_text("\n".join([*texts, chance.choice(["", "end"])]), newline="")
        old, names = file.read_bytes(), ids(project)
        a, b, c, d = sorted(chance.choices(range(len(names)), k=4))
        changes = [
            {
                "start_line_id": names[start],
                "end_line_id": names[stop],
                "new_content": chance.choices(["a", "}", ""], k=chance.randint(0, 3)),
            }
            for start, stop in ([(a, b), (c, d)] if b < c else [(a, b)])
        ]
        answer = call("edit_lines", project, file_path="f.txt", changes=changes, line_ids="none")
        new = file.read_bytes()
        if answer["success"] and new:
            file.write_bytes(old)
            diff = answer["output"].split("\n\n")[0] + "\n"
            subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=project, input=diff.encode(), check=True)
            assert file.read_bytes() == new


def test_nothing_is_put_behind_half_a_character(project, file):
    file.write_bytes(b"\xff\xfea\0\n\0b")
    names = ids(project)
    refused("odd_end", "edit_lines", project, file_path="f.txt", changes=[{"after_line_id": names[1], "new_content": "x"}])
    edit(project, {"line_id": names[0], "new_content": "x"})
    assert file.read_bytes() == b"\xff\xfex\0\n\0b"


def test_thousands_of_changes_in_one_call_cost_in_proportion(project):
    (project / "f.txt").write_bytes(b"".join(b"line %d\n" % n for n in range(10_000)))

    def all_names():
        return [name for offset in range(1, 10_000, 2_000) for name in ids(project, "f.txt", offset=offset, limit=2_000)]

    taken = {}
    for count in (250, 2_500):
        step, names = 10_000 // count, all_names()
        changes = [{"line_id": names[at * step + count % 7], "new_content": f"{count} {at}"} for at in range(count)]
        started = time.process_time()
        done("edit_lines", project, file_path="f.txt", changes=changes)
        taken[count] = time.process_time() - started
    assert taken[2_500] < 10 * taken[250] + 1, taken
    assert (project / "f.txt").read_bytes().splitlines()[2_500 % 7 :: 4] == [b"2500 %d" % at for at in range(2_500)]
