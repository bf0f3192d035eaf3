"""The search without ripgrep: a child process that takes ripgrep's arguments, as `ripgrep.py` writes them, and answers like it.

Patterns are Python's `re`, which cannot be interrupted: a timer ends the process by SIGALRM when a pattern takes too long.
Not imported by the parent.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator

from rye.filesearch import gitignore, globs
from rye.fs import atomic

# A whole text is in memory here; larger files are named.
_MOST_BYTES = 64 * 1024 * 1024
_STALL_SECONDS = 2.0
# An escaped n that is not itself behind an escaped backslash.
_NEWLINE = r"\n|(?<!\\)(?:\\\\)*\\n"
_Rules = tuple[tuple[int, list[gitignore.Rule]], ...]


def main(argument: str) -> int:
    """Do what ripgrep's arguments (a JSON list) ask; return 0, 2 for a bad pattern, 70 for a fault of this program."""
    words: list[str] = json.loads(argument)
    end = words.index("--") if "--" in words else len(words)
    pairs = [(word.removeprefix("--").partition("=")[0], word.partition("=")[2]) for word in words[:end]]
    options, files = dict(pairs), words[end + 1 :]
    try:
        pattern = _compiled(options) if "regexp" in options else None
        for name in files or _walk(pairs):
            try:
                if pattern is None:
                    sys.stdout.buffer.write(os.fsencode(name) + b"\0")
                else:
                    _search(options, pattern, name, follow=bool(files))
            except OSError as err:
                _trouble(name, err)
        sys.stdout.flush()
    except (re.error, FutureWarning, RecursionError, OverflowError) as err:
        # What `re` warns of means something else in ripgrep: `[[`, `&&`.
        sys.stderr.write(f"rg: regex parse error:\nerror: {err}\n")
        return 2
    except Exception as err:  # noqa: BLE001 - the boundary of this process
        sys.stderr.write(f"{type(err).__name__}: {err}\n")
        return 70
    return 0


def _compiled(options: dict[str, str]) -> re.Pattern[str]:
    text, is_literal = options["regexp"], "fixed-strings" in options
    if re.search("\n" if is_literal else _NEWLINE, text):
        raise re.error('the literal "\\n" is not allowed in a regex')
    warnings.simplefilter("error")
    return re.compile(re.escape(text) if is_literal else text, re.IGNORECASE if "ignore-case" in options else re.NOFLAG)


def _walk(pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the paths of regular files below the current folder; follow no link."""
    options = dict(pairs)
    left_out = [globs.compiled(value.strip("!/")) for name, value in pairs if name == "glob"]
    wanted = [globs.compiled(value.partition(":")[2]) for name, value in pairs if name == "type-add"]
    inherited = options.get("ignore-file")
    pending: list[tuple[str, _Rules]] = [("", ((0, _rules(inherited)),) if inherited else ())]
    while pending:
        folder, rules = pending.pop()
        try:
            entries = list(os.scandir(folder or "."))
        except OSError as err:
            _trouble(folder.removesuffix("/"), err)
            continue
        if "no-ignore" not in options:
            rules = (*rules, (len(folder), _rules(f"{folder}.gitignore", follow=False)))
        for entry in entries:
            path, is_folder = folder + entry.name, entry.is_dir(follow_symlinks=False)
            # The rules nearest to the file decide.
            verdicts = (gitignore.verdict(own, path[start:], folder=is_folder) for start, own in reversed(rules))
            if ("hidden" not in options and entry.name.startswith(".")) or next((v for v in verdicts if v is not None), False):
                continue
            if is_folder and not any(fits(path) for fits in left_out):
                pending.append((f"{path}/", rules))
            elif entry.is_file(follow_symlinks=False) and (not wanted or any(fits(path) for fits in wanted)):
                yield path


def _rules(path: str, *, follow: bool = True) -> list[gitignore.Rule]:
    try:
        return gitignore.parse(atomic.read_regular(path, gitignore.MAX_BYTES, follow=follow)[0])
    except OSError:
        return []


def _search(options: dict[str, str], pattern: re.Pattern[str], name: str, *, follow: bool) -> None:
    """Search one file; print its count, or its matching lines as JSON."""
    data, _ = atomic.read_regular(name, _MOST_BYTES + 1, follow=follow)
    # ripgrep knows UTF-16 by its mark alone, and searches no binary file.
    is_wide = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = data.decode("utf-16", "replace") if is_wide else data.decode("utf-8-sig", "surrogateescape")
    if "\0" in text:
        return
    if len(data) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "")
    lines, count = text.split("\n"), 0
    for number, line in enumerate(lines if lines[-1] else lines[:-1], 1):
        # A timer for every line would take longer than most searches.
        if number % 256 == 1:
            signal.setitimer(signal.ITIMER_REAL, _STALL_SECONDS)
        match = pattern.search(line.removesuffix("\r") if "crlf" in options and number < len(lines) else line)
        if match is not None:
            count += 1
            if "json" in options:
                hit = {"start": len(line[: match.start()].encode("utf-8", "surrogateescape"))}
                lines_field = {"bytes": base64.b64encode(f"{line}\n".encode("utf-8", "surrogateescape")).decode()}
                found = {"path": {"text": name}, "lines": lines_field, "line_number": number, "submatches": [hit]}
                sys.stdout.write(json.dumps({"type": "match", "data": found}, separators=(",", ":")) + "\n")
    signal.setitimer(signal.ITIMER_REAL, 0)
    if count and "json" not in options:
        sys.stdout.buffer.write(b"%s\0%d\n" % (os.fsencode(name), count))


def _trouble(path: str, err: OSError) -> None:
    """Say what could not be read, in ripgrep's words."""
    # A newline in a name would look like the next message.
    name = os.fsencode(path or ".").replace(b"\n", b"?")
    sys.stderr.buffer.write(b"rg: %s: %s (os error %d)\n" % (name, os.strerror(err.errno or 0).encode(), err.errno or 0))
    sys.stderr.flush()
