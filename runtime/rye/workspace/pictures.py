"""Pictures of a project, as a model can be shown them: PNG, JPEG, GIF and WebP, with their size in pixels where it is found."""

from __future__ import annotations

import base64
import os
import struct
from typing import Any, Final

from rye.call.results import ok
from rye.errors import WorkspaceError
from rye.workspace.workspace import Workspace

MOST: Final = 3_750_000
"""A larger file is refused (bytes): models' interfaces take up to 5 MB of base64."""

_HEAD: Final = 12
"""Bytes that tell the kind of a picture."""

_SIZE_AT: Final = {"image/png": (">II", 16), "image/gif": ("<HH", 6)}
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers whose segment has the size of the picture."""


def picture(project_path: str, path: str) -> dict[str, Any] | None:
    """Return a picture as a tool's result: its description as `output`, itself in `media`. None for another file, and
    for one whose beginning does not say a size in pixels.

    Args:
        project_path: the project root.
        path: the file, confined as every path.

    Raises:
        WorkspaceError: `picture_too_large`; as `Workspace.file`.
    """
    with Workspace(project_path) as ws, ws.file(path) as file:
        size, shown = file.stat.st_size, file.shown
        # The kind comes first: a long text must not be told to be a picture.
        mime = kind(os.pread(file.fd, _HEAD, 0))
        if mime and size > MOST:
            why = f"{shown} has {size:,} bytes; a picture of at most {MOST:,} can be shown."
            raise WorkspaceError("picture_too_large", why, "Make a smaller one with bash, if a program for that is installed.")
        data = file.read(MOST) if mime else b""
    pixels = dimensions(data, mime) if mime else None
    # A model's interface refuses the whole conversation for a picture that it cannot read.
    if mime is None or pixels is None or not all(pixels):
        return None
    width, height = pixels
    media = [{"type": "image", "data": base64.b64encode(data).decode(), "mimeType": mime}]
    facts = {"file_path": shown, "mime_type": mime, "bytes": size, "width": width, "height": height}
    return ok(f"[{shown}, {mime}, {width} x {height} pixels, {size:,} bytes]", media=media, **facts)


def kind(data: bytes) -> str | None:
    """Return the type of a picture by its first bytes; None for what is none."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def dimensions(data: bytes, mime: str) -> tuple[int, int] | None:
    """Return width and height as the file says them; None where it does not."""
    try:
        if mime in _SIZE_AT:
            form, at = _SIZE_AT[mime]
            width, height = struct.unpack_from(form, data, at)
            return width, height
        return _jpeg(data) if mime == "image/jpeg" else _webp(data)
    except (struct.error, IndexError):
        # Cut off.
        return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        # A segment's length counts its own two bytes.
        at += 2 + max(2, struct.unpack_from(">H", data, at + 2)[0])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None
