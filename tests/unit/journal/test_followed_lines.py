"""Hunks are found by the record of what became of a file since, where neither their IDs nor their neighbours tell."""

from __future__ import annotations

import random

import pytest

from rye.journal import file_history, followed_lines
from rye.journal.journal import find
from rye.workspace.workspace import Workspace
from support.calling import call, done, ids, refused

LINES = [f"line {number}" for number in range(1, 13)]


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def bash(project, command):
    return done_bash(project, command)["change_id"]


def done_bash(project, command):
    return call("rye/bash/bash", project, command=command)


def write(project, lines):
    return done("write", project, file_path="f.txt", content="".join(f"{one}\n" for one in lines))["entry_id"]


def edit(project, number, *new):
    name = ids(project)[number - 1]
    changes = [{"line_id": name, "new_content": list(new)}]
    return done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"]


def by(way, project, lines):
    """Make these lines the file's, by one of the ways."""
    if way == "write":
        return write(project, lines)
    done_bash(project, "true")
    text = "\\n".join(lines)
    return bash(project, f"printf '{text}\\n' > f.txt")


def texts(file):
    return file.read_text().split("\n")[:-1]


def replaced(lines, **new):
    return [new.get(f"at{number}", line) for number, line in enumerate(lines, 1)]


@pytest.mark.parametrize("way", ["write", "bash"])
def test_both_neighbours_changed_by_edits(project, file, way):
    entry = by(way, project, replaced(LINES, at5="five", at9="nine"))
    edit(project, 4, "four")
    edit(project, 6, "six")
    done("undo", project, entry_id=entry, hunks=[1])
    assert texts(file) == replaced(LINES, at4="four", at6="six", at9="nine")


@pytest.mark.parametrize("way", ["write", "bash"])
def test_a_line_among_others_like_it(project, file, way):
    """A comparison of the two texts cannot tell which of them is the one that the change made."""
    entry = by(way, project, ["}", *LINES[:6], "}", *LINES[6:]])
    edit(project, 7, "}")
    edit(project, 9, "}")
    edit(project, 1, "}", "}")
    assert texts(file)[:2] == ["}", "}"]
    before = texts(file)
    where = 8
    assert before[where] == "}"
    done("undo", project, entry_id=entry, hunks=[2])
    assert texts(file) == before[:where] + before[where + 1 :]


@pytest.mark.parametrize("way", ["write", "bash"])
def test_lines_that_went_and_came_back_are_the_same(project, file, way):
    entry = by(way, project, replaced(LINES, at5="five"))
    other = edit(project, 5, "another")
    refused("changed_since", "undo", project, entry_id=entry)
    edit(project, 4, "four")
    done("undo", project, entry_id=other)
    edit(project, 6, "six")
    done("undo", project, entry_id=entry)
    assert texts(file) == replaced(LINES, at4="four", at6="six")


def test_an_edit_is_followed_through_a_command(project, file):
    """The line's ID went with the command's new content; its neighbours changed before and after that."""
    entry = edit(project, 5, "five")
    edit(project, 4, "four")
    done_bash(project, "true")
    bash(project, "sed -i 's/^line 12$/twelve/' f.txt")
    edit(project, 6, "six")
    done("undo", project, entry_id=entry)
    assert texts(file) == replaced(LINES, at4="four", at6="six", at12="twelve")


def test_one_of_two_lines_alike_that_a_new_content_dropped_is_not_found(project, file):
    """Which of the two stayed is not known."""
    entry = edit(project, 5, "}")
    edit(project, 6, "}")
    edit(project, 4, "four")
    write(project, [*LINES[:3], "four", "}", "seven", *LINES[7:]])
    before = texts(file)
    refused("changed_since", "undo", project, entry_id=entry)
    assert texts(file) == before


def test_a_change_from_outside_that_no_look_saw_ends_the_way(project, file):
    entry = edit(project, 5, "five")
    file.write_text(file.read_text().replace("line 4\n", "4\n").replace("line 6\n", "6\n"))
    with Workspace(project) as ws:
        assert followed_lines.places(ws, find(ws, entry), "f.txt", None, file.read_bytes()) is None


@pytest.mark.parametrize("seed", range(200))
def test_lines_called_certain_are_the_same_ones(seed):
    """Of random changes of lines with twins, each of which is known, no line is taken for another that is not like it."""
    rng = random.Random(seed)
    old = [(rng.choice([b"}\n", b"\n", b"a\n", b"b%d\n" % at]), at) for at in range(rng.randint(1, 30))]
    new = [one for one in old if rng.random() > 0.2]
    for _ in range(rng.randint(0, 4)):
        new.insert(rng.randint(0, len(new)), (rng.choice([b"}\n", b"\n", b"c%d\n" % rng.randint(0, 9)]), -1))
    pairs = [*followed_lines.certain([text for text, _ in old], [text for text, _ in new])]
    assert pairs == sorted(set(pairs))
    for o, n in pairs:
        assert old[o][0] == new[n][0]
    texts = [text for text, _ in old]
    alone = {text for text in texts if texts.count(text) == 1}
    for o, n in pairs:
        if old[o][0] in alone:
            assert new[n][1] in (o, -1)


def test_a_change_by_someone_else_between_two_edits_leaves_the_older_one_known(project, file):
    """Its content was stored nowhere, and what an edit left before that was unknown: the way back ended there."""
    done_bash(project, "true")
    first = edit(project, 3, "three", "}")
    second = edit(project, 9, "nine", "}")
    # Nobody looks at it but the next call.
    file.write_text("above\n" + file.read_text().replace("line 12", "last"))
    write(project, ["top", *texts(file)])
    with Workspace(project) as ws:
        steps = file_history.of_file(ws, "f.txt").steps
    assert [step.entry and step.entry.id for step in steps][:3] == [first, second, None]
    assert steps[0].after == "".join(f"{one}\n" for one in [*LINES[:2], "three", "}", *LINES[3:]]).encode()
    done("undo", project, entry_id=first)
    assert texts(file) == ["top", "above", *LINES[:7], "nine", "}", *LINES[8:11], "last"]
