"""Replacing a file's content in one step, without losing what anyone else wrote.

The new content is written beside the target, made durable, and exchanged with it (`renameat2` with RENAME_EXCHANGE). What
was displaced is then compared with what the caller read: if another program changed the file meanwhile, the two are
exchanged back and the caller gets an error. Where the file system cannot exchange, the check comes right before a plain rename.
A crash at any point leaves the old content or the new one, and at most a temporary file named by `temporary_name`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable
from hashlib import sha256

from rye.call.context import deadline
from rye.call.results import call_text
from rye.errors import WorkspaceError
from rye.fs import atomic
from rye.fs.atomic import closing
from rye.fs.beneath import EXCHANGE, NOREPLACE, UNSUPPORTED, rename
from rye.workspace.path_errors import system_failure
from rye.workspace.workspace import MAX_FILE_BYTES, Place

_BUFFER = 1 << 18


def temporary_name() -> bytes:
    """Return a fresh name for the file beside the target; `is_temporary` knows it again."""
    return b".rye-" + os.urandom(8).hex().encode() + b".tmp"


def is_temporary(name: bytes) -> bool:
    """Tell whether `name` is one that `temporary_name` makes."""
    return len(name) == 25 and name.startswith(b".rye-") and name.endswith(b".tmp")


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes as 64 hex digits."""
    return sha256(data).hexdigest()


def replace(place: Place, data: bytes | None, expected: str | None, temporary: bytes, mode: int | None = None) -> bool:
    """Put `data` in `place`; None: delete the file that is there.

    Args:
        place: where the file is or will be.
        data: the whole new content.
        expected: SHA-256 of the content that this replaces; None when no file may be there.
        temporary: a name from `temporary_name`.
        mode: permission bits of a new file (default 0666 less the umask); an existing file keeps its own.

    Returns:
        Whether the temporary name is free again; see `is_free`.

    Raises:
        WorkspaceError: `conflict` when something else is there now; `no_space`, `read_only` … from the system. The
            old content is in place. Only after `unsettled` the new one may be, and the displaced one under `temporary`.
        DeadlineError: the call's time is up; nothing was changed.
    """
    with deadline().commit():
        settled = True
        try:
            if data is None:
                set_aside(place, temporary, expected or "")
            else:
                stage(place, [data], temporary, mode)
                put(place, temporary, expected)
        except OSError as err:
            raise system_failure(err, place.shown) from None
        except WorkspaceError as err:
            settled = err.code != "unsettled"
            raise
        finally:
            # After `unsettled` the temporary name may have the only copy of a content.
            free = settled and discard(place.dir_fd, temporary)
        return free


Known = str | Callable[[int, bytes], bool]
"""What is known of a file: the SHA-256 of its content, or what tells by a folder and a name whether it is there."""


def put(place: Place, temporary: bytes, expected: Known | None, backup: bytes | None = None, *, durably: bool = True) -> None:
    """Put the file named `temporary` in place; what it displaces is named `temporary` then.

    Args:
        place: where the file goes.
        temporary: a name from `temporary_name`, which the file has now (see `stage`).
        expected: what is displaced; None when no file may be there.
        backup: where the file system cannot exchange, a second such name: the old content is copied to it first. Without
            one it is lost.
        durably: the names survive a power cut; else the caller sees to that.

    Raises:
        OSError, WorkspaceError: `conflict`, `unsettled`; see `replace`.
    """
    if place.check is not None:
        place.check()
    # Compared later by inode: another program's file may have the same content.
    inode = _inode_at(place.dir_fd, temporary)
    if expected is None:
        _put_new(place, temporary, inode, durably=durably)
    else:
        _exchange_checked(place, temporary, expected, inode, backup, durably=durably)


def _is(dir_fd: int, name: bytes, expected: Known) -> bool:
    return digest_at(dir_fd, name) == expected if isinstance(expected, str) else expected(dir_fd, name)


def set_aside(place: Place, temporary: bytes, expected: Known, *, durably: bool = True) -> None:
    # Moved first, then compared: between a check and an unlink another program could write.
    """Move the file in `place` to `temporary` if it is `expected`; arguments and errors as `put`."""
    if place.check is not None:
        place.check()
    try:
        rename(place.dir_fd, place.name, temporary, NOREPLACE)
    except FileNotFoundError:
        raise conflict(place) from None
    try:
        same = _is(place.dir_fd, temporary, expected)
        if same and durably:
            atomic.sync(dir_fd=place.dir_fd)
    except OSError:
        give_back(place, temporary)
        raise
    if not same:
        give_back(place, temporary)
        raise conflict(place)


