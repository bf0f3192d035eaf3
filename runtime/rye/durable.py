"""Files of our own that a crash leaves whole: written beside, made durable, renamed; one process at a time by a lock file."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def locked(lock: str | Path) -> Iterator[None]:
    """Hold a lock file for the block, waiting for whoever has it; its folder is made (0700) if missing.

    Raises:
        OSError: it cannot be made; what the block raises passes through.
    """
    os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)
    fd = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def write(path: str | Path, data: bytes, mode: int = 0o644, *, sync_folder: bool = True, durably: bool = True) -> None:
    """Put a file in place in one step: whoever reads it finds the old content or the new one, also after a crash.

    Args:
        path: where; its folder exists.
        data: the content.
        mode: permission bits, less the umask.
        durably: survive a crash of the machine; a cache need not.
        sync_folder: make the new name durable too; a caller that writes many does so once, with `sync`.

    Raises:
        OSError: nothing was changed.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(4).hex()}")
    fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
            stream.flush()
            if durably:
                os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if sync_folder and durably:
        sync(folder)


def sync(folder: str | Path) -> None:
    """Make a folder's names durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
