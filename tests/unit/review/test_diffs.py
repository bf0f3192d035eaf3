"""What a change did, as the pages show it: lines with their numbers, in every encoding, and in words what is no change of lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.journal.history import History
from rye.review import changes, diffs
from rye.workspace.workspace import Workspace
from support.calling import call
from support.shell_calls import bash


def last(project, *, around=True):
    """Return what the newest call did, by path."""
    with Workspace(str(project)) as ws:
        now = changes.ChangeIndex(str(project)).timeline(ws)
        one = now.groups[0]
        rows = list(History(ws)) if around else None
        return {file.path: file for file in diffs.of_entries(ws, changes.entries_of(ws, one), rows)}


def run(project, command):
    assert bash(project, command)["success"]
    return last(project)


@pytest.fixture
def begun(project):
    (project / "a.txt").write_text("1\n2\n3\n4\n5\n6\n")
    bash(project, "true")
    return project


def test_a_commands_lines_have_their_numbers(begun):
    one = run(begun, "sed -i '2s/.*/two/; 5d' a.txt")["a.txt"]
    assert [(hunk.number, hunk.old, hunk.new, list(hunk.removed), list(hunk.added)) for hunk in one.hunks] == [
        (1, 1, 1, ["2"], ["two"]),
        (2, 4, 4, ["5"], []),
    ]
    assert list(one.before) == ["1", "2", "3", "4", "5", "6"]
    assert list(one.after) == ["1", "two", "3", "4", "6"]
    assert (one.added, one.removed) == (1, 2)


def test_an_edits_lines_have_what_is_around_them(begun):
    (begun / "b.txt").write_text("a\nb\nc\n")
    call("read", begun, file_path="b.txt")
    done = call("edit_lines", begun, file_path="b.txt", changes=[{"find": "b", "replace": "B"}])
    assert done["success"], done
    one = last(begun)["b.txt"]
    assert (list(one.before), list(one.after)) == (["a", "b", "c"], ["a", "B", "c"])
    assert [(hunk.old, list(hunk.removed), list(hunk.added)) for hunk in one.hunks] == [(1, ["b"], ["B"])]
    # Later edits of the file do not change what was around it then.
    bash(begun, "echo d >> b.txt")
    (begun / "b.txt").write_text("quite other\n")
    assert last(begun, around=False)


def test_files_that_come_and_go_are_one_hunk(begun):
    one = run(begun, "printf 'x\\ny' > new.txt; rm a.txt; mkdir d; ln -s a.txt link; printf '\\0\\1' > bin")
    assert [(hunk.number, list(hunk.added)) for hunk in one["new.txt"].hunks] == [(1, ["x", "y"])]
    assert list(one["new.txt"].notes) == ["The file was made."]
    assert [len(hunk.removed) for hunk in one["a.txt"].hunks] == [6]
    assert list(one["a.txt"].notes) == ["The file was deleted."]
    assert one["link"].hunks[0].note == "nothing -> a link to a.txt"
    assert "a directory" in one["d"].hunks[0].note
    assert "a file of 2 bytes" in one["bin"].hunks[0].note


def test_modes_and_line_ends_are_said(begun):
    one = run(begun, "chmod 700 a.txt; sed -i '3s/$/\\r/' a.txt")["a.txt"]
    lines, mode = one.hunks
    assert (list(lines.removed), list(lines.added)) == (["3  [line end: LF]"], ["3  [line end: CR LF]"])
    assert (mode.number, mode.note) == (2, "mode 644 -> 700")
    one = run(begun, "printf '1\\n2' > a.txt")["a.txt"]
    assert any("[no line end]" in line for hunk in one.hunks for line in hunk.added)


@pytest.mark.parametrize("code", ["utf-16", "latin-1", "utf-8-sig", "shift_jis"])
def test_edits_in_other_encodings_are_text(project, code):
    text = "eins\nzwei \u00fc\n" if code != "shift_jis" else "eins\nzwei \u3042\u3044\u3046\u3048\u304a\u304b\u304d\n"
    (project / "a.txt").write_bytes(text.encode(code))
    call("read", project, file_path="a.txt")
    change = {"find": "eins", "replace": "one"}
    assert call("edit_lines", project, file_path="a.txt", changes=[change])["success"]
    one = last(project)["a.txt"]
    assert [(list(hunk.removed), list(hunk.added)) for hunk in one.hunks] == [(["eins"], ["one"])]
    call("write", project, file_path="a.txt", content="quite other\n")
    one = last(project)["a.txt"]
    assert ["quite other"] in [list(hunk.added) for hunk in one.hunks]


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_the_hunks_of_two_texts_turn_one_into_the_other(old, new, old_end, new_end):
    before, after = ("\n".join(side) + "\n" * end for side, end in ((old, old_end), (new, new_end)))
    one = diffs.of_contents("x", before.encode(), after.encode())
    made, shift = list(one.before), 0
    for hunk in one.hunks:
        removed = [line.partition("  [")[0] for line in hunk.removed]
        added = [line.partition("  [")[0] for line in hunk.added]
        assert list(one.before[hunk.old : hunk.old + len(removed)]) == removed
        assert hunk.new == hunk.old + shift
        made[hunk.new : hunk.new + len(removed)] = added
        shift += len(added) - len(removed)
    assert made == list(one.after)


def test_bytes_and_large_files_are_said_in_words(monkeypatch):
    assert diffs.of_contents("x", b"a\0", None).notes == ["The file was deleted.", "2 bytes before, 0 after."]
    monkeypatch.setattr(diffs, "MAX_TEXT", 3)
    assert diffs.of_contents("x", b"a\n", b"aaaa\n").notes == ["2 bytes before, 5 after."]
