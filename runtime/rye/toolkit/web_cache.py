"""Answers from the web kept in the project's state folder: fresh for 15 minutes, then asked for again by their tags."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from rye import state
from rye.record import Record, changed
from rye.toolkit.fetch import Answer

FRESH_SECONDS = 900
MAX_BYTES = 64 * 1024 * 1024
_MAX_AGE_SECONDS = 7 * 24 * 3600
_KEPT_HEADERS = ("content-type", "content-length", "etag", "last-modified")


class Kept(Record):
    """An answer that was kept, and when it was last known to be true (seconds since 1970)."""

    answer: Answer
    at: float

    @property
    def age(self) -> float:
        """Return the seconds since then."""
        return max(0.0, time.time() - self.at)

    @property
    def fresh(self) -> bool:
        """Tell whether it can be given without asking."""
        return self.age < FRESH_SECONDS

    def conditions(self) -> dict[str, str]:
        """Return the headers that ask for the answer only if it changed."""
        if self.answer.hops:
            # A tag belongs to the page that was redirected to; another page may carry the same one.
            return {}
        tags = {"If-None-Match": self.answer.headers.get("etag"), "If-Modified-Since": self.answer.headers.get("last-modified")}
        return {name: value for name, value in tags.items() if value}


def key(*parts: str) -> str:
    """Return the name under which an answer is kept: of the URL and of all that decides whether it may be had."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def load(root: str, name: str) -> Kept | None:
    """Return what is kept under a name; None when there is nothing, or nothing whole."""
    try:
        with open(Path(state.state_dir(root)) / "web" / name, "rb") as file:
            facts = json.loads(file.readline())
            body = file.read()
        if hashlib.sha256(body).hexdigest() != facts["digest"]:
            return None
        answer = Answer(facts["url"], 200, "OK", dict(facts["headers"]), body, facts["cut"], tuple(facts["hops"]))
        return Kept(answer, float(facts["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store(root: str, name: str, answer: Answer) -> None:
    """Keep an answer, where the server does not forbid it; a cache that cannot be written is no failure."""
    if "no-store" in answer.headers.get("cache-control", "").lower():
        return
    headers = {one: answer.headers[one] for one in _KEPT_HEADERS if one in answer.headers}
    facts = {
        "url": answer.url, "at": time.time(), "headers": headers,
        "cut": answer.cut, "hops": answer.hops, "digest": hashlib.sha256(answer.body).hexdigest(),
    }  # fmt: skip
    try:
        folder = Path(state.state_dir(root)) / "web"
        folder.mkdir(mode=0o700, exist_ok=True)
        waiting = folder / f"{name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        with open(os.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(json.dumps(facts).encode() + b"\n")
            file.write(answer.body)
        os.replace(waiting, folder / name)
        _prune(folder)
    except OSError:
        return


def renew(root: str, name: str, kept: Kept) -> Answer:
    """Note that a kept answer still holds, and return it."""
    answer = changed(kept.answer)
    store(root, name, answer)
    return answer


def _prune(folder: Path) -> None:
    """Remove what is old, then the oldest, until the rest is small enough."""
    rows = []
    with os.scandir(folder) as entries:
        for entry in entries:
            info = entry.stat(follow_symlinks=False)
            rows.append((info.st_mtime, info.st_size, entry.path))
    total = sum(size for _, size, _ in rows)
    for used, size, path in sorted(rows):
        if total <= MAX_BYTES and used > time.time() - _MAX_AGE_SECONDS:
            break
        os.unlink(path)
        total -= size
