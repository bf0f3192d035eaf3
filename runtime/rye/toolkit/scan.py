"""The child of the search without ripgrep: walks, reads and matches, and answers in ripgrep's own output formats.

Runs in a process of its own, in the folder to be searched. A timer ends it by SIGALRM when the regex engine is lost in
trying. Not imported by the parent.
"""

from __future__ import annotations

import base64
import codecs
import errno
import json
import os
import re
import signal
import stat
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from rye.toolkit import beneath, gitignore, globs, regex_subset
from rye.toolkit.ripgrep import Pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_LINES_PER_TIMER = 256

Rules = tuple[tuple[int, list[gitignore.Rule]], ...]


class Folder(NamedTuple):
    """A folder to be walked: its components, and the rules of it and those above, outermost first, with their depths."""

    parts: tuple[str, ...]
    rules: Rules


class Walk:
    """Walks the folder it was started in, through no link; depth costs no recursion and no descriptors."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.hidden, self.no_ignore, wanted = task["view"]
        self._root = os.open(".", beneath.DIRECTORY)
        self._wanted = [globs.compiled(name) for name in wanted]
        self._closed = tuple(f"/{path}" for path in task["closed"])
        self._ignored = [] if self.no_ignore else [globs.compiled(name) for name in task["ignored"]]
        inherited = b"" if task["rules"] is None else os.pread(task["rules"], 1 << 24, 0)
        self._first: Rules = ((0, gitignore.parse(inherited)),) if inherited else ()

    def files(self) -> Iterator[str]:
        """Yield the names of regular files."""
        pending = [Folder((), self._first)]
        while pending:
            folder = pending.pop()
            try:
                entries, rules = self._entries(folder)
            except OSError as err:
                trouble("/".join(folder.parts), err)
                continue
            for entry in entries:
                parts = (*folder.parts, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    if not self._left_out(parts, rules, folder=True):
                        pending.append(Folder(parts, rules))
                elif entry.is_file(follow_symlinks=False) and not self._left_out(parts, rules, folder=False):
                    yield "/".join(parts)

    def _entries(self, folder: Folder) -> tuple[list[os.DirEntry[str]], Rules]:
        fd, _ = beneath.open_beneath(self._root, tuple(map(os.fsencode, folder.parts)), os.O_RDONLY | os.O_DIRECTORY)
        try:
            entries = list(os.scandir(fd))
            rules = folder.rules
            if not self.no_ignore and any(entry.name == ".gitignore" for entry in entries):
                rules = (*rules, (len(folder.parts), gitignore.parse(_content(fd, b".gitignore", gitignore.MAX_BYTES) or b"")))
            for entry in entries:
                # Where the system did not say the kind, it is asked while the folder is open.
                entry.is_dir(follow_symlinks=False)
            return entries, rules
        finally:
            os.close(fd)

    def _left_out(self, parts: tuple[str, ...], rules: Rules, *, folder: bool) -> bool:
        name = parts[-1]
        if name.startswith(".") and not self.hidden:
            return True
        if folder and (any(fits(name) for fits in self._ignored) or f"/{'/'.join(parts)}".endswith(self._closed)):
            return True
        for depth, own in reversed(rules):
            verdict = gitignore.verdict(own, "/".join(parts[depth:]), folder=folder)
            if verdict is not None:
                if verdict:
                    return True
                break
        return not folder and bool(self._wanted) and not any(fits(name) for fits in self._wanted)

    def open(self, name: str) -> int:
        """Open a file found here for reading."""
        return beneath.open_beneath(self._root, os.fsencode(name).split(b"/"), _READ)[0]


def trouble(path: str, err: OSError) -> None:
    """Say what could not be read, in ripgrep's words."""
    raw = os.fsencode(path or ".").replace(b"\n", b"?")
    sys.stderr.buffer.write(b"walk: %s: %s (os error %d)\n" % (raw, os.strerror(err.errno or 0).encode(), err.errno or 0))


def _content(dir_fd: int, name: bytes, most: int) -> bytes | None:
    try:
        fd = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=dir_fd)
    except OSError:
        return None
    try:
        return os.pread(fd, most, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)


def text_of(fd: int, max_bytes: int) -> str | None:
    """Return a file's text as ripgrep sees it: UTF-16 by its mark, UTF-8 otherwise; None for a binary file.

    Raises:
        OSError: EFBIG above `max_bytes`.
    """
    size = os.fstat(fd).st_size
    if size > max_bytes:
        # Holes and binaries show at once; ripgrep would not search them either.
        if b"\0" in os.pread(fd, 65_536, 0):
            return None
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    chunks: list[bytes] = []
    at = 0
    while chunk := os.pread(fd, 1 << 20, at):
        chunks.append(chunk)
        at += len(chunk)
    data = b"".join(chunks)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
        return None if "\0" in text else text
    if b"\0" in data:
        return None
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")


