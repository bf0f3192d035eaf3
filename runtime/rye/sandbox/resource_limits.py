"""Limits on the memory and the processes of one command, by a control group of its own (cgroups, version 2 or 1).

A limit per process (`RLIMIT_AS`) breaks Node and Java, and one per user (`RLIMIT_NPROC`) counts programs that have nothing to
do with the command. A control group counts exactly the command and what it starts. A group can be made only below one that
this user may write: systemd gives a user's session such a group, a container mostly does not.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Final, Literal

from rye.call import context
from rye.fs.atomic import closing
from rye.plain_class import Record

NAME: Final = "resources_limited"
"""The property in a report; "require" insists on it only where the user's `sandbox.require` names it."""

_MOUNT: Final = "/sys/fs/cgroup"
_MEGABYTE: Final = 1 << 20
_TRIES: Final = 5
# (version 2, version 1): the file of each limit.
_FILES: Final = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max", "pids.max")}


class Limits(Record):
    """What one command may use: bytes of memory, processes and threads, bytes of each temporary folder."""

    memory: int
    processes: int
    temporary: int


def configured() -> Limits:
    """Return the user's limits: `limits.memory_mb`, `limits.processes`, `limits.temporary_mb`; 0 means a share of the memory.

    Three quarters for a command, so that the machine can still be used; a quarter for each temporary folder.

    Raises:
        UsageError: `bad_config`.
    """
    settings = context.settings()
    memory = settings.number("limits.memory_mb") * _MEGABYTE or _installed() * 3 // 4
    temporary = settings.number("limits.temporary_mb") * _MEGABYTE or _installed() // 4
    return Limits(memory, settings.number("limits.processes"), temporary)


@cache
def _installed() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


Groups = tuple[str, ...]
# The groups that this process has made, with their limits and who has them: a command; one that ends, after which they are
# kept; or none.
_made: dict[Groups, tuple[Limits, Literal["used", "kept", "free"]]] = {}
_lock = threading.Lock()
_left: set[str] = set()


def _forget() -> None:
    """Leave the groups to the parent, in a forked child."""
    _made.clear()
    _lock.release()


os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget)


def keep(groups: Groups) -> None:
    """Have the groups of a command that ends stay for the next one with such limits: a process waits in them that it left."""
    with _lock:
        if groups in _made:
            _made[groups] = _made[groups][0], "kept"


def give_up(groups: Groups) -> None:
    """Keep these groups no more; a command that has them goes on with them."""
    with _lock:
        limits, state = _made.get(groups, (None, "used"))
        if limits is not None and state == "kept":
            _made[groups] = limits, "used"
        if state != "free":
            return
        del _made[groups]
    _remove(groups)


def make(limits: Limits) -> tuple[Groups, str]:
    """Make a control group with these limits; return what to join, and why that is not possible (nothing: it is)."""
    with _lock:
        free = next((groups for groups, known in _made.items() if known == (limits, "free")), None)
        if free is not None:
            _made[free] = limits, "used"
            return free, ""
    parents = _parents()
    # Say so instead of raising: most machines give a user no control group, and a command must still run there.
    if not parents:
        return (), "this user can make no control group (cgroup) with limits here"
    # The maker's number in the name lets a later call see that an abandoned group may be removed.
    name = f"rye-{os.getpid()}-{os.urandom(6).hex()}"
    made: list[str] = []
    try:
        for parent, files in parents.items():
            _remove_old(parent)
            os.mkdir(f"{parent}/{name}")
            made.append(f"{parent}/{name}")
            for file in files:
                _write(f"{parent}/{name}/{file}", limits.memory if file.startswith("memory") else limits.processes)
    except OSError as err:
        # Version 1 has one tree for each limit: the first group may exist when the second one fails.
        _remove(tuple(made))
        return (), f"a control group could not be made: {err.strerror}"
    with _lock:
        _made[tuple(made)] = limits, "used"
    return tuple(made), ""


def release(groups: Groups) -> None:
    """Remove the groups of a command that has ended; what is not empty yet is removed with a later one's."""
    for group in tuple(_left):
        with suppress(OSError):
            os.rmdir(group)
            _left.discard(group)
    with _lock:
        limits, state = _made.get(groups, (None, "used"))
        if limits is not None and state != "used":
            _made[groups] = limits, "free"
            return
        _made.pop(groups, None)
    _remove(groups)


def _remove(groups: Groups) -> None:
    for group in groups:
        # Its reaper may be about to end.
        for _ in range(_TRIES):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.001)
        else:
            _left.add(group)


def _write(path: str, value: int) -> None:
    # Never O_CREAT: the kernel makes these files.
    with closing(os.open(path, os.O_WRONLY | os.O_CLOEXEC)) as fd:
        os.write(fd, str(value).encode())


@cache
def _parents() -> dict[str, tuple[str, ...]]:
    """Return the groups below which this user can make one, each with the files of the limits that it knows."""
    try:
        with open("/proc/self/cgroup", encoding="ascii", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for _, controllers, path in lines:
        # An empty list of controllers marks the one tree of version 2.
        if not controllers and (parent := _delegated(path)):
            return {parent: tuple(files[0] for files in _FILES.values())}
        for name in controllers.split(","):
            if name in _FILES and (parent := _nearest(f"{_MOUNT}/{name}", path)):
                found[parent] = (_FILES[name][1],)
    # Half of the limits would be reported as limited, so both or none.
    return found if len(found) == len(_FILES) else {}


def _delegated(path: str) -> str:
    """Return the nearest group at or above `path` that gives its children both limits and can be written (version 2)."""
    while True:
        group = f"{_MOUNT}{path.rstrip('/')}"
        with suppress(OSError), open(f"{group}/cgroup.subtree_control", encoding="ascii") as file:
            if set(_FILES) <= set(file.read().split()) and _writable(group):
                return group
        if path in ("/", ""):
            return ""
        path = os.path.dirname(path)


def _nearest(mount: str, path: str) -> str:
    """Return the group of this process where it can be written (version 1); in a container its path may not exist."""
    group = f"{mount}{path.rstrip('/')}"
    return next((one for one in (group, mount) if os.path.isdir(one) and _writable(one)), "")


def _writable(group: str) -> bool:
    # A process moves only where both the folder and `cgroup.procs` of the common parent can be written.
    return os.access(group, os.W_OK) and os.access(f"{group}/cgroup.procs", os.W_OK)


def _remove_old(parent: str) -> None:
    """Remove empty groups that are used no more: one whose maker is alive may be about to be used."""
    for name in os.listdir(parent):
        words, group = name.split("-"), f"{parent}/{name}"
        if len(words) == 3 and words[0] == "rye" and not os.path.exists(f"/proc/{words[1]}"):
            with suppress(OSError):
                os.rmdir(group)
