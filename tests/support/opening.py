"""The two ways in which paths are opened beneath a root: by `openat2`, and component by component."""

import errno
import os

import pytest

from rye.fs import beneath


def kernel_can():
    root = os.open("/", beneath.DIRECTORY)
    try:
        os.close(beneath._openat2(root, b".", beneath.DIRECTORY))
        return True
    except OSError:
        return False
    finally:
        os.close(root)


def open_by(monkeypatch, available):
    """Let opens be resolved by the kernel, where `available`, or as on a kernel that has no such call."""

    def refuse(*_):
        raise OSError(errno.ENOSYS, "no such call")

    if not available:
        monkeypatch.setattr(beneath, "_openat2", refuse)


BOTH_WAYS = [
    pytest.param(True, id="openat2", marks=pytest.mark.skipif(not kernel_can(), reason="this kernel has no openat2")),
    pytest.param(False, id="walk"),
]
