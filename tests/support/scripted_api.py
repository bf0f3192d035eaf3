"""Model APIs on loopback that play a script: OpenAI (chat completions, responses), Anthropic (messages), Gemini (generateContent).

A script is a list of steps. For each request the server counts the tool results in it and answers with the step of that number:
a call of a tool, then the next; behind the last one the final text. So the client's own code does everything but think.
A request that offers no tool (a title, a count of tokens) is answered with the final text and not counted.

Each step is `(tool, arguments)`. A tool is found among those that the client offers by the end of its name: clients put their
own prefix before it (`mcp__rye__read`, `rye_read`).
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from typing import Any

from support import web_site

Step = tuple[str, Any]
WAIT = "WaitForMcpServers"


class ScriptedApi:
    """The script, and what was seen.

    Attributes:
        url: where it listens, without a path.
        results: the text of each tool result, as the model would read it, in order.
        offered: the names of the tools of the last request that offered any.
        requests: (path, body) of every request.
        faults: what in the script did not fit the client.
    """

    def __init__(self, steps: list[Step], answer: str) -> None:
        self.steps, self.answer = steps, answer
        self.results: list[str] = []
        self.offered: list[str] = []
        self.requests: list[tuple[str, Any]] = []
        self.faults: list[str] = []
        self.url = ""
        self.fills = True
        self._lock = threading.Lock()

    def turn(self, offered: list[str], results: list[str]) -> tuple[str, dict[str, Any]] | None:
        """Return the call to answer with, by the client's own name of the tool; None for the final text."""
        with self._lock:
            if not offered:
                return None
            self.offered = offered
            if len(results) >= len(self.results):
                self.results = results
            if len(results) >= len(self.steps):
                return None
            tool, arguments = self.steps[len(results)]
            # Claude Code begins before its servers have started, and gives its model a tool to wait for them.
            if WAIT in offered and not any(name.endswith(tool) and "rye" in name for name in offered):
                return WAIT, {}
        return self._named(tool), arguments

    def _named(self, tool: str) -> str:
        fitting = [name for name in self.offered if re.search(rf"(?:^|rye.*[_.-]){re.escape(tool)}$", name)]
        assert fitting, (tool, self.offered)
        # The client's own tool of that name has no prefix: the longest is the server's.
        return max(fitting, key=len)


def _text(content: Any) -> str:
    """Return the text of a result, in whichever blocks it comes."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(one) for one in content)
    if isinstance(content, dict):
        return _text(content["text"]) if "text" in content else json.dumps(content, ensure_ascii=False)
    return str(content)


def _with_required(arguments: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with something for each parameter that a client made required, as a model gives it: a text that is empty."""
    plain = {"string": "", "integer": 1_000, "number": 100, "boolean": False, "array": [], "object": {}}
    known = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    return {**{name: known[name].get("default", plain.get(str(known[name].get("type")))) for name in missing}, **arguments}


# One function for each interface: (body, stream) -> (content type, body of the answer).


