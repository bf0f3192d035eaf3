"""The first of many items in an order, in memory bounded by how many are wanted."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Item = TypeVar("Item")


class First(Generic[Item]):
    """The first `most` of many items in an order; memory is bounded by `most`, not by how many there are."""

    def __init__(self, most: int, key: Callable[[Item], Any]) -> None:
        self._most, self._key = most, key
        self._kept: list[Item] = []
        self._bound: Any = None
        self.count = 0

    def add(self, items: list[Item]) -> None:
        """Take more items."""
        self.count += len(items)
        key = self._key
        self._kept += items if self._bound is None else [item for item in items if key(item) < self._bound]
        if len(self._kept) > 2 * self._most + 10_000:
            self._kept = self.items()
            self._bound = key(self._kept[-1])

    def items(self) -> list[Item]:
        """Return the first `most`, in order."""
        return heapq.nsmallest(self._most, self._kept, key=self._key)
