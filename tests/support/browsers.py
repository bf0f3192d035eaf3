"""Chromium and Firefox without a window, each driven by its own protocol over a web socket: pages are opened, keys pressed, pictures taken.

Each test of the pages runs in both (`ALL`), and is skipped where one is missing.
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
import time
from typing import Any

import pytest

from support.waiting import until

_SECONDS = 120


class Browser:
    """One browser with a profile of its own, and what it told; `page()` opens a page in it."""

    programs: tuple[str, ...] = ()
    package = ""

    def __init__(self, profile, words, path=""):
        """Start it with a folder for its profile, and connect at a path below the address that it names."""
        from websockets.sync.client import connect

        self._number, self.events = 0, []
        with (profile / "said").open("wb") as said:
            words = [shutil.which(self.program()), *words, "about:blank"]
            self._process = subprocess.Popen(words, stdout=said, stderr=said, env={**os.environ, "HOME": str(profile)})
        found = until(lambda: re.search(rb"listening on (ws://\S+)", (profile / "said").read_bytes()), _SECONDS)
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(connect(found[1].decode() + path, max_size=None))

    @classmethod
    def program(cls):
        return next(filter(shutil.which, cls.programs), "")

    @classmethod
    def why_not(cls):
        """Return why there is none; "" where there is one."""
        if not cls.program():
            return f"needs {cls.__name__}: apt-get install {cls.package}"
        return "" if importlib.util.find_spec("websockets") else "needs the package websockets: pip install -e '.[dev]'"

    def answer(self, method, params, **more):
        """Send a command; return the whole answer, also an error."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params, **more}))
        while True:
            answer = json.loads(self._socket.recv(timeout=_SECONDS))
            if answer.get("id") == self._number:
                return answer
            self.events.append(answer)

    def send(self, method, **params):
        """Send a command; return its result."""
        return result_of(method, self.answer(method, params))

    def told(self, method):
        return [one["params"] for one in self.events if one["method"] == method]

    def close(self):
        """End it."""
        with contextlib.suppress(Exception):
            self.send(f"{type(self).end}.close")
            self._stack.close()
        self._process.kill()
        self._process.wait()


def result_of(method, answer):
    assert "error" not in answer, (method, answer)
    return answer["result"]


class Page:
    """One page. What both browsers can by its `send`, `eval` and `press`."""

    def __init__(self, browser, name):
        self._browser, self._name = browser, name

    def settle(self):
        """Wait until a new document is loaded whole, and its modules have run."""
        self.until("!window.__old && document.readyState === 'complete'")

    def until(self, expression, seconds=_SECONDS):
        """Wait until an expression holds; also through changes of the document."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):
                if self.eval(f"!!({expression})"):
                    return
            shown = "document.body && document.body.innerText.slice(0, 800)"
            assert time.monotonic() < end, (expression, self.eval(shown, quiet=True))
            time.sleep(0.03)

    def goto(self, url):
        """Open an address and wait until it is loaded; return what the browser says went wrong."""
        self.eval("window.__old = true", quiet=True)
        failed = self.navigate(url)
        if not failed or self.settles_on_failure:
            self.settle()
        return failed

    def leave(self, *keys):
        """Press keys of which the last leads to another document, and wait for it."""
        self.eval("window.__old = true")
        self.press(*keys)
        self.settle()

    @property
    def focus(self):
        """The text of what has the focus; empty where nothing has."""
        return self.eval("document.activeElement === document.body ? '' : document.activeElement.innerText")

    def picture(self, path, *, whole=False):
        """Store a picture of what is seen, or of the whole page."""
        path.write_bytes(base64.b64decode(self.shot(whole=whole)["data"]))


# --- Chromium: the DevTools protocol ---


class Chromium(Browser):
    programs, package = ("chromium", "chromium-browser", "google-chrome"), "chromium"
    end = "Browser"

    def __init__(self, profile, hosts=()):
        """`hosts` are names that lead to this machine."""
        words = [
            "--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--force-color-profile=srgb",
            f"--host-resolver-rules={', '.join(f'MAP {name} 127.0.0.1' for name in hosts)}",
        ]  # fmt: skip
        super().__init__(profile, words)

    def page(self, *, width=1200, height=800, dark=False, scripts=True):
        """Open an empty page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        page = ChromiumPage(self, self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.size(width, height)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        page.send("Emulation.setEmulatedMedia", features=features)
        page.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        return page


class ChromiumPage(Page):
    settles_on_failure = True
    # Characters need only themselves; these need a code.
    named = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, "")}  # noqa: RUF012

    def send(self, method, **params):
        return result_of(method, self._browser.answer(method, params, sessionId=self._name))

    def size(self, width, height=800):
        """Set the size of what is seen (pixels)."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def navigate(self, url):
        return self.send("Page.navigate", url=url).get("errorText", "")

    def eval(self, expression, *, quiet=False):
        """Return the value of a JavaScript expression; a promise is waited for."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert quiet or "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys):
        """Press keys, one after another, as a keyboard does."""
        for key in keys:
            code, number, text = self.named.get(key, (key, ord(key.upper()) if len(key) == 1 else 0, key))
            shared = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
            self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def click(self, x, y):
        """Press the left button of the mouse at a place (pixels)."""
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        """Type a text into what has the focus."""
        self.send("Input.insertText", text=text)

    def cookies(self, url):
        """Return the cookies that an address gets, as `name`, `value` and `path`."""
        return self.send("Network.getCookies", urls=[url])["cookies"]

    def shot(self, *, whole):
        return self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)

    def troubles(self):
        """Return what the browser complained of on this page: errors of scripts, and what a policy refused."""
        mine = [one for one in self._browser.events if one.get("sessionId") == self._name]
        found = [one["params"]["entry"] for one in mine if one["method"] == "Log.entryAdded"]
        errors = [one for one in found if one["level"] == "error" and "favicon" not in one.get("url", "")]
        thrown = [one["params"]["exceptionDetails"] for one in mine if one["method"] == "Runtime.exceptionThrown"]
        return [f"{one['text']} {one.get('url', '')}" for one in errors] + thrown


