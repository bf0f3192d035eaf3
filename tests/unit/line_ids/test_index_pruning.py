"""Entries of the index that nobody used for 30 days go; others stay."""

from __future__ import annotations

import os
import time

import pytest

from support.index_files import SMALL, binary, entry, folder, read, rows


def aged(project, days, *paths):
    past = time.time() - days * 86_400
    for path in paths or folder(project).iterdir():
        os.utime(path, (past, past), follow_symlinks=False)


def other(project, name="g.txt"):
    """Any use of the store that writes: it prunes when a day has passed."""
    (project / name).write_bytes(SMALL)
    read(project, name)


def test_entries_unused_for_30_days_are_pruned(project, large):
    aged(project, 31)
    aged(project, 1.1, folder(project) / ".pruned")
    other(project)
    assert {path.name for path in folder(project).iterdir()} == {entry(project, "g.txt").name, ".pruned"}


@pytest.mark.parametrize("days", [31, -400])
def test_a_clock_that_jumped_drops_nothing_at_once(project, large, days):
    """Where it goes on a day later, it is believed."""
    aged(project, 31)
    aged(project, days, folder(project) / ".pruned")
    other(project)
    assert entry(project).exists()
    aged(project, 1.1, folder(project) / ".pruned")
    other(project, "h.txt")
    assert not entry(project).exists()


def test_younger_entries_stay(project, large):
    aged(project, 29)
    other(project)
    assert entry(project).exists()
    assert binary(project).exists()


def test_pruning_looks_once_a_day_at_most(project, small):
    other(project)
    aged(project, 31, entry(project))
    aged(project, 0.9, folder(project) / ".pruned")
    other(project, "h.txt")
    assert entry(project).exists()
    aged(project, 1.1, folder(project) / ".pruned")
    other(project, "i.txt")
    assert not entry(project).exists()


def test_a_used_entry_is_not_pruned_and_its_binary_stays_with_it(project, large):
    """Using is reading: a window of a known large file writes nothing else."""
    aged(project, 31)
    read(project, limit=100)
    aged(project, 2, folder(project) / ".pruned")
    other(project)
    assert entry(project).exists()
    assert binary(project).exists()
    assert rows(read(project, limit=100)) == large
