"""grep as a model calls it."""

import re

import pytest

import rye
from support.calling import done, refused

RESULT = re.compile(r"^(.*?):(\d+):\[LID:([0-9a-z]+)\]:(.*)$", re.MULTILINE)


def write(project, **files):
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


def test_every_match_carries_its_line_id_read_or_not(project):
    write(project, **{"a.py": "x = 1\nneedle = 2\n", "b.py": "needle\n"})
    data = done("grep", project, pattern="needle")
    assert [(m["file"], m["line"], m["content"]) for m in data["matches"]] == [("a.py", 2, "needle = 2"), ("b.py", 1, "needle")]
    assert (data["count"], data["total"], data["files"], data["truncated"]) == (2, 2, 2, False)
    assert RESULT.findall(data["output"]) == [(m["file"], str(m["line"]), m["line_id"], m["content"]) for m in data["matches"]]
    first = data["matches"][0]
    assert [done("grep", project, pattern="needle", path="a.py")["matches"] for _ in range(2)] == [[first]] * 2
    # An ID stays with its line through changes by others; what is remembered in the process goes when the file changes.
    write(project, **{"a.py": "other\nx = 1\nneedle = 2\n"})
    assert done("grep", project, pattern="needle", path="a.py")["matches"] == [{**first, "line": 3}]
    changes = [{"line_id": first["line_id"], "new_content": "new needle\nneedle"}]
    done("edit_lines", project, file_path="a.py", changes=changes)
    after = done("grep", project, pattern="needle", path="a.py")["matches"]
    assert ([one["content"] for one in after], len({one["line_id"] for one in after})) == (["new needle", "needle"], 2)


def test_an_agent_gets_context_of_a_few_matches_and_an_item_call_none(project):
    write(project, a="".join(f"line {n}\n" for n in range(1, 21)))
    assert len(done("grep", project, pattern="line 10")["output"].split("\n")) == 1
    tools = rye.toolset(project)
    assert tools.call("grep", {"pattern": "line 10"}).startswith("a:\n7-\tline 7\n")
    assert "-\t" not in tools.call("grep", {"pattern": "line 1"})
    wide = done("grep", project, pattern="line (3|5|9|15)$", context=1)["output"]
    near = [f"a{mark}{n}{mark * 2}line {n}" for n in range(2, 11) for mark in [":" if n in (3, 5, 9) else "-"]]
    assert re.sub(r"\[LID:\w+\]", "", wide).split("\n") == [*near, "--", "a-14--line 14", "a:15::line 15", "a-16--line 16"]


def test_a_page_says_what_more_there_is_and_how_to_see_it(project):
    for number in range(5):
        write(project, **{f"f{number}": "needle\n" * 5})
    data = done("grep", project, pattern="needle", limit=7)
    assert data["output"].split("\n")[-1] == (
        '[tool_result: 7 of 25 matches in 5 files; 18 more omitted. Call grep(pattern="needle", limit=7, offset=8) to see more.]'
    )
    assert "[tool_result: 2 of 5 matches in 1 file; 3" in done("grep", project, pattern="needle", path="f0", limit=2)["output"]
    assert "25" in refused("bad_offset", "grep", project, pattern="needle", offset=26)


def test_a_long_line_is_shown_around_its_match(project):
    write(project, a="é" * 10_000 + "needle" + "y" * 10_000 + "\n")
    content = done("grep", project, pattern="needle")["matches"][0]["content"]
    assert ("needle" in content, len(content) < 600) == (True, True)
    assert content.startswith("[9,850 characters before]… ")


