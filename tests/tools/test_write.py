"""write: whole files, created or replaced."""

import os
import sys
from hashlib import sha256

import pytest

from rye.errors import ItemError
from rye.items import parse
from support.calling import done, ids, refused, rows

# Defects 16, 18, 19: characters were counted, `${…}` was expanded, 200 kB were too long for a command line.
EXACT = ["", "\n", "a", "a\r\nb", "é 日本 🙂\n", "a\0b", "\ufeffa\n", "\u2028\x85\x0c", "${HOME} {x}\n", "é" * 300_000]
ENCODED = [("café\n", "latin-1"), *[("a\0b\n", codec) for codec in ("utf-16-le", "utf-16-be", "utf-32-le")]]


@pytest.mark.parametrize(("content", "encoding"), [*[(text, "utf-8") for text in EXACT], *ENCODED])
def test_content_is_written_exactly_and_counted_in_bytes_and_folders_are_made(project, content, encoding):
    data = done("write", project, file_path="a/b/f.txt", content=content, encoding=encoding)
    written = content.encode(encoding)
    assert (project / "a/b/f.txt").read_bytes() == written
    assert data["output"] == f"Created a/b/f.txt ({len(written)} bytes)"
    assert (data["file_path"], data["bytes_written"]) == ("a/b/f.txt", len(written))
    assert (data["created"], data["truncated"]) == (True, False)
    if encoding == "latin-1":
        assert rows(done("read", project, file_path="a/b/f.txt"))[0][1] == "café"


# Defect 16: the trust store could be written.
PROTECTED = (
    ".ai/trusted_keys/x.toml sub/.git/config .AI/Trusted_Keys/x link/config ai/keys/k a/../.git/config .vscode/tasks.json"
)
OUTSIDE = "../x out/made/x dangle/x folder/../../outside/made/x"


@pytest.mark.parametrize(
    ("path", "more", "code"),
    [
        *[(path, {}, "protected_path") for path in PROTECTED.split()],
        *[(path, {}, "path_outside") for path in OUTSIDE.split()],
        *[(path, {}, "is_directory") for path in ("folder", "folder/", "none/")],
        *[(path, {}, "not_regular_file") for path in ("fifo", "to fifo")],
        ("f.txt", {"encoding": "nonsense"}, "unknown_encoding"),
        ("missing.txt", {"expected_sha256": "0" * 64}, "wrong_digest"),
    ],
)
def test_where_nothing_is_written(project, path, more, code):
    for name in ("folder", "a", ".git", ".ai"):
        (project / name).mkdir()
    os.mkfifo(project / "fifo")
    (project / "f.txt").write_bytes(b"old\n")
    links = {"to fifo": "fifo", "dangle": "../outside/none", "link": ".git", "ai": ".ai", "out": project.parent / "outside"}
    for name, target in links.items():
        (project / name).symlink_to(target)
    (project.parent / "outside").mkdir()
    before = {*project.parent.rglob("*")}
    error = refused(code, "write", project, file_path=path, **{"content": "x", **more})
    # The file is named that was to be written, not the folder above it, for which the way was not even made.
    assert code != "protected_path" or error.split()[0].endswith(os.path.basename(path))
    made = {one for one in project.parent.rglob("*") if "cache" not in one.parts}
    assert made == before
    assert (project / "f.txt").read_bytes() == b"old\n"


def test_replacing_shows_the_diff(project):
    (project / "f.txt").write_bytes(b"a\nb\nc\n")
    data = done("write", project, file_path="f.txt", content="b\nc\nD\n")
    assert data["created"] is False
    assert data["output"].split("\n") == ["--- a/f.txt", "+++ b/f.txt", "@@ -1,3 +1,3 @@", "-a", " b", " c", "+D"]
    (project / "f.bin").write_bytes(b"\0\1\2")
    assert "no text diff" in done("write", project, file_path="f.bin", content="text\n")["output"]


