"""undo: back, forth, listed, refused, bounded."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from rye.call.context import CallOptions
from rye.config import user_dirs
from support.calling import done, ids, refused, rows, undo
from support.in_process import rye as shell
from support.shell_calls import bash, configure, started
from support.waiting import until
from support.workspace_calls import done as made
from support.workspace_calls import insert, patch


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_bytes(b"a\nb\nc\nd\ne\n")
    return path


def edit(project, *changes, **more):
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), **more)["entry_id"]


def replace(project, name, content):
    return edit(project, {"line_id": name, "new_content": content})


def journal(project):
    return Path(user_dirs.state_dir(str(project))) / "journal"


def test_changes_are_taken_back_in_turn_and_lines_get_their_ids_again(project, file):
    names = ids(project)
    first = edit(project, {"line_id": names[1], "new_content": "x\ny"}, {"line_id": names[3], "new_content": ""})
    edited = ids(project)
    replace(project, names[0], "1")
    done("undo", project)
    data = done("undo", project)
    assert (data["undone"], data["file_path"], data["truncated"]) == (first, "f.txt", False)
    assert data["output"].startswith("--- a/f.txt\n+++ b/f.txt\n")
    assert (file.read_bytes(), ids(project)) == (ABCDE, names)
    assert data["entry_id"] in refused("already_undone", "undo", project, entry_id=first)
    refused("nothing_to_undo", "undo", project)
    # To take back an undo is redo; the change stands again, so that it can be undone again.
    done("undo", project, entry_id=data["entry_id"])
    assert (file.read_bytes(), ids(project)) == (b"a\nx\ny\nc\ne\n", edited)
    done("undo", project)
    assert (file.read_bytes(), ids(project)) == (ABCDE, names)


ABCDE = b"a\nb\nc\nd\ne\n"
MANY = b"".join(b"%d\n" % at for at in range(20_000))
FEWER = MANY.replace(b"15002\n", b"")


@pytest.mark.parametrize(
    ("before", "changes", "since", "after"),
    [
        # What came since: a call's changes, or the bytes that another program wrote. The bytes after; none: it is refused.
        (ABCDE, ["2|B"], ["+start|top", "5|E"], b"top\na\nb\nc\nd\nE\n"),
        (ABCDE, ["2|B"], b"new\na\nB\nc\nd\ne\n", b"new\na\nb\nc\nd\ne\n"),
        (ABCDE, ["2|B"], b"a\nXX\nc\nd\ne\n", None),
        (ABCDE, ["2|B"], None, None),
        (ABCDE, ["3 delete"], b"a\nb\nnew\nd\ne\n", None),
        (ABCDE, ["3 delete"], ["+start|top"], b"top\na\nb\nc\nd\ne\n"),
        # An open end is not put back into the middle, nor a line behind one. Once two lines were glued together.
        (b"a\nb", ["end+|c"], ["end+|d"], None),
        (b"a\nb\n", ["2 delete"], b"a", None),
        # The places of two changes swapped: it once crashed.
        (ABCDE, ["1|A", "5|E"], b"E\nb\nc\nd\nA\n", None),
        pytest.param(
            *(MANY, ["find|15001|X", "find|15003|Y", {"find": "15010\n", "replace": ""}]),
            b"new\n" + FEWER.replace(b"15001", b"X").replace(b"15003", b"Y").replace(b"15010\n", b""),
            b"new\n" + FEWER,
            id="lines never looked at",
        ),
    ],
)
def test_a_change_is_taken_back_beside_what_came_since_or_not_at_all(project, file, before, changes, since, after):
    file.write_bytes(before)
    names = [name for name, _ in rows(done("read", project, file_path="f.txt"))]
    done("read", project, file_path="f.txt", line_ids="short")
    entry = edit(project, *changes)
    if isinstance(since, list):
        edit(project, *since)
    elif since is not None:
        file.write_bytes(since)
    else:
        file.unlink()
    stands = file.read_bytes() if file.exists() else None
    if after is None:
        error = refused("changed_since", "undo", project, entry_id=entry)
        assert ("Nothing was written" in error, "undone first: " in error) == (True, isinstance(since, list))
    else:
        done("undo", project, entry_id=entry)
        assert ids(project)[2] == names[1]
    assert (file.read_bytes() if file.exists() else None) == (stands if after is None else after)


def test_ids_come_back_only_to_the_lines_that_had_them(project, file):
    """The file had changed unread before it was written over: the index named other lines then."""
    before = dict(rows(done("read", project, file_path="f.txt")))
    file.write_bytes(b"x\na\nb\nc\nd\n")
    done("write", project, file_path="f.txt", content="other\n")
    done("undo", project)
    after = dict(rows(done("read", project, file_path="f.txt")))
    assert list(after.values()) == ["x", "a", "b", "c", "d"]
    assert all(before.get(name, text) == text for name, text in after.items())


@pytest.mark.parametrize("data", [b"a\r\nb", b"\xff\xfea\0\n\0b\0", b"caf\xe9\n", b"\0\1\2\n\xff", b"", None])
def test_any_bytes_come_back_where_nothing_else_was_written_since(project, file, data):
    file.unlink() if data is None else file.write_bytes(data)
    done("write", project, file_path="f.txt", content="other\n")
    file.write_bytes(b"changed\n")
    refused("changed_since", "undo", project)
    assert file.read_bytes() == b"changed\n"
    file.write_bytes(b"other\n")
    back = done("undo", project)
    assert (file.read_bytes() if file.exists() else None, "+++ /dev/null" in back["output"]) == (data, data is None)
    done("undo", project, entry_id=back["entry_id"])
    assert file.read_bytes() == b"other\n"


def test_the_list_shows_changes_with_their_diffs(project, file):
    names = ids(project)
    first = replace(project, names[0], "x")
    done("write", project, file_path="g.txt", content="new\n")
    undone = done("undo", project)
    data = done("undo", project, list=True)
    assert (data["count"], data["total"], data["truncated"]) == (3, 3, False)
    back, write, edited = data["entries"]
    assert [row["tool"].split("/")[-1] for row in data["entries"]] == ["undo", "write", "edit_lines"]
    assert (edited["entry_id"], back["undoes"]) == (first, write["entry_id"])
    assert write["undone_by"] == back["entry_id"] == undone["entry_id"]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", back["time"])
    by, of = back["entry_id"][-6:], write["entry_id"][-6:]
    assert data["output"].split("\n") == [
        f"{by} just now: undo g.txt +0 -1, undoes {of}",
        f"{of} just now: write g.txt +1 -0, undone by {by}",
        f"{first[-6:]} just now: edit_lines f.txt +1 -1",
    ]
    # The diff of one, by its name in the list.
    assert "-a\n+x" in done("undo", project, list=True, entry_id=first[-6:])["output"]


def test_the_list_in_pages(project, file):
    assert done("undo", project, list=True)["output"] == "No changes recorded."
    names = ids(project)
    for n in range(7):
        (project / f"{n}.txt").write_text("a\n")
    of_files = [{"file_path": f"{n}.txt", "find": "a", "replace": "b"} for n in range(7)]
    done("edit_lines", project, file_path="0.txt", changes=of_files)
    for n in range(5):
        replace(project, names[n], f"x{n}")
    data = done("undo", project, list=True, limit=2)
    assert (data["count"], data["total"], data["truncated"]) == (2, 6, True)
    said = "[tool_result: 2 of 6 changes; 4 more omitted. Call undo(list=true, offset=3) to see more.]"
    assert (data["output"].split("\n")[-1], data["next_offset"]) == (said, 3)
    last = done("undo", project, list=True, limit=2, offset=6)
    assert (last["count"], len(last["entries"]), " and 2 more" in last["output"]) == (1, 7, True)
    assert "there are 6 changes" in refused("bad_offset", "undo", project, list=True, offset=7)
    (journal(project) / f"{data['entries'][1]['entry_id']}.json").unlink()
    assert [done("undo", project, list=True, limit=limit)["total"] for limit in (1, 50)] == [5, 5]


def test_a_list_of_large_changes_is_short(project, file):
    for n in range(6):
        done("write", project, file_path="f.txt", content=f"{n}" * 20_000 + "\n")
    bash(project, "head -c 1000000 /dev/zero > g")
    data = done("undo", project, list=True)
    assert (data["count"], data["truncated"], len(data["output"]) < 500) == (7, False, True)
    assert "/dev/zero > g) g: nothing -> a file of 1,000,000 bytes" in data["output"]
    shown = done("undo", project, list=True, entry_id=data["entries"][1]["entry_id"])
    assert len(shown["output"].encode()) <= 51_200 + 200
    for last in "ab":
        done("write", project, file_path="f.txt", content="x" * 5_000 + last + "\n")
    assert f"\n-[4,850 characters before]… {'x' * 150}b\n+[4,850" in done("undo", project)["output"]
    text = "".join(f"line {at}\n" for at in range(1_000))
    for content in (text, text.replace("line 500\n", "line five hundred\n")):
        done("write", project, file_path="f.txt", content=content)
    assert (len(done("undo", project)["output"]) < 600, file.read_text()) == (True, text)
    done("write", project, file_path="f.txt", content=text.replace("line", "x" * 60))
    cut = re.search(r'Call undo\(list=true, entry_id="(\w+)"\) to', done("undo", project, dry_run=True)["output"])[1]
    assert "-line 0\n" in done("undo", project, list=True, entry_id=cut)["output"]


def test_an_undo_of_many_files_says_which_and_where_their_lines_are(project):
    for n in range(30):
        (project / f"{n:02}.txt").write_text("a\n" * 20)
    done(
        "edit_lines",
        project,
        file_path="00.txt",
        changes=[{"file_path": f"{n:02}.txt", "find": "a", "replace": "b", "count": 20} for n in range(30)],
    )
    bash(project, "sed -i s/./c/ *.txt")
    assert "+200 -200 …" in shell("log", "--limit", "1", cwd=project).stdout.decode()
    for text in ("b\n", "a\n"):
        *files, cut, _ = done("undo", project)["output"].split("\n")
        assert (len(files), {one[2:] for one in files}) == (20, {".txt +20 -20"})
        assert cut.startswith("[tool_result: 20 of 30 files, without their lines. Call undo(list=true, entry_id=")
        assert f"\n-{text}" in done("undo", project, list=True, entry_id=cut.split('"')[1])["output"]
        assert (project / "29.txt").read_text() == text * 20


def test_what_is_no_change_and_no_batch(project, batch):
    for entry in ("nope", "../../x", "0" * 200):
        refused("unknown_entry", "undo", project, entry_id=entry)
    refused("one_change", "undo", project, limit=3)
    refused("unknown_batch", "undo", project, batchId="nope")
    refused("unknown_batch", "undo", project, batchId="nope", list=True)
    for more in ({"entry_id": "x"}, {"file_path": "none.txt"}, {"file_path": "none.txt", "list": True}):
        refused("entry_or_batch", "undo", project, batchId=batch, **more)


def test_the_bounds_are_the_users_and_a_change_too_large_to_keep_is_listed_but_not_undone(project, file, user_space):
    configure(user_space, "journal: {max_bytes: 20000}\n")
    for n in range(40):
        done("write", project, file_path="f.txt", content=f"{n}{os.urandom(600).hex()}\n")
    assert sum(path.stat().st_size for path in journal(project).glob("*.json")) <= 20_000
    assert 1 <= done("undo", project, list=True)["total"] < 40
    done("undo", project)
    entry = done("write", project, file_path="f.txt", content=os.urandom(50_000).hex())["entry_id"]
    assert done("undo", project, list=True)["entries"][0]["entry_id"] == entry
    refused("not_recorded", "undo", project, entry_id=entry)


def test_a_damaged_entry_is_passed_over(project, file):
    names = ids(project)
    replace(project, names[0], "x")
    last = replace(project, names[1], "y")
    (journal(project) / f"{last}.json").write_bytes(b"{garbage")
    for offset in (1, 2):
        data = done("undo", project, list=True, limit=1, offset=offset)
        assert (data["total"], data["count"], "damaged" in data["output"]) == (2, 1, offset == 1)
    done("undo", project)
    assert file.read_bytes() == b"a\ny\nc\nd\ne\n"


def test_an_undo_needs_no_index(project, file):
    names = ids(project)
    replace(project, names[1], "B")
    for entry in (project / ".ai/cache/tools/read/line_index").iterdir():
        entry.unlink()
    done("undo", project)
    assert file.read_bytes() == b"a\nb\nc\nd\ne\n"
    assert ids(project)[1] == names[1]


# --- batches of several files ---


@pytest.fixture
def batch(project, file):
    (project / "g.txt").write_bytes(b"1\n2\n")
    files = [patch(project, "f.txt", insert(1, "new")), patch(project, "g.txt", insert(0, "0"))]
    return made(project, *files, createFiles=[{"path": "h.txt", "content": "h\n"}])["batchId"]


BEFORE = {"f.txt": ABCDE, "g.txt": b"1\n2\n"}
AFTER = {"f.txt": b"a\nnew\nb\nc\nd\ne\n", "g.txt": b"0\n1\n2\n", "h.txt": b"h\n"}


def contents(project):
    return {path.name: path.read_bytes() for path in project.glob("*.txt")}


@pytest.mark.parametrize("named", ["batchId", "entry_id", ""])
def test_a_batch_is_one_row_and_is_undone_and_redone_as_one(project, batch, named):
    row = done("undo", project, list=True)["output"]
    assert re.fullmatch(r"\w{6} just now: \w+ .*f\.txt \+\d+ -\d+.*", row)
    assert {one["file_path"] for one in done("undo", project, list=True, entry_id=row[:6])["hunks"]} == {*BEFORE, *AFTER}
    assert "+++ /dev/null" in done("undo", project, batchId=batch, dry_run=True)["output"]
    assert contents(project) == AFTER
    data = done("undo", project, **{"batchId": {"batchId": batch}, "entry_id": {"entry_id": row[:6]}, "": {}}[named])
    assert contents(project) == BEFORE
    assert (data["undone"], sorted(data["file_paths"])) == (batch, ["f.txt", "g.txt", "h.txt"])
    assert data["batchId"] in refused("already_undone", "undo", project, batchId=batch)
    done("undo", project, batchId=data["batchId"])
    assert contents(project) == AFTER
    done("undo", project)
    assert contents(project) == BEFORE


def test_a_file_of_a_batch_that_changed_since_holds_all_back(project, batch):
    (project / "g.txt").write_bytes(b"zero\n1\n2\n")
    (project / "h.txt").write_bytes(b"more\n")
    stands = contents(project)
    error = refused("changed_since", "undo", project, batchId=batch).split("Call")[0]
    assert [name for name in ("f.txt", "g.txt", "h.txt") if name in error] == ["g.txt", "h.txt"]
    assert contents(project) == stands


def test_one_file_of_a_batch_is_undone_by_itself_and_the_rest_after_it(project, batch):
    entry = next(row for row in done("undo", project, list=True)["entries"] if row["file_path"] == "g.txt")
    assert entry["batchId"] == batch
    done("undo", project, entry_id=entry["entry_id"])
    assert contents(project) == {**AFTER, "g.txt": BEFORE["g.txt"]}
    assert sorted(done("undo", project, batchId=batch)["file_paths"]) == ["f.txt", "h.txt"]
    assert contents(project) == BEFORE


# --- whose change it is ---


def by(project, actor, tool, **parameters):
    return rye.execute(f"rye/file-system/{tool}", parameters, project_path=project, options=CallOptions(actor=actor))


def test_undo_says_whose_the_last_change_is_and_takes_it_back_when_it_is_named(project):
    """That it takes back the caller's own is tried by two clients, in mcp_server/test_server."""
    for name, actor in (("b.txt", "bob 2"), ("c.txt", "")):
        assert by(project, actor, "write", file_path=name, content=f"{actor}\n")["status"] == "success"
    refused = by(project, "alice 1", "undo")
    entry = refused["data"]["entry_id"]
    told = ("by a person at a terminal" in refused["error"], f'undo(entry_id="{entry}")' in refused["error"])
    assert (refused["code"], *told) == ("nothing_to_undo", True, True)
    taken = by(project, "alice 1", "undo", entry_id=entry)["data"]
    assert (taken["file_path"], taken["actor"]) == ("c.txt", "")
    assert "bob 2" in by(project, "carol 3", "undo")["error"]
    listed = by(project, "alice 1", "undo", list=True)["data"]
    assert [row["actor"] for row in listed["entries"]][-2:] == ["", "bob 2"]
    assert ("b.txt +1 -0, by bob 2" in listed["output"], "by alice" in listed["output"]) == (True, False)
    assert by(project, "bob 2", "undo")["data"]["output"].endswith("\nUndid rye/file-system/write of b.txt by you, just now.")


