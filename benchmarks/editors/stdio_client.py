"""A tiny MCP client: one server process, JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from outcome import Unavailable

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class ToolFailed(Exception):
    """The server answered that the call failed; the message is its own."""


class StdioServer:
    """A server, started anew after it died."""

    def __init__(self, command: list[str], env: dict[str, str] | None = None) -> None:
        """Start it and shake hands.

        Raises:
            Unavailable: It does not start.
        """
        self._command, self._env, self._number = command, env, 0
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._start()
        except (OSError, ToolFailed) as error:
            raise Unavailable(f"does not start: {error}") from error

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._env
        )
        self.ask("initialize", _HELLO)
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text of its result.

        Raises:
            ToolFailed: The server said no, or died.
        """
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            raise ToolFailed(str(answer["error"].get("message")))
        result = answer["result"]
        text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
        if result.get("isError"):
            raise ToolFailed(text)
        return text

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request; return its answer. Raises ToolFailed: the server died."""
        if self.process is None:
            self._start()
        try:
            number = self.send(method, params)
            while (message := json.loads(self.line())).get("id") != number or "method" in message:
                pass
            return message
        except (OSError, ValueError) as error:
            self.close()
            raise ToolFailed(f"the server died: {error}") from error

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; return its number."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return self._number

    def line(self) -> bytes:
        """Return the next line that may answer a request; empty where the server has ended."""
        while (line := self.process.stdout.readline()) and b'"id":' not in line:
            pass
        return line

    def close(self) -> None:
        """End the server."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None
