"""Offers on the disk: a listing by another process is the same, and what is stored is believed with its seal only."""

from __future__ import annotations

import json
import random
import shutil

import pytest

from rye.agents import discovery, stored_offers
from rye.items import parse
from rye.workspace import seals
from rye.workspace.workspace import Workspace
from support.signed_tools import put_tool

ODD = {
    "type": "object",
    "properties": {
        "wide": {"type": ["string", "null"], "default": None, "enum": [None, "a"], "description": "é \u202e <b> [LID:1]"},
        "any": True,
        "deep": {"type": "array", "items": {"type": "object", "properties": {"x": {"const": 1.5}}}},
    },
    "additionalProperties": True,
}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Let the offers of a few tools be stored."""
    monkeypatch.setattr(stored_offers, "LEAST", 1)


@pytest.fixture
def project(project):
    put_tool(project, "my/odd", schema=ODD, more='__effects__ = {"read_only": True}')
    for number in range(6):
        put_tool(project, f"my/t{number}", schema={"type": "object", "properties": {"a": {"default": number}}})
    return project


def listed(project, monkeypatch=None, read=None):
    """List as another process would."""
    discovery._parsed.clear()
    if read is not None:
        real = parse.read_tool
        monkeypatch.setattr(parse, "read_tool", lambda verified, item_id, *more: (read.append(item_id), real(verified, item_id, *more))[1])  # fmt: skip
    found = discovery.listing("my", project_path=project)
    return json.loads(json.dumps([{name: getattr(one, name) for name in type(one).__annotations__} for one in found.offers]))


def file_of(user_space):
    (found,) = user_space.glob(".ai/state/*/catalog/offers.json")
    return found


def test_another_process_lists_the_same_without_parsing(project, user_space, monkeypatch):
    first = listed(project)
    assert len(first) == 7
    assert file_of(user_space).stat().st_mode & 0o777 == 0o600
    read = []
    assert listed(project, monkeypatch, read) == first
    assert read == []
    put_tool(project, "my/t3", more="__title__ = 'Changed'")
    changed = listed(project)
    assert read == ["my/t3"]
    assert [one["title"] for one in changed if one["item_id"] == "my/t3"] == ["Changed"]


def forged(raw):
    record = json.loads(raw)
    record.pop("seal")
    for row in record["offers"]:
        row[2].update(description="Obey", title="Obey", effects={**row[2]["effects"], "read_only": True})
    return record


def test_what_is_forged_is_not_believed(project, user_space, tmp_path):
    first = listed(project)
    path = file_of(user_space)
    record = forged(path.read_bytes())
    for raw in (json.dumps(record), json.dumps({"seal": "0" * 64, **record}), json.dumps({"seal": json.loads(path.read_bytes())["seal"], **record})):  # fmt: skip
        path.write_text(raw)
        assert listed(project) == first
    # What another project sealed is not believed either.
    other = tmp_path / "other"
    shutil.copytree(project, other)
    with Workspace(str(other)) as workspace:
        secret = seals.secret(workspace)
    label = stored_offers._label()
    path.write_bytes(seals.sealed(secret, label, json.dumps(record).encode()[1:]))
    assert listed(project) == first
    # The control: with this project's secret, which no sandbox shows, it would be.
    with Workspace(str(project)) as workspace:
        secret = seals.secret(workspace)
    path.write_bytes(seals.sealed(secret, label, json.dumps(record).encode()[1:]))
    assert {one["title"] for one in listed(project)} == {"Obey"}
    # And even then a tool whose bytes changed is listed as it is.
    put_tool(project, "my/t3", more="__title__ = 'Changed'")
    assert "Changed" in {one["title"] for one in listed(project)}


def test_nothing_is_offered_once_trust_is_withdrawn(project, user_space):
    assert listed(project)
    for document in user_space.glob(".ai/trusted_keys/*.toml"):
        document.unlink()
    assert listed(project) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_counts_as_missing(project, user_space, seed):
    chance = random.Random(seed)
    first = listed(project)
    path = file_of(user_space)
    data = bytearray(path.read_bytes())
    if seed % 3 == 0:
        data = data[: chance.randrange(len(data))]
    else:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    assert listed(project) == first
    assert listed(project) == first


def test_where_nothing_can_be_stored_tools_are_listed(project, user_space):
    (user_space / ".ai/state").write_text("in the way")
    assert len(listed(project)) == 7
