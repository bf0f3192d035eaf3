"""How long a read of 200 lines takes over MCP, beside the reference file server for Node.js, in one run.

    python benchmarks/mcp_latency.py [--calls N] [--node-server PATH|none]

Prints medians in milliseconds: both servers over stdio, asked in turn by one client that begins as clients do (initialize,
initialized, tools/list), and where ours spends its time: the tool itself, the executor around it (verify, validate, confine),
and the rest, which is the MCP server; beside them the protocol library with a tool that does nothing; then ours once more while
twenty commands sleep. Without --node-server the Node.js server is installed into a temporary folder by npm.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.mcp_peer import command, environment

NODE_SERVER = "@modelcontextprotocol/server-filesystem@2026.8.31"
SLEEPERS = 20
EMPTY = """
import sys, anyio
from mcp.server.stdio import stdio_server
import mcp_types as types
from mcp.server.lowlevel.server import Server
text = sys.argv[1]

async def listed(context, params):
    return {"resultType": "complete", "tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]}

async def call(context, params):
    fields = {"success": True, "output": text}
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": fields, "isError": False}

async def main():
    server = Server("empty", version="1")
    server.add_request_handler("tools/list", types.PaginatedRequestParams, listed)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call)
    server.middleware.clear()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""

FRAMEWORK = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("empty")
text = sys.argv[1]

@server.tool()
def nothing() -> str:
    return text

server.run("stdio")
"""
"""An empty tool as the SDK's own documentation has one write it (FastMCP until version 1 of the SDK)."""


class Client:
    """One server, and the plainest client it can have."""

    def __init__(self, words, tool, arguments):
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
        )
        self.number, self.times = 0, []
        self.params = {"name": tool, "arguments": arguments}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.ask("tools/list", {})

    def ask(self, method, params):
        """Send a request; return the line that answers it."""
        self.number += 1
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        while b'"id":' not in (line := self.process.stdout.readline()):
            assert line, "the server ended"
        return line

    def call(self):
        """Call the tool once and note how long the answer took."""
        started = time.perf_counter()
        line = self.ask("tools/call", self.params)
        self.times.append((time.perf_counter() - started) * 1_000)
        return line

    def close(self):
        """End the server."""
        self.process.stdin.close()
        self.process.wait(20)


def begin(client, count):
    """Begin commands that sleep for as long as the server lives; their answers are not waited for."""
    for number in range(count):
        params = {"name": "bash", "arguments": {"command": "sleep 600"}}
        request = {"jsonrpc": "2.0", "id": f"sleeper {number}", "method": "tools/call", "params": params}
        client.process.stdin.write(json.dumps(request).encode() + b"\n")
    client.process.stdin.flush()
    time.sleep(3)


def median_of(function, calls):
    """Return the median time of a function in milliseconds."""
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        function()
        times.append((time.perf_counter() - started) * 1_000)
    return statistics.median(times[calls // 10 :])


def node_server(folder):
    """Install the Node.js server; return its program."""
    words = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", NODE_SERVER]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return f"{folder}/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"


def measure(folder, calls, program):
    """Return the medians by name, in milliseconds."""
    import rye
    from rye.toolkit import view_lines

    project = Path(folder, "project")
    project.mkdir()
    text = "".join(f'    value_{number} = compute(alpha, beta={number}, gamma="text {number}")\n' for number in range(200))
    (project / "a.py").write_text(text, encoding="utf-8")
    arguments = {"file_path": "a.py"}
    shown = rye.execute("rye/file-system/read", arguments, project_path=project)["data"]["output"]
    clients = {
        "ours": Client(command(project), "read", arguments),
        "sdk": Client([sys.executable, "-c", EMPTY, shown], "nothing", {}),
    }
    if program != "none":
        node = ["node", program or node_server(folder), str(project)]
        clients["node"] = Client(node, "read_text_file", {"path": str(project / "a.py")})
    for client in clients.values():
        client.call()
        client.times.clear()
    for _ in range(calls):
        for client in clients.values():
            client.call()
    assert all("value_199" in str(client.call()) for client in clients.values())
    assert "version " in str(clients["ours"].call())
    busy = clients["ours"]
    alone, busy.times = busy.times, []
    begin(busy, SLEEPERS)
    for _ in range(calls):
        busy.call()
    sleeping, busy.times = busy.times, alone
    for client in clients.values():
        client.close()
    found = {name: statistics.median(client.times[calls // 10 :]) for name, client in clients.items()}
    found["sleeping"] = statistics.median(sleeping[calls // 10 :])
    found["tool"] = median_of(
        lambda: view_lines(str(project), "a.py", lambda document: document.printed(0, document.count)), calls
    )
    found["call"] = median_of(lambda: rye.execute("rye/file-system/read", arguments, project_path=project), calls)
    return found


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--node-server", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        found = measure(folder, options.calls, options.node_server)
    executor = found["call"] - found["tool"]
    server = found["ours"] - found["call"]
    ratio = ""
    if "node" in found:
        ratio = f", {found['ours'] / found['node']:.2f} times that"
        print(f"server-filesystem (Node.js) {found['node']:.2f} ms")
    print(f"an empty tool of the SDK    {found['sdk']:.2f} ms")
    print(f"rye mcp                     {found['ours']:.2f} ms{ratio}, of which")
    print(f"  the tool, with line IDs   {found['tool']:.2f}")
    print(f"  executor                  {executor:.2f}")
    print(f"  server                    {server:.2f}   (the pipe, the line's JSON)")
    print(f"with {SLEEPERS} commands asleep    {found['sleeping']:.2f} ms")


if __name__ == "__main__":
    main()
