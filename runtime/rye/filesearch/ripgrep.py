"""ripgrep's command lines, written so that nothing but these arguments decides what it does.

The binary is that of the `ripgrep` wheel, beside the Python that runs; another one counts only outside the project. No
configuration file, no ignore file but `.gitignore`, no link followed, files as inherited descriptors.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from rye.call.context import advice
from rye.call.results import parameter_text
from rye.config import user_dirs
from rye.errors import UsageError
from rye.process.child import Command, name_of_fd, own_module, program_on_path
from rye.workspace.repositories import IGNORED_DIRECTORIES

_OFF = "config follow require-git ignore-global ignore-exclude ignore-dot ignore-parent ignore-messages"
_ALWAYS = (*(f"--no-{name}" for name in _OFF.split()), "--color=never")
_PATTERN_TROUBLE = (
    rb"(?i)^rg: (regex parse error:|the literal |compiled regex exceeds|error parsing regex|regex could not be compiled)"
)
_PLAIN_NOTICE = (
    "[searched by Python's re, because ripgrep is not installed (pip install ripgrep). Patterns differ: "
    r"\p{…}, \z, (?<name>…), [[:alpha:]] and && in classes are ripgrep's alone, as is multiline; "
    "look-around works here only, as . and [^x] for bytes that are not UTF-8]"
)


class SearchScope(NamedTuple):
    """Which files of a tree are looked at.

    Attributes:
        hidden: also those whose name, or a folder's below the start, begins with a dot.
        no_ignore: also what `.gitignore` files and the ignore list leave out.
        names: file name patterns of which one must fit; none for all files.
        inherited: lines of `.gitignore` files above the start, as if they were written in it.
        closed: folders, by the end of their paths, that are never looked at: our own line indexes, private keys.
    """

    hidden: bool = False
    no_ignore: bool = False
    names: tuple[str, ...] = ()
    inherited: tuple[bytes, ...] = ()
    closed: tuple[str, ...] = (".ai/cache", ".ai/keys")


class Pattern(NamedTuple):
    """What is searched for. `crlf`: a carriage return before a newline belongs to the line's end."""

    text: str
    ignore_case: bool = False
    literal: bool = False
    multiline: bool = False
    crlf: bool = True


def locate(project: os.stat_result) -> str | None:
    """Return the absolute path of ripgrep: that of this interpreter's environment, or one on PATH.

    None where it is not installed: then the search in Python is asked, which understands the same arguments.
    """
    # The environment may lie in the project: its interpreter runs already.
    in_environment = os.path.join(os.path.dirname(os.path.abspath(user_dirs.python())), "rg")
    if os.access(in_environment, os.X_OK):
        return in_environment
    return program_on_path("rg", project)


class Ripgrep:
    """Builds the commands of the three passes, for ripgrep or for the search in Python that takes the same arguments."""

    def __init__(self, binary: str | None) -> None:
        self.binary = binary

    def notices(self) -> list[str]:
        """Return what the answer of a content search must say about the program that searched."""
        return [] if self.binary else [_PLAIN_NOTICE]

    def files(self, view: SearchScope, rules_fd: int | None = None) -> Command:
        """List files: records that end in NUL."""
        return self._command(["--files", "--null", *_of_view(view, rules_fd)], () if rules_fd is None else (rules_fd,))

    def counts(self, pattern: Pattern, view: SearchScope, rules_fd: int | None = None) -> Command:
        """Count each file's matches: `name NUL count` a line."""
        # Without a path it searches the folder where it is started: its standard input is empty.
        options = [_counting(pattern), *_of_pattern(pattern), *_of_view(view, rules_fd)]
        return self._command(options, () if rules_fd is None else (rules_fd,))

    def counts_in(self, pattern: Pattern, fd: int) -> Command:
        """Count the matches of one file, given as a descriptor."""
        return self._command([_counting(pattern), *_of_pattern(pattern), "--", name_of_fd(fd)], (fd,))

    def matches(self, pattern: Pattern, fds: Sequence[int], most: int) -> Command:
        """Find the first `most` matching lines of each file, given as descriptors: JSON lines."""
        # In multiline mode ripgrep counts blocks of lines, not matches.
        limit = [] if pattern.multiline else [f"--max-count={most}"]
        return self._command(["--json", *limit, *_of_pattern(pattern), "--", *map(name_of_fd, fds)], tuple(fds))

    def _command(self, options: list[str], fds: tuple[int, ...]) -> Command:
        if self.binary is not None:
            return Command([self.binary, *_ALWAYS, *options], fds)
        if "--multiline" in options:
            why = "A search across lines needs ripgrep."
            raise UsageError("ripgrep_missing", why, "Install it: pip install ripgrep; or search line by line.")
        return own_module("rye.filesearch.fallback", json.dumps(options), fds, libraries=False)


