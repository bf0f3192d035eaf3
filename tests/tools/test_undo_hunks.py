"""Single hunks of a change are taken back and redone, in any order, exactly or not at all."""

from __future__ import annotations

import random
import shlex
import sys
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.journal import journal
from rye.line_ids import document
from rye.workspace.workspace import Workspace
from support.calling import call, done, ids, refused
from support.harness import times

LINES = [f"line {number}" for number in range(1, 21)]


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def bash(project, command):
    return rye.execute("rye/bash/bash", {"command": command}, project_path=str(project))["data"]


def edited(project, *numbers):
    """Change some lines in one call of edit_lines; return the entry."""
    names = ids(project)
    changes = [{"line_id": names[number - 1], "new_content": f"new {number}"} for number in numbers]
    return done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"]


def written(project, *numbers):
    texts = [f"new {at}" if at in numbers else line for at, line in enumerate(LINES, 1)]
    return done("write", project, file_path="f.txt", content="".join(f"{one}\n" for one in texts))["entry_id"]


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
        (1, 2, None),
        (2, 8, None),
        (3, 14, None),
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
    done("undo", project, entry_id=back, hunks=[2])
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
    assert data["code"] == "changed_since"
    assert "other" in data["error"]
    assert data["current"][0]["hunk"] == 2
    assert "other" in data["current"][0]["lines"]
    done("undo", project, entry_id=entry, hunks=[1])
    assert texts(file) == ["other" if at == 8 else line for at, line in enumerate(LINES, 1)]


def test_the_lines_in_the_way_of_a_hunk_that_is_gone_are_those_of_its_place(project, file):
    """They once were those of line 1."""
    entry = edited(project, 15)
    done("write", project, file_path="f.txt", content="".join(f"whole {at}\n" for at in range(1, 21)))
    data = call("undo", project, entry_id=entry)
    assert data["code"] == "changed_since"
    assert (data["current"][0]["line"], data["current"][0]["lines"]) == (15, ["whole 15"])


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
    entry = done(
        "edit_lines",
        project,
        file_path="f.txt",
        changes=[
            {"before_line_id": ids(project)[1], "new_content": "    pass"},
            {"line_id": ids(project)[15], "new_content": "sixteen"},
        ],
    )["entry_id"]
    if back:
        # Taken back and redone: the line is as old as the redo.
        done("undo", project, entry_id=done("undo", project, entry_id=entry)["entry_id"])
    names = ids(project)
    assert texts(file)[1] == "    pass"
    changes = [{"line_id": names[1], "new_content": ""}, {"before_line_id": names[10], "new_content": "    pass"}]
    done("edit_lines", project, file_path="f.txt", changes=changes)
    before = file.read_text()
    data = call("undo", project, entry_id=entry, hunks=[1])
    assert data["code"] == "changed_since"
    assert data["current"][0]["lines"] == ["line 2"]
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
    back = call("undo", project, entry_id=entry)
    assert (back["success"], file.read_text()) == (False, before)


def test_hunks_that_are_none(project, file):
    entry = edited(project, 2, 8)
    assert "1 to 2" in refused("unknown_hunk", "undo", project, entry_id=entry, hunks=[3])
    bash(project, "true")
    entry = bash(project, "echo x >> f.txt; echo y > g.txt")["change_id"]
    assert "file_path" in refused("entry_or_batch", "undo", project, entry_id=entry, hunks=[1])
    assert [one["kind"] for one in done("undo", project, list=True, entry_id=entry, file_path="g.txt")["hunks"]] == ["whole"]


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


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-8-sig", "latin-1"])
def test_hunks_of_other_encodings(project, encoding):
    path = project / "e.txt"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    old = mark + "".join(f"zeile {at} ä\r\n" for at in range(20))
    path.write_bytes(old.encode(encoding))
    new = old.replace("zeile 3 ", "drei ").replace("zeile 12 ", "zwölf ")
    # A file that was never read has no known encoding.
    done("read", project, file_path="e.txt", encoding=encoding)
    entry = done("write", project, file_path="e.txt", content=new, encoding=encoding)["entry_id"]
    both = path.read_bytes()
    back = done("undo", project, entry_id=entry, hunks=[2])["entry_id"]
    assert path.read_bytes().decode(encoding) == old.replace("zeile 3 ", "drei ")
    done("undo", project, entry_id=back)
    assert path.read_bytes() == both


