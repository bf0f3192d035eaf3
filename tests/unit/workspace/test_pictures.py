"""Pictures: what they are and how large, by their first bytes; what is cut off or made up does not crash."""

import base64
import random
import struct

import pytest

from support.calling import call, done

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
    found = done("read", project, file_path="a.bin")
    assert found["output"] == f"[a.bin, {mime}, 640 x 480 pixels, {len(data)} bytes]"
    (part,) = found["media"]
    assert (part["type"], part["mimeType"], base64.b64decode(part["data"])) == ("image", mime, data)


def test_what_is_cut_off_or_made_up_has_some_size_or_none(project):
    rng = random.Random(7)
    for data, _ in ALL * 20:
        (project / "a.bin").write_bytes(data[: rng.randrange(41)] + rng.randbytes(rng.randrange(41)))
        found = call("read", project, file_path="a.bin")
        assert found["success"] or found["code"] in ("binary_file", "picture_too_large"), found


def test_another_binary_file_is_refused_still_and_so_is_a_large_picture(project):
    (project / "a.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    (project / "big.png").write_bytes(PNG + bytes(3_750_000))
    (project / "link.png").symlink_to(project.parent / "out.png")
    (project.parent / "out.png").write_bytes(PNG)
    for name, code in (("a.zip", "binary_file"), ("big.png", "picture_too_large"), ("link.png", "path_outside")):
        assert call("read", project, file_path=name)["code"] == code
    with open(project / "log.txt", "wb") as file:
        file.write(b"one line\n" * 1_000)
        file.truncate(600 << 20)
    answer = call("read", project, file_path="log.txt", limit=2)
    assert (answer["code"], "picture" in answer["error"]) == ("file_too_large", False)
    assert "Use head, tail or sed" in answer["error"]