def test_crlf_and_other_encodings_come_out_right(project):
    (project / "a").write_bytes(b"one\r\nneedle\r\n")
    (project / "b").write_bytes("größe\nneedle ü\n".encode("latin-1"))
    (project / "c").write_bytes("größe\nneedle ü\n".encode("utf-16"))
    (project / "d").write_bytes(b"\xef\xbb\xbfneedle\n")
    (project / "e").write_bytes(b"needle \xff\xfe\n")
    found = done("grep", project, pattern="needle( .*)?$", context=0)
    texts = {m["file"]: m["content"] for m in found["matches"] if m["file"] in "acd"}
    assert texts == {"a": "needle", "c": "needle ü", "d": "needle"}
    again = done("grep", project, pattern="needle")
    assert [m["file"] for m in again["matches"]] == list("abcde")
    assert all(m["line_id"] for m in again["matches"])
    assert again["matches"][4]["content"] == "needle \\xff\\xfe"
    assert done("grep", project, pattern=r"needle\r$", path="a")["total"] == 1


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"pattern": "f(x)", "literal": True}, ["a.py", "src/c.py"]),
        ({"pattern": "f(x)", "literal": True, "ignore_case": True, "include": "*.{txt,md}"}, ["b.txt"]),
        ({"pattern": "f", "include": "src/*.py"}, ["src/c.py"]),
        ({"pattern": "f", "include": "*.py", "path": "src"}, ["src/c.py"]),
        ({"pattern": "^y"}, ["a"]),
        ({"pattern": "^y", "hidden": True}, [".hidden", "a"]),
        ({"pattern": "^y", "no_ignore": True}, ["a", "node_modules/a", "skipped"]),
        ({"pattern": "^y", "path": "node_modules"}, ["node_modules/a"]),
        # Our own index is never searched.
        ({"pattern": "^y|file_path", "hidden": True, "no_ignore": True}, [".hidden", "a", "node_modules/a", "skipped"]),
        ({"pattern": "file_path", "hidden": True, "no_ignore": True, "path": ".ai"}, []),
    ],
)
def test_which_files_are_searched(project, asked, found):
    files = dict.fromkeys((".hidden", "skipped", "node_modules/a", "a"), "y\ny\n")
    write(project, **{**files, "a.py": "f(x)\n", "b.txt": "F(X)\n", "src/c.py": "f(x)\n", ".gitignore": "skipped\n"})
    done("read", project, file_path="a")
    data = done("grep", project, **asked)
    assert sorted({one["file"] for one in data["matches"]}) == found
    assert done("grep", project, **asked, mode="files")["matches"] == [
        {"file": name, "count": 1 + (name in files)} for name in found
    ]
    if found == ["a"]:
        assert (data["truncated"], done("grep", project, **asked, limit=2)["truncated"]) == (False, False)
        assert done("grep", project, **asked, mode="count")["output"] == "a:2"
        assert "hidden=true" in done("grep", project, pattern="nothing")["output"]


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ({"pattern": "(a"}, "bad_pattern", "\n    (a\n    ^\nerror: unclosed group"),
        ({"pattern": "\0"}, "bad_pattern", ""),
        ({"pattern": "one\ntwo"}, "bad_pattern", "multiline=true"),
        ({"pattern": "(?=a)"}, "bad_pattern", "look-around"),
        ({"pattern": r"(a)\1"}, "bad_pattern", "backreferences"),
        ({"pattern": "needle", "path": "bin"}, "binary_file", "80 bytes"),
        ({"pattern": "a", "path": "nowhere"}, "file_not_found", ""),
        *[({"pattern": "a", "include": wrong}, "bad_glob", "") for wrong in ("[", "!*.py", "*.c, !*.h")],
        ({"pattern": "a", "mode": "other"}, "invalid_parameters", ""),
    ],
)
def test_refusals(project, asked, code, said):
    write(project, bin="needle\0\n" * 10)
    error = refused(code, "grep", project, **asked)
    assert (said in error, "`grep -P` in a shell" in error) == (True, said in ("look-around", "backreferences"))


def test_across_lines(project):
    write(project, a="one\ntwo\n\n\none\n", b="one\n")
    for form in ("none", "lid"):
        assert done("grep", project, pattern=r"o\n\n\n", multiline=True, line_ids=form)["matches"][0]["content"] == "two\n\n"
    match = done("grep", project, pattern=r"one\nt", multiline=True, context=0)["matches"][0]
    assert (match["line"], match["end_line"], match["content"]) == (1, 2, "one\ntwo")
    counted = done("grep", project, pattern="one", mode="count", limit=1)["output"]
    assert counted.startswith("a:2\n[tool_result: 1 of 2 files with 3 matches; 1 more omitted.")


