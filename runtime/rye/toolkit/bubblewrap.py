"""bubblewrap: a command in namespaces of its own, with a file system in which only the project can be written.

Options go through a descriptor (`--args`), so that neither values of the environment nor the layout stand in a process list.
The program is taken from fixed places only, never from `PATH`, and started with the allow-listed environment alone: a variable
such as LD_PRELOAD that a caller adds takes effect inside, never in bubblewrap itself.
"""

from __future__ import annotations

import os
import stat
import subprocess
from functools import cache
from typing import Any, Final

from rye.record import Record
from rye.toolkit import clean_env, confined_start, hidden, landlock, protected, seccomp
from rye.toolkit.policy import Confined, Policy, held_open, report

_PLACES: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
_NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_LIFE: Final = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
_USERS: Final = ("--unshare-user",)
_NO_MORE_USERS: Final = ("--unshare-user", "--disable-userns")
_SYSTEM: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_AS_OWNER: Final = ("--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_FOWNER", "--cap-add", "CAP_CHOWN")
# What root may write without any capability; bubblewrap itself covers only what looks writable by its mode.
_KERNEL: Final = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "driver", "tty", "mtrr", "asound", "dri")
_PROBE_SECONDS = 10
_PROCESSES = 8192
_SCOPES_SINCE = 6


class Ability(Record):
    """What bubblewrap can do here.

    Attributes:
        program: its path, or nothing where it cannot be used.
        by_descriptor: it binds what a descriptor holds, and ends if the place is another by then.
        users: options for a user namespace (empty where only root can do without).
        why_not: what it said, where it cannot be used.
    """

    program: str = ""
    users: tuple[str, ...] = ()
    why_not: str = ""
    by_descriptor: bool = False


def _program() -> str:
    return next((path for path in _PLACES if os.path.isfile(path) and os.access(path, os.X_OK)), "")


