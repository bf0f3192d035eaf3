"""Settings: the user's `${USER_SPACE:-~}/.ai/config/rye.yaml` over the defaults, each key with who may set it.

A project's `.ai/config/rye.yaml` can tighten some of them (`tightened`), and is not asked for any other.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Any

from rye import state
from rye.errors import UsageError
from rye.toolkit import beneath, shapes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Value = int | str | bool | list[str]

# key: default. None of these may be set by a project: they concern the user's own disk and keys, and what may leave them.
_DEFAULTS: dict[str, Value] = {
    "journal.max_bytes": 64 * 1024 * 1024,
    "journal.max_age_days": 30,
    "outputs.max_bytes": 512 * 1024 * 1024,
    "outputs.max_age_days": 7,
    "jobs.max_ended": 50,
    "jobs.max_age_days": 7,
    # Names of `rye.toolkit.acted_on` that tools may write after all.
    "protected.allow": [],
    "signing.agents": "deny",
    "log.events": False,
    "sandbox.mode": "auto",
    "sandbox.network": "on",
    "sandbox.pass_env": [],
    # Empty: all that are asked for, see `rye.toolkit.sandbox`.
    "sandbox.require": [],
    "web.allow_hosts": [],
    "web.proxy": "",
    # Empty: the directory `registry` in the user's `.ai`. A directory, or oci://host[:port][/prefix].
    "registry.default": "",
    # What `rye registry search` and `list` look in, where none is named.
    "registry.namespaces": [],
    # Whether agents may push and yank, and which registries they may name beside the default one.
    "registry.agents": "deny",
    "registry.allowed": [],
    # Empty: as the environment or the project says, see `rye.toolkit.swe`.
    "swe.profile": "",
}

# The values of a key from the loosest to the tightest: a project may ask for a tighter one.
_LEVELS: dict[str, tuple[str, ...]] = {"sandbox.mode": ("off", "auto", "require"), "sandbox.network": ("on", "off")}
# Lists of which a project may only take away.
_GRANTS = frozenset({"sandbox.pass_env"})

_MAX_BYTES = 256 * 1024

# The user's file by its path, with the very bytes it was read from.
_loaded: dict[str, tuple[bytes, dict[str, Any]]] = {}


def _user_path() -> str:
    return f"{state.user_ai()}/config/rye.yaml"


def _user_file() -> dict[str, Any]:
    """Return the user's file, read at every call: times and inodes come back, and what is tightened holds at once."""
    path = _user_path()
    try:
        os.stat(path)
    except OSError:
        return {}
    data = read(path)
    known = _loaded.get(path)
    if known is None or known[0] != data:
        known = _loaded[path] = (data, mapping(data, path) if data else {})
    return known[1]


def _project_file(root: str) -> tuple[dict[str, Any], str]:
    """Return a project's settings, and where they stand; the file is read at every call."""
    data, shown = of_project(root, "rye.yaml")
    return mapping(data, shown), shown


def of_project(root: str, name: str) -> tuple[bytes, str]:
    """Return the bytes of a project's `.ai/config/<name>`, opened beneath the root (none: b""), and where it stands.

    Raises:
        UsageError: `bad_config`, naming the file; with `outside` where a link leads out of the project.
    """
    shown = f"{root}/.ai/config/{name}"
    try:
        root_fd = os.open(root, beneath.DIRECTORY)
        try:
            fd, _ = beneath.open_beneath(root_fd, [b".ai", b"config", *os.fsencode(name).split(b"/")], _READ)
        finally:
            os.close(root_fd)
    except OSError as err:
        if err.errno in (errno.ENOENT, errno.ENOTDIR):
            return b"", shown
        raise _bad(shown, f"cannot be read ({err.strerror})", outside=err.errno == errno.EXDEV) from None
    return _content(fd, shown), shown


_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read(path: Path | str) -> bytes:
    """Return the bytes of a settings file of the user's or the system's; b"" where there is none. Errors as `of_project`."""
    try:
        return _content(os.open(path, _READ), path)
    except FileNotFoundError:
        return b""
    except OSError as err:
        raise _bad(path, f"cannot be read ({err.strerror})") from None


