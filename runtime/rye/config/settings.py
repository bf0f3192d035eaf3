"""Settings: the user's `${USER_SPACE:-~}/.ai/config/rye.yaml` over the defaults, each key with who may set it.

A project's `.ai/config/rye.yaml` can tighten some of them (`tightened`), and is not asked for any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rye.config import layers
from rye.errors import UsageError

Value = int | str | bool | list[str]

# key: default. None of these may be set by a project: they concern the user's own disk and keys, and what may leave them.
_DEFAULTS: dict[str, Value] = {
    "journal.max_bytes": 64 * 1024 * 1024,
    # What commands change: whether it is recorded, the bounds of a file and of all contents, and more folders to leave out.
    "record.commands": True,
    "record.max_file_bytes": 16 * 1024 * 1024,
    "record.max_bytes": 1024 * 1024 * 1024,
    "record.skip": [],
    # All stored state of all projects together.
    "state.max_bytes": 4 * 1024 * 1024 * 1024,
    "state.max_age_days": 90,
    "outputs.max_bytes": 512 * 1024 * 1024,
    "jobs.max_ended": 50,
    "jobs.max_bytes": 256 * 1024 * 1024,
    # Names of `rye.workspace.protected_paths` that tools may write after all.
    "protected.allow": [],
    "signing.agents": "deny",
    # What a skill must be before it is used, see `rye.folders.skills.GOOD`.
    "skills.require": "pinned",
    "log.events": False,
    # What tools may do that declare nothing about it, as those of other installations: "ID read write", "category/ read".
    "permissions.granted": [],
    "sandbox.mode": "auto",
    "sandbox.network": "on",
    "sandbox.pass_env": [],
    # Empty: all that are asked for, see `rye.sandbox.sandbox`.
    "sandbox.require": [],
    # What a command may use. 0: a share of the machine's memory, see `rye.sandbox.resource_limits`.
    "limits.memory_mb": 0,
    "limits.processes": 8192,
    "limits.temporary_mb": 0,
    "web.allow_hosts": [],
    "web.proxy": "",
    # Empty: the directory `registry` in the user's `.ai`. A directory, or oci://host[:port][/prefix].
    "registry.default": "",
    # What `rye registry search` and `list` look in, where none is named.
    "registry.namespaces": [],
    # Whether agents may push and yank, and which registries they may name beside the default one.
    "registry.agents": "deny",
    "registry.allowed": [],
    # Empty: as the environment or the project says, see `rye.call.profile`.
    "swe.profile": "",
}

# The values of a key from the loosest to the tightest: a project may ask for a tighter one.
_LEVELS: dict[str, tuple[str, ...]] = {
    "sandbox.mode": ("off", "auto", "require"),
    "sandbox.network": ("on", "off"),
    "skills.require": ("none", "pinned", "signed"),
    "swe.profile": ("", "unsafe", "dev", "safe-read-only"),
}
_CHOICES = {**_LEVELS, "signing.agents": ("deny", "allow"), "registry.agents": ("deny", "allow")}
# Lists of which a project may only take away.
_GRANTS = frozenset({"sandbox.pass_env"})

# Sections that guard something: a name that they do not know, or a wrong value, is refused before anything is done.
_GUARDS = frozenset({"permissions", "protected", "record", "sandbox", "signing", "skills", "web"})
_SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in _DEFAULTS))

# A stranger may have written a project's file, and every call reads it.
_MAX_PROJECT_BYTES = 16 * 1024


def _user_file(path: str) -> dict[str, Any]:
    """Return the user's file, read at every call: times and inodes come back, and what is tightened holds at once."""
    try:
        os.stat(path)
    except OSError:
        return {}
    content = layers.own(path)
    _refuse(content, path)
    return content


def faults(content: Mapping[str, Any], path: str) -> Iterator[tuple[bool, UsageError]]:
    """Yield what is wrong in a settings file: whether it is in what guards something, and the error that names it."""
    for section, inner in content.items():
        if section not in _SECTIONS:
            near = _near(section, _SECTIONS)
            yield near in _GUARDS, _unknown(f"section {section}", near, path)
        elif inner is not None and not isinstance(inner, dict):
            yield section in _GUARDS, _no_mapping(section, inner, path)
        for name in inner if isinstance(inner, dict) and section in _SECTIONS else ():
            key = f"{section}.{name}"
            if key not in _DEFAULTS:
                near = _near(name, [one.partition(".")[2] for one in _DEFAULTS if one.startswith(f"{section}.")])
                yield section in _GUARDS, _unknown(f"setting {key}", f"{section}.{near}" if near else "", path)
                continue
            try:
                _value(content, key, path)
            except UsageError as err:
                yield section in _GUARDS, err


