"""Which encoding a file is in, and what can be put into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rye.errors import EditError, UsageError, WorkspaceError
from rye.workspace import encoding


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (b"", "utf-8"),
        (b"plain\n", "utf-8"),
        ("é 日本 🙂\n".encode(), "utf-8"),
        (b"\xef\xbb\xbfa\n", "utf-8+bom"),
        (b"\xff\xfea\0\n\0", "utf-16-le+bom"),
        (b"\xfe\xff\0a\0\n", "utf-16-be+bom"),
        (b"\xff\xfe\0\0a\0\0\0", "utf-32-le+bom"),
        (b"\0\0\xfe\xff\0\0\0a", "utf-32-be+bom"),
        (b"caf\xe9\n", "utf-8?"),
        (b"\xff\xfe", "utf-16-le+bom"),
    ],
)
def test_detection(data, label):
    assert encoding.detect(data).label == label
    # A byte order mark decides over the declaration.
    assert encoding.detect(data, "latin-1").label == (label if "+bom" in label else "iso8859-1")


NO_LINES = ("utf-16", "utf-32", "cp037", "rot13", "hex", "zlib", "base64", "punycode", "unicode_escape", "idna")


@pytest.mark.parametrize("name", ["nonsense", "", "a\0b", "é", *NO_LINES])
def test_a_codec_that_has_no_lines_is_refused(name):
    with pytest.raises(UsageError) as caught:
        encoding.detect(b"x", name)
    assert caught.value.code == "unknown_encoding"
    assert "latin-1" in str(caught.value)


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
def test_binary_is_refused_with_type_and_size(data, kind):
    with pytest.raises(WorkspaceError) as caught:
        encoding.detect(data)
    assert caught.value.code == "binary_file"
    assert kind in str(caught.value)
    assert f"{len(data):,} bytes" in str(caught.value)
    assert encoding.detect(data.replace(b"\0", b""), "latin-1").certain, "what begins like one can be text when declared"


@pytest.mark.parametrize(
    ("code", "text", "named"),
    [
        (encoding.Encoding("iso8859-1"), "a日b", "'日' (U+65E5) at position 2"),
        (encoding.Encoding("ascii"), "é", "(U+00E9) at position 1"),
        (encoding.Encoding("shift_jis"), "ok é", "(U+00E9) at position 4"),
        (encoding.Encoding("gbk"), "🙂", "(U+1F642)"),
        (encoding.UTF8, "a\ud800", "(U+D800) at position 2"),
        (encoding.UTF8, "a\0b", "(U+0000) at position 2"),
        (encoding.Encoding("utf-16-le", b"\xff\xfe", b"\n\0"), "\udfff", "(U+DFFF)"),
    ],
)
def test_what_the_encoding_cannot_hold_is_named(code, text, named):
    with pytest.raises(EditError) as caught:
        code.encode(text)
    assert caught.value.code == "unencodable"
    assert named in str(caught.value)
    assert "Nothing was written" in str(caught.value)


@pytest.mark.parametrize("name", ["latin-1", "shift_jis", "gbk", "utf-16-le", "utf-16-be", "utf-32-le"])
def test_bodies_and_terminators(name):
    code = encoding.Encoding(name, newline="\n".encode(name))
    for ending in ("\n", "\r\n", ""):
        for text in ("", "a", "a\r", "\r", "表"):
            if ending == "\n" and text.endswith("\r"):
                continue
            line = (text if name != "latin-1" else text.replace("表", "é")).encode(name)
            raw = line + ending.encode(name)
            assert code.body(raw) == line
            assert code.terminator(raw) == ending.encode(name)
            assert code.crlf == "\r\n".encode(name)
            assert code.key(raw) == code.body(raw).decode(name).encode(), "the text, whatever the encoding"


def test_half_a_unit_is_no_terminator_and_bytes_that_do_not_decode_are_shown():
    """A UTF-16 file cut within a character: its last bytes look like a newline, but stand across two units."""
    code = encoding.Encoding("utf-16-le", b"\xff\xfe", b"\n\0")
    assert (b"x\n\0".endswith(code.newline), code.terminator(b"x\n\0")) == (True, b"")
    assert encoding.UTF8.show(b"caf\xe9 \xff\n") == "caf\\xe9 \\xff"
    assert code.show(b"a\0\x00\xd8\n\0") == "a\\x00\\xd8"


@pytest.mark.parametrize(
    ("text", "name"), [("表示\n", "shift_jis"), ("中文\n", "gbk"), ("丂\n", "gb18030"), ("한국\n", "euc_kr")]
)
def test_multibyte_characters_are_not_cut_at_their_second_byte(text, name):
    code = encoding.detect(text.encode(name), name)
    assert code.show(text.encode(name)) == text.rstrip("\n")


@given(st.lists(st.binary(max_size=6).map(lambda x: x.replace(b"\n", b"")), max_size=6), st.sampled_from([b"", b"\n"]))
def test_lines_shown_together_are_shown_as_each_is(bodies, end):
    raw = [body + b"\n" for body in bodies]
    if raw:
        raw[-1] = raw[-1][:-1] + end or b"x"
    assert encoding.UTF8.show_all(raw) == [encoding.UTF8.show(line) for line in raw]