@cache
def ability() -> Ability:
    """Find out, once a process, by running it, whether bubblewrap works here and how."""
    program = _program()
    if not program:
        return Ability(why_not="bubblewrap is not installed")
    said = ""
    for users in (_NO_MORE_USERS, _USERS, *([()] if os.geteuid() == 0 else [])):
        argv = [program, *users, *_NAMESPACES, "--unshare-net", *_LIFE, *_SYSTEM, "--tmpfs", "/tmp", "/bin/true"]  # noqa: S108
        try:
            done = subprocess.run(  # noqa: S603 - an absolute path of a fixed list
                argv, env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as err:
            said = said or str(err)
            continue
        if done.returncode == 0:
            return Ability(program, users, by_descriptor=_binds_descriptors(program))
        said = said or done.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ") or f"exit {done.returncode}"
    return Ability(why_not=f"bubblewrap does not work here: {said[:300]}")


def _binds_descriptors(program: str) -> bool:
    done = subprocess.run(  # noqa: S603 - an absolute path of a fixed list
        [program, "--help"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
    )
    return b"--ro-bind-fd" in done.stdout + done.stderr


def confine(argv: list[str], policy: Policy) -> Confined:
    """Return the command that runs `argv` in namespaces of its own; `ability` must have said that it can."""
    write = policy.write_project and policy.read_project
    shield = protected.shield(policy.root, when_present=ability().by_descriptor) if write else protected.Shield()
    fds: list[int] = []
    try:
        seen = _view(policy)
        start = _command(argv, policy, _layout(policy, seen, shield, fds), fds)
    except BaseException:
        for fd in fds:
            os.close(fd)
        protected.release(policy.root, shield.token)
        raise
    told = _report(policy, seen, shield)
    return Confined(start, clean_env.allowed(os.environ), tuple(fds), told, (policy.root, shield.token))


def _command(argv: list[str], policy: Policy, layout: list[str], fds: list[int]) -> list[str]:
    """Return the command line; `fds` gains the descriptors it reads from."""
    options = [*_namespaces(policy), *layout, "--chdir", policy.cwd if policy.read_project else policy.root]
    added = _added(policy)
    for name, value in added.items():
        options += ["--setenv", name, value]
    inner = _limited(argv)
    if seccomp.supported():
        fds.append(held_open(seccomp.program(_sockets(policy))))
        options += ["--seccomp", str(fds[-1])]
        scope = _must_scope(policy) and landlock.abi() >= _SCOPES_SINCE
        if scope or not policy.run:
            inner, fd = confined_start.command({
                "argv": argv, "env": {**clean_env.allowed(os.environ), **added}, "cwd": ".", "keep": None, "rules": None,
                "limits": {"RLIMIT_CORE": [0, 0], "RLIMIT_NPROC": [_PROCESSES, _PROCESSES]}, "tcp": True, "scope": scope,
                "sockets": _sockets(policy), "programs": policy.run,
            })  # fmt: skip
            fds.append(fd)
    fds.append(held_open(b"".join(os.fsencode(word) + b"\0" for word in options)))
    return [ability().program, "--args", str(fds[-1]), "--", *inner]


def _added(policy: Policy) -> dict[str, str]:
    """Return the variables that are set inside only."""
    passed = {name: os.environ[name] for name in policy.pass_env if name in os.environ}
    return {"TMPDIR": "/tmp", **passed, **policy.env}  # noqa: S108 - it is the command's own


def _limited(argv: list[str]) -> list[str]:
    """Have a shell set limits first, where there is one: no core dumps, and an end to fork bombs."""
    if not os.access("/bin/sh", os.X_OK):
        return argv
    # The two names that shells have for the number of processes.
    limit = f"ulimit -c 0; ulimit -p {_PROCESSES} 2>/dev/null || ulimit -u {_PROCESSES} 2>/dev/null"
    return ["/bin/sh", "-c", f'{limit}; exec "$@"', "sh", *argv]


def _view(policy: Policy) -> hidden.View:
    return hidden.view(policy.root, [*policy.extra_read, *confined_start.needed()])


def _sockets(policy: Policy) -> seccomp.Sockets:
    """Return which sockets a filter leaves: without network, those of a namespace that is connected to nothing."""
    if policy.network == "off" or (_must_scope(policy) and landlock.abi() < _SCOPES_SINCE):
        return "own network"
    return "all"


def _must_scope(policy: Policy) -> bool:
    """Tell whether abstract unix sockets must be closed.

    They belong to the network, not to the file system, and a display or a session bus on one would act outside.
    """
    if policy.network == "off":
        return False
    try:
        with open("/proc/net/unix", "rb") as file:
            return any(line.rpartition(b" ")[2].startswith(b"@") for line in file)
    except OSError:
        return True


def _foreign(policy: Policy) -> bool:
    """Tell whether root works in a project of another user, which it could neither own nor write without capabilities."""
    return os.geteuid() == 0 and policy.read_project and os.stat(policy.root).st_uid != 0


def _namespaces(policy: Policy) -> list[str]:
    foreign = _foreign(policy)
    network = () if policy.network == "on" else ("--unshare-net",)
    # A user namespace knows no other user than root.
    return [
        *(() if foreign else ability().users),
        *_NAMESPACES,
        *network,
        *_LIFE,
        *(_AS_OWNER if foreign else ()),
        *_SYSTEM,
        *_kernel(),
    ]


def _kernel() -> list[str]:
    if os.geteuid() != 0:
        return []
    present = [f"/proc/{name}" for name in _KERNEL if os.path.exists(f"/proc/{name}")]
    return [word for path in present for word in ("--ro-bind", path, path)]


def _layout(policy: Policy, view: hidden.View, shield: protected.Shield, fds: list[int]) -> list[str]:
    """Order mounts by depth: what is hidden, what is kept of it, the project, and what is protected in it.

    `fds` gains the descriptors of what the project holds: a command that runs already, in a project around this one, might
    put a link in its place before it is mounted.
    """
    root = policy.root
    mounts: list[tuple[str, int, list[str]]] = [
        (path, 0, ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]) for path in view.hidden
    ]
    mounts += [(path, 1, ["--ro-bind", path, path]) for path in view.kept]
    if not policy.read_project:
        mounts.append((root, 2, ["--tmpfs", root, "--remount-ro", root]))
        mounts = [one for one in mounts if one[0] == root or not hidden.below(one[0], root)]
    else:
        mounts.append((root, 2, _bound("--bind" if policy.write_project else "--ro-bind", root, fds)))
        mounts += [(path, 3, _bound("--bind", path, fds)) for path in shield.pinned]
        mounts += [(path, 4, _bound("--ro-bind", path, fds)) for path in shield.fixed if path not in view.hidden]
        mounts += [(path, 5, ["--tmpfs", path, "--remount-ro", path]) for path in _locks(root)]
    mounts.sort(key=lambda mount: (mount[0].count("/"), mount[0], mount[1]))
    # Writable for the command's own use, and gone with it: homes and temporary folders. Other hidden folders take nothing.
    free = ("/tmp", "/var/tmp", *map(os.path.realpath, hidden.homes()))  # noqa: S108
    closed = [path for path in view.hidden if os.path.isdir(path) and path not in free]
    words = [word for _, _, words in mounts for word in words]
    return words + [word for path in closed for word in ("--remount-ro", path)]


def _locks(root: str) -> list[str]:
    """Return the folder of lock files, where it stands: to read one is enough to hold it against the file tools."""
    path = root
    for name in (".ai", "cache", "locks"):
        path = f"{path}/{name}"
        try:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return []
        except OSError:
            return []
    return [path]


def _bound(option: str, path: str, fds: list[int]) -> list[str]:
    """Return a mount of a place of the project over itself."""
    if not ability().by_descriptor:
        return [option, path, path]
    fds.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
    return [f"{option}-fd", str(fds[-1]), path]


def _report(policy: Policy, view: hidden.View, shield: protected.Shield) -> dict[str, Any]:
    holds = {
        "processes_end": "", "writes_outside": "", "metadata_outside": "", "protected_names": shield.open,
        "home_hidden": view.open_home, "environment_clean": "", "other_processes_hidden": "", "private_tmp": "",
        "no_new_privileges": "", "network_off": "" if policy.network == "off" else "the network is on",
    }  # fmt: skip
    no_filter = "" if seccomp.supported() else f"no system call filter for {os.uname().machine}"
    if policy.network == "off":
        holds["unix_sockets_off"] = no_filter
    if not policy.run:
        holds["no_programs"] = no_filter
    if not policy.write_project:
        holds["project_read_only"] = ""
    if not policy.read_project:
        holds["project_hidden"] = holds["project_read_only"] = ""
    return report("bubblewrap", holds)
