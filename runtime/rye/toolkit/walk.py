"""Searching the files below a folder of the project, by ripgrep or without it.

A `Tree` holds the folder open; the searching child starts in that very folder. What a child says are names, counts and line
numbers. Nothing of it reaches a result before the file was opened beneath the root here: a link put in the way of a running
search can change how much is found, never what is shown.

Names are relative to the folder, as text in which bytes that are not UTF-8 are lone surrogates (`os.fsdecode`).
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rye.errors import RyeError, UsageError, WorkspaceError
from rye.toolkit import beneath, gitignore, names, ripgrep, users_own
from rye.toolkit.child import Child, Command, name_of_fd, scratch_file, split_records
from rye.toolkit.output import deadline
from rye.toolkit.rows import Hit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rye.toolkit.ripgrep import Pattern, View
    from rye.toolkit.workspace import Workspace

MAX_SECONDS = 30.0
"""A search ends after so long, and says that it did."""

MAX_MEMORY = 2 << 30
"""Address space of the searching child (bytes)."""

_SPARE = 0.3
_TROUBLE = rb"^(?:rg|walk): (?:\./)?(.*): (.*) \(os error \d+\)$"
# What ripgrep says where every file is left out.
_NO_FILES = b"rg: No files were searched"
_FD = re.compile(rb'^\{"type":"(begin|match|end)","data":\{"path":\{"text":"[^"]*/(\d+)"\}')
_TROUBLES_SHOWN = 20


class Trouble(NamedTuple):
    """A place that could not be searched, and why."""

    path: str
    reason: str


class Engine(Protocol):
    """What a searching program is asked; see `Ripgrep`."""

    name: str

    def files(self, view: View, rules_fd: int | None = None) -> Command:
        """List files: records that end in NUL."""
        ...

    def counts(self, pattern: Pattern, view: View, rules_fd: int | None = None) -> Command:
        """Count matches: `name NUL count` a line."""
        ...

    def counts_in(self, pattern: Pattern, fd: int) -> Command:
        """Count the matches of one open file."""
        ...

    def matches(self, pattern: Pattern, fds: Sequence[int], most: int) -> Command:
        """Find the first matches in each of some open files: JSON lines."""
        ...

    def check(self, pattern: Pattern) -> Command:
        """Try the pattern on nothing."""
        ...

    def refusal(self, pattern: Pattern, said: bytes) -> UsageError | None:
        """Return the error that `said` is about the pattern, if it is."""
        ...


class OutOfMemoryError(RyeError):
    """The child wanted more memory than it may have: a line is too long."""


class Tree:
    """A folder, or a single file, held open to be searched.

    Attributes:
        parts: its physical path below the root.
        is_file: whether it is a single file.
        troubles: places that could not be read, the first ones.
        trouble_count: how many there were.
        timed_out: whether a search ended for want of time.
    """

    def __init__(self, ws: Workspace, fd: int, parts: beneath.Parts, engine: Engine, *, is_file: bool) -> None:
        """See `held`."""
        self.ws, self.fd, self.parts, self.is_file = ws, fd, parts, is_file
        self.engine = engine
        self.troubles: list[Trouble] = []
        self.trouble_count = 0
        self.timed_out = False

    def path_of(self, name: str) -> beneath.Parts:
        """Return the project-relative components of a name found here."""
        return (*self.parts, *os.fsencode(name).split(b"/")) if name else self.parts

    def shown(self, name: str) -> str:
        """Return the project-relative path of a name found here, as it stands in results."""
        return names.show(b"/".join(self.path_of(name)))

    @property
    def shown_base(self) -> str:
        """Return the folder's own path as it stands in results; `.` for the root."""
        return names.show(b"/".join(self.parts)) or "."

    def stands(self, name: str) -> bool:
        """Tell whether a regular file stands at `name`, through no link: asked of all that is shown."""
        parts = tuple(os.fsencode(name).split(b"/"))
        try:
            fd, physical = beneath.open_beneath(self.fd, parts, beneath.O_PATH)
        except OSError:
            return False
        try:
            return physical == parts and stat.S_ISREG(os.fstat(fd).st_mode)
        finally:
            os.close(fd)

    def files(self, view: View) -> Iterator[list[str]]:
        """Yield the names of regular files, some at a time, in no order.

        Raises:
            WorkspaceError: `search_failed`.
            DeadlineError: the call's time is up before it began.
        """
        with _rules(view) as rules_fd:
            for records in self._records(self.engine.files(view, rules_fd), None, b"\0"):
                yield _seen(os.fsdecode(b"\0".join(records)).split("\0"), view)

    def counts(self, pattern: Pattern, view: View) -> Iterator[list[tuple[str, int]]]:
        """Yield (name, number of matches) of files with any, some at a time, in no order.

        Raises:
            UsageError: `bad_pattern`, `pattern_too_slow`.
            WorkspaceError: `search_failed`.
        """
        with _rules(view) as rules_fd:
            yield from self._counts(self.engine.counts(pattern, view, rules_fd), pattern, view)

    def _counts(self, command: Command, pattern: Pattern, view: View) -> Iterator[list[tuple[str, int]]]:
        """Cut `name NUL count LF name NUL …` at the NULs: names may hold newlines, counts do not."""
        name: str | None = None
        for records in self._records(command, pattern, b"\0", ending=b"\0"):
            found: list[tuple[str, int]] = []
            for record in os.fsdecode(b"\0".join(records)).split("\0"):
                count, newline, following = record.partition("\n") if name is not None else ("", "\n", record)
                if name is not None and newline:
                    found.append((name, int(count)))
                name = following
            kept = set(_seen([one for one, _ in found], view))
            yield [one for one in found if one[0] in kept]

    def count(self, pattern: Pattern) -> int:
        """Return the number of matches in the file that this tree is. Errors as `counts`."""
        found = [count for some in self._counts(self.engine.counts_in(pattern, self.fd), pattern, _ALL) for _, count in some]
        return sum(found)

    def hits(self, pattern: Pattern, fds: Sequence[int], most: int) -> dict[int, list[Hit]]:
        """Return the first `most` matches (or more) in each of some open files, by descriptor.

        A file with a line too long to be handed over has what came before it. Errors as `counts`.
        """
        found: dict[int, list[Hit]] = {fd: [] for fd in fds}
        for records in self._records(self.engine.matches(pattern, fds, most), pattern, b"\n"):
            for record in records:
                head = _FD.match(record)
                if head is not None and head[1] == b"match":
                    hits = found[int(head[2])]
                    if len(hits) < most:
                        hits += _hits(record, multiline=pattern.multiline)
        return found

    def _records(self, command: Command, pattern: Pattern | None, end: bytes, ending: bytes = b"") -> Iterator[list[bytes]]:
        """Run a command and yield its records; judge what it said when it is over."""
        limit = deadline()
        limit.check()
        with Child(command, self.fd_for_child(), min(MAX_SECONDS, limit.remaining() - _SPARE), MAX_MEMORY) as child:
            yield from split_records(_with_ending(child, ending), end)
            self.timed_out |= child.timed_out
            code, said = child.end(), child.said()
        self._judge(code, said, pattern)

    def fd_for_child(self) -> int:
        """Return the directory a child starts in."""
        return self.ws.fd if self.is_file else self.fd

    def _judge(self, code: int, said: bytes, pattern: Pattern | None) -> None:
        if self.timed_out or code in (0, 1) or said.startswith(_NO_FILES):
            self._note(said)
            return
        if code == -signal.SIGALRM and pattern is not None:
            from rye.toolkit import fallback

            raise fallback.too_slow(pattern)
        if code < 0:
            raise OutOfMemoryError("search_failed", "The search needed more memory than it may have.")
        refusal = self.engine.refusal(pattern, said) if pattern is not None else None
        if refusal is not None:
            raise refusal
        # Two: not all went well; more: it ended before its time.
        if not self._note(said) or code > 2:
            self._fail(said, pattern)

    def _fail(self, said: bytes, pattern: Pattern | None) -> None:
        words = said.decode("utf-8", "replace").strip().removeprefix("rg: ")[:500]
        if pattern is not None:
            with Child(self.engine.check(pattern), self.ws.fd, MAX_SECONDS) as child:
                list(child.blocks())
                if child.end() == 2:
                    raise ripgrep.bad_pattern(pattern.text, words)
        raise WorkspaceError(
            "search_failed", f"The search failed: {words or 'no reason given'}.", "Try again, or a smaller path."
        )

    def _note(self, said: bytes) -> int:
        """Keep the places that the child could not read; return how many it named."""
        named = [match for line in said.split(b"\n") if line and (match := re.match(_TROUBLE, line))]
        self.trouble_count += len(named)
        for match in named[: max(0, _TROUBLES_SHOWN - len(self.troubles))]:
            path = self.shown(os.fsdecode(match[1]))
            self.troubles.append(
                Trouble(path if len(path) <= 200 else f"{path[:100]}…{path[-99:]}", match[2].decode("utf-8", "replace"))
            )
        return len(named)