GERMAN = "".join(f"Zeile {at} mit größeren Übungen für Köche\r\n" for at in range(20))
JAPANESE = "".join(f"{at}行目の日本語の文章です。これは説明のための文字列です。\r\n" for at in range(20))
UNREAD = [("utf-16", GERMAN), ("utf-32", GERMAN), ("utf-8-sig", GERMAN), ("cp1252", GERMAN), ("shift_jis", JAPANESE)]


@pytest.mark.parametrize("way", ["write", "bash", "upload"])
@pytest.mark.parametrize(("encoding", "old"), UNREAD)
def test_hunks_of_a_file_that_was_never_read(project, encoding, old, way):
    """Its encoding is told by its bytes; such a file once had one hunk."""
    path = project / "e.txt"
    path.write_bytes(old.encode(encoding))
    new = old.replace("3", "three", 1).replace("12", "twelve", 1)
    if way == "write":
        declared = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, encoding)
        content = ("\ufeff" if encoding.startswith("utf-") and encoding != "utf-8-sig" else "") + new
        entry = done("write", project, file_path="e.txt", content=content, encoding=declared)["entry_id"]
    elif way == "bash":
        bash(project, "true")
        (project / "in.txt").write_bytes(new.encode(encoding))
        bash(project, "true")
        entry = bash(project, "cat in.txt > e.txt")["change_id"]
    else:
        with Workspace(project) as ws, ws.place("e.txt") as place:
            made = journal.whole_entry(ws, "upload", place, path.read_bytes(), new.encode(encoding))
            journal.apply_change(ws, place, new.encode(encoding), made)
            entry = made.id
    assert path.read_bytes() == new.encode(encoding)
    listed = done("undo", project, list=True, entry_id=entry)
    assert [one["start"] for one in listed["hunks"]] == [4, 13]
    assert f"+{new.splitlines()[12]}\n" in listed["output"] + "\n"
    back = done("undo", project, entry_id=entry, hunks=[2])["entry_id"]
    assert path.read_bytes() == old.replace("3", "three", 1).encode(encoding)
    done("undo", project, entry_id=back)
    done("undo", project, entry_id=entry)
    assert path.read_bytes() == old.encode(encoding)


def test_a_guessed_encoding_stays_a_guess_after_an_undo(project):
    path = project / "e.txt"
    path.write_bytes(GERMAN.encode("cp1252"))
    entry = done("write", project, file_path="e.txt", content=GERMAN.replace("3", "three"), encoding="cp1252")["entry_id"]
    done("undo", project, entry_id=entry)
    with Workspace(project) as ws, document.view(ws, "e.txt") as view:
        assert (view.text.encoding.name, view.text.encoding.certain) == ("cp1252", False)


def test_a_utf16_file_without_a_mark_is_told_by_the_encoding_of_the_new_content(project):
    path = project / "e.txt"
    path.write_bytes(GERMAN.encode("utf-16-le"))
    new = GERMAN.replace("3", "three", 1).replace("12", "twelve", 1)
    entry = done("write", project, file_path="e.txt", content=new, encoding="utf-16-le")["entry_id"]
    assert len(done("undo", project, list=True, entry_id=entry)["hunks"]) == 2
    done("undo", project, entry_id=entry, hunks=[1])
    assert path.read_bytes().decode("utf-16-le") == GERMAN.replace("12", "twelve", 1)


def test_a_written_file_that_changed_elsewhere_since_is_taken_back_beside_that(project, file):
    entry = written(project, 2)
    file.write_text(file.read_text().replace("line 20\n", "last\n"))
    done("undo", project, entry_id=entry)
    assert texts(file) == [*LINES[:-1], "last"]


# --- random histories against a model of our own ---


class Line(NamedTuple):
    """A line of the model: what it says, and who it is. Lines of one text are many; an identity is one."""

    text: str
    who: int


class Piece(NamedTuple):
    """One hunk of a change, in the model's lines; `beside` are its neighbours when it was made."""

    removed: list[Line]
    added: list[Line]
    beside: tuple[Line | None, Line | None]