def test_undo_of_one_file_leaves_later_changes_of_others(project, file):
    (project / "g.txt").write_bytes(b"1\n")
    entry = replace(project, ids(project)[0], "x")
    done("write", project, file_path="g.txt", content="2\n")
    assert done("undo", project, file_path="f.txt")["undone"] == entry
    assert (file.read_bytes(), (project / "g.txt").read_bytes()) == (b"a\nb\nc\nd\ne\n", b"2\n")
    assert "f.txt" in refused("nothing_to_undo", "undo", project, file_path="f.txt")
    listed = done("undo", project, list=True, file_path="g.txt")
    assert [row["file_path"] for row in listed["entries"]] == ["g.txt"]
    assert listed["total"] == 1
    assert done("undo", project, list=True, file_path="f.txt", limit=1)["next_offset"] == 2
    refused("unknown_batch", "undo", project, file_path="f.txt", batchId="x")
    refused("entry_or_batch", "undo", project, file_path="f.txt", entry_id=listed["entries"][0]["entry_id"])


def test_undo_of_one_file_takes_it_out_of_its_batch_also_where_it_is_gone(project, batch):
    done("undo", project, file_path="./h.txt")
    assert contents(project) == {name: data for name, data in AFTER.items() if name != "h.txt"}
    (project / "g.txt").unlink()
    refused("changed_since", "undo", project, file_path="g.txt")
    done("undo", project, file_path="f.txt")
    assert (project / "f.txt").read_bytes() == BEFORE["f.txt"]


