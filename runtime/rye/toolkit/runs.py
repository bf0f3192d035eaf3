"""A long sequence of small numbers that is nearly constant, kept as runs: which revision last changed each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Run = tuple[int, int]


class Runs:
    """An immutable sequence of ints as (length, value) runs; no run is empty, neighbours differ."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Take runs in order; empty ones are dropped, equal neighbours joined."""
        joined: list[Run] = []
        for length, value in runs:
            if length <= 0:
                continue
            if joined and joined[-1][1] == value:
                joined[-1] = (joined[-1][0] + length, value)
            else:
                joined.append((length, value))
        self._runs = joined

    def __len__(self) -> int:
        return sum(length for length, _ in self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def part(self, start: int, stop: int) -> list[Run]:
        """Return the runs of positions [start, stop)."""
        out: list[Run] = []
        at = 0
        for length, value in self._runs:
            low, high = max(at, start), min(at + length, stop)
            if low < high:
                out.append((high - low, value))
            at += length
            if at >= stop:
                break
        return out

    def values(self, start: int, stop: int) -> list[int]:
        """Return the values at positions [start, stop), one each."""
        return [value for length, value in self.part(start, stop) for _ in range(length)]

    def spliced(self, start: int, stop: int, middle: Iterable[Run]) -> Runs:
        """Return the sequence with [start, stop) replaced by `middle`."""
        return Runs([*self.part(0, start), *middle, *self.part(stop, len(self))])

    def since(self, value: int) -> list[tuple[int, int]]:
        """Return the position ranges (start, stop) whose value is greater than `value`."""
        out: list[tuple[int, int]] = []
        at = 0
        for length, here in self._runs:
            if here > value:
                if out and out[-1][1] == at:
                    out[-1] = (out[-1][0], at + length)
                else:
                    out.append((at, at + length))
            at += length
        return out
