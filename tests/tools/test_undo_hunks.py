"""Single hunks of a change are taken back and redone, in any order, exactly or not at all."""

import random
import shlex
from itertools import count

import pytest

from support.calling import call, done, ids, refused
from support.harness import times
from support.shell_calls import bash

LINES = [f"line {number}" for number in range(1, 21)]


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def edited(project, *numbers):
    """Change some lines in one call of edit_lines; return the entry."""
    names = ids(project)
    changes = [{"line_id": names[number - 1], "new_content": f"new {number}"} for number in numbers]
    return done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"]


def written(project, *numbers):
    content = "".join(f"{one}\n" for one in with_new(*numbers))
    return done("write", project, file_path="f.txt", content=content)["entry_id"]


def commanded(project, *numbers):
    bash(project, "true")
    script = "; ".join(f"s/^line {number}$/new {number}/" for number in numbers)
    return bash(project, f"sed -i '{script}' f.txt")["change_id"]


def listed_hunks(project, entry):
    """Return all hunks of a change; a listing has pages."""
    found, more = [], {}
    while True:
        page = done("undo", project, list=True, entry_id=entry, **more)
        found += page["hunks"]
        if "next_offset" not in page:
            return found
        more = {"offset": page["next_offset"]}


def texts(file):
    return file.read_text().split("\n")[:-1]


def with_new(*numbers):
    return [f"new {at}" if at in numbers else line for at, line in enumerate(LINES, 1)]


WAYS = pytest.mark.parametrize("change", [edited, written, commanded])


@WAYS
def test_hunks_are_taken_back_and_redone_in_any_order(project, file, change):
    entry = change(project, 2, 8, 14)
    listed = done("undo", project, list=True, entry_id=entry)
    assert [(one["hunk"], one["start"], one["undone_by"]) for one in listed["hunks"]] == [
        (at, start, None) for at, start in ((1, 2), (2, 8), (3, 14))
    ]
    assert "f.txt, hunk 2\n@@ -8,1 +8,1 @@\n-line 8\n+new 8\n" in listed["output"]
    second = done("undo", project, entry_id=entry, hunks=[2])["entry_id"]
    assert texts(file) == with_new(2, 14)
    third = done("undo", project, entry_id=entry, hunks=[3])["entry_id"]
    assert texts(file) == with_new(2)
    done("undo", project, entry_id=second)
    assert texts(file) == with_new(2, 8)
    listed = done("undo", project, list=True, entry_id=entry)["hunks"]
    assert [one["undone_by"] for one in listed] == [None, None, third]
    # What is left of the change, and only that.
    rest = done("undo", project, entry_id=entry)["entry_id"]
    assert texts(file) == LINES
    assert rest in refused("already_undone", "undo", project, entry_id=entry)
    done("undo", project, entry_id=rest)
    assert texts(file) == with_new(2, 8)
    done("undo", project, entry_id=third)
    assert texts(file) == with_new(2, 8, 14)


@WAYS
def test_a_hunk_is_taken_back_once_and_those_of_an_undo_are_redone_by_themselves(project, file, change):
    entry = change(project, 2, 8, 14)
    back = done("undo", project, entry_id=entry, hunks=[1, 3])["entry_id"]
    assert back in refused("already_undone", "undo", project, entry_id=entry, hunks=[1, 2])
    assert texts(file) == with_new(8)
    assert "Undid hunk 2 of " in done("undo", project, entry_id=back, hunks=[2])["output"]
    assert texts(file) == with_new(8, 14)
    listed = done("undo", project, list=True, entry_id=entry)["hunks"]
    assert [one["undone_by"] for one in listed] == [back, None, None]
    # A change whose hunks are all taken back is undone; a hunk between neighbours that changed since is one of them.
    edited(project, 13, 15)
    for hunk in (2, 3):
        done("undo", project, entry_id=entry, hunks=[hunk])
    assert texts(file) == with_new(13, 15)
    refused("already_undone", "undo", project, entry_id=entry)
    done("undo", project)
    if change is not commanded:
        refused("nothing_to_undo", "undo", project)


