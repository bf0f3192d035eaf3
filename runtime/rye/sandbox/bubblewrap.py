"""bubblewrap: runs a command in its own namespaces, with a file system in which only the project can be written.

Options go through a descriptor (`--args`), so that no process list shows environment values or the mounts. The program comes
from fixed paths, never from `PATH`, and starts with the allow-listed environment alone: a variable that a caller adds, such as
LD_PRELOAD, takes effect inside the sandbox and never in bubblewrap itself.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final

from rye.config import user_dirs
from rye.fs import atomic
from rye.plain_class import Record
from rye.sandbox import environment, hidden_paths, launcher, project_mounts, resource_limits, seccomp
from rye.sandbox.policy import NETWORK_ON, Confined, Policy, held_open, leads_to, not_made, owner, report
from rye.workspace import running_commands
from rye.workspace.workspace import project_changed

_PLACES: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap")
# Nothing is hidden there.
_INSTALLED: Final = ("/bin/", "/usr/bin/")
_NAMESPACES: Final = ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_WORKS: Final = "works"
_HEED: Final = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
_LIFE: Final = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
_USERS: Final = ("--unshare-user",)
_NO_MORE_USERS: Final = ("--unshare-user", "--disable-userns")
_SYSTEM: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
# Root may write files of the kernel there without any capability. One mount costs less than one for each of them.
_KERNEL: Final = ("--remount-ro", "/proc")
# Who may not write in a folder of its own is told so, with the mode alone: a mount that is read-only costs bubblewrap three
# times as much. A command that changes the mode writes into what ends with it.
_EMPTY: Final = ("--size", "4096", "--perms", "0555", "--tmpfs")
# For the launcher, until it has become the project's owner: to read itself, and to change user and group.
_TO_OWNER: Final = ("--cap-add", "CAP_DAC_OVERRIDE", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
_PROBE_SECONDS = 10
_APPARMOR: Final = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_USERNS_CLONE: Final = "/proc/sys/kernel/unprivileged_userns_clone"
_MAX_USERNS: Final = "/proc/sys/user/max_user_namespaces"
_PROCESSES = 8192
_SCOPES_SINCE = 6
_Mount = tuple[str, int, list[str]]
_TRIES: Final = 5


class Ability(Record):
    """What bubblewrap can do here.

    Attributes:
        program: its path, or nothing where it cannot be used.
        setuid: it runs as root, whoever starts it.
        users: options for a user namespace (empty where root does without one).
        why_not: its error message, where it cannot be used.
    """

    program: str = ""
    users: tuple[str, ...] = ()
    why_not: str = ""
    setuid: bool = False


def _program() -> str:
    return next((path for path in _PLACES if os.path.isfile(path) and os.access(path, os.X_OK)), "")


@cache
def ability() -> Ability:
    """Find out by running it whether bubblewrap works here and how: it may be installed and still not be allowed to work."""
    program = _program()
    return _probe(program) if program else Ability(why_not="bubblewrap is not installed")


def _kernel_value(path: str) -> str:
    return (atomic.read(path, 100) or b"").decode("ascii").strip()


def advice() -> str:
    """Return one sentence: what the user can do where bubblewrap does not work; nothing where it does."""
    if not ability().why_not:
        return ""
    if not _program():
        return "Install bubblewrap (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)."
    if "--ro-bind-fd" in ability().why_not:
        return "Update bubblewrap: it is older than the mend of CVE-2024-42472."
    if _kernel_value(_APPARMOR) == "1":
        return (
            "AppArmor forbids bubblewrap user namespaces (Ubuntu 24.04): sudo apt install apparmor-profiles && "
            "sudo install -m 644 /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
            "sudo systemctl reload apparmor."
        )
    if _kernel_value(_MAX_USERNS) == "0":
        return "User namespaces are switched off: sudo sysctl -w user.max_user_namespaces=15000."
    if _kernel_value(_USERNS_CLONE) == "0":
        return "User namespaces are root's only: sudo sysctl -w kernel.unprivileged_userns_clone=1."
    return "Allow user namespaces; in a container, start it with a seccomp profile that allows unshare and mount."


def _probe(program: str) -> Ability:
    why = ""
    # It would inherit that its children are ignored, and wait for ever.
    heeding = (user_dirs.python(), "-I", "-S", "-c", _HEED) if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else ()
    with atomic.closing(os.open("/", os.O_PATH | os.O_CLOEXEC)) as root:
        # It must mount an open descriptor, and fail if another file has taken the path since.
        mounts = (*_SYSTEM, "--tmpfs", "/tmp", "--ro-bind-fd", str(root), "/tmp")
        # The strictest first: an old bubblewrap has no --disable-userns, and root in a container may have no user namespaces.
        for users in (_NO_MORE_USERS, _USERS, *([()] if os.geteuid() == 0 else [])):
            argv = [*heeding, program, *mounts, *users, *_NAMESPACES, "--unshare-net", *_LIFE, "/bin/echo", _WORKS]
            try:
                result = subprocess.run(
                    argv,
                    env={},
                    pass_fds=(root,),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as err:
                why = why or str(err)
                continue
            # A real start with the options that a command needs: installed and allowed are different things. Judged by what it
            # prints: a host may reap all children, and no exit code is known then.
            if result.stdout.decode("utf-8", "replace").strip() == _WORKS:
                return Ability(program, users, setuid=bool(os.stat(program).st_mode & stat.S_ISUID))
            message = result.stderr.decode("utf-8", "replace").strip().removeprefix("bwrap: ")
            why = why or message or f"exit {result.returncode}"
    return Ability(why_not=f"bubblewrap does not work here: {why[:300]}")


def confine(argv: list[str], policy: Policy, *, is_counted: bool) -> Confined:
    """Return the command that runs `argv` in namespaces of its own; `ability` must have said that it can.

    Its processes are limited here, unless they are counted by a control group that it joins.

    Raises:
        RyeError: `sandbox_failed`, when other programs change what it covers each time that it is listed.
    """
    for _ in range(_TRIES):
        # A name that was listed may be gone when it is opened: git and editors replace files at any time, and a job can.
        with suppress(FileNotFoundError, NotADirectoryError):
            return _confined(argv, policy, is_counted=is_counted)
    if not os.path.isdir(policy.root):
        raise project_changed(policy.root)
    raise not_made("other programs change what it covers, such as .git or .vscode")


def _confined(argv: list[str], policy: Policy, *, is_counted: bool) -> Confined:
    write = policy.write_project and policy.read_project
    # The shield first: the layout mounts over names that it makes.
    began = ""
    with suppress(OSError):
        began = running_commands.begin(policy.root) if write and not policy.token else ""
    token = policy.token or began
    fds: list[int] = []
    try:
        shield = project_mounts.Shield()
        if write:
            shield = project_mounts.shield(policy.root, token, cover_absent=policy.cover_absent)
        # For what became of the sandbox; what is inherited later is mounted or read.
        fds.append(held_open(b""))
        view = hidden_paths.view(policy.root, [*policy.extra_read, *launcher.own_paths()], policy.pass_env)
        start = _command(argv, policy, _layout(policy, view, shield, fds), fds, is_counted=is_counted)
    except BaseException:
        for fd in fds:
            os.close(fd)
        # Nothing was started, so nobody else would remove the names made for it.
        if write:
            project_mounts.release(policy.root, token)
        running_commands.end(began)
        raise
    reported = _report(policy, view, shield)
    scoped = policy.network == "on" and _scopes()
    shielded = (policy.root, token) if write else ("", "")
    covered = (*shield.pinned, *shield.fixed)
    env = environment.allowed_variables(os.environ)
    return Confined(
        start,
        env,
        tuple(fds),
        reported,
        shielded,
        scoped=scoped,
        covered=covered,
        absent=shield.absent,
        identity=policy.identity,
        status=fds[0],
        began=began,
    )


def _command(argv: list[str], policy: Policy, layout: list[str], fds: list[int], *, is_counted: bool) -> list[str]:
    """Return the command line; `fds` gains the descriptors it reads from."""
    where = policy.cwd if policy.read_project else policy.root
    options = ["--json-status-fd", str(fds[0]), *_namespaces(policy), *layout, "--chdir", where]
    added = _added(policy)
    for name, value in added.items():
        options += ["--setenv", name, value]
    user = owner(policy)
    # Of a program that is not there bubblewrap says the same as of one that failed; a shell tells the two apart.
    is_there = argv[0].startswith(_INSTALLED) and os.path.isfile(argv[0])
    inner = argv if is_counted and is_there else _limited(argv)
    if seccomp.supported():
        fds.append(held_open(seccomp.program(_sockets(policy))))
        options += ["--seccomp", str(fds[-1])]
        # The launcher costs an interpreter's start, so it is used only where bubblewrap cannot do the step itself.
        if user or not policy.run:
            # In the namespace of all users a limit of processes would count those of the owner's other programs.
            processes = {} if user else {"RLIMIT_NPROC": [_PROCESSES, _PROCESSES]}
            inner, fd = launcher.command(
                {
                    "argv": argv,
                    "env": {**environment.allowed_variables(os.environ), **added},
                    "cwd": ".",
                    "rules": None,
                    "limits": {"RLIMIT_CORE": [0, 0], **processes},
                    "user": user,
                    "tcp": True,
                    "sockets": _sockets(policy),
                    "programs": policy.run,
                }
            )
            fds.append(fd)
    # Last, because it lists the numbers of all the other descriptors.
    fds.append(held_open(b"".join(os.fsencode(word) + b"\0" for word in options)))
    return [ability().program, "--args", str(fds[-1]), "--", *inner]


def _added(policy: Policy) -> dict[str, str]:
    """Return the variables that are set only inside the sandbox."""
    passed_variables = {name: os.environ[name] for name in policy.pass_env if name in os.environ}
    return {"TMPDIR": "/tmp", **passed_variables, **policy.env}  # it is the command's own


def _limited(argv: list[str]) -> list[str]:
    """Return a command in which a shell, where there is one, first sets limits: no core files, and a stop to fork bombs."""
    if not os.access("/bin/sh", os.X_OK):
        return argv
    # The two names that shells have for the number of processes.
    limit = f"ulimit -c 0; ulimit -p {_PROCESSES} 2>/dev/null || ulimit -u {_PROCESSES} 2>/dev/null"
    return ["/bin/sh", "-c", f'{limit}; exec "$@"', "sh", *argv]


def _sockets(policy: Policy) -> seccomp.Sockets:
    """Return which sockets the filter allows: with the network off, those of a namespace that is connected to nothing."""
    return "own network" if policy.network == "off" or (not _scopes() and _abstract_sockets()) else "all"


def _scopes() -> bool:
    """Tell whether who starts bubblewrap can close abstract unix sockets to it first.

    They belong to the network, not to the file system, and a display or a session bus on one would act outside. What closes
    them forbids new privileges, which a setuid bubblewrap needs.
    """
    return launcher.abi() >= _SCOPES_SINCE and not ability().setuid


def _abstract_sockets() -> bool:
    """Tell whether there is an abstract unix socket at this time."""
    try:
        with open("/proc/net/unix", "rb") as file:
            # The kernel shows the leading NUL of an abstract name as `@`.
            return any(line.rpartition(b" ")[2].startswith(b"@") for line in file)
    except OSError:
        return True


def _namespaces(policy: Policy) -> list[str]:
    user, kernel = owner(policy), _KERNEL if os.geteuid() == 0 else ()
    network = () if policy.network == "on" else ("--unshare-net",)
    # A user namespace knows no other user than root.
    users, to_owner = ((), _TO_OWNER) if user else (ability().users, ())
    return [*users, *_NAMESPACES, *network, *_LIFE, *to_owner, *_SYSTEM, *kernel]


def _layout(policy: Policy, view: hidden_paths.View, shield: project_mounts.Shield, fds: list[int]) -> list[str]:
    """Return the mounts, ordered by depth: hidden paths, what is shown of them, the project, and protected names in it.

    `fds` gains descriptors of the project's own paths: a command that runs already, in a project around this one, could put a
    link at a path before it is mounted.
    """
    root = policy.root
    mounts, closed = _hiding(policy, view)
    # "try": what is gone by now stops no command.
    mounts += [(path, 1, ["--ro-bind-try", path, path]) for path in view.shown]
    if not policy.read_project:
        mounts.append((root, 2, ["--tmpfs", root, "--remount-ro", root]))
        mounts = [one for one in mounts if one[0] == root or not hidden_paths.is_below(one[0], root)]
    else:
        mounts.append((root, 2, _mount_options("--bind" if policy.write_project else "--ro-bind", root, fds)))
        # Checked on the open descriptor, which is what bubblewrap mounts: the path may lead elsewhere by now.
        if not leads_to(fds[-1], policy.identity):
            raise project_changed(policy.root)
        mounts += [(path, 3, _mount_options("--bind", path, fds)) for path in shield.pinned]
        mounts += [
            (path, 4, [*_EMPTY, path] if path in shield.made else _mount_options("--ro-bind", path, fds))
            for path in shield.fixed
            if path not in view.hidden
        ]
        mounts += [(path, 5, [*_EMPTY, path]) for path in _locks(root)]
    # By depth: a mount over a parent would cover what was mounted below it before.
    mounts.sort(key=lambda mount: (mount[0].count("/"), mount[0], mount[1]))
    words = [word for _, _, words in mounts for word in words]
    # After the mounts: the files lie in the empty home that one of them makes.
    words += _home_files(policy, view, fds)
    return words + [word for path in closed for word in ("--remount-ro", path)]


def _hiding(policy: Policy, view: hidden_paths.View) -> tuple[list[_Mount], list[str]]:
    """Return what is mounted over hidden paths, and the folders that are to be read-only once all is mounted."""
    # Homes and temporary folders are empty and writable, and end with the command. Others cannot be written.
    free = ("/tmp", "/var/tmp", *map(os.path.realpath, hidden_paths.home_folders()))
    # Without a size each could take half of the machine's memory. For another user bubblewrap would make them as root's.
    size = ["--size", str(resource_limits.configured().temporary), *(("--perms", "1777") if owner(policy) else ())]
    mounts: list[_Mount] = []
    closed = []
    above = {folder for one in (*view.hidden, *view.shown, policy.root) for folder in _folders_above(one)}
    for path in view.hidden:
        if _is_closed(path):
            continue
        options = [*size, "--tmpfs", path]
        if not os.path.isdir(path):
            options = ["--ro-bind", "/dev/null", path]
        elif path not in free:
            # Mount points inside must be made before it becomes read-only.
            if path in above:
                closed.append(path)
            else:
                options = [*_EMPTY, path]
        mounts.append((path, 0, options))
    return mounts, closed


def _folders_above(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _is_closed(path: str) -> bool:
    """Tell whether another user keeps a path from this one in every way, and from its commands: a mount would cost more."""
    is_ours = os.stat(path).st_uid == os.geteuid()
    return not is_ours and not any(os.access(path, right) for right in (os.R_OK, os.W_OK, os.X_OK))


def _home_files(policy: Policy, view: hidden_paths.View, fds: list[int]) -> list[str]:
    """Return what puts the command's own files into its home, where that is an empty folder of its own."""
    home = os.path.realpath(user_dirs.home())
    # A home that is not hidden is the user's real one, and nothing may be written there.
    if home not in view.hidden or hidden_paths.is_below(home, policy.root):
        return []
    words = []
    for name, content in policy.home_files.items():
        fds.append(held_open(content))
        words += ["--perms", "0644", "--file", str(fds[-1]), f"{home}/{name}"]
    return words


