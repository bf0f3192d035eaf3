"""Sixty poisoned strings in every text of validly signed, trusted foreign tools: none reaches a listing raw.

The tools are trusted on purpose: what a person trusted to run has not been allowed to steer a terminal, hide from a reader,
or speak with the house's voice to a model.
"""

from __future__ import annotations

import json
import os

import pytest

import rye
from support.in_process import rye as shell
from support.poison import POISON, harm_in
from support.signed_tools import FUNCTION_RUNTIME, MINE, put, signed, trust_key

FORMATS = ("openai", "anthropic", "gemini", "mcp")
FIELDS = ("title", "description", "docstring", "category", "version", "tool_type", "owner")


def poisoned(name, text):
    """A tool that carries the text wherever a tool has text; `repr` writes it in escapes, as an attacker may."""
    schema = {
        "type": "object",
        "title": text,
        "description": text,
        "$comment": text,
        "properties": {
            f"a{text}": {"type": "string", "description": text, "title": text},
            "enum": {"type": "string", "enum": [text, f"{text}2"], "default": text, "examples": [text]},
            "const": {"const": text},
            "pattern": {"type": "string", "pattern": text},
            "format": {"type": "string", "format": text},
            "list": {"type": "array", "items": {"anyOf": [{"enum": [text, 1]}, {"$ref": "#/$defs/d"}], "default": [text]}},
            "free": {"type": "object", "description": text, "default": {text: text}, "examples": [{text: [text]}]},
        },
        "$defs": {"d": {"type": "object", "properties": {text: {"description": text}}, "required": [text]}},
        "required": ["enum"],
        "additionalProperties": False,
        text: text,
    }
    return f"""{text!r}
__version__ = "1.0.0"
__tool_type__ = {"python" + text!r}
__executor_id__ = "{FUNCTION_RUNTIME}"
__category__ = "bad"
__tool_description__ = {text!r}
__title__ = {text!r}
CONFIG_SCHEMA = {schema!r}
OUTPUT_SCHEMA = {{"type": "object", "title": {text!r}, "properties": {{{text!r}: {{"description": {text!r}, "enum": [{text!r}]}}}}}}

def execute(params, project_path):
    return {{"success": True, "output": "done"}}
""".encode("ascii", "backslashreplace")


@pytest.fixture
def listed(project):
    trust_key(MINE)
    for name, text in POISON.items():
        put(project, f"tools/bad/{name}.py", signed(poisoned(name, text)))
    return project


def texts(value):
    """Every string of a value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield key
            yield from texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below)


def raw(value):
    return sorted({harm for text in texts(value) for harm in harm_in(text)})


def test_there_are_sixty_and_each_tool_is_valid(listed):
    assert len(POISON) == 60
    rows = rye.tools("bad", project_path=listed)
    assert [row["item_id"] for row in rows] == [f"bad/{name}" for name in sorted(POISON)]
    assert {row["verdict"] for row in rows} == {"valid"}


def test_control_the_texts_themselves_are_harmful_and_stand_in_the_tools(listed):
    from rye.executor.admission import Admission
    from rye.items import parse, spaces

    among = spaces.spaces(listed)
    for name, text in POISON.items():
        found = spaces.find("tool", f"bad/{name}", among)
        tool = parse.read_tool(Admission(among).admit(found), found.item_id, ".py")
        assert raw({"d": tool.description, "s": tool.schema, "o": tool.metadata["OUTPUT_SCHEMA"]}), (name, text)


def test_none_reaches_the_rows(listed):
    for row in rye.tools("bad", project_path=listed):
        assert raw(row) == [], row["item_id"]
        assert set(row) >= set(FIELDS)
        json.dumps(row, allow_nan=False).encode()


@pytest.mark.parametrize("form", FORMATS)
def test_none_reaches_an_agent_interface(listed, form):
    tools = rye.toolset(listed, ["bad"])
    assert len(tools.offers) == 60
    declared = tools.schemas(form)
    assert raw(declared) == []
    json.dumps(declared, ensure_ascii=False).encode()
    assert raw([left._asdict() for left in tools.left_out]) == []
    # Gemini takes no parameter of such a name, so those tools are left out there; the others list every tool.
    assert len(declared) == (60 if form in ("openai", "mcp") else len(declared))


@pytest.mark.slow
def test_none_reaches_a_terminal_or_a_pipe(listed):
    for words in (
        ("tools",),
        ("tools", "--category", "bad", "--json"),
        *(("tools", "--category", "bad", "--format", form) for form in FORMATS),
        ("lint",),
        ("lint", "--json"),
    ):
        done = shell(*words, cwd=listed, env={"PYTHONIOENCODING": "utf-8"})
        out, err = done.stdout.decode(), done.stderr.decode()
        assert len(out) > 1_000 or "anthropic" in words or "gemini" in words, words
        # Line ends are the listing's own; a table and JSON have no other control character.
        assert raw([line for text in (out, err) for line in text.split("\n")]) == [], words
        assert "Traceback" not in err


@pytest.mark.slow
def test_none_reaches_a_model_that_calls_them(listed):
    """What the house itself says of a foreign tool in an error: its parameters' names, what is allowed."""
    tools = rye.toolset(listed, ["bad"])
    for name in tools.names:
        for arguments in ({}, {"enum": 1}, {"nope": 1, "const": 2, "list": [{}], "pattern": "x"}):
            assert raw(tools.call(name, arguments)) == [], (name, arguments)


def test_names_are_the_ids_and_ids_hold_no_poison(listed):
    for name, text in POISON.items():
        for place in (f"tools/bad/x{text}.py", f"tools/bad{text}/x.py"):
            path = os.fsencode(listed) + b"/.ai/" + place.encode("utf-8", "surrogatepass").replace(b"\0", b"")
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(signed(poisoned(name, text)))
            except (OSError, ValueError):
                continue
    rows = [row for row in rye.tools(project_path=listed) if row["space"] == "project"]
    assert len(rows) >= 60
    assert raw(rows) == []