@WAYS
def test_a_hunk_that_changed_since_is_refused_with_the_lines_that_are_there(project, file, change):
    entry = change(project, 2, 8)
    file.write_text(file.read_text().replace("new 8", "other"))
    data = call("undo", project, entry_id=entry, hunks=[2])
    assert (data["code"], "other" in data["error"]) == ("changed_since", True)
    assert (data["current"][0]["hunk"], "other" in data["current"][0]["lines"]) == (2, True)
    done("undo", project, entry_id=entry, hunks=[1])
    assert texts(file) == ["other" if at == 8 else line for at, line in enumerate(LINES, 1)]


def test_the_lines_in_the_way_of_a_hunk_that_is_gone_are_those_of_its_place(project, file):
    """They once were those of line 1."""
    entry = edited(project, 15)
    done("write", project, file_path="f.txt", content="".join(f"whole {at}\n" for at in range(1, 21)))
    data = call("undo", project, entry_id=entry)
    assert data["code"] == "changed_since"
    assert (data["current"][0]["line"], data["current"][0]["lines"]) == (15, ["whole 15"])
    # Where the line above is there twice, and so may be another.
    (project / "t.txt").write_text("twin\nold\nmid\ntwin\nend\n")
    bash(project, "true")
    entry = done("edit_lines", project, file_path="t.txt", changes=[{"find": "old", "replace": "new"}])["entry_id"]
    (project / "t.txt").write_text("twin\nother\nmid\ntwin\nend\nmore\n")
    assert call("undo", project, entry_id=entry)["current"][0]["line"] == 2


