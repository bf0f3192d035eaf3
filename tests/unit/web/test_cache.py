"""The kept answers: whole or not at all, of one project, bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rye.config import user_dirs
from rye.web import cache
from rye.web.client import HttpAnswer

NAME = cache.key("https://site.example/")


@pytest.fixture(autouse=True)
def space(user_space):
    return user_space


def answer(body=b"text", hops=(), **headers):
    return HttpAnswer("https://site.example/", 200, "OK", {"content-type": "text/plain", **headers}, body, False, hops)


def folder(root):
    return Path(user_dirs.state_dir(str(root))) / "web"


def test_what_was_kept_comes_back_whole_to_its_project_alone(tmp_path):
    one, other, broken = (tmp_path / name for name in ("one", "other", "broken"))
    for root in (one, other, broken):
        root.mkdir()
    kept = answer(b"\0\n\xff", ("https://site.example/old",))
    cache.store(str(one), NAME, kept)
    assert cache.load(str(one), NAME)[0] == kept
    assert cache.load(str(other), NAME) is None
    # Nothing of a project is taken for what was kept: it lies elsewhere, closed to others.
    assert not str(folder(one)).startswith(str(one / ".ai"))
    assert [path.stat().st_mode & 0o077 for path in (folder(one), folder(one) / NAME)] == [0, 0]
    # What the server forbids to store is not stored; a cache that cannot be written is no failure.
    cache.store(str(other), NAME, answer(**{"cache-control": "private, No-Store"}))
    Path(user_dirs.state_dir(str(broken))).mkdir(parents=True, exist_ok=True)
    folder(broken).write_text("a file is in the way")
    cache.store(str(broken), NAME, answer())
    assert cache.load(str(other), NAME) is cache.load(str(broken), NAME) is None


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"{}\n", lambda data: b"", lambda data: b"\xff\n"]
)
def test_a_spoilt_entry_is_no_entry(tmp_path, spoil):
    cache.store(str(tmp_path), NAME, answer())
    path = folder(tmp_path) / NAME
    path.write_bytes(spoil(path.read_bytes()))
    assert cache.load(str(tmp_path), NAME) is None


def test_the_folder_stays_within_its_bound_and_the_oldest_go_first(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MAX_BYTES", 5_000)
    for number in range(10):
        cache.store(str(tmp_path), cache.key(str(number)), answer(b"x" * 1_000))
        os.utime(folder(tmp_path) / cache.key(str(number)), (time.time() - 100 + number,) * 2)
    assert sum(entry.stat().st_size for entry in folder(tmp_path).iterdir()) <= 5_000 + 1_500
    assert cache.load(str(tmp_path), cache.key("9"))
    assert cache.load(str(tmp_path), cache.key("0")) is None


def test_an_answer_stored_while_the_clock_was_ahead_is_asked_for_anew(tmp_path, monkeypatch):
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 200 * 24 * 3600)
    cache.store(str(tmp_path), NAME, answer())
    assert cache.load(str(tmp_path), NAME)
    monkeypatch.undo()
    assert cache.load(str(tmp_path), NAME) is None


def test_a_key_depends_on_every_part_and_where_it_ends():
    assert len({cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("ab", "c", "")}) == 4
