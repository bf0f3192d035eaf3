"""The kept index: what is damaged, foreign, old or hostile counts as missing, and heals without a word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import rye
from rye.config import user_dirs
from rye.line_ids import store
from rye.workspace import seals
from rye.workspace.workspace import Workspace
from support.calling import rows
from support.index_files import LARGE, SMALL, edit, entry, folder, read


def sound(project, content, known):
    """The file reads as it is; IDs are unique; an ID of before names the line that it named, or none."""
    found = rows(read(project, limit=100))
    texts = content.decode().splitlines()[:100]
    assert [text for _, text in found] == texts
    names = [name for name, _ in found]
    assert len(set(names)) == len(names)
    before = dict(known)
    assert all(before.get(name, text) == text for name, text in found)
    return found


def test_the_file_has_the_documented_form(project, small):
    record = json.loads(entry(project).read_bytes())
    assert record["file_path"] == "f.txt"
    assert record["content_hash"] == f"sha256:{sha256(SMALL).hexdigest()}"
    assert isinstance(record["last_modified"], int)
    assert record["lines"][0] == {"id": small[0][0], "line_num": 1, "content_hash": f"sha256:{sha256(b'line 0').hexdigest()}"}
    assert len(record["lines"]) == 12


GARBAGE = [
    *[b"", b"\0" * 100, b"null", b"[]", b"{}", b"7", b'"text"', b"true", b"NaN", b"1" * 5_000, b"[" * 50_000, b"{" * 9],
    *[b'{"format":2}', b"\xff\xfe{}", b'{"format":2,"file_path":"f.txt"}', b'{"lines":[]}'],
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_heals(project, small, garbage):
    entry(project).write_bytes(garbage)
    found = sound(project, SMALL, small)
    assert not {name for name, _ in found} & {name for name, _ in small}
    assert rows(read(project)) == found


def unsealed(path):
    record = json.loads(path.read_bytes())
    record.pop("seal", None)
    return record


def seal(path, record):
    """Write a record as the store itself does, under the project's own secret."""
    body = json.dumps(record, separators=(",", ":"))[1:].encode("utf-8", "surrogatepass")
    with Workspace(str(path.parents[5])) as ws:
        path.write_bytes(seals.sealed(seals.secret(ws), f"line_index {path.stem}", body))


def test_the_seal_of_this_test_is_the_stores_own(project, small):
    """Control: an untouched record, sealed here, is taken; so the others are refused for what is in them."""
    seal(entry(project), unsealed(entry(project)))
    assert rows(read(project)) == small


@pytest.mark.parametrize("turned", [False, True])
def test_a_view_stores_what_would_be_written_anew_beside_a_record_in_another_order_too(project, small, turned):
    edit(project, line_id=small[0][0], new_content="x")
    if turned:
        seal(entry(project), dict(reversed(unsealed(entry(project)).items())))
    for offset in (3, 7):
        read(project, offset=offset, limit=2, line_ids="short")
        raw, _ = entry(project).read_bytes(), store._checked.clear()
        with Workspace(str(project)) as ws:
            stored = store.load(ws, b"f.txt", dense=True)
        assert raw.endswith(store._dump(b"f.txt", stored))
        assert [raw.count(name) for name in (b'"shown"', b'"told"', b'"stamp"', b'"dead"')] == [1] * 4
        assert [stored.index.is_told(at) for at in range(offset - 2, offset + 2)] == [False, True, True, False]


@pytest.mark.parametrize("other", [{"file_path": "g.txt"}, {"format": 1}])
def test_an_index_of_another_file_or_format_counts_as_missing(project, small, other):
    seal(entry(project), unsealed(entry(project)) | other)
    found = sound(project, SMALL, small)
    assert not {name for name, _ in found} & {name for name, _ in small}


@pytest.mark.parametrize("part", [".ai", ".ai/cache", ".ai/cache/tools", ".ai/cache/tools/read/line_index"])
@pytest.mark.parametrize("kind", ["link out", "link in", "file", "pipe"])
def test_a_cache_folder_that_is_none_is_not_entered(project, tmp_path, part, kind):
    """The index then goes to the user's state folder. Control: the links lead to folders that could be written."""
    elsewhere = tmp_path / "elsewhere" if kind == "link out" else project / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "probe").touch()
    (project / part).parent.mkdir(parents=True, exist_ok=True)
    {"file": Path.touch, "pipe": os.mkfifo}.get(kind, lambda at: at.symlink_to(elsewhere))(project / part)
    (project / "f.txt").write_bytes(SMALL)
    known = rows(read(project))
    assert rows(read(project)) == known
    assert edit(project, line_id=known[0][0], new_content="x")["success"]
    assert [path.name for path in elsewhere.rglob("*")] == ["probe"]
    kept = Path(user_dirs.state_dir(str(project))) / "cache/tools/read/line_index"
    assert list(kept.glob("*.json"))


