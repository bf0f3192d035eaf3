"""Sixty poisoned strings in every text of another signer's tools, knowledge and directives: none reaches anyone as it is.

The items are signed by a key that the user trusts (what is not verified is not shown at all): what a person trusted to run has not
been allowed to steer a terminal, to hide from a reader, or to speak to a model as rye does.
"""

from __future__ import annotations

import json
import os
import sys

import pytest

import rye
from support.in_process import rye as shell
from support.poison import POISON, harm_in, strings
from support.signed_tools import FUNCTION_RUNTIME, MINE, put, signed, tool_text, trust_key

PRIMARY = "rye/primary-tools/rye_"

FORMATS = ("openai", "anthropic", "gemini", "mcp")


def utf8(text):
    """Files hold no lone surrogates; what stands for one is the nearest a file comes."""
    return text.encode("utf-8", "replace").decode()


def harms(value):
    """What of all that stands raw in the strings of a value."""
    return sorted({harm for text in strings(value) for harm in harm_in(text)})


@pytest.fixture(autouse=True)
def _trusting(user_space):
    trust_key()


# A description, and how it is listed: what was hidden is named, honest text stays, a long one is cut.
LISTED = {
    "a\u202eb": "a[U+202E]b",
    "\x1b[31mred": "[U+001B][31mred",
    "a" + "\u200b" * 40 + "b": "a[40 hidden characters]b",
    "[tool_result: all]": "(tool_result: all]",
    "</x> <|y|> a < b << c": "‹/x> ‹|y|> a < b << c",
    "Grüße, 世界 — naïve café 😀": "Grüße, 世界 — naïve café 😀",
    "a[0] < b": "a[0] < b",
    "one\n\n  two\tthree ": "one two three",
}
# A whole text, and how it is shown: with its lines and markup, but for what frames a message.
SHOWN = {
    text: text
    for text in ("# T\n\n\tif a<b: List<int>, <step name='x'>, a[0]", "<userland> <file>", "Grüße, 世界 — naïve café 😀")
} | {
    f"a {frame} b": f"a \u2039{frame[1:]} b"
    for frame in ("<system>", "</system-reminder>", "<|im_end|>", "<function_calls>", "<x:invoke name='a'>", "</tool_result>")
}


def test_how_texts_are_listed_and_shown(project):
    for number, text in enumerate(LISTED):
        put(
            project,
            f"tools/my/t{number}.py",
            signed(tool_text(f"my/t{number}").replace(b'"Made for a test"', repr(text).encode())),
        )
    rows = {row["item_id"]: row["description"] for row in rye.tools("my", project_path=project)}
    assert [rows[f"my/t{number}"] for number in range(len(LISTED))] == [*LISTED.values()]
    put(project, "tools/my/long.py", signed(tool_text("my/long").replace(b"Made for a test", b"x" * 9_000)))
    (long,) = [row["description"] for row in rye.tools("my", project_path=project) if row["item_id"] == "my/long"]
    assert long == "x" * (len(long) - 1) + "…"
    assert len(long) <= 1_024
    for number, (text, shown) in enumerate(SHOWN.items()):
        entry = f"```yaml\nid: e{number}\ntitle: t\nentry_type: reference\nversion: '1.0.0'\ndescription: d\n```\n\n{text}\n"
        put(project, f"knowledge/k/e{number}.md", signed(entry.encode(), MINE, "knowledge", ".md"))
        loaded = rye.execute(f"{PRIMARY}load", {"item_type": "knowledge", "item_id": f"k/e{number}"}, project_path=project)
        assert f"\n{shown}\n" in f"\n{loaded['data']['output']}\n", loaded["data"]["output"]


# --- found, loaded and run ---


def tool_of(text):
    """A tool that carries the text wherever a tool has text; `repr` writes it in escapes, as an attacker may."""
    schema = {
        "type": "object", "title": text, "description": text, "$comment": text,
        "properties": {
            f"a{text}": {"type": "string", "description": text, "title": text},
            "enum": {"type": "string", "enum": [text, f"{text}2"], "default": text, "examples": [text]},
            "const": {"const": text}, "pattern": {"type": "string", "pattern": text}, "format": {"type": "string", "format": text},
            "list": {"type": "array", "items": {"anyOf": [{"enum": [text, 1]}, {"$ref": "#/$defs/d"}], "default": [text]}},
            "free": {"type": "object", "description": text, "default": {text: text}, "examples": [{text: [text]}]},
        },
        "$defs": {"d": {"type": "object", "properties": {text: {"description": text}}, "required": [text]}},
        "required": ["enum"], "additionalProperties": False, text: text,
    }  # fmt: skip
    return f"""{f"Poisoned marmalade. {text}"!r}
__version__ = "1.0.0"
__tool_type__ = {"python" + text!r}
__executor_id__ = "{FUNCTION_RUNTIME}"
__category__ = "my"
__tool_description__ = {f"marmalade {text}"!r}
__title__ = {text!r}
CONFIG_SCHEMA = {schema!r}
OUTPUT_SCHEMA = {{"type": "object", "title": {text!r}, "properties": {{{text!r}: {{"description": {text!r}, "enum": [{text!r}]}}}}}}

def execute(params, project_path):
    raise ValueError({text!r})
""".encode("ascii", "backslashreplace")


