"""What a call stands on: the places that were looked at to admit a tool, and whether they are all as they were.

While a call is `watched`, whoever reads what decides (items, key documents, decisions, manifests, lockfiles) notes each place
it looked at, whether it found something there or not. `Places` keeps their state: device, inode, mode, size, mtime and ctime,
of a folder as of a file, so that a change in place, another file, a new key document and a removed one all show. No program can
set a ctime, so a restored mtime deceives nobody. What may have changed less than two seconds before the call began is not kept:
within the clock's grain a second change need not show. Nor is a call in which a place seemed missing and yet stands there,
behind a link that leads outside: its state does not tell when the link goes.

It only tells that an answer given before would be given again. It is never a verdict: bytes are verified where they are read.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTLED_NS = 2_000_000_000

_State = tuple[int, ...]
_noted: ContextVar[dict[str, bool] | None] = ContextVar("rye_noted", default=None)


def note(place: str, *, found: bool) -> None:
    """Note that a place (a path) was looked at; does nothing where nobody watches."""
    noted = _noted.get()
    if noted is not None:
        noted[place] = found


class Places:
    """The state of places as a call found them; empty until it is over."""

    def __init__(self) -> None:
        self._states: tuple[tuple[str, _State], ...] = ()

    def keep(self, noted: dict[str, bool], began: int) -> None:
        """Keep the state of what was noted since `began` (ns since the epoch), if all of it can be relied on."""
        states = [(place, state_of(place)) for place in noted]
        if all(_is_settled(state, began) and (len(state) > 1) == noted[place] for place, state in states):
            self._states = tuple(states)

    def hold(self) -> bool:
        """Tell whether everything is as it was; False where nothing was kept."""
        return bool(self._states) and all(state_of(place) == state for place, state in self._states)


def state_of(place: str) -> _State:
    """Return what changes with whatever is at a place; the error's number alone where nothing is."""
    try:
        info = os.stat(place)
    except OSError as err:
        return (err.errno or 0,)
    return info.st_dev, info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _is_settled(state: _State, began: int) -> bool:
    return len(state) == 1 or max(state[-2:]) + _SETTLED_NS < began


@contextmanager
def watched() -> Iterator[Places]:
    """Watch what is looked at inside the block; after it, what is given holds the places, if they can be kept."""
    places, noted, began = Places(), dict[str, bool](), time.time_ns()
    token = _noted.set(noted)
    try:
        yield places
    finally:
        _noted.reset(token)
    places.keep(noted, began)
