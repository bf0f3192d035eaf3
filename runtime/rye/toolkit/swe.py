"""The switches of the SWE tools: whether they run at all, and whether their edits may be applied.

They are read from the environment of the process that the tool runs in (for a shell that is the command's own, for a server the
server's), the user's configuration, and the project's, at every call:

- `RAGIX_ENABLE_SWE=0` turns all of them off; unset, empty or `1` leaves them on.
- The profile is the strictest of `RAGIX_PROFILE`, `swe.profile` in the user's `rye.yaml`, and `swe.profile` in the project's
  `.ai/config/rye.yaml`, so a project can only tighten it; `dev` where none says anything. In `dev` and `unsafe` edits are
  applied, in `safe-read-only` only their patch is shown.
- `RAGIX_VIEW_STATE=off` keeps no view state; `RAGIX_AUTO_DIFF=1` adds the diff to every edit's answer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError, WorkspaceError
from rye.toolkit import config

if TYPE_CHECKING:
    from rye.toolkit.workspace import Workspace

READ_ONLY = "safe-read-only"
PROFILES = ("unsafe", "dev", READ_ONLY)
"""From the loosest to the strictest."""

_PROJECT_FILE = ".ai/config/rye.yaml"
_MAX_BYTES = 256 * 1024
_OFF = ("0", "off", "false", "no")
_ON = ("1", "on", "true", "yes")


def enabled() -> None:
    """Raise UsageError `swe_disabled` when the tools are turned off, `bad_switch` for a value that is neither."""
    if not _switch("RAGIX_ENABLE_SWE", default=True):
        raise UsageError(
            "swe_disabled", "The SWE tools are turned off here (RAGIX_ENABLE_SWE=0). Nothing was read or written.",
            "Unset RAGIX_ENABLE_SWE, or set it to 1, in the environment of this command or server.",
        )  # fmt: skip


def views_kept() -> bool:
    """Tell whether the last viewed window of each file is remembered."""
    return _switch("RAGIX_VIEW_STATE", default=True)


def diff_wanted(asked: bool) -> bool:
    """Tell whether an edit's answer shows the diff: when the call asks for it, or the environment always does."""
    return asked or _switch("RAGIX_AUTO_DIFF", default=False)


def _switch(name: str, *, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in _OFF or value in _ON:
        return value in _ON
    if not value:
        return default
    raise UsageError("bad_switch", f"{name}={value[:40]!r} is neither on nor off.", f"Set {name} to 1 or 0, or unset it.")


def profile(ws: Workspace) -> str:
    """Return the profile in force for a project: the strictest that anyone asks for.

    Raises:
        UsageError: `bad_profile` for an unknown one, `bad_config`: nothing is guessed about what may be written.
    """
    asked = [
        _known(os.environ.get("RAGIX_PROFILE", "").strip() or "", "RAGIX_PROFILE"),
        _known(str(config.setting("swe.profile")), "swe.profile in the user's configuration"),
        _known(_of_project(ws), f"swe.profile in {_PROJECT_FILE}"),
    ]
    return max((one for one in asked if one), key=PROFILES.index, default="dev")


def effect_on_edits(profile: str) -> str:
    """Return in one sentence what becomes of an edit under a profile."""
    if profile == READ_ONLY:
        return "Edits are not applied: each shows its patch and writes nothing, so propose patches and change nothing else."
    return "Edits are applied at once, are recorded, and can be undone with `rt undo`."


def _known(name: Any, source: str) -> str:  # noqa: ANN401 - whatever a file holds
    if name in ("", *PROFILES):
        return str(name)
    raise UsageError("bad_profile", f"{source} is {str(name)[:60]!r}.", f"Use one of {', '.join(reversed(PROFILES))}.")


def _of_project(ws: Workspace) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        with ws.file(_PROJECT_FILE) as file:
            data = file.read(_MAX_BYTES)
    except WorkspaceError as err:
        if err.code == "file_not_found":
            return ""
        raise
    section = config.mapping(data, _PROJECT_FILE).get("swe")
    return section.get("profile", "") if isinstance(section, dict) else ""
