"""ripgrep, called so that nothing but our own arguments decides what it does.

The binary is that of the `ripgrep` wheel, beside the Python that runs; another one counts only outside the project. No
configuration file, no ignore file but `.gitignore`, no link followed, patterns behind `-e`, files as inherited descriptors.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from rye.errors import UsageError
from rye.toolkit.child import Command, name_of_fd
from rye.toolkit.workspace import IGNORED_DIRECTORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALWAYS = (
    "--no-config", "--no-follow", "--no-require-git", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot",
    "--no-ignore-parent", "--no-ignore-messages", "--color=never",
)  # fmt: skip
_PATTERN_TROUBLE = (
    rb"(?i)^rg: (regex parse error:|the literal |compiled regex exceeds|error parsing regex|regex could not be compiled)"
)
_WRAPPED = "(?:"


class View(NamedTuple):
    """Which files of a tree are looked at.

    Attributes:
        hidden: also those whose name, or a folder's below the start, begins with a dot.
        no_ignore: also what `.gitignore` files and the ignore list leave out.
        names: file name patterns of which one must fit; none for all files.
        inherited: lines of `.gitignore` files above the start, as if they stood in it.
        max_bytes: larger files are passed over; 0 for no limit.
        closed: folders, by the end of their paths, that are never looked at: our own line indexes, private keys.
    """

    hidden: bool = False
    no_ignore: bool = False
    names: tuple[str, ...] = ()
    inherited: tuple[str, ...] = ()
    max_bytes: int = 0
    closed: tuple[str, ...] = (".ai/cache", ".ai/keys")


class Pattern(NamedTuple):
    """What is searched for. `crlf`: a carriage return before a newline belongs to the line's end."""

    text: str
    ignore_case: bool = False
    literal: bool = False
    multiline: bool = False
    crlf: bool = True


def locate(project: os.stat_result) -> str | None:
    """Return the absolute path of the binary, or None; one found by PATH must lie outside the project."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "rg")
    if os.access(beside, os.X_OK):
        return beside
    import shutil
    import sysconfig

    scripts = os.path.join(sysconfig.get_path("scripts"), "rg")
    if os.access(scripts, os.X_OK):
        return scripts
    found = shutil.which("rg")
    return found if found and os.path.isabs(found) and _outside(found, project) else None


def _outside(file: str, project: os.stat_result) -> bool:
    folder = os.path.dirname(os.path.realpath(file))
    while True:
        info = os.stat(folder)
        if (info.st_dev, info.st_ino) == (project.st_dev, project.st_ino):
            return False
        above = os.path.dirname(folder)
        if above == folder:
            return True
        folder = above


class Ripgrep:
    """Builds the commands of the three passes, and reads what went wrong."""

    name = "ripgrep"

    def __init__(self, binary: str) -> None:
        self._binary = binary

    def files(self, view: View, rules_fd: int | None = None) -> Command:
        """List files: records that end in NUL."""
        return self._command(["--files", "--null", *_of_view(view, rules_fd)], rules_fd)

    def counts(self, pattern: Pattern, view: View, rules_fd: int | None = None) -> Command:
        """Count each file's matches: `name NUL count` a line."""
        return self._command([_counting(pattern), *_of_pattern(pattern), *_of_view(view, rules_fd)], rules_fd)

    def counts_in(self, pattern: Pattern, fd: int) -> Command:
        """Count the matches of one file, given as a descriptor."""
        return Command([*self._base(), _counting(pattern), *_of_pattern(pattern), "--", name_of_fd(fd)], (fd,))

    def matches(self, pattern: Pattern, fds: Sequence[int], most: int) -> Command:
        """Find the first `most` matching lines of each file, given as descriptors: JSON lines."""
        # In multiline mode ripgrep counts blocks of lines, not matches.
        limit = [] if pattern.multiline else [f"--max-count={most}"]
        argv = [*self._base(), "--json", *limit, *_of_pattern(pattern), "--", *map(name_of_fd, fds)]
        return Command(argv, tuple(fds))

    def check(self, pattern: Pattern) -> Command:
        """Compile the pattern and search nothing."""
        return Command([*self._base(), "--quiet", *_of_pattern(pattern), "--", os.devnull])

    def _base(self) -> list[str | bytes]:
        return [self._binary, *_ALWAYS]

    def _command(self, options: list[str], rules_fd: int | None) -> Command:
        # Without a path it searches where it stands: its standard input is nothing that could be read.
        return Command([*self._base(), *options], () if rules_fd is None else (rules_fd,))

    def refusal(self, pattern: Pattern, said: bytes) -> UsageError | None:
        """Return the error of a pattern that was not accepted, or None when `said` is about something else."""
        if not re.match(_PATTERN_TROUBLE, said):
            return None
        return bad_pattern(pattern.text, _cleaned(said.decode("utf-8", "replace").removeprefix("rg: ")))


def bad_pattern(text: str, said: str) -> UsageError:
    """Return the refusal of a search pattern, with what the engine said of it."""
    hint = "Mend the pattern, or give literal=true to search for the text as it stands."
    if '"\\n" is not allowed' in said:
        said = "the pattern contains a newline, and lines are searched one at a time"
        hint = "Give multiline=true to match across lines."
    return UsageError("bad_pattern", f"Bad pattern {text[:200]!r}: {said}.", hint)


def _cleaned(said: str) -> str:
    """Take away the group that ripgrep puts around a pattern, so that the caret stands under the caller's own text."""
    lines = [line for line in said.rstrip().split("\n") if line.strip()]
    shown: list[str] = []
    for line in lines:
        if line.startswith(f"    {_WRAPPED}") and line.endswith(")"):
            shown.append(f"    {line[7:-1]}")
        else:
            # A group that is not closed is the outermost, which is not the caller's: the caret then stands at the beginning.
            shown.append(f"    {line[7:] or '^'}" if line.strip(" ^") == "" else line)
    return "\n".join(shown).rstrip(".")


def _of_view(view: View, rules_fd: int | None) -> list[str]:
    options = ["--hidden"] if view.hidden else []
    options += [f"--glob=!**/{path}/" for path in view.closed]
    if view.no_ignore:
        options.append("--no-ignore")
    else:
        options += [f"--glob=!{name}/" for name in IGNORED_DIRECTORIES]
        if rules_fd is not None:
            options.append(f"--ignore-file={name_of_fd(rules_fd)}")
    if view.max_bytes:
        options.append(f"--max-filesize={view.max_bytes}")
    if view.names:
        options += [f"--type-add=wanted:{name}" for name in view.names]
        options.append("--type=wanted")
    return options


def _counting(pattern: Pattern) -> str:
    """Lines are counted, or matches where they may span lines (what `--count` means there depends on the pattern)."""
    return "--count-matches" if pattern.multiline else "--count"


def _of_pattern(pattern: Pattern) -> list[str]:
    flags = {
        "--ignore-case": pattern.ignore_case, "--fixed-strings": pattern.literal, "--multiline": pattern.multiline,
        "--crlf": pattern.crlf,
    }  # fmt: skip
    # Mapped files that are cut short meanwhile would kill the process.
    return ["--null", "--with-filename", "--no-mmap", *(flag for flag, on in flags.items() if on), f"--regexp={pattern.text}"]
