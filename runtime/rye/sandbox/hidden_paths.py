"""Which parts of the file system a sandbox hides, and which parts of those it shows again.

Hidden are homes, the user's space, temporary and runtime folders, and the key files of the system and of well-known
programs. Shown are the folders of `PATH` with their libraries, interpreters, and the certificate and name-service files.
Nothing that a command can change decides what is shown: paths in the project, or through a link in it, do not count.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache

from rye.config import user_dirs
from rye.fs import atomic, stamps
from rye.plain_class import Record
from rye.sandbox import environment
from rye.workspace import protected_paths

_HOMES = ("/home", "/root", "/Users")
_SHARED = ("/tmp", "/var/tmp", "/run", "/var/run")  # they are named to be hidden
_SECRETS_OF_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".ai", ".password-store", ".mozilla", ".thunderbird",
    ".local/share/keyrings",
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf",
    ".cargo/credentials", ".cargo/credentials.toml", ".m2/settings.xml", ".gem/credentials", ".terraformrc", ".terraform.d",
    ".claude",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".vault-token",
)  # fmt: skip
# Keys of the system, and sockets of services that act as root for every client.
_SYSTEM_SECRETS = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd", "/etc/sudoers.d",
    "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/credstore", "/etc/credstore.encrypted", "/etc/crypttab",
    "/etc/docker/key.json", "/etc/ipsec.secrets", "/etc/kubernetes", "/etc/msmtprc", "/etc/mysql/debian.cnf",
    "/etc/NetworkManager/system-connections", "/etc/openvpn", "/etc/pki/tls/private", "/etc/postfix/sasl_passwd",
    "/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets", "/etc/rancher", "/etc/wireguard", "/etc/wpa_supplicant",
    "/var/backups", "/var/lib/cloud", "/var/lib/containerd", "/var/lib/docker", "/var/lib/kubelet", "/var/lib/NetworkManager",
    "/var/lib/rancher", "/var/lib/samba/private", "/var/lib/systemd/credential.secret", "/var/spool/cron",
    "/etc/ssl/private", "/etc/letsencrypt", "/etc/krb5.keytab", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd/common/lxd",
    "/run/docker.sock", "/mnt/wsl/docker-desktop", "/mnt/wslg",
)  # fmt: skip
# Environment variables that name secrets, whatever lies there; the others are judged by `_named_by_variables`.
_NAMING = (
    "GNUPGHOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "KUBECONFIG", "DOCKER_CONFIG", "NETRC", "NPM_CONFIG_USERCONFIG",
    "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR", "PGPASSFILE", "SSH_AUTH_SOCK", "WAYLAND_DISPLAY",
)  # fmt: skip
_ENDINGS = ("_FILE", "_PATH", "_HOME", "_CONFIG", "_DIR", "_KEY")
# Files that make a folder one of credentials.
_CREDENTIALS = (
    "credentials*", ".credentials*", "token", "token.*", "auth.json", "config.json", "hosts.yml", "secrets.*", "*.pem", "*.key",
    "*.p12", "*.pfx", "*.keytab", "id_rsa", "id_ecdsa", "id_ed25519", ".netrc",
)  # fmt: skip
# Larger files are data, such as a model or a database, unless the variable's name is that of a secret.
_MOST_CREDENTIALS = 1024 * 1024
_KERNELS = ("/dev", "/proc", "/sys")
# Here what every user may read is part of an installed package.
_INSTALLED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix", "/gnu")
# What programs of `PREFIX/bin` load from beside it. The rest of PREFIX may be settings and credentials (`~/.fly/config.yml`).
_LIBRARIES = ("lib", "lib64", "libexec", "share", "include", "pyvenv.cfg")
# Prefixes whose `lib` or `share` also hold a user's own data, with what their programs load.
_LIBRARIES_OF = {
    ".local": ("lib", "share/pipx", "share/uv", "share/mise"),
    ".cargo": ("../.rustup",),
    ".bun": ("install/global",),
    "go": (),
    ".docker": (),
    ".config": (),
}
# Installations that a project's virtual environment or launcher links to; programs, no settings.
_TOOLCHAINS = (
    ".local/share/uv/python", ".local/share/uv/tools", ".local/share/mise/installs", ".local/share/fnm/node-versions", ".pyenv",
    ".nvm/versions", ".nodenv", ".rustup/toolchains", ".asdf/installs", ".rbenv", ".sdkman/candidates", ".volta/tools",
    "miniconda3", "anaconda3", "miniforge3",
)  # fmt: skip
_NAMES_OF_PROGRAMS = ("bin", "sbin", "shims", "condabin")
# How variables name a socket: `unix:///run/docker.sock`, `unix:path=/run/bus,guid=…`.
_SOCKET = re.compile(r"unix:(?:path=)?(?://)?(/[^,;]+)")
_MOST_LINKS = 40
# How the kernel writes a space in a list of mounts.
_OCTAL = re.compile(r"\\([0-7]{3})")
# What leads to the root folder shows and hides nothing, as what leads nowhere.
_NOWHERE = ("/", False)


class View(Record):
    """What to hide and what to show of it.

    Attributes:
        hidden: absolute paths of existing folders and files; none lies below another one without a shown one between.
        shown: absolute paths below hidden ones that stay readable.
        open_home: why the home folder could not be hidden, or nothing.
    """

    hidden: tuple[str, ...]
    shown: tuple[str, ...]
    open_home: str = ""


def home_folders() -> list[str]:
    """Return the home folders of this user: by the environment, and by the password file."""
    # A caller may have set HOME elsewhere; the account's own home is hidden all the same.
    found = [os.path.expanduser("~"), _accounts_home(os.getuid())]
    return [home for home in dict.fromkeys(found) if home not in ("/", "", "/nonexistent") and os.path.isabs(home)]


@cache
def _accounts_home(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_dir
    except KeyError:
        return ""


def is_below(path: str, folder: str) -> bool:
    """Tell whether `path` is `folder` or lies below it; both are real absolute paths."""
    # With the slash: `/home/ab` does not lie below `/home/a`.
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def view(root: str, extra_read: Iterable[str], passed: Iterable[str] = ()) -> View:
    """Return what to hide from a command that works in the project `root`, and what to show of it.

    A path below the project, or one that leads through it, never shows anything: a command could have put a link there.

    Args:
        root: real path of the project.
        extra_read: absolute paths that must stay readable. The others come from this process's own `PATH`, never from
            one that a caller adds: it could name a folder of keys.
        passed: names of variables that the command gets because the user said so.
    """
    hidden, open_home = [], ""
    ways = _Ways(root)
    for place in dict.fromkeys((*_candidates(), *_owners_home(root), *_named_by_variables(root, frozenset(passed)))):
        real, _ = ways.of(place) or _NOWHERE
        if real == "/":
            continue
        if real == root:
            open_home = f"the project is the folder {real} itself"
        else:
            hidden.append(real)
    hidden += _mounted_elsewhere(hidden)
    # Parents first: a folder below a hidden one needs no mount of its own.
    tops = sorted(set(hidden), key=lambda path: (path.count("/"), path))
    inside = tuple(f"{path}/" for path in tops)
    needed: dict[str, None] = {}
    for path in dict.fromkeys(_needed(extra_read)):
        real, is_ours = ways.of(path) or _NOWHERE
        if real != "/" and not is_ours:
            # Both: a link below a hidden folder is gone with the folder.
            needed[os.path.normpath(path)] = needed[real] = None
    if linked := linked_repository(root):
        needed[linked[0]] = None
    shown = [path for path in needed if path.startswith(inside) and path not in tops and not is_below(path, root)]
    kept = [path for path in shown if not _shown_with(path, shown, tops)]
    own = {found[0] for home in home_folders() if (found := ways.of(home))}
    return View(_outermost(tops, {root, *kept}, own), tuple(kept), open_home)


def is_hidden(path: str, root: str) -> bool:
    """Tell whether a command in the project `root` cannot see a path outside of it; both are real."""
    found = view(root, ())
    hidden, shown = (max((len(one) for one in some if is_below(path, one)), default=0) for some in (found.hidden, found.shown))
    return hidden > shown


def _candidates() -> Iterator[str]:
    homes = home_folders()
    yield from (*_HOMES, *_SHARED, *homes, *_SYSTEM_SECRETS)
    yield from _host_keys()
    if (space := user_dirs.user_space()) not in homes:
        yield space
    yield user_dirs.user_ai()
    yield from protected_paths.key_files()
    for home in homes:
        yield from (f"{home}/{name}" for name in _SECRETS_OF_HOME)
    for name in _NAMING:
        yield from _paths_in(os.environ.get(name, ""))


def _mounted_elsewhere(places: Iterable[str]) -> list[str]:
    """Return where else the same files and folders are, by other mounts of their file systems, as WSL makes one of the root."""
    at: dict[str, tuple[str, str]] = {}
    by_device: dict[str, list[tuple[str, str]]] = {}
    with suppress(OSError), open("/proc/self/mountinfo", errors="surrogateescape") as file:
        for line in file:
            words = line.split()[2:5]
            # A host of containers has thousands of mounts, and hardly one with a space.
            device, top, place = [_OCTAL.sub(lambda one: chr(int(one[1], 8)), one) for one in words] if "\\" in line else words
            # The last mount at a folder covers the others.
            at[place] = device, top
            by_device.setdefault(device, []).append((top.rstrip("/"), place.rstrip("/")))
    found = []
    for path in places:
        nearest = _nearest(path, at)
        device, top = at.get(nearest, ("", ""))
        inside = f"{top.rstrip('/')}{path[len(nearest.rstrip('/')) :]}"
        for other, place in by_device.get(device, ()):
            same = f"{place}{inside[len(other) :]}"
            # Looked at last: another mount may cover it.
            if is_below(inside, other) and same != path and stamps.identity(same) == stamps.identity(path):
                found.append(same)
    return found


def _owners_home(root: str) -> Iterator[str]:
    """Yield the home of the project's owner where that is another user: root's commands run as the owner, wherever it lies."""
    owner = os.stat(root).st_uid
    home = _accounts_home(owner) if os.geteuid() == 0 and owner else ""
    with suppress(OSError):
        # That of many a service is a folder of the system's, or the project.
        if home and os.stat(home).st_uid == owner and os.path.realpath(home) != root:
            yield home


def _paths_in(value: str) -> list[str]:
    # KUBECONFIG and others may list several files, and a path may have a colon.
    return [one for one in dict.fromkeys((value, *value.split(":"))) if os.path.isabs(one)]


def _named_by_variables(root: str, passed: frozenset[str]) -> Iterator[str]:
    """Yield what is hidden by rule of the paths outside the project that variables name which no command gets.

    A variable counts whose name is that of a secret (`SOPS_AGE_KEY_FILE`) or ends in `_FILE`, `_PATH`, `_HOME`, `_CONFIG`,
    `_DIR` or `_KEY`, or whose value is the address of a socket (`DOCKER_HOST`). Hidden is a socket, a file that is no program
    and, under a name of the second sort, at most 1 MB; and a folder that a secret's name leads to, or in which a file of
    credentials lies. Of a folder with programs, an installed one, one of a search path or one above the project only the files
    of credentials are hidden.
    """
    for name, value in os.environ.items():
        if "/" not in value or name in passed or name in environment.ALLOWED:
            continue
        is_secret = environment.is_secret_name(name)
        sockets = _SOCKET.findall(value)
        if not is_secret and not name.endswith(_ENDINGS) and not sockets:
            continue
        for place in sockets or _paths_in(value):
            path = os.path.realpath(place)
            if not is_below(path, root) and not any(is_below(path, one) for one in _KERNELS):
                with suppress(OSError):
                    yield from _secrets_at(path, root, is_secret=is_secret, is_search=name.endswith("PATH"))


def _secrets_at(path: str, root: str, *, is_secret: bool, is_search: bool) -> Iterator[str]:
    info = os.stat(path)
    is_installed = any(is_below(path, one) for one in (_INSTALLED if is_secret else (*_INSTALLED, "/etc")))
    if not stat.S_ISDIR(info.st_mode):
        is_public = is_installed and info.st_mode & stat.S_IROTH
        if not is_public and _may_be_credentials(path, info, is_secret=is_secret):
            yield path
        return
    found = [one for one in sorted(os.listdir(path)) if any(fnmatchcase(one.lower(), like) for like in _CREDENTIALS)]
    has_programs = is_installed or is_search or path.count("/") == 1 or is_below(root, path) or os.path.isdir(f"{path}/bin")
    if has_programs:
        for name in found:
            file = os.path.realpath(f"{path}/{name}")
            if os.path.isfile(file):
                yield from _secrets_at(file, root, is_secret=False, is_search=False)
    elif found or is_secret:
        yield path


def _may_be_credentials(path: str, info: os.stat_result, *, is_secret: bool) -> bool:
    """Tell whether what is no folder may hold a secret: a socket, or a file that is no program."""
    if not stat.S_ISREG(info.st_mode):
        return stat.S_ISSOCK(info.st_mode)
    if not is_secret and info.st_size > _MOST_CREDENTIALS:
        return False
    try:
        # By its content: where a file system knows no modes, every file may be run.
        return not _line(path).startswith(("#!", "\x7fELF"))
    except OSError:
        return True


def _host_keys() -> Iterator[str]:
    try:
        names = os.listdir("/etc/ssh")
    except OSError:
        return
    # Public keys and settings are no secret, and ssh reads them.
    yield from (f"/etc/ssh/{name}" for name in names if name.startswith("ssh_host_") and not name.endswith(".pub"))


def _nearest(path: str, folders: Container[str]) -> str:
    """Return the nearest of some folders at or above an absolute path; empty where there is none."""
    while path not in folders and path != "/":
        path = path.rpartition("/")[0] or "/"
    return path if path in folders else ""


def _shown_with(path: str, shown: Container[str], hidden: Container[str]) -> bool:
    """Tell whether another folder of `shown` shows `path` already, with nothing hidden between.

    A link in it, such as a virtual environment's `bin/python`, cannot be mounted over: that would go where the link leads.
    """
    over = _nearest(os.path.dirname(path), shown)
    return bool(over) and not is_below(_nearest(path, hidden), over)


def _outermost(places: list[str], shown: Container[str], own: Container[str]) -> tuple[str, ...]:
    """Return the places without those that a hidden folder hides already, unless a shown path lies between; `own` are homes."""
    out: dict[str, None] = {}
    for place in places:
        over = _nearest(place, out)
        # A home has a folder of its own even below a hidden one, for a command writes there.
        if not over or place in own or is_below(_nearest(place, shown), over):
            out[place] = None
    return tuple(out)


def _needed(extra_read: Iterable[str]) -> Iterator[str]:
    yield from extra_read
    homes = home_folders()
    for folder in os.environ.get("PATH", os.defpath).split(":"):
        if os.path.isabs(folder):
            yield from programs(folder, homes)
    for home in homes:
        yield from (f"{home}/{name}" for name in _TOOLCHAINS)
    # The resolver's file and a system's programs may be links into /run.
    yield from ("/etc/resolv.conf", "/run/current-system", "/etc/static")


class _Ways:
    """Where paths lead, found once for each folder on the way: most of the paths of a view have theirs in common."""

    def __init__(self, root: str) -> None:
        self._root, self._inside = root, f"{root.rstrip('/')}/"
        self.known: dict[str, tuple[str, bool] | None] = {"/": _NOWHERE}

    def of(self, path: str, links: int = 0) -> tuple[str, bool] | None:
        """Return the real path of `path`, and whether a step of the way to it is `root` or lies in it; None: nothing is there.

        Links are followed one by one: `os.path.realpath` cannot tell of one in the project that leads out of it again. `links`
        have led to it.
        """
        pending: list[str] = []
        while path not in self.known:
            pending.append(path)
            path = path.rpartition("/")[0] or "/"
        found = self.known[path]
        for one in reversed(pending):
            found = None if found is None else self._below(*found, one.rpartition("/")[2], links)
            # Where a link led to it, too many of them may be why it is not found.
            if found is not None or not links:
                self.known[one] = found
        return found

    def _below(self, folder: str, is_ours: bool, name: str, links: int) -> tuple[str, bool] | None:
        if name in ("", "."):
            return folder, is_ours
        if name == "..":
            return os.path.dirname(folder), is_ours
        at = f"{folder.rstrip('/')}/{name}"
        is_ours = is_ours or at == self._root or at.startswith(self._inside)
        try:
            target = os.readlink(at)
        except OSError as err:
            # EINVAL: it is no link, so it is taken as it is.
            return (at, is_ours) if err.errno == errno.EINVAL else None
        led = self.of(os.path.join(folder, target), links + 1) if links < _MOST_LINKS else None
        return None if led is None else (led[0], is_ours or led[1])


def way(path: str) -> Iterable[str]:
    """Return each folder, link and file on the way to a path, as the kernel follows it; none where it leads nowhere."""
    ways = _Ways("/")
    return ways.known if ways.of(path) else ()


def linked_repository(root: str) -> tuple[str, str] | None:
    """Return the repository outside the project of which the project is a linked worktree, and the worktree's own folder in it.

    An archive, or a command, can bring a `.git` file, so nothing that it names is believed by itself. The place must be
    `REPOSITORY/worktrees/NAME`, name this very project, and lie where no command of this project can write.
    """
    try:
        if not stat.S_ISREG(os.lstat(f"{root}/.git").st_mode):
            return None
        kind, _, named = _line(f"{root}/.git").partition(":")
        # The named folder must name this project in turn: a `.git` file alone could name any repository.
        # Joined first: a relative name leads out of the project by `..` alone.
        place, is_ours = _Ways(root).of(os.path.normpath(os.path.join(root, named.strip()))) or _NOWHERE
        if kind != "gitdir" or is_ours or place == "/":
            return None
        if os.path.realpath(os.path.join(place, _line(f"{place}/gitdir"))) != f"{root}/.git":
            return None
        worktrees, repository = os.path.dirname(place), os.path.dirname(os.path.dirname(place))
        common = os.path.realpath(os.path.join(place, _line(f"{place}/commondir")))
        if os.path.basename(worktrees) == "worktrees" and common == repository and _is_repository(repository):
            return repository, place
    except (OSError, ValueError):
        # ValueError: the file holds a NUL.
        pass
    return None


def _is_repository(folder: str) -> bool:
    return os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects") and os.path.isdir(f"{folder}/refs")


def _line(path: str) -> str:
    return atomic.read_regular(path, 4096)[0].decode("utf-8", "surrogateescape").strip()


def holds_programs(folder: str) -> bool:
    """Tell whether a folder has the name of one of programs."""
    return os.path.basename(folder) in _NAMES_OF_PROGRAMS


def programs(folder: str, homes: Iterable[str]) -> Iterator[str]:
    """Yield what the programs of a folder of `PATH` need: the folder, and the libraries beside a `bin`; not those of homes."""
    yield folder
    prefix, name = os.path.split(folder.rstrip("/"))
    if name in _NAMES_OF_PROGRAMS and prefix not in (*_HOMES, *_SHARED, *homes, "/"):
        library_folders = _LIBRARIES_OF.get(os.path.basename(prefix), _LIBRARIES)
        # A conda environment is an installation as a whole; its programs read files all over it.
        yield from [prefix] if os.path.isdir(f"{prefix}/conda-meta") else (f"{prefix}/{one}" for one in library_folders)
