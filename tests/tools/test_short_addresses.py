"""Editing by short address: one identity with the ID, told apart from line numbers, loud when it is stale."""

import re
import shutil

import pytest

import rye
from rye.toolkit import view_lines
from support.calling import call, done, ids, refused
from support.stories import play


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(1, 8)))
    return path


def shown(project, **more):
    return done("read", project, file_path="f.txt", line_ids="short", **more)["output"]


def edit(project, *changes, **more):
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), line_ids="short", **more)


def no(code, project, *changes, **more):
    return refused(code, "edit_lines", project, file_path="f.txt", changes=list(changes), **more)


SEVEN = "".join(f"line {number}\n" for number in range(1, 8))
READ = ("read",)
CUTS = ("x… [line shortened: 2,000 of 3,100 characters shown]", "[1,177 characters before]… x", "x …[60 characters after]")
STORIES = {
    "a read prints numbers": [("others", "one\n\n\tthree\n"), READ, ("says", "1\tone\n\n3\t\tthree\n[version ")],
    "both forms name one line": [
        ("others", SEVEN),
        READ,
        ("ids",),
        ("edit", [{"start_line_id": 3, "end_line_id": "<4>", "new_content": "x"}]),
        ("undo",),
        ("edit", ["3-<4>|x"]),
    ],
    "a number that was never shown is refused": [
        ("others", SEVEN),
        ("ids",),
        ("not", "unseen_lines", ["3|x"], "shown by its ID only", "[LID:", "Correct the", {"line_ids": "lid"}),
        ("not", "unseen_lines", [{"after_line_id": 3, "new_content": "x"}]),
    ],
    "an old number": [("others", SEVEN), READ, ("edit", ["3|T"]), ("not", "invalid_line_id", ["3|x"], "was replaced", "8\tT")],
    "what stands beside a change can be edited after it": [
        ("others", SEVEN),
        READ,
        ("edit", ["3|x\ny", "5 delete"]),
        ("edit", ["2-4|one line"]),
        ("is", "line 1\none line\nline 6\nline 7\n"),
    ],
    "many": [("others", "wo\n\n" * 500), ("edit", ["find 500|wo|ab"], {"diff": False}), ("not", "unseen_lines", ["1500|x"])],
    **{
        f"text: {looks!r}": [("others", SEVEN), READ, ("edit", [f"1|{looks}"]), ("is", SEVEN.replace("line 1", looks))]
        for looks in ("404: not found", "2: two", "9\tnine", "  2\tx", "2  two")
    },
    "find counts lines, too": [("others", "a a\na\n"), ("edit", ["find 2|a|x"]), ("is", "x x\nx\n")],
    "numbers stay": [("others", "1\ta\n2\tb\n"), READ, ("edit", ["2|2\tB"]), ("is", "1\ta\n2\tB\n")],
    "a line is not cut": [
        ("others", "x" * 600 + "\n"),
        ("not", "text_count", ["find|x|y"], "500 of 600"),
        READ,
        *[("not", "pasted_ids", [f"1|{cut}"], "be lost") for cut in CUTS],
    ],
    "what only looks like a cut is written": [("others", "b\n"), READ, ("edit", [f"1|{CUTS[0]}"])],
    "what changed comes with the lines around it": [
        ("others", SEVEN),
        READ,
        ("edit", ["2+|new", "5 delete"]),
        ("read", {"changes_since": "<version>"}),
        ("says", "2\tline 2\n8\tnew\n3\tline 3\n4\tline 4\n-\tline 5\n6\tline 6\n[version "),
        ("read", {"changes_since": "[version <version>; 7 lines]"}),
        ("says", "[no changes since version "),
    ],
}


@pytest.mark.parametrize("name", STORIES)
def test_story(project, name):
    assert len(play(project, *STORIES[name]).get("output", "")) < 2_000


def test_after_a_lost_cache_the_old_numbers_are_unknown(project, file):
    shown(project)
    shutil.rmtree(project / ".ai" / "cache")
    no("no_index", project, "3|x")
    file.write_bytes(b"new first\n" + file.read_bytes())
    letter = re.match(r"1([hj])\tnew first\n", shown(project))[1]
    assert "no line has the address 3" in no("invalid_line_id", project, "3|x")
    edit(project, {"line_id": f"3{letter.upper()}", "new_content": "x"})
    assert file.read_bytes().split(b"\n")[2] == b"x"