# --- what undo gives back ---


def shown(project):
    return sorted(str(one.relative_to(project)) for one in project.rglob("*") if ".ai" not in one.parts)


def test_the_folders_that_a_change_made_go_and_come_with_its_file(project):
    (project / "there").mkdir()
    done("write", project, file_path="there/n/e/w.txt", content="new\n")
    back = done("undo", project)["entry_id"]
    done("undo", project, entry_id=back, dry_run=True)
    assert shown(project) == ["there"]
    again = done("undo", project, entry_id=back)
    assert shown(project) == ["there", "there/n", "there/n/e", "there/n/e/w.txt"]
    # Those of a renamed file, too; and one that got something else meanwhile stays.
    done("edit_lines", project, file_path="there/n/e/w.txt", changes=[{"rename_to": "m/f.txt"}])
    done("undo", project)
    (project / "there/n/other").write_text("mine\n")
    done("undo", project, entry_id=again["entry_id"])
    assert shown(project) == ["there", "there/n", "there/n/other"]


def test_a_folder_that_an_undo_would_remove_and_a_link_has_replaced_stays(project, tmp_path):
    outside = tmp_path / "outside/e"
    outside.mkdir(parents=True)
    entry = done("write", project, file_path="n/e/w.txt", content="new\n")["entry_id"]
    (project / "n/e/w.txt").rename(tmp_path / "kept")
    (project / "n/e").rmdir()
    (project / "n").rmdir()
    (project / "n").symlink_to(outside.parent)
    refused("path_outside", "undo", project, entry_id=entry)
    assert outside.is_dir()


