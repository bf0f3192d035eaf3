"""The files of a folder with their digests; no link is followed on the way to one, and nothing but files is read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final

from rye.errors import TrustError
from rye.fs import beneath, names
from rye.fs.atomic import closing
from rye.plain_class import Record

MOST_FILES: Final = 100_000
MOST_DEPTH: Final = 200

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FolderContent(Record):
    """A folder as it was read.

    Attributes:
        digests: path -> digest in hex, of all files that are covered.
        uncovered: what lies there and no signature covers: paths that are left out, folders behind links (with `/`).
    """

    digests: Mapping[str, str]
    uncovered: tuple[str, ...]


def read(
    folder: str, ignored: frozenset[str] = frozenset(), algorithm: str = "sha256", *, links: bool = False, every: bool = False
) -> FolderContent:
    """Read a folder.

    Args:
        folder: its path.
        ignored: paths in it that are left out, with what lies below them.
        algorithm: as `hashlib` calls it.
        links: take the content of the file that a link points to; else a link is refused.
        every: refuse links in what is left out, too, as other programs do that verify.

    Raises:
        TrustError: `not_signable`: a link, a name that is no UTF-8, something that is no file; too many files or folders.
        OSError: a file or folder cannot be read.
    """
    digests: dict[str, str] = {}
    uncovered: list[str] = []
    with closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as root:
        for path, fd in _files(root, ignored, uncovered, links=links, every=every):
            with open(fd, "rb", buffering=0) as file:
                digests[path] = hashlib.file_digest(file, algorithm).hexdigest()
    return FolderContent(digests, tuple(sorted(uncovered)))


def _files(root: int, ignored: frozenset[str], uncovered: list[str], *, links: bool, every: bool) -> Iterator[tuple[str, int]]:
    """Yield the files below an open folder as (path, descriptor); what is left out goes to `uncovered`."""
    waiting: list[tuple[str, bool]] = [("", False)]
    count = 0
    while waiting:
        prefix, is_out = waiting.pop()
        try:
            with closing(beneath.open_unlinked(root, prefix.split("/")[:-1], _FOLDER)) as fd:
                with os.scandir(fd) as found:
                    entries = sorted(found, key=lambda one: one.name)
                for entry in entries:
                    count += 1
                    path = prefix + _name(entry.name, prefix)
                    if count > MOST_FILES or path.count("/") > MOST_DEPTH:
                        raise _not_signable(f"it has more than {MOST_FILES:,} entries, or more than {MOST_DEPTH} folders deep")
                    is_folder = entry.is_dir(follow_symlinks=False)
                    left_out = is_out or path in ignored
                    if left_out and not is_out:
                        uncovered.append(path + "/" * is_folder)
                    if left_out and not every:
                        continue
                    if entry.is_symlink() and not links:
                        raise _not_signable(f"{_shown(path)} is a link")
                    if not entry.is_file() and not entry.is_dir():
                        raise _not_signable(f"{_shown(path)} is no file, and leads to none")
                    if is_folder:
                        waiting.append((f"{path}/", left_out))
                    elif not left_out:
                        file = os.open(entry.name, _FILE | (0 if links else os.O_NOFOLLOW), dir_fd=fd)
                        mode = os.fstat(file).st_mode
                        if stat.S_ISREG(mode):
                            yield path, file
                            continue
                        os.close(file)
                        if not stat.S_ISDIR(mode):
                            raise _not_signable(f"{_shown(path)} is no file")
                        uncovered.append(f"{path}/")
        except OSError as err:
            if err.errno in (errno.ENXIO, errno.ELOOP, errno.ENAMETOOLONG):
                raise _not_signable(f"{_shown(prefix)}… {os.strerror(err.errno).lower()}") from None
            raise


def _name(name: str, prefix: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _not_signable(f"a name in {_shown(prefix) or 'it'} is not UTF-8: {_shown(name)}") from None
    return name


def _shown(path: str) -> str:
    return names.show(os.fsencode(path))


def _not_signable(why: str) -> TrustError:
    return TrustError("not_signable", f"No signature can cover this folder: {why}.", "Take that away, or sign another folder.")
