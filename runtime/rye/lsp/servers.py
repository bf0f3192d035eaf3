"""Which language server a file needs, and how it is started: `.ai/config/lsp.yaml`, the user's over the system's.

A project's file may only say which of the known servers its languages use: a command that came with a repository is never run,
and programs inside the project are never taken for servers.
"""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from typing import Any

from rye.config import layers as config_layers
from rye.config import user_dirs
from rye.errors import UsageError
from rye.lsp.connection import LanguageServerError
from rye.plain_class import Record
from rye.process.child import environment_outside, is_outside

_FILE = "lsp.yaml"
# For a program to say its version.
_SECONDS = 15.0
_NUMBER = re.compile(rb"(\d{1,6})\.")


class LanguageServer(Record):
    """A language server as configured.

    Attributes:
        name: such as `basedpyright`.
        argv: program (absolute) and arguments.
        languages: file suffix, with its dot, to the protocol's language id.
        settings: what is sent as `initializationOptions`.
        idle_seconds: after this time without a call it is ended.
        max_memory_bytes: above this it is replaced.
        markers: file names by which its root folder is found.
    """

    name: str
    argv: tuple[str, ...]
    languages: dict[str, str]
    settings: dict[str, Any]
    idle_seconds: float
    max_memory_bytes: int
    markers: tuple[str, ...]


def server_for(root: str, path: str) -> LanguageServer:
    """Return the server for a file, by its suffix.

    Raises:
        LanguageServerError: `no_language`, `server_missing` with the command that installs one.
        UsageError: `bad_config`.
    """
    layers = config_layers.load(root, _FILE)
    servers = layers.own.get("servers", {})
    suffix = os.path.splitext(path)[1].lower()
    languages = layers.own.get("languages", {})
    language_of = {known: name for name, one in languages.items() for known in one.get("suffixes", {})}
    if suffix not in language_of:
        known = ", ".join(sorted(language_of))
        what = f"No language server is configured for {suffix or path!r}."
        raise LanguageServerError("no_language", what, f"Known suffixes: {known}.")
    language = language_of[suffix]
    names = _order(layers, language)
    missing = []
    for name in names:
        argv = _argv(name, servers.get(name, {}), root)
        if argv is not None:
            return _server(name, argv, servers[name], layers.own, language)
        missing.append(servers[name].get("install", name))
    why = f"No language server for {language} is installed."
    raise LanguageServerError("server_missing", why, f"Install one: {' or '.join(f'`{one}`' for one in missing)}.")


def _order(layers: config_layers.Layers, language: str) -> list[str]:
    """Return the servers to try: the one that the project chose first, if it is known."""
    names: list[str] = layers.own["languages"][language].get("servers", [])
    chosen = layers.project.get("languages", {}).get(language, {}).get("server")
    if chosen is None:
        return names
    known = sorted(layers.own.get("servers", {}))
    if chosen not in known:
        why = f"The project's .ai/config/{_FILE} asks for the server {chosen[:100]!r}, which is not known here."
        raise UsageError("bad_config", why, f"Known: {', '.join(known)}. Only the user may define more.")
    return [chosen]


def _argv(name: str, settings: dict[str, Any], root: str) -> tuple[str, ...] | None:
    command = settings.get("command")
    if not command:
        hint = 'Write it under servers: command: ["program", "argument"].'
        raise UsageError("bad_config", f"The server {name!r} in {_FILE} has no command.", hint)
    program = _program(os.path.expanduser(command[0]), root)
    least = settings.get("least_version", 0)
    if program is None or (least and _major(program, os.stat(program).st_mtime_ns, root) < least):
        return None
    return (program, *command[1:])


@cache
def _major(program: str, _changed: int, root: str) -> int:
    """Return the first number that `--version` prints, or 0; asked once for each process, project and state of the file."""
    try:
        result = subprocess.run(
            [program, "--version"],
            cwd="/",
            env=environment_outside(os.stat(root)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _NUMBER.search(result.stdout[:1_000])
    return int(found[1]) if found else 0


def _program(name: str, root: str) -> str | None:
    """Return an absolute program: beside this interpreter, or on PATH; never one inside the project."""
    project = os.stat(root)
    beside = os.path.join(os.path.dirname(user_dirs.python()), name)
    # This interpreter's own environment may lie in the project: it runs already.
    if os.sep not in name and os.access(beside, os.X_OK):
        return beside
    folders = [""] if os.sep in name else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for found in (os.path.join(folder, name) for folder in folders):
        if os.path.isabs(found) and os.path.isfile(found) and os.access(found, os.X_OK) and is_outside(found, project):
            return found
    return None


def _server(name: str, argv: tuple[str, ...], settings: dict[str, Any], own: dict[str, Any], language: str) -> LanguageServer:
    limits = own.get("limits", {})
    suffixes: dict[str, str] = {}
    for one in own["languages"].values():
        if name in one.get("servers", []):
            suffixes.update(one["suffixes"])
    suffixes = suffixes or dict(own["languages"][language]["suffixes"])
    sent, markers = dict(settings.get("settings", {})), tuple(settings.get("markers", ()))
    idle, memory = float(limits.get("idle_seconds", 600)), int(limits.get("max_memory_mb", 2048)) * 1024 * 1024
    return LanguageServer(name, argv, suffixes, sent, idle, memory, markers)
