"""Settings: the user's `${USER_SPACE:-~}/.ai/config/rye.yaml` over the defaults, each key with who may set it."""

from __future__ import annotations

from typing import Any

from rye import state
from rye.errors import UsageError

# key: default. None of these may be set by a project: they concern the user's own disk and keys.
_DEFAULTS: dict[str, int | str | bool] = {
    "journal.max_bytes": 64 * 1024 * 1024,
    "journal.max_age_days": 30,
    "signing.agents": "deny",
    "log.events": False,
}

_loaded: dict[str, tuple[tuple[int, int] | None, dict[str, Any]]] = {}


def _user_file() -> dict[str, Any]:
    """Return the user's file, read again when it changed."""
    path = state.user_ai() / "config" / "rye.yaml"
    try:
        info = path.stat()
    except OSError:
        return {}
    stamp = (info.st_mtime_ns, info.st_size)
    known = _loaded.get(str(path))
    if known is None or known[0] != stamp:
        import yaml

        try:
            content = yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe loaders both
        except yaml.YAMLError as err:
            raise UsageError("bad_config", f"{path} is not valid YAML: {err}.", "Mend or remove the file.") from None
        known = _loaded[str(path)] = (stamp, content if isinstance(content, dict) else {})
    return known[1]


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
