"""Marks of hunks, files and calls: what is marked at one level is so at the others, and of a whole call one is stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rye.review import marks
from rye.workspace.workspace import Workspace

HUNKS = [2, 0, 3]
EVERY = {(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (2, 2)}
MARKS = ["c", "c/0", "c/1", "c/2", "c/0/0", "c/0/1", "c/2/0", "c/2/1", "c/2/2"]


def covered(mark):
    numbers = [int(one) for one in mark.split("/")[1:]]
    return {one for one in EVERY if list(one[: len(numbers)]) == numbers}


@given(st.lists(st.sampled_from(MARKS), max_size=12))
def test_toggles_are_those_of_a_set_of_hunks(toggles):
    found, model = marks.ReviewMarks(["other/1"], ""), set()
    for mark in toggles:
        model = model - covered(mark) if covered(mark) <= model else model | covered(mark)
        found.toggle(mark, HUNKS)
        for one in ("c", *(f"c/{file}/{hunk}" for file, hunk in EVERY)):
            assert (one in found) == (covered(one) <= model), (toggles, one)
    assert "other/1" in found
    whole = [one for one in found.reviewed if one == "c"]
    assert not whole or len([one for one in found.reviewed if one.startswith("c")]) == 1


def test_they_are_stored_and_damage_is_nothing(project):
    with Workspace(project) as ws:
        with marks.changed(ws) as one:
            one.toggle("c/0", HUNKS)
            one.looked = "x"
        assert marks.read(ws).reviewed == ["c/0/0", "c/0/1"]
        assert marks.read(ws).looked == "x"
        for text in ("", "[]", '{"reviewed": 1, "looked": 2}', '{"reviewed": [1, "a", null]}', "{" * 9):
            marks._place(ws).write_text(text)
            assert set(marks.read(ws).reviewed) <= {"a"}
            assert marks.read(ws).looked == ""
