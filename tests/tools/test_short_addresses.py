"""Editing by short address: one identity with the ID, told apart from line numbers, loud when it is stale."""

import re
import shutil

import pytest
from tests.support.calling import call, done, refused

import rye
from rye.agents.toolset import toolset


@pytest.fixture
def file(project):
    path = project / "f.txt"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(1, 8)))
    return path


def shown(project, **more):
    return done("read", project, file_path="f.txt", line_ids="short", **more)["output"]


def edit(project, *changes, **more):
    return done("edit_lines", project, file_path="f.txt", changes=list(changes), line_ids="short", **more)


def test_a_read_prints_numbers_and_the_short_version(project, file):
    file.write_bytes(b"one\n\n\tthree\n")
    lines = shown(project).split("\n")
    assert lines[:3] == ["1\tone", "", "3\t\tthree"]
    assert lines[3].startswith("[version ")


def test_numbers_stay_with_their_lines(project, file):
    shown(project)
    answer = edit(project, {"after_line_id": 2, "new_content": "new"})
    assert "8\tnew" in answer["output"]
    edit(project, {"line_id": "5", "new_content": "five"}, {"line_id": 8, "new_content": "NEW"})
    assert file.read_bytes() == b"line 1\nline 2\nNEW\nline 3\nline 4\nfive\nline 6\nline 7\n"


def test_both_forms_name_one_line(project, file):
    shown(project)
    lid = done("read", project, file_path="f.txt")["output"].split("\n")[3][5:11]
    edit(project, {"start_line_id": 3, "end_line_id": lid, "new_content": "x"})
    assert file.read_bytes().split(b"\n")[2:4] == [b"x", b"line 5"]


def test_a_number_that_was_never_shown_is_refused(project, file):
    done("read", project, file_path="f.txt")
    error = refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[{"line_id": 3, "new_content": "x"}])
    assert "never shown" in error
    before = file.read_bytes()
    refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[{"after_line_id": 3, "new_content": "x"}])
    assert file.read_bytes() == before


def test_an_old_number_is_never_another_line(project, file):
    shown(project)
    edit(project, {"line_id": 3, "new_content": "THREE"})
    error = refused(
        "invalid_line_id",
        "edit_lines",
        project,
        file_path="f.txt",
        changes=[{"line_id": 3, "new_content": "x"}],
        line_ids="short",
    )
    assert "was replaced" in error
    assert "8\tTHREE" in error


def test_after_a_lost_cache_the_old_numbers_are_unknown(project, file):
    shown(project)
    shutil.rmtree(project / ".ai" / "cache")
    refused("no_index", "edit_lines", project, file_path="f.txt", changes=[{"line_id": 3, "new_content": "x"}])
    file.write_bytes(b"new first\n" + file.read_bytes())
    letter = re.match(r"1([hj])\tnew first\n", shown(project))[1]
    error = refused("invalid_line_id", "edit_lines", project, file_path="f.txt", changes=[{"line_id": 3, "new_content": "x"}])
    assert "no line has the address 3" in error
    edit(project, {"line_id": f"3{letter.upper()}", "new_content": "x"})
    assert file.read_bytes().split(b"\n")[2] == b"x"


def test_after_undo_and_redo_the_numbers_come_back(project, file):
    shown(project)
    edit(project, {"start_line_id": 2, "end_line_id": 4, "new_content": "x"})
    done("undo", project)
    edit(project, {"line_id": 3, "new_content": "three"})
    done("undo", project)
    done("write", project, file_path="f.txt", content="other\n")
    done("undo", project)
    assert [line.partition("\t")[0] for line in shown(project).split("\n")[:7]] == list("1234567")


def test_a_line_that_another_program_changed_is_refused_with_its_text(project, file):
    shown(project)
    file.write_bytes(b"top\n" + file.read_bytes().replace(b"line 3", b"LINE 3"))
    change = {"changes": [{"line_id": 3, "new_content": "x"}], "line_ids": "short"}
    error = refused("stale_file", "edit_lines", project, file_path="f.txt", **change)
    assert "LINE 3" in error
    error = refused("invalid_line_id", "edit_lines", project, file_path="f.txt", on_stale="rebase", **change)
    assert "LINE 3" in error
    edit(project, {"line_id": 5, "new_content": "five"}, on_stale="rebase")
    assert file.read_bytes().split(b"\n")[5] == b"five"


def test_a_version_holds_the_edit_to_that_view(project, file):
    version = shown(project).rpartition("[version ")[2].rstrip("]")
    edit(project, {"line_id": 2, "new_content": "two"})
    refused(
        "wrong_version", "edit_lines", project, file_path="f.txt", version=version, changes=[{"line_id": 4, "new_content": "x"}]
    )
    edit(project, {"line_id": 4, "new_content": "four"}, version=version, on_stale="rebase")
    change = {"changes": [{"line_id": 6, "new_content": "x"}], "line_ids": "short"}
    error = refused("wrong_version", "edit_lines", project, file_path="f.txt", version="abcdef", on_stale="rebase", **change)
    assert "6\tline 6" in error


def test_models_get_the_short_form_and_items_the_ids(project, file):
    tools = toolset(project, ["rye/file-system", "rye/primary-tools"])
    assert tools.call("read", {"file_path": "f.txt"}).startswith("1\tline 1\n")
    assert tools.call("read", {"file_path": "f.txt", "line_ids": "lid"}).startswith("[LID:")
    inner = {"item_type": "tool", "item_id": "rye/file-system/read", "parameters": {"file_path": "f.txt"}}
    assert "[LID:" in tools.call("rye_execute", inner)
    assert rye.execute("rye/file-system/read", {"file_path": "f.txt"}, project_path=project)["data"]["output"].startswith(
        "[LID:"
    )
    listed = {offer.name: offer.parameters["properties"] for offer in tools.offers}
    assert listed["read"]["line_ids"]["default"] == "short"
    assert listed["edit_lines"]["on_stale"]["default"] == "rebase"
    file.write_bytes(b"top\n" + file.read_bytes())
    answer = tools.call("edit_lines", {"file_path": "f.txt", "changes": [{"line_id": 2, "new_content": "two"}]})
    assert "---" not in answer
    assert answer.startswith("1\tline 1\n9\ttwo\n3\tline 3\n[version ")


@pytest.mark.parametrize("codec", ["utf-16", "utf-8"])
def test_twins_keep_apart(project, codec):
    (project / "f.txt").write_bytes("same\r\nsame\r\nsame\r\n".encode(codec))
    shown(project)
    edit(project, {"line_id": 2, "new_content": "other"})
    assert (project / "f.txt").read_bytes().decode(codec) == "same\r\nother\r\nsame\r\n"
    data = call("edit_lines", project, file_path="f.txt", changes=[{"line_id": 2, "new_content": "x"}])
    assert data["code"] == "invalid_line_id"