def test_a_version_holds_the_edit_to_that_view(project, file):
    version = shown(project).rpartition("[version ")[2].rstrip("]")
    edit(project, {"line_id": 2, "new_content": "two"})
    no("wrong_version", project, "4|x", version=version)
    edit(project, {"line_id": 4, "new_content": "four"}, version=version, on_stale="rebase")
    assert "6\tline 6" in no("wrong_version", project, "6|x", version="abcdef", on_stale="rebase", line_ids="short")


def test_models_get_the_short_form_and_items_the_ids(project, file):
    tools = rye.toolset(project, ["rye/file-system", "rye/primary-tools"])
    assert tools.call("read", {"file_path": "f.txt"}).startswith("1\tline 1\n")
    assert tools.call("read", {"file_path": "f.txt", "line_ids": "lid"}).startswith("[LID:")
    inner = {"item_type": "tool", "item_id": "rye/file-system/read", "parameters": {"file_path": "f.txt"}}
    assert "[LID:" in tools.call("rye_execute", inner)
    assert done("read", project, file_path="f.txt")["output"].startswith("[LID:")
    listed = {offer.name: offer.parameters["properties"] for offer in tools.offers}
    assert (listed["read"]["line_ids"]["default"], listed["edit_lines"]["on_stale"]["default"]) == ("short", "rebase")
    file.write_bytes(b"top\n" + file.read_bytes())
    answer = tools.call("edit_lines", {"file_path": "f.txt", "changes": [{"line_id": 2, "new_content": "two"}]})
    assert "---" not in answer
    assert answer.startswith("2 -> 9\n[version ")


@pytest.mark.parametrize(("tool", "behind"), [("open_file_chunk", ": "), ("read_file_viewport", "  ")])
def test_the_views_by_number_show_both_forms(project, file, tool, behind):
    short = done(f"rye/swe/{tool}", project, path="f.txt", line_ids="short")["output"]
    assert f"3{behind}3\tline 3" in short
    assert "[LID:" in done(f"rye/swe/{tool}", project, path="f.txt", line_ids="lid")["output"]
    plain = done(f"rye/swe/{tool}", project, path="f.txt", line_ids="none")["output"]
    assert f"3{behind}line 3" in plain
    edit(project, {"line_id": 3, "new_content": "x"})
    done(f"rye/swe/{tool}", project, path="f.txt")
    answer = done("rye/swe/edit_range", project, path="f.txt", start_line=3, end_line=3, new_text="y", line_ids="short")
    assert "3: 9\ty" in answer["output"]
    assert "9\ty" in done("rye/swe/search_file", project, path="f.txt", pattern="y", line_ids="short")["output"]


def test_several_files_and_ranges_in_one_read(project, file):
    (project / "g.txt").write_text("one\ntwo\n")
    data = done("read", project, file_path="f.txt", limit=2, line_ids="short", more=["g.txt", ":6-5", "none.txt"])
    assert "\ng.txt:\n1\tone\n2\ttwo\n" in data["output"]
    assert "\nf.txt, from line 5:\n5\tline 5\n6\tline 6\n" in data["output"], "in either order"
    assert [part.get("code") for part in data["more"]] == [None, None, "file_not_found"]
    assert ("line 4" not in data["output"], data["output"][:15]) == (True, "f.txt:\n1\tline 1")
    done("edit_lines", project, file_path="g.txt", changes=["2|TWO"])
    edit(project, "6|six")
    no("unseen_lines", project, "4|never shown")


def test_ranges_of_one_file_have_one_heading_and_one_version(project, file):
    more = [":3-3", "f.txt:5-5", ":90-91", "f.txt:6-6"]
    output = done("read", project, file_path="f.txt:1-1", line_ids="short", more=more)["output"]
    lines = output.split("\n")
    assert lines[:6] == ["1\tline 1", "…", "3\tline 3", "…", "5\tline 5", lines[5]]
    assert lines[5].startswith("[version ")
    # What went wrong stands under its own heading; the next range begins anew.
    assert lines[6] == "f.txt, from line 90:"
    assert output.count("[version ") == 2


