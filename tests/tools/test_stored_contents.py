"""What is stored of the files that commands change: every size comes back, bounded on the disk, and never in memory whole."""

import os
import sqlite3
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from rye.config import user_dirs
from support.calling import call, undo
from support.harness import environment
from support.shell_calls import bash, configure

MB = 1 << 20
SIZES = [0, 1, 8 * MB - 1, 8 * MB, 8 * MB + 1, 15 * MB]


def files(project):
    return {path.name: sha256(path.read_bytes()).digest() for path in project.glob("f*")}


@pytest.mark.parametrize("damage", [None, "UPDATE part SET number = 9 WHERE number = 1", "UPDATE content SET data = x'00'"])
def test_every_size_comes_back_and_what_is_damaged_counts_as_missing(project, damage):
    for size in SIZES:
        (project / f"f{size}").write_bytes(os.urandom(size // 2) + bytes(size - size // 2))
    before = files(project)
    bash(project, "true")
    gone = bash(project, "rm f*")
    if damage:
        db = sqlite3.connect(Path(user_dirs.state_dir(str(project))) / "tree/contents.sqlite")
        # A write-ahead log: who reads does not wait for a writer.
        assert db.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        with db:
            db.execute(damage)
        db.close()
        answer = undo(project, entry_id=gone["change_id"])
        assert (answer["code"], "has no stored content any more" in answer["error"]) == ("changed_since", True)
        assert not files(project)
    else:
        assert undo(project, entry_id=gone["change_id"])["success"]
        assert files(project) == before


_GREW = """
import resource, sys
import rye
def call(tool, **parameters):
    answer = rye.execute(tool, parameters, project_path=sys.argv[1])
    assert answer["status"] == "success", answer
    return answer["data"]
def bash(command):
    return call("rye/bash/bash", command=command, timeout=300)
bash("true")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
made = bash(f"for i in $(seq {sys.argv[2]}); do head -c 4096 /dev/urandom; head -c 1044480 /dev/zero; done > large")
assert "not_recorded" not in made, made
gone = bash("rm large")
call("rye/file-system/undo", entry_id=gone["change_id"])
call("rye/file-system/undo", entry_id=made["change_id"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("size", [128, pytest.param(1024, marks=pytest.mark.full)])
def test_a_large_file_is_never_in_memory_whole(project, user_space, size):
    configure(user_space, "record: {max_file_bytes: 2147483648, max_bytes: 4294967296}\n")
    words = [sys.executable, "-c", _GREW, project, str(size)]
    done = subprocess.run(words, check=True, capture_output=True, env=environment())
    # 8 MB parts, several of them at a time on their way into the database.
    assert int(done.stdout) * 1024 < 64 * MB
    assert not (project / "large").exists()


def test_the_state_folder_stays_within_its_bounds(project, user_space):
    configure(user_space, "record: {max_bytes: 8388608}\njournal: {max_bytes: 1048576}\n")
    for number in range(14):
        found = bash(project, f"head -c {MB} /dev/urandom > f{number % 5}")
        taken = sum(path.stat().st_size for path in Path(user_dirs.state_dir(str(project))).rglob("*") if path.is_file())
        # The database's log comes on top until it is written back.
        assert taken < 8 * MB + MB + 4 * MB, (number, taken)
        assert number < 5 or "change_id" in found, (number, found)
    assert undo(project, entry_id=found["change_id"])["success"]


def test_a_change_just_made_is_undone_where_the_record_is_nearly_full(project, user_space):
    """Files that changed a moment ago are read again at the next look: they are stored already, and need no room."""
    configure(user_space, "record: {max_bytes: 7340032}\n")
    for number in range(3):
        (project / f"f{number}").write_bytes(os.urandom(MB))
    before = files(project)
    changed = bash(project, f"for i in 0 1 2; do head -c {MB} /dev/urandom > f$i; done")
    assert undo(project, entry_id=changed["change_id"])["success"]
    assert files(project) == before


def test_where_the_kernel_tells_too_much_at_once_everything_counts_as_changed(project):
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if most > 100_000:
        pytest.skip("the queue is long here")
    bash(project, "true")
    bash(project, "true")
    for number in range(most // 2 + 100):
        # Two names in turn, so that the kernel does not merge the events.
        os.close(os.open(project / f"n{number % 2}", os.O_CREAT | os.O_WRONLY))
        os.unlink(project / f"n{number % 2}")
    (project / "late").write_text("x\n")
    bash(project, "true")
    assert [one["file_path"] for one in call("undo", project, list=True)["entries"]] == ["late"]
