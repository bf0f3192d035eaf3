"""The page of changes for clients that show pages (MCP Apps): only they are offered it, and a host that shows it sees only `undo` called."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rye.mcp_server.server import REVISIONS
from support import browser as browsers
from support.mcp_peer import peer

MIME = "text/html;profile=mcp-app"
SHOWS = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [MIME]}}}
URI = "ui://rye/changes"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_client_that_shows_pages_is_offered_one_by_undo_alone(project, revision):
    with peer(project, revision=revision, capabilities=SHOWS) as server:
        tools = server.tools()
        assert {name: tool["_meta"]["ui"] for name, tool in tools.items() if name == "undo"} == {
            "undo": {"resourceUri": URI, "visibility": ["model", "app"]}
        }
        # No page may call any other tool.
        assert {tuple(tool["_meta"]["ui"]["visibility"]) for name, tool in tools.items() if name != "undo"} == {("model",)}
        (content,) = server.ask("resources/read", {"uri": URI})["result"]["contents"]
        assert (content["uri"], content["mimeType"]) == (URI, MIME)
        assert content["_meta"]["ui"]["csp"] == {"connectDomains": [], "resourceDomains": []}
        for outside in ("http://", "https://", "src=", "fetch(", "XMLHttpRequest", "WebSocket", "innerHTML", "eval("):
            assert outside not in content["text"], outside


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"extensions": {}},
        {"extensions": {"io.modelcontextprotocol/ui": {}}},
        {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/plain"]}}},
    ],
)
def test_any_other_client_sees_nothing_of_it(project, revision, capabilities):
    with peer(project, revision=revision, capabilities=capabilities) as server:
        assert all("ui" not in tool["_meta"] for tool in server.tools().values())
        assert "error" in server.ask("resources/read", {"uri": URI})
        server.call("write", {"file_path": "a.txt", "content": "a\n"})
        assert "structuredContent" not in server.call("undo", {"list": True})


def test_only_a_list_of_changes_has_fields_for_the_page(project):
    with peer(project, capabilities=SHOWS) as server:
        server.call("write", {"file_path": "a.txt", "content": "a\n"})
        fields = server.call("undo", {"list": True})["structuredContent"]
        assert fields["entries"][0]["file_path"] == "a.txt"
        assert "structuredContent" not in server.call("undo")
        assert "structuredContent" not in server.call("read", {"file_path": "b"})
        entry = fields["entries"][0]["entry_id"]
        assert server.call("undo", {"list": True, "entry_id": entry})["structuredContent"]["hunks"][0]["hunk"] == 1


HOST = """<!doctype html><title>host</title><body><script>
const frame = document.createElement('iframe');
frame.sandbox = 'allow-scripts';
frame.style = 'width: 640px; height: 700px; border: 0';
window.heard = [];
addEventListener('message', async event => {
  if (event.source !== frame.contentWindow) return;
  const message = event.data;
  heard.push([message.method, JSON.stringify(message.params ?? null)]);
  const answer = result => frame.contentWindow.postMessage({jsonrpc: '2.0', id: message.id, result}, '*');
  if (message.method === 'ui/initialize') answer({protocolVersion: '2026-01-26', hostInfo: {name: 'scripted', version: '1'},
    hostCapabilities: {serverTools: {}}, hostContext: {theme: document.location.hash.slice(1) || 'light',
    styles: {variables: {'--color-text-primary': 'rgb(1, 2, 3)', '--color-background-primary': 'url(//evil.example/x)', 'position': 'fixed'}}}});
  if (message.method === 'tools/call') answer(await (await fetch('/call', {method: 'POST', body: JSON.stringify(message.params)})).json());
});
fetch('/page').then(one => one.text()).then(text => { frame.srcdoc = text; document.body.append(frame); });
</script>"""


@pytest.fixture
def host(project):
    """A page that shows the server's page in a frame without an origin, and passes its calls of tools on, as clients do."""
    with peer(project, capabilities=SHOWS) as server:
        text = server.ask("resources/read", {"uri": URI})["result"]["contents"][0]["text"]
        lock = threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self._say(text if self.path == "/page" else HOST, "text/html; charset=utf-8")

            def do_POST(self):
                given = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with lock:
                    self._say(json.dumps(server.call(given["name"], given["arguments"])), "application/json")

            def _say(self, body, kind):
                self.send_response(200)
                self.send_header("content-type", kind)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        site = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_port}/", server
        finally:
            site.shutdown()
            thread.join()
            site.server_close()


