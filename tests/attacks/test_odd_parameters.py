"""Every tool, with odd values for each of its parameters: an answer or a refusal, never a crash.

Control: a tool that fails unexpectedly is reported as `tool_crashed`, and seen here.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import rye
from rye.lsp import session
from support.harness import times

TEXTS = (
    "", "a.py", "odd.bin", "latin.txt", "empty", "folder", "link", "dangling", "nope", "crlf.txt", ".", "..", "/",
    "/etc/passwd", "folder/../a.py", "a.py/", "./a.py", "\0", "a\0b", "\ud800", "\udcff", "a\nb", "é☃\U0001f600", "x" * 10_000,
    "-1", "*", "**/*", "[", "(", "{", "a{b", "\\", "a\\", "$(id)", "~", "\x1b[2J", "\u2028", "int", "f", "true",
    "rye/file-system/read", "tool", "0" * 64, "f" * 6, "start", "http://127.0.0.1:1/x", "%00", "con.", "a.py:2", "\ufeff",
    "utf-8", "latin-1", "idna", "rot13", "undefined", "utf-8-sig",
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 10, 10**6, 2**31, 2**63, 2**64, -(2**63), 10**400, 1.5, 1e308, -0.0, 100)
OTHERS: tuple[Any, ...] = (None, True, [], {}, "x", 5, [[]], {"a": {}})
COMMANDS = ("echo hi", "exit 3", "cat", "printf '\\xff'", "", "kill $$", "cd /nowhere")
# It would ask the web.
LEFT_OUT = {"rye/web/websearch"}


def fill(root: Path) -> None:
    """Make, or make again, what the tools are pointed at."""
    (root / ".git").mkdir(exist_ok=True)
    (root / "folder").mkdir(exist_ok=True)
    for name, data in {
        "a.py": b"def f(a):\n    return a\nf('x')\n",
        "odd.bin": bytes(range(256)),
        "latin.txt": b"\xe9\n\xe8",
        "empty": b"",
        "crlf.txt": b"a\r\nb\rc\n",
    }.items():
        (root / name).write_bytes(data)
    for name, target in (("link", "a.py"), ("dangling", "nope")):
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)


class Odd:
    """Values for schemas: mostly of the right type, from the edges."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def parameters(self, tool: dict[str, Any]) -> dict[str, Any]:
        """Return parameters for a tool; what runs commands or waits gets harmless ones."""
        made = self.of(tool["parameters"], always=True)
        if tool["item_id"] == "rye/bash/bash":
            made.update(command=self.random.choice(COMMANDS), timeout=self.random.choice((1, 0, -1, 2)))
        elif "timeout" in made:
            made["timeout"] = self.random.choice((1, 0, -1, "x"))
        return made

    def of(self, schema: dict[str, Any], *, always: bool = False) -> Any:
        """Return a value."""
        pick = self.random.choice
        if not always and self.random.random() < 0.06:
            return pick(OTHERS)
        if "enum" in schema and self.random.random() < 0.85:
            return pick(schema["enum"])
        kind = schema.get("type", "string")
        kind = pick(kind) if isinstance(kind, list) else kind
        if kind == "object":
            wanted = {name for name in schema.get("properties", {}) if name in schema.get("required", ())}
            some = {name for name in schema.get("properties", {}) if self.random.random() < 0.35}
            return {name: self.of(part) for name, part in schema.get("properties", {}).items() if name in wanted | some}
        if kind == "array":
            return [self.of(schema.get("items", {})) for _ in range(pick((0, 1, 1, 2, 3)))]
        return pick({"integer": NUMBERS, "number": NUMBERS, "boolean": (True, False)}.get(kind, TEXTS))


def crashes(root: Path, seed: int, calls: int) -> list[str]:
    """Return what crashed, with its parameters."""
    odd, found = Odd(seed), []
    tools = [
        one for one in rye.tools(project_path=str(root)) if one["tool_type"] == "python" and one["item_id"] not in LEFT_OUT
    ]
    for number in range(calls):
        if number % 20 == 0:
            fill(root)
        tool = odd.random.choice(tools)
        parameters = odd.parameters(tool)
        answer = rye.execute(tool["item_id"], parameters, project_path=root)
        json.dumps(answer)
        if "tool_crashed" in (answer.get("code"), (answer.get("data") or {}).get("code")):
            found.append(f"{tool['item_id']} {parameters!r}: {answer['error']}")
    session.close_all()
    return found


@pytest.mark.slow
def test_no_tool_crashes_whatever_it_is_given(project, rng):
    assert crashes(project, rng.randrange(1 << 32), times(250)) == []


@pytest.mark.usefixtures("here")
def test_control_a_tool_that_crashes_is_seen(project):
    from support.signed_tools import put_tool

    put_tool(project, "my/crashing", body="return [][0]")
    found = crashes(project, 1, 300)
    assert found
    assert all("my/crashing" in one for one in found)