def _refuse(content: Mapping[str, Any], path: str) -> None:
    for guards, err in faults(content, path):
        if guards:
            raise err


def _near(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name.lower(), names, 1)), "")


def _unknown(what: str, near: str, path: str) -> UsageError:
    meant = f" Did you mean {near}?" if near else ""
    return UsageError("bad_config", f"There is no {what}.{meant}", f"Mend {path}.")


def _no_mapping(section: str, inner: object, path: str) -> UsageError:
    name = next(key.partition(".")[2] for key in _DEFAULTS if key.startswith(f"{section}."))
    message = f"The setting {section} must be a mapping, such as {section}: {{{name}: …}}, not {repr(inner)[:200]}."
    return UsageError("bad_config", message, f"Mend {path}.")


class Settings:
    """The user's and a project's settings at one moment: each file is read once, when it is first asked."""

    def __init__(self) -> None:
        self._user: dict[str, Any] | None = None
        self._projects: dict[str, tuple[dict[str, Any], str]] = {}

    def get(self, key: str) -> Value:
        """Return a setting of the user's by its dotted key, or its default.

        Raises:
            UsageError: `bad_config`, when the user's file is not valid or holds another type there.
        """
        if self._user is None:
            self._user_path = layers.user_file("rye.yaml")
            self._user = _user_file(self._user_path)
        found = _value(self._user, key, self._user_path)
        return _DEFAULTS[key] if found is None else found

    def doubts(self) -> list[str]:
        """Return what is unknown or wrong in the user's file where it guards nothing: it is named, and does not count."""
        self.get("log.events")
        return [str(err) for _, err in faults(self._user or {}, self._user_path)]

    def number(self, key: str) -> int:
        """Return a setting that is a whole number."""
        found = self.get(key)
        return found if isinstance(found, int) else 0

    def texts(self, key: str) -> list[str]:
        """Return a setting that is a list of texts."""
        found = self.get(key)
        return found if isinstance(found, list) else []

    def of_project(self, key: str, root: str) -> Value | None:
        """Return what a project's file says about a key; None where it says nothing. Errors as `tightened`."""
        if root not in self._projects:
            read = layers.of_project(root, "rye.yaml", _MAX_PROJECT_BYTES)
            _refuse(*read)
            self._projects[root] = read
        content, path = self._projects[root]
        return _value(content, key, path)

    def tightened(self, key: str, root: str, wish: str | None = None) -> Value:
        """Return the tightest of what the user's file, the project's file and a call say about a key.

        Args:
            key: one that a project may tighten.
            root: the project root.
            wish: what the call asks for, where the key has levels.

        Raises:
            UsageError: `bad_config`, when a file is not valid: an unreadable project file is not taken for silence.
        """
        users = self.get(key)
        projects = self.of_project(key, root)
        if key in _LEVELS:
            levels = _LEVELS[key]
            # The levels are listed from loose to tight, so the greatest index is the tightest.
            return max((one for one in (users, projects, wish) if isinstance(one, str)), key=levels.index)
        if key in _GRANTS and isinstance(users, list) and isinstance(projects, list):
            # A project may take grants away, and never add one.
            return [one for one in users if one in projects]
        return users


def _value(content: Mapping[str, Any], key: str, path: str) -> Value | None:
    """Return what a file says about a key, checked; None where it says nothing."""
    section, _, name = key.partition(".")
    inner = content.get(section)
    if inner is not None and not isinstance(inner, dict):
        raise _no_mapping(section, inner, path)
    value = (inner or {}).get(name)
    if value is None:
        return None
    if key in _LEVELS and isinstance(value, bool):
        # YAML reads the bare words on and off as true and false.
        value = "on" if value else "off"
    right = type(value) is type(_DEFAULTS[key]) and (key not in _CHOICES or value in _CHOICES[key])
    if not right or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
        expected = f"one of {', '.join(filter(None, _CHOICES[key]))}" if key in _CHOICES else _TYPES[type(_DEFAULTS[key])]
        raise UsageError("bad_config", f"The setting {key} must be {expected}, not {repr(value)[:200]}.", f"Mend {path}.")
    found: Value = value
    return found


_TYPES = {int: "a whole number", str: "text", bool: "true or false", list: "a list of texts"}