def _content(fd: int, path: Path | str) -> bytes:
    try:
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
    """Return the settings that a file's bytes hold; an empty file holds none.

    Raises:
        UsageError: `bad_config`, naming `path`.
    """
    content = parsed(data, path)
    if content is not None and not isinstance(content, dict):
        raise _bad(path, "is not a mapping")
    return content or {}


def parsed(data: bytes, path: Path | str) -> Any:  # noqa: ANN401 - whatever stands there
    """Return what a settings file's bytes say in YAML, held to `shapes.plain`.

    Aliases are refused: a few lines of them stand for gigabytes.

    Raises:
        UsageError: `bad_config`, naming `path`.
    """
    if not data:
        return None
    import yaml

    try:
        if b"*" in data and any(isinstance(token, yaml.AliasToken) for token in yaml.scan(data, yaml.SafeLoader)):
            raise _bad(path, "holds an alias (*name); write the value out")
        # Not the C loader, whose recursion ends the process on a bottomless file.
        content = yaml.load(data, yaml.SafeLoader)
        shapes.plain(content, path)
        return content
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        raise _bad(path, f"is not valid YAML: {str(err) or type(err).__name__}") from None


def _bad(path: Path | str, why: str, **details: bool) -> UsageError:
    return UsageError("bad_config", f"{path} {why}.", "Mend or remove the file.", **details)


def setting(key: str) -> Value:
    """Return a setting by its dotted key.

    Raises:
        UsageError: `bad_config`, when the user's file is not valid or holds another type there.
    """
    found = _value(_user_file(), key, _user_path())
    return _DEFAULTS[key] if found is None else found


def _value(content: Mapping[str, Any], key: str, path: str) -> Value | None:
    """Return what a file says about a key, checked; None where it says nothing."""
    section, _, name = key.partition(".")
    inner = content.get(section)
    if inner is not None and not isinstance(inner, dict):
        told = f"The setting {section} must be a mapping, such as {section}: {{{name}: …}}, not {repr(inner)[:200]}."
        raise UsageError("bad_config", told, f"Mend {path}.")
    value = (inner or {}).get(name)
    if value is None:
        return None
    if key in _LEVELS and isinstance(value, bool):
        # YAML reads the bare words on and off as true and false.
        value = "on" if value else "off"
    right = type(value) is type(_DEFAULTS[key]) and (key not in _LEVELS or value in _LEVELS[key])
    if not right or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
        wanted = f"one of {', '.join(_LEVELS[key])}" if key in _LEVELS else _TYPES[type(_DEFAULTS[key])]
        raise UsageError("bad_config", f"The setting {key} must be {wanted}, not {repr(value)[:200]}.", f"Mend {path}.")
    found: Value = value
    return found


_TYPES = {int: "int", str: "str", bool: "bool", list: "a list of texts"}


def tightened(key: str, root: str, wish: str | None = None) -> Value:
    """Return the tightest of what the user's file, the project's file and a call say about a key.

    Args:
        key: one that a project may tighten.
        root: the project root.
        wish: what the call asks for, where the key has levels.

    Raises:
        UsageError: `bad_config`, when a file is not valid: an unreadable project file is not taken for silence.
    """
    users = setting(key)
    projects = of_projects(key, root)
    if key in _LEVELS:
        levels = _LEVELS[key]
        return max((one for one in (users, projects, wish) if isinstance(one, str)), key=levels.index)
    if key in _GRANTS and isinstance(users, list) and isinstance(projects, list):
        return [one for one in users if one in projects]
    return users


def of_projects(key: str, root: str) -> Value | None:
    """Return what a project's file says about a key, whoever may say it; None where it says nothing. Errors as `tightened`."""
    content, path = _project_file(root)
    return _value(content, key, path)


def number(key: str) -> int:
    """Return an integer setting."""
    found = setting(key)
    return found if isinstance(found, int) else 0


def texts(key: str) -> list[str]:
    """Return a setting that is a list of texts."""
    found = setting(key)
    return found if isinstance(found, list) else []