_ALL = ripgrep.View(hidden=True, no_ignore=True)


def _with_ending(child: Child, ending: bytes) -> Iterator[bytes]:
    yield from child.blocks()
    yield ending


def _seen(found: list[str], view: View) -> list[str]:
    """Drop hidden names: ripgrep shows those that a file name pattern or a `.gitignore` takes back."""
    if view.hidden:
        return found
    return [name for name in found if "/." not in name and name[:1] != "."]


def _hits(record: bytes, *, multiline: bool) -> list[Hit]:
    try:
        data = json.loads(record)["data"]
    except ValueError:
        # Cut by `split_records`: a line of megabytes.
        return []
    text = data["lines"]["text"].encode() if "text" in data["lines"] else base64.b64decode(data["lines"]["bytes"])
    line = data["line_number"]
    if not multiline:
        start = data["submatches"][0]["start"] if data["submatches"] else 0
        return [Hit(line, line, start, text)]
    return [_block_hit(text, line, match["start"], match["end"]) for match in data["submatches"]]


def _block_hit(text: bytes, line: int, start: int, end: int) -> Hit:
    """Return one match of a block of lines: the lines it touches, and where in them it begins."""
    low = text.rfind(b"\n", 0, start) + 1
    high = text.find(b"\n", max(start, end - 1))
    first = line + text.count(b"\n", 0, start)
    last = first + text.count(b"\n", start, max(start, end - 1))
    return Hit(first, last, start - low, text[low : len(text) if high < 0 else high + 1])