def _locks(root: str) -> list[str]:
    """Return the folder of lock files, if it exists: who can open a lock file can lock out the file tools."""
    path = root
    for name in (".ai", "cache", "locks"):
        path = f"{path}/{name}"
        try:
            # A link on the way: mounting over it would cover a folder elsewhere.
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                return []
        except OSError:
            return []
    return [path]


def _mount_options(option: str, path: str, fds: list[int]) -> list[str]:
    """Return the options that mount a path of the project over itself."""
    # O_NOFOLLOW: a link at the last step would mount a folder outside the project as the project's.
    fds.append(os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC))
    return [f"{option}-fd", str(fds[-1]), path]


def _report(policy: Policy, view: hidden_paths.View, shield: project_mounts.Shield) -> dict[str, Any]:
    no_filter = "" if seccomp.supported() else f"no system call filter for {os.uname().machine}"
    holds = {
        "processes_end": "",
        "writes_outside": "",
        "metadata_outside": "",
        "protected_names": shield.open,
        "home_hidden": view.open_home,
        "environment_clean": "",
        "other_processes_hidden": "",
        "private_tmp": "",
        "no_new_privileges": no_filter,
        "network_off": "" if policy.network == "off" else NETWORK_ON,
    }
    if policy.network == "off":
        holds["unix_sockets_off"] = no_filter
    # Only Landlock keeps a command from bubblewrap's own process, to which no filter of programs applies.
    return report("bubblewrap", policy, holds, no_filter or ("" if launcher.abi() else "this kernel has no Landlock"))