def test_one_review_shows_what_is_new_and_gone_in_several_files(project, file):
    (project / "g.txt").write_text("one\ntwo\n")
    versions = re.findall(r"version (\w+)", shown(project, more=["g.txt"]))
    edit(project, "1|ONE", "3-4 delete", "g.txt:2|TWO")
    output = shown(project, changes_since=" ".join(versions), more=["g.txt"])
    first, second = output.split("\ng.txt:\n")
    assert first.split("\n")[1:-1] == ["-\tline 1", "8\tONE", "2\tline 2", "-\tline 3", "-\tline 4", "5\tline 5"]
    assert second.split("\n")[:-1] == ["1\tone", "-\ttwo", "3\tTWO"]
    # With one version the other files are read as they are.
    assert "1\tone\n3\tTWO\n[version" in shown(project, changes_since=versions[0], more=["g.txt"])
    # What another program changed has no recorded text.
    file.write_bytes(file.read_bytes().replace(b"line 7\n", b""))
    assert "[gone: 1, 3-4, 7]" in shown(project, changes_since=versions[0])


def test_what_is_gone_is_bounded_and_named_where_its_text_is_unknown(project, file):
    file.write_text("".join(f"{'x' * 3_000} {number}\n" for number in range(400)))
    version = re.search(r"version (\w+)", shown(project, limit=1))[1]
    shown(project)
    file.write_text("one\n")
    assert len(shown(project, changes_since=version)) < 50_000


PASTED = "2\tline 2"


@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("write", {"file_path": "f.txt", "content": f"x\n{PASTED}\n"}),
        ("edit_lines", {"file_path": "f.txt", "changes": [{"line_id": 1, "new_content": PASTED}]}),
        ("edit_lines", {"file_path": "f.txt", "changes": [{"find": "line 1", "replace": PASTED}]}),
        ("rye/swe/edit_range", {"path": "f.txt", "start_line": 1, "end_line": 1, "new_text": PASTED}),
        ("rye/swe/insert_at", {"path": "f.txt", "line": 1, "new_text": PASTED}),
        ("rye/swe/edit_file", {"path": "f.txt", "old": "line 1", "new": PASTED}),
    ],
)
def test_pasted_addresses_are_refused_by_every_tool_that_writes(project, file, tool, parameters):
    # Control: where no view showed the address, the text is written as given.
    done("read", project, file_path="f.txt")
    if tool.startswith("rye/swe/"):
        done(tool, project, **parameters)
        done("undo", project)
        assert file.read_bytes().startswith(b"line 1\n")
    shown(project)
    assert "begins a line with 2" in refused("pasted_ids", tool, project, **parameters)
    assert file.read_bytes().startswith(b"line 1\n")


def test_a_new_syntax_error_is_told_with_its_address(project):
    path = project / "a.py"
    path.write_text("x = (1)\n")
    done("read", project, file_path="a.py", line_ids="short")
    asked = {"file_path": "a.py", "changes": ["1|x = (1\n"]}
    assert "never closed" in refused("syntax_error", "edit_lines", project, **asked, guard="refuse")
    assert path.read_text() == "x = (1)\n"
    output = done("edit_lines", project, **asked, line_ids="short")["output"]
    assert ("never closed" in output, "at address 2" in output) == (True, True)
    # An error that was there before is not told again.
    assert done("edit_lines", project, file_path="a.py", changes=["2+|# more"], line_ids="short")["warnings"] == []


def test_of_equal_lines_the_one_beside_a_change_of_others_is_shown_before_it_is_written_over(project):
    file = project / "f.txt"
    file.write_text("a\nend\nb\nend\nc\n")
    tools = rye.toolset(project, only=["read", "edit_lines"])
    tools.call("read", {"file_path": "f.txt"})
    file.write_text("a\nend\nB\nend\nc\n")
    assert "has the text of other lines" in tools.call("edit_lines", {"file_path": "f.txt", "changes": ["4|END"]})
    assert file.read_text() == "a\nend\nB\nend\nc\n"
    # What the refusal showed can be edited; a line whose text is its own never was refused.
    assert not tools.call("edit_lines", {"file_path": "f.txt", "changes": ["4|END"]}).startswith("Error")
    file.write_text(file.read_text().replace("B", "bb"))
    assert not tools.call("edit_lines", {"file_path": "f.txt", "changes": ["5|C"]}).startswith("Error")
    assert file.read_text() == "a\nend\nbb\nEND\nC\n"


