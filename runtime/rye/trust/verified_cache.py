"""Signatures found good before, so that a new process need not check them again.

`${USER_SPACE:-~}/.ai/trust/verdicts-<state>.txt` holds the SHA-256 of files (raw bytes) whose signature was valid, one a line,
for one state of trust (`TrustStore.digest`). Only a regular file of the user's own with mode 0600 is believed; anything
else only causes a fresh check. Everything but the signature itself is checked at every call all the same.
"""

from __future__ import annotations

import contextlib
import os
import stat

from rye.config import user_dirs
from rye.fs import atomic

_KEPT = 65_536
_STATES = 16
_LINE = 65


class Verdicts:
    """The file digests known to be good under one state of trust."""

    def __init__(self, trust_state: str) -> None:
        """Read what is stored for the state."""
        self._path = f"{user_dirs.user_ai()}/trust/verdicts-{trust_state}.txt"
        self._good = _load(self._path)

    def __contains__(self, file_digest: object) -> bool:
        return file_digest in self._good

    def add(self, file_digest: str) -> None:
        """Remember a file whose signature was just found good; failing to is no failure."""
        if file_digest in self._good:
            return
        full = len(self._good) >= _KEPT
        if full:
            # The newer half stays: to forget all would verify every item anew at each search.
            self._good = dict.fromkeys(list(self._good)[_KEPT // 2 + 1 :])
        self._good[file_digest] = None
        with contextlib.suppress(OSError):
            # Only when full is the file rewritten; until then one line is appended, which costs no copy.
            if full and _own(os.stat(self._path, follow_symlinks=False)):
                atomic.write(self._path, "".join(f"{one}\n" for one in self._good).encode(), 0o600, durably=False)
            else:
                self._append(f"{file_digest}\n".encode())

    def _append(self, line: bytes) -> None:
        folder = os.path.dirname(self._path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.exists(self._path):
            _forget_old(folder)
        # NOFOLLOW and NONBLOCK: a link or a pipe put in its place must neither redirect the write nor block it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self._path, flags, 0o600)
        try:
            if _own(os.fstat(fd)):
                # One short append: whole or not at all beside other writers.
                os.write(fd, line)
        finally:
            os.close(fd)


def _forget_old(folder: str) -> None:
    """Remove the oldest states before a new one is added: every decision and every new key document begins one."""
    with os.scandir(folder) as entries:
        found = [one for one in entries if one.name.startswith("verdicts-") and one.name.endswith(".txt")]
    newest = sorted(found, key=lambda one: one.stat(follow_symlinks=False).st_mtime_ns, reverse=True)
    for one in newest[_STATES - 1 :]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(one.path)


def _own(info: os.stat_result) -> bool:
    return stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) == 0o600


def _load(path: str) -> dict[str, None]:
    """Return the digests of a file, the oldest first."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        info = os.fstat(fd)
        # On the open descriptor: between a check of the path and the open another file could be put there.
        if not _own(info) or info.st_size > 2 * _KEPT * _LINE:
            return {}
        lines = os.read(fd, info.st_size).decode("ascii", "replace").split("\n")
    except OSError:
        return {}
    finally:
        os.close(fd)
    # A line cut off by a crash has another length, and is left out.
    return dict.fromkeys(line for line in lines if len(line) == _LINE - 1)
