"""Opening beneath a directory, decided by the kernel alone.

A path is a sequence of raw components below an open root descriptor. It is opened either in one step by `openat2(2)`
with RESOLVE_BENEATH, or component by component with O_NOFOLLOW, following inner symbolic links by hand. Both give the
same verdicts: `..` above the root is refused with EXDEV, more than 40 links with ELOOP. No realpath takes part.

An absolute link is followed where its text begins with the root's own path (of a root that `name_root` told): the rest is
opened beneath the root's descriptor like any relative path, so a wrong or outdated prefix can name another file of the
project, never one outside. Every other absolute link is refused with EXDEV, and nothing that it names is examined.

Every function returns a descriptor together with the physical components that led to it, so that a rule about names is
applied to the very place that was opened.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rye.fs import stamps

Parts = tuple[bytes, ...]

DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
MAX_LINKS = 40
# As Linux counts it, with the NUL at the end.
PATH_MAX = 4_096

# x86-64 and arm64 share the number; RESOLVE_* as in <linux/openat2.h>.
_SYS_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_AGAIN_LIMIT = 32
# Renames that never pause, a kernel before 5.6, or a filter: component by component it goes all the same.
_UNABLE = (errno.EAGAIN, errno.ENOSYS, errno.EPERM)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_SIZE = ctypes.sizeof(_OpenHow)


@lru_cache(maxsize=64)
def _how(flags: int) -> Any:
    """Return a pointer to the request, which the kernel only reads."""
    return ctypes.byref(_OpenHow(flags, 0, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS))


_libc = ctypes.CDLL(None, use_errno=True)


# Magic numbers of <linux/magic.h>: proc, sysfs, devpts, both cgroups, debugfs, tracefs, securityfs, bpf, pstore, configfs,
# efivarfs, binfmt_misc, selinux, nsfs, rpc_pipefs, autofs.
_OF_KERNEL = frozenset(
    {0x9FA0, 0x62656572, 0x1CD1, 0x27E0EB, 0x63677270, 0x64626720, 0x74726163, 0x73636673, 0xCAFE4A11, 0x6165676C}
    | {0x62656570, 0xDE5E81E4, 0x42494E4D, 0xF97CFF8C, 0x6E736673, 0x67596969, 0x0187}
)
_STATFS_SIZE = 256


def is_of_kernel(fd: int) -> bool:
    """Tell whether an open file lies in a file system of the kernel's own, whose files are no data: by its type, not its path.

    A tmpfs holds data wherever it is mounted; that of the device files (`/dev` itself) has the same type, and is recognised by
    its device number.
    """
    found = (ctypes.c_long * (_STATFS_SIZE // ctypes.sizeof(ctypes.c_long)))()
    if _libc.fstatfs(fd, found) == 0 and found[0] & 0xFFFFFFFF in _OF_KERNEL:
        return True
    try:
        device = os.fstat(fd).st_dev
        # Most folders lie on the disk of the root.
        return device != os.stat("/").st_dev and device == os.stat("/dev").st_dev
    except OSError:
        # A container need not have a /dev.
        return False


def _openat2(root_fd: int, path: bytes, flags: int) -> int:
    """Open `path` (no NUL) beneath `root_fd` through no symbolic link at all."""
    how = _how(flags | os.O_CLOEXEC)
    for _ in range(_AGAIN_LIMIT):
        fd: int = _libc.syscall(_SYS_OPENAT2, root_fd, path, how, _HOW_SIZE)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        # EAGAIN: a rename anywhere on the machine raced with the check for `..`; the kernel asks to try again.
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))


# As in <linux/stat.h>: the size of `struct statx`, and where it holds the mask and the birth time.
_STATX_SIZE, _STATX_BIRTH, _AT_EMPTY_PATH = 256, 0x800, 0x1000
_BIRTH = struct.Struct("qI")


def birth_time(fd: int) -> tuple[int, int]:
    """Return when an open file was made, in seconds and nanoseconds; (0, 0) where the file system does not record it."""
    found = ctypes.create_string_buffer(_STATX_SIZE)
    statx = getattr(_libc, "statx", None)
    if statx is None or statx(fd, b"", _AT_EMPTY_PATH, _STATX_BIRTH, found) != 0:
        return 0, 0
    (mask,) = struct.unpack_from("I", found)
    seconds, nanoseconds = _BIRTH.unpack_from(found, 80)
    return (seconds, nanoseconds) if mask & _STATX_BIRTH else (0, 0)


def open_beneath(root_fd: int, parts: Sequence[bytes], flags: int) -> tuple[int, Parts]:
    """Open the place `parts` names below `root_fd`; links that stay inside are followed.

    Args:
        root_fd: descriptor of the root directory.
        parts: raw components without NUL or slash; `.`, `..` and empty ones are allowed.
        flags: for `os.open`; O_CLOEXEC is added.

    Returns:
        The descriptor, and the physical components below the root.

    Raises:
        OSError: EXDEV when the path leads outside, ELOOP, ENOENT, ENOTDIR … as the kernel says.
    """
    path = b"/".join(parts) or b"."
    if len(path) >= PATH_MAX:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    try:
        # The kernel met no link, so dropping `..` from the text gives the physical path.
        return _openat2(root_fd, path, flags), _lexical(parts)
    except OSError as err:
        # A link on the way: walk.
        if err.errno not in (errno.ELOOP, *_UNABLE):
            raise
    return _walk(root_fd, parts, flags)


def open_unlinked(root_fd: int, parts: Sequence[str], flags: int) -> int:
    """Open the place `parts` names below `root_fd` through no symbolic link; flags as in `open_beneath`.

    Raises:
        OSError: ELOOP or ENOTDIR where there is a link; ENOENT … as the kernel says.
    """
    path = os.fsencode("/".join(parts) or ".")
    if len(path) >= PATH_MAX and len(parts) > 1:
        # A folder of any depth can be made, but only asked for in steps.
        half = len(parts) // 2
        at = open_unlinked(root_fd, parts[:half], DIRECTORY)
        try:
            return open_unlinked(at, parts[half:], flags)
        finally:
            os.close(at)
    try:
        return _openat2(root_fd, path, flags)
    except OSError as err:
        if err.errno not in _UNABLE:
            raise
    trail = _Trail(root_fd)
    try:
        for part in parts[:-1]:
            trail.down(os.fsencode(part))
        return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=trail.here)
    finally:
        trail.close()


def _lexical(parts: Sequence[bytes]) -> Parts:
    """Drop `.` and `..`; exact where no link was passed, which the caller has established."""
    if not (b"" in parts or b"." in parts or b".." in parts):
        return tuple(parts)
    out: list[bytes] = []
    for part in parts:
        if part == b"..":
            out.pop()
        elif part not in (b"", b"."):
            out.append(part)
    return tuple(out)


class NamedRoot:
    """A root that is held open: while it is, no other folder gets its inode.

    Attributes:
        path: where it was opened.
        identity: its device and inode.
        key, noted: what `rye.config.user_dirs` found out about it.
    """

    def __init__(self, fd: int, path: str) -> None:
        self.path, self.identity = path, stamps.identity(fd)
        self.key = self.noted = ""


named_roots: dict[int, NamedRoot] = {}
"""The roots that are held open, by descriptor."""


def name_root(fd: int, path: str) -> None:
    """Note the absolute path at which a root was opened, until `forget_root`: absolute links to it are followed."""
    named_roots[fd] = NamedRoot(fd, path)


def forget_root(fd: int) -> None:
    """Forget a root before its descriptor is closed: the next file may get its number."""
    named_roots.pop(fd, None)


class _Trail:
    """The open directories from the root down to the current one of a walk."""

    def __init__(self, root_fd: int) -> None:
        self._root = root_fd
        self._open: list[int] = []
        self.names: list[bytes] = []

    @property
    def here(self) -> int:
        return self._open[-1] if self._open else self._root

    def down(self, name: bytes) -> None:
        self._open.append(os.open(name, DIRECTORY | os.O_NOFOLLOW, dir_fd=self.here))
        self.names.append(name)

    def up(self) -> None:
        if not self._open:
            # The stack ends at the root: a `..` there cannot be followed by mistake.
            raise OSError(errno.EXDEV, "the path leads above the root")
        os.close(self._open.pop())
        self.names.pop()

    def follow(self, target: bytes) -> list[bytes]:
        """Return the components that a link's target adds to the path; an absolute one begins at the root again."""
        if not target.startswith(b"/"):
            return target.split(b"/")
        parts = below_root(self._root, target)
        while self._open:
            self.up()
        return parts

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)