def test_the_index_ignores_itself_in_git_and_nothing_temporary_remains(project, large):
    assert (project / ".ai/cache/.gitignore").read_text() == "*\n"
    read(project, offset=500, limit=10)
    edit(project, line_id=large[0][0], new_content="x")
    assert [path.name for path in folder(project).iterdir() if path.name.startswith(".")] == []
    assert len(list(folder(project).iterdir())) == 2


def test_a_changed_content_under_the_old_times_and_size_is_seen_by_an_edit(project, small):
    """An edit always hashes. The inode and ctime differ here for a read too."""
    info = (project / "f.txt").stat()
    (project / "f.txt").write_bytes(SMALL.replace(b"line 0", b"LINE 0"))
    os.utime(project / "f.txt", ns=(info.st_atime_ns, info.st_mtime_ns))
    data = edit(project, line_id=small[0][0], new_content="x")
    assert not data["success"]
    assert data["code"] == "stale_file"


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
def test_two_user_spaces_on_one_project_keep_their_own_ids(project, tmp_path, monkeypatch, content):
    (project / "f.txt").write_bytes(content)

    def become(who):
        monkeypatch.setenv("USER_SPACE", str(tmp_path / who))

    spaces, known = ("host", "container", "person"), {}
    for who in spaces:
        become(who)
        known[who] = rows(read(project, limit=12))
    first = json.loads(entry(project).read_bytes())["seal"][:16]
    for turn in range(6):
        who = spaces[turn % 3]
        become(who)
        lid, text = known[who][turn]
        answer = edit(project, line_id=lid, new_content=f"{text} by {who}")
        assert answer["success"], (turn, who, answer)
        for other in spaces:
            become(other)
            found = rows(read(project, limit=12))
            # All but the line that was edited have the IDs that this space knew, whoever edited.
            assert [one for one, _ in found[:turn] + found[turn + 1 :]] == [
                one for one, _ in known[other][:turn] + known[other][turn + 1 :]
            ]
            known[other] = found
    assert (project / "f.txt").read_bytes().count(b" by ") == 6
    # The first one's has the documented place still.
    assert json.loads(entry(project).read_bytes())["seal"].startswith(first)
    beside = sorted(path for path in folder(project).glob("*.json") if path != entry(project))
    assert [path.name.split("-")[0] for path in beside] == [entry(project).stem] * 2


EDITS = """
import sys, rye
project, mark = sys.argv[1:]
rye.execute("rye/file-system/read", {"file_path": "f.txt"}, project_path=project)
for number in range(12):
    change = {"file_path": "f.txt", "changes": [f"end+|{mark}{number}"], "on_stale": "rebase"}
    answer = rye.execute("rye/file-system/edit_lines", change, project_path=project)
    assert answer["status"] == "success", answer
"""


def test_edits_of_two_user_spaces_at_one_time_wait_for_each_other(project, tmp_path):
    (project / "f.txt").write_bytes(SMALL)
    running = []
    for who in ("a", "b"):
        env = {**os.environ, "USER_SPACE": str(tmp_path / who), "PYTHONPATH": str(Path(rye.__file__).parents[1])}
        running.append(subprocess.Popen([sys.executable, "-c", EDITS, str(project), who], env=env))
    assert [one.wait(120) for one in running] == [0, 0]
    lines = (project / "f.txt").read_text().split()
    assert [[one for one in lines if one[0] == who] for who in "ab"] == [[f"{who}{at}" for at in range(12)] for who in "ab"]


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, which makes folders in another user's project")
def test_folders_that_root_makes_are_the_owners(project):
    (project / "f.txt").write_bytes(SMALL)
    os.chown(project, 65534, 65534)
    assert rows(read(project))
    assert {path.stat().st_uid for path in (project / ".ai").rglob("*") if path.is_dir()} == {65534}


def test_what_was_stored_longest_ago_goes_beyond_the_bounds(project, small, monkeypatch):
    os.utime(entry(project), (1, 1))
    monkeypatch.setattr(store, "MOST_FILES", 2)
    # Each write looks then, not one of 256.
    monkeypatch.setattr(store.atomic.os, "urandom", bytes)
    for name in ("g.txt", "h.txt"):
        (project / name).write_bytes(SMALL)
        read(project, name)
    assert set(folder(project).iterdir()) == {entry(project, "g.txt"), entry(project, "h.txt")}