def is_free(place: Place, temporary: bytes) -> bool:
    """Tell whether nothing has a name beside a place, such as a change's temporary one, which else `sweep` must settle."""
    try:
        os.stat(temporary, dir_fd=place.dir_fd, follow_symlinks=False)
    except OSError as err:
        return isinstance(err, FileNotFoundError)
    return False


def sweep(place: Place, temporary: bytes, before: str | None, after: str | None) -> bool:
    """Remove the temporary file of a change that a crash ended; tell whether the change was made.

    Another program's content, which the change displaced, is stored as `.rye-conflict`.
    """
    now, aside = digest_at(place.dir_fd, place.name), digest_at(place.dir_fd, temporary)
    # Where another program wrote since, the old content under the temporary name proves that ours was in place before that.
    applied = now == after or (aside == before is not None and now != before)
    with contextlib.suppress(FileNotFoundError):
        if applied and aside not in (None, before, after):
            keep(place, temporary)
        else:
            os.unlink(temporary, dir_fd=place.dir_fd)
    return applied


def give_back(place: Place, temporary: bytes) -> None:
    """Give a file that was moved aside its name back; under another visible name where that is taken now."""
    try:
        try:
            rename(place.dir_fd, temporary, place.name, NOREPLACE)
        except FileExistsError:
            keep(place, temporary)
    except OSError as err:
        raise _unsettled(place, temporary, err) from None


def keep(place: Place, temporary: bytes) -> bytes:
    """Rename what is under the temporary name, and is not ours to delete, to a name that people see."""
    visible = place.name[:200] + b"." + os.urandom(4).hex().encode() + b".rye-conflict"
    rename(place.dir_fd, temporary, visible, NOREPLACE)
    return visible


def stage(place: Place, data: Iterable[bytes], temporary: bytes, mode: int | None, *, forced: bool = False) -> None:
    # The content must not be readable by others before the target's mode is copied.
    """Write the temporary file, durable and with the target's metadata; only its name is not durable yet.

    `mode` is that of a new file; `forced`, also of one that is there.
    """
    created = 0o666 if place.stat is None and mode is None else 0o600
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    with closing(os.open(temporary, flags, created, dir_fd=place.dir_fd)) as fd:
        for part in data:
            view = memoryview(part)
            while view:
                view = view[os.write(fd, view) :]
        if place.stat is not None:
            copy_metadata(place.dir_fd, place.name, fd, place.stat)
        if mode is not None and (forced or place.stat is None):
            set_mode(fd, mode)
        os.fsync(fd)


