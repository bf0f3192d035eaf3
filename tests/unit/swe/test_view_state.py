"""What is remembered of a view: where, how, and what becomes of a memory that is gone, damaged, hostile or in the way."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from rye.workspace import seals
from rye.workspace.workspace import Workspace
from support.calling import call


@pytest.fixture
def file(project):
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 424)))
    return project


def open_chunk(project, **where):
    return call("rye/swe/open_file_chunk", project, path="a.txt", **where)


def first(project):
    return call("rye/swe/scroll_file", project, path="a.txt")["start_line"]


def test_the_state_lies_in_the_project_under_its_own_gitignore(file):
    subprocess.run(["git", "init", "-q"], cwd=file, check=True)
    open_chunk(file, line=200)
    state = json.loads((file / ".ragix/state.json").read_text())
    assert re.fullmatch("[0-9a-f]{16}-[0-9a-f]{64}", state.pop("seal"))
    (shown,) = state["views"]["a.txt"].pop("shown")
    assert (shown[0], len(shown[1])) == (150, 100 * 8)
    assert state == {"format": 1, "views": {"a.txt": {"start_line": 150, "chunk_size": 100, "overlap": 2}}}
    assert (file / ".ragix/.gitignore").read_text() == "*\n"
    said = subprocess.run(["git", "status", "--short"], cwd=file, capture_output=True, text=True, check=True).stdout
    assert ".ragix" not in said
    assert sorted(os.listdir(file / ".ragix")) == [".gitignore", "state.json"]


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"x" * (2 << 20)),
        *(b'{"format": 2}', b'{"format": 1, "views": []}', b'{"format": 1, "views": {"a.txt": 7}}'),
        None,
    ],
)
def test_a_damaged_state_counts_as_none_and_heals(file, damage):
    with Workspace(str(file)) as ws:
        key = seals.secret(ws)
    for raw in (damage, None if damage is None else seals.sealed(key, "state", damage[1:])):
        open_chunk(file, line=200)
        if raw is None:
            shutil.rmtree(file / ".ragix")
        else:
            (file / ".ragix/state.json").write_bytes(raw)
        assert (first(file), first(file)) == (1, 99)
    # Control: an intact one is used.
    open_chunk(file, line=200)
    assert first(file) == 248


def test_a_state_without_the_projects_seal_counts_as_none(file, monkeypatch):
    open_chunk(file, line=200)
    forged = {"format": 1, "views": {"a.txt": {"start_line": 150, "chunk_size": 100}}}
    (file / ".ragix/state.json").write_text(json.dumps(forged))
    assert first(file) == 1
    # The control: where no seal is asked for, the forged one is believed.
    (file / ".ragix/state.json").write_text(json.dumps(forged))
    monkeypatch.setattr(seals, "unsealed", lambda *words: json.loads(words[-1]))
    assert first(file) == 248


@pytest.mark.parametrize("name", [".ragix", ".ragix/state.json"])
def test_a_link_in_its_place_is_not_followed(file, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "state.json").write_text("{}")
    place = file / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if name == ".ragix" else outside / "state.json")
    assert open_chunk(file)["success"]
    assert call("rye/swe/scroll_file", file, path="a.txt")["success"]
    assert sorted(os.listdir(outside)) == ["state.json"]
    assert (outside / "state.json").read_text() == "{}"


def test_a_file_in_its_place_is_no_obstacle(file):
    (file / ".ragix").write_text("mine\n")
    assert open_chunk(file)["success"]
    assert (file / ".ragix").read_text() == "mine\n"


def test_only_the_last_200_files_are_remembered(file):
    for number in range(205):
        (file / f"f{number}").write_text("x\n")
        call("rye/swe/open_file_chunk", file, path=f"f{number}")
    names = [*json.loads((file / ".ragix/state.json").read_text())["views"]]
    assert (len(names), names[0], names[-1]) == (200, "f5", "f204")


def test_views_that_are_remembered_side_by_side_are_all_kept(file):
    for number in range(12):
        (file / f"f{number}").write_text("x\n" * 300)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: call("rye/swe/open_file_chunk", file, path=f"f{n}", line=200), range(12)))
    assert len(json.loads((file / ".ragix/state.json").read_text())["views"]) == 12
