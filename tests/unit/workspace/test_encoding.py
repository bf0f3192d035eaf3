"""Which encoding a file is in, what is no text, and what can be put into a file."""

import pytest

from support.calling import call, done


@pytest.mark.parametrize(
    ("data", "label"),
    [
        *((data, "utf-8") for data in (b"", b"plain\n", "é 日本 🙂\n".encode())),
        *((b"caf\xe9\n", "utf-8?"), (b"\xef\xbb\xbfa\n", "utf-8+bom")),
        *((data, "utf-16-le+bom") for data in (b"\xff\xfea\0\n\0", b"\xff\xfe")),
        *((b"\xfe\xff\0a\0\n", "utf-16-be+bom"), (b"\xff\xfe\0\0a\0\0\0", "utf-32-le+bom")),
        (b"\0\0\xfe\xff\0\0\0a", "utf-32-be+bom"),
    ],
)
def test_a_view_names_the_encoding_and_a_byte_order_mark_decides_over_a_declared_one(project, data, label):
    (project / "f.txt").write_bytes(data)
    assert done("read", project, file_path="f.txt")["encoding"] == label
    declared = done("read", project, file_path="f.txt", encoding="latin-1")["encoding"]
    assert declared == (label if "+bom" in label else "iso8859-1")


NO_LINES = ("utf-16", "utf-32", "cp037", "rot13", "hex", "zlib", "base64", "punycode", "unicode_escape", "idna")


@pytest.mark.parametrize("name", ["nonsense", "a\0b", "é", *NO_LINES])
def test_a_codec_that_has_no_lines_is_refused(project, name):
    (project / "f.txt").write_text("x")
    answer = call("read", project, file_path="f.txt", encoding=name)
    assert (answer["code"], "latin-1" in answer["error"]) == ("unknown_encoding", True)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"x" * 10, "PNG image"),
        (b"PK\x03\x04abc", "ZIP archive"),
        (b"%PDF-1.7\n", "PDF document"),
        (b"\x7fELF\x02", "ELF program"),
        (b"text\0more", "NUL bytes"),
    ],
)
def test_what_is_no_text_is_refused_with_type_and_size(project, data, kind):
    (project / "f").write_bytes(data)
    answer = call("edit_lines", project, file_path="f", changes=["1|x"])
    assert answer["code"] == "binary_file"
    assert (kind in answer["error"], f"{len(data):,} bytes" in answer["error"]) == (True, True)
    # What begins like one can be text when declared.
    (project / "f").write_bytes(data.replace(b"\0", b""))
    assert done("read", project, file_path="f", encoding="latin-1")["encoding"] == "iso8859-1"


@pytest.mark.parametrize(
    ("before", "codec", "text", "named"),
    [
        (b"", "latin-1", "a日b", "'日' (U+65E5) at position 2"),
        (b"", "ascii", "é", "(U+00E9) at position 1"),
        (b"", "shift_jis", "ok é", "(U+00E9) at position 4"),
        (b"", "gbk", "🙂", "(U+1F642)"),
        (b"", "utf-8", "a\ud800", "(U+D800) at position 2"),
        (b"\xff\xfea\0\n\0", "utf-16-le", "\udfff", "(U+DFFF)"),
    ],
)
def test_what_the_encoding_cannot_hold_is_named(project, before, codec, text, named):
    (project / "f.txt").write_bytes(before)
    answer = call("write", project, file_path="f.txt", content=text, encoding=codec)
    assert (answer["code"], named in answer["error"], "Nothing was written" in answer["error"]) == ("unencodable", True, True)
    assert (project / "f.txt").read_bytes() == before
    (project / "f.txt").write_text("x\n")
    assert "(U+0000) at position 2" in call("edit_lines", project, file_path="f.txt", changes=["find|x|a\0b"])["error"]


def test_half_a_unit_is_no_terminator_and_bytes_that_do_not_decode_are_shown(project):
    """A UTF-16 file cut within a character: its last bytes look like a newline, but stand across two units."""
    for data, shown in (
        (b"\xff\xfex\n\0", "\u0a78\\x00"),
        (b"\xff\xfea\0\x00\xd8\n\0", "a\\x00\\xd8"),
        (b"caf\xe9 \xff\n", "caf\\xe9 \\xff"),
    ):
        (project / "f.txt").write_bytes(data)
        output = done("read", project, file_path="f.txt", line_ids="none")["output"]
        assert output.split("\n")[0] == shown, data