def copy_metadata(dir_fd: int, name: str | bytes, fd: int, old: os.stat_result) -> None:
    """Carry owner, extended attributes (ACLs among them) and mode over; owner and attributes as far as the system lets us.

    Args:
        dir_fd: the open folder of the file that is to be replaced.
        name: its name.
        fd: the open file that will be in its place.
        old: its status.
    """
    # Another content is another program: it gets no rights by set-id bits, as with a plain write of an ordinary user.
    mode = stat.S_IMODE(old.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    info = os.fstat(fd)
    if (info.st_uid, info.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except OSError:
            # The group alone may be ours to give, so that a shared file stays shared.
            with contextlib.suppress(OSError):
                os.fchown(fd, -1, old.st_gid)
    _copy_attributes(dir_fd, name, fd)
    # Mode last: an ACL changes the group's bits.
    set_mode(fd, mode)


def set_mode(fd: int, mode: int) -> None:
    """Give an open file its permission bits; where it has them nothing is asked, as some file systems have no others."""
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)


def _copy_attributes(dir_fd: int, name: str | bytes, fd: int) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(OSError), closing(os.open(name, flags, dir_fd=dir_fd)) as source:
        # Capabilities of a program are rights as set-id bits are.
        for attribute in (one for one in os.listxattr(source) if one != "security.capability"):
            # One that may not be set (security labels) must not cost the others.
            with contextlib.suppress(OSError):
                os.setxattr(fd, attribute, os.getxattr(source, attribute))


def _put_new(place: Place, temporary: bytes, inode: int, *, durably: bool) -> None:
    try:
        rename(place.dir_fd, temporary, place.name, NOREPLACE)
    except FileExistsError:
        raise conflict(place) from None
    try:
        if durably:
            atomic.sync(dir_fd=place.dir_fd)
    except OSError as err:
        try:
            rename(place.dir_fd, place.name, temporary, NOREPLACE)
            # Another program may have replaced our file in between: then its file gets the name back.
            if _inode_at(place.dir_fd, temporary) != inode:
                give_back(place, temporary)
        except OSError:
            raise _unsettled(place, temporary, err) from None
        raise


def _exchange_checked(
    place: Place, temporary: bytes, expected: Known, inode: int, backup: bytes | None, *, durably: bool
) -> None:
    try:
        rename(place.dir_fd, temporary, place.name, EXCHANGE)
    except FileNotFoundError:
        raise conflict(place) from None
    except OSError as err:
        if err.errno not in UNSUPPORTED:
            raise
        _check_then_rename(place, temporary, expected, backup)
        return
    # Checked after the exchange: no other program can replace the displaced file by its name any more.
    try:
        same = _is(place.dir_fd, temporary, expected)
        if same and durably:
            atomic.sync(dir_fd=place.dir_fd)
    except OSError as err:
        _put_back(place, temporary, inode, err)
        raise
    if not same:
        _put_back(place, temporary, inode, None)
        raise conflict(place)


def _put_back(place: Place, temporary: bytes, inode: int, why: OSError | None) -> None:
    """Exchange again; what then lies under the temporary name must be our own file, else it gets a visible name."""
    try:
        rename(place.dir_fd, temporary, place.name, EXCHANGE)
        if _inode_at(place.dir_fd, temporary) != inode:
            keep(place, temporary)
    except FileNotFoundError:
        # Deleted meanwhile.
        give_back(place, temporary)
    except OSError as err:
        raise _unsettled(place, temporary, why or err) from None


def _check_then_rename(place: Place, temporary: bytes, expected: Known, backup: bytes | None) -> None:
    if not _is(place.dir_fd, place.name, expected):
        raise conflict(place)
    # A plain rename destroys what it replaces, so the old content is copied first.
    if backup is not None:
        old, _ = atomic.read_regular(place.name, MAX_FILE_BYTES, dir_fd=place.dir_fd, follow=False)
        stage(place, [old], backup, None)
    os.rename(temporary, place.name, src_dir_fd=place.dir_fd, dst_dir_fd=place.dir_fd)
    if backup is not None:
        os.rename(backup, temporary, src_dir_fd=place.dir_fd, dst_dir_fd=place.dir_fd)
    # The old content is gone: whether the new one is durable changes nothing about the content.
    with contextlib.suppress(OSError):
        atomic.sync(dir_fd=place.dir_fd)


def _inode_at(dir_fd: int, name: bytes) -> int:
    return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino


def digest_at(dir_fd: int, name: bytes) -> str | None:
    """Return the digest of the regular file under `name`; None when something else is there."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError as err:
        # Gone, a symbolic link, a socket: no regular file.
        if err.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None
        raise
    with closing(fd):
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE_BYTES:
            return None
        # Through one small buffer: the content itself is not wanted, and fresh memory for it would cost more than the hash.
        hashed, buffer = sha256(), bytearray(_BUFFER)
        while count := os.readv(fd, [buffer]):
            hashed.update(memoryview(buffer)[:count])
        return str(hashed.hexdigest())


def discard(dir_fd: int, name: bytes) -> bool:
    """Remove a temporary file; tell whether its name is free."""
    try:
        os.unlink(name, dir_fd=dir_fd)
    except OSError as err:
        return isinstance(err, FileNotFoundError)
    return True


def conflict(place: Place) -> WorkspaceError:
    """Return the refusal of a write whose file was changed by someone else meanwhile."""
    why = f"{place.shown} was changed by another program while this call ran. Nothing was written."
    return WorkspaceError("conflict", why, f"Call {call_text('read', file_path=place.shown)} and edit what is there now.")


def _unsettled(place: Place, temporary: bytes, err: OSError) -> WorkspaceError:
    """Return the failure of a change that could not be taken back either; the next change or undo settles it."""
    return WorkspaceError(
        "unsettled",
        f"{place.shown}: {os.strerror(err.errno or 0)}, while the file was being exchanged. It holds its old or "
        f"its new content; the other one lies beside it as {temporary.decode()}.",
        f"Call {call_text('read', file_path=place.shown)} to see which; check the disk before the next change.",
    )