def test_a_file_over_the_limit_has_no_ids_and_is_said_to(project):
    with open(project / "a", "w") as file:
        file.writelines(["needle here\n", *["x" * (1 << 20) + "\n"] * 65])
    data = done("grep", project, pattern="needle")
    assert data["matches"] == [{"file": "a", "line": 1, "line_id": None, "content": "needle here"}]
    assert data["output"] == "a:1:[no LID]:needle here\n[no line IDs for a: larger than 64 MB]"


def test_short_addresses_come_in_the_form_of_read_below_each_path_once(project):
    write(project, a="x\n\nx\n", b="y\nx\n")
    tools = rye.toolset(project, only=["grep", "edit_lines"])
    assert tools.call("grep", {"pattern": "x", "context": 0}) == "a:\n1\tx\n3\tx\nb:\n2\tx"
    write(project, c="x\ny\nx\n")
    # What stands around a match is marked, as grep marks it.
    assert tools.call("grep", {"pattern": "x", "path": "c", "context": 1}) == "1\tx\n2-\ty\n3\tx"
    tools.call("edit_lines", {"file_path": "b", "changes": [{"line_id": 2, "new_content": "z"}]})
    assert (project / "b").read_text() == "y\nz\n"


def test_too_many_matches_are_counted_by_folder_and_the_call_that_continues_is_short(project):
    for folder in ("src/a", "src/b", "docs"):
        write(project, **{f"{folder}/{number}.txt": "word\n" * (2 if folder == "src/a" else 1) for number in range(4)})
    tools = rye.toolset(project, only=["grep", "glob"])
    text = tools.call("grep", {"pattern": "word", "limit": 3})
    assert text.endswith(
        "\n[tool_result: 3 of 16 matches in 12 files (src/ 12 in 8 files, docs/ 4 in 4 files); 13 more omitted. "
        'Call grep(pattern="word", limit=3, offset=4) to see more, or narrow it with path or include.]'
    )
    inner = tools.call("grep", {"pattern": "word", "path": "src", "include": "*.txt", "limit": 3})
    assert (inner.count("["), "(src/a/ 8 in 4 files, src/b/ 4 in 4 files)" in inner) == (1, True)
    assert inner.endswith("to see more, or narrow it with a deeper path.]")
    within = tools.call("grep", {"pattern": "word", "path": "src/a", "include": "*.txt", "limit": 3})
    assert within.endswith("offset=4) to see more.]")
    found = tools.call("glob", {"pattern": "**/*.txt", "limit": 3})
    assert "3 of 12 files (src/ 8, docs/ 4); 9 more omitted" in found
    assert found.endswith("or narrow it with path or pattern.]")
    # Of many folders the first are named and the others counted.
    write(project, **{f"d{number}/a.txt": "words\n" * (10 - number) for number in range(9)})
    text = tools.call("grep", {"pattern": "words", "limit": 3})
    assert "(d0/ 10, d1/ 9, d2/ 8, d3/ 7, d4/ 6, d5/ 5, 3 more folders); 51 more omitted" in text
    # Nothing found says what was searched.
    assert tools.call("grep", {"pattern": "nope", "include": "*.ts"}).startswith("[no matches in ., files *.ts; hidden=true")
    assert r"\| is the sign itself here: a|b" in tools.call("grep", {"pattern": r"nope\|never"})
    assert tools.call("glob", {"pattern": "*.rs"}).startswith("[no files in . fit *.rs; hidden=true")
    # Control: a search that shows all says nothing of folders.
    assert "narrow" not in tools.call("grep", {"pattern": "word$", "path": "src"})


def test_nothing_is_cut_where_a_tenth_would_be_left_out(project):
    (project / "a.txt").write_text("word\n" * 110)
    for number in range(11):
        (project / f"{number}.md").write_text("other\n")
    tools = rye.toolset(project, only=["grep", "glob"])
    assert tools.call("grep", {"pattern": "word"}).count("word") == 110
    assert "[" not in tools.call("glob", {"pattern": "*.md", "limit": 10})
    assert "[" not in tools.call("grep", {"pattern": "other", "mode": "files", "limit": 10})
    # Controls: more than a tenth; and a call that is no model's has its limit.
    (project / "b.txt").write_text("word\n")
    assert "100 of 111 matches" in tools.call("grep", {"pattern": "word"})
    assert rye.execute("rye/file-system/grep", {"pattern": "other", "limit": 10}, project_path=project)["data"]["count"] == 10
