"""The line IDs: how they are made, how they live through changes, what becomes of the dead."""

from __future__ import annotations

from hashlib import sha256

import pytest

from rye.line_ids import index, reconcile
from rye.line_ids.document import fit, scan
from rye.workspace.encoding import UTF8
from support.calling import done, ids, refused, undo
from support.signed_tools import rye


def put(project, lines):
    (project / "f.txt").write_text("".join(f"{line}\n" for line in lines))
    return ids(project, limit=2_000)


def edit(project, *changes):
    done("edit_lines", project, file_path="f.txt", changes=list(changes))
    return ids(project, limit=2_000)


def line(name, text):
    return {"line_id": name, "new_content": text}


FUNCTIONS = ["def first_of_all():", "    pass", "    last = 1", "", "def g():", "    return 1", "    pass", "", "end"]
MANY = [f"line {number}" for number in range(1_990)]
BY_OTHERS = {
    "twins beside an insertion": (["a {", "}", "b {", "}"], ["new", "a {", "}", "b {", "}"], [None, 0, 1, 2, 3]),
    "numbers do not matter": (MANY[:50], ["zero", *MANY[:50]], [None, *range(50)]),
    # What is at an end of a moved block, and has twins, may be another line than that which was there.
    "moved, with what is between": (FUNCTIONS, [*FUNCTIONS[4:8], *FUNCTIONS[:4], "end"], [4, 5, 6, 7, 0, 1, 2, None, 8]),
    "indented anew": (["if x:", "a = 1", "b = 2", "end"], ["if x:", "    a = 1", "\tb = 2  ", "end"], [0, 1, 2, 3]),
    "moved, and indented": (["sixteen_letters_of", "y", *"abc"], [*"abc", " sixteen_letters_of", " y"], [2, 3, 4, 0, None]),
    "put into a block": (["counted = 1", "ordered = 2"], ["if x:", " counted = 1", " ordered = 2"], [None, 0, 1]),
    "replaced": (["a", "b", "c"], ["a", "other", "c"], [0, None, 2]),
    "deleted": (["a", "b", "c"], ["a", "c"], [0, 2]),
    "over the limit of a small index": (MANY, [*MANY, *["more"] * 9], [*range(1_990), *[None] * 9]),
}


@pytest.mark.parametrize("name", BY_OTHERS)
def test_a_line_that_is_found_again_after_others_changes_keeps_its_id(project, name):
    before, after, kept = BY_OTHERS[name]
    was = put(project, before)
    now = put(project, after)
    assert [was.index(one) if one in was else None for one in now] == kept
    assert len(set(now)) == len(after)


def test_a_file_that_grew_over_the_limit_and_shrank_has_its_ids(project):
    first = put(project, MANY)
    put(project, [*MANY, *["more"] * 20])
    assert put(project, MANY) == first


def test_a_first_id_is_the_documented_hash_and_equal_lines_have_different_ones(project):
    assert put(project, ["a", "b"]) == [sha256(b"1:a").hexdigest()[:6], sha256(b"2:b").hexdigest()[:6]]
    assert len(set(put(project, ["}"] * 2_000))) == 2_000


def test_a_later_line_of_the_same_text_is_another_line_and_undo_brings_the_first_back(project):
    was = put(project, ["a", "b"])
    edit(project, line(was[0], ""))
    assert edit(project, {"after_line_id": "start", "new_content": "a"})[0] not in was
    refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[line(was[0], "x")])
    undo(project)
    undo(project)
    assert ids(project) == was


def test_undo_gives_each_of_several_twins_its_own_id(project):
    was = put(project, ["keep", "}", "new", "    }", "x"])
    edit(project, {"start_line_id": was[1], "end_line_id": was[3], "new_content": "    }"})
    undo(project)
    assert ids(project) == was


def test_ends_of_the_last_thousand_are_told_and_no_dead_id_serves(project):
    was = put(project, MANY[:1_500])
    edit(project, {"start_line_id": was[0], "end_line_id": was[-1], "new_content": "one"})
    told = [
        refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[line(was[at], "x")]) for at in (0, -1)
    ]
    assert ["was replaced" in one for one in told] == [False, True]
    # No new one is of the epoch of those that are forgotten, nor of another process.
    rye("edit_lines", "f.txt", "end+|two", cwd=project)
    assert len(ids(project)[1]) > len(was[0])


def test_an_id_that_is_given_back_is_on_its_own_line_and_on_no_second_one():
    """No call is known that gives back an ID that stands: whichever comes to, it must not name two lines."""

    def state(texts, step):
        data = b"".join(text + b"\n" for text in texts)
        text, width, digests = scan(data, UTF8)
        made = step(digests, sha256(data).hexdigest(), width)
        fit(made, text)
        return made

    def spliced(start, stop, texts, names):
        change = reconcile.Splice(start, stop, texts, reconcile.Revived(names))
        made = state([*old[:start], *texts, *old[stop:]], lambda _, name, __: reconcile.splice(first, [change], name))
        return [made.marks[at].id for at in range(made.count)]

    # Beside the line that comes back stands one that differs in white space and has no known ID.
    old = [b"keep", b"    }", b"x"]
    first = state(old, lambda digests, name, width: index.fresh(1, name, digests, width))
    kept, brace, last = (first.marks[at].id for at in range(3))
    assert spliced(1, 2, [b"}", b"new", b"    }"], [None, None, brace])[3] == brace
    twice = spliced(3, 3, [b"keep"], [kept])
    assert twice[:3] == [kept, brace, last]
    assert len(set(twice)) == 4
