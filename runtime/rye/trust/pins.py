"""What the user's space remembers of registries: pinned keys by namespace, and the highest version seen of each item.

`${USER_SPACE:-~}/.ai/trust/registry.json` (0600): `{"format": 1, "pins": {namespace: {"key"}}, "seen": {"type id":
{"version", "digest"}}, "changed"}`; `key` is a full key digest, `digest` that of the item's signed bytes. No project can write
there. A file that cannot be read as this is an error, not an empty one: a rollback must not go unnoticed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rye.config import user_dirs
from rye.errors import RyeError, TrustError
from rye.fs import atomic
from rye.plain_class import Record, field

_FORMAT = 1


class Seen(Record):
    """The highest version of an item that was seen, and the digest of its signed bytes."""

    version: str
    digest: str


class Marks(Record, frozen=False):
    """All that is remembered: pins (namespace -> full key digest) and versions (`type id` -> `Seen`)."""

    pins: dict[str, str] = field(factory=dict)
    seen: dict[str, Seen] = field(factory=dict)


def path() -> Path:
    """Return the path of the marks."""
    return Path(user_dirs.user_ai()) / "trust" / "registry.json"


def load() -> Marks:
    """Return the current marks.

    Raises:
        TrustError: `trust_store_unreadable`.
    """
    try:
        record = json.loads(path().read_bytes())
        if record["format"] != _FORMAT:
            raise ValueError(record["format"])
        return Marks(
            {str(name): str(pin["key"]) for name, pin in record["pins"].items()},
            {str(name): _seen_of(one) for name, one in record["seen"].items()},
        )
    except FileNotFoundError:
        return Marks()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise TrustError(
            "trust_store_unreadable",
            f"What is remembered of registries in {path()} cannot be read ({type(err).__name__}).",
            "Restore the file from a backup, or remove it: pins and versions seen are then forgotten.",
        ) from None


def _seen_of(record: dict[str, Any]) -> Seen:
    version = str(record["version"])
    # A version that cannot be compared would let every downgrade pass.
    if not all(part.isdecimal() for part in version.split(".")):
        raise ValueError(version)
    return Seen(version, str(record["digest"]))


@contextmanager
def changing() -> Iterator[Marks]:
    """Read, let the block change what is remembered, and store it in one durable step, one process at a time.

    Raises:
        RyeError: `trust_store_unwritable`.
    """
    file = path()
    try:
        # A lock file of its own: the data file is replaced, and a lock on the old one would protect nothing.
        with atomic.locked(file.with_suffix(".lock")):
            marks = load()
            # The text is compared, since the block changes the object itself.
            before = _dump(marks)
            yield marks
            if _dump(marks) != before:
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                atomic.write(file, json.dumps({**_dump(marks), "changed": now}, indent=1).encode() + b"\n", 0o600)
    except OSError as err:
        raise RyeError(
            "trust_store_unwritable",
            f"What was seen could not be stored in {file.parent}: {err.strerror}.",
            "Make it writable.",
        ) from None


def _dump(marks: Marks) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "pins": {name: {"key": key} for name, key in sorted(marks.pins.items())},
        "seen": {name: {"version": one.version, "digest": one.digest} for name, one in sorted(marks.seen.items())},
    }
