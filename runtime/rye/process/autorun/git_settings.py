"""Tells the plain settings of a repository from all others, as git itself reads them.

A command's settings stay where they are plain: those that `git init`, `clone`, `submodule`, `worktree` and `sparse-checkout`
write, with values that start no program, ask no host at a mere look and lead to no place outside the project. Any other key is
not plain, those of a later git too. Git's own parser reads the file, from standard input and without its includes: nothing is
run by that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Final

from rye.fs import atomic, stamps
from rye.process.child import program_on_path
from rye.workspace import repositories

_PLACES: Final = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
_ENVIRONMENT: Final = {"PATH": _PLACES, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
_SECONDS: Final = 10
_POINTER: Final = 4096

# Section and last word of each plain key; of `core.worktree`, URLs and what a branch names the value decides as well.
_PLAIN: Final = {
    "advice": re.compile(r"\w+"),
    "branch": re.compile(
        r"remote|pushremote|merge|rebase|description|autosetup(?:merge|rebase)|vscode-merge-base|gh-merge-base|github-pr-owner-number"
    ),
    "color": re.compile(r"[\w-]+"),
    "column": re.compile(r"\w+"),
    "commit": re.compile(r"verbose"),
    "core": re.compile(
        r"repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|safecrlf|abbrev"
        r"|quotepath|sparsecheckout|sparsecheckoutcone|worktree"
    ),
    "diff": re.compile(r"algorithm|renames|colormoved|mnemonicprefix|noprefix|context"),
    "extensions": re.compile(r"objectformat|compatobjectformat|refstorage|relativeworktrees|worktreeconfig"),
    "fetch": re.compile(r"prune|prunetags"),
    "gc": re.compile(r"auto"),
    "index": re.compile(r"sparse|version"),
    "init": re.compile(r"defaultbranch"),
    "lfs": re.compile(r"repositoryformatversion"),
    "log": re.compile(r"date|decorate|follow"),
    "maintenance": re.compile(r"auto|strategy"),
    "merge": re.compile(r"conflictstyle|ff"),
    "pull": re.compile(r"rebase|ff"),
    "push": re.compile(r"default|autosetupremote|followtags"),
    "remote": re.compile(r"url|fetch|tagopt|gh-resolved"),
    "rerere": re.compile(r"enabled|autoupdate"),
    "status": re.compile(r"short|branch|showuntrackedfiles|showstash"),
    "submodule": re.compile(r"url|active|update"),
    "user": re.compile(r"name|email|useconfigonly|signingkey"),
}
# Of these sections a key may have a part of its own between its first and its last word.
_WITH_PARTS: Final = ("advice", "branch", "color", "remote", "submodule")
_WORD: Final = re.compile(r"[\w #+.,:=%-]{0,200}")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]{0,1000}")
_REFERENCE: Final = re.compile(r"[+^]?[\w.@#+=,][\w./@#+=*,-]*(?::[\w./@#+=*,-]+)?")
# A key's identifier, its owner's address, or the public key itself: anything else could be the name of a file.
_SIGNING_KEY: Final = re.compile(r"key::[\w@.+/= -]+|(?:0[xX])?[0-9A-Fa-f]{8,40}!?|\w[\w.+-]*@[\w.-]+")
# A host that begins with a hyphen would be an option of ssh.
_URL: Final = re.compile(r"(?:https?|ssh|git|git\+ssh|ssh\+git)://[^-\x00-\x20\x7f][^\x00-\x20\x7f]*")
_SSH: Final = re.compile(r"[\w.][\w.@-]*:(?!:)[^\x00-\x20\x7f]+")
# Each takes a process of git: of a file with more such keys nothing stays.
_MOST_UNSET: Final = 40
_MOST_LISTED: Final = 1 << 25
_MOST: Final = 5_000

Setting = tuple[str, str]
"""A key as git prints it (section and name in lower case), and its value."""


class UnreadableError(Exception):
    """Git cannot read a file of settings, or there is no git."""


def git_program(root: str) -> str | None:
    """Return where git is: in the system's own places, else on PATH outside the project, whose commands could put it there."""
    return shutil.which("git", path=_PLACES) or program_on_path("git", os.stat(root))


def _run(arguments: list[str], root: str, data: bytes = b"") -> bytes:
    program = git_program(root)
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


def questionable(data: bytes, root: str = "") -> list[Setting]:
    """Return the settings of a file that are not plain wherever the file lies; `refused` judges them by their place.

    Args:
        data: the file.
        root: the project: where git is not in the system's places, it is sought on PATH outside of it.

    Raises:
        UnreadableError: git cannot read it.
    """
    if not data.strip():
        return []
    lines = data.split(b"\n")
    # Git names the section with each key: a file of less than a megabyte could be listed as gigabytes.
    if len(lines) * max(map(len, lines)) > _MOST_LISTED:
        raise UnreadableError
    # Git parses its own format: quotes, continued lines and odd spellings are read as git will read them.
    listed = (
        _run(["--file", "-", "--no-includes", "--list", "-z"], root, data).decode("utf-8", "surrogateescape").split("\0")[:-1]
    )
    pairs = ((key, value) for key, _, value in (entry.partition("\n") for entry in listed))
    found = [(key, value) for key, value in pairs if not _is_plain(key, value)]
    # What each leads to is followed at each look: so many are no one's own.
    if len(found) > _MOST:
        raise UnreadableError
    return found


