"""A line index that a clone brings, or that a program of the project wrote: none of it is believed without the user's seal.

The attacker has the same version of rye, knows every byte of the files, and seals with a secret of their own. Each attack has
its control: with the seal not looked at, it succeeds.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import time

import pytest

from rye.cli.rt import main as rt_main
from rye.line_ids import document, store
from rye.trust import keys
from rye.workspace import cache, seals
from rye.workspace.workspace import Workspace
from support.calling import call, done, rows
from support.index_files import entry, folder, settle

# A checkpoint is about every 64 KiB: the second one of the file is at the second line.
LINES = [f"{'#' * 65_536}\n", *(f"value_{n} = {n}\n" for n in range(2, 5_001))]
LINES[1_200] = "REMOVE = True\n"
UTF7 = "def total(prices):\n    return sum(prices) +ACM- os.system('id')\n"


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """The attacker's working copy, made under the attacker's own user space."""
    made = tmp_path / "theirs"
    made.mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("USER_SPACE", str(tmp_path / "attacker"))
        yield made


def key(project):
    with Workspace(str(project)) as ws:
        return seals.secret(ws)


def resealed(path, project, label, change):
    record = json.loads(path.read_bytes())
    del record["seal"]
    change(record)
    body = json.dumps(record, separators=(",", ":")).encode()[1:]
    path.write_bytes(seals.sealed(key(project), f"{label} {path.stem}", body))


def utf_7(theirs):
    (theirs / "f.txt").write_text(UTF7)
    done("read", theirs, file_path="f.txt", encoding="utf-7")


def false_checkpoints(theirs):
    """The second checkpoint is one line further on than it says, so that the second line and the numbers after it are wrong."""
    (theirs / "f.txt").write_text("".join(LINES))
    settle(theirs / "f.txt")
    done("read", theirs, file_path="f.txt", offset=1_190, limit=20)

    def shift(record):
        points = store._unpacked(record["points"])
        at = next(at for at, line in enumerate(points.lines) if line > 0)
        for later in range(at, len(points.lines)):
            points.offsets[later] += len(LINES[points.lines[later]])
        record["points"] = store._packed(points)

    resealed(entry(theirs), theirs, "line_index", shift)


def shifted_digests(theirs):
    """Each ID has the digest of the line after its own."""
    (theirs / "f.txt").write_text("".join(LINES[:12]))
    done("read", theirs, file_path="f.txt")

    def shift(record):
        found = [row["content_hash"] for row in record["lines"]]
        for row, digest in zip(record["lines"], [*found[1:], found[0]], strict=True):
            row["content_hash"] = digest

    resealed(entry(theirs), theirs, "line_index", shift)


def cloned(theirs, project, monkeypatch):
    """Bring the attacker's folder to the user, as a clone or an archive does."""
    monkeypatch.undo()
    project.rmdir()
    shutil.copytree(theirs, project, symlinks=True)


def shows_other_text(project):
    return "+ACM-" not in done("read", project, file_path="f.txt")["output"]


def leaves_lines_out(project):
    told = [text for _, text in rows(done("read", project, file_path="f.txt", offset=1_200, limit=100))]
    return told != [line.rstrip("\n") for line in LINES[1_199:1_299]]


def replaces_another_line(project):
    """`rt edit` of the line number that `rt open` showed."""
    shown = call("rye/swe/open_file_chunk", project, path="f.txt", start=1_195, end=1_210)["output"]
    (number,) = re.findall(r"(\d+)\W+REMOVE", shown)
    with contextlib.chdir(project), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"REMOVE = False\n")))
        # What was shown can differ from what the edit finds: then it is refused, and the number was wrong all the same.
        code = rt_main.main(["edit", "f.txt", number, number])
    changed = (project / "f.txt").read_text().splitlines(keepends=True)
    wanted = [*LINES[:1_200], "REMOVE = False\n", *LINES[1_201:]]
    return code != 0 or changed != wanted


def rebases_onto_another_line(project):
    known = {text: name for name, text in rows(done("read", project, file_path="f.txt"))}
    text = (project / "f.txt").read_text()
    (project / "f.txt").write_text("# new\n" + text)
    change = {"line_id": known["value_5 = 5"], "new_content": "FIVE"}
    data = call("edit_lines", project, file_path="f.txt", changes=[change], on_stale="rebase")
    wanted = ("# new\n" + text).replace("value_5 = 5", "FIVE")
    return data["success"] and (project / "f.txt").read_text() != wanted


