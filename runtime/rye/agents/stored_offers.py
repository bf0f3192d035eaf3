"""The offers of a project's many tools on the disk: another process lists five thousand without parsing them anew.

Each file is read, hashed and verified at each listing all the same: an offer stored here counts only for those very bytes, that
id, that key and what its user trusts. The file lies in the project's state in the user's space, and bears the project's seal
(`rye.workspace.seals`): what is not sealed, or not whole, counts as missing. The offers of the system's own few are not stored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rye._version import __version__
from rye.agents import model_schema, offers
from rye.agents.offers import Offer
from rye.call import safe_text
from rye.config import user_dirs
from rye.errors import RyeError
from rye.fs import atomic
from rye.items import parse
from rye.workspace import seals
from rye.workspace.workspace import Workspace

LEAST: Final = 300
"""Fewer tools are parsed sooner than they are looked for on the disk."""

MOST: Final = 16_384
"""Offers that are stored of one project."""

_MOST_BYTES: Final = 256 << 20
_FORM: Final = "1"
_MADE_BY: Final = (offers, model_schema, parse, safe_text)

Key = tuple[str | None, ...]
Stored = tuple[dict[str, Any], Offer, str, list[str | None]]
"""What a tool's file said when it was parsed: its facts, its offer, its docstring, its type and its executor."""


def load(project_path: str) -> dict[Key, Stored]:
    """Return the stored offers by what they were made of; nothing where there are none that can be believed."""
    try:
        with Workspace(project_path) as workspace:
            raw = atomic.read(_path(workspace), _MOST_BYTES)
            if raw is None:
                return {}
            record = seals.unsealed(seals.secret(workspace), _label(), raw)
        return {tuple(key): (facts, Offer(**offer), *rest) for key, facts, offer, *rest in record["offers"]}
    except (OSError, RyeError, ValueError, TypeError, LookupError, RecursionError):
        return {}


def save(project_path: str, found: Mapping[Key, Stored]) -> None:
    """Store offers in place of those before; failing to is no failure."""
    rows = [[key, facts, _fields(offer), *rest] for key, (facts, offer, *rest) in list(found.items())[-MOST:]]
    try:
        with Workspace(project_path) as workspace:
            path = _path(workspace)
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            body = json.dumps({"offers": rows}).encode()[1:]
            atomic.write(path, seals.sealed(seals.secret(workspace), _label(), body), 0o600, durably=False)
    except (OSError, RyeError, ValueError, TypeError, RecursionError):
        return


def _path(workspace: Workspace) -> str:
    return f"{user_dirs.state_dir(workspace.fd)}/catalog/offers.json"


def _fields(offer: Offer) -> dict[str, Any]:
    return {name: getattr(offer, name) for name in Offer.__annotations__}


def _label() -> str:
    """Return what an offer depends on besides its tool: the modules that make it."""
    made_by: Iterable[os.stat_result] = (os.stat(str(one.__file__)) for one in _MADE_BY)
    return f"offers {_FORM} {__version__} {[(info.st_mtime_ns, info.st_size) for info in made_by]}"
