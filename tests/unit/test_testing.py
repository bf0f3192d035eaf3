"""A model that plays a script, in an agent's loop as README shows it."""

from __future__ import annotations

import pytest

import rye
from rye.testing import ScriptedModel, ScriptError, Step


@pytest.fixture
def app(project):
    (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
    return project


READ = Step("read", {"file_path": "app.py"})


def loop(tools, model):
    messages = [{"role": "user", "content": "Round it."}]
    while messages[-1]["role"] != "assistant":
        reply = model(messages, tools.schemas("openai"))
        messages.append(reply)
        for call in reply.get("tool_calls", ()):
            text = tools.call(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return messages


def test_the_arguments_of_a_step_may_be_made_of_the_last_result(app):
    """The loop of docs/agent-loop.md, which `tests/docs` runs, has them fixed."""
    words = Step("grep", lambda text: {"pattern": text.partition("\t")[2][:9]}, ["def total"])
    messages = loop(rye.toolset(app, ["rye/file-system"]), ScriptedModel([READ, words], "Found.", expects=["1\tdef total"]))
    assert messages[-1] == {"role": "assistant", "content": "Found."}


@pytest.mark.parametrize(
    ("code", "steps", "expects"),
    [
        ("unexpected_result", [READ, Step("undo", {}, ["return product"])], ()),
        ("unexpected_result", [READ], ["return product"]),
        ("unknown_tool", [Step("bash", {"command": "ls"})], ()),
    ],
)
def test_a_script_ends_where_the_result_is_not_as_expected(app, code, steps, expects):
    with pytest.raises(ScriptError) as caught:
        loop(rye.toolset(app, ["rye/file-system"]), ScriptedModel(steps, expects=expects))
    assert caught.value.code == code


def test_a_loop_that_loses_or_mixes_results_is_caught(app):
    schemas = rye.toolset(app, ["rye/file-system"]).schemas("openai")
    for last in ({"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "call_2", "content": "x"}):
        model = ScriptedModel([READ, READ])
        model([], schemas)
        with pytest.raises(ScriptError) as caught:
            model([last], schemas)
        assert caught.value.code == "missing_result"
    model = ScriptedModel([])
    assert model([], schemas)["content"] == "Done."
    with pytest.raises(ScriptError) as caught:
        model([], schemas)
    assert caught.value.code == "script_ended"