UNDOS = """import sys, rye
sys.stdin.read(1)
for entry in sys.argv[2:]:
    print(rye.execute("rye/file-system/undo", {"entry_id": entry}, project_path=sys.argv[1]))
"""


@pytest.mark.parametrize("tool", ["write", "create", "bash"])
def test_of_several_undos_of_one_change_at_one_time_one_is_made(project, file, tool):
    before = file.read_bytes()
    if tool == "bash":
        entries = [bash(project, "echo x > f.txt; mkdir n; echo y > n/y")["change_id"]]
    else:
        paths = ["f.txt"] if tool == "write" else [f"{number}.txt" for number in range(60)]
        entries = [done("write", project, file_path=path, content="x\n")["entry_id"] for path in paths]
    words = [sys.executable, "-c", UNDOS, str(project), *entries]
    calls = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in calls:
        one.stdin.write("\n")
        one.stdin.flush()
    said = "".join(one.communicate()[0] for one in calls)
    assert said.count("'status': 'success'") == len(entries), said
    assert said.count("'code': 'already_undone'") == 4 * len(entries), said
    assert file.read_bytes() == before
    assert not (project / "n").exists()


@pytest.mark.parametrize("others", [[], ["g.txt:end+|new"]], ids=["one file", "two files"])
def test_an_undo_says_that_hard_links_stay_apart(project, file, others):
    (project / "g.txt").write_text("x\n")
    os.link(file, project / "twin")
    for name in ("f.txt", "g.txt"):
        done("read", project, file_path=name)
    done("edit_lines", project, file_path="f.txt", changes=["end+|new", *others])
    answer = done("undo", project)
    assert answer["warnings"] == ["f.txt had 2 hard links, which no undo of an edit joins again."]
    named = {name: answer[name] for name in ("entry_id", "batchId") if name in answer}
    assert done("undo", project, **named)["warnings"] == []


