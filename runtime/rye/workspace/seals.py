"""Seals of what lies in the project's caches: HMAC-SHA256 under a secret that only the user's space holds.

A clone can bring its own `.ai/cache`, and a program of the project can change it. What such a cache says of a file, its
encoding for one, would then decide what a model reads and which line an edit replaces. So a record is believed only with a
seal. The secret is 32 random bytes in the project's state folder (`seal_secret`, 0600), made once; no sandbox shows it.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any

from rye.config import user_dirs
from rye.fs import atomic
from rye.fs.digest import compare_digest, hmac_hexdigest
from rye.workspace.workspace import Workspace

SECRET = "seal_secret"  # noqa: S105 - the file's name
"""The secret's file in a project's state folder."""

_BYTES = 32
# Where the user's space cannot be written, what is sealed is believed by this process alone.
_of_this_process = os.urandom(_BYTES)
START = b'{"seal":"'
"""How every sealed record begins."""
_FORM = START + b'%b",'
_SIZE = len(_FORM % bytes(64))


def secret(ws: Workspace) -> bytes:
    """Return the secret of a project's seals; it is made at the first call."""
    try:
        folder = user_dirs.state_dir(ws.fd)
        path = f"{folder}/{SECRET}"
        found = _read(path)
        if found is None:
            # Two processes may both find none: whoever is second to get the lock takes what the first one made.
            with atomic.locked(f"{path}.lock"):
                found = _read(path) or _create_secret(path)
    except OSError:
        return _of_this_process
    return found


def _read(path: str) -> bytes | None:
    """Return a secret that only its owner, this user, can have read; None for anything else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        info = os.fstat(fd)
        # A secret that others could read or replace seals nothing.
        private = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and not stat.S_IMODE(info.st_mode) & 0o077
        data = os.read(fd, _BYTES + 1) if private else b""
    finally:
        os.close(fd)
    return data if len(data) == _BYTES else None


def _create_secret(path: str) -> bytes:
    made = os.urandom(_BYTES)
    # As durable as what it seals, which is not made so either: two waits for the disk less in every new folder. One that a
    # power cut left empty counts as missing.
    atomic.write(path, made, 0o600, durably=False)
    return made


def _seal(key: bytes, label: str, body: bytes | memoryview) -> bytes:
    return hmac_hexdigest(key, label.encode() + b"\0", body).encode()


def sealed(key: bytes, label: str, body: bytes) -> bytes:
    """Return a JSON object with its seal as the first member.

    Args:
        key: the project's secret.
        label: what the record is and of which file, so that no record passes for another.
        body: the object's text without its opening brace.
    """
    return _FORM % _seal(key, label, body) + body


def unsealed(key: bytes, label: str, raw: bytes) -> dict[str, Any]:
    """Return a sealed record.

    Raises:
        ValueError, TypeError, RecursionError: it does not bear this project's seal, or is no JSON object.
    """
    # In constant time and over the raw bytes: nothing is parsed before the seal fits.
    if not compare_digest(raw[:_SIZE], _FORM % _seal(key, label, memoryview(raw)[_SIZE:])):
        raise ValueError(label)
    record = json.loads(raw)
    if not isinstance(record, dict):
        raise TypeError(label)
    del record["seal"]
    return record
