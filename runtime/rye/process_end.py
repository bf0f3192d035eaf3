"""The beginning and the end of a command's process, both as short as a short command needs."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

# Objects between two collections: importing makes tens of thousands, hardly one of which is garbage.
_ALLOCATIONS = 100_000


def run(main: Callable[[], int]) -> NoReturn:
    """Be a command: call `main`, then end the process with its exit code.

    Collecting garbage while modules are imported and taking every module apart at the end takes 12 ms. Where nothing waits for
    the end (a thread, a function of `atexit`), the process ends without.
    """
    gc.set_threshold(_ALLOCATIONS)
    code = main()
    if not _awaited():
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def _awaited() -> bool:
    """Tell whether something is still to be done at the end: by a thread, or a function registered for it."""
    if atexit._ncallbacks():  # noqa: SLF001 - there is no public way to ask
        return True
    threading = sys.modules.get("threading")
    return threading is not None and any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread())
