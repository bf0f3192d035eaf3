"""Runs of equal numbers behave as the list that they stand for."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rye.line_ids import index

NUMBERS = st.lists(st.integers(0, 3), max_size=30)


def runs(numbers):
    return index.Runs((1, number) for number in numbers)


@given(st.lists(st.tuples(st.integers(-2, 4), st.integers(0, 2)), max_size=12))
def test_runs_are_joined_and_none_is_empty(pairs):
    made = list(index.Runs(pairs))
    assert all(length > 0 for length, _ in made)
    assert all(a[1] != b[1] for a, b in itertools.pairwise(made))
    expected = [value for length, value in pairs for _ in range(length)]
    assert index.Runs(pairs).values(0, 100) == expected
    assert len(index.Runs(pairs)) == len(expected)


@given(NUMBERS, st.integers(0, 35), st.integers(0, 35))
def test_parts_are_slices(numbers, start, stop):
    assert runs(numbers).values(start, stop) == numbers[start : max(start, stop)]


@given(NUMBERS, st.integers(-1, 3))
def test_since_gives_the_positions_above(numbers, value):
    ranges = runs(numbers).since(value)
    assert [at for start, stop in ranges for at in range(start, stop)] == [at for at, n in enumerate(numbers) if n > value]
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))
