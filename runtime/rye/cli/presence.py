"""Whether a person is there: what gives trust or signs is never done by an agent's command unless its user allowed it."""

from __future__ import annotations

import sys

from rye.errors import RyeError
from rye.toolkit import config


def at_terminal() -> bool:
    """Tell whether a person can be asked: input and error output are a terminal."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def require_person_or_key(what: str, key: str | None = None, *, key_option: bool = False) -> None:
    """Refuse without a terminal, unless the user's own configuration allows agents to sign, or a key file is named.

    `key_option` says that the command has `--key`.

    Raises:
        RyeError: `needs_person`, with what to ask the user.
    """
    by_key = "; a release script names its key with --key" if key_option else ""
    if key is None and not at_terminal() and config.setting("signing.agents") != "allow":
        raise RyeError(
            "needs_person", f"Only a person at a terminal may {what}.",
            "Ask your user to run this command in a terminal, or to set `signing: {agents: allow}` in their own "
            f"~/.ai/config/rye.yaml{by_key}.",
        )  # fmt: skip


def require_person(what: str) -> None:
    """Refuse without a terminal, whatever is configured.

    Raises:
        RyeError: `needs_person`, with what to ask the user.
    """
    if not at_terminal():
        raise RyeError(
            "needs_person", f"Only a person at a terminal may {what}.", "Ask your user to run this command in a terminal."
        )


def confirm(question: str) -> bool:
    """Ask a person; anything but `yes` is no. Errors as `require_person`."""
    require_person("say yes to this")
    print(f"{question} Type yes to go on: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "yes"