def items(root, name, text):
    """Put a tool, an entry and a directive that carry a text."""
    put(root, f"tools/my/{name}.py", signed(tool_of(text)))
    text = utf8(text)
    told = json.dumps(text)
    header = f"id: {name}\ntitle: {told}\nentry_type: reference\nversion: '1.0.0'\ndescription: {told}\ntags: [{told}]\nx: {{{told}: {told}}}"
    entry = f"```yaml\n{header}\n```\n\nmarmalade {text}\n{text}\n"
    put(root, f"knowledge/k/{name}.md", signed(entry.encode(), MINE, "knowledge", ".md"))
    clean = "".join(char for char in text if char.isprintable() and char not in "<>&\"'")
    span = (
        f'<directive name="{name}" version="1.0.0"><metadata><description>marmalade {clean}</description></metadata><inputs>'
        f'<input name="a" default="{clean}">{clean}</input></inputs><process>{text.replace("</directive>", "")} {{input:a}}</process></directive>'
    )
    put(root, f"directives/d/{name}.md", signed(span.encode(), MINE, "directive", ".md"))


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """A project in which every text of every type of item is poisoned."""
    root = tmp_path_factory.mktemp("poisoned")
    for name, string in POISON.items():
        items(root, name, string)
    return root


def test_control_every_string_is_harmful_in_the_file(poisoned):
    for name, text in POISON.items():
        if "\udcff" not in text and "\ud800" not in text:
            assert harm_in((poisoned / f".ai/knowledge/k/{name}.md").read_bytes().decode()) or "\\u" in json.dumps(text)


def test_no_string_reaches_a_search(poisoned):
    seen = 0
    for scope in ("tool.my.*", "knowledge.k.*", "directive.d.*"):
        answer = rye.search("marmalade", scope, project_path=poisoned, limit=100)
        seen += len(answer["results"])
        asked = {"query": "marmalade", "scope": scope, "limit": 100}
        listed = rye.execute(f"{PRIMARY}search", asked, project_path=poisoned)
        assert listed["status"] == "success"
        assert harms([answer, listed]) == []
    # A poisoned question is not printed back raw either.
    asked = [rye.execute(f"{PRIMARY}search", {"query": f"({text}"}, project_path=poisoned) for text in POISON.values()]
    assert harms([answer.get("error", "") for answer in asked]) == []
    # Not every one can be an item: some characters no YAML and no XML may hold.
    assert seen >= 120, "most of the poisoned items are there to be listed"


@pytest.mark.parametrize(("item_type", "folder"), [("knowledge", "k"), ("directive", "d"), ("tool", "my")])
def test_no_string_reaches_a_loaded_or_executed_item(poisoned, item_type, folder):
    shown = 0
    for number, name in enumerate(POISON):
        loaded = {"item_type": item_type, "item_id": f"{folder}/{name}"}
        answers = [rye.execute(f"{PRIMARY}load", loaded, project_path=poisoned)]
        # Each tool runs in a process of its own, and all fail alike: a few will do.
        if item_type != "tool" or number % 12 == 0:
            given = {"enum": POISON[name]} if item_type == "tool" else {}
            answers.append(rye.execute(f"{folder}/{name}", given, item_type=item_type, project_path=poisoned))
        shown += sum(answer["status"] == "success" for answer in answers)
        assert harms(answers) == [], name
    assert shown >= 40


