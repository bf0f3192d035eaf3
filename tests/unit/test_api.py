"""The house's functions: what they take, and what they answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rye
from rye.errors import UsageError
from support.signed_tools import put

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((5,), {}),
        ((None,), {}),
        ((b"my/tool",), {}),
        (("my/tool",), {"item_type": 5}),
        (("my/tool",), {"project_path": 5}),
        (("my/tool",), {"project_path": b"/tmp"}),
        (("my/tool",), {"project_path": "a\0b"}),
    ],
)
def test_only_a_malformed_call_is_raised(args, options):
    with pytest.raises(UsageError) as caught:
        rye.execute(*args, **options)
    assert caught.value.code == "bad_call"
    assert caught.value.hint


def test_everything_else_is_an_answer(project):
    for item_id, parameters, options in (
        ("no/tool", {}, {}),
        ("../no", {}, {}),
        ("rye/file-system/read", [], {}),
        ("rye/file-system/read", "x", {}),
        ("rye/file-system/read", {"file_path": "gone"}, {}),
        ("rye/file-system/read", {}, {"project_path": project / "gone"}),
        ("rye/file-system/read", {}, {"project_path": "/proc/self"}),
        ("rye/file-system/read", {}, {"item_type": "knowledge"}),
        ("rye/core/runtimes/python_function_runtime", None, {}),
    ):
        response = rye.execute(item_id, parameters, **{"project_path": project, **options})
        assert response["status"] == "error"
        assert response["code"]
        assert response["error"]
        assert {"type", "item_id", "data", "chain", "metadata"} <= set(response)
    (project / "file").write_text("")
    for name in ("gone", "file"):
        assert rye.execute("rye/file-system/ls", {}, project_path=project / name)["code"] == "project_not_found"


def test_a_project_is_named_by_text_or_path_relative_or_absolute(project, monkeypatch):
    (project / "a.txt").write_bytes(b"one\n")
    monkeypatch.chdir(project.parent)
    for named in (str(project), project, "project", Path("project"), "./project/", "project/../project"):
        response = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=named)
        assert response["status"] == "success", named
    monkeypatch.chdir(project)
    assert rye.execute("rye/file-system/read", {"file_path": "a.txt"})["status"] == "success"
    assert rye.execute("rye/file-system/read", {"file_path": str(project / "a.txt")})["status"] == "success"


def test_a_project_whose_name_is_not_utf8_works(tmp_path):
    folder = os.fsencode(tmp_path) + b"/\xff\n name"
    os.mkdir(folder)
    with open(folder + b"/a.txt", "wb") as file:
        file.write(b"one\n")
    response = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=os.fsdecode(folder))
    assert response["status"] == "success"


def test_a_configuration_that_cannot_be_read_is_an_answer(project, user_space):
    put(user_space, "config/rye.yaml", b"log: [\n")
    response = rye.execute("rye/file-system/read", {"file_path": "a"}, project_path=project)
    assert response["code"] == "bad_config"
    assert str(user_space) in response["error"]


def test_verify_and_sign_want_targets_or_everything_and_a_space_that_is(project):
    for options in ({}, {"targets": ["x"], "everything": True}):
        with pytest.raises(UsageError) as caught:
            rye.verify(**options, project_path=project)
        assert caught.value.code == "bad_targets"
    with pytest.raises(UsageError) as caught:
        rye.verify(everything=True, space="moon", project_path=project)
    assert caught.value.code == "bad_space"
    rows = rye.verify(everything=True, space="system", project_path=project)
    assert len(rows) >= 5
    assert {row["verdict"] for row in rows} == {"valid"}
