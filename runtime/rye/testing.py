"""A model that plays a script: for trying an agent's loop, and for testing one, without a service or a key.

It is called as a loop calls a model, with the messages so far and the tools' schemas (OpenAI's shapes), and asks for its next
step's tool. Where the step says what the last result must hold, and it does not, the script ends there: a loop that loses,
reorders or changes a result fails at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rye.errors import RyeError
from rye.plain_class import Record, field


class ScriptError(RyeError):
    """The loop did not do what the script expects of it."""


class Step(Record):
    """One call that the model makes.

    Attributes:
        tool: its name in the schemas.
        arguments: the call's; or a function that makes them from the last result, as a model does that reads it.
        expects: texts that the last result must hold before this call is made.
    """

    tool: str
    arguments: dict[str, Any] | Callable[[str], dict[str, Any]] = field(factory=dict)
    expects: Sequence[str] = ()


class ScriptedModel:
    """Plays steps in order, one call a turn, then says `answer`."""

    def __init__(self, steps: Sequence[Step], answer: str = "Done.", expects: Sequence[str] = ()) -> None:
        """Take the script; `expects` is of the result of the last step."""
        self._steps = tuple(steps)
        self._answer = answer
        self._expects = tuple(expects)
        self._next = 0

    def __call__(self, messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the model's next message: `{"role": "assistant", "content", "tool_calls"?}`.

        Raises:
            ScriptError: `unexpected_result`, `missing_result`, `unknown_tool`, `script_ended`.
        """
        at, self._next = self._next, self._next + 1
        # One turn after the last step is the answer; any further one is the loop's mistake.
        if at > len(self._steps):
            raise ScriptError("script_ended", "The model has given its answer.", "End the loop at an answer without calls.")
        last = _last_result(messages, at)
        expected = self._expects if at == len(self._steps) else self._steps[at].expects
        # A text is a sequence of texts as well: taken letter by letter, nearly any result would do.
        for text in [expected] if isinstance(expected, str) else expected:
            if text not in last:
                raise ScriptError(
                    "unexpected_result",
                    f"Step {at + 1} expects {text!r} in the last result.",
                    f"The result was: {last[:500]!r}.",
                )
        if at == len(self._steps):
            return {"role": "assistant", "content": self._answer}
        return {"role": "assistant", "content": None, "tool_calls": [self._call(at, last, tools)]}

    def _call(self, at: int, last: str, tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
        step = self._steps[at]
        offered = [tool["function"]["name"] for tool in tools]
        if step.tool not in offered:
            raise ScriptError("unknown_tool", f"Step {at + 1} calls {step.tool}.", f"Offered are: {', '.join(offered)}.")
        arguments = step.arguments(last) if callable(step.arguments) else step.arguments
        function = {"name": step.tool, "arguments": json.dumps(arguments, ensure_ascii=False)}
        return {"id": f"call_{at + 1}", "type": "function", "function": function}


def _last_result(messages: Sequence[dict[str, Any]], at: int) -> str:
    """Return the text of the result of the call before, which must be the last message, with the call's id."""
    if at == 0:
        return ""
    last = messages[-1] if messages else {}
    # The services refuse a conversation in which a call's result is not the next message.
    if last.get("role") != "tool" or last.get("tool_call_id") != f"call_{at}":
        raise ScriptError("missing_result", f"The result of call_{at} is not the last message.", "Append one for each call.")
    return str(last.get("content"))
