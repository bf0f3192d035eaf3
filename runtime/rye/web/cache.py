"""HTTP answers stored in the user's state folder of a project: used for 15 minutes, then asked for again."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

from rye.config import user_dirs
from rye.fs import atomic
from rye.plain_class import Record
from rye.web.client import Answer

FRESH_SECONDS = 900
MAX_BYTES = 64 * 1024 * 1024
_MOST = 2_000
_MAX_AGE_SECONDS = 7 * 24 * 3600
_STORED_HEADERS = ("content-type", "content-length")


class Stored(Record):
    """A stored answer, and when it was fetched (seconds since 1970)."""

    answer: Answer
    at: float

    @property
    def age(self) -> float:
        """Return the seconds since then; endless where that lies ahead, since the clock was wrong at one of the two times."""
        seconds = time.time() - self.at
        return seconds if seconds >= 0 else float("inf")

    @property
    def fresh(self) -> bool:
        """Tell whether it can be used without asking the server."""
        return self.age < FRESH_SECONDS


def key(*parts: str) -> str:
    """Return the file name of an answer: from its URL and everything that decides whether it may be fetched."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def load(root: str, name: str) -> Stored | None:
    """Return a stored answer; None if there is none, or it is damaged."""
    try:
        with open(Path(user_dirs.state_dir(root)) / "web" / name, "rb") as file:
            facts = json.loads(file.readline())
            body = file.read()
        # A crash may leave half a file, since these writes are not synced.
        if hashlib.sha256(body).hexdigest() != facts["digest"]:
            return None
        answer = Answer(facts["url"], 200, "OK", dict(facts["headers"]), body, facts["cut"], tuple(facts["hops"]))
        return Stored(answer, float(facts["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(root: str, name: str, answer: Answer) -> None:
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
        atomic.prune(folder, _MOST, MAX_BYTES, _MAX_AGE_SECONDS)
    except OSError:
        return
