"""What the helper has loaded before a call comes: modules, tools, and the memory that a call writes to.

Of the user's data nothing is loaded. What is known of a tool holds for its bytes, its place and the keys that count, as in any
process that lives long.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Final

from rye.cli import main as cli_main
from rye.cli.daemon import client
from rye.errors import RyeError

# Packages of which all modules are loaded, and modules of others: what reading, searching and editing take.
_PACKAGES: Final = (
    *("call", "config", "edits", "executor", "filesearch", "fs", "items", "journal", "line_ids", "patches", "trust"),
    "workspace",
)
_MODULES: Final = (
    *("json", "locale", "pwd", "shutil", "shlex", "unicodedata", "jsonschema_rs", "yaml", "rye.api", "rye.primary_tools"),
    *("rye.cli.words", "rye.sandbox.sandbox", "rye.snapshots.tree", "rye.swe.view", "rye.swe.edit", "rye.swe.search"),
    *("rye.process.run", "rye.process.output_files", "rye.executor.primitives.function", "rye.cli.rt.printing"),
)
# Not loaded before a call needs them: they bring much, or are the programs of other processes.
_LATE: Final = ("rye.executor.worker", "rye.executor.isolated", "rye.executor.worker_pool")
_TOOLS: Final = (
    *("rye/file-system/read", "rye/file-system/glob", "rye/file-system/grep", "rye/file-system/ls"),
    *("rye/file-system/edit_lines", "rye/file-system/write", "rye/file-system/undo", "rye/bash/bash"),
    *("rye/swe/open_file_chunk", "rye/swe/scroll_file", "rye/swe/find_file", "rye/swe/search_dir", "rye/swe/search_file"),
    *("rye/swe/edit_range", "rye/swe/insert_at"),
)
# MADV_POPULATE_WRITE
_POPULATE: Final = 23
_PAGE: Final = os.sysconf("SC_PAGESIZE")
# Of an entry of /proc/PID/pagemap: no other process has this page.
_EXCLUSIVE: Final = 1 << 56
_CHANGES: Final = 0x2 | 0x4 | 0x400 | 0x800  # inotify: MODIFY, ATTRIB, DELETE_SELF, MOVE_SELF
_RANGE: Final = struct.Struct("=QQ")
# Pages between two that are written: taking them along costs less than another system call.
_GAP: Final = 2


def load() -> None:
    """Load the modules and read the tools that most calls take."""
    from rye import toolkit
    from rye.cli.rt import verbs as rt_verbs
    from rye.executor import executor

    for name in (*_MODULES, *_modules_of_packages()):
        with suppress(ImportError):
            import_module(name)
    for name in toolkit.__all__:
        getattr(toolkit, name)
    for name in cli_main.verb_names():
        if name not in client.OWN_PROCESS:
            cli_main.verb_of(name)
    execute = cli_main.verb_of("execute")
    for word in ("execute", *(item_id.rpartition("/")[2] for item_id in _TOOLS)):
        cli_main.parser_of("execute", execute, f"rye {word}")
    for name in rt_verbs.VERBS:
        rt_verbs.parser_of(name)
    for item_id in _TOOLS:
        with suppress(RyeError):
            executor.prepare(item_id, "/")
    # What lives now lives on: a collection in a process that makes a call would only copy its pages.
    gc.collect()
    gc.freeze()


def _modules_of_packages() -> Iterator[str]:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    for name in _PACKAGES:
        for file in sorted(os.listdir(f"{package}/{name}")):
            module = f"rye.{name}.{file.removesuffix('.py')}"
            if file.endswith(".py") and not file.startswith("_") and module not in _LATE:
                yield module


class Code:
    """The files that this process has its code from: a helper of older code than theirs serves nobody.

    Attributes:
        watched: the descriptor by which the kernel tells of their changes, in a tuple; () where it cannot.
    """

    def __init__(self) -> None:
        """Look at all files, and watch them. Made before a call comes, for all that are loaded now."""
        library = os.path.dirname(os.path.realpath(os.__file__))
        files = {str(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
        # Of the standard library one file stands for all: they are exchanged together.
        own = {file for file in files if not file.startswith(library) or "site-packages" in file}
        self._files = sorted({*own, sys.executable, str(os.__file__)})
        self.watched = self._watch()
        self._states = [_state(file) for file in self._files]

    def _watch(self) -> tuple[int, ...]:
        libc = ctypes.CDLL(None)
        fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if fd >= 0 and all(libc.inotify_add_watch(fd, os.fsencode(file), _CHANGES) >= 0 for file in self._files):
            return (int(fd),)
        if fd >= 0:
            os.close(fd)
        return ()

    def changed(self, *, look: bool = False) -> bool:
        """Tell whether a file is another one than it was.

        Where the kernel watches, files are looked at only when it told of something. With `look` they are in any case (a
        change that another machine made is not told), and what was told is taken in.
        """
        if self.watched and not look and not select.select(self.watched, [], [], 0)[0]:
            return False
        if self.watched and look:
            with suppress(BlockingIOError):
                os.read(self.watched[0], 1 << 16)
        return [_state(file) for file in self._files] != self._states


def _state(file: str) -> tuple[int, ...] | None:
    try:
        info = os.stat(file)
    except OSError:
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def pages_of_a_call(rehearse: Callable[[], object]) -> list[tuple[int, int]]:
    """Return which memory of this process a call writes to, as (address, bytes): found by a call in a process forked for it.

    The kernel copies each such page when it is first written, which takes longer than all else that a short call does. Where
    it does not tell which they are, the list is empty.
    """
    coming, going = os.pipe()
    pid = os.fork()
    if not pid:
        with suppress(BaseException), open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            with suppress(Exception):
                rehearse()
            found = b"".join(_RANGE.pack(*one) for one in _exclusive(pagemap.fileno()))
            with open(going, "wb") as out:
                out.write(found)
        os._exit(0)
    os.close(going)
    with open(coming, "rb") as told:
        data = told.read()
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)
    return list(_RANGE.iter_unpack(data[: len(data) // _RANGE.size * _RANGE.size]))


def _exclusive(pagemap: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of this process's writable memory that no other process has."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        mappings = [line.split(maxsplit=5) for line in file]
    for words in mappings:
        if words[1] != "rw-p":
            continue
        first, end = (int(part, 16) // _PAGE for part in words[0].split("-"))
        entries = struct.unpack(f"={end - first}Q", os.pread(pagemap, 8 * (end - first), 8 * first))
        begin = last = -1
        for at, entry in enumerate(entries, first):
            if entry & _EXCLUSIVE:
                if begin >= 0 and at - last > _GAP:
                    yield begin * _PAGE, (last + 1 - begin) * _PAGE
                    begin = -1
                begin, last = at if begin < 0 else begin, at
        if begin >= 0:
            yield begin * _PAGE, (last + 1 - begin) * _PAGE


def own(pages: list[tuple[int, int]]) -> None:
    """Copy memory that is shared with the helper now, at once, rather than page by page while a caller waits."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)
    for address, length in pages:
        # What an older kernel does not know it refuses; pages are copied as they are written then.
        madvise(address, length, _POPULATE)