def _walk(root_fd: int, parts: Sequence[bytes], flags: int) -> tuple[int, Parts]:
    pending = deque(parts)
    links = 0
    trail = _Trail(root_fd)
    try:
        while pending:
            part = pending.popleft()
            if part in (b"", b"."):
                continue
            if part == b"..":
                trail.up()
                continue
            try:
                if not pending:
                    return _open_final(trail.here, part, flags), (*trail.names, part)
                trail.down(part)
            except OSError as err:
                # O_NOFOLLOW answers ELOOP for a link, O_DIRECTORY with it ENOTDIR.
                if err.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                target = read_link(trail.here, part)
                if target is None:
                    raise
                # Each link can lead to the next: without a bound a cycle would not end.
                links += 1
                if links > MAX_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                # The target's parts come next, and are resolved from the directory that holds the link.
                pending.extendleft(reversed(trail.follow(target)))
        return os.open(b".", flags | os.O_CLOEXEC, dir_fd=trail.here), tuple(trail.names)
    finally:
        trail.close()


def _open_final(dir_fd: int, name: bytes, flags: int) -> int:
    """Open the last component; a link is reported as ELOOP, also with O_PATH, which would open the link itself."""
    fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    if flags & os.O_PATH and not flags & os.O_DIRECTORY:
        try:
            os.readlink(b"", dir_fd=fd)
        except OSError:
            return fd
        os.close(fd)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return fd


