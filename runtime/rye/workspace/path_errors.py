"""What the system answers about a path, turned into typed refusals that say what to do next."""

from __future__ import annotations

import errno
import os
import stat

from rye.call.results import call_text
from rye.config import user_dirs
from rye.errors import EXHAUSTED, WorkspaceError
from rye.fs import names

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def outside(path: str, why: str = "") -> WorkspaceError:
    """Return the refusal of a path that leads out of the project."""
    shown = names.show(path.encode("utf-8", "backslashreplace"))[:300]
    # At the end of a sentence `..` would pass for an ellipsis.
    quoted = f'"{shown}"' if shown.endswith(".") else shown
    what = f"Path outside project workspace: {quoted}{why and f' ({why})'}."
    return WorkspaceError("path_outside", what, "Give a path inside the project, relative to its root.")


def wrong_kind(mode: int, path: str) -> WorkspaceError:
    """Return the refusal of something that is not a regular file."""
    if stat.S_ISDIR(mode) and path.endswith("/"):
        bare = path.rstrip("/")
        hint = f"Leave the slash at its end out for a file, {bare}; {call_text('ls', path=bare)} lists a folder that is there."
        return WorkspaceError("is_directory", f"{path} names a folder, not a file.", hint)
    if stat.S_ISDIR(mode):
        why = f"{path} is a directory, not a file."
        return WorkspaceError("is_directory", why, f"Use {call_text('ls', path=path)} to list it.")
    kind = next((words for test, words in _KINDS if test(mode)), "not a regular file")
    return WorkspaceError("not_regular_file", f"{path} is {kind}, not a regular file.", "Name a regular file.")


def system_failure(err: OSError, path: str) -> WorkspaceError:
    """Turn any other answer of the system into a typed failure."""
    number = err.errno or 0
    code, hint = _SYSTEM.get(number, ("io_error", "Check the disk and the path, then try again."))
    if number in _NOT_OURS and (path == user_dirs.user_space() or f"{path}/".startswith(f"{user_dirs.user_ai()}/")):
        # Not the project's: a home that is missing, read-only or another user's, as containers have it.
        hint = "What is remembered is kept there: make it writable, or set USER_SPACE to a folder that is."
    return WorkspaceError(code, f"{path[:300]}: {os.strerror(number)}.", hint, errno=errno.errorcode.get(number, str(number)))


_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT)
_SYSTEM = {
    errno.EACCES: ("permission_denied", "Ask the user to change the permissions, or work elsewhere."),
    errno.EPERM: ("permission_denied", "Ask the user to change the permissions, or work elsewhere."),
    errno.EROFS: ("read_only", "The file system cannot be written; work elsewhere."),
    errno.ENOSPC: ("no_space", "Nothing was changed. Ask the user to free disk space, then try again."),
    errno.EDQUOT: ("no_space", "Nothing was changed. Ask the user to free disk space, then try again."),
    errno.ENAMETOOLONG: ("bad_path", "Use a shorter name (255 bytes a component, 4,096 a path)."),
    errno.ELOOP: ("symlink_loop", "The path runs in a circle of symbolic links; name the file itself."),
    errno.EMFILE: ("too_many_open_files", EXHAUSTED[errno.EMFILE]),
    errno.ENFILE: ("too_many_open_files", EXHAUSTED[errno.ENFILE]),
    errno.ENOMEM: ("out_of_memory", EXHAUSTED[errno.ENOMEM]),
    errno.ENOLCK: ("no_locks", "The file system has no locks. Work on a copy of the project elsewhere."),
}


def protected(path: str, place: str | None, acted_on: str | None = None) -> WorkspaceError:
    """Return the refusal of a write into a place that tools may not write, or at a name that other programs act on."""
    if acted_on is None:
        hint = "Ask the user to change it; git and rye have their own commands for these places."
        return WorkspaceError("protected_path", f"{path} lies in {place}, which tools may not write.", hint)
    settings = user_dirs.settings_file()
    return WorkspaceError(
        "protected_path",
        f"{path} is protected: {acted_on} is one of the listed names that other programs run or load without asking, so tools "
        "may not write it. Nothing was written.",
        f"Tell the user what to put there; only the user can allow it, by `protected: {{allow: [{acted_on}]}}` in {settings}.",
    )
