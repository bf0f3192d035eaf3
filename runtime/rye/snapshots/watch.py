"""Tells which folders of a project changed since this process looked last: a look need not read the state of every file.

The kernel reports each change in a folder by inotify: a name that comes or goes, a file that is written, closed after writing
or given another mode. A file with several names may be written by a name in another folder, so the folders of such files
always count as changed, and everything does where a name came and is gone again: it may have been another name of any file.
So it does where the kernel cannot tell: another file system than a local one, too many folders, events that it dropped.
Of names in folders that are not looked into nothing is told, nor of those that come and go in a new folder before it is met.
What is written by a mapping is told when that goes: with its process at the latest, also where the file was closed before.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from rye.snapshots.states import Folders, Mark, Running

_MODIFIED, _ATTRIBUTES, _CLOSED_AFTER_WRITING = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATED, _DELETED = 0x40, 0x80, 0x100, 0x200
_DROPPED, _FORGOTTEN = 0x4000, 0x8000
_ONLY_FOLDERS, _NO_LINK = 0x1000000, 0x2000000
_EVENTS: Final = (
    _MODIFIED | _ATTRIBUTES | _CLOSED_AFTER_WRITING | _MOVED_FROM | _MOVED_TO | _CREATED | _DELETED | _ONLY_FOLDERS | _NO_LINK
)
_NAMES: Final = _MOVED_FROM | _MOVED_TO | _CREATED
_EVENT: Final = struct.Struct("iIII")
_BLOCK: Final = 1 << 16
# Of sync_file_range, in its manual.
_WAIT_BEFORE, _WRITE = 1, 2
# On others a change may come from another machine, of which the kernel tells nothing.
_LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs", "jfs"})
# The user's editors need watches, too: a project may take this share of them.
_SHARE: Final = 4
_MOST_FOLDERS: Final = 20_000
_MOST_WATCHES: Final = 4


class Watch:
    """The watch over one project's folders.

    Attributes:
        type: of the file system.
        tree: the tree that the watch began to tell changes of; None: it does not know of any.
        looked: when the last look began whose tree was stored, on the monotonic clock.
        owed: the latest command since the last look at everything : by a name in a folder
            that is not looked into it may have written a file unseen. None where there was none.
    """

    _fd = -1

    def __init__(self, root_fd: int, skipped: frozenset[str]) -> None:
        """Prepare a watch of an open root; `skipped` are the names of folders that are not looked into."""
        self.tree: Folders | None = None
        self.owed: Running | None = None
        self.looked = -math.inf
        self.skipped = skipped
        # By the kernel's number, and back: a folder that another one replaced may come back to its path later.
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._changed: set[str] = set()
        # Folders that count as changed at each look: a file in them has other names, or a folder in them cannot be opened.
        self._always: set[str] = set()
        # Names that came, by the number of their folder; those on their way to another one, by the event's number.
        self._came: set[tuple[int, str]] = set()
        self._moving: dict[int, tuple[int, str]] = {}
        self._is_hidden = False
        info = os.fstat(root_fd)
        self._device, self._is_complete = info.st_dev, True
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.type = type_of(info.st_dev)
        if self.type in _LOCAL:
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._most = min(_MOST_FOLDERS, _limit() // _SHARE)

    def close(self) -> None:
        """Give the watch up: everything counts as changed."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self.tree = -1, None

    __del__ = close

    def changed(self, tree: Folders) -> set[str] | None:
        """Return the folders of a tree that changed since it was stored; None where that is not known."""
        if self._fd < 0:
            return None
        known = self._drain() and self.tree is tree
        return self._changed | self._always if known else None

    def restart(self) -> None:
        """Forget everything: a walk over the whole tree begins, and gives each folder to `add`."""
        self.tree = None
        self._is_complete = True
        self._paths.clear()
        self._numbers.clear()
        self._always.clear()
        self._forget_events()

    def settle(self, tree: Folders) -> None:
        """Note that what was found since `changed` or `restart` is stored, in this tree."""
        if self._fd >= 0:
            self._forget_events()
            self.tree, self._is_complete = tree, False

    def _forget_events(self) -> None:
        self._changed.clear()
        self._came.clear()
        self._moving.clear()
        self._is_hidden = False

    def hides(self, tree: Folders) -> bool:
        """Tell whether a name came and is gone again, in what `changed` took in; `tree` is as it stands now."""
        came = ((self._paths.get(number), name) for number, name in self._came)
        return self._is_hidden or bool(self._moving) or any(path is None or not _is_in(tree, path, name) for path, name in came)

    def add(self, path: str, fd: int) -> None:
        """Watch an open folder from now on."""
        if self._fd < 0:
            return
        at = self._watch(f"/proc/self/fd/{fd}/.")
        # A folder that is met twice in one walk is mounted at two places, and its changes would be told of one.
        if (
            at < 0
            or (self._is_complete and at in self._paths)
            or len(self._paths) >= self._most
            or os.fstat(fd).st_dev != self._device
        ):
            self.close()
            return
        before = self._numbers.get(path, at)
        if before != at and self._paths.get(before) == path:
            del self._paths[before]
        self._paths[at], self._numbers[path] = path, at
        self._always.discard(path)
        # Until the walk's tree is stored: the folder may be another than the one of that path in the tree before.
        self.tree = None

    def has(self, path: str, fd: int, name: str) -> bool:
        """Tell whether a folder in an open one is the one that is watched by this path: its own changes are told."""
        at = self._watch(f"/proc/self/fd/{fd}/{name}")
        return at >= 0 and self._paths.get(at) == path

    def judge(self, path: str, marks: Mapping[str, Mark]) -> bool:
        """Note whether a folder holds files with other names; tell whether it does."""
        several = any(mark[5] for mark in marks.values())
        if several:
            self._always.add(path)
        return several

    def unreadable(self, folder: str) -> None:
        """Note that something in a folder cannot be opened: it is tried at each look."""
        self._always.add(folder)

    def _watch(self, path: str) -> int:
        return int(self._libc.inotify_add_watch(self._fd, os.fsencode(path), _EVENTS))

    def _drain(self) -> bool:
        """Take in what the kernel told; False where it dropped some."""
        complete = True
        with suppress(BlockingIOError):
            while data := os.read(self._fd, _BLOCK):
                at = 0
                while at < len(data):
                    number, mask, pair, length = _EVENT.unpack_from(data, at)
                    at += _EVENT.size + length
                    complete &= not mask & _DROPPED
                    if mask & _NAMES:
                        name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
                        self._take_name(mask, (number, name), pair)
                    if number in self._paths:
                        self._changed.add(self._paths[number])
                        if mask & _FORGOTTEN:
                            del self._paths[number]
        return complete

    def _take_name(self, mask: int, place: tuple[int, str], pair: int) -> None:
        if mask & (_CREATED | _MOVED_TO):
            # A name that comes a second time was another file's before.
            self._is_hidden |= place in self._came
            self._came.add(place)
            self._moving.pop(pair, None)
        elif mask & _MOVED_FROM and place in self._came:
            self._came.discard(place)
            self._moving[pair] = place