def test_the_same_content_again_is_no_change(project):
    first = done("write", project, file_path="f.txt", content="a\n")
    assert first["unchanged"] is False
    known, stood = ids(project), (project / "f.txt").stat()
    data = done("write", project, file_path="f.txt", content="a\n")
    assert (data["unchanged"], data["created"], "entry_id" in data) == (True, False, False)
    assert data["output"].startswith("f.txt is unchanged")
    # It is the same file, its IDs stand, and the last change is still the one before.
    now = (project / "f.txt").stat()
    assert (now.st_ino, now.st_mtime_ns) == (stood.st_ino, stood.st_mtime_ns)
    assert ids(project) == known
    assert done("undo", project, list=True)["total"] == 1
    assert done("undo", project)["undone"] == first["entry_id"]
    assert not (project / "f.txt").exists()
    # Control: other content is a change, and an empty file is not an absent one.
    assert done("write", project, file_path="f.txt", content="")["unchanged"] is False
    assert done("write", project, file_path="f.txt", content="")["unchanged"] is True


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o4755])
def test_the_mode_is_kept_and_what_is_not_is_said(project, monkeypatch, mode):
    (project / "f.sh").write_bytes(b"a\n")
    if os.geteuid() == 0:
        os.chown(project / "f.sh", 12345, 12345)
        monkeypatch.setattr(os, "fchown", lambda *_: os.open("/nowhere", 0))
    (project / "f.sh").chmod(mode)
    os.link(project / "f.sh", project / "g.sh")
    said = [done("write", project, file_path="f.sh", content="b\n")["output"]]
    os.link(project / "f.sh", project / "h.sh")
    said.append(done("edit_lines", project, file_path="f.sh", changes=[{"find": "b", "replace": "c"}])["output"])
    assert (project / "f.sh").stat().st_mode & 0o7777 == mode & 0o777
    assert ["f.sh has no write permission" in one for one in said] == [mode == 0o444] * 2
    assert ["f.sh had 2 hard links" in one for one in said] == [True, True]
    assert ((project / "g.sh").read_bytes(), (project / "h.sh").read_bytes()) == (b"a\n", b"b\n")
    assert ["f.sh had a set-user-id" in one for one in said] == [mode == 0o4755, False]
    assert ["f.sh belonged to 12345:12345 and" in one for one in said] == [os.geteuid() == 0, False]


def test_the_expected_digest(project):
    path = project / "f.txt"
    path.write_bytes(b"a\n")
    wrong = "0" * 64
    error = refused("wrong_digest", "write", project, file_path="f.txt", content="b\n", expected_sha256=wrong)
    assert sha256(b"a\n").hexdigest() in error
    assert "Nothing was written" in error
    assert path.read_bytes() == b"a\n"
    done("write", project, file_path="f.txt", content="b\n", expected_sha256=sha256(b"a\n").hexdigest())
    done("write", project, file_path="f.txt", content="c\n", expected_sha256="sha256:" + sha256(b"b\n").hexdigest().upper())
    assert path.read_bytes() == b"c\n"


def test_lines_that_stay_keep_their_ids_and_the_others_are_new(project):
    """Once all IDs of the file were unknown then. A write is one change: what it writes elsewhere is no line that it deleted."""
    (project / "f.txt").write_bytes(b"a\n]\nb\n]\nc\n")
    before = ids(project)
    done("write", project, file_path="f.txt", content="a\nb\n]\nC\n  ]\n")
    after = ids(project)
    # Which `]` it is that stayed, nobody said.
    assert after[:2] == [before[0], before[2]]
    assert not {*after[2:]} & {*before}
    changes = [{"line_id": before[1], "new_content": "x"}]
    assert "was deleted" in refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=changes)
    done("edit_lines", project, file_path="f.txt", changes=[{"line_id": before[0], "new_content": "A"}])
    done("undo", project)
    done("undo", project)
    assert ids(project) == before