@contextmanager
def _rules(view: View) -> Iterator[int | None]:
    """Hold inherited rules in a nameless file that a child can open."""
    if not view.inherited or view.no_ignore:
        yield None
        return
    with scratch_file() as file:
        file.write("\n".join(view.inherited).encode("utf-8", "surrogateescape"))
        file.flush()
        file.seek(0)
        yield file.fileno()


@contextmanager
def held(ws: Workspace, path: str, engine: Engine | None = None) -> Iterator[Tree]:
    """Hold the folder or regular file that `path` names, for searching.

    Raises:
        WorkspaceError: as `Workspace.open_file`, but for a folder.
    """
    deadline().check()
    parts = ws.components(path)
    try:
        fd, physical = beneath.open_beneath(ws.fd, parts, beneath.O_PATH)
    except OSError as err:
        raise ws.refusal(err, path) from None
    try:
        info = os.fstat(fd)
        users_own.refuse_keys_folder(info, physical)
        if stat.S_ISDIR(info.st_mode):
            yield Tree(ws, fd, physical, engine or found_engine(ws), is_file=False)
            return
    finally:
        os.close(fd)
    with ws.file(path) as file:
        yield Tree(ws, file.fd, file.parts, engine or found_engine(ws), is_file=True)


def found_engine(ws: Workspace) -> Engine:
    """Return ripgrep where it is found, else the search in Python."""
    binary = ripgrep.locate(os.fstat(ws.fd))
    if binary:
        return ripgrep.Ripgrep(binary)
    from rye.toolkit import fallback

    return fallback.Fallback()


def inherited(tree: Tree) -> tuple[str, ...]:
    """Return the rules of the `.gitignore` files above the tree, up to the root, as lines of a file in it."""
    lines: list[str] = []
    below = [os.fsdecode(part) for part in tree.parts]
    for depth in range(len(below)):
        data = _gitignore(tree.ws, tree.parts[:depth])
        if data:
            lines += gitignore.carried(gitignore.parse(data), below[depth:])
    return tuple(lines)


def closed(tree: Tree) -> tuple[str, ...]:
    """Return the ends of paths, as seen from the tree, that are never searched: line indexes, and private keys."""
    within = tree.parts[-1:] == (b".ai",) or users_own.is_own_folder(os.fstat(tree.fd))
    return (".ai/cache", ".ai/keys", *(("cache", "keys") if within else ()))


def _gitignore(ws: Workspace, folder: Iterable[bytes]) -> bytes:
    try:
        fd, _ = beneath.open_beneath(ws.fd, (*folder, b".gitignore"), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return b""
    try:
        return os.pread(fd, gitignore.MAX_BYTES, 0) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)


__all__ = [
    "MAX_SECONDS",
    "Engine",
    "OutOfMemoryError",
    "Tree",
    "Trouble",
    "closed",
    "found_engine",
    "held",
    "inherited",
    "name_of_fd",
]  # fmt: skip
