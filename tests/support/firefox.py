"""Firefox without a window, driven by its own protocol (WebDriver BiDi over a web socket, no driver beside it).

What `support.browser` does with Chromium: pages are opened, keys pressed, pictures taken.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from functools import cached_property
from typing import TYPE_CHECKING, Any

from support.browser import BasePage

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
WHY_NOT = (
    "needs Firefox: apt-get install firefox-esr"
    if PROGRAM is None
    else "needs the package websockets: pip install -e '.[dev]'"
    if importlib.util.find_spec("websockets") is None
    else ""
)

# Characters need only themselves; these are the protocol's letters for keys.
_NAMED = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004"}
_SECONDS = 120
# No requests of its own, and what the tests' pages are reached by.
_PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
    "layout.css.prefers-color-scheme.content-override": 1,
}


class Browser:
    """One browser with a profile of its own; `page()` opens a page in it."""

    def __init__(self, profile, hosts=(), **preferences):
        """Start it with a folder for its profile. `hosts` are names that lead to this machine."""
        self._profile, self._hosts, self._preferences = profile, hosts, preferences
        self._others = {}
        wanted = {**_PREFERENCES, "network.dns.localDomains": ",".join(hosts), **preferences}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wanted.items()]
        (profile / "user.js").write_text("".join(lines))
        self._process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(profile)},
        )
        self._number = 0
        self.events = []

    @cached_property
    def _socket(self) -> ClientConnection:
        """The connection: it is made when the browser is first used, and has said where it listens."""
        from websockets.sync.client import connect

        found = None
        while found is None:
            line = self._process.stderr.readline()
            assert line, "the browser ended"
            found = re.search(rb"BiDi listening on (ws://\S+)", line)
        with contextlib.ExitStack() as stack:
            socket = stack.enter_context(connect(f"{found[1].decode()}/session", max_size=None))
            self._stack = stack.pop_all()
        return socket

    @cached_property
    def _session(self) -> str:
        found = self._ask("session.new", capabilities={})["sessionId"]
        self._ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        return found

    def send(self, method, **params):
        """Send a command and return its result."""
        assert self._session
        return self._ask(method, **params)

    def _ask(self, method, **params):
        answer = self.answer(method, **params)
        assert answer["type"] == "success", (method, answer)
        return answer["result"]

    def answer(self, method, **params):
        """Send a command and return the whole answer, also an error."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv(timeout=_SECONDS))
            if answer.get("id") == self._number:
                return answer
            self.events.append(answer)

    def asked(self):
        """Return the addresses that all pages asked for."""
        self.send("session.status")
        return [one["params"]["request"]["url"] for one in self.events if one["method"] == "network.beforeRequestSent"]

    def page(self, *, width=1200, height=800, dark=False, scripts=True):
        """Open an empty page. A dark one, and one without scripts, is in a browser of its own: these are settings of all."""
        other = {} if not dark else {"layout.css.prefers-color-scheme.content-override": 0}
        other |= {} if scripts else {"javascript.enabled": False}
        browser = self._other(other) if other else self
        page = Page(browser, browser.send("browsingContext.create", type="tab")["context"])
        page.size(width, height)
        return page

    def _other(self, preferences):
        name = repr(preferences)
        if name not in self._others:
            profile = self._profile / f"other{len(self._others)}"
            profile.mkdir()
            self._others[name] = Browser(profile, hosts=self._hosts, **{**self._preferences, **preferences})
        return self._others[name]

    def close(self):
        """End it."""
        for one in self._others.values():
            one.close()
        with contextlib.suppress(Exception):
            self.answer("browser.close")
            self._stack.close()
        self._process.kill()
        self._process.wait()
        self._process.stderr.close()


class Page(BasePage):
    """One page."""

    def __init__(self, browser, context):
        self._browser, self._context = browser, context

    def send(self, method, **params):
        """Send a command about this page."""
        return self._browser.send(method, context=self._context, **params)

    def size(self, width, height=800):
        """Set the size of what is seen (pixels)."""
        self.send("browsingContext.setViewport", viewport={"width": width, "height": height})

    def goto(self, url):
        """Open an address and wait until it is loaded; return what the browser says went wrong."""
        self.eval("window.__old = true", quiet=True)
        answer = self._browser.answer("browsingContext.navigate", context=self._context, url=url, wait="complete")
        if answer["type"] == "error":
            return answer["message"]
        self.settle()
        return ""

    def eval(self, expression, *, quiet=False):
        """Return the value of a JavaScript expression; a promise is waited for."""
        answer = self._browser.answer(
            "script.evaluate", expression=expression, target={"context": self._context}, awaitPromise=True, userActivation=True
        )
        # While a document gives way to the next one there is nothing to ask.
        found = answer.get("result", {})
        assert quiet or found.get("type") == "success", answer
        return _value(found.get("result", {}))

    def press(self, *keys):
        """Press keys, one after another, as a keyboard does."""
        self.send("browsingContext.activate")
        for key in keys:
            deeds = [{"type": kind, "value": _NAMED.get(key, key)} for kind in ("keyDown", "keyUp")]
            self.send("input.performActions", actions=[{"type": "key", "id": "keys", "actions": deeds}])

    def click(self, x, y):
        """Press the left button of the mouse at a place (pixels)."""
        where = {"type": "pointerMove", "x": round(x), "y": round(y)}
        deeds = [where, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.send("input.performActions", actions=[{"type": "pointer", "id": "mouse", "actions": deeds}])

    def type(self, text):
        """Type a text into what has the focus."""
        self.press(*text)

    def cookies(self, _url):
        """Return the cookies that the page's addresses get, as `name`, `value` and `path`."""
        where = {"type": "context", "context": self._context}
        found = self._browser.send("storage.getCookies", partition=where)["cookies"]
        return [{**one, "value": one["value"]["value"]} for one in found]

    def picture(self, path, *, whole=False):
        """Store a picture of what is seen, or of the whole page."""
        found = self.send("browsingContext.captureScreenshot", origin="document" if whole else "viewport")
        path.write_bytes(base64.b64decode(found["data"]))

    def troubles(self):
        """Return what the browser complained of on this page: errors of scripts."""
        mine = [one["params"] for one in self._browser.events if one["method"] == "log.entryAdded"]
        mine = [one for one in mine if one["level"] == "error" and one["source"].get("context") == self._context]
        # The browser asks for it by itself; the pages have none, and their policy allows none.
        return [one["text"] for one in mine if "favicon.ico" not in one["text"]]


def _value(found: dict[str, Any]) -> Any:
    """Return a JavaScript value from the protocol's form."""
    kind, value = found.get("type"), found.get("value")
    if kind == "array":
        return [_value(one) for one in value]
    if kind == "object":
        return {name: _value(one) for name, one in value}
    return value