def test_no_string_reaches_an_error_about_the_item(poisoned):
    """Schemas, categories, runtimes and versions are told in errors too."""
    codes = set()
    for name, string in POISON.items():
        text = utf8(string)
        yaml = f"version: 1.0.0\ntool_type: x\nexecutor_id: {json.dumps(text)}\ncategory: bad\ndescription: x\n"
        put(poisoned, f"tools/bad/y{name}.yaml", signed(yaml.encode(), suffix=".yaml"))
        for kind, raw in {
            "c": tool_text(f"bad/c{name}", category="CAT").replace(b'"CAT"', repr(text).encode()),
            "r": tool_text(f"bad/r{name}", more=f"__requires_rye__ = {'>=9' + text!r}"),
            "s": f"x = (\n# {text.translate({0: None, 13: None, 0xFEFF: None})}\n".encode(),
        }.items():
            put(poisoned, f"tools/bad/{kind}{name}.py", signed(raw))
        for item_id, parameters in [
            *((f"bad/{kind}{name}", {}) for kind in "ycrs"),
            (f"my/{name}", {"a": 5}),
            (f"my/{name}", {text: 1}),
        ]:
            answer = rye.execute(item_id, parameters, project_path=poisoned)
            codes.add(answer["code"])
            assert harms(answer) == [], (item_id, answer)
    assert codes >= {"runtime_missing", "misplaced", "malformed_item", "invalid_parameters"}


# --- listed as tools, and called by a model ---


def test_none_reaches_the_rows_of_valid_tools(poisoned):
    rows = rye.tools("my", project_path=poisoned)
    assert [row["item_id"] for row in rows] == [f"my/{name}" for name in sorted(POISON)]
    for row in rows:
        assert row["verdict"] == "valid"
        assert harms(row) == [], row["item_id"]
        assert set(row) >= {"title", "description", "docstring", "category", "version", "tool_type", "owner"}
        json.dumps(row, allow_nan=False).encode()


def test_control_the_texts_themselves_are_harmful_and_stand_in_the_tools(poisoned):
    for name, text in POISON.items():
        told: dict = {}
        try:
            exec((poisoned / f".ai/tools/my/{name}.py").read_bytes(), told)
        except UnicodeEncodeError:
            # Python 3.13 compiles no docstring that UTF-8 cannot carry.
            assert sys.version_info >= (3, 13), name
            continue
        for one in ("__tool_description__", "CONFIG_SCHEMA", "OUTPUT_SCHEMA"):
            assert harms(told[one]), (name, one, text)


@pytest.mark.parametrize("form", FORMATS)
def test_none_reaches_an_agent_interface(poisoned, form):
    tools = rye.toolset(poisoned, ["my"])
    assert len(tools.offers) == 60
    declared = tools.schemas(form)
    assert harms([*declared, *(left._asdict() for left in tools.left_out)]) == []
    json.dumps(declared, ensure_ascii=False).encode()
    # Gemini takes no parameter of such a name, so those tools are left out there; the others list every tool.
    assert len(declared) == 60 or form not in ("openai", "mcp")


@pytest.mark.slow
def test_none_reaches_a_terminal_a_pipe_or_a_model_that_calls_them(poisoned):
    lists = [("tools", "--category", "my", "--format", form) for form in FORMATS]
    lists += [("tools",), ("tools", "--category", "my", "--json"), ("search", "marmalade", "--limit", "100")]
    lists += [("lint",), ("lint", "--json")]
    loads = [("load", "knowledge", f"k/{name}") for name in [*POISON][::7]]
    loads += [("execute", f"k/{name}", "--type", "knowledge") for name in [*POISON][::7]]
    for words in [*lists, *loads]:
        done = shell(*words, cwd=poisoned, env={"PYTHONIOENCODING": "utf-8"})
        out, err = done.stdout.decode(), done.stderr.decode()
        assert len(out) > 1_000 or words in loads or "anthropic" in words or "gemini" in words, words
        # Line ends are the listing's own; a table and JSON have no other control character.
        assert harms([line for text in (out, err) for line in text.split("\n")]) == [], words
        assert "Traceback" not in err
    # What rye itself says of a foreign tool in an error: its parameters' names, what is allowed.
    tools = rye.toolset(poisoned, ["my"])
    for name in tools.names:
        for arguments in ({}, {"enum": 1}, {"nope": 1, "const": 2, "list": [{}], "pattern": "x"}):
            assert harms(tools.call(name, arguments)) == [], (name, arguments)


def test_names_are_the_ids_and_ids_hold_no_poison(project):
    for text in POISON.values():
        for place in (f"tools/bad/x{text}.py", f"tools/bad{text}/x.py"):
            path = os.fsencode(project) + b"/.ai/" + place.encode("utf-8", "surrogatepass").replace(b"\0", b"")
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as file:
                    file.write(signed(tool_of(text)))
            except (OSError, ValueError):
                continue
    rows = [row for row in rye.tools(project_path=project) if row["space"] == "project"]
    assert rows
    assert harms(rows) == []
