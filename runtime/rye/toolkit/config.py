"""Settings: the user's `${USER_SPACE:-~}/.ai/config/rye.yaml` over the defaults, each key with who may set it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from rye import state
from rye.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

# key: default. None of these may be set by a project: they concern the user's own disk and keys.
_DEFAULTS: dict[str, int | str | bool] = {
    "journal.max_bytes": 64 * 1024 * 1024,
    "journal.max_age_days": 30,
    "signing.agents": "deny",
    "log.events": False,
    # Empty: as the environment or the project says, see `rye.toolkit.swe`.
    "swe.profile": "",
}

_MAX_BYTES = 256 * 1024

_loaded: dict[str, tuple[tuple[int, int, int], dict[str, Any]]] = {}


def _user_file() -> dict[str, Any]:
    """Return the user's file, read again when it changed."""
    path = state.user_ai() / "config" / "rye.yaml"
    try:
        info = os.stat(path)
    except OSError:
        return {}
    stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
    known = _loaded.get(str(path))
    if known is None or known[0] != stamp:
        known = _loaded[str(path)] = (stamp, mapping(_read(path), path))
    return known[1]


def _read(path: Path) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _bad(path, "is not a regular file")
            data = file.read(_MAX_BYTES + 1)
    except OSError as err:
        raise _bad(path, f"cannot be read ({err.strerror})") from None
    if len(data) > _MAX_BYTES:
        raise _bad(path, f"is larger than {_MAX_BYTES:,} bytes")
    return data


def mapping(data: bytes, path: Path | str) -> dict[str, Any]:
    """Return the settings that a file's bytes hold; what is no mapping holds none.

    Raises:
        UsageError: `bad_config`, naming `path`.
    """
    import yaml

    try:
        # Not the C loader, whose recursion ends the process on a bottomless file.
        content = yaml.load(data, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        raise _bad(path, f"is not valid YAML: {str(err) or type(err).__name__}") from None
    return content if isinstance(content, dict) else {}


def _bad(path: Path | str, why: str) -> UsageError:
    return UsageError("bad_config", f"{path} {why}.", "Mend or remove the file.")


def setting(key: str) -> int | str | bool:
    """Return a setting by its dotted key.

    Raises:
        UsageError: `bad_config`, when the user's file is not valid or holds another type there.
    """
    default = _DEFAULTS[key]
    value: Any = _user_file()
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return default
    if type(value) is not type(default):
        raise UsageError(
            "bad_config", f"The setting {key} must be {type(default).__name__}, not {value!r}.",
            f"Mend {state.user_ai() / 'config' / 'rye.yaml'}.",
        )  # fmt: skip
    found: int | str | bool = value
    return found


def number(key: str) -> int:
    """Return an integer setting."""
    return int(setting(key))
