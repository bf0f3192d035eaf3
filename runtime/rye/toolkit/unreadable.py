"""Keeping what this process holds from other processes of the same user.

Without a sandbox a command runs as the user that the server runs as, and could read the server's environment and memory
through `/proc/PID/environ` and `/proc/PID/mem`, or attach to it. A process that is not dumpable (prctl(2), PR_SET_DUMPABLE) is
closed to all but root; what it starts is not. It writes no core file either. Its own `/proc/self/fd` stays open to it.
"""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4


def close() -> None:
    """Close this process for the rest of its life (Linux). For processes that are ours: a door calls it, never a library."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
