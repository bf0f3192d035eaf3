"""What a command may do here: what the user set, which a call can only tighten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rye.errors import UsageError
from rye.toolkit import config
from rye.toolkit.sandbox import Policy

if TYPE_CHECKING:
    from rye.toolkit.sandbox import Mode

_STRICTNESS = ("off", "auto", "require")


def mode_for(wanted: Mode | None) -> Mode:
    """Return the mode of the sandbox: the user's, or a stricter one that the call wants.

    Raises:
        UsageError: `sandbox_is_set`, when the call wants less than the user set.
    """
    chosen = str(config.setting("sandbox.mode"))
    if wanted is None or wanted == chosen:
        return chosen  # type: ignore[return-value] # one of the three, held by the setting
    if _STRICTNESS.index(wanted) > _STRICTNESS.index(chosen) or config.setting("sandbox.calls_may_loosen"):
        return wanted
    raise UsageError(
        "sandbox_is_set", f'The user set the sandbox to "{chosen}"; a call cannot make it "{wanted}".',
        "Leave the parameter out, or ask the user to change sandbox.mode in their configuration.",
    )  # fmt: skip


def policy_for(root: str, cwd: str, env: dict[str, str], network: str | None) -> Policy:
    """Return the policy of a command.

    Args:
        root: the project root (real path).
        cwd: where it starts (absolute).
        env: variables to add.
        network: what the call wants: `on`, `off`, or None for the user's setting.

    Raises:
        UsageError: `network_is_set`, when the call wants the network that the user set off.
    """
    chosen = config.setting("sandbox.network")
    if network == "on" and chosen == "off":
        raise UsageError(
            "network_is_set", "The user set the network off; a call cannot turn it on.",
            "Work without it, or ask the user to change sandbox.network in their configuration.",
        )  # fmt: skip
    return Policy(root, cwd, network="off" if "off" in (network, chosen) else "on", env=env)
