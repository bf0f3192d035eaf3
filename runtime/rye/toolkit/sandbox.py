"""What a child process may reach: a policy turned into the command that enforces it, and a true account of what holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Mode = Literal["auto", "require", "off"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What a child may do.

    Attributes:
        root: the project root (real path).
        cwd: where the child starts (absolute, below the root).
        read_project: the project's files can be read.
        write_project: the project's files can be changed, save the protected names.
        network: `on` or `off`; off means no socket to anything, unix sockets of the system included.
        run: other programs can be started.
        env: variables to add to the allowed ones.
        pass_env: names that are let through from this process.
        extra_read: absolute paths that must stay readable (an interpreter, a package folder).
        wanted: names of properties that "require" insists on.
    """

    root: str
    cwd: str
    read_project: bool = True
    write_project: bool = True
    network: Literal["on", "off"] = "on"
    run: bool = True
    env: dict[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    extra_read: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Confined:
    """A command that enforces a policy.

    Attributes:
        argv: what to start (absolute program, then arguments).
        env: the whole environment to start it with: what starts the sandbox is as clean as what runs in it.
        fds: descriptors it must inherit under their numbers; `close` releases them once it was started.
        report: `{"kind": "bubblewrap" | "landlock" | "none", "holds": [property, …], "missing": {property: why}}`, JSON.
    """

    argv: list[str]
    env: dict[str, str]
    fds: tuple[int, ...]
    report: dict[str, Any]

    def close(self) -> None:
        """Close this process's copies of `fds`."""


def confine(argv: list[str], policy: Policy, mode: Mode = "auto") -> Confined:
    """Return the command that runs `argv` under `policy` with the best sandbox this machine has.

    Raises:
        RyeError: `sandbox_unavailable`, when `mode` is "require" and a wanted property does not hold here; it names which and why.
    """
    raise NotImplementedError
