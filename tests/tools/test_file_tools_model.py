"""The file tools against an oracle that holds the file as bytes: random histories, every byte compared after every call."""

from __future__ import annotations

from collections import Counter

import pytest

from support.file_history import History
from support.harness import times


def play(seed, steps, folder, tally, form="lid"):
    """Play one history; return its problems."""
    history = History(seed, folder, tally, form)
    for step in range(steps):
        name = history.step()
        if history.problems:
            return [f"seed {seed}, step {step + 1}, {name} ({history.kind}): {problem}" for problem in history.problems]
    return []


@pytest.mark.slow
@pytest.mark.parametrize("form", ["lid", "short"])
def test_random_histories_through_the_tools(tmp_path, form):
    """40 histories, seeds 1 to 40. The tally shows that the calls did their work and were not merely refused."""
    tally, problems = Counter(), []
    for seed in range(1, times(40) + 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        problems += play(seed, 14, folder, tally, form)
    assert problems == []
    assert tally["edit_lines done"] > 60
    assert tally["undo done"] > 15
    assert tally["edit_lines stale_file"] > 0


def test_the_oracle_sees_a_wrong_byte(tmp_path):
    """Control: an edit that loses one carriage return is reported."""
    history = History(3, tmp_path, Counter())
    history.put(b"a\r\nb\r\n")
    history.file.write_bytes(b"a\nb\r\n")
    history.same(history.data, "edit")
    assert history.problems
