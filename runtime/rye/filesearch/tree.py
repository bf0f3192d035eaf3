"""A folder of the project, opened once and searched by ripgrep (or `fallback`) in a child process.

The child starts in that very folder. It reports names, counts and line numbers. None of that reaches a result before the file
was opened beneath the root here: a link put in the way of a running search can change how much is found, never what is shown.

What a search says when it found too much is made here, too: how many in which folders, and what to add.

Names are relative to the folder, as text in which bytes that are not UTF-8 are lone surrogates (`os.fsdecode`).
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, takewhile
from typing import Any, Final, NamedTuple

from rye.call.context import advice, check_deadline, deadline
from rye.call.results import first_few, ok, parameter_text
from rye.errors import WorkspaceError
from rye.filesearch import gitignore, globs, ripgrep
from rye.filesearch.globs import bad_glob
from rye.filesearch.ripgrep import Pattern, SearchScope
from rye.fs import atomic, beneath, names
from rye.fs.atomic import closing
from rye.line_ids.render import Hit
from rye.process.child import Child, Command, name_of_fd, scratch_file, split_records
from rye.workspace import protected_paths
from rye.workspace.repositories import IGNORED_DIRECTORIES
from rye.workspace.workspace import Workspace

MAX_SECONDS = 30.0
"""A search ends after this time, and its answer says so."""

MAX_MEMORY = 2 << 30
"""Address space of the searching child (bytes)."""

_SPARE = 0.3
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_TROUBLE = rb"^rg: (?:\./)?(.*): (.*) \(os error \d+\)$"
# What ripgrep prints if every file is left out.
_NO_FILES = b"rg: No files were searched"
_FD = re.compile(rb'^\{"type":"(begin|match|end)","data":\{"path":\{"text":"[^"]*/(\d+)"\}')
_TROUBLES_SHOWN = 20
_ALL = ripgrep.SearchScope(hidden=True, no_ignore=True)


class Trouble(NamedTuple):
    """A place that could not be searched, and why."""

    path: str
    reason: str


class SearchTree:
    """An open folder, or a single open file, to be searched.

    Attributes:
        parts: its physical path below the root.
        is_file: whether it is a single file.
        program: the searching program.
        troubles: places that could not be read, the first ones.
        trouble_count: how many there were.
        timed_out: whether a search ended for want of time.
    """

    def __init__(self, ws: Workspace, fd: int, parts: beneath.Parts, program: ripgrep.Ripgrep, *, is_file: bool) -> None:
        """See `opened`."""
        self.ws, self.fd, self.parts, self.is_file = ws, fd, parts, is_file
        self.program = program
        self.troubles: list[Trouble] = []
        self.trouble_count = 0
        self.timed_out = False

    def path_of(self, name: str) -> beneath.Parts:
        """Return the project-relative components of a name found here."""
        return (*self.parts, *os.fsencode(name).split(b"/")) if name else self.parts

    def shown(self, name: str) -> str:
        """Return the project-relative path of a name found here, as results show it."""
        return names.show(b"/".join(self.path_of(name)))

    @property
    def shown_base(self) -> str:
        """Return the folder's own path as results show it; `.` for the root."""
        return names.show(b"/".join(self.parts)) or "."

    def file(self, name: str, flags: int) -> int | None:
        """Open a regular file that was found; None where none is there, or it is reached through a link."""
        parts = tuple(os.fsencode(name).split(b"/"))
        try:
            fd, physical = beneath.open_beneath(self.fd, parts, flags)
        except OSError:
            return None
        # A different physical path: a link took the place of the file, or of a folder, after the search saw it.
        if physical == parts and stat.S_ISREG(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        return None

    def exists(self, name: str) -> bool:
        """Tell whether there is such a file at `name`: checked for each name that is shown."""
        fd = self.file(name, os.O_PATH)
        if fd is not None:
            os.close(fd)
        return fd is not None

    def files(self, view: SearchScope) -> Iterator[list[bytes]]:
        """Yield the names of regular files, as the file system has them, some at a time, in no order.

        Raises:
            WorkspaceError: `search_failed`.
            DeadlineError: the call's time is up before it began.
        """
        with _rules(view) as rules_fd:
            for records in self._records(self.program.files(view, rules_fd), None, b"\0", view=view):
                yield _seen(records, view)

    def counts(self, pattern: Pattern, view: SearchScope) -> Iterator[list[tuple[str, int]]]:
        """Yield (name, number of matches) of files with any, some at a time, in no order.

        Raises:
            UsageError: `bad_pattern`, `pattern_too_slow`.
            WorkspaceError: `search_failed`.
        """
        with _rules(view) as rules_fd:
            yield from self._counts(self.program.counts(pattern, view, rules_fd), pattern, view)

    def _counts(self, command: Command, pattern: Pattern, view: SearchScope) -> Iterator[list[tuple[str, int]]]:
        """Cut `name NUL count LF name NUL …` at the NULs: names may contain newlines, counts do not."""
        name: str | None = None
        for records in self._records(command, pattern, b"\0", ending=b"\0", view=view):
            found: list[tuple[str, int]] = []
            for record in os.fsdecode(b"\0".join(records)).split("\0"):
                count, newline, following = record.partition("\n") if name is not None else ("", "\n", record)
                if name is not None and newline:
                    found.append((name, int(count)))
                name = following
            yield [one for one in found if view.hidden or "/." not in f"/{one[0]}"]

    def count(self, pattern: Pattern) -> int:
        """Return the number of matches in the file that this tree is. Errors as `counts`."""
        found = [count for some in self._counts(self.program.counts_in(pattern, self.fd), pattern, _ALL) for _, count in some]
        return sum(found)

    def hits(self, pattern: Pattern, fds: Sequence[int], most: int) -> dict[int, list[Hit]]:
        """Return the first `most` matches (or more) in each of some open files, by descriptor.

        A file with a line too long to be handed over has what came before it. Errors as `counts`.
        """
        found: dict[int, list[Hit]] = {fd: [] for fd in fds}
        for records in self._records(self.program.matches(pattern, fds, most), pattern, b"\n"):
            for record in records:
                head = _FD.match(record)
                # Other records say where a file begins and ends.
                if head is not None and head[1] == b"match":
                    hits = found[int(head[2])]
                    if len(hits) < most:
                        hits += _hits(record, multiline=pattern.multiline)
        return found

    def _records(
        self, command: Command, pattern: Pattern | None, end: bytes, *, ending: bytes = b"", view: SearchScope = _ALL
    ) -> Iterator[list[bytes]]:
        """Run a command and yield its records; check its exit code and messages at the end."""
        limit = deadline()
        # The call's own deadline may leave less time than a search may take.
        limit.check()
        folder, seconds = self.ws.fd if self.is_file else self.fd, min(MAX_SECONDS, limit.remaining() - _SPARE)
        with Child(command, folder, seconds, MAX_MEMORY) as child:
            yield from split_records(chain(child.blocks(partial(self._refuse_pipes, view)), [ending]), end)
            self.timed_out |= child.timed_out
            code, stderr = child.end(), child.stderr()
        self._judge(code, stderr, pattern)

    def _refuse_pipes(self, view: SearchScope) -> None:
        """Refuse a search that ripgrep does not end, as it waits at a `.gitignore`. Raises WorkspaceError `search_failed`."""
        top, pending = name_of_fd(self.fd), [] if view.no_ignore else [""]
        while pending:
            check_deadline()
            folder = pending.pop()
            with suppress(OSError), os.scandir(f"{top}/{folder}") as entries:
                for one in entries:
                    if one.is_dir(follow_symlinks=False):
                        is_searched = (view.hidden or one.name[:1] != ".") and one.name not in IGNORED_DIRECTORIES
                        pending += [f"{folder}{one.name}/"] if is_searched else []
                    elif one.name == ".gitignore" and not one.is_file() and os.path.exists(one):
                        why = f"{self.shown(folder + one.name)} is no regular file, and the search waits for it."
                        hint = advice("no_ignore", f"Remove it, or give {parameter_text(no_ignore=True)}.", "Remove it.")
                        raise WorkspaceError("search_failed", why, hint)

    def _judge(self, code: int, stderr: bytes, pattern: Pattern | None) -> None:
        # First: where the host reaps all children itself, no exit code is known.
        refusal = ripgrep.refusal(pattern, stderr) if pattern is not None else None
        if refusal is not None:
            raise refusal
        # 1 means no match. A child that we ended has no exit code of its own to judge.
        if self.timed_out or code in (0, 1) or stderr.startswith(_NO_FILES):
            self._note(stderr)
            return
        # The search in Python ends itself so when `re` makes no progress.
        if code == -signal.SIGALRM and pattern is not None:
            raise ripgrep.too_slow(pattern)
        # Killed by the memory limit.
        if code < 0:
            why = "The search needed more memory than it may have: a line, or a .gitignore that leads to a device, has no end."
            hint = advice("no_ignore", f"Give {parameter_text(no_ignore=True)}, or a smaller path.", "Search a smaller folder.")
            raise WorkspaceError("search_failed", why, hint)
        # Exit code 2: some places failed; above: it ended early.
        if not self._note(stderr) or code > 2:
            words = stderr.decode("utf-8", "replace").strip().removeprefix("rg: ")[:500]
            what = f"The search failed: {words or 'no reason given'}."
            raise WorkspaceError("search_failed", what, "Try again, or a smaller path.")

    def _note(self, stderr: bytes) -> int:
        """Record the places that the child could not read; return how many it named."""
        named = [match for line in stderr.split(b"\n") if line and (match := re.match(_TROUBLE, line))]
        self.trouble_count += len(named)
        # All are counted, few are stored: a project may have thousands of unreadable folders.
        for match in named[: max(0, _TROUBLES_SHOWN - len(self.troubles))]:
            path = self.shown(os.fsdecode(match[1]))
            self.troubles.append(
                Trouble(path if len(path) <= 200 else f"{path[:100]}…{path[-99:]}", match[2].decode("utf-8", "replace"))
            )
        return len(named)


def _seen(found: list[bytes], view: SearchScope) -> list[bytes]:
    """Drop hidden names: ripgrep shows those that a file name pattern or a `.gitignore` takes back."""
    # Looked for in all at once: there are tens of thousands of names, and hardly ever a hidden one.
    together = b"\0".join([b"", *found])
    if view.hidden or (b"/." not in together and b"\0." not in together):
        return found
    return [name for name in found if b"/." not in name and name[:1] != b"."]


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
    # A block may hold several matches; each is shown with its own lines only.
    low = text.rfind(b"\n", 0, start) + 1
    high = text.find(b"\n", max(start, end - 1))
    first = line + text.count(b"\n", 0, start)
    last = first + text.count(b"\n", start, max(start, end - 1))
    return Hit(first, last, start - low, text[low : len(text) if high < 0 else high + 1])


@contextmanager
def _rules(view: SearchScope) -> Iterator[int | None]:
    """Write inherited rules to a file without a name that a child can open."""
    if not view.inherited or view.no_ignore:
        yield None
        return
    with scratch_file() as file:
        file.write(b"\n".join(view.inherited))
        file.flush()
        # The child reads through the same open file, so the position is shared.
        file.seek(0)
        yield file.fileno()


@contextmanager
def opened(ws: Workspace, path: str) -> Iterator[SearchTree]:
    """Open the folder or regular file that `path` names, for searching.

    Raises:
        WorkspaceError: as `Workspace.open_file`, but for a folder.
    """
    check_deadline()
    parts = ws.components(path)
    try:
        fd, physical = beneath.open_beneath(ws.fd, parts, os.O_PATH)
    except OSError as err:
        raise ws.refusal(err, path) from None
    with closing(fd):
        info = os.fstat(fd)
        # Judged on the open descriptor: the path could be exchanged after a check by name.
        protected_paths.refuse_keys_folder(info, physical)
        if stat.S_ISDIR(info.st_mode):
            yield SearchTree(ws, fd, physical, ripgrep.Ripgrep(ripgrep.locate(os.fstat(ws.fd))), is_file=False)
            return
    with ws.file(path) as file:
        yield SearchTree(ws, file.fd, file.parts, ripgrep.Ripgrep(ripgrep.locate(os.fstat(ws.fd))), is_file=True)


def scope(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return which files a tool's parameters ask for, and which part of what is found, as a query takes them."""
    return {name: params[name] for name in ("hidden", "no_ignore", "limit", "offset") if name in params}


def view_of(tree: SearchTree, *, hidden: bool, no_ignore: bool) -> SearchScope:
    """Return which files of a tree are searched, with the ignore rules of the folders above it."""
    rules = () if no_ignore else _inherited(tree)
    # Never searched, as ends of paths seen from the tree: line indexes, and private keys.
    within = tree.parts[-1:] == (b".ai",) or protected_paths.is_own_folder(os.fstat(tree.fd))
    closed = (".ai/cache", ".ai/keys", *(("cache", "keys") if within else ()))
    return ripgrep.SearchScope(hidden, no_ignore, inherited=rules, closed=closed)


def _inherited(tree: SearchTree) -> tuple[bytes, ...]:
    """Return the rules of the `.gitignore` files above the tree, up to the root, as lines of a file in it."""
    lines: list[bytes] = []
    for depth in range(len(tree.parts)):
        # One that cannot be read, or is no regular file, ignores nothing.
        with suppress(OSError):
            fd, _ = beneath.open_beneath(tree.ws.fd, (*tree.parts[:depth], b".gitignore"), _READ)
            rules = gitignore.parse(atomic.read_open(fd, gitignore.MAX_BYTES, b".gitignore")[0])
            lines += gitignore.rules_below(rules, tree.parts[depth:])
    return tuple(lines)


def glob_text(glob: str) -> str:
    r"""Return a pattern as it is matched: `\xHH` means a byte, as in names that results show; `*.c, *.h` is `{*.c,*.h}`.

    Raises:
        UsageError: `bad_glob`.
    """
    try:
        raw = names.parse(glob)
    except UnicodeEncodeError:
        raise bad_glob(
            glob.encode("utf-8", "replace").decode(), "it contains a lone surrogate, which no file name contains"
        ) from None
    if not raw or b"\0" in raw:
        raise bad_glob(glob, "it contains a NUL character" if raw else "it is empty")
    text = os.fsdecode(raw).removeprefix("./")
    several = [one.strip() for one in text.split(",")]
    if any(one.startswith("!") for one in several):
        raise bad_glob(glob, "no pattern leaves files out; name those that are wanted")
    is_list = len(several) > 1 and "{" not in text and all("*" in one for one in several)
    return f"{{{','.join(several)}}}" if is_list else text


def fits(glob: str) -> Callable[[str], object]:
    """Return the test of a glob's text; a name that results show fits itself, whatever it means as a pattern (`[id].tsx`).

    Raises:
        UsageError: `bad_glob`.
    """
    matches = globs.compiled(glob)
    return lambda name: matches(name) or name == glob


def troubles(tree: SearchTree) -> list[str]:
    """Return the notices about places that could not be read, and about time that ran out."""
    out = []
    if tree.trouble_count:
        named = [f"{path} ({reason})" for path, reason in tree.troubles]
        out.append(f"[not readable: {first_few(named, total=tree.trouble_count)}]")
    if tree.timed_out:
        further = advice("no_ignore", f", or give {parameter_text(no_ignore=True)}")
        out.append(
            "[the time ran out: this is what was found until then, in no particular order; "
            f"narrow the folder or the pattern{further}]"
        )
    return out


def lifting(effect: str, *, hidden: bool, no_ignore: bool) -> str:
    """Say which of the parameters that are not given would have which effect on a search; empty where none would."""
    flags = (("hidden", hidden), ("no_ignore", no_ignore))
    hints = [word for name, on in flags if not on and (word := advice(name, parameter_text(**{name: True})))]
    return f"; {' and '.join(hints)} would {effect}" if hints else ""


def answer(tree: SearchTree, lines: Sequence[str], cut: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return what was found as a tool's result, with the troubles as fields; `cut` is as `results.left_out` returns it."""
    if tree.trouble_count:
        fields["unreadable"] = [{"path": path, "reason": reason} for path, reason in tree.troubles]
        fields["unreadable_count"] = tree.trouble_count
    if tree.timed_out:
        fields |= {"timed_out": True}
    return ok("\n".join(lines), **fields, **{**cut, "truncated": cut["truncated"] or tree.timed_out})


_SHOWN: Final = 6
_MANY: Final = 100


class Folders:
    """Counts hits and files by the folder that they lie in."""

    def __init__(self) -> None:
        self._hits: Counter[str] = Counter()
        self._files: Counter[str] = Counter()
        self.total = 0

    def add(self, name: str, hits: int = 1) -> None:
        """Count the hits of one file, named from the folder that is searched."""
        folder = name.rpartition("/")[0]
        self._hits[folder] += hits
        self._files[folder] += 1
        self.total += hits

    def add_files(self, names: Sequence[str]) -> None:
        """Count files, each of which is a hit."""
        self._hits.update([name.rpartition("/")[0] for name in names])
        self.total += len(names)

    def spread(self, base: str) -> str:
        """Return the folders with the most hits, at the first depth that tells them apart; empty where all lie in one.

        Args:
            base: the searched folder as it is shown, before which nothing is put where it is `.`.
        """
        parts = {folder: folder.split("/") if folder else [] for folder in self._hits}
        first, last = min(parts.values(), default=[]), max(parts.values(), default=[])
        depth = 1 + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
        hits: Counter[str] = Counter()
        files: Counter[str] = Counter()
        for folder, steps in parts.items():
            above = "/".join([*steps[:depth], ""]) or "./"
            hits[above] += self._hits[folder]
            files[above] += self._files[folder]
        if len(hits) < 2:
            return ""
        prefix = "" if base in (".", "") else f"{base.rstrip('/')}/"
        # The most first; by name among equals, so that the same search says the same.
        most = sorted(hits.items(), key=lambda one: (-one[1], one[0]))
        shown = [_spelled(prefix, folder, count, files[folder]) for folder, count in most[:_SHOWN]]
        more = f", {len(most) - _SHOWN} more folders" if len(most) > _SHOWN else ""
        return f"{', '.join(shown)}{more}"


def _spelled(prefix: str, folder: str, count: int, files: int) -> str:
    where = f"{prefix}{folder}" if folder != "./" else (prefix or folder)
    return f"{where} {count:,}" + (f" in {files:,} files" if files > 1 else "")


def too_many(folders: Folders, base: str, options: Mapping[str, object]) -> tuple[str, str]:
    """Return in which folders the hits of a search are, and what would narrow it, in the words of a notice or empty.

    Args:
        folders: the hits by folder.
        base: the searched folder as it is shown.
        options: the parameters that narrow the search, and what was given for each; those not given are named.
    """
    spread = folders.spread(base)
    words = [name for name, given in options.items() if not given]
    # In one folder a few hits more are no reason for advice.
    advised = words and (spread or folders.total >= _MANY)
    return f" ({spread})" if spread else "", f", or narrow it with {' or '.join(words)}" if advised else ""
