"""Executing knowledge gives context, executing a directive gives instructions; both in the shape of a tool's answer."""

from __future__ import annotations

import pytest

import rye
from rye.call.context import CallOptions
from support.in_process import rye as run
from support.signed_tools import MINE, put, signed, trust_key
from unit.catalog.test_search import put_entry
from unit.items.test_directives import TEXT


@pytest.fixture
def here(project):
    put_entry(project, "k/apples", "Apples", "Plant the tree.\nWater it.", tags=["fruit"])
    trust_key()
    put(project, "directives/team/ops/release.md", signed(TEXT.encode(), MINE, "directive", ".md"))
    return project


def call(project, item_id, item_type, parameters=None, **options):
    return rye.execute(item_id, parameters, item_type=item_type, project_path=project, **options)


def test_knowledge_is_context_and_takes_no_parameters(here):
    answer = call(here, "k/apples", "knowledge")
    assert (answer["status"], answer["type"], answer["item"]["space"]) == ("success", "knowledge", "project")
    found = [answer["data"][name] for name in ("output", "title", "tags")]
    assert found == ["Plant the tree.\nWater it.", "Apples", ["fruit"]]
    assert answer["chain"][0]["integrity"] == answer["item"]["digest"]
    assert "context" in answer["data"]["instructions"]
    assert call(here, "k/apples", "knowledge", {"x": 1})["code"] == "invalid_parameters"


def test_a_directive_is_instructions_with_its_inputs_or_names_what_is_declared(here):
    answer = call(here, "team/ops/release", "directive", {"tag": "v1"})
    assert answer["status"] == "success", answer
    assert "tag v1, 3 times" in answer["data"]["output"]
    assert answer["data"]["inputs"] == {"tag": "v1", "count": 3}
    assert answer["data"]["unfilled"] == ["notes", "other"]
    assert answer["item"]["version"] == "1.0.0"
    answer = call(here, "team/ops/release", "directive", {"tug": "v1"})
    assert answer["code"] == "invalid_parameters"
    assert "unknown parameter 'tug'" in answer["error"]
    assert '"tag" is a required property' in answer["error"]
    assert answer["details"]["declared_inputs"][0]["name"] == "tag"


def test_a_dry_run_verifies_and_validates(here):
    answer = call(here, "team/ops/release", "directive", {"tag": "v1"}, dry_run=True)
    assert (answer["status"], answer["data"]) == ("validation_passed", {"parameters": {"tag": "v1", "count": 3}})
    path = here / ".ai/knowledge/k/apples.md"
    path.write_bytes(path.read_bytes() + b"x")
    assert call(here, "k/apples", "knowledge", dry_run=True)["code"] == "tampered"
    # A directive under another name or category is misplaced.
    raw = (here / ".ai/directives/team/ops/release.md").read_bytes()
    for item_id in ("team/ops/other", "team/release"):
        put(here, f"directives/{item_id}.md", raw)
        assert call(here, item_id, "directive", {"tag": "x"})["code"] == "misplaced"


def test_a_long_entry_is_cut_at_a_line_and_names_the_call_for_the_rest(here):
    put_entry(here, "k/long", "Long", "\n".join(f"line {n}" for n in range(9_000)))
    data = call(here, "k/long", "knowledge", options=CallOptions(max_output_bytes=5_000))["data"]
    assert data["truncated"]
    assert len(data["output"].encode()) <= 5_000
    assert f'Call rye_load(item_type="knowledge", item_id="k/long", offset={data["next_offset"]})' in data["output"]
    rest = {"item_type": "knowledge", "item_id": "k/long", "offset": 9_000}
    assert call(here, "rye/primary-tools/rye_load", "tool", rest)["data"]["total_lines"] >= 9_000


@pytest.mark.slow
def test_on_the_command_line(here):
    done = run("execute", "k/apples", "--type", "knowledge", cwd=here)
    assert (done.returncode, done.stdout) == (0, b"Plant the tree.\nWater it.\n")
    done = run("execute", "team/ops/release", "--type", "directive", "tag=v2", "count=5", cwd=here)
    assert b"tag v2, 5 times" in done.stdout
    assert run("execute", "team/ops/release", "--type", "directive", cwd=here).returncode == 2
    assert run("execute", "k/none", "--type", "knowledge", cwd=here).returncode == 2
