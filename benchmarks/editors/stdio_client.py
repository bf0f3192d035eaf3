"""A tiny MCP client: one server process, JSON-RPC over its standard streams."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from outcome import Unavailable

_PATIENCE_SECONDS = 120
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "rye-replay-bench", "version": "1"}}


class ToolFailed(Exception):
    """The server answered that the call failed; the message is its own."""


class StdioServer:
    """A server that is started on first use and again after it died."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._last_id = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text of its result.

        Raises:
            ToolFailed: The server said no, died, or was silent too long.
        """
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if "error" in answer:
            raise ToolFailed(str(answer["error"].get("message")))
        result = answer["result"]
        text = "\n".join(part["text"] for part in result["content"] if part["type"] == "text")
        if result.get("isError"):
            raise ToolFailed(text)
        return text

    def start(self) -> None:
        """Start the server and shake hands.

        Raises:
            Unavailable: It does not start.
        """
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self.ask("initialize", _HELLO)
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except (OSError, ToolFailed) as error:
            raise Unavailable(f"does not start: {error}") from error

    def close(self) -> None:
        """End the server."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self.start()
        self._last_id += 1
        watch = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        watch.start()
        try:
            self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
            return self._answer(self._last_id)
        except (OSError, ValueError) as error:
            self.close()
            raise ToolFailed(f"the server died or fell silent: {error}") from error
        finally:
            watch.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, wanted: int) -> dict[str, Any]:
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == wanted and "method" not in message:
                return message
