"""Turns a policy into a command that enforces it, and reports which properties hold.

Three layers are tried in order: bubblewrap, Landlock with a system call filter, none. The properties in a report:

    processes_end           all that the command started ends with it
    writes_outside          files outside the project and its own temporary folder cannot be made, changed or removed
    metadata_outside        nor their modes, owners and times
    protected_names         `.ai`, git's hooks and configuration, … (`rye.sandbox.project_mounts`) cannot be changed, and new
                            ones cannot be made or do not stay
    project_read_only       the project cannot be changed            (where the policy says so)
    project_hidden          the project cannot be read               (where the policy says so)
    home_hidden             homes, the user's space, keys and credentials cannot be read
    environment_clean       no variable but the allowed ones, of this process or any parent of the command
    other_processes_hidden  no other process can be seen, signalled or looked into
    private_tmp             the temporary folder is the command's own
    no_new_privileges       no program gains rights (setuid, capabilities, user namespaces), nor can a setuid, setgid or
                            device file be made that would give another user rights
    network_off             no socket reaches anything              (where the policy says so)
    unix_sockets_off        nor does a unix socket                  (where the policy says so; under Landlock always)
    no_programs             no other program can be started         (where the policy says so)
    resources_limited       memory, processes and temporary folders have a limit (`rye.sandbox.resource_limits`); "require"
                            insists on it only where the user's `sandbox.require` names it: few machines let a user make limits

No layer prevents this: what is readable and not hidden can be read; with the network on it can be sent anywhere; a disk can
be filled; what the user runs from the project (a Makefile, a test suite, scripts of a package) can be written.
Repositories that a command makes inside the project are looked at when it is over; see `rye.process.autorun.command_check`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal, cast

from rye.call import context
from rye.errors import RyeError, UsageError
from rye.plain_class import Record, changed
from rye.sandbox import bubblewrap, environment, hidden_paths, landlock, launcher, resource_limits
from rye.sandbox.policy import NOT_MADE, Confined, Mode, Policy, leads_to, not_made
from rye.workspace.workspace import project_changed

__all__ = [
    "ALWAYS", "NOT_MADE", "OWN_PROJECT", "Confined", "Mode", "Policy", "Settings", "confine", "confines", "effective",
    "holds_rye", "insist", "layers", "loads_from", "not_made", "properties_of",
]  # fmt: skip

ALWAYS: Final = (
    "processes_end", "writes_outside", "metadata_outside", "protected_names", "home_hidden", "environment_clean",
    "other_processes_hidden", "private_tmp", "no_new_privileges",
)  # fmt: skip
"""The properties that every policy asks for."""

_WITHOUT_NETWORK: Final = ("network_off", "unix_sockets_off")

PROPERTIES: Final = (*ALWAYS, *_WITHOUT_NETWORK, "project_read_only", "project_hidden", "no_programs", resource_limits.NAME)
"""All properties that a report can list; the tests have an attack on each."""


class Settings(Record):
    """What applies to a call: the tightest of its own wish, the user's settings and the project's."""

    mode: Mode
    network: Literal["on", "off"]
    pass_env: tuple[str, ...]
    required: tuple[str, ...] = ()


def effective(root: str, mode: Mode | None = None, network: Literal["on", "off"] | None = None) -> Settings:
    """Return the settings that apply in a project to a call that wishes `mode` and `network` (None: no wish).

    The user's are `sandbox.mode`, `sandbox.network`, `sandbox.pass_env` (names of variables) and `sandbox.require` (names of
    the properties that "require" insists on, for a machine that cannot hold all). A project and a call can ask for a tighter
    mode and network; a project can take names away from `pass_env` by listing those that may stay.

    Raises:
        UsageError: `bad_config`, when a file of settings is not valid.
    """
    tightened = context.settings().tightened
    net = cast('Literal["on", "off"]', tightened("sandbox.network", root, network))
    applied = cast("Mode", tightened("sandbox.mode", root, mode))
    return Settings(applied, net, tuple(cast("list[str]", tightened("sandbox.pass_env", root))), _insisted_on(net))


def _insisted_on(network: Literal["on", "off"]) -> tuple[str, ...]:
    """Return the properties that the user's "require" means, with those of a network that is off; nothing for all."""
    named = context.settings().texts("sandbox.require")
    known = (*ALWAYS, *_WITHOUT_NETWORK, resource_limits.NAME)
    for name in named:
        if name not in known:
            raise UsageError("bad_config", f"sandbox.require: there is no property {name!r}.", f"Use {', '.join(known)}.")
    return tuple(dict.fromkeys((*named, *(_WITHOUT_NETWORK if network == "off" else ())))) if named else ()


def properties_of(policy: Policy) -> tuple[str, ...]:
    """Return the properties that a policy asks for."""
    off = policy.network == "off"
    extra = {
        "project_read_only": not (policy.write_project and policy.read_project),
        "project_hidden": not policy.read_project,
        "network_off": off,
        "unix_sockets_off": off,
        "no_programs": not policy.run,
    }
    return (*ALWAYS, *(name for name, wished in extra.items() if wished))


def layers() -> Mapping[str, str]:
    """Return why each layer cannot be used here; empty where it can."""
    return {"bubblewrap": bubblewrap.ability().why_not, "landlock": landlock.why_not()}


def confines(root: str) -> bool:
    """Tell whether any sandbox confines what runs in a project: the user has not turned it off, and the machine has one.

    Raises:
        UsageError: as `effective`.
    """
    return effective(root).mode != "off" and not all(layers().values())