# --- what someone else did to a file after one of our tools is theirs alone, and is taken back without the tool's own change ---

LINES = "".join(f"line {number}\n" for number in range(20))
CODECS = ["utf-8", "utf-8-sig", "utf-16", "latin-1"]


@pytest.fixture
def looked(project):
    for codec in CODECS:
        (project / f"{codec}.txt").write_bytes(LINES.encode(codec))
    bash(project, "true")
    return project


def line_replaced(project, path, old, new):
    return done("edit_lines", project, file_path=path, changes=[{"find": f"{old}\n", "replace": f"{new}\n"}])["entry_id"]


def by_someone_else(project):
    """The entries of what no tool made, newest first, after a look."""
    bash(project, "true")
    return [one for one in undo(project, list=True)["entries"] if one["tool"] == "changed by someone else"]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_what_someone_does_after_edits_is_theirs_alone(looked, codec, first):
    path = looked / f"{codec}.txt"
    edits = [
        line_replaced(looked, path.name, "line 5", "line five"),
        line_replaced(looked, path.name, "line 7", "line seven\nand more"),
    ]
    between = path.read_bytes()
    theirs = between.decode(codec).replace("line 15", "line fifteen").encode(codec)
    path.write_bytes(theirs)
    (other,) = by_someone_else(looked)
    assert "files" not in other
    if first == "theirs":
        assert undo(looked, entry_id=other["entry_id"])["success"]
        assert path.read_bytes() == between
    for entry in reversed(edits):
        assert undo(looked, entry_id=entry)["success"]
    if first == "ours":
        assert path.read_bytes().decode(codec) == LINES.replace("line 15", "line fifteen")
        assert undo(looked, entry_id=other["entry_id"])["success"]
    assert path.read_bytes() == LINES.encode(codec)