class Model:
    """A file as lines with identities, and what becomes of it when a hunk is taken back: the oracle."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids = count()
        self.lines = [self.line() for _ in range(self.random.randint(5, 40))]

    def line(self) -> Line:
        # Some texts have twins, as braces and empty lines have.
        text = self.random.choice(["}", "", "    pass"]) if self.random.random() < 0.25 else f"text {next(self.ids)}"
        return Line(text, next(self.ids))

    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def edits(self) -> list[tuple[int, int, list[Line]]]:
        """Return random splices: ascending, apart."""
        out: list[tuple[int, int, list[Line]]] = []
        at = 0
        while at <= len(self.lines) and len(out) < 5:
            start = at + self.random.randint(0, 6)
            stop = min(start + self.random.choice([0, 0, 1, 1, 2]), len(self.lines))
            if start > len(self.lines):
                break
            new = [self.line() for _ in range(self.random.choice([0, 1, 1, 2]))]
            if stop > start or new:
                out.append((start, stop, new))
            at = stop + 2
        return out

    def changed(self, edits: list[tuple[int, int, list[Line]]]) -> list[Line]:
        lines = list(self.lines)
        for start, stop, new in reversed(edits):
            lines[start:stop] = new
        return lines

    def pieces(self, hunks: list[dict[str, object]], after: str) -> list[Piece]:
        """Take over a change that is made, in the hunks that the record shows; lines outside of them are who they were."""
        texts = after.split("\n")[:-1]
        new = list(self.lines)
        spans = []
        for one in reversed(hunks):
            start, removed, new_start, added = (int(str(one[name])) for name in ("start", "removed", "new_start", "added"))
            fresh = [Line(text, next(self.ids)) for text in texts[new_start - 1 : new_start - 1 + added]]
            spans.append((self.lines[start - 1 : start - 1 + removed], new_start - 1, fresh))
            new[start - 1 : start - 1 + removed] = fresh
        assert [line.text for line in new] == texts
        self.lines = new
        return [Piece(old, fresh, self._beside(at, at + len(fresh))) for old, at, fresh in reversed(spans)]

    def _beside(self, start: int, stop: int) -> tuple[Line | None, Line | None]:
        return self.lines[start - 1] if start else None, self.lines[stop] if stop < len(self.lines) else None

    def without(self, pieces: list[Piece]) -> list[Line] | None:
        """Return the lines without some hunks; None where a line of one is gone, or its place is no more one place."""
        lines = list(self.lines)
        for piece in pieces:
            if piece.added:
                if piece.added[0] not in lines:
                    return None
                start = lines.index(piece.added[0])
                if lines[start : start + len(piece.added)] != piece.added:
                    return None
            else:
                before, after = piece.beside
                if before is not None and before not in lines:
                    return None
                start = lines.index(before) + 1 if before is not None else 0
                if (lines[start] if start < len(lines) else None) != after:
                    return None
            lines[start : start + len(piece.added)] = piece.removed
        return lines

    def without_by_text(self, pieces: list[Piece]) -> list[Line] | None:
        """The same where lines went and came back as others: by texts that stand, with their neighbours, at one place alone."""
        lines = list(self.lines)
        for piece in pieces:
            before, after = ([one.text] if one is not None else [] for one in piece.beside)
            wanted = [*before, *(line.text for line in piece.added), *after]
            now = [line.text for line in lines]
            places = [at for at in range(len(now) - len(wanted) + 1) if now[at : at + len(wanted)] == wanted]
            if len(places) != 1:
                return None
            start = places[0] + len(before)
            lines[start : start + len(piece.added)] = piece.removed
        return lines


def history(project: Path, seed: int) -> dict[str, int]:
    """Make random changes in every way, then take hunks of them back in random order.

    Raises:
        AssertionError: something came back otherwise than the model says.
    """
    model = Model(seed)
    random_ = model.random
    file = project / "f.txt"
    file.write_text(model.text())
    bash(project, "true")
    entries: list[tuple[str, list[Piece]]] = []
    counted = {"edits": 0, "hunks": 0, "exact": 0, "by text": 0, "refused": 0, "though possible": 0}

    def that_went(line: Line, gone: list[Line]) -> Line:
        """Of lines alike, a diff may show another one as taken out than the one that was."""
        found = next((one for one in gone if one == line), None) or next((one for one in gone if one.text == line.text), None)
        if found is None:
            return Line(line.text, next(model.ids))
        gone.remove(found)
        return found

    def change() -> None:
        edits = model.edits()
        lines = model.changed(edits)
        content = "".join(f"{line.text}\n" for line in lines)
        if content == model.text() or not content:
            return
        names = ids(project)
        way = random_.choice(["edit_lines", "write", "bash", "outside"])
        counted["edits"] += way != "outside"
        if way == "outside":
            file.write_text(content)
            model.lines = lines
            return
        if way == "bash":
            entry = bash(project, f"printf %s {shlex.quote(content)} > f.txt")["change_id"]
        elif way == "write":
            entry = done("write", project, file_path="f.txt", content=content)["entry_id"]
        else:
            changes: list[dict[str, object]] = []
            for start, stop, new in edits:
                if stop > start:
                    changes.append(
                        {
                            "start_line_id": names[start],
                            "end_line_id": names[stop - 1],
                            "new_content": [one.text for one in new],
                        }
                    )
                else:
                    where = {"before_line_id": names[start]} if start < len(names) else {"after_line_id": "end"}
                    changes.append({**where, "new_content": [one.text for one in new]})
            entry = done("edit_lines", project, file_path="f.txt", changes=changes)["entry_id"]
        hunks = listed_hunks(project, entry)
        entries.append((str(entry), model.pieces(hunks, file.read_text())))

    def revert() -> None:
        if not entries:
            return
        entry, pieces = random_.choice(entries)
        numbers = sorted(random_.sample(range(1, len(pieces) + 1), random_.randint(1, min(len(pieces), 2))))
        counted["hunks"] += len(numbers)
        chosen = [pieces[number - 1] for number in numbers]
        wanted = model.without(chosen)
        before = file.read_bytes()
        data = call("undo", project, entry_id=entry, hunks=numbers)
        about = (seed, entry, numbers, chosen, before.decode(), file.read_text(), data)
        if not data["success"]:
            assert data["code"] in ("changed_since", "already_undone", "no_change"), about
            assert file.read_bytes() == before, about
            counted["refused"] += len(numbers)
            counted["though possible"] += len(numbers) * (wanted is not None and data["code"] == "changed_since")
            return
        if wanted is None or file.read_text() != "".join(f"{line.text}\n" for line in wanted):
            # Of lines alike an undo's own diff may show another one than it took: then the model's identities are a guess.
            wanted = model.without_by_text(chosen)
            counted["by text"] += len(numbers)
        assert wanted is not None, about
        assert file.read_text() == "".join(f"{line.text}\n" for line in wanted), about
        counted["exact"] += len(numbers)
        hunks = listed_hunks(project, data["entry_id"])
        stay = {line.who for line in wanted}
        gone = [line for line in model.lines if line.who not in stay]
        # The lines that come back are who they were.
        known = {line.who: line for piece in chosen for line in piece.removed}
        back = model.pieces(hunks, file.read_text())
        renamed = dict(zip((line.who for line in model.lines), wanted, strict=True))
        model.lines = wanted
        back = [
            Piece(
                [that_went(line, gone) for line in piece.removed],
                [renamed.get(line.who, line) for line in piece.added],
                (piece.beside[0] and renamed.get(piece.beside[0].who), piece.beside[1] and renamed.get(piece.beside[1].who)),
            )
            for piece in back
        ]
        assert known.keys() <= {line.who for line in model.lines}
        entries.append((str(data["entry_id"]), back))

    for _ in range(random_.randint(2, 6)):
        change()
    for _ in range(random_.randint(4, 10)):
        random_.choice([change, revert, revert, revert])()
    return counted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_histories(tmp_path: Path, seed: int) -> None:
    total = 0
    for number in range(times(4)):
        project = tmp_path / f"project{number}"
        project.mkdir()
        total += history(project, seed * 1000 + number)["exact"]
    assert total > 0
