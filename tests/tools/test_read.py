"""read: windows, limits, IDs, what changed since, pictures, and what it refuses."""

import base64
import json
import os
import random
import struct

import pytest

from support.calling import call, done, refused, rows


@pytest.fixture
def put(project):
    def write(data, name="f.txt"):
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def numbered(count):
    return "".join(f"line {n}\n" for n in range(1, count + 1))


def test_the_fields_of_a_result(project, put):
    put("a\nb\n")
    data = done("read", project, file_path="f.txt")
    counts = {"line_count", "total_lines", "truncated", "offset"}
    assert set(data) == {"success", "output", "version", "encoding", "file_path"} | counts
    assert [text for _, text in rows(data)] == ["a", "b"]
    assert (data["line_count"], data["total_lines"], data["truncated"], data["offset"]) == (2, 2, False, 1)
    assert (data["encoding"], data["file_path"]) == ("utf-8", "f.txt")
    json.dumps(data)


def test_defaults_are_the_first_2000_lines(project, put):
    put(numbered(2_500))
    data = done("read", project, file_path="f.txt")
    assert (data["line_count"], data["total_lines"], data["truncated"], data["next_offset"]) == (2_000, 2_500, True, 2_001)
    envelope = '[tool_result: 2000 of 2500 lines; 500 more omitted. Call read(file_path="f.txt", offset=2001) to see more.]'
    assert data["output"].split("\n")[-1] == envelope


WINDOWS = [(1, 1, 1, 1), (3, 4, 3, 6), (10, 5, 10, 10), (-1, 5, 10, 10), (-3, 2, 8, 9), (-99, 3, 1, 3), (1, 100_000, 1, 10)]


@pytest.mark.parametrize(("offset", "limit", "first", "last"), WINDOWS)
def test_windows(project, put, offset, limit, first, last):
    put(numbered(10))
    data = done("read", project, file_path="f.txt", offset=offset, limit=limit)
    assert [text for _, text in rows(data)] == [f"line {n}" for n in range(first, last + 1)]
    assert (data["offset"], data["truncated"]) == (first, last < 10)
    assert data.get("next_offset") == (last + 1 if last < 10 else None)


SHORTENED = "… [line shortened: 2,000 of 3,013 characters shown]"


@pytest.mark.parametrize(
    ("data", "more", "texts"),
    [
        (b"a\r\nb", {}, ["a", "b"]),
        ("a\x0cb\u2028c\x85d\x1ce\nz\r\n".encode(), {}, ["a\x0cb\u2028c\x85d\x1ce", "z"]),
        (b"x" * 2_000 + b"\n" + b"y" * 3_013 + b"\n", {}, ["x" * 2_000, "y" * 2_000 + SHORTENED]),
        (
            "a\tb  \r\nc\u00a0d\r\n e\n   \na \t \na\rb\nplain 日本 🙂\na\u2003b\u2028b\u2029\n".encode(),
            {"show_whitespace": True},
            ["a→\tb··␍", "c<U+00A0>d␍", " e", "···", "a·→\t·", "a␍b", "plain 日本 🙂", "a<U+2003>b<U+2028>b<U+2029>"],
        ),
        (
            "a\u200bb\ufeff\na\u202eb\na\x0cb\x0b\x85\n\x1b[31mred\x07\x7f\x9b\n".encode(),
            {"show_whitespace": True},
            ["a<U+200B>b<U+FEFF>", "a<U+202E>b", "a<U+000C>b<U+000B><U+0085>", "<U+001B>[31mred<U+0007><U+007F><U+009B>"],
        ),
        (b"", {}, []),
    ],
)
def test_what_is_shown_and_the_file_stays_as_it_is(project, put, data, more, texts):
    path = put(data)
    info = path.stat()
    for name in ("f.txt", str(path)):
        shown = done("read", project, file_path=name, **more)
        assert [text for _, text in rows(shown)] == texts
        assert (shown["line_count"], shown["total_lines"], shown["truncated"]) == (len(texts), len(texts), False)
        assert ("empty file" in shown["output"], shown["file_path"]) == (not texts, "f.txt")
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == (data, info.st_mtime_ns, info.st_ino)


