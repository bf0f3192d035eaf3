"""What is remembered of a view: where, how, and what becomes of a memory that is gone, damaged, hostile or in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rye
from rye.toolkit import view


@pytest.fixture
def file(project):
    (project / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 424)))
    return project


def first(project):
    return view.scroll(str(project), "a.txt")["start_line"]


def test_the_state_lies_in_the_project_under_its_own_gitignore(file):
    subprocess.run(["git", "init", "-q"], cwd=file, check=True)
    view.open_chunk(str(file), "a.txt", line=200)
    state = json.loads((file / ".ragix/state.json").read_text())
    assert state == {"format": 1, "views": {"a.txt": {"start_line": 150, "chunk_size": 100, "overlap": 2}}}
    assert (file / ".ragix/.gitignore").read_text() == "*\n"
    said = subprocess.run(["git", "status", "--short"], cwd=file, capture_output=True, text=True, check=True).stdout
    assert ".ragix" not in said
    assert sorted(os.listdir(file / ".ragix")) == [".gitignore", "state.json"]


def test_it_lasts_from_one_process_to_the_next(file):
    view.open_chunk(str(file), "a.txt", line=200)
    code = "import sys; from rye.toolkit import view; print(view.scroll(sys.argv[1], 'a.txt')['start_line'])"
    env = {**os.environ, "PYTHONPATH": str(Path(rye.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code, file], env=env, capture_output=True, check=True).stdout == b"248\n"


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"null", b"\xff", b'{"format": 2}', b'{"format": 1, "views": []}', b'{"format": 1, "views": {"a.txt": 7}}',
        b'{"format": 1, "views": {"a.txt": {"start_line": "x", "chunk_size": 1}}}',
        b'{"format": 1, "views": {"a.txt": {"start_line": -3, "chunk_size": 100}}}',
        b'{"format": 1, "views": {"a.txt": {"start_line": true, "chunk_size": 100}}}',
        b'{"format": 1, "views": {"a.txt": {"start_line": 1e99, "chunk_size": 100}}}',
        b"[" * 100_000, b"x" * (2 << 20),
    ],
)  # fmt: skip
def test_a_damaged_state_counts_as_none_and_heals(file, damage):
    view.open_chunk(str(file), "a.txt", line=200)
    (file / ".ragix/state.json").write_bytes(damage)
    assert first(file) == 1
    assert first(file) == 99


def test_control_an_intact_state_is_used(file):
    view.open_chunk(str(file), "a.txt", line=200)
    assert first(file) == 248


def test_it_is_safe_to_delete(file):
    import shutil

    view.open_chunk(str(file), "a.txt", line=200)
    shutil.rmtree(file / ".ragix")
    assert first(file) == 1
    assert first(file) == 99


@pytest.mark.parametrize("name", [".ragix", ".ragix/state.json"])
def test_a_link_in_its_place_is_not_followed(file, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "state.json").write_text("{}")
    place = file / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if name == ".ragix" else outside / "state.json")
    assert view.open_chunk(str(file), "a.txt")["success"]
    assert view.scroll(str(file), "a.txt")["success"]
    assert sorted(os.listdir(outside)) == ["state.json"]
    assert (outside / "state.json").read_text() == "{}"


def test_a_file_in_its_place_is_no_obstacle(file):
    (file / ".ragix").write_text("mine\n")
    assert view.open_chunk(str(file), "a.txt")["success"]
    assert (file / ".ragix").read_text() == "mine\n"


def test_only_the_last_200_files_are_remembered(file):
    for number in range(205):
        (file / f"f{number}").write_text("x\n")
        view.open_chunk(str(file), f"f{number}")
    names = [*json.loads((file / ".ragix/state.json").read_text())["views"]]
    assert (len(names), names[0], names[-1]) == (200, "f5", "f204")


def test_views_that_are_remembered_side_by_side_are_all_kept(file):
    for number in range(12):
        (file / f"f{number}").write_text("x\n" * 300)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: view.open_chunk(str(file), f"f{n}", line=200), range(12)))
    assert len(json.loads((file / ".ragix/state.json").read_text())["views"]) == 12
