"""What the tests of crashes share."""

from __future__ import annotations

import os
import random
import subprocess

import pytest

from support.faults import Template


@pytest.fixture
def made(tmp_path):
    """A process that every killed call is forked from."""
    one = Template(tmp_path)
    yield one
    one.close()


@pytest.fixture
def rng():
    """Random numbers; `RYE_TEST_SEED` repeats those of a run that printed its seed."""
    seed = int(os.environ.get("RYE_TEST_SEED") or random.randrange(1 << 32))
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture
def small_disk(tmp_path):
    """A function that mounts a file system of its own with some options of tmpfs; only root may."""
    made = []

    def mount(options):
        if os.geteuid() != 0:
            pytest.skip("needs root, to mount a small disk")
        folder = tmp_path / "disk"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount here: {done.stderr.decode().strip()}")
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", "-l", folder], check=True)
