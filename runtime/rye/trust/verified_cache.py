"""Signatures found good before, so that a new process need not check them again.

`${USER_SPACE:-~}/.ai/trust/verdicts.txt` has a line for each file whose signature was valid under a state of trust
(`TrustStore.digest`): the SHA-256 of the state and of the file's raw bytes. Only a regular file of the user's own with mode
0600 is believed; anything else only causes a fresh check. Everything but the signature itself is checked at every call all the
same.
"""

from __future__ import annotations

import contextlib
import os
import stat
from hashlib import sha256

from rye.config import user_dirs
from rye.fs import atomic

_KEPT = 65_536
_LINE = 65


class Verdicts:
    """The files known to be good under one state of trust."""

    def __init__(self, trust_state: str) -> None:
        """Read what is stored."""
        self._state = trust_state
        self._good = _load()

    def __contains__(self, file_digest: object) -> bool:
        return self._line(file_digest) in self._good

    def _line(self, file_digest: object) -> str:
        return sha256(f"{self._state} {file_digest}".encode()).hexdigest()

    def add(self, file_digest: str) -> None:
        """Remember a file whose signature was just found good; failing to is no failure."""
        line = self._line(file_digest)
        if line not in self._good:
            self._good.add(line)
            with contextlib.suppress(OSError):
                _append(line)


def _path() -> str:
    return f"{user_dirs.user_ai()}/trust/verdicts.txt"


def _append(line: str) -> None:
    path = _path()
    atomic.make_private(os.path.dirname(path))
    # NOFOLLOW and NONBLOCK: a link or a pipe put in its place must neither redirect the write nor block it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with atomic.closing(os.open(path, flags, 0o600)) as fd:
        info = os.fstat(fd)
        if _own(info):
            if info.st_size >= _KEPT * _LINE:
                # Begun anew: what is still used is found good once more.
                os.ftruncate(fd, 0)
            # One short append: whole or not at all beside other writers.
            os.write(fd, f"{line}\n".encode())


def _own(info: os.stat_result) -> bool:
    return stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) == 0o600


def _load() -> set[str]:
    most = 2 * _KEPT * _LINE
    try:
        data, info = atomic.read_regular(_path(), most, follow=False)
    except OSError:
        return set()
    # A line cut off by a crash has another length, and stands for nothing.
    return set(data.decode("ascii", "replace").split("\n")) if _own(info) and info.st_size <= most else set()