ATTACKS = {
    "utf-7": (utf_7, shows_other_text),
    "checkpoints, read": (false_checkpoints, leaves_lines_out),
    "checkpoints, rt": (false_checkpoints, replaces_another_line),
    "digests": (shifted_digests, rebases_onto_another_line),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_clones_own_index_counts_as_missing(name, theirs, project, monkeypatch):
    prepare, harm = ATTACKS[name]
    prepare(theirs)
    cloned(theirs, project, monkeypatch)
    assert not harm(project)


@pytest.mark.parametrize("name", ATTACKS)
def test_control_without_the_seal_the_clone_is_believed(name, theirs, project, monkeypatch):
    prepare, harm = ATTACKS[name]
    prepare(theirs)
    cloned(theirs, project, monkeypatch)

    def unchecked(_key, _label, raw):
        record = json.loads(raw)
        del record["seal"]
        return record

    monkeypatch.setattr(seals, "unsealed", unchecked)
    monkeypatch.setattr(seals, "own", lambda fd, _, name, suffix, limit=1 << 28: (name, cache.read(fd, name + suffix, limit)))
    assert harm(project)


def look(project):
    with Workspace(str(project)) as ws, document.without_ids(ws, "big.log") as found:
        return found.text.lines(100_000, 100_003), found.text.count


def test_checkpoints_that_a_program_of_the_project_wrote(project, monkeypatch):
    """It can ask for the file's times and inode, but not for the secret."""
    lines = [b"%08d a line of a log that is long enough\n" % n for n in range(150_000)]
    (project / "big.log").write_bytes(b"".join(lines))
    time.sleep(0.06)
    true = (lines[100_000:100_003], 150_000)
    assert look(project) == true
    (path,) = folder(project).glob("*.points")
    record = json.loads(path.read_bytes())
    del record["seal"]
    points = store._unpacked(record["points"])
    for at in range(1, len(points.lines)):
        points.lines[at] += 1
    record["points"] = store._packed(points)
    record["total_lines"] += 1
    body = json.dumps(record, separators=(",", ":")).encode()[1:]
    path.write_bytes(seals.sealed(os.urandom(32), f"points {path.stem}", body))
    assert look(project) == true
    # The control: sealed with the project's secret, it is believed.
    path.write_bytes(seals.sealed(key(project), f"points {path.stem}", body))
    assert look(project) != true


def test_the_index_of_another_project_counts_as_missing(project, tmp_path):
    """The user's own seal, but of another folder: what a program sent out of there cannot come back in a clone."""
    (project / "f.txt").write_text(UTF7)
    done("read", project, file_path="f.txt", encoding="utf-7")
    other = tmp_path / "other"
    shutil.copytree(project, other)
    assert not shows_other_text(other)
    assert shows_other_text(project)


def test_a_record_of_another_file_counts_as_missing(project):
    for name in ("f.txt", "g.txt"):
        (project / name).write_text(UTF7)
    done("read", project, file_path="g.txt", encoding="utf-7")
    record = json.loads(entry(project, "g.txt").read_bytes()) | {"file_path": "f.txt"}
    entry(project).write_text(json.dumps(record, separators=(",", ":")))
    assert not shows_other_text(project)
    entry(project).write_bytes(entry(project, "g.txt").read_bytes())
    assert not shows_other_text(project)


def test_a_record_that_changes_once_it_is_believed_counts_as_missing(project):
    (project / "f.txt").write_text(UTF7)
    for _ in range(3):
        (line, *_) = rows(done("read", project, file_path="f.txt", line_ids="lid"))
        time.sleep(0.02)
    forged = entry(project).read_bytes().replace(line[0].encode(), b"f0f0f0")
    with entry(project).open("r+b") as file:  # In place and of the same size: only the time of the change tells.
        file.write(forged)
    assert "f0f0f0" not in str(rows(done("read", project, file_path="f.txt", line_ids="lid")))
    assert entry(project).read_bytes() != forged


def test_the_secret_is_private_and_lies_outside_the_project(project, user_space):
    (project / "f.txt").write_text(UTF7)
    done("read", project, file_path="f.txt")
    (path,) = user_space.rglob(seals.SECRET)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes()) == 32
    assert path.read_bytes() not in b"".join(one.read_bytes() for one in project.rglob("*") if one.is_file())


@pytest.mark.parametrize("make", [keys.generate, lambda: call("rye/bash/bash", ".", command="true")])
def test_what_is_made_for_the_user_is_closed_to_others_whatever_the_umask(project, tmp_path, monkeypatch, make):
    """Else another user would put a key or a setting beside: `makedirs` leaves the mode of folders above to the umask."""
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "new"))
    monkeypatch.chdir(project)
    before = os.umask(0)
    try:
        make()
    finally:
        os.umask(before)
    assert (tmp_path / "new/.ai").stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("damage", ["other mode", "short", "link", "folder"])
def test_a_secret_that_another_may_know_is_made_anew(project, user_space, tmp_path, damage):
    old = key(project)
    (path,) = user_space.rglob(seals.SECRET)
    if damage == "other mode":
        path.chmod(0o644)
    else:
        path.unlink()
    if damage == "short":
        path.write_bytes(b"short")
        path.chmod(0o600)
    elif damage == "link":
        (tmp_path / "known").write_bytes(bytes(32))
        path.symlink_to(tmp_path / "known")
    elif damage == "folder":
        path.mkdir()
    assert key(project) not in (old, bytes(32))


def test_epochs_that_were_lost_are_never_counted_anew(project, user_space):
    """Index and epoch both damaged: an ID of before may be unknown, and is never another line's."""
    (project / "f.txt").write_text("}\n" * 5)
    known = {name for name, _ in rows(done("read", project, file_path="f.txt"))}
    for damage in (b"", b"not a number", b"-7", b"9" * 5_000):
        entry(project).write_bytes(b"damaged")
        (epoch,) = user_space.rglob("line_index_epochs")
        epoch.write_bytes(damage)
        found = {name for name, _ in rows(done("read", project, file_path="f.txt"))}
        assert not found & known
        known |= found