class Found(NamedTuple):
    """A match: number of its first line, its lines, and where in them it begins and ends (characters)."""

    line: int
    text: str
    start: int
    end: int


class Search:
    """Finds a pattern in texts; the timer is wound up again whenever some lines are done."""

    def __init__(self, pattern: Pattern, stall: float) -> None:
        self._pattern, self._stall = pattern, stall
        self._narrow = re.compile(regex_subset.translate(pattern, ascii_only=True))
        self._wide: re.Pattern[str] | None = None

    def _regex(self, text: str) -> re.Pattern[str]:
        if text.isascii():
            return self._narrow
        if self._wide is None:
            self._wide = re.compile(regex_subset.translate(self._pattern))
        return self._wide

    def found(self, text: str) -> Iterator[Found]:
        """Yield the matches in order: one a matching line, or every one across lines."""
        return self._blocks(text) if self._pattern.multiline else self._lines(text)

    def _lines(self, text: str) -> Iterator[Found]:
        search: Callable[[str], re.Match[str] | None] = self._regex(text).search
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            if number % _LINES_PER_TIMER == 1:
                signal.setitimer(signal.ITIMER_REAL, self._stall)
            match = search(
                line.removesuffix("\r") if self._pattern.crlf and number < len(lines) + text.endswith("\n") else line
            )
            if match is not None:
                yield Found(number, f"{line}\n", match.start(), match.end())

    def _blocks(self, text: str) -> Iterator[Found]:
        signal.setitimer(signal.ITIMER_REAL, self._stall)
        line = at = 0
        for match in self._regex(text).finditer(text):
            signal.setitimer(signal.ITIMER_REAL, self._stall)
            line += text.count("\n", at, match.start())
            at = match.start()
            low = text.rfind("\n", 0, at) + 1
            high = text.find("\n", max(at, match.end() - 1))
            block = text[low : len(text) if high < 0 else high + 1]
            yield Found(line + 1, block, at - low, match.end() - low)


def main(argument: str) -> int:
    """Do the task (JSON: see `fallback`); results go to standard output, unreadable places to standard error.

    Returns:
        The exit code: 0, or 70 for a fault, which must not look like a search without matches.
    """
    try:
        _do(json.loads(argument))
        sys.stdout.flush()
    except Exception as err:  # noqa: BLE001 - the boundary of this process
        sys.stderr.write(f"{type(err).__name__}: {err}\n")
        return 70
    return 0


def _do(task: dict[str, Any]) -> None:
    if not task["pattern"]:
        _list(Walk(task))
        return
    search = Search(Pattern(*task["pattern"]), task["stall"])
    if task["mode"] == "matches":
        for fd, name in task["files"]:
            _tell_matches(search, fd, name, task)
    else:
        _count(search, task)


def _list(walk: Walk) -> None:
    for name in walk.files():
        sys.stdout.buffer.write(os.fsencode(name) + b"\0")


def _count(search: Search, task: dict[str, Any]) -> None:
    if task["files"]:
        for fd, name in task["files"]:
            _tell_count(search, fd, name, task["max_bytes"])
        return
    walk = Walk(task)
    for name in walk.files():
        try:
            fd = walk.open(name)
        except OSError as err:
            trouble(name, err)
            continue
        _tell_count(search, fd, name, task["max_bytes"])
        os.close(fd)


def _tell_count(search: Search, fd: int, name: str, max_bytes: int) -> None:
    try:
        text = text_of(fd, max_bytes)
    except OSError as err:
        trouble(name, err)
        return
    count = sum(1 for _ in search.found(text)) if text is not None else 0
    if count:
        sys.stdout.buffer.write(b"%s\0%d\n" % (os.fsencode(name), count))
        # What is known stands even when the next file's lines never end.
        sys.stdout.flush()


def _tell_matches(search: Search, fd: int, name: str, task: dict[str, Any]) -> None:
    try:
        text = text_of(fd, task["max_bytes"])
    except OSError:
        return
    for at, found in enumerate(search.found(text) if text is not None else ()):
        if at >= task["most"]:
            break
        span = {"start": _size(found.text[: found.start]), "end": _size(found.text[: found.end])}
        data = {"path": {"text": name}, "lines": _json_text(found.text), "line_number": found.line, "submatches": [span]}
        print(json.dumps({"type": "match", "data": data}, separators=(",", ":")))  # noqa: T201 - the result channel


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _json_text(text: str) -> dict[str, str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"bytes": base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()}
    return {"text": text}