class _Inside:
    """The frame in a host's page."""

    def __init__(self, page):
        self._page = page
        page.until("document.querySelector('iframe')")
        self._context = None

    def eval(self, expression):
        frames = self._page.send("Page.getFrameTree")["frameTree"].get("childFrames", [])
        if not frames:
            return None
        world = self._page.send("Page.createIsolatedWorld", frameId=frames[0]["frame"]["id"])["executionContextId"]
        found = self._page.send(
            "Runtime.evaluate", expression=expression, contextId=world, returnByValue=True, awaitPromise=True
        )
        return found["result"].get("value")


@pytest.mark.slow
@pytest.mark.skipif(browsers.PROGRAM is None, reason="needs Chromium: apt-get install chromium")
def test_a_host_shows_the_page_and_it_takes_back_and_restores(tmp_path, project, host):
    from support.waiting import until

    address, server = host
    (project / "ten.txt").write_text("".join(f"{number}\n" for number in range(20)))
    server.call("bash", {"command": "true"})
    server.call("bash", {"command": "sed -i '2s/.*/<b>two/; 15s/.*/fifteen/' ten.txt"})
    server.call("write", {"file_path": "<i>.txt", "content": "evil \u202e<script>parent.postMessage(1, '*')</script>\n"})
    browser = browsers.Browser(tmp_path / "profile", "--disable-features=IsolateSandboxedIframes")
    try:
        page = browser.page()
        page.goto(f"{address}#dark")
        frame = _Inside(page)
        until(lambda: "2 of 2 changes" in (frame.eval("document.getElementById('said').textContent") or ""))
        assert frame.eval("document.documentElement.dataset.theme") == "dark"
        assert frame.eval("getComputedStyle(document.body).color") == "rgb(1, 2, 3)"
        assert frame.eval("document.documentElement.style.position") == ""
        assert "evil.example" not in frame.eval("document.documentElement.getAttribute('style')")
        assert frame.eval("document.querySelectorAll('main i, main b > *, main script').length") == 0
        frame.eval("document.querySelectorAll('summary')[1].click()")
        until(lambda: frame.eval("document.querySelectorAll('li')[1].querySelectorAll('button').length") == 3)
        assert "<b>two" in frame.eval("document.querySelectorAll('li')[1].innerText")
        frame.eval("[...document.querySelectorAll('button')].find(one => one.textContent === 'Take back hunk 2').click()")
        until(lambda: "14\n" in (project / "ten.txt").read_text())
        assert "<b>two" in (project / "ten.txt").read_text()
        until(lambda: frame.eval("document.querySelectorAll('li').length") == 3)
        frame.eval("document.querySelectorAll('summary')[1].click()")
        until(lambda: "[U+202E]" in frame.eval("document.querySelectorAll('li')[1].innerText"))
        frame.eval("document.querySelectorAll('li')[1].querySelector('button').click()")
        until(lambda: not (project / "<i>.txt").exists())
        until(lambda: "taken back" in frame.eval("document.getElementById('list').innerText"))
        frame.eval("document.querySelectorAll('summary')[2].click()")
        page.picture(tmp_path / "page.png")
        heard = page.eval("heard")
        called = {json.loads(given)["name"] for method, given in heard if method == "tools/call"}
        assert called == {"undo"}
        assert {method for method, _ in heard} == {
            "ui/initialize",
            "ui/notifications/initialized",
            "tools/call",
            "ui/notifications/size-changed",
        }
        assert [one for one in page.troubles() if "favicon" not in one] == []
    finally:
        browser.close()
