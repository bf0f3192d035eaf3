"""Files whose encoding nobody declared: what a guess shows is said to be one, and nothing new is written by it unconfirmed."""

from __future__ import annotations

import pytest

from support.calling import call, done, refused, rows

FRENCH = "Les élèves français étaient déjà à l'école près de la forêt.\n" * 3
JAPANESE = "# 設定ファイルを読み込み、表示する関数。\nx = 1\nエラーの場合は例外を返す。\n"
RUSSIAN = "Проверить, существует ли каталог.\nx = 1\nОшибка: файл не найден\n"
FILES = [
    (FRENCH, "cp1252", "vitæ"),
    (JAPANESE, "shift_jis", "追加"),
    (JAPANESE, "euc_jp", "追加"),
    (RUSSIAN, "koi8-r", "новое"),
    (RUSSIAN, "cp1251", "новое"),
]


def first_id(project, **more):
    return rows(done("read", project, file_path="f.txt", **more))[0][0]


@pytest.mark.parametrize(("text", "codec", "new"), FILES)
def test_a_guess_is_shown_as_one_and_takes_nothing_but_ascii_unconfirmed(project, text, codec, new):
    file = project / "f.txt"
    file.write_bytes(text.encode(codec))
    data = done("read", project, file_path="f.txt")
    assert rows(data)[0][1] == text.split("\n")[0]
    assert data["encoding"] == f"{codec}?"
    assert f'encoding="{codec}"' in data["output"].split("\n")[-1]
    change = [{"line_id": rows(data)[0][0], "new_content": new}]
    error = refused("unencodable", "edit_lines", project, file_path="f.txt", changes=change)
    assert f'encoding="{codec}"' in error
    assert file.read_bytes() == text.encode(codec)
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
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": first_id(project), "new_content": "ecole"}])
    assert file.read_bytes() == b"ecole\n" + rest
    name = first_id(project)
    assert first_id(project, encoding=codec) == name
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": name, "new_content": new}])
    assert file.read_bytes() == f"{new}\n".encode(codec) + rest


def test_control_a_file_in_utf_8_says_nothing_of_its_encoding(project):
    (project / "f.txt").write_text(FRENCH)
    data = done("read", project, file_path="f.txt")
    assert "encoding" not in data["output"]
    assert call("edit_lines", project, file_path="f.txt", changes=[{"line_id": rows(data)[0][0], "new_content": "vitæ"}])[
        "success"
    ]


GREP, SEARCH, WINDOW = "rye/file-system/grep", "rye/swe/search_dir", "rye/workspace/workspace_read_file"


@pytest.mark.parametrize(("text", "codec", "new"), FILES)
def test_searches_and_the_patch_tools_window_say_that_it_is_a_guess(project, text, codec, new):
    (project / "f.txt").write_bytes(text.encode(codec))
    (project / "plain.txt").write_text("x = 1 é\n")
    shown = text.split("\n")[0]
    for _ in range(2):
        # Also where the matches are remembered from the search before.
        data = done(GREP, project, pattern=" ")
        assert shown in data["output"]
        assert data["output"].count(f"[f.txt: the file is not UTF-8; {codec} is a guess.") == 1
    for line_ids in (False, True):
        data = done(SEARCH, project, pattern=" ", line_ids=line_ids)
        assert shown in data["output"]
        assert data["output"].count(f"[f.txt: the file is not UTF-8; {codec} is a guess.") == 1
    for tool, named in ((WINDOW, "docPath"), ("rye/swe/open_file_chunk", "path"), ("rye/swe/read_file_viewport", "path")):
        output = done(tool, project, **{named: "f.txt"})["output"]
        assert (shown in output, f"{codec} is a guess" in output) == (True, True)
    # Lines of ASCII alone say nothing of it, nor does a file that is UTF-8.
    assert "guess" not in done(GREP, project, pattern="x = 1", context=0)["output"]
    assert "guess" not in done(WINDOW, project, docPath="plain.txt")["output"]


def test_a_search_for_other_than_ascii_says_which_files_it_cannot_find_it_in(project):
    (project / "f.txt").write_bytes(FRENCH.encode("cp1252"))
    assert "other encodings" in done(GREP, project, pattern="élèves")["output"]
    assert "other encodings" not in done(GREP, project, pattern="missing")["output"]


def test_bytes_that_no_encoding_explains_are_said_to_be_escaped_in_searches(project):
    (project / "f.txt").write_bytes(b"abc \xff\xfe\x80 def\nxyz \x81\x82\n")
    for tool in (GREP, SEARCH):
        output = done(tool, project, pattern="abc")["output"]
        assert "abc \\xff\\xfe\\x80 def" in output
        assert "[f.txt: bytes that are not utf-8 are shown as" in output
