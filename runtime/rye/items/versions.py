"""Versions of items, and the floors below which none is installed unasked: an old version may bring an old fault back.

A version counts as it is in the signed text. The time in a signature line is not signed, so it counts for nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from rye.errors import RyeError, TrustError
from rye.items import bundles, lockfiles, spaces
from rye.items.spaces import Candidate, Space
from rye.plain_class import changed
from rye.trust.pins import Marks


def is_version(text: str) -> bool:
    """Tell whether a text is a version that a registry may hold."""
    return _VERSION.fullmatch(text) is not None


def version_key(version: str) -> tuple[int, ...]:
    """Return what versions are ordered by."""
    return tuple(int(part) for part in version.split("."))


_VERSION = re.compile(r"(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})\.(?:0|[1-9]\d{0,8})")


def name_of(candidate: Candidate) -> str:
    """Return the name under which `pins.Marks` remember an item."""
    return f"{candidate.item_type} {candidate.item_id}"


def refuse_lower(
    coming: Candidate, version: str, known: Marks, space: Space | None, search_path: Sequence[Space], remedy: str
) -> None:
    """Raise `downgrade` when a higher version was seen, is installed, or is locked in the destination space.

    Args:
        coming: the item that is to be installed.
        version: that its signed text gives. One that cannot be compared is lower than any that can.
        known: the highest versions that the user's space remembers.
        space: the destination; None for none.
        search_path: the spaces whose keys count.
        remedy: the command by which a person takes it all the same.
    """
    highest = known.seen.get(name_of(coming))
    floors = {"seen before": [highest.version] if highest else []}
    if space is not None:
        floors["locked"] = lockfiles.versions(space, coming.item_id) if coming.item_type == "tool" else []
        floors["installed"] = _installed(coming, space, search_path)
    # A text that is no version gives (), which is lower than every version.
    key = _key(version)
    for how, versions in floors.items():
        for floor in versions:
            if key < _key(floor):
                why = f"{coming.item_id}:{version or '(no version)'} is lower than {floor}, which was {how}."
                hint = f"An old version may bring an old fault back. If it is wanted: `{remedy}`."
                raise TrustError("downgrade", why, hint, version=version, floor=floor)


def _key(version: str) -> tuple[int, ...]:
    return version_key(version) if is_version(version) else ()


def _installed(coming: Candidate, space: Space, search_path: Sequence[Space]) -> list[str]:
    """Return the version of the file at the destination, if its author is trusted to say."""
    if coming.item_type == "bundle":
        return []
    folder, _ = spaces.type_folder(coming.item_type)
    # A file that does not verify says nothing of versions: its text could be anything.
    with contextlib.suppress(RyeError):
        raw = spaces.read_file(space, f"{folder}/{coming.item_id}{coming.suffix}")
        if raw is not None:
            return [bundles.admit(changed(coming, space=space.name, raw=raw), spaces.trust_store(search_path)).version]
    return []
