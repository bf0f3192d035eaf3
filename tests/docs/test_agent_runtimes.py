"""The loops that the knowledge item shows for three client libraries: they compile, and run against a service played here.

The libraries are not installed for this: what a loop asks of one is little, and is played from its documented shapes.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

import rye
from support.provider_checkers import CHECKERS
from support.readme_blocks import ROOT, blocks

ITEM = ROOT / ".ai/knowledge/rye/core/agent-runtimes.md"
CODE = {
    form: next(block.text for block in blocks(ITEM.read_text(encoding="utf-8")) if needle in block.text)
    for form, needle in (("openai", "from openai"), ("anthropic", "from anthropic"), ("gemini", "from google"))
}
EDIT = {"line_id": 2, "new_content": "    return round(sum(prices), 2)"}
CALLS = [("grep", {"pattern": "sum"}), ("edit_lines", {"file_path": "app.py", "changes": [EDIT]})]
ANSWER = "It is rounded."


class Service:
    """Asks for one call a turn and says ANSWER in the end; holds what it was sent to the interface's checker."""

    def __init__(self, form):
        self.form = form
        self.results = []

    def turn(self, tools, results):
        assert tools
        assert [found for tool in tools for found in CHECKERS[self.form](tool)] == []
        self.results = results
        return CALLS[len(results)] if len(results) < len(CALLS) else None


def openai(service):
    def create(model, messages, tools):
        told = [message for message in messages if isinstance(message, dict)]
        results = [message["content"] for message in told if message["role"] == "tool"]
        call = service.turn(tools, results)
        calls = call and [
            SimpleNamespace(id=f"c{len(results)}", function=SimpleNamespace(name=call[0], arguments=json.dumps(call[1])))
        ]
        message = SimpleNamespace(role="assistant", content=None if call else ANSWER, tool_calls=calls)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    return {"openai": {"OpenAI": lambda: client}}


def anthropic(service):
    def create(model, max_tokens, messages, tools):
        told = [
            message["content"] for message in messages if message["role"] == "user" and isinstance(message["content"], list)
        ]
        call = service.turn(tools, [part["content"] for content in told for part in content])
        if call is None:
            return SimpleNamespace(content=[SimpleNamespace(type="text", text=ANSWER)])
        words = SimpleNamespace(type="text", text="I look.")
        return SimpleNamespace(content=[words, SimpleNamespace(type="tool_use", id="t", name=call[0], input=call[1])])

    return {"anthropic": {"Anthropic": lambda: SimpleNamespace(messages=SimpleNamespace(create=create))}}


def gemini(service):
    def generate(model, contents, config):
        (tool,) = config.tools
        results = [part.response["result"] for content in contents for part in content.parts if hasattr(part, "response")]
        call = service.turn(tool.function_declarations, results)
        content = SimpleNamespace(role="model", parts=[])
        calls = call and [SimpleNamespace(name=call[0], args=call[1])]
        return SimpleNamespace(candidates=[SimpleNamespace(content=content)], function_calls=calls, text=ANSWER)

    class Part(SimpleNamespace):
        @staticmethod
        def from_function_response(name, response):
            return Part(name=name, response=response)

    types = dict.fromkeys(("GenerateContentConfig", "Tool", "Content"), SimpleNamespace) | {"Part": Part}
    client = SimpleNamespace(models=SimpleNamespace(generate_content=generate))
    genai = {"Client": lambda: client}
    return {"google": {}, "google.genai": genai, "google.genai.types": types}


@pytest.mark.parametrize(("form", "library"), [("openai", openai), ("anthropic", anthropic), ("gemini", gemini)])
def test_the_loop_edits_the_file_and_prints_the_answer(form, library, project, monkeypatch, capsys):
    service = Service(form)
    for name, members in library(service).items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    monkeypatch.chdir(project)
    exec(compile(CODE[form], f"{form} loop", "exec"), {"__name__": "loop"})
    assert capsys.readouterr().out == f"{ANSWER}\n"
    assert "app.py:2:    return" in service.results[0]
    assert "3\t    return round(sum(prices), 2)" in service.results[1]
    assert "round" in (project / "app.py").read_text()


def test_the_item_is_valid_and_can_be_found(project):
    (verdict,) = rye.verify("rye/core/agent-runtimes", project_path=project)
    assert verdict["verdict"] == "valid"
    loaded = rye.load("knowledge", "rye/core/agent-runtimes", project_path=project)
    assert loaded["status"] == "success"
    found = rye.search("tools for an agent loop with openai", scope="knowledge", project_path=project)
    assert "rye/core/agent-runtimes" in [result["id"] for result in found["results"][:3]]
