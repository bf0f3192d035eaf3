"""The tool `rye/registry/registry`: an agent looks and pulls; what others see, and trust, is for a person."""

import json

import pytest

import rye
from rye.registry import push as registry_push
from rye.registry.oci import store as stores
from support.oci_server import put_items
from support.signed_tools import put, put_tool


def call(project, **parameters):
    return rye.execute("rye/registry/registry", parameters, project_path=project)


@pytest.fixture
def filled(project, tmp_path, user_space):
    """A project, and a registry that is the user's default one, with three tools that the project lacks."""
    source = tmp_path / "source"
    source.mkdir()
    ids = put_items(source, 3)
    registry_push.push(stores.RegistryTarget(str(source), str(tmp_path / "registry")), "tool", ids)
    put(user_space, "config/rye.yaml", json.dumps({"registry": {"default": str(tmp_path / "registry")}}).encode())
    return project


def test_an_agent_searches_inspects_pulls_and_runs(filled):
    found = call(filled, action="search", query="t001")["data"]
    assert (found["results"][0]["item_id"], "my/many/t001:1.2.3" in found["output"]) == ("my/many/t001", True)
    assert call(filled, action="list", limit=2)["data"]["truncated"] is True
    assert call(filled, action="inspect", reference="my/many/t001")["data"]["verdict"] == "valid"
    assert call(filled, action="verify", reference="my/many/t001")["status"] == "success"
    assert call(filled, action="pull", reference="my/many/t001")["status"] == "success"
    assert rye.execute("my/many/t001", {}, project_path=filled)["status"] == "success"
    assert rye.execute("rye/file-system/undo", {}, project_path=filled)["status"] == "success"
    assert not (filled / ".ai/tools/my/many/t001.py").exists()


def test_an_agent_neither_pushes_nor_yanks_unless_its_user_says_so(filled, user_space, tmp_path):
    put_tool(filled, "my/own/tool")
    for parameters in ({"action": "push", "reference": "my/own/tool"}, {"action": "yank", "reference": "my/many/t001:1.2.3"}):
        assert call(filled, **parameters)["code"] == "needs_person"
    settings = {"registry": {"default": str(tmp_path / "registry"), "agents": "allow"}}
    put(user_space, "config/rye.yaml", json.dumps(settings).encode())
    assert call(filled, action="push", reference="my/own/tool")["status"] == "success"
    assert call(filled, action="yank", reference="my/many/t001:1.2.3", reason="old")["status"] == "success"
    assert "was yanked" in call(filled, action="verify", reference="my/many/t001:1.2.3")["data"]["warnings"][0]


def test_an_agent_asks_no_registry_but_the_users(filled):
    for parameters in (
        {"action": "list", "registry": "/etc"},
        {"action": "pull", "reference": "oci://169.254.169.254/my/a/b"},
        {"action": "pull", "reference": "my/a/b", "registry": "oci://localhost:1"},
    ):
        assert call(filled, **parameters)["code"] == "registry_not_allowed"
    assert call(filled, action="pull")["code"] == "bad_parameters"
    assert call(filled, action="pull", reference="my/many/none")["code"] == "not_in_registry"
