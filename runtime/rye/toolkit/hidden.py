"""What a sandbox hides of the file system, and what of it the command still needs.

Hidden are homes, the user's space, temporary and runtime folders, and the key files of the system and of well-known
programs. Needed are the folders of `PATH`, interpreters, and the certificate and name-service files, wherever they lie.
"""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from typing import TYPE_CHECKING

from rye import state
from rye.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HOMES = ("/home", "/root", "/Users")
_SHARED = ("/tmp", "/var/tmp", "/run", "/var/run")  # noqa: S108 - they are named to be hidden
_SECRETS_OF_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".ai", ".password-store", ".mozilla",
    ".thunderbird", ".local/share/keyrings", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf",
    ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials", ".terraformrc",
    ".terraform.d", ".claude", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".vault-token",
)  # fmt: skip
# Keys of the system, and the sockets of services that act as root for whoever may reach them.
_SYSTEM_SECRETS = (
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers.d", "/etc/ssl/private", "/etc/letsencrypt", "/etc/krb5.keytab",
    "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd/common/lxd",
)  # fmt: skip
# Variables that name a place of secrets.
_NAMING = (
    "GNUPGHOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "KUBECONFIG", "DOCKER_CONFIG", "NETRC", "NPM_CONFIG_USERCONFIG",
    "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR", "PGPASSFILE",
)  # fmt: skip
# A folder of programs below these says nothing about its neighbours, which may be credentials or registries to write to.
_PROGRAMS_ONLY = (".local", ".cargo", "go", ".docker", ".config")
_BESIDE = {".local": ("lib", "share/pipx", "share/uv", "share/mise"), ".cargo": ("../.rustup",)}
# Installations that a project's virtual environment or launcher links to; programs, no settings.
_TOOLCHAINS = (
    ".local/share/uv/python", ".local/share/uv/tools", ".local/share/mise/installs", ".local/share/fnm/node-versions",
    ".pyenv/versions", ".nvm/versions", ".rustup/toolchains", ".asdf/installs", ".rbenv/versions", ".sdkman/candidates",
    ".volta/tools", "miniconda3", "anaconda3", "miniforge3",
)  # fmt: skip
_NAMES_OF_PROGRAMS = ("bin", "sbin", "shims", "condabin")


class View(Record):
    """What to hide and what to keep.

    Attributes:
        hidden: absolute paths of folders and files that exist; none lies below another hidden one without a kept one between.
        kept: absolute paths below hidden ones that stay readable.
        open_home: why the home folder could not be hidden, or nothing.
    """

    hidden: tuple[str, ...]
    kept: tuple[str, ...]
    open_home: str = ""


def homes() -> list[str]:
    """Return the home folders of this user: by the environment, by the password file, and root's."""
    found = [os.path.expanduser("~")]
    with suppress(KeyError):
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    return [home for home in dict.fromkeys(found) if home not in ("/", "", "/nonexistent") and os.path.isabs(home)]


