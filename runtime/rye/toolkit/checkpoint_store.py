"""Where lines begin in large files that were looked at without line IDs, kept between calls.

`<cache>/tools/read/line_index/<name>.points` holds, behind a check sum, the file's state (see `index_store.stamp_of`), its
encoding, how many lines it has, and its checkpoints. Another state of the file never fits; nor does what a clone brings with
it, for nobody knows beforehand what times the inodes of a checkout will have.
"""

from __future__ import annotations

import json
from array import array
from contextlib import suppress
from typing import TYPE_CHECKING

from rye.errors import WorkspaceError
from rye.toolkit import cache, names
from rye.toolkit.index_store import FOLDER, encoding_fields, encoding_of, prune, sealed, settled, unsealed, whole
from rye.toolkit.text import Checkpoints

if TYPE_CHECKING:
    from rye.toolkit.encoding import Encoding
    from rye.toolkit.index_store import Stamp
    from rye.toolkit.text import Text
    from rye.toolkit.workspace import Workspace

_FORMAT = 1
_BYTES = 1 << 22


def save(ws: Workspace, path: bytes, stamp: Stamp, text: Text) -> None:
    """Keep the checkpoints of a file read in the state `stamp`; that they cannot be kept is no failure."""
    if not settled(stamp):
        return
    points = text.points
    record = {
        "format": _FORMAT, "file_path": names.show(path), "stamp": stamp, "encoding": encoding_fields(text.encoding),
        "count": text.count, "lines": points.lines.tolist(), "offsets": points.offsets.tolist(),
    }  # fmt: skip
    body = json.dumps(record, separators=(",", ":")).encode("ascii")[1:]
    with suppress(OSError, WorkspaceError), cache.folder(ws, *FOLDER) as fd:
        cache.write(fd, f"{cache.name_of(path)}.points", sealed(body))
        prune(fd)


def load(ws: Workspace, path: bytes, stamp: Stamp) -> tuple[Encoding, int, Checkpoints] | None:
    """Return the encoding, the count of lines and the checkpoints of a file in just this state; None if none were kept."""
    with suppress(WorkspaceError, OSError), cache.folder(ws, *FOLDER) as fd:
        raw = cache.read(fd, f"{cache.name_of(path)}.points", _BYTES)
        return _read(raw, path, stamp) if raw is not None else None
    return None


def _read(raw: bytes, path: bytes, stamp: Stamp) -> tuple[Encoding, int, Checkpoints] | None:
    try:
        record = unsealed(raw)
        if (record["format"], record["file_path"], tuple(record["stamp"])) != (_FORMAT, names.show(path), stamp):
            return None
        points = Checkpoints(array("Q", record["lines"]), array("Q", record["offsets"]))
        if not points.lines or points.lines[0] or len(points.lines) != len(points.offsets):
            return None
        return encoding_of(*record["encoding"]), whole(record["count"]), points
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