@pytest.mark.parametrize(
    ("parameters", "code", "said"),
    [
        *[
            ({"file_path": "f.txt", **one}, "invalid_parameters", next(iter(one)))
            for one in ({"offset": 0}, {"limit": 0}, {"limit": -1}, {"limit": 100_001}, {"nope": 1})
        ],
        ({"file_path": "f.txt", "offset": "1"}, "invalid_parameters", "write it without quotes: 1"),
        ({"file_path": "f.txt", "line_ids": "some"}, "invalid_parameters", "line_ids"),
        ({}, "invalid_parameters", "file_path"),
        ({"file_path": "f.txt", "offset": 3}, "bad_offset", "has 2 line(s)"),
        *[({"file_path": f"f.txt{end}"}, "file_not_found", "f.txt is there; one range") for end in (":1,2", "#L1-L2")],
        ({"file_path": "g.txt:2-3"}, "file_not_found", "File not found: g.txt"),
        ({"file_path": "folder"}, "is_directory", ""),
        # What was a folder, and is one no more.
        ({"file_path": "out/a.txt"}, "path_outside", "a.txt (out is a link that leads out)"),
        ({"file_path": "gone/a.txt"}, "file_not_found", "a.txt (gone is a link to nothing)"),
        ({"file_path": "f.txt/a.txt"}, "not_a_directory", "f.txt is no directory, so there is no f.txt/a.txt"),
        *[
            ({"file_path": path}, "path_outside", f"Path outside project workspace: {path}{' (' if path == 'link' else '.'}")
            for path in ("../outside.txt", "/etc/passwd", "link", "../f.txt:2-3")
        ],
        ({"file_path": "image.png"}, "binary_file", "PNG image, 10 bytes"),
        ({"file_path": "fifo"}, "not_regular_file", ""),
    ],
)
def test_what_cannot_be_read(project, put, parameters, code, said):
    put("a\nb\n")
    (project / "folder").mkdir()
    put(b"\x89PNG\r\n\x1a\n\0\0", "image.png")
    (project.parent / "outside.txt").write_text("secret")
    for name, target in (("link", project.parent / "outside.txt"), ("out", ".."), ("gone", "nowhere")):
        (project / name).symlink_to(target)
    os.mkfifo(project / "fifo")
    error = refused(code, "read", project, **parameters)
    assert (said in error, "secret" in error) == (True, False)


def test_lines_that_were_read_without_ids_were_not_shown_with_them(project, put):
    put("a\nb\n")
    assert done("read", project, file_path="f.txt", line_ids="none")["output"] == "a\nb"
    (entry,) = (project / ".ai/cache/tools/read/line_index").glob("*.json")
    guess = json.loads(entry.read_bytes())["lines"][0]["id"]
    refused("unseen_lines", "edit_lines", project, file_path="f.txt", changes=[{"line_id": guess, "new_content": "x"}])


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_the_bytes_of_a_newline_across_two_wide_characters_end_no_line(project, put, codec):
    """As between U+0A21 and U+0100 in either order."""
    lines = ["\u0a21\u0100\u0a21\n", "\u0100\u0a00\u0100\n", "last\n"]
    path = put(("\ufeff" + "".join(lines)).encode(codec))
    data = done("read", project, file_path="f.txt")
    assert [text for _, text in rows(data)] == [line.strip() for line in lines]
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": rows(data)[1][0], "new_content": "new"}])
    assert path.read_bytes() == ("\ufeff" + lines[0] + "new\n" + lines[2]).encode(codec)


@pytest.mark.slow
def test_20000_lines_have_20000_ids(project, put):
    """Defect 6: six hex digits gave 19,987 for 20,000 distinct lines."""
    put(numbered(20_000))
    names, offset = [], 1
    while offset:
        data = done("read", project, file_path="f.txt", offset=offset, limit=100_000)
        names += [name for name, _ in rows(data)]
        offset = data.get("next_offset")
    assert len(set(names)) == 20_000
    # Those of which six digits are another one's have eight.
    assert {len(name) for name in names} == {6, 8}


def test_changes_since_shows_only_what_is_new(project, put):
    path = put(numbered(50))
    first = done("read", project, file_path="f.txt")
    text = numbered(50).replace("line 7\n", "LINE 7\n").replace("line 20\n", "")
    path.write_text(text.replace("line 40\n", "line 40\nnew\n"))
    data = done("read", project, file_path="f.txt", changes_since=first["version"])
    assert [text for _, text in rows(data)] == ["LINE 7", "new"]
    assert ("@ line 7" in data["output"], data["changes_known"]) == (True, True)
    assert (data["changed_lines"], data["line_count"]) == (2, 2)
    before = [name for name, _ in rows(first)]
    assert (sorted(data["deleted_ids"]), before[19] in data["output"]) == (sorted([before[6], before[19]]), True)
    again = done("read", project, file_path="f.txt", changes_since=data["version"])
    assert (again["output"], again["changed_lines"]) == (f"[no changes since version {data['version']}]", 0)
    # They can be edited at once.
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": rows(data)[0][0], "new_content": "x"}])
    assert path.read_text().split("\n")[6] == "x"


