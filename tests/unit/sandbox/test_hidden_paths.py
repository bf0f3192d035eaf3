"""What a sandbox hides and shows: ways are followed as the kernel follows them."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from rye.sandbox import hidden_paths


def steps(path):
    """The plain way: each step in turn, as the kernel takes it; the last is the real path."""
    at, parts, links = "/", path.split("/")[::-1], 0
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else f"{at.rstrip('/')}/{part}"
        yield at
        if not os.path.islink(at):
            os.lstat(at)
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, path)
        target = os.readlink(at)
        at = "/" if target.startswith("/") else os.path.dirname(at)
        parts += target.split("/")[::-1]
    yield at


def inode(path):
    return os.stat(path).st_ino


@pytest.mark.parametrize("seed", range(20))
def test_ways_that_share_their_steps_lead_where_the_kernel_goes(tmp_path, seed):
    dice = random.Random(seed)
    base = os.path.realpath(tmp_path)
    folders = [base, *(f"{base}/{one}" for one in ("p", "p/in", "out", "out/deep"))]
    for folder in folders[1:]:
        os.mkdir(folder)
    for number in range(30):
        place = f"{dice.choice(folders)}/l{number % 12}"
        kind = dice.choice(("link", "link", "link", "file", "up"))
        if os.path.lexists(place):
            continue
        if kind == "file":
            Path(place).touch()
        else:
            led = f"{dice.choice(folders)}/{dice.choice(('', 'l1', 'l2', 'deep', 'in/l3', 'l4/../l5', '.'))}"
            os.symlink(os.path.relpath(led, os.path.dirname(place)) if kind == "up" else led, place)
    ways = hidden_paths._Ways(f"{base}/p")
    parts = ("p", "in", "out", "deep", "..", ".", "", *(f"l{number}" for number in range(12)))
    for _ in range(400):
        path = "/".join([base, *dice.choices(parts, k=dice.randrange(1, 5))])
        found = ways.of(path)
        try:
            way = list(steps(path))
        except OSError:
            assert found is None, path
            assert hidden_paths.way(path) == (), path
        else:
            # Such as `file/..`.
            if os.path.exists(path):
                assert {*map(inode, hidden_paths.way(path))} >= {*map(inode, way)}, path
            assert found == (way[-1], any(hidden_paths.is_below(step, f"{base}/p") for step in way)), path


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_does(tmp_path):
    base = os.path.realpath(tmp_path)
    for number in range(1_000):
        os.symlink(f"l{number - 1}" if number else "end", f"{base}/l{number}")
    Path(base, "end").touch()
    ways = hidden_paths._Ways("/nowhere")
    assert ways.of(f"{base}/l999") is None
    assert ways.of(f"{base}/l990/" + "a/" * 3_000) is None
    # What too many links led to is found all the same.
    assert ways.of(f"{base}/l970") is None
    assert ways.of(f"{base}/l30") == ways.of(f"{base}/end") == (f"{base}/end", False)
