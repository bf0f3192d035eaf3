"""The search without ripgrep: a child process that takes ripgrep's arguments, as `ripgrep.py` writes them, and answers like it.

Patterns are Python's `re`, which cannot be interrupted: a timer ends the process by SIGALRM when a pattern takes too long.
Not imported by the parent.
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
import warnings
from collections.abc import Iterator

from rye.filesearch import gitignore, globs

STALL_SECONDS = 2.0
"""A few lines, or the way from one match to the next, may take `re` so long."""

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are not searched, and named."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_LINES_PER_TIMER = 256
# An escaped n that is not itself behind an escaped backslash.
_NEWLINE = r"\n|(?<!\\)(?:\\\\)*\\n"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Match = tuple[int, str, int, int]
"""The number of its first line, its lines, and where in them it begins and ends (characters)."""

_Rules = tuple[tuple[int, list[gitignore.Rule]], ...]
"""The rules of a folder and of those above it, outermost first, each with the length of its folder's path."""


class _Options:
    """Ripgrep's arguments: `--name` or `--name=value`, then files behind `--`."""

    def __init__(self, words: list[str]) -> None:
        # Behind the two dashes come files; a pattern is always given as --regexp=.
        behind = words.index("--") if "--" in words else len(words)
        pairs = [word.removeprefix("--").partition("=")[::2] for word in words[:behind]]
        self.on = {name for name, _ in pairs}
        self.last = dict(pairs)
        self.files = words[behind + 1 :]
        left_out = [value.strip("!/") for name, value in pairs if name == "glob"]
        self.left_out = [globs.compiled(glob) for glob in left_out]
        self.type_globs = [globs.compiled(value.partition(":")[2]) for name, value in pairs if name == "type-add"]


def main(argument: str) -> int:
    """Do what ripgrep's arguments (a JSON list) ask.

    Returns:
        The exit code: 0; 2 for a bad pattern; 70 for a fault, which must not look like a search without matches.
    """
    try:
        options = _Options(json.loads(argument))
        if "regexp" not in options.on:
            for name in _walk(options):
                sys.stdout.buffer.write(os.fsencode(name) + b"\0")
        else:
            regex = _compiled(options)
            for name in options.files or _walk(options):
                _search(options, regex, name)
        sys.stdout.flush()
    except re.error as err:
        # ripgrep wraps the pattern in a group, which its reader takes away.
        place = f"\n    (?:{err.pattern})\n       {' ' * (err.pos or 0)}^" if isinstance(err.pattern, str) else ""
        sys.stderr.write(f"rg: regex parse error:{place}\nerror: {err.msg}\n")
        return 2
    except Exception as err:  # noqa: BLE001 - the boundary of this process
        sys.stderr.write(f"{type(err).__name__}: {err}\n")
        return 70
    return 0


def _compiled(options: _Options) -> re.Pattern[str]:
    text, multiline = options.last["regexp"], "multiline" in options.on
    if not multiline and re.search("\n" if "fixed-strings" in options.on else _NEWLINE, text):
        raise re.error('the literal "\\n" is not allowed in a regex')
    flags = re.IGNORECASE if "ignore-case" in options.on else re.NOFLAG
    # What `re` warns of means something else in ripgrep: `[[`, `&&`, `--`.
    warnings.simplefilter("error")
    try:
        return re.compile(
            re.escape(text) if "fixed-strings" in options.on else text, flags | (re.MULTILINE if multiline else re.NOFLAG)
        )
    except (FutureWarning, RecursionError, OverflowError) as err:
        raise re.error(str(err), text, 0) from None


def _walk(options: _Options) -> Iterator[str]:
    """Yield the paths of regular files below the current folder; follows no link."""
    ignore_file = options.last.get("ignore-file")
    pending: list[tuple[str, _Rules]] = [("", ((0, _rules(ignore_file, os.O_RDONLY)),) if ignore_file else ())]
    while pending:
        folder, rules = pending.pop()
        try:
            with os.scandir(folder or ".") as found:
                entries = list(found)
        except OSError as err:
            _trouble(folder.removesuffix("/"), err)
            continue
        if "no-ignore" not in options.on and any(entry.name == ".gitignore" for entry in entries):
            rules = (*rules, (len(folder), _rules(f"{folder}.gitignore", _READ)))
        for entry in entries:
            path = folder + entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_left_out(options, path, rules, folder=is_folder):
                continue
            if is_folder:
                pending.append((f"{path}/", rules))
            elif entry.is_file(follow_symlinks=False):
                yield path


def _rules(path: str, flags: int) -> list[gitignore.Rule]:
    try:
        fd = os.open(path, flags)
    except OSError:
        return []
    try:
        return gitignore.parse(os.pread(fd, gitignore.MAX_BYTES, 0)) if stat.S_ISREG(os.fstat(fd).st_mode) else []
    finally:
        os.close(fd)


