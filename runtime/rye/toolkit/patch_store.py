"""Patch batches kept in the state folder: `<state>/patches/<batchId>.json` (0600), each with its request and its IDs.

What became of a batch is not written into it alone: the journal has an entry for every file of a batch that was applied, and
one for every undo. Batches go with the journal's own bounds of age and size.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye import state
from rye.errors import EditError, WorkspaceError
from rye.toolkit import journal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.toolkit.workspace import Workspace

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id() -> str:
    """Return a UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix time in milliseconds, version, variant, 74 random bits."""
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10))
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _folder(ws: Workspace) -> Path:
    return Path(state.state_dir(ws.root)) / "patches"


def keep(ws: Workspace, record: dict[str, Any]) -> None:
    """Write a batch (JSON values; `batchId` names it), replacing what was kept of it, durably.

    Raises:
        WorkspaceError: `state_unwritable`.
    """
    try:
        folder = _folder(ws)
        folder.mkdir(mode=0o700, exist_ok=True)
        # Named like a batch, so that one which a crash leaves goes with its age.
        fresh = folder / f"{record['batchId']}.{os.urandom(4).hex()}.json"
        fd = os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(journal.dump(record))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / f"{record['batchId']}.json")
        journal.trim(folder)
    except OSError as err:
        raise WorkspaceError(
            "state_unwritable", f"The batch cannot be stored in the user's state folder ({err.strerror}). Nothing was written.",
            "Make it writable, or set USER_SPACE to a folder that is.",
        ) from None  # fmt: skip


def batch(ws: Workspace, batch_id: str) -> dict[str, Any]:
    """Return a kept batch.

    Raises:
        EditError: `unknown_batch`.
    """
    if _ID.fullmatch(batch_id):
        record = _load(_folder(ws) / f"{batch_id}.json")
        if record is not None:
            return record
    raise EditError(
        "unknown_batch", f"There is no batch {batch_id[:80]!r} in this project's state.",
        "Use the batchId that workspace_write_patch returned; batches are kept as long as the journal.",
    )  # fmt: skip


def find(ws: Workspace, any_id: str) -> dict[str, Any]:
    """Return the kept batch that has an ID, be it its own, a file patch's or a change's.

    Raises:
        EditError: `unknown_patch_id`.
    """
    if _ID.fullmatch(any_id):
        for record in _kept(ws):
            if any_id in record["ids"]:
                return record
    raise EditError(
        "unknown_patch_id", f"No batch, file patch or change of this project has the ID {any_id[:80]!r}.",
        "Use an ID that workspace_write_patch returned (batchId, filePatchId or changeId), not a key.",
    )  # fmt: skip


def _kept(ws: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the batches, newest first: their names are ordered by time."""
    try:
        paths = sorted(_folder(ws).glob("*.json"), reverse=True)
    except OSError:
        return
    for path in paths:
        record = _load(path)
        if record is not None:
            yield record


def _load(path: Path) -> dict[str, Any] | None:
    try:
        record = journal.parse(path.read_bytes())
        whole = isinstance(record["ids"], list) and isinstance(record["request"], dict) and isinstance(record["files"], list)
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zlib.error):
        return None
    return record if whole else None
