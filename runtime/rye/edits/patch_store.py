"""Patch batches stored in the state folder: `<state>/patches/<batchId>.json` (0600), each with its request and its IDs.

What became of a batch is not written into it alone: the journal has an entry for every file of a batch that was applied, and
one for every undo. Batches go with the journal's own bound of size.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rye.call import context
from rye.config import user_dirs
from rye.errors import EditError
from rye.fs import atomic
from rye.journal import entries
from rye.journal.history import refuse_confined
from rye.workspace.workspace import Workspace

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

MAX_BATCHES = 2_000
"""A project's state holds at most so many batches, and as many bytes as its journal."""

_PRUNE_EVERY = 64


def new_id() -> str:
    """Return a UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix time in milliseconds, version, variant, 74 random bits."""
    number = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10))
    # Version 7 and variant 10 overwrite six of the random bits.
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _folder(ws: Workspace) -> Path:
    return Path(user_dirs.state_dir(ws.fd)) / "patches"


def keep(ws: Workspace, record: dict[str, Any]) -> None:
    """Write a batch (JSON values; `batchId` names it), replacing what was stored of it, durably. Raises OSError."""
    folder = _folder(ws)
    folder.mkdir(mode=0o700, exist_ok=True)
    # Durable before any file changes: after a crash the batch must still be known.
    atomic.write(folder / f"{record['batchId']}.json", entries.dump(record), 0o600)
    atomic.prune(folder, MAX_BATCHES, context.settings().number("journal.max_bytes"), every=_PRUNE_EVERY)


def batch(ws: Workspace, batch_id: str) -> dict[str, Any]:
    """Return a stored batch.

    Raises:
        EditError: `unknown_batch`.
    """
    # The ID becomes a file name, so its form is checked first.
    if _ID.fullmatch(batch_id):
        record = _load(_folder(ws) / f"{batch_id}.json")
        if record is not None:
            return record
    hint = "Use the batchId that workspace_write_patch returned; batches are stored as long as the journal."
    raise EditError("unknown_batch", f"There is no batch {batch_id[:80]!r} in this project's state.", hint)


def find(ws: Workspace, any_id: str) -> dict[str, Any]:
    """Return the stored batch that has an ID, be it its own, a file patch's or a change's.

    Raises:
        EditError: `unknown_patch_id`.
    """
    if _ID.fullmatch(any_id):
        for record in _stored(ws, any_id):
            if any_id in record["ids"]:
                return record
    refuse_confined()
    hint = "Use an ID that workspace_write_patch returned (batchId, filePatchId or changeId), not a key."
    raise EditError("unknown_patch_id", f"No batch, file patch or change of this project has the ID {any_id[:80]!r}.", hint)


def _stored(ws: Workspace, any_id: str) -> Iterator[dict[str, Any]]:
    """Yield the batches, those first that were made at the time of an ID: both names begin with it."""
    try:
        names = [name for name in os.listdir(_folder(ws)) if _ID.fullmatch(name.removesuffix(".json"))]
    except OSError:
        return
    # Names begin with the time, and a batch's own ID is made just before those of its parts: the match is close by.
    for name in sorted(names, key=lambda name: abs(_milliseconds(name) - _milliseconds(any_id))):
        if (record := _load(_folder(ws) / name)) is not None:
            yield record


def _milliseconds(any_id: str) -> int:
    return int(any_id[:8] + any_id[9:13], 16)


def _load(path: Path) -> dict[str, Any] | None:
    def whole(record: dict[str, Any]) -> dict[str, Any] | None:
        parts = (record["ids"], list), (record["request"], dict), (record["files"], list)
        return record if all(isinstance(part, kind) for part, kind in parts) else None

    return entries.read(path, whole)
