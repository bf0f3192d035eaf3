"""What a child process may reach: a policy turned into the command that enforces it, and a true account of what holds.

Three layers, the first that works: bubblewrap, Landlock with a system call filter, none. The properties in a report:

    processes_end           all that the command started ends with it
    writes_outside          files outside the project and its own temporary folder cannot be made, changed or removed
    metadata_outside        nor their modes, owners and times
    protected_names         `.ai`, git's hooks and configuration, … (`rye.toolkit.protected`) cannot be changed or made
    project_read_only       the project cannot be changed            (where the policy says so)
    project_hidden          the project cannot be read               (where the policy says so)
    home_hidden             homes, the user's space, keys and credentials cannot be read
    environment_clean       no variable but the allowed ones, of this process or any parent of the command
    other_processes_hidden  no other process can be seen, signalled or looked into
    private_tmp             the temporary folder is the command's own
    no_new_privileges       no program gains rights (setuid, capabilities, user namespaces)
    network_off             no socket reaches anything              (where the policy says so)
    unix_sockets_off        nor does a unix socket                  (where the policy says so; under Landlock always)
    no_programs             no other program can be started         (where the policy says so)

Limits that no layer removes: what is readable and not hidden can be read; with the network on anyone can be told anything;
a disk can be filled; root's number of processes is not limited; hooks that git's configuration looks for among the
project's own files (`core.hooksPath`) are files like any other, and so are repositories made inside the project.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal, cast

from rye.errors import RyeError, UsageError
from rye.record import Record
from rye.toolkit import bubblewrap, clean_env, config, landlocked
from rye.toolkit.policy import Confined, Mode, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ALWAYS", "Confined", "Mode", "Policy", "Settings", "asked", "confine", "effective", "layers"]

ALWAYS: Final = (
    "processes_end", "writes_outside", "metadata_outside", "protected_names", "home_hidden", "environment_clean",
    "other_processes_hidden", "private_tmp", "no_new_privileges",
)  # fmt: skip
"""The properties that every policy asks for."""

_WITHOUT_NETWORK: Final = ("network_off", "unix_sockets_off")


class Settings(Record):
    """What applies to a call: the tightest of its own wish, the user's settings and the project's."""

    mode: Mode
    network: Literal["on", "off"]
    pass_env: tuple[str, ...]
    wanted: tuple[str, ...] = ()


def effective(root: str, mode: Mode | None = None, network: Literal["on", "off"] | None = None) -> Settings:
    """Return the settings that apply in a project to a call that wishes `mode` and `network` (None: no wish).

    The user's are `sandbox.mode`, `sandbox.network`, `sandbox.pass_env` (names of variables) and `sandbox.require` (names of
    the properties that "require" insists on, for a machine that cannot hold all). A project and a call can ask for a tighter
    mode and network; a project can take names away from `pass_env` by listing those that may stay.

    Raises:
        UsageError: `bad_config`, when a file of settings is not valid.
    """
    net = cast('Literal["on", "off"]', config.tightened("sandbox.network", root, network))
    return Settings(
        cast("Mode", config.tightened("sandbox.mode", root, mode)),
        net,
        tuple(cast("list[str]", config.tightened("sandbox.pass_env", root))),
        _insisted_on(net),
    )


def _insisted_on(network: Literal["on", "off"]) -> tuple[str, ...]:
    """Return the properties that the user's "require" means, with those of a network that is off; nothing for all."""
    named = config.texts("sandbox.require")
    known = (*ALWAYS, *_WITHOUT_NETWORK)
    for name in named:
        if name not in known:
            raise UsageError("bad_config", f"sandbox.require: there is no property {name!r}.", f"Use {', '.join(known)}.")
    return tuple(dict.fromkeys((*named, *(_WITHOUT_NETWORK if network == "off" else ())))) if named else ()


def asked(policy: Policy) -> tuple[str, ...]:
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
    return {"bubblewrap": bubblewrap.ability().why_not, "landlock": landlocked.why_not()}


def confine(argv: list[str], policy: Policy, mode: Mode = "auto") -> Confined:
    """Return the command that runs `argv` under `policy` with the best sandbox this machine has.

    Call `close()` on it once it was started and `finish()` once it has ended. A sandbox ends with the *thread* that started it,
    for the kernel tells of a parent's death by thread.

    Raises:
        UsageError: `bad_environment`, when a variable cannot be one.
        RyeError: `sandbox_unavailable`, when `mode` is "require" and a wanted property does not hold; it names which and why.
    """
    _check(argv, policy)
    if mode == "off":
        return _unconfined(argv, policy, dict.fromkeys(asked(policy), "the sandbox is off"))
    why_not = layers()
    if not why_not["bubblewrap"]:
        confined = bubblewrap.confine(argv, policy)
    elif not why_not["landlock"]:
        confined = landlocked.confine(argv, policy)
        confined.report["instead_of"] = {"bubblewrap": why_not["bubblewrap"]}
    else:
        reason = "; ".join(why_not.values())
        confined = _unconfined(argv, policy, dict.fromkeys(asked(policy), reason))
    if mode == "require":
        _insist(confined, policy)
    return confined


def _check(argv: list[str], policy: Policy) -> None:
    """Refuse what would end one word and begin another where words are divided by NUL."""
    for name in policy.env:
        if not name or "=" in name:
            raise UsageError("bad_environment", f"{name!r} cannot be the name of a variable.", "Give a name without `=`.")
    if any("\0" in word for word in (*argv, *policy.env, *policy.env.values(), policy.root, policy.cwd, *policy.extra_read)):
        raise UsageError("bad_environment", "A command, a path or a variable holds a NUL.", "Leave it out.")


def _unconfined(argv: list[str], policy: Policy, missing: dict[str, str]) -> Confined:
    missing["environment_clean"] += "; variables that look like secrets were left out"
    env = {**clean_env.without_secrets(os.environ, policy.pass_env), **policy.env}
    return Confined(argv, env, (), {"kind": "none", "holds": [], "missing": missing})


def _insist(confined: Confined, policy: Policy) -> None:
    """Refuse a sandbox that lacks what was wanted, and give back what it holds."""
    holds = confined.report["holds"]
    lacking = {name: confined.report["missing"].get(name, "not part of this policy") for name in policy.wanted or asked(policy)
               if name not in holds}  # fmt: skip
    if not lacking:
        return
    confined.close()
    confined.finish()
    told = "; ".join(f"{name} ({why})" for name, why in lacking.items())
    raise RyeError(
        "sandbox_unavailable",
        f"The sandbox here ({confined.report['kind']}) does not give what is required: {told}.",
        "Install bubblewrap and allow unprivileged user namespaces, or let the user set sandbox.mode to auto.",
        sandbox=confined.report,
    )
