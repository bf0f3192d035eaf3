"""The file tools against an oracle that holds the file as bytes: random histories, every byte compared after every call.

PYTHONPATH=runtime python tests/tools/test_file_tools_model.py --sequences 2000 [--seed 1] [--form short]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.file_history import History


def play(seed, steps, folder, tally, form="lid"):
    """Play one history; return its problems."""
    history = History(seed, folder, tally, form)
    for step in range(steps):
        name = history.step()
        if history.problems:
            return [f"seed {seed}, step {step + 1}, {name} ({history.kind}): {problem}" for problem in history.problems]
    return []


def _batch(job):
    first, count, steps, form = job
    problems, tally = [], Counter()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["USER_SPACE"] = f"{folder}/user"
            problems += play(seed, steps, folder, tally, form)
    return problems, tally


@pytest.mark.slow
@pytest.mark.parametrize("form", ["lid", "short"])
def test_random_histories_through_the_tools(tmp_path, form):
    """40 histories, seeds 1 to 40. The tally shows that the calls did their work and were not merely refused."""
    tally, problems = Counter(), []
    for seed in range(1, 41):
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=2_000)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", choices=["lid", "short"], default="lid")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    started = time.monotonic()
    first, last = args.seed * 10**6, args.seed * 10**6 + args.sequences
    jobs = [(at, min(10, last - at), args.steps, args.form) for at in range(first, last, 10)]
    problems, tally = [], Counter()
    with multiprocessing.Pool(args.processes) as pool:
        for found, counted in pool.imap_unordered(_batch, jobs):
            problems += found
            tally += counted
    for problem in problems[:20]:
        print(problem)
    for name, count in sorted(tally.items()):
        print(f"  {name}: {count}")
    took = time.monotonic() - started
    said = f"{args.sequences} sequences of {args.steps} steps, seeds {first}..{last - 1}"
    print(f"{said}: {len(problems)} violations, {took:.0f} s")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
