"""The program that a chain asks for by `env_config.interpreter`, looked for in the order that is declared there.

`{"var": "RYE_PYTHON", "search": [step, …]}`; the steps:

    {"project": [path, …]}          a program of the project itself, in a sandbox; only one that a person approved
                                    (see `identity`)
    {"home": [pattern, …]}          below the user's home, the highest version first; `{version}` stands for what the
                                    project's file `version_file` names; without that file the step is passed over
    {"path": [name, …]}             in the folders of PATH, but for those in the project
    {"own": true}                   the interpreter that runs rye

The form of other installations (`type`, `binary`, `candidates`, `search_paths`, `fallback`) means the same steps. A program
that lies in the project is code that a clone brings: it never counts for a step but `project`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from rye.call.safe_text import plain
from rye.config import user_dirs
from rye.errors import ItemError
from rye.fs import atomic
from rye.sandbox import hidden_paths
from rye.trust import decisions
from rye.trust.decisions import Root

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,40}")
_MOST_FOUND = 200


class Found(NamedTuple):
    """A program that was found.

    Attributes:
        path: absolute; not resolved, since an interpreter learns from it what it belongs to.
        where: the kind of step that found it.
        shows: folders that the sandbox must show.
        note: what was passed over, and how to allow it; "" for nothing.
    """

    path: str
    where: str
    shows: tuple[str, ...] = ()
    note: str = ""


def find(item_id: str, declared: dict[str, Any], root: str, *, own_allowed: bool) -> Found:
    """Return the first program that the steps lead to.

    Args:
        item_id: the tool, for messages.
        declared: `env_config.interpreter`.
        root: the project root (real path).
        own_allowed: whether a program of the project may be used at all: the sandbox holds, and shows the project.

    Raises:
        ItemError: `interpreter_missing`.
    """
    note, tried = "", list[str]()
    for step in declared["search"] if "search" in declared else _translated(declared):
        for kind, values in step.items():
            names = list(map(str, values)) if isinstance(values, list) else []
            if kind == "project":
                found, passed_over = _of_project(names, root, own_allowed=own_allowed)
                note = note or passed_over
            elif kind == "home":
                found = _of_home(names, _named_version(root, step.get("version_file")), root)
            elif kind == "path":
                found = next((one for name in names if (one := on_path(name, root))), "")
            elif kind == "own":
                found = user_dirs.python()
            else:
                continue
            tried += names
            if found:
                return Found(found, kind, _installation(found), note)
    why = f"{item_id} needs one of {plain(', '.join(tried))}, and none is here.{f' {note}' if note else ''}"
    raise ItemError("interpreter_missing", why, "Install one, or name another runtime.")


def _translated(declared: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps that the form of other installations means."""
    binaries = [str(one) for one in (declared.get("binary"), *(declared.get("candidates") or [])) if one]
    fallback = [str(declared["fallback"])] if declared.get("fallback") else []
    steps: list[dict[str, Any]] = []
    # Programs beside a tool's file are covered by no signature; those of the project by a person's approval.
    if declared.get("type") == "local_binary" and not declared.get("search_roots"):
        places = declared.get("search_paths") or []
        steps.append({"project": [f"{place}/{binary}" for place in places for binary in binaries]})
    return [*steps, {"path": list(dict.fromkeys([*fallback, *binaries]))}]


def _of_project(paths: list[str], root: str, *, own_allowed: bool) -> tuple[str, str]:
    """Return the program of the project that may be used, and what was passed over; "" for none."""
    for path in paths:
        whole = os.path.join(root, path)
        if os.path.isabs(path) or ".." in path.split("/") or not _is_program(whole):
            continue
        approved = decisions.load().interpreter(Root.of(root), path)
        if approved is None:
            allowing = f"a person allows it by `rye trust approve --interpreter {path}`"
            return "", f"The project has {path}, which is not used: {allowing}."
        if approved != identity(root, path):
            return "", f"{path} is not the file that was approved: look at it, then `rye trust approve --interpreter {path}`."
        if own_allowed:
            return whole, ""
        return "", f"The project's {path} is used only in a sandbox, by tools with the permission to read."
    return "", ""


def identity(root: str, path: str) -> str:
    """Return what an approval of a project's program records: the file that the path leads to, by path, inode and digest.

    The settings of a virtual environment (`pyvenv.cfg`) count as part of it: they say whose interpreter it is.

    Raises:
        ItemError: `interpreter_missing`.
    """
    whole = os.path.join(root, path)
    try:
        real = os.path.realpath(whole)
        data, info = atomic.read_regular(real)
    except OSError as err:
        why = f"{path} cannot be read: {err.strerror}."
        raise ItemError("interpreter_missing", why, "Name a program of the project.") from None
    settings = b""
    for place in (os.path.dirname(whole), os.path.dirname(os.path.dirname(whole))):
        with suppress(OSError):
            settings += atomic.read_regular(os.path.join(place, "pyvenv.cfg"), 65_536)[0]
    return f"{real} {info.st_dev}:{info.st_ino} {sha256(data).hexdigest()} {sha256(settings).hexdigest()}"


def _of_home(patterns: list[str], version: str, root: str) -> str:
    found: list[str] = []
    for pattern in patterns:
        if "{version}" in pattern and not version:
            continue
        text = pattern.replace("{version}", glob.escape(version)).replace("~/", "")
        found += list(glob.iglob(os.path.join(user_dirs.home(), text)))[:_MOST_FOUND]
    return max((one for one in found if _is_program(one) and not _in_project(one, root)), key=_numbers, default="")


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", path)]


def _named_version(root: str, name: object) -> str:
    """Return the version that a file of the project names; it chooses among what the user installed, and is nothing else."""
    if not isinstance(name, str) or "/" in name:
        return ""
    try:
        words = atomic.read_regular(os.path.join(root, name), 256)[0].decode("ascii", "replace").split()
    except OSError:
        return ""
    return words[0] if words and _VERSION.fullmatch(words[0]) else ""


def on_path(name: str, root: str) -> str:
    """Return the program of a name, or at an absolute path; "" where there is none outside the project."""
    folders = [""] if os.path.isabs(name) else [] if "/" in name else search_path(root)
    places = (os.path.join(folder, name) for folder in folders)
    return next((place for place in places if _is_program(place) and not _in_project(place, root)), "")


def search_path(root: str) -> Iterator[str]:
    """Yield the folders of PATH that are absolute and not in the project.

    Those of version managers' shims are left out: a shim is a script that lets files of the project choose what runs.
    """
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        if os.path.isabs(folder) and not _in_project(folder, root) and os.path.basename(folder.rstrip("/")) != "shims":
            yield folder


def _in_project(path: str, root: str) -> bool:
    # By both names: a link of the project may lead out, and one outside may lead in.
    return any(f"{one}/".startswith(f"{root}/") for one in (os.path.normpath(path), os.path.realpath(path)))


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _installation(path: str) -> tuple[str, ...]:
    """Return the folders of the installation that a program belongs to, as it is named and as it is: programs and libraries.

    A person's settings and credentials often lie beside them (`~/.local/share`), and a runtime chooses the program.
    """
    homes = hidden_paths.home_folders()
    ways = ((one, os.path.dirname(one)) for one in (os.path.normpath(path), os.path.realpath(path)))
    found = (hidden_paths.programs(folder, homes) if hidden_paths.holds_programs(folder) else (one,) for one, folder in ways)
    return tuple(dict.fromkeys(chain.from_iterable(found)))
