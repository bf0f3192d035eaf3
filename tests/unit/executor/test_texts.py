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


def test_knowledge_is_context(here):
    answer = rye.execute("k/apples", item_type="knowledge", project_path=here)
    assert (answer["status"], answer["type"], answer["item"]["space"]) == ("success", "knowledge", "project")
    assert answer["data"]["output"] == "Plant the tree.\nWater it."
    assert answer["data"]["title"] == "Apples"
    assert answer["data"]["tags"] == ["fruit"]
    assert answer["chain"][0]["integrity"] == answer["item"]["digest"]
    assert "context" in answer["data"]["instructions"]


def test_knowledge_takes_no_parameters(here):
    answer = rye.execute("k/apples", {"x": 1}, item_type="knowledge", project_path=here)
    assert (answer["status"], answer["code"]) == ("error", "invalid_parameters")


def test_a_directive_is_instructions_with_its_inputs(here):
    answer = rye.execute("team/ops/release", {"tag": "v1"}, item_type="directive", project_path=here)
    assert answer["status"] == "success", answer
    assert "tag v1, 3 times" in answer["data"]["output"]
    assert answer["data"]["inputs"] == {"tag": "v1", "count": 3}
    assert answer["data"]["unfilled"] == ["notes", "other"]
    assert answer["item"]["version"] == "1.0.0"


def test_wrong_inputs_name_what_is_declared(here):
    answer = rye.execute("team/ops/release", {"tug": "v1"}, item_type="directive", project_path=here)
    assert answer["code"] == "invalid_parameters"
    assert "unknown parameter 'tug'" in answer["error"]
    assert '"tag" is a required property' in answer["error"]
    assert answer["details"]["declared_inputs"][0]["name"] == "tag"


def test_a_dry_run_verifies_and_validates(here):
    answer = rye.execute("team/ops/release", {"tag": "v1"}, item_type="directive", project_path=here, dry_run=True)
    assert (answer["status"], answer["data"]) == ("validation_passed", {"parameters": {"tag": "v1", "count": 3}})
    path = here / ".ai/knowledge/k/apples.md"
    path.write_bytes(path.read_bytes() + b"x")
    assert rye.execute("k/apples", item_type="knowledge", project_path=here, dry_run=True)["code"] == "tampered"


def test_a_directive_under_another_name_or_category_is_misplaced(here):
    raw = (here / ".ai/directives/team/ops/release.md").read_bytes()
    for item_id in ("team/ops/other", "team/release"):
        put(here, f"directives/{item_id}.md", raw)
        assert rye.execute(item_id, {"tag": "x"}, item_type="directive", project_path=here)["code"] == "misplaced"


def test_a_long_entry_is_cut_at_a_line_and_names_the_call_for_the_rest(here):
    put_entry(here, "k/long", "Long", "\n".join(f"line {n}" for n in range(9_000)))
    answer = rye.execute("k/long", item_type="knowledge", project_path=here, options=CallOptions(max_output_bytes=5_000))
    data = answer["data"]
    assert data["truncated"]
    assert len(data["output"].encode()) <= 5_000
    assert f'Call rye_load(item_type="knowledge", item_id="k/long", offset={data["next_offset"]})' in data["output"]
    more = rye.execute(
        "rye/primary-tools/rye_load", {"item_type": "knowledge", "item_id": "k/long", "offset": 9_000}, project_path=here
    )["data"]
    assert more["total_lines"] >= 9_000


@pytest.mark.slow
def test_on_the_command_line(here):
    done = run("execute", "k/apples", "--type", "knowledge", cwd=here)
    assert (done.returncode, done.stdout) == (0, b"Plant the tree.\nWater it.\n")
    done = run("execute", "team/ops/release", "--type", "directive", "tag=v2", "count=5", cwd=here)
    assert b"tag v2, 5 times" in done.stdout
    assert run("execute", "team/ops/release", "--type", "directive", cwd=here).returncode == 2
    assert run("execute", "k/none", "--type", "knowledge", cwd=here).returncode == 2
