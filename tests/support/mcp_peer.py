"""A client of `rye mcp` that speaks plain JSON-RPC, so that what goes over the wire is seen as it is."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

from support.harness import environment

META = "io.modelcontextprotocol/"
WHO = {"name": "test", "version": "1"}
STREAMS = ("stdin", "stdout", "stderr")
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")
ARGUMENTS = {
    "write": {"file_path": "made.txt", "content": "one\n"},
    "read": {"file_path": "made.txt"},
    "edit_lines": {"file_path": "made.txt", "changes": [{"after_line_id": "end", "new_content": "two"}]},
    "undo": {}, "glob": {"pattern": "*.txt"}, "grep": {"pattern": "one"}, "ls": {}, "bash": {"command": "echo out"},
    "job": {"action": "list"}, "rye_search": {"query": "edit a line"},
}  # fmt: skip
"""A call of each default tool that succeeds, in an order in which they do."""


def command(project, *options):
    """Return the command line of a server."""
    return [sys.executable, "-m", "rye", "mcp", "--project", str(project), *options]


class Peer:
    """A server over stdio, and the requests made of it, from any thread."""

    def __init__(self, project, *options, words=None, revision="2025-11-25", env=None, capabilities=None):
        argv, where = words or command(project, *options), project if words else None
        self.process = subprocess.Popen(argv, cwd=where, env=env or environment(), **dict.fromkeys(STREAMS, subprocess.PIPE))
        self.revision = revision
        self.capabilities = capabilities or {}
        self.lines, self.notices, self.errors = [], [], []
        self._waiting, self._lock, self._next = {}, threading.Lock(), 0
        hearing = (self._hear, lambda: self.errors.extend(self.process.stderr))
        self._threads = [threading.Thread(target=one, daemon=True) for one in hearing]
        for thread in self._threads:
            thread.start()
        if not self.modern:
            hello = {"protocolVersion": revision, "capabilities": self.capabilities, "clientInfo": WHO}
            self.hello = self.ask("initialize", hello)["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        else:
            self.hello = self.ask("server/discover")["result"]

    @property
    def modern(self):
        """Whether each request carries its own envelope."""
        return self.revision >= "2026"

    def _hear(self):
        for line in self.process.stdout:
            self.lines.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                continue
            waiting = self._waiting.pop(message.get("id"), None) if "method" not in message else None
            if waiting is None:
                self.notices.append(message)
            else:
                waiting.put(message)

    def send(self, message):
        """Write one message."""
        with self._lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def begin(self, method, params=None, **meta):
        """Send a request; return its id and a function that waits for the whole answer."""
        with self._lock:
            self._next += 1
            number = self._next
        answer = self._waiting[number] = queue.Queue()
        params = dict(params or {})
        if self.modern:
            meta |= {f"{META}protocolVersion": self.revision, f"{META}clientInfo": WHO}
            meta[f"{META}clientCapabilities"] = self.capabilities
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number, lambda seconds=60: answer.get(timeout=seconds)

    def ask(self, method, params=None, **meta):
        """Send a request; return the whole answer."""
        return self.begin(method, params, **meta)[1]()

    def tools(self):
        """Return the tools by name, in their order."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}

    def call(self, name, arguments=None, **meta):
        """Call a tool; return its result."""
        answer = self.ask("tools/call", {"name": name, "arguments": arguments or {}}, **meta)
        assert "result" in answer, answer
        return answer["result"]

    def text(self, name, **arguments):
        """Call a tool that is to succeed; return its text."""
        result = self.call(name, arguments)
        assert not result["isError"], result
        return result["content"][0]["text"]

    def resident(self):
        """Return the server's resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def close(self, seconds=20):
        """Close the server's input, as clients do; return its exit code."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        return _ended(self, self._threads, seconds)


def _ended(server, threads, seconds):
    process = server.process
    try:
        return process.wait(seconds)
    finally:
        process.kill()
        process.wait()
        for thread in threads:
            thread.join(5)
        process.stdout.close()
        process.stderr.close()
        # An internal error of one call among many.
        assert b"Traceback (most" not in (said := b"".join(server.errors)), said.decode(errors="replace")


def peer(project, *options, **settings):
    """Start a server over stdio for a block."""
    return closing(Peer(project, *options, **settings))


class Listening:
    """A server over HTTP, its URL and token as it printed them."""

    def __init__(self, project, *options, address="127.0.0.1:0", env=None):
        streams = {**dict.fromkeys(STREAMS, subprocess.PIPE), "stdin": subprocess.DEVNULL}
        words = command(project, "--http", address, *options)
        self.process = subprocess.Popen(words, env=env or environment(), **streams)
        self.said = [self.process.stderr.readline().decode() for _ in range(2)]
        self.url = self.said[0].split()[-1]
        self.token = self.said[1].split()[-1]
        self.errors = []
        self._thread = threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True)
        self._thread.start()

    def close(self):
        """End the server; return its exit code."""
        self.process.terminate()
        return _ended(self, [self._thread], 120)


def listening(project, *options, **settings):
    """Start a server over HTTP for a block."""
    return closing(Listening(project, *options, **settings))
