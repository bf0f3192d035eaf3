"""Finds the settings of a repository that make git start a program, as git itself reads them.

Git's own parser reads the file, from standard input and without its includes: nothing is run by that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from functools import cache, lru_cache
from typing import Final

from rye.config import user_dirs

_PLACES: Final = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
_ENVIRONMENT: Final = {"PATH": _PLACES, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
_SECONDS: Final = 10

# Sections of which every key names a program, another file of settings, or what may be fetched by one.
_SECTIONS: Final = frozenset({"alias", "include", "includeif", "pager", "hook", "protocol", "difftool", "mergetool", "guitool"})
# Endings of a key that names a program, in whatever section; they hold for keys that git will get, too.
_LAST: Final = (
    r"cmd|command|program|path|editor|pager|helper|driver|textconv|clean|smudge|process|external|difffilter|askpass|vcs"
    r"|prog|uploadpack|receivepack|smtpserver|tunnel|httpd|hook|templatedir|browser|gitproxy|fsmonitor|transferagent"
)
_ENDINGS: Final = re.compile(rf"(?:{_LAST})\Z")
# What a file must hold to have such a key at all: names of keys are spelled out, and only values can be written otherwise.
_WORTH_A_LOOK: Final = re.compile(
    "|".join((*sorted(_SECTIONS), _LAST, "tool", "worktree", "update", "::", r"=[^\n]*[\"\\]")).encode(), re.IGNORECASE
)
_BOOLEANS: Final = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})

Setting = tuple[str, str]
"""A key as git prints it (section and name in lower case), and its value."""


class UnreadableError(Exception):
    """Git cannot read a file of settings, or there is no git."""


@cache
def git_program() -> str | None:
    """Return where git is, in the system's own places; None without it."""
    return shutil.which("git", path=_PLACES)


def _run(arguments: list[str], data: bytes = b"") -> bytes:
    program = git_program()
    if program is None:
        raise UnreadableError
    try:
        result = subprocess.run(
            [program, "config", *arguments],
            input=data,
            capture_output=True,
            # Not in the project: git searches for a repository from its working folder on.
            cwd="/",
            env=_ENVIRONMENT,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        raise UnreadableError from None
    return result.stdout


def programs(data: bytes, inside: str, root: str) -> list[Setting]:
    """Return the settings of a file that make git start a program, or work on files outside the project.

    Args:
        data: what the file holds.
        inside: the real path of the repository's folder.
        root: the real path of the project.

    Raises:
        UnreadableError: git cannot read it.
    """
    # Starting git takes milliseconds, and a command can make thousands of repositories.
    if not _WORTH_A_LOOK.search(data):
        return []
    found = []
    for entry in (
        # Git parses its own format: quotes, continued lines and odd spellings are read as git will read them.
        _run(["--file", "-", "--no-includes", "--list", "-z"], data).decode("utf-8", "surrogateescape").split("\0")[:-1]
    ):
        key, _, value = entry.partition("\n")
        if _starts_a_program(key, value) or (key == "core.worktree" and _leads_out(value, inside, root)):
            found.append((key, value))
    return found


def _starts_a_program(key: str, value: str) -> bool:
    section, _, rest = key.partition(".")
    name = rest.rpartition(".")[2]
    if section in _SECTIONS:
        return True
    if section == "submodule":
        # `update = !command` runs a command; the other values name a strategy.
        return name == "update" and value.startswith("!")
    if name in ("url", "pushurl"):
        # `ext::command` and other `helper::address` URLs start a program.
        return "::" in value.partition("/")[0]
    if name in ("tool", "guitool"):
        # `git difftool` reads a shell script of this name from a folder of its own; a path leads out of that.
        return "/" in value
    if name == "fsmonitor" and value.lower() in _BOOLEANS:
        return False
    return _ENDINGS.search(name) is not None


def _leads_out(value: str, inside: str, root: str) -> bool:
    target = os.path.realpath(os.path.join(inside, value))
    return not f"{target}/".startswith(f"{root}/")


def without(data: bytes, settings: list[Setting], folder: str) -> bytes:
    """Return a file of settings without some of them; `folder` is a private one to work in.

    Raises:
        UnreadableError: git cannot do it.
    """
    path = os.path.join(folder, f"config.{os.urandom(4).hex()}")
    try:
        with open(path, "xb") as file:
            file.write(data)
        for key in dict.fromkeys(key for key, _ in settings):
            # By git, so that comments and the rest of the file stay as they are.
            _run(["--file", path, "--unset-all", key])
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise UnreadableError from None
    finally:
        if os.path.exists(path):
            os.unlink(path)


def identity_file() -> dict[str, bytes]:
    """Return the settings file of a home that holds nothing but the user's name and address for commits.

    A home is hidden from commands, and git refuses to commit without the two. As a file they give way to what a
    repository's own settings say.
    """
    files = (f"{user_dirs.home()}/.gitconfig", os.path.join(_settings_home(), "git/config"))
    content = _identity(files, tuple(map(_signature, files)))
    return {".gitconfig": content} if content else {}


def _settings_home() -> str:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    return configured if os.path.isabs(configured) else f"{user_dirs.home()}/.config"


def _signature(path: str) -> tuple[int, ...]:
    try:
        info = os.stat(path)
    except OSError:
        return ()
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


@lru_cache(maxsize=4)
def _identity(files: tuple[str, ...], signatures: tuple[tuple[int, ...], ...]) -> bytes:
    """Read the two settings from files, of which the last that has one counts; `signatures` tell when they changed."""
    found: dict[str, str] = {}
    # The more important file last: its values replace the others.
    for path, signature in zip(reversed(files), reversed(signatures), strict=True):
        if signature:
            with suppress(UnreadableError):
                output = _run(["--file", path, "--includes", "-z", "--get-regexp", r"^user\.(name|email)$"])
                pairs = (entry.partition("\n") for entry in output.decode("utf-8", "surrogateescape").split("\0")[:-1])
                found.update({key.partition(".")[2]: value for key, _, value in pairs})
    # A value with a newline would end its line and begin a setting of its own.
    lines = [f"\t{key} = {_quoted(value)}\n" for key, value in found.items() if "\n" not in value]
    return f"[user]\n{''.join(lines)}".encode("utf-8", "surrogateescape") if lines else b""


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
