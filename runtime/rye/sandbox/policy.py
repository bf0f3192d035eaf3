"""`Policy`, what a command may do, and `Confined`, the command that enforces it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from rye.errors import RyeError
from rye.fs import stamps
from rye.plain_class import Record, field
from rye.sandbox import project_mounts, seccomp
from rye.workspace import running_commands

Mode = Literal["auto", "require", "off"]

_STATUS_BYTES = 4096


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
        cover_absent: protected names that do not exist are held by empty folders, which everybody sees while the command runs.
            Without it nothing is made, and `Confined.finish` moves aside what appeared there: for commands that end soon.
        identity: device and inode that the root must have; None where nobody opened it before.
        home_files: the files in the command's own home, content by name.
        required: names of properties that "require" insists on; empty means all that the policy asks for.
        token: what names the running command, see `rye.workspace.running_commands`; empty: one is begun, and ended by `finish`.
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
    home_files: dict[str, bytes] = field(factory=dict)
    required: tuple[str, ...] = ()
    cover_absent: bool = True
    identity: tuple[int, int] | None = None
    token: str = ""


class Confined(Record):
    """A command that enforces a policy; it can be started once.

    Attributes:
        argv: what to start (absolute program, then arguments).
        env: the whole environment to start it with: what starts the sandbox is as clean as what runs in it.
        fds: descriptors it must inherit under their numbers; `close` releases them once it was started.
        report: `{"kind": "bubblewrap" | "landlock" | "none", "holds": [property, …], "missing": {property: why}}`, JSON.
        shielded: the project root and the command's token, where names were made in it for the time the command runs.
        temporary: the command's own temporary folder, where one had to be made.
        groups: control groups (folders) that the command joins before it starts; see `rye.sandbox.resource_limits`.
        scoped: who starts it must close abstract unix sockets to it first; see `rye.process.reaper`.
        covered: paths of the project on which mounts lie while the command runs.
        absent: protected names that did not exist when it was started and are not covered.
        identity: device and inode of the project root, where they are known.
        status: one of `fds`, into which bubblewrap writes what became of the sandbox; -1 for none.
        began: the token, where the policy had none.
        ready: lets the command begin that waits in its sandbox; called once it was started. None: it begins at once.
    """

    argv: list[str]
    env: dict[str, str]
    fds: tuple[int, ...]
    report: dict[str, Any]
    shielded: tuple[str, str] = ("", "")
    temporary: str = ""
    groups: tuple[str, ...] = ()
    scoped: bool = False
    covered: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    identity: tuple[int, int] | None = None
    status: int = -1
    began: str = ""
    ready: Callable[[], object] | None = None

    def was_made(self) -> bool:
        """Tell whether the sandbox was made, of a command that ended by itself; asked before `close`.

        Bubblewrap ends like a command that failed, with a message of its own, and only here it cannot be mistaken for one.
        """
        return self.status < 0 or b'"exit-code"' in os.pread(self.status, _STATUS_BYTES, 0)

    def close(self) -> None:
        """Close this process's copies of `fds`, once the command was started."""
        for fd in self.fds:
            os.close(fd)

    def finish(self, root: int = -1) -> list[dict[str, str]]:
        """Say that the command has ended (or never started): what was made for it goes. Saying it twice is harmless.

        Args:
            root: a descriptor of the project root that was open since before the command: it may have another path by now.
                Without one it is looked for at its path.

        Returns:
            What was moved aside: `path`, `what` it is, and where it is `stored`.
        """
        path, token = self.shielded
        place: str | int = root if root >= 0 else path
        moved = []
        # Nothing is moved in a folder that has taken the project's path.
        if token and (root >= 0 or leads_to(path, self.identity)):
            # Before the release: if this process is killed in between, the record still lists these names for the next call.
            moved = project_mounts.set_aside(place, self.absent)
            project_mounts.release(place, token)
        running_commands.end(self.began)
        if self.temporary:
            _remove(self.temporary)
        if self.groups:
            # Late: a job's supervisor starts without the settings that this module reads.
            from rye.sandbox import resource_limits

            resource_limits.release(self.groups)
        return moved


def _remove(folder: str) -> None:
    """Remove a command's temporary folder, also where it closed one in it, or made them deeper than Python follows."""
    import shutil

    with suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        import subprocess

        places = {"PATH": "/usr/bin:/bin:/run/current-system/sw/bin"}
        for words in (["chmod", "-R", "u+rwX", folder], ["rm", "-rf", folder]):
            with suppress(OSError):
                subprocess.run(words, env=places, stderr=subprocess.DEVNULL, check=False)


def owner(policy: Policy) -> tuple[int, int] | None:
    """Return the project's owner (user, group) where root works in a project of another user, and None everywhere else.

    Root without capabilities could not write there, and with them would read the files of all users: the command runs as the
    owner instead. Only a filter keeps it from a user namespace of its own, so where there is none it stays root.
    """
    if os.geteuid() != 0 or not policy.read_project:
        return None
    info = os.stat(policy.root)
    if info.st_uid == 0 or not seccomp.supported():
        return None
    try:
        return info.st_uid, pwd.getpwuid(info.st_uid).pw_gid
    except KeyError:
        return info.st_uid, info.st_gid or info.st_uid


def leads_to(place: str | int, identity: tuple[int, int] | None) -> bool:
    """Tell whether a path, or a descriptor, leads to the folder with this device and inode; None stands for any."""
    return identity is None or stamps.identity(place) == identity


NOT_MADE = "sandbox_failed"
"""The code of the refusal of a command that was not run, for its sandbox could not be made."""


def not_made(why: str) -> RyeError:
    """Return the refusal of a command that was not run, for its sandbox could not be made."""
    what = f"The command was not run: the sandbox could not be made ({why})."
    return RyeError(NOT_MADE, what, "Run it again; if that stays so, let the user run `rye doctor`.")


NETWORK_ON = "the network is on"
"""Why `network_off` does not hold where the network was not to be off: nothing is amiss."""


def held_open(data: bytes) -> int:
    """Return a descriptor of a file in memory that contains `data`; it is not inherited by itself."""
    fd = os.memfd_create("rye", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    # Whoever inherits the descriptor shares its position and reads from there.
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def report(kind: str, policy: Policy, properties: dict[str, str], no_programs: str = "") -> dict[str, Any]:
    """Return a report. `properties` has for each name why it does not hold; an empty text means that it holds.

    What a policy forbids of the project holds; of programs it does but for the reason `no_programs`.
    """
    if not policy.run:
        properties["no_programs"] = no_programs
    if not policy.write_project:
        properties["project_read_only"] = ""
    if not policy.read_project:
        properties["project_hidden"] = properties["project_read_only"] = ""
    holds = [name for name, why in properties.items() if not why]
    return {"kind": kind, "holds": holds, "missing": {name: why for name, why in properties.items() if why}}
