"""Which encoding a file is in: a guess is said to be one, and no new text is written by it; odd bytes come back; what is no text."""

import time

import pytest

from support.calling import call, done, ids, refused, rows
from support.workspace_calls import patch, replace

FRENCH = "Les élèves français étaient déjà à l'école près de la forêt.\n" * 3
JAPANESE = "settings = read_settings(path, defaults=True)  # 設定を読み込む\nx = 1\nwrite_settings(path, settings)  # 設定を書き込む、表示する\n"
RUSSIAN = "Проверить, существует ли каталог.\nx = 1\nОшибка: файл не найден\n"
FILES = [
    (FRENCH, "cp1252", "vitæ"),
    (JAPANESE, "shift_jis", "追加"),
    (JAPANESE, "euc_jp", "追加"),
    (RUSSIAN, "koi8-r", "новое"),
    (RUSSIAN, "cp1251", "новое"),
    (FRENCH * 1_000, "cp1252", "vitæ"),
]


def first_id(project, **more):
    return rows(done("read", project, file_path="f.txt", **more))[0][0]


@pytest.mark.parametrize(("text", "codec", "new"), FILES)
def test_a_guess_is_shown_as_one_and_takes_nothing_but_ascii_unconfirmed(project, text, codec, new):
    file = project / "f.txt"
    file.write_bytes(text.encode(codec))
    data = done("read", project, file_path="f.txt")
    assert rows(data)[0][1] == text.split("\n")[0]
    assert (data["encoding"], f'encoding="{codec}"' in data["output"].split("\n")[-1]) == (f"{codec}?", True)
    change = [{"line_id": rows(data)[0][0], "new_content": new}]
    error = refused("unencodable", "edit_lines", project, file_path="f.txt", changes=change)
    assert (f"a guess ({codec})" in error and f'encoding="{codec}"' in error, file.read_bytes()) == (True, text.encode(codec))
    # Confirmed once, it is remembered.
    done("edit_lines", project, file_path="f.txt", changes=change, encoding=codec)
    rest = text.split("\n", 1)[1]
    assert file.read_bytes() == f"{new}\n{rest}".encode(codec)
    assert done("read", project, file_path="f.txt")["encoding"] == codec
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": first_id(project), "new_content": new * 2}])
    assert file.read_bytes() == f"{new * 2}\n{rest}".encode(codec)


@pytest.mark.parametrize(("text", "codec", "new"), FILES)
def test_a_look_with_the_encoding_confirms_it_too_and_ascii_needs_none(project, text, codec, new):
    file, rest = project / "f.txt", text.split("\n", 1)[1].encode(codec)
    file.write_bytes(text.encode(codec))
    # Of a line whose other letters stay, too.
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": first_id(project), "find": text[:9], "replace": "e"}])
    assert file.read_bytes() == b"e" + text[9:].encode(codec)
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": first_id(project), "new_content": "ecole"}])
    assert file.read_bytes() == b"ecole\n" + rest
    # Of a large file that is older than the clock's grain a view reads a part.
    time.sleep(0.1 * (len(text) > len(FRENCH)))
    name = first_id(project)
    assert first_id(project, encoding=codec) == name
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": name, "new_content": new}])
    assert file.read_bytes() == f"{new}\n".encode(codec) + rest


GREP, SEARCH, WINDOW = "rye/file-system/grep", "rye/swe/search_dir", "rye/workspace/workspace_read_file"


@pytest.mark.parametrize(("text", "codec", "new"), FILES)
def test_searches_and_the_patch_tools_window_say_that_it_is_a_guess(project, text, codec, new):
    (project / "f.txt").write_bytes(text.encode(codec))
    (project / "plain.txt").write_text("x = 1 é\n")
    shown, said = text.split("\n")[0], f"[f.txt: the file is not UTF-8; {codec} is a guess."
    for _ in range(2):
        # Also where the matches are remembered from the search before.
        data = done(GREP, project, pattern=" ")
        assert (shown in data["output"], data["output"].count(said)) == (True, 1)
    for line_ids in (False, True):
        data = done(SEARCH, project, pattern=" ", line_ids=line_ids)
        assert (shown in data["output"], data["output"].count(said)) == (True, 1)
    for tool, named in ((WINDOW, "docPath"), ("rye/swe/open_file_chunk", "path"), ("rye/swe/read_file_viewport", "path")):
        output = done(tool, project, **{named: "f.txt"})["output"]
        assert (shown in output, f"{codec} is a guess" in output) == (True, True)
    # Lines of ASCII alone say nothing of it, nor does a file that is UTF-8.
    assert "guess" not in done(GREP, project, pattern="x = 1", context=0)["output"]
    assert "guess" not in done(WINDOW, project, docPath="plain.txt")["output"]


def test_a_search_for_other_than_ascii_says_which_files_it_cannot_find_it_in(project):
    # A guess stays, whatever another content would be taken for.
    for data in (FRENCH.encode("cp1252"), b"caf\xe9\n", RUSSIAN.encode("koi8-r")):
        (project / "f.txt").write_bytes(data)
        assert done("read", project, file_path="f.txt")["encoding"] == "cp1252?"
    (project / "f.txt").write_bytes(FRENCH.encode("cp1252"))
    assert "other encodings" in done(GREP, project, pattern="élèves")["output"]
    assert "other encodings" not in done(GREP, project, pattern="missing")["output"]
    assert "(cp1252? -> utf-8)" in done("write", project, file_path="f.txt", content="x\n", line_ids="short")["output"]


