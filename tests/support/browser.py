"""Debian's Chromium without a window, driven over a pipe (the DevTools protocol): pages are opened, keys pressed, pictures taken."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import time

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WHY_NOT = "" if PROGRAM else "needs Chromium: apt-get install chromium"

# Characters need only themselves; these need a code.
_NAMED = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, "")}


class Browser:
    """One browser with a profile of its own; `page()` opens a page in it."""

    def __init__(self, profile, *options, hosts=()):
        """Start it with a folder for its profile. `hosts` are names that lead to this machine."""
        their_in, self._out = os.pipe()
        self._in, their_out = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        command = f'exec "$0" "$@" 3<&{their_in} 4>&{their_out}'
        words = [
            "--headless=new",
            "--no-sandbox",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
            f"--host-resolver-rules={', '.join(f'MAP {name} 127.0.0.1' for name in hosts)}",
            *options,
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", command, PROGRAM, *words],
            pass_fds=(their_in, their_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        os.close(their_in)
        os.close(their_out)
        self._buffer = b""
        self._number = 0
        self.events = []

    def send(self, method, session=None, **params):
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds=120):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready = select.select([self._in], [], [], max(0, end - time.monotonic()))[0]
            assert ready, "the browser does not answer"
            block = os.read(self._in, 1 << 20)
            assert block, "the browser ended"
            self._buffer += block
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def page(self, *, width=1200, height=800, dark=False, scripts=True):
        """Open an empty page."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        page.send("Page.enable")
        page.send("Runtime.enable")
        page.send("Log.enable")
        page.send("Network.enable")
        page.size(width, height)
        page.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        )
        if not scripts:
            page.send("Emulation.setScriptExecutionDisabled", value=True)
        return page

    def asked(self):
        """Return the addresses that all pages asked for."""
        return [one["params"]["request"]["url"] for one in self.events if one["method"] == "Network.requestWillBeSent"]

    def close(self):
        """End it."""
        with contextlib.suppress(AssertionError, OSError):
            self.send("Browser.close")
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)


class BasePage:
    """What the pages of both browsers can, by their `eval` and `press`."""

    def settle(self):
        """Wait until a new document is loaded whole, and its modules have run."""
        self.until("!window.__old && document.readyState === 'complete'")

    def until(self, expression, seconds=120):
        """Wait until an expression holds; also through changes of the document."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):
                if self.eval(f"!!({expression})"):
                    return
            assert time.monotonic() < end, (
                expression,
                self.eval("document.body && document.body.innerText.slice(0, 800)", quiet=True),
            )
            time.sleep(0.03)

    def leave(self, *keys):
        """Press keys of which the last leads to another document, and wait for it."""
        self.eval("window.__old = true")
        self.press(*keys)
        self.settle()

    @property
    def focus(self):
        """The text of what has the focus; empty where nothing has."""
        return self.eval("document.activeElement === document.body ? '' : document.activeElement.innerText")


class Page(BasePage):
    """One page."""

    def __init__(self, browser, session):
        self._browser, self._session = browser, session

    def send(self, method, **params):
        """Send a command about this page."""
        return self._browser.send(method, self._session, **params)

    def size(self, width, height=800):
        """Set the size of what is seen (pixels)."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def goto(self, url):
        """Open an address and wait until it is loaded; return what the browser says went wrong."""
        self.eval("window.__old = true", quiet=True)
        failed = self.send("Page.navigate", url=url).get("errorText", "")
        self.settle()
        return failed

    def eval(self, expression, *, quiet=False):
        """Return the value of a JavaScript expression; a promise is waited for."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert quiet or "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys):
        """Press keys, one after another, as a keyboard does."""
        for key in keys:
            code, number, text = _NAMED.get(key, (key, ord(key.upper()) if len(key) == 1 else 0, key))
            shared = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
            self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def click(self, x, y):
        """Press the left button of the mouse at a place (pixels)."""
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def cookies(self, url):
        """Return the cookies that an address gets, as `name`, `value` and `path`."""
        return self.send("Network.getCookies", urls=[url])["cookies"]

    def type(self, text):
        """Type a text into what has the focus."""
        self.send("Input.insertText", text=text)

    def picture(self, path, *, whole=False):
        """Store a picture of what is seen, or of the whole page."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def troubles(self):
        """Return what the browser complained of on this page: errors of scripts, and what a policy refused."""
        mine = [one for one in self._browser.events if one.get("sessionId") == self._session]
        found = [one["params"]["entry"] for one in mine if one["method"] == "Log.entryAdded"]
        said = [
            f"{one['text']} {one.get('url', '')}"
            for one in found
            if one["level"] == "error" and "favicon" not in one.get("url", "")
        ]
        return said + [one["params"]["exceptionDetails"] for one in mine if one["method"] == "Runtime.exceptionThrown"]
