"""What the user's space remembers of what came from elsewhere: pinned keys by namespace, the highest version seen of each item,
and the files of skills as they were added.

`${USER_SPACE:-~}/.ai/trust/registry.json` (0600): `{"format": 1, "pins": {namespace: {"key"}}, "seen": {"type id":
{"version", "digest"}}, "skills": {path: {file: SHA-256}}}`; `key` is a full key digest, `digest` that of the item's signed
bytes. No project can write there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rye.config import user_dirs
from rye.fs.records import Store
from rye.plain_class import Record, field


class SeenVersion(Record):
    """The highest version of an item that was seen, and the digest of its signed bytes."""

    version: str
    digest: str


class Marks(Record, frozen=False):
    """All that is remembered.

    Attributes:
        pins: namespace, or `folder:` and a path -> full key digest.
        seen: `type id` -> its version.
        skills: path of a skill -> the digests of its files by their names.
    """

    pins: dict[str, str] = field(factory=dict)
    seen: dict[str, SeenVersion] = field(factory=dict)
    skills: dict[str, dict[str, str]] = field(factory=dict)


def path() -> str:
    """Return the path of the marks."""
    return f"{user_dirs.user_ai()}/trust/registry.json"


def load() -> Marks:
    """Return the current marks.

    Raises:
        TrustError: `trust_store_unreadable`.
    """
    return _STORE.load()


@contextmanager
def changing() -> Iterator[Marks]:
    """Let the block change what is remembered, and store it; see `rye.fs.records.Store.changing`."""
    with _STORE.changing() as change:
        yield change.now


def _of_json(record: Any) -> Marks:
    return Marks(
        {str(name): str(pin["key"]) for name, pin in record["pins"].items()},
        {str(name): _seen_of(one) for name, one in record["seen"].items()},
        {str(path): {str(name): str(one) for name, one in files.items()} for path, files in record.get("skills", {}).items()},
    )


def _seen_of(record: dict[str, Any]) -> SeenVersion:
    version = str(record["version"])
    # A version that cannot be compared would let every downgrade pass.
    if not all(part.isdecimal() for part in version.split(".")):
        raise ValueError(version)
    return SeenVersion(version, str(record["digest"]))


def _to_json(marks: Marks) -> dict[str, Any]:
    return {
        "pins": {name: {"key": key} for name, key in sorted(marks.pins.items())},
        "seen": {name: {"version": one.version, "digest": one.digest} for name, one in sorted(marks.seen.items())},
        "skills": marks.skills,
    }


_STORE = Store(path, "Pins, versions seen and skills added", Marks, _of_json, _to_json)