def test_bytes_that_no_encoding_explains_are_said_to_be_escaped_in_searches(project):
    (project / "f.txt").write_bytes(b"abc \xff\xfe\x80 def\nxyz \x81\x82\n")
    for tool in (GREP, SEARCH):
        output = done(tool, project, pattern="abc")["output"]
        assert "abc \\xff\\xfe\\x80 def" in output.partition("[f.txt: bytes that are not utf-8 are shown as")[0] != output


# --- bytes that do not decode are shown as `\xHH`: sent back they become the byte again, or the edit is refused ---

LATIN = b"/* M\xfcller */\nint x;\n"


def test_the_text_of_a_view_says_so_and_names_the_encoding_to_try(project):
    (project / "a.c").write_bytes(LATIN)
    data = done("read", project, file_path="a.c")
    output = data["output"]
    assert ("M\\xfcller" in output, data["encoding"]) == (True, "utf-8?")
    assert output.endswith('read again with encoding="latin-1", or with the encoding that the file has]')
    error = refused("unencodable", "edit_lines", project, file_path="a.c", changes=["end+|ü"])
    assert "The encoding of a.c is unknown, not UTF-8: it must be named before the character" in error
    assert "shown as" not in done("read", project, file_path="a.c", offset=2)["output"], "no such byte in this window"
    assert "Müller" in done("read", project, file_path="a.c", encoding="latin-1")["output"]


@pytest.mark.parametrize(
    "tool", ["edit_lines", "rye/swe/edit_range", "rye/swe/edit_file", "rye/workspace/workspace_write_patch"]
)
def test_what_is_sent_back_is_the_byte_again(project, tool):
    (project / "a.c").write_bytes(LATIN)
    text = "/* M\\xfcller, 2026 */"
    if tool == "edit_lines":
        done(tool, project, file_path="a.c", changes=[{"line_id": ids(project, "a.c")[0], "new_content": text}])
    elif tool.endswith("edit_file"):
        done(tool, project, path="a.c", old="M\\xfcller", new="M\\xfcller, 2026")
    elif tool.endswith("edit_range"):
        done(tool, project, path="a.c", start_line=1, end_line=1, new_text=text)
    else:
        change = replace(1, ["/* M\\xfcller */"], text)
        done(tool, project, files=[patch(project, "a.c", change)])
    assert (project / "a.c").read_bytes() == b"/* M\xfcller, 2026 */\nint x;\n"


def test_where_the_file_holds_the_same_as_text_it_is_refused(project):
    data = b'/* M\xfcller */\nputs("\\xfc");\n'
    (project / "a.c").write_bytes(data)
    change = {"line_id": ids(project, "a.c")[0], "new_content": "M\\xfcller"}
    assert "encoding=" in refused("ambiguous_escape", "edit_lines", project, file_path="a.c", changes=[change])
    assert (project / "a.c").read_bytes() == data
    # Control: another escape is text in this file, as it is in every file that decodes.
    change["new_content"] = "\\xe9"
    done("edit_lines", project, file_path="a.c", changes=[change])
    assert (project / "a.c").read_bytes() == b'\\xe9\nputs("\\xfc");\n'


def test_in_a_file_that_decodes_it_is_text(project):
    (project / "a.py").write_text('s = "\\xfc" # ü\none\n')
    assert "shown as" not in done("read", project, file_path="a.py")["output"]
    done("edit_lines", project, file_path="a.py", changes=[{"line_id": ids(project, "a.py")[1], "new_content": 's = "\\xfc"'}])
    assert (project / "a.py").read_text() == 's = "\\xfc" # ü\ns = "\\xfc"\n'


def test_write_refuses_what_was_shown_escaped(project):
    (project / "a.c").write_bytes(LATIN)
    # Nor does an encoding that the write alone names make it text.
    for more in ({}, {"encoding": "latin-1"}):
        refused("escaped_bytes", "write", project, file_path="a.c", content="/* M\\xfcller */\nint y;\n", **more)
        assert (project / "a.c").read_bytes() == LATIN
        done("read", project, file_path="a.c")
    answer = call("write", project, file_path="a.c", content="/* Müller */\nint y;\n", encoding="latin-1")
    assert answer["success"], answer
    assert (project / "a.c").read_bytes() == b"/* M\xfcller */\nint y;\n"


@pytest.mark.parametrize("viewed", [True, False])
def test_an_escape_in_the_content_is_text_where_the_files_known_encoding_shows_none(project, viewed):
    (project / "f.txt").write_bytes("값 어려움\nx\n".encode("euc_kr"))
    if viewed:
        done("read", project, file_path="f.txt", encoding="euc_kr")
    # Such a byte stands in the file, as a part of a character.
    done("write", project, file_path="f.txt", content="puts('\\xb0')\n", encoding="euc_kr")
    assert (project / "f.txt").read_bytes() == b"puts('\\xb0')\n"


def test_many_such_lines_take_little_more_time_than_one(project):
    (project / "a.c").write_bytes(b"int x; /* M\xfcller */\n" * 40_000)
    first, seconds = ids(project, "a.c")[0], []
    for count in (1, 400):
        start = time.monotonic()
        change = {"after_line_id": first, "new_content": ["/* M\\xfcller */"] * count}
        done("edit_lines", project, file_path="a.c", changes=[change], dry_run=True)
        seconds.append(time.monotonic() - start)
    assert seconds[1] < 5 * seconds[0] + 1


# --- declared encodings, byte order marks, what is no text and what an encoding cannot hold ---


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
