"""Directives: what is read as XML, what is text, and how inputs get into it."""

from __future__ import annotations

from contextlib import nullcontext
from xml.etree import ElementTree as ET

import pytest

from rye.errors import ItemError, UsageError
from rye.items import directives

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


START = '<directive name="x" version="1.0.0">'


def malformed(text):
    with pytest.raises(ItemError) as caught:
        directives.parse(text)
    assert caught.value.code == "malformed_item"
    return caught.value.message


def test_the_header_is_read_and_the_rest_is_text():
    found = directives.parse(TEXT)
    assert (found.name, found.version) == ("release", "1.0.0")
    assert (found.metadata["description"], found.metadata["category"]) == ("Make a release", "team/ops")
    assert [one["name"] for one in found.inputs] == ["tag", "count", "notes", "dry"]
    assert found.inputs[0] == {"name": "tag", "type": "string", "required": True, "description": "The tag"}
    assert found.inputs[1]["default"] == 3
    assert found.outputs == ({"name": "url", "description": "Where it is"},)
    assert found.instructions.startswith("<context>Only on Fridays.</context>")
    assert "if a < b && c" in found.instructions
    assert "<metadata>" not in found.instructions


def test_inputs_are_checked_and_filled_in_once():
    found = directives.parse(TEXT)
    inputs = directives.check(found, {"tag": "{input:count} ${inputs.tag}", "notes": ["a", 1]})
    assert inputs == {"tag": "{input:count} ${inputs.tag}", "notes": ["a", 1], "count": 3}
    text, unfilled = directives.fill(found.instructions, inputs)
    assert "tag {input:count} ${inputs.tag}, 3 times; |false|no" in text
    assert '["a", 1] {input:other}' in text
    assert unfilled == ["other"]


def test_wrong_inputs_are_all_named():
    found = directives.parse(TEXT)
    with pytest.raises(UsageError) as caught:
        directives.check(found, {"tug": "x"})
    assert "unknown parameter 'tug', did you mean 'tag'" in str(caught.value)
    assert '"tag" is a required property' in str(caught.value)
    assert [one["name"] for one in caught.value.details["declared_inputs"]] == ["tag", "count", "notes", "dry"]
    with pytest.raises(UsageError) as caught:
        directives.check(found, {"tag": 5})
    assert caught.value.code == "invalid_parameters"
    with pytest.raises(UsageError):
        directives.check(found, ["tag"])


def test_no_entity_is_declared_or_expanded():
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    for text in (
        f"{START}{bomb}<metadata><description>&b;</description></metadata></directive>",
        f'<directive name="x" version="1.0.0"><metadata>{bomb}<description>&b;</description></metadata></directive>',
        '<directive name="x" version="1.0.0"><metadata><description>&b;</description></metadata></directive>',
        '<directive name="x" version="1.0.0"><metadata><description>&#xFFFFFFFF;</description></metadata></directive>',
    ):
        with pytest.raises(ItemError, match="not well-formed XML") if not text.startswith(f"{START}{bomb}") else nullcontext():
            assert directives.parse(text).metadata == {}
    # Control: the parser would expand entities of a whole document.
    assert ET.fromstring('<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>').text == "aaaa"


def test_what_is_not_well_formed_is_refused():
    assert "XML" in malformed(f"{START}<metadata><description></metadata></directive>")
    assert "two sections of inputs" in malformed(f"{START}<inputs></inputs><inputs></inputs></directive>")
    assert "one name" in malformed(f'{START}<inputs><input name="a"/><input name="a"/></inputs></directive>')
    assert "name ''" in malformed(f"{START}<inputs><input/></inputs></directive>")
    malformed("<directive name=x></directive>")
    malformed(f"{START}")
    assert malformed(f"{START}<metadata>{'<a>' * 50_000}</metadata></directive>")


def test_a_section_that_never_ends_is_text_and_a_long_hostile_text_costs_linear_time():
    assert directives.parse(f'{START}<inputs><input name="a"/></directive>').inputs == ()
    for tag in ("<!--", "<a ", "<a>"):
        directives.parse(f"{START}{tag * 20_000}</directive>")
    for slot in ("{input:", "{input:a:"):
        directives.fill(slot * 20_000, {})
