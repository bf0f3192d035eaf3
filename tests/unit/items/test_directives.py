"""Executing knowledge gives context, a directive instructions: what of it is XML, what is text, and how inputs get into it."""

from xml.etree import ElementTree as ET

import pytest

import rye
from rye.call.context import CallOptions
from support.in_process import rye as run
from support.signed_tools import MINE, put, signed, trust_key
from unit.catalog.test_search import put_entry

TEXT = """<directive name="release" version="1.0.0">
  <metadata>
    <description>Make a release</description>
    <category>team/ops</category>
    <author>jo</author>
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions>
  </metadata>
  <context>Only on Fridays.</context>
  <inputs>
    <input name="tag" type="string" required="true">The tag</input>
    <input name="count" type="integer" default="3">How many</input>
    <input name="notes" type="array">Lines</input>
    <input name="dry" type="boolean">Only look</input>
  </inputs>
  <outputs><output name="url">Where it is</output></outputs>
  <process>
    <step name="one">if a < b && c: tag {input:tag}, {input:count} times; {input:dry?}|{input:dry:false}|{input:dry|no}</step>
    <step name="two">${inputs.notes} {input:other} <inputs><input name="not-an-input"/></inputs></step>
  </process>
</directive>"""
START = '<directive name="release" version="1.0.0">'
META = "<metadata><description>d</description><category>team/ops</category>"


def put_directive(project, text=TEXT, item_id="team/ops/release"):
    trust_key()
    return put(project, f"directives/{item_id}.md", signed(text.encode(), MINE, "directive", ".md"))


def call(project, inputs=None, item_id="team/ops/release", item_type="directive", **options):
    return rye.execute(item_id, inputs, item_type=item_type, project_path=project, **options)


def test_knowledge_is_context_and_takes_no_parameters(project):
    put_entry(project, "k/apples", "Apples", "Plant the tree.\nWater it.", tags=["fruit"])
    answer = call(project, None, "k/apples", "knowledge")
    assert (answer["status"], answer["type"], answer["item"]["space"]) == ("success", "knowledge", "project")
    found = [answer["data"][name] for name in ("output", "title", "tags")]
    assert found == ["Plant the tree.\nWater it.", "Apples", ["fruit"]]
    assert answer["chain"][0]["integrity"] == answer["item"]["digest"]
    assert "context" in answer["data"]["instructions"]
    assert call(project, {"x": 1}, "k/apples", "knowledge")["code"] == "invalid_parameters"
    path = project / ".ai/knowledge/k/apples.md"
    path.write_bytes(path.read_bytes() + b"x")
    assert call(project, None, "k/apples", "knowledge", dry_run=True)["code"] == "tampered"


def test_the_header_of_a_directive_is_read_and_the_rest_is_text_that_is_filled_in_once(project):
    put_directive(project)
    answer = call(project, {"tag": "{input:count} ${inputs.tag}", "notes": ["a", 1]})
    assert (answer["status"], answer["item"]["version"]) == ("success", "1.0.0"), answer
    data = answer["data"]
    assert (data["metadata"]["description"], data["name"]) == ("Make a release", "release")
    assert [one["name"] for one in data["declared_inputs"]] == ["tag", "count", "notes", "dry"]
    assert data["declared_inputs"][0] == {"name": "tag", "type": "string", "required": True, "description": "The tag"}
    assert data["outputs"] == [{"name": "url", "description": "Where it is"}]
    assert data["output"].startswith("<context>Only on Fridays.</context>")
    assert "if a < b && c: tag {input:count} ${inputs.tag}, 3 times; |false|no" in data["output"]
    assert '["a", 1] {input:other} <inputs><input name="not-an-input"/></inputs>' in data["output"]
    assert ("<metadata>" in data["output"], data["inputs"]["count"], data["unfilled"]) == (False, 3, ["other"])
    dry = call(project, {"tag": "v1"}, dry_run=True)
    assert (dry["status"], dry["data"]) == ("validation_passed", {"parameters": {"tag": "v1", "count": 3}})


def test_wrong_inputs_are_all_named_with_what_is_declared(project):
    put_directive(project)
    answer = call(project, {"tug": "v1"})
    assert answer["code"] == "invalid_parameters"
    problems = ("unknown parameter 'tug', did you mean 'tag'", '"tag" is a required property')
    assert [one for one in problems if one not in answer["error"]] == []
    assert [one["name"] for one in answer["details"]["declared_inputs"]] == ["tag", "count", "notes", "dry"]
    for inputs in ({"tag": 5}, ["tag"]):
        assert call(project, inputs)["code"] == "invalid_parameters"


def test_under_another_name_or_category_it_is_misplaced(project):
    raw = put_directive(project).read_bytes()
    for item_id in ("team/ops/other", "team/release"):
        put(project, f"directives/{item_id}.md", raw)
        assert call(project, {"tag": "x"}, item_id)["code"] == "misplaced"


ENTITIES = ("&b;</description>", "&#xFFFFFFFF;</description>")
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # No entity is declared or expanded.
        *(
            (f"{START}<metadata>{text}</metadata>", "not well-formed XML")
            for text in (
                *(f"{bomb}<description>{one}" for bomb in ("", BOMB) for one in ENTITIES),
                "<description>",
                "<a>" * 50_000,
            )
        ),
        (f"{START}{META}</metadata><inputs></inputs><inputs></inputs>", "two sections of inputs"),
        (f'{START}{META}</metadata><inputs><input name="a"/><input name="a"/></inputs>', "one name"),
        (f"{START}{META}</metadata><inputs><input/></inputs>", "name ''"),
        ("<directive name=release>", "one element, directive"),
        # A section that never ends is text, and hostile text costs linear time.
        (f'{START}{META}</metadata><inputs><input name="a"/>', ""),
        *((f"{START}{META}</metadata>{tag * 20_000}", "") for tag in ("<!--", "<a ", "<a>", "{input:", "{input:a:")),
    ],
)
def test_what_is_not_well_formed_is_refused(project, text, told):
    put_directive(project, f"{text}</directive>")
    answer = call(project)
    assert (answer.get("code"), told in answer.get("error", "")) == ("malformed_item" if told else None, True)
    # Control: the parser would expand entities of a whole document.
    assert ET.fromstring('<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>').text == "aaaa"


def test_a_long_entry_is_cut_at_a_line_and_names_the_call_for_the_rest(project):
    put_entry(project, "k/long", "Long", "\n".join(f"line {n}" for n in range(9_000)))
    data = call(project, None, "k/long", "knowledge", options=CallOptions(max_output_bytes=5_000))["data"]
    assert (data["truncated"], len(data["output"].encode()) <= 5_000) == (True, True)
    assert f'Call rye_load(item_type="knowledge", item_id="k/long", offset={data["next_offset"]})' in data["output"]
    rest = {"item_type": "knowledge", "item_id": "k/long", "offset": 9_000}
    assert call(project, rest, "rye/primary-tools/rye_load", "tool")["data"]["total_lines"] >= 9_000


def test_on_the_command_line(project):
    put_directive(project)
    done = run("execute", "team/ops/release", "--type", "directive", "tag=v2", "count=5", cwd=project)
    assert b"tag v2, 5 times" in done.stdout
    assert run("execute", "team/ops/release", "--type", "directive", cwd=project).returncode == 2
    assert run("execute", "k/none", "--type", "knowledge", cwd=project).returncode == 2
