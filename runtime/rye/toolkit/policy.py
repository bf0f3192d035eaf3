"""What a command may do, and what enforces it: the two values that pass between those who ask and the layers of the sandbox."""

from __future__ import annotations

import os
from typing import Any, Literal

from rye.record import Record, field
from rye.toolkit import protected

Mode = Literal["auto", "require", "off"]


class Policy(Record):
    """What a child may do.

    Attributes:
        root: the project root (real path).
        cwd: where the child starts (absolute, below the root).
        read_project: the project's files can be read; without it they cannot be changed either.
        write_project: the project's files can be changed, save the protected names.
        network: `on` or `off`; off means no socket to anything, unix sockets of the system included.
        run: other programs can be started.
        env: variables to add to the allowed ones.
        pass_env: names that are let through from this process.
        extra_read: absolute paths that must stay readable (an interpreter, a package folder).
        wanted: names of properties that "require" insists on; empty means all that the policy asks for.
    """

    root: str
    cwd: str
    read_project: bool = True
    write_project: bool = True
    network: Literal["on", "off"] = "on"
    run: bool = True
    env: dict[str, str] = field(factory=dict)
    pass_env: tuple[str, ...] = ()
    extra_read: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


class Confined(Record):
    """A command that enforces a policy; it can be started once.

    Attributes:
        argv: what to start (absolute program, then arguments).
        env: the whole environment to start it with: what starts the sandbox is as clean as what runs in it.
        fds: descriptors it must inherit under their numbers; `close` releases them once it was started.
        report: `{"kind": "bubblewrap" | "landlock" | "none", "holds": [property, …], "missing": {property: why}}`, JSON.
        shielded: the project root and a token, where names were made in it for the time the command runs.
        temporary: the command's own temporary folder, where one had to be made.
    """

    argv: list[str]
    env: dict[str, str]
    fds: tuple[int, ...]
    report: dict[str, Any]
    shielded: tuple[str, str] = ("", "")
    temporary: str = ""

    def close(self) -> None:
        """Close this process's copies of `fds`."""
        for fd in self.fds:
            os.close(fd)

    def finish(self) -> None:
        """Say that the command has ended (or never started): what was made for it goes. Saying it twice is harmless."""
        if self.shielded[1]:
            protected.release(*self.shielded)
        if self.temporary:
            import shutil

            shutil.rmtree(self.temporary, ignore_errors=True)


def held_open(data: bytes) -> int:
    """Return a descriptor in memory, not inherited unless asked for, from which `data` is read."""
    fd = os.memfd_create("rye", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def report(kind: str, properties: dict[str, str]) -> dict[str, Any]:
    """Return a report from each property with why it does not hold (nothing: it does)."""
    holds = [name for name, why in properties.items() if not why]
    return {"kind": kind, "holds": holds, "missing": {name: why for name, why in properties.items() if why}}