def _chat(api: ScriptedApi, body: dict[str, Any]) -> tuple[str, str]:
    offered = [one["function"]["name"] for one in body.get("tools") or () if one.get("type") == "function"]
    told = [(one["role"], _text(one["content"])) for one in body["messages"] if one.get("content")]
    # smolagents gives results as texts of the user.
    results = [text for role, text in told if role == "tool" or (role == "user" and text.startswith("Observation:"))]
    call = api.turn(offered, results)
    message: dict[str, Any] = {"role": "assistant", "content": api.answer if call is None else None}
    if call is not None:
        schema = next(one["function"]["parameters"] for one in body["tools"] if one["function"]["name"] == call[0])
        made = {"name": call[0], "arguments": json.dumps(_with_required(call[1], schema) if api.fills else call[1])}
        message["tool_calls"] = [{"index": 0, "id": f"call_{len(results)}", "type": "function", "function": made}]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    base = {"id": "c", "created": 1, "model": body["model"], "usage": usage}
    reason = "stop" if call is None else "tool_calls"
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return "application/json", json.dumps({**base, "object": "chat.completion", "choices": [choice]})
    chunks = [
        {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]
    return "text/event-stream", _events([(None, one) for one in chunks]) + "data: [DONE]\n\n"


def _responses(api: ScriptedApi, body: dict[str, Any]) -> tuple[str, str]:
    offered, spaces = [], {}
    for one in body.get("tools") or ():
        if one.get("type") == "namespace":
            for inner in one.get("tools", ()):
                # Named together for the script; the call names both parts.
                joined = f"{one['name']}{inner['name']}" if one["name"].endswith("_") else f"{one['name']}.{inner['name']}"
                offered.append(joined)
                spaces[joined] = (one["name"], inner["name"])
        elif one.get("type") == "function":
            offered.append(one["name"])
    given = body["input"] if isinstance(body["input"], list) else []
    results = [_text(one["output"]) for one in given if one.get("type") == "function_call_output"]
    call = api.turn(offered, results)
    if call is None:
        content = [{"type": "output_text", "text": api.answer, "annotations": []}]
        item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    else:
        number = f"call_{len(results)}"
        item = {"type": "function_call", "id": f"fc_{len(results)}", "call_id": number, "status": "completed"}
        item |= {"name": call[0], "arguments": json.dumps(call[1])}
        if call[0] in spaces:
            item["namespace"], item["name"] = spaces[call[0]]
    counts = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, **counts}
    whole = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": body["model"], "output": [item]}
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage, "error": None}
    if not body.get("stream"):
        return "application/json", json.dumps(whole)
    kinds = [
        ("response.created", {"response": {**whole, "status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": item}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    return "text/event-stream", _events(
        [(kind, {"type": kind, "sequence_number": at, **more}) for at, (kind, more) in enumerate(kinds)]
    )


def _anthropic(api: ScriptedApi, body: dict[str, Any]) -> tuple[str, str]:
    offered = [one["name"] for one in body.get("tools") or ()]
    blocks = [one for message in body["messages"] if isinstance(message["content"], list) for one in message["content"]]
    told = [one for one in blocks if one.get("type") == "tool_result" and not one["tool_use_id"].startswith("toolu_wait")]
    results = [_text(one.get("content", "")) for one in told]
    call = api.turn(offered, results)
    block: dict[str, Any] = {"type": "text", "text": api.answer}
    if call is not None:
        number = f"wait_{len(blocks)}" if call[0] == WAIT else str(len(results))
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]}
    reason = "end_turn" if call is None else "tool_use"
    message = {"id": "msg", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [block]}
    message |= {"stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    if not body.get("stream"):
        return "application/json", json.dumps(message)
    empty = {**block, "input": {}} if call is not None else {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": api.answer}
    if call is not None:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
    kinds = [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}}),
        ("message_stop", {}),
    ]
    return "text/event-stream", _events([(kind, {"type": kind, **more}) for kind, more in kinds])


def _gemini(api: ScriptedApi, body: dict[str, Any], *, stream: bool) -> tuple[str, str]:
    offered = [one["name"] for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
    parts = [part for content in body.get("contents", ()) for part in content.get("parts", ())]
    results = [_text(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
    call = api.turn(offered, results)
    part = {"text": api.answer} if call is None else {"functionCall": {"name": call[0], "args": call[1]}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}
    return ("text/event-stream", _events([(None, whole)])) if stream else ("application/json", json.dumps(whole))


def _events(events: list[tuple[str | None, Any]]) -> str:
    return "".join((f"event: {kind}\n" if kind else "") + f"data: {json.dumps(data)}\n\n" for kind, data in events)


def _answered(api: ScriptedApi, path: str, body: Any) -> tuple[str, str]:
    if path.endswith("/chat/completions"):
        return _chat(api, body)
    if path.endswith("/responses"):
        return _responses(api, body)
    if path.endswith("/messages/count_tokens"):
        return "application/json", '{"input_tokens": 1}'
    if path.endswith("/messages"):
        return _anthropic(api, body)
    if path.endswith(":countTokens"):
        return "application/json", '{"totalTokens": 1}'
    if "enerateContent" in path:
        return _gemini(api, body, stream="streamGenerateContent" in path)
    return "application/json", "{}" if body is not None else json.dumps({"object": "list", "data": [], "models": []})


@contextmanager
def scripted_api(steps: list[Step], answer: str = "Done.", *, fills: bool = True):
    """Serve a script for a block; with `fills` its model fills in what a client made required."""
    api = ScriptedApi(steps, answer)
    api.fills = fills

    def answered(handler: Any, data: bytes) -> tuple[int, dict[str, str], bytes]:
        path, body = handler.path.partition("?")[0], None
        if handler.command == "POST":
            try:
                body = json.loads(data) if data else {}
            except ValueError:
                body = {}
        api.requests.append((path, body))
        try:
            status, (kind, text) = 200, _answered(api, path, body)
        except Exception as err:
            # A script that does not fit the client.
            api.faults.append(f"{type(err).__name__}: {err}")
            status, kind, text = 400, "application/json", json.dumps({"error": {"message": api.faults[-1]}})
        return status, {"content-type": kind}, text.encode()

    with web_site.answering(answered) as port:
        api.url = f"http://127.0.0.1:{port}"
        yield api
