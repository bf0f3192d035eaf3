"""Seals of what lies in the project's caches: HMAC-SHA256 under a secret that only the user's space holds.

A clone can bring its own `.ai/cache`, and a program of the project can change it. What such a cache says of a file, its
encoding for one, would then decide what a model reads and which line an edit replaces. So a record is believed only with a
seal. The secret is 32 random bytes in the project's state folder (`seal_secret`, 0600), made once; no sandbox shows it.
Several users' spaces may share one project: a seal names its space, so that what another one sealed can be left alone.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
import re
import stat
from typing import Any

from rye.config import user_dirs
from rye.fs import atomic
from rye.workspace import cache
from rye.workspace.workspace import Workspace

SECRET = "seal_secret"  # noqa: S105 - the file's name
"""The secret's file in a project's state folder."""

_BYTES = 32
# Where the user's space cannot be written, what is sealed is believed by this process alone.
_of_this_process = os.urandom(_BYTES)
START = b'{"seal":"'
"""How every sealed record begins."""
# The space's name, so that another space's record is told from a damaged one.
_FORM = START + b'%b-%b",'
_NOBODY = b"0" * 16
_SIZE = len(_FORM % (_NOBODY, bytes(64)))
_ANY = re.compile(rb'\{"seal":"([0-9a-f]{16})-[0-9a-f]{64}",')


def secret(ws: Workspace) -> bytes:
    """Return the secret of a project's seals; it is made at the first call."""
    try:
        folder = user_dirs.state_dir(ws.fd)
        path = f"{folder}/{SECRET}"
        found = _read(path)
        if found is None:
            # Two processes may both find none: whoever is second to get the lock takes what the first one made.
            with atomic.locked(f"{path}.lock"):
                found = _read(path)
                if found is None:
                    found = os.urandom(_BYTES)
                    # As durable as what it seals, which is not made so either: two waits for the disk less in every new
                    # folder. One that a power cut left empty counts as missing.
                    atomic.write(path, found, 0o600, durably=False)
                    # Where the file system has no modes, others can read it: a next process would not take it.
                    found = _read(path) or _of_this_process
    except OSError:
        return _of_this_process
    return found


def is_kept(ws: Workspace) -> bool:
    """Tell whether what is sealed now is believed by other processes, too: not where the user's space cannot be written."""
    return secret(ws) is not _of_this_process


def _read(path: str) -> bytes | None:
    """Return a secret that only its owner, this user, can have read; None for anything else."""
    try:
        data, info = atomic.read_regular(path, _BYTES + 1, follow=False)
    except OSError as err:
        if err.errno in (errno.ENOENT, errno.EINVAL):
            return None
        raise
    # A secret that others could read or replace seals nothing.
    private = info.st_uid == os.geteuid() and not stat.S_IMODE(info.st_mode) & 0o077
    return data if private and len(data) == _BYTES else None


def space(key: bytes) -> str:
    """Return the name of a user space, as its seals in this project bear it: 16 hex digits, which do not tell the secret."""
    # A secret of one process alone is no space: what it left behind is nobody's.
    return (_NOBODY if key is _of_this_process else _seal(key, "space", b"")[:16]).decode()


def own(fd: int, key: bytes, name: str, suffix: str, limit: int = 1 << 28) -> tuple[str, bytes | None]:
    """Return the name of this space's record in a cache folder, without its suffix, and its bytes, None where there is none.

    The name is `name`, unless another space's record has that: then it is `<name>-<space>`, beside the other one.
    """
    first = cache.read(fd, f"{name}{suffix}", limit)
    match = _ANY.match(first or b"")
    if match and match[1].decode() == space(key):
        return name, first
    # Also where the other space's record is gone since.
    beside = cache.read(fd, f"{name}-{space(key)}{suffix}", limit)
    # What is damaged, or sealed by a process without a space, is replaced. What cannot be read is another user's.
    free = match is None or match[1] == _NOBODY
    if first is None and os.access(f"{name}{suffix}", os.F_OK, dir_fd=fd):
        free = os.access(f"{name}{suffix}", os.R_OK, dir_fd=fd)
    return (name, first) if free and beside is None else (f"{name}-{space(key)}", beside)


def _seal(key: bytes, label: str, body: bytes | memoryview) -> bytes:
    found = hmac.new(key, label.encode() + b"\0", "sha256")
    found.update(body)
    return found.hexdigest().encode()


def sealed(key: bytes, label: str, body: bytes) -> bytes:
    """Return a JSON object with its seal as the first member.

    Args:
        key: the project's secret.
        label: what the record is and of which file, so that no record passes for another.
        body: the object's text without its opening brace.
    """
    return _FORM % (space(key).encode(), _seal(key, label, body)) + body


def unsealed(key: bytes, label: str, raw: bytes) -> dict[str, Any]:
    """Return a sealed record.

    Raises:
        ValueError: it does not bear this project's seal.
    """
    # In constant time and over the raw bytes: nothing is parsed before the seal fits.
    if not hmac.compare_digest(raw[:_SIZE], _FORM % (space(key).encode(), _seal(key, label, memoryview(raw)[_SIZE:]))):
        raise ValueError(label)
    record: dict[str, Any] = json.loads(raw)
    del record["seal"]
    return record
