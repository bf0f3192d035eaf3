"""Bytes that do not decode are shown as `\\xHH`: sent back they become the byte again, or the edit is refused."""

from __future__ import annotations

import time

import pytest

from support.calling import call, done, ids, refused
from support.workspace_calls import patch, replace

LATIN = b"/* M\xfcller */\nint x;\n"


def test_the_text_of_a_view_says_so_and_names_the_encoding_to_try(project):
    (project / "a.c").write_bytes(LATIN)
    data = done("read", project, file_path="a.c")
    output = data["output"]
    assert ("M\\xfcller" in output, data["encoding"]) == (True, "utf-8?")
    assert output.endswith('read again with encoding="latin-1", or with the encoding that the file has]')
    assert "shown as" not in done("read", project, file_path="a.c", offset=2)["output"], "no such byte in this window"
    assert "Müller" in done("read", project, file_path="a.c", encoding="latin-1")["output"]


def test_many_such_lines_take_little_more_time_than_one(project):
    (project / "a.c").write_bytes(b"int x; /* M\xfcller */\n" * 40_000)
    first, seconds = ids(project, "a.c")[0], []
    for count in (1, 400):
        start = time.monotonic()
        change = {"after_line_id": first, "new_content": ["/* M\\xfcller */"] * count}
        done("edit_lines", project, file_path="a.c", changes=[change], dry_run=True)
        seconds.append(time.monotonic() - start)
    assert seconds[1] < 5 * seconds[0] + 1


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
    error = refused("ambiguous_escape", "edit_lines", project, file_path="a.c", changes=[change])
    assert "encoding=" in error
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
    refused("escaped_bytes", "write", project, file_path="a.c", content="/* M\\xfcller */\nint y;\n")
    assert (project / "a.c").read_bytes() == LATIN
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


def test_an_encoding_named_at_the_write_alone_does_not_make_shown_escapes_text(project):
    (project / "a.c").write_bytes(LATIN)
    done("read", project, file_path="a.c")
    refused("escaped_bytes", "write", project, file_path="a.c", content="/* M\\xfcller */\n", encoding="latin-1")
    assert (project / "a.c").read_bytes() == LATIN
