"""Landlock with a system call filter, for machines where bubblewrap does not work. It holds fewer properties.

The launcher gives up its rights and then becomes the command. Rules allow by folder: reading for all that is not hidden,
writing for the project and for a temporary folder of the command. `HOME` points into that folder: the real home is hidden.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any, Final

from rye.sandbox import environment, hidden_paths, launcher, seccomp
from rye.sandbox.policy import NETWORK_ON, Confined, Policy, owner, report

# No terminal: a command could write control sequences to the user's own ones, and read what is typed there.
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_MOST_PLACES = 4_000


def why_not() -> str:
    """Return why Landlock cannot be used here, or nothing."""
    if not launcher.abi():
        return "this kernel has no Landlock"
    return "" if seccomp.supported() else f"no system call filter for {os.uname().machine}"


def confine(argv: list[str], policy: Policy) -> Confined:
    """Return the command that runs `argv` with what Landlock allows; `why_not` must have said nothing."""
    # The real path: rules do not follow links, and the temporary folder may be reached through one.
    own = os.path.realpath(tempfile.mkdtemp(prefix="rye-"))
    os.mkdir(f"{own}/home", 0o700)
    for name, content in policy.home_files.items():
        with open(f"{own}/home/{name}", "wb") as file:
            file.write(content)
    env = {**environment.allowed_variables(os.environ, policy.pass_env), "TMPDIR": own, "HOME": f"{own}/home", **policy.env}
    view = hidden_paths.view(policy.root, [*policy.extra_read, *launcher.own_paths()], policy.pass_env)
    if user := owner(policy):
        for folder in (own, f"{own}/home"):
            os.chown(folder, *user)
    plan: dict[str, Any] = {
        "argv": argv,
        "env": env,
        "cwd": policy.cwd if policy.read_project else own,
        "limits": {"RLIMIT_CORE": [0, 0]},
        "user": user,
        "rules": list(_rules(policy, view, own)),
        "tcp": policy.network == "on",
        # Even with the network on no unix sockets: the session's services would act outside for the command.
        "sockets": "own network" if policy.network == "on" else "none",
        "programs": policy.run,
    }
    start, fd = launcher.command(plan)
    env = environment.allowed_variables(os.environ)
    return Confined(start, env, (fd,), _report(policy, view), temporary=own)


def _rules(policy: Policy, view: hidden_paths.View, own: str) -> Iterator[tuple[str, int]]:
    """Yield (path, rights): what is allowed, since Landlock has no rule that forbids."""
    hide = [*view.hidden, "/dev", policy.root]
    # Rules only allow, so hiding one folder means a rule for each of its siblings, all the way up.
    for path in _open_places("/", hide):
        yield path, launcher.READ
    for path in view.shown:
        for place in _open_places(path, hide):
            yield place, launcher.READ
    # Python lists a folder before it imports from it; listing alone opens no file in it.
    yield launcher.import_folder(), launcher.LIST
    for name in _DEVICES:
        yield f"/dev/{name}", launcher.READ | launcher.device()
    # Programs need shared memory by this name, and it stays: files alone, so that no repository is left there.
    yield "/dev/shm", launcher.FILES
    yield own, launcher.all_rights()
    if policy.read_project:
        yield from _project(policy, view)


def _project(policy: Policy, view: hidden_paths.View) -> Iterator[tuple[str, int]]:
    rights = launcher.all_rights() if policy.write_project else launcher.READ
    inside = [path for path in view.hidden if hidden_paths.is_below(path, policy.root)]
    # Beside a hidden folder in the project all is allowed one by one, and nothing can be made there.
    for path in _open_places(policy.root, inside):
        yield path, rights


def _open_places(top: str, hide: list[str]) -> Iterator[str]:
    """Yield the highest paths below `top` that contain nothing hidden."""
    waiting, count = [top], 0
    # Each place costs a system call and kernel memory; places beyond the bound stay closed, never open.
    while waiting and count < _MOST_PLACES:
        path = waiting.pop()
        if path in hide:
            continue
        if not any(hidden_paths.is_below(one, path) for one in hide):
            count += 1
            yield path
            continue
        try:
            with os.scandir(path) as entries:
                # Not links: a rule on a link would open its target, which may be hidden.
                waiting += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue


def _report(policy: Policy, view: hidden_paths.View) -> dict[str, Any]:
    version = launcher.abi()
    writable = policy.write_project and policy.read_project
    properties = {
        "processes_end": "Landlock ends no process: what leaves its process group can stay",
        "writes_outside": "" if version >= 3 else f"Landlock {version} does not refuse to truncate a file outside",
        "metadata_outside": "Landlock does not refuse to change modes, owners and times of files outside",
        "protected_names": "Landlock allows by folder: a project that can be written can be written wholly" if writable else "",
        "home_hidden": view.open_home,
        "environment_clean": "",
        "other_processes_hidden": "Landlock does not hide the names and arguments of other processes, nor keep their priority",
        "private_tmp": "shared memory is open to all",
        "no_new_privileges": "",
        "network_off": "" if policy.network == "off" else NETWORK_ON,
        # Also with the network on: services of the system and the session listen on them, and would act outside.
        "unix_sockets_off": "",
    }
    return report("landlock", policy, properties)
