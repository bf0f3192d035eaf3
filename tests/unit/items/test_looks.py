"""Looks that are made again: what was judged stands only where each finds just what it found."""

from __future__ import annotations

import os

from rye.errors import RyeError
from rye.items.spaces import hold, look, noted


@look
def content(path, most=100):
    try:
        return path.read_bytes()[:most]
    except FileNotFoundError:
        return None


@look
def strict(path):
    if not path.exists():
        raise RyeError("gone", "It is gone.")
    return path.read_bytes()


def test_looks_are_noted_inside_the_block_only(tmp_path):
    file = tmp_path / "a"
    content(file)
    with noted() as looks:
        assert content(file) is None
        file.write_bytes(b"one")
        assert content(file) == b"one"
    content(file)
    assert [one.found for one in looks] == [None, b"one"]


def test_they_hold_while_all_is_as_it_was(tmp_path):
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"one")
    with noted() as looks:
        content(file)
        content(other)
    assert hold(looks)
    other.write_bytes(b"")
    assert not hold(looks)
    other.unlink()
    assert hold(looks)


def test_times_and_sizes_prove_nothing(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"one")
    info = file.stat()
    with noted() as looks:
        content(file)
    with open(file, "r+b") as stream:
        stream.write(b"two")
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert not hold(looks)


def test_a_look_that_is_refused_does_not_hold(tmp_path):
    file = tmp_path / "a"
    file.write_bytes(b"one")
    with noted() as looks:
        strict(file)
    assert hold(looks)
    file.unlink()
    assert not hold(looks)
