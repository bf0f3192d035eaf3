"""Records of the user's own, such as what was decided and what was pinned: JSON in one file, changed by one process at a time.

A file that cannot be read as its record is an error, not an empty record: losing a revocation must not go unnoticed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

from rye.errors import RyeError, TrustError
from rye.fs import atomic

T = TypeVar("T")


class Store(Generic[T]):
    """The record that is called `what` in errors, in the file (0600) that `path` returns.

    `of_json` makes it of the file's object, and raises as Python does for what it cannot take; `to_json` goes back. Where there
    is no file it is `empty()`.
    """

    def __init__(
        self,
        path: Callable[[], str],
        what: str,
        empty: Callable[[], T],
        of_json: Callable[[Any], T],
        to_json: Callable[[T], dict[str, Any]],
    ) -> None:
        self._path, self._what, self._empty, self._of_json, self._to_json = path, what, empty, of_json, to_json
        self._known: tuple[bytes | None, T] | None = None

    def load(self) -> T:
        """Return the record as it is now, which readers leave as it is. Raises TrustError `trust_store_unreadable`."""
        raw = self._raw()
        # Known by its bytes: times and inodes can repeat, and a revocation holds at the very next call.
        if self._known is None or self._known[0] != raw:
            self._known = (raw, self._parsed(raw))
        return self._known[1]

    @contextmanager
    def changing(self) -> Iterator[SimpleNamespace]:
        """Let the block change `now`, the record, and store it in one durable step, one process at a time.

        Raises:
            TrustError: `trust_store_unreadable`. RyeError: `trust_store_unwritable`.
        """
        path = self._path()
        try:
            # A lock file of its own: the data file is replaced, and a lock on the old one would protect nothing.
            with atomic.locked(f"{os.path.splitext(path)[0]}.lock"):
                # Read under the lock: two processes that decide at once must not lose one decision.
                change = SimpleNamespace(now=self._parsed(self._raw()))
                # As text: a part of the record that stands in it itself would change with it.
                before = json.dumps(self._to_json(change.now))
                yield change
                after = self._to_json(change.now)
                # An unchanged file keeps its bytes, and so what every running process knows of it.
                if json.dumps(after) != before:
                    atomic.write(path, json.dumps({"format": 1, **after}, indent=1).encode() + b"\n", 0o600)
        except OSError as err:
            where = os.path.dirname(path)
            why = f"{self._what} could not be stored in {where}: {err.strerror}."
            raise RyeError("trust_store_unwritable", why, "Make the folder writable; nothing was changed.") from None

    def _raw(self) -> bytes | None:
        try:
            with open(self._path(), "rb") as file:
                return file.read()
        except OSError as err:
            # Only a missing file means that nothing was stored; one that cannot be read may hold a revocation, and so may one
            # to which a link leads, on a disk that is not mounted.
            if isinstance(err, FileNotFoundError) and not os.path.islink(self._path()):
                return None
            raise self._unreadable(str(err.strerror)) from None

    def _parsed(self, raw: bytes | None) -> T:
        if raw is None:
            return self._empty()
        try:
            record = json.loads(raw, object_pairs_hook=without_twins)
            # `true` equals 1.
            if type(record["format"]) is not int or record["format"] != 1:
                raise ValueError("its format is not 1")
            return self._of_json(record)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as err:
            raise self._unreadable(f"{type(err).__name__}: {err}"[:200]) from None

    def _unreadable(self, why: str) -> TrustError:
        return TrustError(
            "trust_store_unreadable",
            f"{self._what} in {self._path()} cannot be read ({why}), so nothing is trusted that needs them.",
            "Restore the file from a backup, or remove it and decide anew (`rye trust`). "
            "If that folder is not yours, set USER_SPACE to one that is.",
        )


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object. Raises ValueError where a name stands twice: nobody knows which one counts."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice")
    return members


def listed(record: dict[str, Any], name: str) -> list[Any]:
    """Return the list in a record under a name. Raises TypeError for anything else: an empty mapping must not pass for none."""
    found = record[name]
    if not isinstance(found, list):
        raise TypeError(f"{name} is no list")
    return found