def test_an_edit_of_lines_that_stay_can_follow_without_a_read(project):
    (project / "f.txt").write_bytes(b"a\nb\nc\n")
    done("read", project, file_path="f.txt", line_ids="short")
    data = done("write", project, file_path="f.txt", content="a\nx\nc\n", line_ids="short")
    assert data["output"] == "Replaced f.txt (+1 -1 lines); its lines are 1, 4, 3"
    done("edit_lines", project, file_path="f.txt", changes=["3-3|C", "4|X"])
    assert (project / "f.txt").read_bytes() == b"a\nX\nC\n"
    (project / "f.txt").write_bytes(b"a\nX\nC\nof another program\n")
    lost = done("write", project, file_path="f.txt", content="a\n", line_ids="short")["warnings"]
    assert lost == ["1 line(s) that it had and you were not shown are gone; undo brings them back."]
    # Too many ranges to be told are not, and then nobody was told.
    lines = [f"line {at}" for at in range(100)]
    done("write", project, file_path="f.txt", content="\n".join(lines), line_ids="short")
    lines[::3] = [f"other {at}" for at in range(34)]
    assert "addresses" not in done("write", project, file_path="f.txt", content="\n".join(lines), line_ids="short")


@pytest.mark.parametrize(
    ("before", "encoding", "content", "after", "said"),
    [
        (b"\xef\xbb\xbfa\n", None, "a\n", b"a\n", "utf-8+bom -> utf-8"),
        (b"a\n", "utf-8-sig", "a\n", b"\xef\xbb\xbfa\n", "utf-8 -> utf-8+bom"),
        (b"\xef\xbb\xbfa\n", "UTF-8-SIG", "b\n", b"\xef\xbb\xbfb\n", "-a\n+b"),
        (b"\xef\xbb\xbfa\n", "utf_8_sig", "\ufeffa\n", b"\xef\xbb\xbfa\n", "is unchanged"),
        (b"a\n", "utf-8-sig", "", b"\xef\xbb\xbf", "utf-8 -> utf-8+bom"),
    ],
)
def test_a_byte_order_mark_is_written_when_it_is_asked_for_and_else_taken_away(project, before, encoding, content, after, said):
    (project / "f.txt").write_bytes(before)
    more = {} if encoding is None else {"encoding": encoding}
    assert said in done("write", project, file_path="f.txt", content=content, **more)["output"]
    assert (project / "f.txt").read_bytes() == after
    if before != after:
        done("undo", project)
        assert (project / "f.txt").read_bytes() == before


def test_other_line_endings_are_named(project):
    (project / "c.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    data = done("write", project, file_path="c.txt", content="a\nB\nc\n")
    assert (project / "c.txt").read_bytes() == b"a\nB\nc\n", "written exactly as given"
    assert "were CRLF and are LF" in data["warnings"][0]
    # What changed otherwise is not marked.
    assert [one for one in (data["warnings"][0], "-a [CRLF]", "+a [LF]", "+B\n") if one not in data["output"]] == []
    done("edit_lines", project, file_path="c.txt", changes=[], convert_newlines="crlf")
    assert (project / "c.txt").read_bytes() == b"a\r\nB\r\nc\r\n"
    # Controls: the same endings, and a file without any.
    assert done("write", project, file_path="c.txt", content="x\r\n")["warnings"] == []
    (project / "d.txt").write_bytes(b"one")
    assert done("write", project, file_path="d.txt", content="x\r\n")["warnings"] == []


def test_the_addresses_of_what_was_written_are_told_and_an_edit_can_follow(project):
    data = done("write", project, file_path="f.txt", content="a\n\nc\n", line_ids="short")
    assert data["output"] == "Created f.txt; its lines are 1-3"
    done("edit_lines", project, file_path="f.txt", changes=["2-3|b"])
    assert (project / "f.txt").read_bytes() == b"a\nb\n"
    # Addresses of the content before are unknown, never another line's.
    data = done("write", project, file_path="f.txt", content="d\ne\n", line_ids="short")
    assert data["output"] == f"Replaced f.txt (+2 -2 lines); its lines are {data['addresses']}"
    refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=["1|x"])


def test_addresses_that_nobody_was_told_edit_nothing(project):
    """Control: without line_ids, and in a file too large to be named at once, a read must come first."""
    assert "addresses" not in done("write", project, file_path="f.txt", content="a\n")
    refused("unseen_lines", "edit_lines", project, file_path="f.txt", changes=["1|x"])
    large = done("write", project, file_path="g.txt", content="a\n" * 3_000, line_ids="short")
    assert large["output"].startswith("Created g.txt (6000 bytes)")
    refused("unseen_lines", "edit_lines", project, file_path="g.txt", changes=["1|x"])