@pytest.mark.parametrize("way", ["write", "edit", "delete"])
def test_what_a_tool_made_or_removed_and_someone_took_or_put_back_is_recorded(looked, way):
    file = looked / ("utf-8.txt" if way == "delete" else "new.txt")
    if way != "delete":
        done("write", looked, file_path="new.txt", content="one\n")
    if way == "edit":
        line_replaced(looked, "new.txt", "one", "two")
    content = file.read_text()
    if way == "delete":
        done("edit_lines", looked, file_path=file.name, changes=[f"{file.name} delete file"])
        file.write_text(content)
    else:
        file.unlink()
    (other,) = by_someone_else(looked)
    assert undo(looked, entry_id=other["entry_id"])["success"]
    assert (file.read_text() if file.exists() else None) == (None if way == "delete" else content)


def test_showing_the_record_does_not_cut_a_running_commands_change_in_parts(looked):
    job = started(looked, "echo one > one.txt; while test ! -e go; do sleep 0.05; done; echo two > two.txt")
    assert until((looked / "one.txt").exists)
    assert undo(looked, list=True)["entries"] == []
    (looked / "go").touch()
    ended = done("rye/bash/job", looked, action="wait", job_id=job, timeout=60)
    assert {"one.txt", "two.txt"} <= {*ended["changed"]}


def test_a_project_that_was_never_looked_at_is_not_read_for_a_list(project):
    (project / "a.txt").write_text("one\n")
    done("write", project, file_path="b.txt", content="one\n")
    assert len(undo(project, list=True)["entries"]) == 1
    assert not Path(user_dirs.state_dir(str(project)), "tree/known").exists()
