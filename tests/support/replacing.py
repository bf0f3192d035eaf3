"""File systems that cannot do everything, for the tests of replacing files."""

from __future__ import annotations

import errno
import os

from rye.fs import beneath
from rye.workspace import atomic_replace


def without(monkeypatch, *flags):
    """Have renames with some flags fail, as on a file system that does not know them."""
    real = atomic_replace.rename

    def rename(dir_fd, source, target, wanted):
        if wanted in flags:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        real(dir_fd, source, target, wanted)

    for module in (beneath, atomic_replace):
        monkeypatch.setattr(module, "rename", rename)