# The file's name, its content before (None: there was no file) and after, and what the result warns of.
SYNTAX = [
    *[("a.py", None, data, None) for data in (b"", b"\xef\xbb\xbfx = 1\r\n", b"x = '\\d'\n", b"raise SystemExit(1)\n")],
    ("a.py", None, b"# -*- coding: latin-1 -*-\nx = '\xc3\xa9'\n", None),
    ("a.py", None, b"x = 1\ndef f(:\n", "invalid syntax, in a.py at line 2"),
    ("a.py", None, b"def f(a, a): pass\n", "in a.py at line 1"),
    ("a.py", None, b"(" * 300, "in a.py at line 1"),
    ("a.py", b"def f(:\n", b"x = 1\ndef f(:\n", None),
    ("a.py", b"x = 1\n", b"x = 1\ndef f(:\n", "any more: invalid syntax, in a.py at line 2"),
    ("a.py", b"def f(:\n", b"x = 1\ndef g(:\n", f"No valid Python 3.{sys.version_info[1]}: invalid syntax, in a.py at line 2"),
    ("a.py", None, b"-" * 50_000 + b"1", "nested too deeply"),
    ("a.py", None, b"a" + b".b" * 50_000, "nested too deeply" if sys.version_info < (3, 14) else None),
    ("a.py", b"x = 1\n" * 50_000, b"x = 1\n" * 50_000 + b"y = (\n", "not checked"),
    *[("a.json", b'{"a": 1}\n', b'{"a": 1,}\n', "JSON"), ("a.toml", b"a = 1\n", b"a = \n", "TOML")],
    ("a.yaml", b"a: [1]\n", b"a: [1\n", "YAML"),
    ("a.yaml", b"a: 1\n{{ toYaml .x | indent 2 }}\n", b"b: [1\n  {{- with .y }}\nc: 1\n", None),
    ("a.go", b"func f() { g() }\n", b"func f() { g() } }\n", "Brackets of a.go pair no more: 1 { and 2 }."),
    ("a.TSX", b"f([1])\n", b"f([1)\n", "Brackets of a.TSX pair no more: 1 [ and 0 ]."),
    # What stands in a string does not count.
    ("a.c", None, b'int f() { return s[0] == \'(\' || !strcmp(s, "[{\\"("); }\n', None),
    ("a.js", b"x = '('\n", b"x = '(' + ')' + '('\n", None),
    ("a.rs", b"", b"fn f<'a>(x: &'a str, c: char) { c == '(' }\n", None),
    ("a.txt", b"()\n", b"(\n", None),
]


@pytest.mark.parametrize(("name", "before", "after", "said"), SYNTAX, ids=lambda value: repr(value)[:30])
def test_a_new_syntax_error_is_told_and_nothing_of_the_file_runs(project, name, before, after, said):
    if before is not None:
        (project / name).write_bytes(before)
    done("read", project, file_path=name) if before is not None else None
    if said and not any(word in said for word in ("nested", "Brackets", "not checked")):
        refused("syntax_error", "write", project, file_path=name, content=after.decode(), guard="refuse")
    warnings = done("write", project, file_path=name, content=after.decode())["warnings"]
    assert [said in one for one in warnings] == [True] if said else warnings == []


def test_no_file_of_the_current_folder_is_read_for_a_syntax_error(project, monkeypatch):
    monkeypatch.chdir(project)
    pipes = []
    for name in ("edited", "<unknown>"):
        os.mkfifo(name)
        pipes.append(os.open(name, os.O_RDWR | os.O_NONBLOCK))
        os.write(pipes[-1], b"x\n")
    assert "at line 1" in done("write", project, file_path="a.py", content="def f(:\n")["warnings"][0]
    with pytest.raises(ItemError, match="not valid Python: invalid syntax"):
        parse.python_tree(b"def f(:\n")
    assert [os.read(pipe, 9) for pipe in pipes] == [b"x\n"] * 2