def test_beyond_twenty_versions_the_window_comes_instead(project, put):
    path = put("0\n")
    versions = [done("read", project, file_path="f.txt")["version"]]
    for n in range(1, 22):
        path.write_text(f"{n}\n")
        versions.append(done("read", project, file_path="f.txt")["version"])
    assert done("read", project, file_path="f.txt", changes_since=versions[-20])["changes_known"] is True
    data = done("read", project, file_path="f.txt", changes_since=versions[0])
    assert (data["changes_known"], "not among the last 20" in data["output"]) == (False, True)
    assert [text for _, text in rows(data)] == ["21"]
    # Nor is one of another file of the same content, from which a command made this one.
    path.rename(path.with_name("g.txt"))
    moved = done("read", project, file_path="g.txt", changes_since=versions[-1].rpartition("-")[2][:6])
    assert (moved["changes_known"], [text for _, text in rows(moved)]) == (False, ["21"])


def test_many_changes_are_cut_with_the_envelope(project, put):
    path = put(numbered(8_000))
    version = done("read", project, file_path="f.txt")["version"]
    path.write_text("".join(f"line {n}\n" if n % 2 else f"other {n}\n" for n in range(1, 8_001)))
    data = done("read", project, file_path="f.txt", changes_since=version)
    assert len(data["output"].encode()) <= 51_200
    assert data["truncated"]
    count = data["line_count"]
    assert f"[tool_result: {count} of 4000 changed lines; {4_000 - count} more omitted." in data["output"]


def test_a_range_behind_the_path(project):
    (project / "f.txt").write_text("".join(f"line {number}\n" for number in range(1, 8)))
    data = done("read", project, file_path="f.txt:2-3", line_ids="short")
    assert data["output"].split("\n")[:2] == ["2\tline 2", "3\tline 3"]
    assert data["output"].split("\n")[2].endswith("; 7 lines]")
    assert (data["file_path"], data["offset"], data["truncated"], data["next_offset"]) == ("f.txt", 2, True, 4)
    assert done("read", project, file_path="f.txt:6", line_ids="short")["output"].startswith("6\tline 6\n[version ")
    assert done("read", project, file_path="f.txt:2", limit=3, line_ids="short")["line_count"] == 3
    both = done("read", project, file_path="f.txt:1-2", more=[":6-", ":" + "9" * 5_000, "./f.txt"], line_ids="short")["output"]
    assert "\n7\tline 7\n" in done("read", project, file_path="gone.txt:1-2", more=["f.txt"], line_ids="short")["output"]
    assert "gone.txt" in refused("file_not_found", "read", project, file_path="gone.txt", more=["no.txt"])
    assert [both.count(f"{n}\tline {n}\n") for n in (2, 3, 7)] == [2, 1, 2]
    (project / "long.txt").write_text(("x" * 90 + "\n") * 2_000)
    data = done("read", project, file_path="long.txt:1-1500", line_ids="short")
    assert (data["line_count"] < 1_500, "[tool_result: " in data["output"]) == (True, True)
    (project / "f.txt:2-3").write_text("another\n")
    assert done("read", project, file_path="f.txt:2-3")["file_path"] == "f.txt:2-3"


def test_the_call_that_continues_keeps_the_view_of_the_file(project):
    (project / "a.txt").write_bytes(b"caf\xe9 \none\ntwo\n")
    said = done("read", project, file_path="a.txt", limit=1, encoding="latin-1", show_whitespace=True)["output"]
    assert 'Call read(file_path="a.txt", offset=2, encoding="latin-1", show_whitespace=true) to see more.' in said
    assert 'Call read(file_path="a.txt", offset=2) to see more.' in done("read", project, file_path="a.txt", limit=1)["output"]
    (project / "b.txt").write_text("x\n" * 300)
    said = done("rye/swe/open_file_chunk", project, path="b.txt", line_ids=True)["output"]
    assert 'Call open_file_chunk(path="b.txt", start=101, line_ids=true) to see more.' in said


# --- pictures: what they are and how large, by their first bytes; what is cut off or made up does not crash ---

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
