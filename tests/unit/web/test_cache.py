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


def test_what_was_kept_comes_back_whole(tmp_path):
    cache.store(str(tmp_path), NAME, answer(b"\0\n\xff", ("https://site.example/old",)))
    kept = cache.load(str(tmp_path), NAME)
    assert kept is not None
    assert kept[0] == answer(b"\0\n\xff", ("https://site.example/old",))


def test_a_project_does_not_see_what_another_keeps(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    cache.store(str(one), NAME, answer(b"poison"))
    assert cache.load(str(other), NAME) is None


def test_nothing_of_a_project_is_taken_for_what_was_kept(tmp_path):
    cache.store(str(tmp_path), NAME, answer())
    assert not str(folder(tmp_path)).startswith(str(tmp_path / ".ai"))
    assert folder(tmp_path).stat().st_mode & 0o077 == 0
    assert (folder(tmp_path) / NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: data + b"x", lambda data: b"{}\n", lambda data: b"", lambda data: b"\xff\n"]
)
def test_a_spoilt_entry_is_no_entry(tmp_path, spoil):
    cache.store(str(tmp_path), NAME, answer())
    path = folder(tmp_path) / NAME
    path.write_bytes(spoil(path.read_bytes()))
    assert cache.load(str(tmp_path), NAME) is None


def test_what_the_server_forbids_to_store_is_not(tmp_path):
    cache.store(str(tmp_path), NAME, answer(**{"cache-control": "private, No-Store"}))
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


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path):
    Path(user_dirs.state_dir(str(tmp_path))).mkdir(parents=True, exist_ok=True)
    folder(tmp_path).write_text("a file is in the way")
    cache.store(str(tmp_path), NAME, answer())
    assert cache.load(str(tmp_path), NAME) is None
