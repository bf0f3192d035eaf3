"""Pictures: what they are and how large, by their first bytes; what is cut off or made up does not crash."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rye
from rye.errors import WorkspaceError
from rye.workspace import pictures

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x06\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0;"
JPEG = b"\xff\xd8\xff\xe0\0\x04AB\xff\xc4\0\x02\xff\xc2\0\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03"
WEBP = {
    "VP8X": b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"),
    "VP8 ": b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480),
    "VP8L": b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14),
}
ALL = [(PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), *((data, "image/webp") for data in WEBP.values())]


@pytest.mark.parametrize(("data", "mime"), ALL)
def test_a_picture_is_shown_with_its_size(project, data, mime):
    (project / "a.bin").write_bytes(data)
    found = rye.execute("rye/file-system/read", {"file_path": "a.bin"}, project_path=project)["data"]
    assert found["success"]
    assert found["output"] == f"[a.bin, {mime}, 640 x 480 pixels, {len(data)} bytes]"
    (part,) = found["media"]
    assert (part["type"], part["mimeType"], base64.b64decode(part["data"])) == ("image", mime, data)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(ALL), st.integers(0, 40), st.binary(max_size=40))
def test_what_is_cut_off_or_made_up_has_some_size_or_none(one, at, more):
    data = one[0][:at] + more
    mime = pictures.kind(data)
    if mime is not None:
        found = pictures.dimensions(data, mime)
        assert found is None or all(isinstance(side, int) and side >= 0 for side in found)


def test_another_binary_file_is_refused_still_and_so_is_a_large_picture(project):
    (project / "a.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    (project / "big.png").write_bytes(PNG + bytes(pictures.MOST))
    (project / "link.png").symlink_to(project.parent / "out.png")
    (project.parent / "out.png").write_bytes(PNG)
    for name, code in (("a.zip", "binary_file"), ("big.png", "picture_too_large")):
        assert rye.execute("rye/file-system/read", {"file_path": name}, project_path=project)["code"] == code
    with open(project / "log.txt", "wb") as file:
        file.write(b"one line\n" * 1_000)
        file.truncate(600 << 20)
    answer = rye.execute("rye/file-system/read", {"file_path": "log.txt", "limit": 2}, project_path=project)
    assert answer["code"] == "file_too_large"
    assert "picture" not in answer["error"]
    assert "Use head, tail or sed" in answer["error"]
    with pytest.raises(WorkspaceError):
        pictures.picture(str(project), "link.png")