def confine(argv: list[str], policy: Policy, mode: Mode = "auto") -> Confined:
    """Return the command that runs `argv` under `policy` with the best sandbox this machine has.

    Call `close()` on it once it was started and `finish()` once it has ended. A sandbox ends with the *thread* that started it,
    for the kernel tells of a parent's death by thread.

    Args:
        argv: program (absolute path), then arguments.
        policy: what it may do.
        mode: "require" refuses where a wanted property does not hold, "off" confines nothing.

    Raises:
        UsageError: `bad_environment`, when a variable cannot be one.
        RyeError: `sandbox_unavailable`, when `mode` is "require" and a wanted property does not hold; it names which and why.
            `sandbox_failed`, when other programs change what the sandbox covers each time that it is made.
            `two_users`, when this process' real and effective user or group differ.
        WorkspaceError: `project_changed`, the root's path leads to another folder than `identity`.
    """
    # Before any layer: a NUL inside a word would become two options of bubblewrap.
    _check(argv, policy)
    _refuse_two_users()
    _hold_to_root(policy)
    if mode == "off":
        return _unconfined(argv, policy, dict.fromkeys(properties_of(policy), "the sandbox is off"))
    # Before a layer makes anything: what the user set may be refused.
    limits = resource_limits.configured()
    # In order of strength; only the first layer that works is used.
    why_not = layers()
    if all(why_not.values()):
        confined = _unconfined(argv, policy, dict.fromkeys(properties_of(policy), "; ".join(why_not.values())))
    else:
        groups, lacking = resource_limits.make(limits)
        try:
            if not why_not["bubblewrap"]:
                confined = bubblewrap.confine(argv, policy, is_counted=bool(groups))
            else:
                confined = landlock.confine(argv, policy)
                confined.report["instead_of"] = {"bubblewrap": why_not["bubblewrap"], "advice": bubblewrap.advice()}
                lacking = "; ".join(filter(None, (lacking, "Landlock does not limit the temporary folder")))
        except BaseException:
            resource_limits.release(groups)
            raise
        if lacking:
            confined.report["missing"][resource_limits.NAME] = lacking
        else:
            confined.report["holds"].append(resource_limits.NAME)
        confined = changed(confined, groups=groups)
        if "writes_outside" in confined.report["holds"] and policy.write_project and loads_from(policy.root):
            confined.report["holds"].remove("writes_outside")
            confined.report["missing"]["writes_outside"] = OWN_PROJECT
    try:
        if mode == "require":
            insist(confined.report, policy.required or properties_of(policy))
        # What bubblewrap mounts is open by now.
        _hold_to_root(policy)
    except RyeError:
        confined.close()
        confined.finish()
        raise
    return confined


OWN_PROJECT: Final = "rye itself is installed in this project, or its Python looks for modules here"
"""Why a sandbox holds less there: what a command changes of it runs outside."""


def holds_rye(root: str) -> bool:
    """Tell whether the interpreter or the package that runs here lies in a project."""
    return any(hidden_paths.is_below(path, root) for path in _own_places())


def loads_from(root: str) -> bool:
    """Tell whether what runs here lies in a project, or its modules and libraries may (an editable installation, PYTHONPATH).

    There this process, or the next one, would load a `sitecustomize.py` that a command wrote.
    """
    libraries = os.environ.get("LD_LIBRARY_PATH")
    places = [*sys.path, *(libraries.split(":") if libraries else ())]
    return holds_rye(root) or any(hidden_paths.is_below(os.path.realpath(one), root) for one in places)


@cache
def _own_places() -> frozenset[str]:
    return frozenset(map(os.path.realpath, launcher.own_paths()))


def _hold_to_root(policy: Policy) -> None:
    """Refuse a root that a program exchanged after it was opened."""
    if not leads_to(policy.root, policy.identity):
        raise project_changed(policy.root)


def _refuse_two_users() -> None:
    """Refuse a host that acts as one user and may become another again: a shell that it starts does so at once."""
    if (os.getuid(), os.getgid()) != (os.geteuid(), os.getegid()):
        what = f"This process acts as user {os.geteuid()} and can be user {os.getuid()} again, and so could what it starts."
        raise RyeError("two_users", what, "Give it one user for good (os.setresgid, os.setresuid) before it starts programs.")


def _check(argv: list[str], policy: Policy) -> None:
    """Refuse a NUL, which separates the words of bubblewrap's options, and names that no variable can have."""
    for name in policy.env:
        if not name or "=" in name:
            raise UsageError("bad_environment", f"{name!r} cannot be the name of a variable.", "Give a name without `=`.")
    if any("\0" in word for word in (*argv, *policy.env, *policy.env.values(), policy.root, policy.cwd, *policy.extra_read)):
        raise UsageError("bad_environment", "A command, a path or a variable holds a NUL.", "Leave it out.")


def _unconfined(argv: list[str], policy: Policy, missing: dict[str, str]) -> Confined:
    missing["environment_clean"] += "; variables that look like secrets were left out"
    env = {**environment.without_secrets(os.environ, policy.pass_env), **policy.env}
    return Confined(argv, env, (), {"kind": "none", "holds": [], "missing": missing})


def insist(report: dict[str, Any], wanted: Iterable[str]) -> None:
    """Raise `sandbox_unavailable` when a wanted property does not hold."""
    missing = report["missing"]
    lacking = {name: missing.get(name, "not part of this policy") for name in wanted if name not in report["holds"]}
    if not lacking:
        return
    reported = "; ".join(f"{name} ({why})" for name, why in lacking.items())
    what = f"The sandbox here ({report['kind']}) does not give what is required: {reported}."
    hint = f"{bubblewrap.advice()} Or let the user set sandbox.mode to auto.".lstrip()
    raise RyeError("sandbox_unavailable", what, hint, sandbox=report)