def _is_left_out(options: _Options, path: str, rules: _Rules, *, folder: bool) -> bool:
    if "hidden" not in options.on and path.rpartition("/")[2].startswith("."):
        return True
    if folder and any(fits(path) for fits in options.left_out):
        return True
    # The rules nearest to the file decide.
    verdicts = (gitignore.verdict(own, path[start:], folder=folder) for start, own in reversed(rules))
    if next((verdict for verdict in verdicts if verdict is not None), False):
        return True
    return not folder and bool(options.type_globs) and not any(fits(path) for fits in options.type_globs)


def _search(options: _Options, regex: re.Pattern[str], name: str) -> None:
    """Search one file and print its count, or its matches."""
    try:
        # A file given as a descriptor is named by a link to it.
        fd = os.open(name, _READ & ~os.O_NOFOLLOW if options.files else _READ)
        try:
            text = _text(fd, int(options.last.get("max-filesize", 0)))
        finally:
            os.close(fd)
    except OSError as err:
        _trouble(name, err)
        return
    found = _matches(options, regex, text)
    if "json" in options.on:
        most = int(options.last.get("max-count", 1 << 62))
        for _, match in zip(range(most), found, strict=False):
            _print(name, match)
    elif count := sum(1 for _ in found):
        # The same record as ripgrep prints, so that one parser reads both.
        sys.stdout.buffer.write(b"%s\0%d\n" % (os.fsencode(name), count))
        # What is known remains even when the next file's lines never end.
        sys.stdout.flush()
    signal.setitimer(signal.ITIMER_REAL, 0)


def _text(fd: int, most: int) -> str:
    """Return a file's text as ripgrep sees it: UTF-16 by its mark, else UTF-8; nothing of a binary file."""
    size = os.fstat(fd).st_size
    if most and size > most:
        return ""
    # The whole text is held in memory at once here, unlike in ripgrep.
    if size > MAX_FILE_BYTES:
        # Holes and binaries show at once; ripgrep would not search them either.
        if b"\0" in os.pread(fd, 65_536, 0):
            return ""
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    with open(fd, "rb", closefd=False) as file:
        data = file.read()
    # A UTF-16 text is recognised by its mark alone, as ripgrep does.
    if data.startswith(_MARKS):
        text = data.decode("utf-16", "replace")
    else:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
    return "" if "\0" in text else text


def _matches(options: _Options, regex: re.Pattern[str], text: str) -> Iterator[Match]:
    """Yield one match a matching line, or every one across lines."""
    if "multiline" in options.on:
        yield from _blocks(regex, text)
        return
    lines = text.split("\n")
    unended = lines.pop()
    for number, line in enumerate([*lines, unended] if unended else lines, 1):
        # A system call for every line would take longer than most searches.
        if number % _LINES_PER_TIMER == 1:
            signal.setitimer(signal.ITIMER_REAL, STALL_SECONDS)
        match = regex.search(line.removesuffix("\r") if "crlf" in options.on and number <= len(lines) else line)
        if match is not None:
            yield number, f"{line}\n", match.start(), match.end()


def _blocks(regex: re.Pattern[str], text: str) -> Iterator[Match]:
    signal.setitimer(signal.ITIMER_REAL, STALL_SECONDS)
    line = at = 0
    for match in regex.finditer(text):
        signal.setitimer(signal.ITIMER_REAL, STALL_SECONDS)
        # Behind the last newline there is no line.
        if match.start() == len(text) and text[-1:] in ("", "\n"):
            return
        # Newlines are counted from match to match, so the text is read once.
        line += text.count("\n", at, match.start())
        at = match.start()
        low = text.rfind("\n", 0, at) + 1
        high = text.find("\n", max(at, match.end() - 1))
        yield line + 1, text[low : len(text) if high < 0 else high + 1], at - low, match.end() - low


def _print(name: str, match: Match) -> None:
    line, text, start, end = match
    span = {"start": _size(text[:start]), "end": _size(text[:end])}
    data = {"path": {"text": name}, "lines": _json_text(text), "line_number": line, "submatches": [span]}
    sys.stdout.write(json.dumps({"type": "match", "data": data}, separators=(",", ":")) + "\n")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _json_text(text: str) -> dict[str, str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"bytes": base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()}
    return {"text": text}


def _trouble(path: str, err: OSError) -> None:
    """Say what could not be read, in ripgrep's words."""
    # A newline in a name would look like the next message.
    raw = os.fsencode(path or ".").replace(b"\n", b"?")
    sys.stderr.buffer.write(b"rg: %s: %s (os error %d)\n" % (raw, os.strerror(err.errno or 0).encode(), err.errno or 0))
    sys.stderr.flush()
