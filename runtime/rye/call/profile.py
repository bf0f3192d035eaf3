"""The profile, whether tools may change files of a project at all; and the switches of the SWE tools.

The profile is the strictest of `RAGIX_PROFILE` in the environment of the process that the tool runs in (for a shell that is the
command's own, for a server the server's), `swe.profile` in the user's `rye.yaml`, and `swe.profile` in the project's
`.ai/config/rye.yaml`, read at every call; so a project can only tighten it. `dev` where none says anything.

In `dev` and `unsafe` changes are made. In `safe-read-only` no tool changes a file: the SWE tools show the patch, every other
one is refused where all changes pass (`commit.commit`); commands and tools of other signers see the
project read-only, where a sandbox works.

The switches are read from the same environment at every call: `RAGIX_ENABLE_SWE=0` turns the SWE tools off (unset, empty or `1`
leaves them on), `RAGIX_VIEW_STATE=off` stores no view state, `RAGIX_AUTO_DIFF=1` adds the diff to every edit's answer.
"""

from __future__ import annotations

import os

from rye.call import context
from rye.errors import UsageError

READ_ONLY = "safe-read-only"
PROFILES = ("", "unsafe", "dev", READ_ONLY)
"""From the loosest to the strictest; "" where nobody says anything."""


def profile(root: str) -> str:
    """Return the profile in force for a project: the strictest that anyone asks for.

    Raises:
        UsageError: `bad_profile` for an unknown one, `bad_config`: nothing is guessed about what may be written.
    """
    named, settings = os.environ.get("RAGIX_PROFILE", "").strip(), context.settings()
    if named not in PROFILES:
        why, hint = f"RAGIX_PROFILE is {named[:60]!r}.", f"Use one of {', '.join(filter(None, reversed(PROFILES)))}."
        raise UsageError("bad_profile", why, hint)
    try:
        found = settings.tightened("swe.profile", root, named)
    except UsageError as err:
        if not err.details.get("outside"):
            raise
        # A file outside the project does not speak for it, and it could only tighten.
        found = max(named, str(settings.get("swe.profile")), key=PROFILES.index)
    return str(found) or "dev"


def read_only(root: str) -> bool:
    """Tell whether no tool may change a file of a project. Errors as `profile`."""
    return profile(root) == READ_ONLY


def refuse_changes(root: str) -> None:
    """Raise UsageError `read_only_profile` where no tool may change a file of a project. Errors as `profile`."""
    if read_only(root):
        raise refusal()


def refusal() -> UsageError:
    """Return the refusal of a change under the profile that lets none through."""
    return UsageError(
        "read_only_profile",
        f"The profile {READ_ONLY} lets no tool change a file here. Nothing was written.",
        "Propose the change to your user (dry_run shows the patch, where a tool has it). Only the user can lift this: "
        "RAGIX_PROFILE in the environment of this process, or swe.profile in a rye.yaml.",
    )


_OFF = ("0", "off", "false", "no")
_ON = ("1", "on", "true", "yes")


def enabled() -> None:
    """Raise UsageError `swe_disabled` when the tools are turned off, `bad_switch` for a value that is neither."""
    if not _switch("RAGIX_ENABLE_SWE", default=True):
        why = "The SWE tools are turned off here (RAGIX_ENABLE_SWE=0). Nothing was read or written."
        hint = "Unset RAGIX_ENABLE_SWE, or set it to 1, in the environment of this command or server."
        raise UsageError("swe_disabled", why, hint)


def views_kept() -> bool:
    """Tell whether the last viewed window of each file is remembered."""
    return _switch("RAGIX_VIEW_STATE", default=True)


def diff_wanted(show_diff: bool) -> bool:
    """Tell whether an edit's answer shows the diff: when the call asks for it, or the environment always does."""
    return show_diff or _switch("RAGIX_AUTO_DIFF", default=False)


def _switch(name: str, *, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in _OFF or value in _ON:
        return value in _ON
    if not value:
        return default
    raise UsageError("bad_switch", f"{name}={value[:40]!r} is neither on nor off.", f"Set {name} to 1 or 0, or unset it.")


def effect_on_edits(profile: str) -> str:
    """Return in one sentence what becomes of an edit under a profile."""
    if profile == READ_ONLY:
        return "Edits are not applied: each shows its patch and writes nothing, so propose patches and change nothing else."
    return "Edits are applied at once, are recorded, and can be undone with `rt undo`."
