"""The switches of the SWE tools: whether they run at all, and whether their edits may be applied.

They are read from the environment of the process that the tool runs in (for a shell that is the command's own, for a server the
server's) at every call:

- `RAGIX_ENABLE_SWE=0` turns all of them off; unset, empty or `1` leaves them on.
- In the profile `safe-read-only` (see `rye.toolkit.profiles`) edits are not applied: only their patch is shown.
- `RAGIX_VIEW_STATE=off` keeps no view state; `RAGIX_AUTO_DIFF=1` adds the diff to every edit's answer.
"""

from __future__ import annotations

import os

from rye.errors import UsageError
from rye.toolkit import profiles

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


def effect_on_edits(profile: str) -> str:
    """Return in one sentence what becomes of an edit under a profile."""
    if profile == profiles.READ_ONLY:
        return "Edits are not applied: each shows its patch and writes nothing, so propose patches and change nothing else."
    return "Edits are applied at once, are recorded, and can be undone with `rt undo`."