def _is_in(tree: Folders, path: str, name: str) -> bool:
    return name in tree.get(path, ()) or (f"{path}/{name}" if path else name) in tree


def type_of(device: int) -> str:
    """Return the type of the file system with a device number, as the kernel lists it; empty where it does not."""
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as file:
        _, _, line = file.read().partition(b" %d:%d " % (os.major(device), os.minor(device)))
        # The number of optional fields varies; the type follows the lone dash.
        return line.partition(b" - ")[2].partition(b" ")[0].decode("utf-8", "replace")
    return ""


def _limit() -> int:
    with suppress(OSError, ValueError), open("/proc/sys/fs/inotify/max_user_watches", encoding="ascii") as file:
        return int(file.read())
    return 0


_watches: OrderedDict[tuple[int, int], Watch] = OrderedDict()


def _forget() -> None:
    """Close a forked child's watches: what it read of their events would be kept from its parent."""
    while _watches:
        _watches.popitem()[1].close()


os.register_at_fork(after_in_child=_forget)


def of_project(root_fd: int, skipped: frozenset[str]) -> Watch:
    """Return this process's watch of an open root; the caller holds the lock of the project's tree."""
    info = os.fstat(root_fd)
    key = (info.st_dev, info.st_ino)
    found = _watches.pop(key, None)
    if found is None or found.skipped != skipped:
        if found is not None:
            found.close()
        found = Watch(root_fd, skipped)
    _watches[key] = found
    while len(_watches) > _MOST_WATCHES:
        # Not closed: another thread may be at a look by it.
        _watches.popitem(last=False)
    return found


def known(root: os.stat_result) -> Watch | None:
    """Return this process's watch of a root, if it has one."""
    return _watches.get((root.st_dev, root.st_ino))


def write_back(fd: int) -> None:
    """Begin to write a file to the disk: what a program writes into a mapping of it later gives it a new time.

    The kernel sets the time with the first write into a page after that. On tmpfs, which writes nothing back, it never does.
    """
    # Without waiting for the disk, but for pages that are on their way to it.
    ctypes.CDLL(None).sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), _WAIT_BEFORE | _WRITE)