def read_link(dir_fd: int, name: bytes) -> bytes | None:
    """Return a symbolic link's target, or None where `name` is no link or does not exist."""
    try:
        return os.readlink(name, dir_fd=dir_fd)
    except OSError as err:
        if err.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
            return None
        raise


def below_root(root_fd: int, target: bytes) -> list[bytes]:
    """Return the components of an absolute link's target below the root.

    Raises:
        OSError: EXDEV where it does not begin with a path of this root.
    """
    opened = named_roots.get(root_fd)
    # The path as it was opened, and the real one: a link's maker may have known either.
    for path in () if opened is None else (opened.path, real_path(root_fd, opened.path)):
        below = _without(target.split(b"/"), [part for part in os.fsencode(path).split(b"/") if part])
        # After an exchange of the root the link means the other folder.
        if below is not None and stamps.identity(path) == stamps.identity(root_fd):
            return below or [b"."]
    raise OSError(errno.EXDEV, "the path passes through an absolute symbolic link")


def _without(parts: list[bytes], parents: list[bytes]) -> list[bytes] | None:
    """Return what follows `parents` in `parts`; None where they do not begin with it. Their last empty part is kept."""
    at = 0
    for name in parents:
        while at < len(parts) and parts[at] in (b"", b"."):
            at += 1
        if parts[at : at + 1] != [name]:
            return None
        at += 1
    return parts[at:]


def real_path(fd: int, path: str) -> str:
    """Return the real path of a folder that is open and was named by `path`: in one step where the kernel tells it."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return os.path.realpath(path)


def is_at(root_fd: int, parts: Sequence[bytes], fd: int) -> bool:
    """Tell whether an open folder is the one at physical components below a root."""
    try:
        there = open_unlinked(root_fd, [os.fsdecode(part) for part in parts], DIRECTORY)
    except OSError:
        return False
    try:
        return os.path.sameopenfile(there, fd)
    finally:
        os.close(there)


def open_parent(root_fd: int, parts: Sequence[bytes]) -> tuple[int, Parts]:
    """Open the directory that holds the file `parts` names, following the file's own link to where it points.

    Returns:
        A descriptor of the directory, and the physical components of the file itself (its name last). The file may
        not exist.

    Raises:
        OSError: as `open_beneath`; EISDIR where the path names no file (empty, `.` or `..` at its end).
    """
    current = tuple(parts)
    for _ in range(MAX_LINKS + 1):
        if not current or current[-1] in (b"", b".", b".."):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        fd, folder = open_beneath(root_fd, current[:-1], DIRECTORY)
        try:
            target = read_link(fd, current[-1])
            if target is None:
                return fd, (*folder, current[-1])
            # Once more from the root: the target may pass through links of its own.
            absolute = target.startswith(b"/")
            current = tuple(below_root(root_fd, target)) if absolute else (*folder, *target.split(b"/"))
        except OSError:
            os.close(fd)
            raise
        os.close(fd)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


_AT_FDCWD = -100
NOREPLACE, EXCHANGE = 1, 2
"""What `rename` is told, as in <linux/fs.h>."""
UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)
"""What it says where the file system cannot do that."""


def rename(dir_fd: int | None, source: str | bytes, target: str | bytes, flags: int) -> None:
    """Call `renameat2` within one directory, with NOREPLACE, which is done without it, too, or EXCHANGE. Raises OSError.

    Where a file system does not know NOREPLACE, a name that appears at this very moment is replaced.
    """
    at, call, code = _AT_FDCWD if dir_fd is None else dir_fd, getattr(_libc, "renameat2", None), errno.ENOSYS
    # glibc and musl export it, others do not.
    if call is not None:
        if call(at, os.fsencode(source), at, os.fsencode(target), flags) == 0:
            return
        code = ctypes.get_errno()
    if code not in UNSUPPORTED or flags == EXCHANGE:
        raise OSError(code, os.strerror(code))
    # Not by a hard link, which fails where the target exists: some file systems have none, and of another user's file in a
    # sticky folder it could not be removed again.
    if exists(dir_fd, target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def open_file(folder_fd: int, name: str, flags: int) -> int:
    """Open a file in a folder for reading, through no link. Raises OSError."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder_fd)


def exists(dir_fd: int | None, path: str | bytes) -> bool:
    """Tell whether a path from an open folder leads to something; a link counts as itself."""
    try:
        os.lstat(path, dir_fd=dir_fd)
    except OSError:
        return False
    return True