def test_a_patch_tells_of_a_syntax_error_or_is_refused(project):
    new = {"createFiles": [{"path": "new.py", "content": "x = (\n"}]}
    for more, made in (({"guard": "refuse"}, False), ({}, True)):
        data = call("rye/workspace/workspace_write_patch", project, **more, **new)
        assert ("never closed" in str(data), data["success"], (project / "new.py").exists()) == (True, made, made)


WANDERING = "def f():\n    a = [\n        1\n    ]\n    return x\n\ndef g():\n    b = 2\n    return y\n"


@pytest.mark.parametrize(
    ("changes", "now"),
    [
        # One change deletes a line that another one writes: once its address went over.
        (["2-5|    return x", "8+|    b = [\n    ]"], "1 5 6 7 8 10 11 9"),
        (["5 delete", "9|    return x"], "1 2 3 4 6 7 8 10"),
        # Side by side, too.
        (["4|    return x", "5|    ]"], "1 2 3 10 11 6 7 8 9"),
        (["4+|    ]\n    )", "4 delete"], "1 2 3 10 11 5 6 7 8 9"),
        # What a change replaces by an equal line, white space aside, and what it moves, keeps its address.
        (["3-5|  1\n\n    ]\n    return z"], "1 2 3 10 4 11 6 7 8 9"),
        (["4 copy after 8", "4 delete"], "1 2 3 5 6 7 8 10 9"),
        ([{"find": "    ]\n", "replace": ""}, {"find": "b = 2", "replace": "b = [\n    ]"}], "1 2 3 5 6 7 10 11 9"),
    ],
)
def test_nothing_passes_from_one_change_to_another_but_by_move(project, changes, now):
    file = project / "f.txt"
    file.write_text(WANDERING)
    before = dict(zip(map(str, range(1, 10)), ids(project), strict=True))
    shown(project)
    done("edit_lines", project, file_path="f.txt", changes=changes, line_ids="short")
    found = view_lines(str(project), "f.txt", lambda document: document.shorts(0, document.count))
    assert " ".join(found) == now
    after = dict(zip(found, ids(project), strict=True))
    # Both views of the identity live and die together.
    assert {name for name in before.items() if name[0] in found} == {name for name in after.items() if int(name[0]) < 10}
    done("undo", project)
    assert view_lines(str(project), "f.txt", lambda document: document.shorts(0, document.count)) == [*before]
    assert file.read_text() == WANDERING


@pytest.mark.parametrize(
    ("moved", "keeps"),
    [
        ("    return x\n", False),
        ("    ]\n", False),
        ("\n", False),
        ("    raise NotImplementedError\n", True),
        ("    one = 1\n    ]\n    second = 2\n    third = one\n", True),
    ],
)
def test_a_line_that_others_moved_is_the_same_only_where_it_is_unmistakable(project, moved, keeps):
    file = project / "f.txt"
    file.write_text(f"first\n{moved}second\nthird\nfourth\n")
    count = moved.count("\n")
    shown(project)
    file.write_text(f"first\nsecond\nthird\nfourth\n{moved}")
    shown(project)
    found = view_lines(str(project), "f.txt", lambda document: document.shorts(4, 4 + count))
    assert (found == [str(at) for at in range(2, 2 + count)]) == keeps
    assert keeps or not {*found} & {str(at) for at in range(1, 5 + count)}