# --- Firefox: WebDriver BiDi ---

# No requests of its own, and what the tests' pages are reached by.
_PREFERENCES = {
    "app.update.enabled": False, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False, "layout.css.prefers-color-scheme.content-override": 1,
}  # fmt: skip


class Firefox(Browser):
    programs, package = ("firefox-esr", "firefox"), "firefox-esr"
    end = "browser"

    def __init__(self, profile, hosts=(), **preferences):
        self._profile, self._hosts, self._others = profile, hosts, {}
        wanted = {**_PREFERENCES, "network.dns.localDomains": ",".join(hosts), **preferences}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in wanted.items()]
        (profile / "user.js").write_text("".join(lines))
        super().__init__(
            profile, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], "/session"
        )
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])

    def page(self, *, width=1200, height=800, dark=False, scripts=True):
        """Open an empty page. A dark one, and one without scripts, is in a browser of its own: these are settings of all."""
        other = {} if not dark else {"layout.css.prefers-color-scheme.content-override": 0}
        other |= {} if scripts else {"javascript.enabled": False}
        browser = self._other(other) if other else self
        page = FirefoxPage(browser, browser.send("browsingContext.create", type="tab")["context"])
        page.size(width, height)
        return page

    def _other(self, preferences):
        name = repr(preferences)
        if name not in self._others:
            profile = self._profile / f"other{len(self._others)}"
            profile.mkdir()
            self._others[name] = Firefox(profile, self._hosts, **preferences)
        return self._others[name]

    def close(self):
        for one in self._others.values():
            one.close()
        super().close()


class FirefoxPage(Page):
    settles_on_failure = False
    # Characters need only themselves; these are the protocol's letters for keys.
    named = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004"}  # noqa: RUF012

    def send(self, method, **params):
        return self._browser.send(method, context=self._name, **params)

    def size(self, width, height=800):
        self.send("browsingContext.setViewport", viewport={"width": width, "height": height})

    def navigate(self, url):
        answer = self._browser.answer("browsingContext.navigate", {"context": self._name, "url": url, "wait": "complete"})
        return answer.get("message", "")

    def eval(self, expression, *, quiet=False):
        params = {"expression": expression, "target": {"context": self._name}, "awaitPromise": True, "userActivation": True}
        answer = self._browser.answer("script.evaluate", params)
        # While a document gives way to the next one there is nothing to ask.
        found = answer.get("result", {})
        assert quiet or found.get("type") == "success", answer
        return _value(found.get("result", {}))

    def press(self, *keys):
        self.send("browsingContext.activate")
        for key in keys:
            deeds = [{"type": kind, "value": self.named.get(key, key)} for kind in ("keyDown", "keyUp")]
            self.send("input.performActions", actions=[{"type": "key", "id": "keys", "actions": deeds}])

    def click(self, x, y):
        where = {"type": "pointerMove", "x": round(x), "y": round(y)}
        deeds = [where, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.send("input.performActions", actions=[{"type": "pointer", "id": "mouse", "actions": deeds}])

    def type(self, text):
        self.press(*text)

    def cookies(self, _url):
        found = self._browser.send("storage.getCookies", partition={"type": "context", "context": self._name})["cookies"]
        return [{**one, "value": one["value"]["value"]} for one in found]

    def shot(self, *, whole):
        return self.send("browsingContext.captureScreenshot", origin="document" if whole else "viewport")

    def troubles(self):
        mine = [one for one in self._browser.told("log.entryAdded") if one["source"].get("context") == self._name]
        # The browser asks for it by itself; the pages have none, and their policy allows none.
        return [one["text"] for one in mine if one["level"] == "error" and "favicon.ico" not in one["text"]]


def _value(found: dict[str, Any]) -> Any:
    """Return a JavaScript value from the protocol's form."""
    kind, value = found.get("type"), found.get("value")
    if kind == "array":
        return [_value(one) for one in value]
    if kind == "object":
        return {name: _value(one) for name, one in value}
    return value


_KINDS = {"chromium": Chromium, "firefox": Firefox}
ALL = [pytest.param(name, marks=pytest.mark.skipif(bool(one.why_not()), reason=one.why_not())) for name, one in _KINDS.items()]


def start(name, profile, hosts=()):
    """Start a browser with a folder for its profile. `hosts` are names that lead to this machine."""
    return _KINDS[name](profile, hosts)
