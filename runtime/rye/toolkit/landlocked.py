"""Where bubblewrap does not work: Landlock with a system call filter, which holds "writes outside only" and little more.

A small launcher gives up the rights and becomes the command. Files are allowed by folder: all that is not hidden for reading,
the project and a temporary folder of the command for writing. `HOME` is moved to that folder, for the real one is hidden.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any, Final

from rye.toolkit import clean_env, confined_start, hidden, landlock, seccomp
from rye.toolkit.policy import Confined, Policy, report

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
# What root needs to work in a project of another user: CHOWN, DAC_OVERRIDE, FOWNER.
_AS_OWNER: Final = (0, 1, 3)
_MOST_PLACES = 4_000


def why_not() -> str:
    """Return why Landlock cannot be used here, or nothing."""
    if not landlock.abi():
        return "this kernel has no Landlock"
    return "" if seccomp.supported() else f"no system call filter for {os.uname().machine}"


def confine(argv: list[str], policy: Policy) -> Confined:
    """Return the command that runs `argv` with what Landlock allows; `why_not` must have said nothing."""
    own = tempfile.mkdtemp(prefix="rye-")
    os.mkdir(f"{own}/home", 0o700)
    env = {**clean_env.allowed(os.environ, policy.pass_env), "TMPDIR": own, "HOME": f"{own}/home", **policy.env}
    seen = hidden.view(policy.root, [*policy.extra_read, *confined_start.needed()])
    foreign = os.geteuid() == 0 and os.stat(policy.root).st_uid != 0
    plan: dict[str, Any] = {
        "argv": argv, "env": env, "cwd": policy.cwd if policy.read_project else own,
        "limits": {"RLIMIT_CORE": [0, 0]}, "keep": (_AS_OWNER if foreign else ()) if os.geteuid() == 0 else None,
        "rules": list(_rules(policy, seen, own)), "tcp": policy.network == "on",
        "sockets": "own network" if policy.network == "on" else "none", "scope": True, "programs": policy.run,
    }  # fmt: skip
    start, fd = confined_start.command(plan)
    return Confined(start, clean_env.allowed(os.environ), (fd,), _report(policy, seen), temporary=own)


def _rules(policy: Policy, view: hidden.View, own: str) -> Iterator[tuple[str, int]]:
    """Yield (path, rights): what is allowed, for there is no rule that forbids."""
    hide = [*view.hidden, "/dev", policy.root]
    for path in _open_places("/", hide):
        yield path, landlock.READ
    for path in view.kept:
        for place in _open_places(path, hide):
            yield place, landlock.READ
    for name in _DEVICES:
        yield f"/dev/{name}", landlock.READ | landlock.device()
    yield "/dev/shm", landlock.everything()  # noqa: S108 - shared memory, which programs need by this name
    yield own, landlock.everything()
    if policy.read_project:
        yield from _project(policy, view)


def _project(policy: Policy, view: hidden.View) -> Iterator[tuple[str, int]]:
    rights = landlock.everything() if policy.write_project else landlock.READ
    inside = [path for path in view.hidden if hidden.below(path, policy.root)]
    if not inside:
        yield policy.root, rights
        return
    # A hidden folder in the project: what lies beside it is allowed one by one, and nothing can be made beside it.
    for path in _open_places(policy.root, inside):
        yield path, rights


def _open_places(top: str, hide: list[str]) -> Iterator[str]:
    """Yield the highest places below `top` that hold nothing hidden."""
    waiting, count = [top], 0
    while waiting and count < _MOST_PLACES:
        path = waiting.pop()
        if path in hide:
            continue
        if not any(hidden.below(one, path) for one in hide):
            count += 1
            yield path
            continue
        try:
            with os.scandir(path) as entries:
                waiting += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue


def _report(policy: Policy, view: hidden.View) -> dict[str, Any]:
    version = landlock.abi()
    writable = policy.write_project and policy.read_project
    properties = {
        "processes_end": "Landlock ends no process: what leaves its process group can stay",
        "writes_outside": "" if version >= 3 else f"Landlock {version} does not refuse to truncate a file outside",
        "metadata_outside": "Landlock does not refuse to change modes, owners and times of files outside",
        "protected_names": "Landlock allows by folder: a project that can be written can be written wholly" if writable else "",
        "home_hidden": view.open_home,
        "environment_clean": "",
        "other_processes_hidden": "Landlock does not hide the names and arguments of other processes",
        "private_tmp": "shared memory is open to all",
        "no_new_privileges": "",
        "network_off": "" if policy.network == "off" else "the network is on",
        # Also with the network on: services of the system and the session listen on them, and would act outside.
        "unix_sockets_off": "",
    }
    if not policy.run:
        properties["no_programs"] = ""
    if not policy.write_project:
        properties["project_read_only"] = ""
    if not policy.read_project:
        properties["project_hidden"] = properties["project_read_only"] = ""
    return report("landlock", properties)
