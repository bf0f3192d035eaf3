"""The profile: whether tools may change files of a project at all.

It is the strictest of `RAGIX_PROFILE` in the environment of the process that the tool runs in, `swe.profile` in the user's
`rye.yaml`, and `swe.profile` in the project's `.ai/config/rye.yaml`, read at every call; so a project can only tighten it.
`dev` where none says anything.

In `dev` and `unsafe` changes are made. In `safe-read-only` no tool changes a file: the SWE tools show the patch, every other
one is refused where all changes pass (`journal.land`, `commits.commit`); commands and tools of other signers see the project
read-only, where a sandbox works.
"""

from __future__ import annotations

import os
from typing import Any

from rye.errors import UsageError
from rye.toolkit import config

READ_ONLY = "safe-read-only"
PROFILES = ("unsafe", "dev", READ_ONLY)
"""From the loosest to the strictest."""


def profile(root: str) -> str:
    """Return the profile in force for a project: the strictest that anyone asks for.

    Raises:
        UsageError: `bad_profile` for an unknown one, `bad_config`: nothing is guessed about what may be written.
    """
    asked = [
        _known(os.environ.get("RAGIX_PROFILE", "").strip() or "", "RAGIX_PROFILE"),
        _known(str(config.setting("swe.profile")), "swe.profile in the user's configuration"),
        _known(_of_project(root), "swe.profile in .ai/config/rye.yaml"),
    ]
    return max((one for one in asked if one), key=PROFILES.index, default="dev")


def read_only(root: str) -> bool:
    """Tell whether no tool may change a file of a project. Errors as `profile`."""
    return profile(root) == READ_ONLY


def refuse_changes(root: str) -> None:
    """Raise UsageError `read_only_profile` where no tool may change a file of a project. Errors as `profile`."""
    if read_only(root):
        raise UsageError(
            "read_only_profile", f"The profile {READ_ONLY} lets no tool change a file here. Nothing was written.",
            "Propose the change to your user (dry_run shows the patch, where a tool has it). Only the user can lift this: "
            "RAGIX_PROFILE in the environment of this process, or swe.profile in a rye.yaml.",
        )  # fmt: skip


def _known(name: Any, source: str) -> str:  # noqa: ANN401 - whatever a file holds
    if name in ("", *PROFILES):
        return str(name)
    raise UsageError("bad_profile", f"{source} is {str(name)[:60]!r}.", f"Use one of {', '.join(reversed(PROFILES))}.")


def _of_project(root: str) -> str:
    try:
        return str(config.of_projects("swe.profile", root) or "")
    except UsageError as err:
        if not err.details.get("outside"):
            raise
        # What lies outside is not the project's word; it could only tighten.
        return ""
