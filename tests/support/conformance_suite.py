"""The official MCP conformance suite against this server: its test items as signed items of a project, a proxy, and its verdicts.

The suite knows its tools, prompts and resources by fixed names (`test_simple_text`, `test://static-text`); here ids lead to names
and URIs (`conformance__test--usimple--utext`). And it sends no token. So a proxy stands between: it puts the token in and writes the
suite's names for ours, in both directions; it changes nothing else.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from support.client_programs import installed
from support.mcp_peer import listening
from support.signed_tools import put, put_tool, signed

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22"
ITEMS = Path(__file__).with_name("conformance")

_URIS = {
    "test://static-text": "rye://knowledge/conformance/static-text",
    "test://template/123/data": "rye://knowledge/conformance/template/123/data",
    "test://template/{id}/data": "rye://knowledge/conformance/template/{id}/data",
}


_PICTURE = {
    "type": "image",
    "mimeType": "image/png",
    "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==",
}
_SOUND = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="}


def _resource(uri, kind, text):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


_TEXT = _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
_DATA = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
# Tools that are written here, by what they return; others, directives and knowledge lie in ITEMS.
_TOOLS = {
    "test_audio_content": {"success": True, "output": "[audio/wav, 0 s]", "media": [_SOUND]},
    "test_embedded_resource": {"success": True, "output": "[test://embedded-resource]", "media": [_TEXT]},
    "test_error_handling": {
        "success": False,
        "code": "intended",
        "error": "This tool intentionally returns an error for testing",
    },
    "test_image_content": {"success": True, "output": "[image/png, 1 x 1]", "media": [_PICTURE]},
    "test_multiple_content_types": {"success": True, "output": "Multiple content types test:", "media": [_PICTURE, _DATA]},
}
# A parameter that clients repeat in a header.
_REGION = {"type": "object", "properties": {"region": {"type": "string", "description": "Any text", "x-mcp-header": "Region"}}}


def put_items(project):
    """Sign the suite's items with a key that the test's user trusts, and put them into the project."""
    for name, answer in _TOOLS.items():
        put_tool(project, f"conformance/{name}", f"return {answer!r}")
    put_tool(project, "conformance/test_x_mcp_header", 'return {"success": True, "output": params.get("region", "")}', _REGION)
    for path in sorted(ITEMS.rglob("*.*")):
        kind, _, rest = path.relative_to(ITEMS).as_posix().partition("/")
        item_type = kind.removesuffix("s") if kind != "knowledge" else kind
        raw = signed(path.read_bytes(), item_type=item_type, suffix=path.suffix)
        put(project, f"{kind}/conformance/{rest}", raw)


def _names():
    """Return the suite's name -> ours, as they stand in JSON."""
    found = {f'"{uri}"': f'"{ours}"' for uri, ours in _URIS.items()}
    own = [path.stem for kind in ("tools", "directives") for path in (ITEMS / kind).glob("*.*")]
    return found | {f'"{name}"': f'"conformance__{name}"' for name in [*_TOOLS, "test_x_mcp_header", *own]}


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str
    token: str
    names: dict[str, str]

    def _pass_on(self):
        length = int(self.headers.get("content-length") or 0)
        body = self._renamed(self.rfile.read(length), self.names) if length else None
        there = urlsplit(self.upstream)
        here = f"127.0.0.1:{self.server.server_address[1]}"
        headers = {}
        for name, value in self.headers.items():
            if name.lower() in ("content-length", "connection", "accept-encoding"):
                continue
            # Our own name stands for the server's; any other is passed on for the server to judge.
            known = value.replace(here, there.netloc).replace(here.replace("127.0.0.1", "localhost"), there.netloc)
            headers[name] = self._renamed_header(name, known)
        headers["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPConnection(there.netloc, timeout=120)
        try:
            connection.request(self.command, there.path, body, headers)
            answer = connection.getresponse()
            self._answer(answer)
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            connection.close()

    def _renamed_header(self, name, value):
        # The newest revision repeats the name of a tool, prompt or resource in a header.
        quoted = f'"{value}"'
        return self.names.get(quoted, quoted)[1:-1] if name.lower() == "mcp-name" else value

    def _answer(self, answer):
        self.send_response(answer.status)
        streams = "event-stream" in (answer.headers.get("content-type") or "")
        data = b"" if streams else self._renamed(answer.read(), {ours: name for name, ours in self.names.items()})
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        if streams:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        if not streams:
            self.wfile.write(data)
            return
        back = {ours: name for name, ours in self.names.items()}
        while line := answer.readline():
            line = self._renamed(line, back)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def _renamed(data, names):
        for name, other in names.items():
            data = data.replace(name.encode(), other.encode())
        return data

    do_GET = do_POST = do_DELETE = do_OPTIONS = _pass_on

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """The suite closes its connections by a reset."""


@contextmanager
def proxied(project, *options):
    """Serve a project with the suite's items over HTTP for a block; yields the URL for the suite."""
    with listening(project, "--category", "conformance", *options) as server:
        members = {"upstream": server.url, "token": server.token, "names": _names()}
        proxy = _Server(("127.0.0.1", 0), type("Proxy", (_Proxy,), members))
        proxy.daemon_threads = True
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}/mcp"
        finally:
            proxy.shutdown()
            proxy.server_close()
            thread.join(10)


def install(folder):
    """Install the suite and a Node.js that runs it into a folder; return the command, or the reason why it cannot be had."""
    if why := installed(folder, npm=(SUITE, NODE)):
        return why
    return [f"{folder}/node_modules/node/bin/node", f"{folder}/node_modules/@modelcontextprotocol/conformance/dist/index.js"]


def scenarios(command, revision):
    """Return the names of the server scenarios that apply to a revision, and those of extensions, as the suite lists them."""
    done = subprocess.run([*command, "list"], capture_output=True, text=True, check=True)
    part = done.stdout.partition("Server scenarios")[2].partition("Client scenarios")[0]
    rows = re.findall(r"- ([\w-]+) \[([^\]]*)\]", part)
    return [name for name, when in rows if revision in when.split(",")], [name for name, when in rows if when == "extension"]


def run(command, url, folder, *which):
    """Run scenarios in one process; return of each its checks as (id, status, message)."""
    words = [*command, "server", "--url", url, *which, "-o", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}, timeout=600)
    found = {}
    for file in Path(folder).rglob("checks.json"):
        name = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name)[1]
        checks = json.loads(file.read_text(encoding="utf-8"))
        found[name] = [(one["id"], one["status"], one.get("errorMessage") or "") for one in checks]
    assert found, f"{which} left no verdict\n{done.stdout[-2_000:]}\n{done.stderr[-500:]}"
    return found