def refused(settings: Iterable[Setting], inside: str, root: str) -> list[Setting]:
    """Return those of some questionable settings that are not plain in their place either. Ask it anew at each look.

    Args:
        settings: what `questionable` returned.
        inside: the real path of the repository's folder.
        root: the real path of the project.
    """
    return [(key, value) for key, value in settings if not _is_plain_there(key, value, inside, root)]


def _is_plain(key: str, value: str) -> bool:
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    known = _PLAIN.get(section)
    if known is None or not known.fullmatch(name) or (middle and section not in _WITH_PARTS) or not _TEXT.fullmatch(middle):
        return False
    if name == "url":
        return bool(_URL.fullmatch(value) or ("//" not in value and _SSH.fullmatch(value)))
    if section == "core" and name == "worktree":
        return False
    if name == "signingkey":
        return _SIGNING_KEY.fullmatch(value) is not None
    if section in ("user", "submodule") or name in ("description", "defaultbranch"):
        # `update = !command` runs a command, and merge and rebase run what the user's settings name.
        return value in ("checkout", "none") if name == "update" else _TEXT.fullmatch(value) is not None
    if section in ("remote", "branch") and name not in ("rebase", "tagopt"):
        return _REFERENCE.fullmatch(value) is not None and ".." not in value
    return _WORD.fullmatch(value) is not None


def _is_plain_there(key: str, value: str, inside: str, root: str) -> bool:
    """Tell whether a path among the settings stays in the project; a link on the way may lead elsewhere the next time."""
    section, _, rest = key.partition(".")
    if key == "core.worktree":
        return _leads_back(value, inside, root)
    name = rest.rpartition(".")[2]
    if section not in ("remote", "submodule") or name != "url" or not _TEXT.fullmatch(value) or value.startswith(("-", "~")):
        return False
    path = value.removeprefix("file://")
    if ":" in path.partition("/")[0] or "://" in path or (path != value and not path.startswith("/")):
        return False
    # Git counts a relative one from the work tree, or from the repository itself.
    starts = (inside, os.path.dirname(inside))
    return all(f"{os.path.realpath(os.path.join(start, path))}/".startswith(f"{root}/") for start in starts)


def _leads_back(value: str, inside: str, root: str) -> bool:
    """Tell whether a work tree is the folder below the root whose own `.git` names the repository, by a path without a link."""
    target = os.path.normpath(os.path.join(inside, value))
    if not f"{target}/".startswith(f"{root}/") or os.path.realpath(target) != target:
        return False
    try:
        data, _ = atomic.read_regular(f"{target}/.git", _POINTER, follow=False)
    except OSError:
        return False
    return os.path.normpath(os.path.join(target, repositories.named_by(data, ".git"))) == inside == os.path.realpath(inside)


def without(data: bytes, settings: list[Setting], folder: str, root: str = "") -> bytes:
    """Return a file of settings without some of them; `folder` is a private one to work in, `root` the project.

    Raises:
        UnreadableError: git cannot do it.
    """
    path = os.path.join(folder, f"config.{os.urandom(4).hex()}")
    try:
        with open(path, "xb") as file:
            file.write(data)
        keys = dict.fromkeys(key for key, _ in settings)
        if len(keys) > _MOST_UNSET:
            raise UnreadableError
        for key in keys:
            # By git, so that comments and the rest of the file stay as they are.
            _run(["--file", path, "--unset-all", key], root)
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        raise UnreadableError from None
    finally:
        if os.path.exists(path):
            os.unlink(path)


def identity_file(root: str) -> dict[str, bytes]:
    """Return the settings file of a home that holds nothing but the user's name and address for commits.

    A home is hidden from commands, and git refuses to commit without the two. As a file they give way to what a
    repository's own settings say.
    """
    files = repositories.users_settings()
    content = _identity(files, tuple(map(stamps.stamp, files)), root)
    return {".gitconfig": content} if content else {}


@lru_cache(maxsize=4)
def _identity(files: tuple[str, ...], stamps_of_files: tuple[stamps.Stamp | None, ...], root: str) -> bytes:
    """Read the two settings from files, of which the last that has one counts; the stamps tell when they changed."""
    found: dict[str, str] = {}
    for path, stamp in zip(files, stamps_of_files, strict=True):
        if stamp:
            with suppress(UnreadableError):
                output = _run(["--file", path, "--includes", "-z", "--get-regexp", r"^user\.(name|email)$"], root)
                pairs = (entry.partition("\n") for entry in output.decode("utf-8", "surrogateescape").split("\0")[:-1])
                found.update({key.partition(".")[2]: value for key, _, value in pairs})
    # A value with a newline would end its line and begin a setting of its own.
    lines = [f"\t{key} = {_quoted(value)}\n" for key, value in found.items() if "\n" not in value]
    return f"[user]\n{''.join(lines)}".encode("utf-8", "surrogateescape") if lines else b""


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