def made(project, file, steps):
    """Make a file of the lines 1 to 12 and change it step by step: whole, by a command, outside of any tool, one line, or back."""
    file.write_text("".join(f"{number}\n" for number in range(1, 13)))
    bash(project, "true")
    found = []
    for way, *what in steps:
        text = "\n".join(str(what[-1]).split()) + "\n"
        if way == "write":
            found.append(done("write", project, file_path="f.txt", content=text)["entry_id"])
        elif way == "bash":
            found.append(bash(project, f"printf %s {shlex.quote(text)} > f.txt")["change_id"])
        elif way == "undo":
            found.append(done("undo", project, entry_id=found[what[0]])["entry_id"])
        elif way == "outside":
            found.append(file.write_text(text))
        else:
            changes = [{"line_id": ids(project)[what[0] - 1], "new_content": text.splitlines()}]
            found.append(done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"])
    return found


FIVE = "1 2 3 4 five 6 7 8 9 10 11 12"
FOLLOWED = {
    "both neighbours changed by edits": (
        [("whole", "1 2 3 4 five 6 7 8 nine 10 11 12"), ("edit", 4, "four"), ("edit", 6, "six")],
        [1],
        "1 2 3 four 5 six 7 8 nine 10 11 12",
    ),
    "a line among others like it, which no comparison tells apart": (
        [("whole", "} 1 2 3 4 5 6 } 7 8 9 10 11 12"), ("edit", 7, "}"), ("edit", 9, "}"), ("edit", 1, "} }")],
        [2],
        "} } 1 2 3 4 5 } } 8 9 10 11 12",
    ),
    "a line that went and came back": (
        [("whole", FIVE), ("edit", 5, "other"), ("edit", 4, "four"), ("undo", 1), ("edit", 6, "six")],
        None,
        "1 2 3 four 5 six 7 8 9 10 11 12",
    ),
    "a line that is gone": ([("whole", FIVE), ("edit", 5, "other")], None, None),
    "an edit, through a command": (
        [("edit", 5, "five"), ("edit", 4, "four"), ("bash", "1 2 3 four five 6 7 8 9 10 11 twelve"), ("edit", 6, "six")],
        None,
        "1 2 3 four 5 six 7 8 9 10 11 twelve",
    ),
    "one of two lines alike of which a new content dropped one": (
        [("edit", 5, "}"), ("edit", 6, "}"), ("edit", 4, "four"), ("write", "1 2 3 four } seven 8 9 10 11 12")],
        None,
        None,
    ),
    "what an edit left was stored nowhere, and someone else went on": (
        [
            ("edit", 3, "three }"),
            ("edit", 9, "nine }"),
            ("outside", "above 1 2 three } 4 5 6 7 nine } 9 10 11 last"),
            ("write", "top above 1 2 three } 4 5 6 7 nine } 9 10 11 last"),
        ],
        None,
        "top above 1 2 3 4 5 6 7 nine } 9 10 11 last",
    ),
}


@pytest.mark.parametrize("by", ["write", "bash"])
@pytest.mark.parametrize(("steps", "hunks", "wanted"), FOLLOWED.values(), ids=FOLLOWED)
def test_the_record_tells_where_the_lines_of_a_change_are(project, file, by, steps, hunks, wanted):
    """Their neighbours changed since, or others are like them; None: refused, and nothing is written."""
    steps = [(by if way == "whole" else way, *what) for way, *what in steps]
    entry, *_ = made(project, file, steps)
    before = texts(file)
    answer = call("undo", project, entry_id=entry, **({"hunks": hunks} if hunks else {}))
    assert (answer["success"], texts(file)) == (wanted is not None, before if wanted is None else wanted.split())


@pytest.mark.parametrize("back", [False, True])
def test_a_line_like_the_hunks_made_elsewhere_is_not_taken_out(project, file, back):
    """It once was: the line's ID had followed its text, and the one line of that text was another call's."""
    names = ids(project)
    changes = [{"before_line_id": names[1], "new_content": "    pass"}, {"line_id": names[15], "new_content": "sixteen"}]
    entry = done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"]
    if back:
        # Taken back and redone: the line is as old as the redo.
        done("undo", project, entry_id=done("undo", project, entry_id=entry)["entry_id"])
    names = ids(project)
    assert texts(file)[1] == "    pass"
    changes = [{"line_id": names[1], "new_content": ""}, {"before_line_id": names[10], "new_content": "    pass"}]
    done("edit_lines", project, file_path="f.txt", changes=changes)
    before = file.read_text()
    data = call("undo", project, entry_id=entry, hunks=[1])
    assert (data["code"], data["current"][0]["lines"]) == ("changed_since", ["line 2"])
    refused("changed_since", "undo", project, entry_id=entry)
    assert file.read_text() == before
    done("undo", project, entry_id=entry, hunks=[2])
    assert "sixteen" not in texts(file)


def test_lines_that_were_deleted_and_came_back_are_not_put_in_twice(project, file):
    """They once were: lines that came beside the hunk's place may also have come in it, where others like them stand."""
    block = ["/* one", " */", "f();", ""]
    text = ["a", "", *block, "/* two", " */", "g();", "", "b"]
    (project / "f.txt").write_text("".join(f"{one}\n" for one in text))
    names = ids(project)
    gone = [{"start_line_id": names[2], "end_line_id": names[5], "new_content": []}]
    entry = done("edit_lines", project, file_path="f.txt", changes=gone)["entry_id"]
    bash(project, "true")
    # Back, and something else below.
    bash(project, "printf '%s\\n' " + " ".join(shlex.quote(one) for one in [*text, "c"]) + " > f.txt")
    before = file.read_text()
    assert (call("undo", project, entry_id=entry)["success"], file.read_text()) == (False, before)


def test_hunks_that_are_none(project, file):
    entry = edited(project, 2, 8)
    assert "1 to 2" in refused("unknown_hunk", "undo", project, entry_id=entry, hunks=[3])
    bash(project, "true")
    entry = bash(project, "echo x >> f.txt; echo y > g.txt")["change_id"]
    assert "file_path" in refused("entry_or_batch", "undo", project, entry_id=entry, hunks=[1])
    assert [one["kind"] for one in done("undo", project, list=True, entry_id=entry, file_path="g.txt")["hunks"]] == ["whole"]
    # By hand.
    bash(project, "sed -i '$d' f.txt; rm g.txt")
    refused("already_undone", "undo", project, entry_id=entry)


def test_the_mode_is_a_hunk(project, file):
    bash(project, "true")
    entry = bash(project, "sed -i 's/^line 3$/three/' f.txt; chmod 755 f.txt")["change_id"]
    listed = done("undo", project, list=True, entry_id=entry)["hunks"]
    assert [one["kind"] for one in listed] == ["lines", "mode"]
    back = done("undo", project, entry_id=entry, hunks=[2])["entry_id"]
    assert (file.stat().st_mode & 0o777, texts(file)[2]) == (0o644, "three")
    done("undo", project, entry_id=back)
    assert file.stat().st_mode & 0o777 == 0o755
    done("undo", project, entry_id=entry, hunks=[1])
    assert (file.stat().st_mode & 0o777, texts(file)) == (0o755, LINES)


def test_a_file_of_a_batch(project, file):
    (project / "g.txt").write_text("".join(f"{line}\n" for line in LINES))
    names = {path: ids(project, path) for path in ("f.txt", "g.txt")}
    changes = [
        {"file_path": path, "line_id": names[path][at], "new_content": "new"} for path in ("f.txt", "g.txt") for at in (1, 7)
    ]
    batch = done("edit_lines", project, file_path="f.txt", changes=changes)["batchId"]
    done("undo", project, batchId=batch, file_path="g.txt", hunks=[2])
    assert texts(project / "g.txt") == ["new" if at == 2 else line for at, line in enumerate(LINES, 1)]
    assert texts(file)[1] == "new"
    done("undo", project, batchId=batch)
    assert texts(project / "g.txt") == texts(file) == LINES


GERMAN = "".join(f"Zeile {at} mit größeren Übungen für Köche\r\n" for at in range(20))
JAPANESE = "".join(f"{at}行目の日本語の文章です。これは説明のための文字列です。\r\n" for at in range(20))
UNREAD = [("utf-16", GERMAN), ("utf-32", GERMAN), ("utf-8-sig", GERMAN), ("cp1252", GERMAN), ("shift_jis", JAPANESE)]


@pytest.mark.parametrize(("encoding", "old"), UNREAD)
def test_hunks_of_a_file_that_was_never_read(project, encoding, old):
    """Its encoding is told by its bytes; such a file once had one hunk."""
    path, new = project / "e.txt", old.replace("3", "three", 1).replace("12", "twelve", 1)
    path.write_bytes(old.encode(encoding))
    (project / "in.txt").write_bytes(new.encode(encoding))
    bash(project, "true")
    entry = bash(project, "cat in.txt > e.txt")["change_id"]
    listed = done("undo", project, list=True, entry_id=entry)
    assert [one["start"] for one in listed["hunks"]] == [4, 13]
    assert f"+{new.splitlines()[12]}\n" in listed["output"] + "\n"
    back = done("undo", project, entry_id=entry, hunks=[2])["entry_id"]
    assert path.read_bytes() == old.replace("3", "three", 1).encode(encoding)
    done("undo", project, entry_id=back)
    done("undo", project, entry_id=entry)
    assert path.read_bytes() == old.encode(encoding)
    # A guess stays one.
    assert encoding.startswith("utf") or done("read", project, file_path="e.txt")["encoding"] == f"{encoding}?"


def test_a_utf16_file_without_a_mark_is_told_by_the_encoding_of_the_new_content(project):
    path = project / "e.txt"
    path.write_bytes(GERMAN.encode("utf-16-le"))
    new = GERMAN.replace("3", "three", 1).replace("12", "twelve", 1)
    entry = done("write", project, file_path="e.txt", content=new, encoding="utf-16-le")["entry_id"]
    assert len(done("undo", project, list=True, entry_id=entry)["hunks"]) == 2
    done("undo", project, entry_id=entry, hunks=[1])
    assert path.read_bytes().decode("utf-16-le") == GERMAN.replace("12", "twelve", 1)


# --- random histories ---


def pieces_of(before, after, hunks):
    """Return what each hunk removed and added, and its neighbours; outside of hunks the two versions are the same."""
    found, spliced = [], list(before)
    for one in reversed(hunks):
        start, new = one["start"] - 1, one["new_start"] - 1
        added = after[new : new + one["added"]]
        around = (after[new - 1] if new else None, [*after, None][new + one["added"]])
        found.append((before[start : start + one["removed"]], added, around))
        spliced[start : start + one["removed"]] = added
    assert spliced == after
    return found[::-1]


def without(lines, pieces):
    """Return lines without some hunks; None where a line of one is gone, or its place is no more one place."""
    left = list(lines)
    for removed, added, (before, after) in pieces:
        if (added[0] if added else before) not in [*left, *([] if added else [None])]:
            return None
        start = left.index(added[0]) if added else 0 if before is None else left.index(before) + 1
        if left[start : start + len(added)] != added or (not added and [*left, None][start] != after):
            return None
        left[start : start + len(added)] = removed
    return left


def history(project, seed):
    """Make random changes in every way, then take hunks of them back in random order; return how many were.

    No two lines of a history are alike. Raises AssertionError: something came back otherwise than the lines say.
    """
    dice, texts_made, taken = random.Random(seed), count(), 0
    file, entries = project / "f.txt", []

    def fresh(most):
        return [f"{' ' * dice.randrange(4)}text {next(texts_made)}" for _ in range(dice.randint(0, most))]

    def note(before, entry):
        entries.append((entry, pieces_of(before, texts(file), listed_hunks(project, entry))))

    def change():
        before = texts(file)
        names, lines, changes, at = ids(project), list(before), [], len(before)
        while at > 0 and len(changes) < 5:
            start = max(at - dice.randint(0, 6), 0)
            stop = min(start + dice.choice([0, 0, 1, 1, 2]), at)
            new = fresh(2)
            if stop > start:
                changes.append({"start_line_id": names[start], "end_line_id": names[stop - 1], "new_content": new})
            elif new and start < len(names):
                changes.append({"before_line_id": names[start], "new_content": new})
            lines[start:stop] = new
            at = start - 2
        content = "".join(f"{line}\n" for line in lines)
        if lines == before or not lines or not changes:
            return
        way = dice.choice(["edit_lines", "write", "bash", "outside"])
        if way == "outside":
            file.write_text(content)
        elif way == "bash":
            note(before, bash(project, f"printf %s {shlex.quote(content)} > f.txt")["change_id"])
        else:
            given = {"content": content} if way == "write" else {"changes": changes}
            note(before, done(way, project, file_path="f.txt", **given)["entry_id"])

    def take_back():
        entry, pieces = dice.choice(entries)
        numbers = sorted(dice.sample(range(1, len(pieces) + 1), dice.randint(1, min(len(pieces), 2))))
        before = texts(file)
        wanted = without(before, [pieces[number - 1] for number in numbers])
        data = call("undo", project, entry_id=entry, hunks=numbers)
        about = (seed, entry, numbers, pieces, before, texts(file), data)
        if not data["success"]:
            assert data["code"] in ("changed_since", "already_undone", "no_change"), about
            assert texts(file) == before, about
            return 0
        assert texts(file) == wanted, about
        note(before, data["entry_id"])
        return len(numbers)

    file.write_text("".join(f"first {at}\n" for at in range(dice.randint(5, 40))))
    bash(project, "true")
    for _ in range(dice.randint(2, 6)):
        change()
    for _ in range(dice.randint(4, 10)):
        if dice.random() < 0.75 and entries:
            taken += take_back()
        else:
            change()
    return taken


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_random_histories(tmp_path, seed):
    taken = 0
    for number in range(times(4)):
        (tmp_path / f"{number}").mkdir()
        taken += history(tmp_path / f"{number}", seed * 1000 + number)
    assert taken > 0