def refusal(pattern: Pattern, stderr: bytes) -> UsageError | None:
    """Return the error of a pattern that was refused, or None if `stderr` is about something else."""
    if not re.match(_PATTERN_TROUBLE, stderr):
        return None
    words = stderr.decode("utf-8", "replace").removeprefix("rg: ").rstrip(".\n")
    # Without the group that ripgrep puts around a pattern, so that the caret points at the caller's own text.
    return bad_pattern(pattern.text, re.sub(r"(?m)^    \(\?:(.*)\)\n    (?:   )?( *\^)", r"    \1\n    \2", words))


def too_slow(pattern: Pattern) -> UsageError:
    """Return the refusal of a pattern that Python's `re` tries in too many ways."""
    why = f"The pattern {pattern.text[:200]!r} takes Python's regex engine too long on these files."
    hint = "Avoid repeats within repeats, such as (a+)+; or install ripgrep (pip install ripgrep), where this cannot happen."
    return UsageError("pattern_too_slow", why, hint)


def bad_pattern(text: str, why: str) -> UsageError:
    """Return the refusal of a search pattern, with the engine's message."""
    exactly = f", or give {parameter_text(literal=True)} to search for exactly this text"
    hint = f"Mend the pattern{advice('literal', exactly)}."
    if '"\\n" is not allowed' in why:
        why = "the pattern contains a newline, and lines are searched one at a time"
        hint = advice(
            "multiline", f"Give {parameter_text(multiline=True)} to match across lines.", "A search matches within one line."
        )
    elif re.search("look-around|backreferences", why):
        hint = "Search for a wider pattern, or use `grep -P` in a shell, which has them."
    return UsageError("bad_pattern", f"Bad pattern {text[:200]!r}: {why}.", hint)


def _of_view(view: SearchScope, rules_fd: int | None) -> list[str]:
    options = ["--hidden"] if view.hidden else []
    # Globs hold in every mode, also with --no-ignore: keys are never searched.
    options += [f"--glob=!**/{path}/" for path in view.closed]
    if view.no_ignore:
        options.append("--no-ignore")
    else:
        options += [f"--glob=!{name}/" for name in IGNORED_DIRECTORIES]
        if rules_fd is not None:
            options.append(f"--ignore-file={name_of_fd(rules_fd)}")
    if view.names:
        # A type, not --glob: a matching glob would override .gitignore and hidden files.
        options += [f"--type-add=wanted:{name}" for name in view.names]
        options.append("--type=wanted")
    return options


def _counting(pattern: Pattern) -> str:
    """Lines are counted, or matches where they may span lines (what `--count` means there depends on the pattern)."""
    return "--count-matches" if pattern.multiline else "--count"


def _of_pattern(pattern: Pattern) -> list[str]:
    flags = {
        "--ignore-case": pattern.ignore_case,
        "--fixed-strings": pattern.literal,
        "--multiline": pattern.multiline,
        "--crlf": pattern.crlf,
    }
    # Mapped files that are cut short meanwhile would kill the process.
    return ["--null", "--with-filename", "--no-mmap", *(flag for flag, on in flags.items() if on), f"--regexp={pattern.text}"]
