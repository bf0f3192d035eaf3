"""What a sandbox hides and shows: the lists are made without leaving anything open."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from rye.sandbox import hidden_paths


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("git", ["folder", "file", "none", "link"])
def test_a_view_leaves_no_descriptor_open(project, git):
    if git == "folder":
        subprocess.run(["git", "init", "-q", project], check=True)
    elif git == "file":
        (project / ".git").write_text("gitdir: elsewhere\n")
    elif git == "link":
        (project / ".git").symlink_to(project)
    hidden_paths.view(str(project), [])
    before = open_descriptors()
    for _ in range(60):
        hidden_paths.view(str(project), [])
    assert open_descriptors() == before


def test_the_count_sees_what_stays_open(project):
    before = open_descriptors()
    fd = os.open(project, os.O_RDONLY)
    assert open_descriptors() == before + 1
    os.close(fd)


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
            way = list(hidden_paths.steps(path))
        except OSError:
            assert found is None, path
        else:
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