def below(path: str, folder: str) -> bool:
    """Tell whether `path` is `folder` or lies below it; both are real absolute paths."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def view(root: str, extra_read: Iterable[str]) -> View:
    """Return what to hide from a command that works in the project `root`, and what to keep.

    Args:
        root: real path of the project.
        extra_read: absolute paths that must stay readable. The other ones come from this process's own `PATH`, never from
            one that a caller adds: it could name a folder of keys.
    """
    hidden, open_home = [], ""
    for place in dict.fromkeys(_candidates()):
        # Most do not exist, and a real path costs much more than this question.
        real = os.path.realpath(place) if os.path.exists(place) else "/"
        if real == "/":
            continue
        if real == root:
            open_home = f"the project is the folder {real} itself"
        else:
            hidden.append(real)
    tops = sorted(set(hidden), key=lambda path: (path.count("/"), path))
    needed = dict.fromkeys((*_needed(extra_read), *_repository(root)))
    shown = [path for path in needed if _within(path, tops) and path not in tops and not below(path, root)]
    kept = [path for path in shown if not _shown_with(path, shown, tops)]
    return View(_outermost(tops, [root, *kept]), tuple(kept), open_home)


def _candidates() -> Iterator[str]:
    yield from (*_HOMES, *_SHARED, *homes(), *_SYSTEM_SECRETS)
    yield from _host_keys()
    space = str(state.user_space())
    yield space if space not in homes() else str(state.user_ai())
    yield str(state.user_ai())
    for home in homes():
        yield from (f"{home}/{name}" for name in _SECRETS_OF_HOME)
    for name in _NAMING:
        for value in os.environ.get(name, "").split(":"):
            if os.path.isabs(value):
                yield value


def _host_keys() -> Iterator[str]:
    try:
        names = os.listdir("/etc/ssh")
    except OSError:
        return
    yield from (f"/etc/ssh/{name}" for name in names if name.startswith("ssh_host_") and not name.endswith(".pub"))


def _within(path: str, folders: list[str]) -> bool:
    return any(below(path, folder) and path != folder for folder in folders)


def _shown_with(path: str, shown: list[str], hidden: list[str]) -> bool:
    """Tell whether another folder of `shown` shows `path` already, nothing hidden being between.

    A link in it, such as a virtual environment's `bin/python`, cannot be mounted over: that would go where the link leads.
    """
    over = [one for one in shown if one != path and below(path, one)]
    return any(not any(below(path, place) and below(place, one) for place in hidden) for one in over)


def _outermost(places: list[str], shown: list[str]) -> tuple[str, ...]:
    """Leave out what a hidden folder hides already, unless something that is shown lies between."""
    out: list[str] = []
    own = [os.path.realpath(home) for home in homes()]
    for place in places:
        over = max((one for one in out if below(place, one)), key=len, default=None)
        # A home has a folder of its own even below a hidden one, for a command writes there.
        if over is None or place in own or any(below(place, one) and below(one, over) for one in shown):
            out.append(place)
    return tuple(out)


def _needed(extra_read: Iterable[str]) -> Iterator[str]:
    for path in extra_read:
        yield from _real(path)
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        if os.path.isabs(folder):
            yield from _real(*programs(folder))
    for home in homes():
        for name in _TOOLCHAINS:
            yield from _real(f"{home}/{name}")
    # The resolver's file and a system's programs may be links into /run.
    yield from _real("/etc/resolv.conf", "/run/current-system", "/etc/static")


def _real(*paths: str) -> Iterator[str]:
    for path in filter(os.path.exists, dict.fromkeys(paths)):
        # The name as it is spelled and the place it leads to: a link below a hidden folder is gone with the folder.
        yield from (one for one in (os.path.normpath(path), os.path.realpath(path)) if os.path.exists(one) and one != "/")


def _repository(root: str) -> Iterator[str]:
    """Yield the folder of the repository of which the project is a linked worktree.

    What the project's `.git` file says is believed only if the place it names points back: nobody but the user can write there.
    """
    try:
        named = _line(f"{root}/.git").removeprefix("gitdir:").strip()
        place = os.path.realpath(os.path.join(root, named))
        if os.path.realpath(_line(f"{place}/gitdir")) != os.path.join(root, ".git"):
            return
        yield os.path.realpath(os.path.join(place, _line(f"{place}/commondir")))
    except OSError:
        return


def _line(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(4096).strip()


def programs(folder: str) -> Iterator[str]:
    """Yield what programs of a folder of `PATH` need: its whole installation where that is one, else the folder."""
    yield folder
    prefix = os.path.dirname(folder.rstrip("/"))
    name = os.path.basename(prefix)
    if name in _PROGRAMS_ONLY:
        yield from (os.path.normpath(f"{prefix}/{beside}") for beside in _BESIDE.get(name, ()))
    elif os.path.basename(folder.rstrip("/")) in _NAMES_OF_PROGRAMS and prefix not in (*_HOMES, *_SHARED, *homes(), "/"):
        yield prefix
