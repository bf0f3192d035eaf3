"""HTTP answers stored in the user's state folder of a project: used for 15 minutes, then asked for again."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from rye.config import user_dirs
from rye.fs import atomic
from rye.web.client import HttpAnswer

FRESH_SECONDS = 900
MAX_BYTES = 64 * 1024 * 1024
_MOST = 2_000
_STORED_HEADERS = ("content-type", "content-length")


def key(*parts: str) -> str:
    """Return the file name of an answer: from its URL and everything that decides whether it may be fetched."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def load(root: str, name: str) -> tuple[HttpAnswer, float] | None:
    """Return a stored answer and its age in seconds; None if there is none, or it is damaged or no longer fresh."""
    try:
        with open(Path(user_dirs.state_dir(root)) / "web" / name, "rb") as file:
            facts = json.loads(file.readline())
            body = file.read()
        # A crash may leave half a file, since these writes are not synced.
        if hashlib.sha256(body).hexdigest() != facts["digest"]:
            return None
        answer = HttpAnswer(facts["url"], 200, "OK", dict(facts["headers"]), body, facts["cut"], tuple(facts["hops"]))
        age = time.time() - float(facts["at"])
        # Of an answer from the future the clock was wrong at one of the two times.
        return (answer, age) if 0 <= age < FRESH_SECONDS else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(root: str, name: str, answer: HttpAnswer) -> None:
    """Store an answer, unless the server forbids it; ignore a cache that cannot be written."""
    # The server's own word that the page is private to this request.
    if "no-store" in answer.headers.get("cache-control", "").lower():
        return
    headers = {one: answer.headers[one] for one in _STORED_HEADERS if one in answer.headers}
    facts = {
        "url": answer.url,
        "at": time.time(),
        "headers": headers,
        "cut": answer.cut,
        "hops": answer.hops,
        "digest": hashlib.sha256(answer.body).hexdigest(),
    }
    try:
        folder = Path(user_dirs.state_dir(root)) / "web"
        folder.mkdir(mode=0o700, exist_ok=True)
        atomic.write(folder / name, json.dumps(facts).encode() + b"\n" + answer.body, 0o600, durably=False)
        # After the write, so that the new answer counts against the limits too.
        atomic.prune(folder, _MOST, MAX_BYTES)
    except OSError:
        return