@pytest.mark.parametrize("form", ["short", "lid"])
@pytest.mark.parametrize("count", [50, 2_500])
@pytest.mark.parametrize(
    ("tool", "parameters"),
    [
        ("grep", {"pattern": "line 8$", "path": "f.txt"}),
        ("read", {"file_path": "f.txt", "offset": 8, "limit": 1}),
        ("edit_lines", {"file_path": "f.txt", "changes": [{"find": "line 8\n", "replace": "eight\nmore\n"}]}),
    ],
)
def test_a_line_that_was_never_shown_has_its_number_for_address(project, tool, parameters, count, form):
    file = project / "f.txt"
    file.write_text("".join(f"line {at}\n" for at in range(1, count + 1)))
    done(tool, project, **parameters, line_ids="short")
    if tool != "edit_lines":
        done("edit_lines", project, file_path="f.txt", changes=["8|eight\nmore"])
    for _ in range(2):
        error = no("unseen_lines", project, "30-33|x", line_ids="short")
        assert ("4 lines were never shown: 30-33.\n" in error, "\n30\tline 30\n" in error) == (True, True)
        assert 'Call read(file_path="f.txt:@30-33"); what' in error
    named = view_lines(str(project), "f.txt", lambda document: document.shorts(0, document.count))
    assert named == [*map(str, range(1, 8)), str(count + 1), str(count + 2), *map(str, range(9, count + 1))]
    # The same where another program wrote, and where the line is seen first in the other form.
    file.write_text("top\n" + file.read_text())
    done("read", project, file_path="f.txt", line_ids=form, offset=30, limit=4)
    assert shown(project, offset=32, limit=1).startswith("30\tline 30\n")
    edit(project, "30|thirty", on_stale="rebase")
    assert file.read_text().split("\n")[31] == "thirty"
    done("undo", project)
    assert shown(project, offset=32, limit=1).startswith("30\tline 30\n")


def test_a_range_is_read_by_addresses_as_they_are_printed(project, file):
    shown(project)
    edit(project, "2|two\nmore", "6+|new")
    # The lines now: 1 8 9 3 4 5 6 10 7.
    more = [":@10-7", "f.txt:@6", ":@4-9", ":@2", ":@99-100"]
    data = done("read", project, file_path="f.txt:@9-4", line_ids="short", more=more)
    first, second, third = "9\tmore\n3\tline 3\n4\tline 4", "10\tnew\n7\tline 7", "6\tline 6"
    assert data["output"].startswith(f"{first}\n…\n{second}\n…\n{third}\n[version ")
    assert [part.get("code") for part in data["more"]] == [None, None, *["invalid_line_id"] * 3]
    assert 'the other way round: ":@9-4"' in data["output"]
    assert "No line of f.txt has the address 2 now." in data["output"]
    done("edit_lines", project, file_path="f.txt", changes=["9-4|x"])
    lid = ids(project)[1]
    assert done("read", project, file_path=f"f.txt:@{lid}-{lid}")["output"].startswith(f"[LID:{lid}] two\n")


@pytest.mark.parametrize(
    ("window", "said"),
    [
        ("3-5", "[3-5 are line numbers; the addresses 3-5: "),
        ("9-12", "[9-12 are line numbers; the addresses 9-12: "),
        ("10-12", "offset 10 is past the end: f.txt has 9 line(s). 10-12 are line numbers; the addresses 10-12: "),
        # Nothing to say: the lines have the addresses of their numbers, or no line has them.
        ("1-2", ""),
        ("11-12", "Use an offset from 1 to 9"),
    ],
)
def test_a_range_of_line_numbers_that_are_addresses_of_other_lines_is_told(project, file, window, said):
    shown(project)
    edit(project, "2|two\nmore", "6+|new")
    data = call("read", project, file_path=f"f.txt:{window}", line_ids="short")
    text = data["output"] if data["success"] else data["error"]
    assert (said in text, "are line numbers" in text) == (True, "are line numbers" in said)
    if "are line numbers" in said:
        assert f'read(file_path="f.txt:@{window}")' in text
        assert text.count("\n") == text.rstrip().count("\n")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["2-3|two\nline 3\nx"], ["2-3 -> 8, 3, 9"]),
        (["+1|top", "7+|end", "4 delete"], ["+start -> 8", "4 deleted", "7+ -> 9"]),
        (["2-3 move after 5"], ["5+ -> 2-3"]),
        (["2 copy after 5"], ["5+ -> 8"]),
        # A seen line that `find` changed is known; one that was never seen is printed.
        (["find|line 4|FOUR"], ["4 -> 8"]),
        (["find|line 6|SIX"], ["8\tSIX"]),
        (["find|line 6|SIX", "1|ONE"], ["1 -> 8", "9\tSIX"]),
    ],
)
def test_a_receipt_names_the_new_addresses_and_repeats_nothing(project, file, changes, told):
    shown(project, limit=5, more=[":7-7"])
    before = file.read_bytes()
    *lines, last = edit(project, *changes, diff=False)["output"].split("\n")
    assert lines == told
    entry = re.fullmatch(r"\[version \w+; entry_id (\w{6})\]", last)[1]
    done("undo", project, entry_id=entry)
    assert file.read_bytes() == before
