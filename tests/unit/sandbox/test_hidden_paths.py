"""What a sandbox hides and shows: the lists are made without leaving anything open."""

from __future__ import annotations

import os
import subprocess

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
