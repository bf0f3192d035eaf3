"""Poisoned strings in another signer's items: none reaches a listing, a loaded text or an answer as it is.

The items are signed by a key that the user trusts: what is not verified is not shown at all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import rye
from rye.cli.main import main
from support.signed_tools import MINE, put, signed, tool_text, trust_key

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.poison import POISON, harm_in


def utf8(text):
    """Files hold no lone surrogates; what stands for one is the nearest a file comes."""
    return text.encode("utf-8", "replace").decode()


def yaml_text(text):
    return json.dumps(utf8(text))


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """A project in which every text of every type of item is poisoned."""
    root = tmp_path_factory.mktemp("poisoned")
    for name, string in POISON.items():
        text = utf8(string)
        schema = {"type": "object", "properties": {"a": {"type": "string", "description": text, "enum": [text]}}}
        raw = tool_text(f"my/{name}", schema=schema, body=f"raise ValueError({text!r})")
        raw = raw.replace(b'"""A tool made for a test."""', repr(f"Poisoned marmalade. {text}\n{text}").encode())
        raw = raw.replace(b'"Made for a test"', repr(f"marmalade {text}").encode())
        put(root, f"tools/my/{name}.py", signed(raw))
        header = f"id: {name}\ntitle: {yaml_text(text)}\nentry_type: reference\nversion: '1.0.0'\ndescription: {yaml_text(text)}\ntags: [{yaml_text(text)}]\nx: {{{yaml_text(text)}: {yaml_text(text)}}}"
        entry = f"```yaml\n{header}\n```\n\nmarmalade {text}\n{text}\n"
        put(root, f"knowledge/k/{name}.md", signed(entry.encode(), MINE, "knowledge", ".md"))
        clean = "".join(char for char in text if char.isprintable() and char not in "<>&\"'")
        process = text.replace("</directive>", "")
        span = (
            f'<directive name="{name}" version="1.0.0"><metadata><description>marmalade {clean}</description></metadata>'
            f'<inputs><input name="a" default="{clean}">{clean}</input></inputs><process>{process} {{input:a}}</process></directive>'
        )
        put(root, f"directives/d/{name}.md", signed(span.encode(), MINE, "directive", ".md"))
    return root


@pytest.fixture(autouse=True)
def trusting(user_space):
    trust_key()


def strings(value):
    """Every string in a JSON value, keys included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from strings(key)
            yield from strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value


def raw_in(value):
    # Line ends of a whole text are its own.
    return {text: harm_in(text) for text in strings(value) if harm_in(text)}


def test_control_every_string_is_harmful_in_the_file(poisoned):
    for name, text in POISON.items():
        if "\udcff" in text or "\ud800" in text:
            continue
        assert harm_in((poisoned / f".ai/knowledge/k/{name}.md").read_bytes().decode()) or "\\u" in yaml_text(text)
    assert len(POISON) == 60


def test_no_string_reaches_a_search(poisoned):
    seen = 0
    for scope in ("tool.my.*", "knowledge.k.*", "directive.d.*"):
        answer = rye.search("marmalade", scope, project_path=poisoned, limit=100)
        seen += len(answer["results"])
        assert raw_in(answer) == {}
        listed = rye.execute(
            "rye/primary-tools/rye_search", {"query": "marmalade", "scope": scope, "limit": 100}, project_path=poisoned
        )
        assert raw_in(listed) == {}
        assert listed["status"] == "success"
    # Not every one can be an item: some characters no YAML and no XML may hold.
    assert seen >= 120, "most of the poisoned items are there to be listed"


@pytest.mark.parametrize("item_type", ["knowledge", "directive", "tool"])
def test_no_string_reaches_a_loaded_or_executed_item(poisoned, item_type):
    folder = {"knowledge": "k", "directive": "d", "tool": "my"}[item_type]
    shown = 0
    for number, name in enumerate(POISON):
        load = {"item_id": f"{PRIMARY}load", "parameters": {"item_type": item_type, "item_id": f"{folder}/{name}"}}
        execute = {"item_id": f"{folder}/{name}", "item_type": item_type}
        # Each tool runs in a process of its own, and all fail alike: a few will do.
        for call in (load,) if item_type == "tool" and number % 12 else (load, execute):
            answer = rye.execute(
                call["item_id"], call.get("parameters"), item_type=call.get("item_type", "tool"), project_path=poisoned
            )
            shown += answer["status"] == "success"
            assert raw_in(answer) == {}, (name, call)
    assert shown >= 40


PRIMARY = "rye/primary-tools/rye_"


def test_no_string_reaches_the_terminal(poisoned, capsys, monkeypatch):
    monkeypatch.chdir(poisoned)
    assert main(["search", "marmalade", "--limit", "100", "--project", str(poisoned)]) == 0
    shown = capsys.readouterr()
    assert harm_in(shown.out + shown.err) == []
    for name in list(POISON)[::7]:
        main(["load", "knowledge", f"k/{name}", "--project", str(poisoned)])
        main(["execute", f"k/{name}", "--type", "knowledge", "--project", str(poisoned)])
        shown = capsys.readouterr()
        assert harm_in(shown.out + shown.err) == []


def test_a_poisoned_question_is_not_printed_back_raw(poisoned):
    for text in POISON.values():
        answer = rye.execute("rye/primary-tools/rye_search", {"query": f"({text}"}, project_path=poisoned)
        assert harm_in(answer.get("error", "")) == []


def test_no_string_reaches_an_error_about_the_item(poisoned):
    """Schemas, categories, runtimes and versions are told in errors too."""
    codes = set()
    for name, string in POISON.items():
        text = utf8(string)
        yaml = f"version: 1.0.0\ntool_type: x\nexecutor_id: {yaml_text(text)}\ncategory: bad\ndescription: x\n"
        put(poisoned, f"tools/bad/y{name}.yaml", signed(yaml.encode(), suffix=".yaml"))
        put(
            poisoned,
            f"tools/bad/c{name}.py",
            signed(tool_text(f"bad/c{name}", category="CAT").replace(b'"CAT"', repr(text).encode())),
        )
        put(poisoned, f"tools/bad/r{name}.py", signed(tool_text(f"bad/r{name}", more=f"__requires_rye__ = {'>=9' + text!r}")))
        put(
            poisoned,
            f"tools/bad/s{name}.py",
            signed(f"x = (\n# {text.translate({0: None, 13: None, 0xFEFF: None})}\n".encode()),
        )
        calls = [(f"bad/{kind}{name}", {}) for kind in "ycrs"] + [(f"my/{name}", {"a": 5}), (f"my/{name}", {text: 1})]
        for item_id, parameters in calls:
            answer = rye.execute(item_id, parameters, project_path=poisoned)
            codes.add(answer["code"])
            assert raw_in(answer) == {}, (item_id, answer)
    assert codes >= {"runtime_missing", "misplaced", "malformed_item", "invalid_parameters"}
