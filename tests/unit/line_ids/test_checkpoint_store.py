"""Where lines begin in a large file is counted once, and never believed of another state of the file."""

from __future__ import annotations

import json
import os
import time

import pytest

from rye.line_ids import document, store
from rye.workspace import cache, seals
from rye.workspace.workspace import Workspace

LINES = 150_000
PLAIN = b"".join(b"%08d a line of a log that is long enough\n" % number for number in range(LINES))


@pytest.fixture
def log(project):
    path = project / "big.log"
    path.write_bytes(PLAIN)
    time.sleep(0.06)  # a state of a file counts as settled only then
    return path


def look(project, start=100_000):
    """Return three lines and the count, as a look shows them."""
    with Workspace(str(project)) as ws, document.glance(ws, "big.log") as (_, shown):
        return shown.lines(start, start + 3), shown.count


def truth(path, start=100_000):
    lines = path.read_bytes().splitlines(keepends=True)
    return lines[start : start + 3], len(lines)


def kept(project):
    return next((project / ".ai/cache/tools/read/line_index").glob("*.points"), None)


def never(*_):
    raise AssertionError("the file was counted")


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_second_look_counts_nothing(project, log, monkeypatch, is_indexed):
    if is_indexed:
        with Workspace(str(project)) as ws, document.view(ws, "big.log"):
            pass
    else:
        assert look(project) == truth(log)
    monkeypatch.setattr(document, "streamed", never)
    monkeypatch.setattr(document, "glanced", never)
    for start in (0, 7, 99_999, LINES - 3):
        assert look(project, start) == truth(log, start)
    for path in (project / ".ai/cache/tools/read/line_index").iterdir():
        path.unlink()
    with pytest.raises(AssertionError, match="counted"):
        look(project)


def rewrite(path):
    path.write_bytes(PLAIN.replace(b"0 a line", b"\n a line"))


def rewrite_with_the_old_time(path):
    """The size and the time of the last change are as they were: only the inode's own time tells."""
    before = path.stat()
    rewrite(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def replace(path):
    other = path.with_name("other")
    rewrite(other)
    other.replace(path)


@pytest.mark.parametrize("change", [rewrite, rewrite_with_the_old_time, replace])
def test_a_changed_file_is_counted_again(project, log, change, monkeypatch):
    look(project)
    change(log)
    assert look(project) == truth(log)
    # Believing size and time alone shows wrong lines after one of the changes: the control.
    log.write_bytes(PLAIN)
    time.sleep(0.06)
    look(project)
    monkeypatch.setattr(store, "stamp_of", lambda info: (0, 0, info.st_size, 0, 0))
    monkeypatch.setattr(store, "settled", lambda *_: True)
    kept(project).unlink()
    look(project)
    change(log)
    assert look(project) != truth(log)


def test_a_state_that_may_still_change_is_not_kept(project, log, monkeypatch):
    # As if each state were younger than the grain of the clock, however long this machine takes.
    with monkeypatch.context() as young:
        young.setattr(store, "_SETTLED_NS", 10**18)
        look(project)
        assert kept(project) is None
    look(project)
    assert kept(project) is not None


def test_a_state_does_not_become_known_while_it_is_read(project, log, monkeypatch):
    """What counts is its age when it was looked at: a writer may have come back within the same tick of the clock."""
    streamed = document.streamed

    def slowly(*args):
        time.sleep(0.01)
        # Old enough by now, too young when it was looked at.
        monkeypatch.setattr(
            store, "_SETTLED_NS", time.time_ns() - 1_000_000 - max(log.stat().st_mtime_ns, log.stat().st_ctime_ns)
        )
        return streamed(*args)

    monkeypatch.setattr(document, "streamed", slowly)
    look(project)
    assert kept(project) is None


def test_a_file_that_changes_between_reading_and_storing_is_not_known_by_its_new_times(project, monkeypatch):
    path = project / "f.txt"
    path.write_bytes(b"one\ntwo\n")
    scan = document.scan

    def changed_meanwhile(*args):
        path.write_bytes(b"eno\ntwo\n")
        time.sleep(0.06)
        return scan(*args)

    def lines():
        with Workspace(str(project)) as ws, document.view(ws, "f.txt") as shown:
            return [(row.id, row.text) for row in shown.rows(0, 2)]

    with monkeypatch.context() as slow:
        slow.setattr(document, "scan", changed_meanwhile)
        (first, _), (second, _) = lines()
    (changed, text), same = lines()
    assert (text, same) == ("eno", (second, "two"))
    assert changed != first


@pytest.mark.parametrize("body", ["ä" * 70 + "\n", "\u0436" * 40 + "\r\n"])
def test_other_encodings_are_kept_too(project, log, body):
    for codec in ("utf-8", "utf-16"):
        log.write_bytes((body * 60_000).encode(codec))
        time.sleep(0.06)
        first = look(project, 59_000)
        assert look(project, 59_000) == first
        assert first[1] == 60_000
        kept(project).unlink()


def broken(path):
    raw = path.read_bytes()
    record = json.loads(raw)
    with Workspace(str(path.parents[5])) as ws:
        key = seals.secret(ws)
    yield raw[:-9]
    yield raw.replace(b'"count":150000', b'"count":149999')
    yield b""
    yield b"\xff" * 100
    changes = (
        {"count": -1},
        {"count": "9"},
        {"points": ""},
        {"points": record["points"][:-4]},
        {"points": record["points"][8:]},
        {"points": "ä"},
        {"points": None},
        {"format": 9},
        {"file_path": "other"},
        {"stamp": [1, 2, 3, 4, 5]},
        {"stamp": None},
        {"encoding": ["utf-8"]},
        {"encoding": ["nonsense", "", "0a", True]},
    )
    for change in changes:
        made = {name: value for name, value in {**record, **change}.items() if name != "seal"}
        yield seals.sealed(key, f"points {path.stem}", json.dumps(made).encode()[1:])


def test_what_does_not_hold_is_counted_anew(project, log):
    look(project)
    for raw in broken(kept(project)):
        kept(project).write_bytes(raw)
        assert look(project) == truth(log), raw[:80]


def test_links_and_folders_in_its_place_harm_nothing(project, log, tmp_path):
    look(project)
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    path = kept(project)
    path.unlink()
    path.symlink_to(victim)
    assert look(project) == truth(log)
    assert victim.read_bytes() == b"mine"
    path.unlink()
    path.mkdir()
    assert look(project) == truth(log)


def test_a_look_is_no_failure_where_nothing_can_be_kept(project, log, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "write", full)
    assert look(project) == truth(log)
