"""Where lines begin in a large file is counted once, and never believed of another state of the file."""

from __future__ import annotations

import os
import random
import time

import pytest

from rye.line_ids import document, store
from support.calling import done, refused, rows
from support.index_files import folder

LINES = 150_000
PLAIN = b"".join(
    b"%08d a line of a log that is long %b\n" % (at, b"\xc3\xa9nough" if at > 9**5 else b"enough") for at in range(LINES)
)


@pytest.fixture(autouse=True)
def without_views(monkeypatch):
    monkeypatch.setenv("RAGIX_VIEW_STATE", "off")


@pytest.fixture
def log(project):
    path = project / "big.log"
    path.write_bytes(PLAIN)
    time.sleep(0.06)  # a state of a file counts as settled only then
    return path


def look(project, start=100_000, name="big.log", limit=3):
    """Lines as a look without IDs shows them, and the count of all."""
    data = done("rye/swe/open_file_chunk", project, path=name, start=start + 1, end=start + limit)
    shown = data["output"].split("\n")[1 : data["end_line"] - data["start_line"] + 2]
    return [line.partition(": ")[2] for line in shown], data["total_lines"]


def truth(path, start=100_000):
    lines = path.read_bytes().decode().split("\n")[:-1]
    return lines[start : start + 3], len(lines)


def kept(project):
    return next(folder(project).glob("*.points"), None)


def never(*_):
    raise AssertionError("the file was counted")


@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_second_look_counts_nothing(project, log, monkeypatch, is_indexed):
    if is_indexed:
        done("read", project, file_path="big.log")
    else:
        assert look(project) == truth(log)
    for name in ("streamed", "parse"):
        monkeypatch.setattr(document, name, never)
    for start in (0, 7, 99_999, LINES - 3):
        assert look(project, start) == truth(log, start)


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
    """What counts is its age when it was looked at: a writer may have come back within the same tick of the clock."""
    streamed = document.streamed

    def slowly(*args):
        time.sleep(0.01)
        # Old enough by now, too young when it was looked at.
        last = max(log.stat().st_mtime_ns, log.stat().st_ctime_ns)
        monkeypatch.setattr(store, "_SETTLED_NS", time.time_ns() - 1_000_000 - last)
        return streamed(*args)

    with monkeypatch.context() as slow:
        slow.setattr(document, "streamed", slowly)
        look(project)
        assert kept(project) is None
    monkeypatch.undo()
    look(project)
    assert kept(project) is not None


def test_a_file_that_changes_between_reading_and_storing_is_not_known_by_its_new_times(project, monkeypatch):
    path = project / "f.txt"
    path.write_bytes(b"one\ntwo\n")
    scan = document.scan

    def changed_meanwhile(*args):
        path.write_bytes(b"eno\ntwo\n")
        time.sleep(0.06)
        return scan(*args)

    with monkeypatch.context() as slow:
        slow.setattr(document, "scan", changed_meanwhile)
        (first, _), (second, _) = rows(done("read", project, file_path="f.txt"))
    (changed, text), same = rows(done("read", project, file_path="f.txt"))
    assert (text, same, changed != first) == ("eno", (second, "two"), True)


def test_what_does_not_hold_is_counted_anew_and_what_stands_in_its_place_is_not_touched(project, log, tmp_path):
    look(project)
    path, victim = kept(project), tmp_path / "victim"
    whole = path.read_bytes()
    for raw in (whole[:-9], whole.replace(b'"total_lines":150000', b'"total_lines":149999'), b"", b"\xff" * 100):
        path.write_bytes(raw)
        assert look(project) == truth(log), raw[:80]
    victim.write_bytes(b"mine")
    path.unlink()
    path.symlink_to(victim)
    assert (look(project), victim.read_bytes()) == (truth(log), b"mine")
    path.unlink()
    path.mkdir()
    assert look(project) == truth(log)
    log.write_bytes(LONG[:99] + b"\0" + LONG * 13)
    assert refused("binary_file", "rye/swe/open_file_chunk", project, path="big.log")


# --- any content, at every line and offset ---

LONG = b"a line\n" * 50_000


def contents():
    dice = random.Random(11)
    yield from (b"\n", b"a", b"a\n", b"\r\n\r\n", b"a\r\nb", b"\n\n\nx")
    for ending in (b"\n", b"\r\n"):
        body = ending.join(b"x" * dice.randrange(90) for _ in range(15_000))
        yield from (body, body + ending)
    yield b"y" * 700_000 + b"\n" + b"z" * 300_000
    yield b"a\n" * (1 << 17) + b"b"
    # Characters across the seams of what is read at a time.
    yield from (b"x" * shift + "€ä\U0001f600\n".encode() * 60_000 for shift in range(4))
    # Wide ones are counted in whole characters.
    yield from (("ä" * 70 + "\n" + "aĊ\nb਀\nc\r\n" * 20_000).encode(codec) for codec in ("utf-16", "utf-8-sig"))
    # What is not plainly UTF-8.
    yield from (b"\xff\n", b"a\xc3b\n", LONG + b"\xff\n" + LONG, LONG + b"\xc3", "ä\n".encode() + LONG + b"\xe2\x82")


@pytest.mark.parametrize("number", range(21))
def test_a_look_shows_what_a_read_with_ids_shows(project, number):
    data = [*contents()][number]
    (project / "f").write_bytes(data)
    time.sleep(0.06)
    dice, places = random.Random(11), {0}
    total = look(project, 0, "f")[1]
    places |= {dice.randrange(total) for _ in range(6)} | {total - 1}
    shown = [look(project, start, "f", 7) for start in sorted(places) * 2]
    named = [done("read", project, file_path="f", offset=start + 1, limit=7) for start in sorted(places)]
    assert shown == [([text for _, text in rows(one)], one["total_lines"]) for one in named] * 2
