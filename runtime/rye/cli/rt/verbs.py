"""The verbs of `rt` and their options, and what their words are for the tool of each: parameters."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from rye.call import profile
from rye.cli.options import PROJECT, Option, Verb, completion
from rye.cli.shared import existing_path, typed_path
from rye.cli.terminal import printable
from rye.errors import UsageError

_ALWAYS = (Option("--json", "print the whole response as JSON, and nothing else"), PROJECT)
_FILE = Option("PATH", "a file")
_IDS = Option("--ids", "show line IDs", dest="line_ids")
_READING = (_IDS, Option("--encoding NAME", "codec, only where it is not recognised"), *_ALWAYS)
_SEARCHING = (
    Option("--limit N", "most results (default 200, at most 500)", int),
    Option("--offset N", "first result, from 1", int),
    *_ALWAYS,
)
_IGNORED = (Option("--hidden", "look at hidden files too"), Option("--no-ignore", "look at ignored files too"))
_MATCHING = (
    Option("-F, --literal", "the pattern is plain text"),
    Option("-n", "nothing: line numbers are always shown"),
    Option("-i, --ignore-case", "letter case does not count"),
    _IDS,
    *_SEARCHING,
)
_EDITING = (
    Option("--dry-run", "show the diff, write nothing"),
    Option("--show-diff", "show the diff too (RAGIX_AUTO_DIFF=1: always)"),
    *_READING,
)
_PATTERN = Option("PATTERN", "a regular expression; plain text with -F, or when quotes arrive with it: '\"a.b\"'")

VERBS: Final = {
    "open": Verb(
        "rye/swe/open_file_chunk",
        "show a window of a file: its first lines, around a line, or from one line to another",
        (
            Option("PATH[:LINE[:COLUMN]|:START-END]", "a file; one of that whole name wins", dest="path"),
            Option("--line N", "the 100 lines around N, as :N does", int),
            *_READING,
        ),
    ),
    "scroll": Verb(
        "rye/swe/scroll_file",
        "show the window below (+) or above (-) the last one of a file",
        (_FILE, Option("[DIRECTION]", "down or up", default="+", choices=("+", "-")), *_READING),
    ),
    "find": Verb(
        "rye/swe/find_file",
        "find files by a part of their name, or by a glob",
        (
            Option("PATTERN", "a part of the file's name, or a glob such as 'test_*.py' or 'src/**/*.md'"),
            Option("[ROOT…]", "folders to start from (default: the current one)", dest="roots"),
            *_IGNORED,
            *_SEARCHING,
        ),
    ),
    "grep": Verb(
        "rye/swe/search_dir",
        "search the files of a folder",
        (
            _PATTERN,
            Option("[ROOT…]", "folders and files; - for names on standard input", dest="roots"),
            Option("-l, --files", "print only the names of the files"),
            Option("-r, -R", "nothing: folders are always searched whole"),
            Option("--include GLOB", "only files that fit, such as '*.py'"),
            *_IGNORED,
            *_MATCHING,
        ),
        "example:\n  rt find route | rt grep 'def get'",
    ),
    "grep-file": Verb("rye/swe/search_file", "search one file", (_PATTERN, _FILE, *_MATCHING)),
    "edit": Verb(
        "rye/swe/edit_range",
        "replace lines by the text on standard input, or delete them",
        (
            _FILE,
            Option("START", "first line to replace, from 1", int),
            Option("END", "last line to replace, inclusive", int),
            Option("--delete", "delete the lines; standard input is not read"),
            *_EDITING,
        ),
        "example:\n  rt edit src/app.py 3 4 << 'EOF'\n  …new lines…\n  EOF",
    ),
    "insert": Verb(
        "rye/swe/insert_at",
        "insert the text on standard input before a line",
        (_FILE, Option("LINE", "insert before this line; last + 1 appends", int), *_EDITING),
    ),
    "create": Verb(
        "rye/file-system/write",
        "make a new file of the text on standard input",
        (
            Option("PATH", "the new file; missing folders are made"),
            Option("--encoding NAME", "codec of the new file (default: UTF-8)"),
            *_ALWAYS,
        ),
    ),
    "undo": Verb(
        "rye/swe/undo_edit",
        "take back the last edit, or list edits",
        (
            Option("[EDIT|FILE]", "an edit's ID, or a file: your last edit of it (default: your last edit)", dest="what"),
            Option("--list", "list edits instead, those of the file alone if one is given"),
            Option("--limit N", "most edits to list", int),
            Option("--offset N", "first edit to list, from 1", int),
            Option("--dry-run", "show the patch, write nothing"),
            *_ALWAYS,
        ),
    ),
    "completion": completion("rt"),
}


# Options that are none of a tool's.
_OWN = frozenset({"json", "project", "files", "delete", "n", "R"})
_PLACE = r"(?s)(.+?):(?=-?\d)(\d*)(?:(-)(\d*))?:?"
# As `edits.journal` makes them: 15 hexadecimal digits.
_ENTRY = r"[0-9a-f]{15}"
_WAIT_SECONDS = 0.5
_PLACE_WITH_COLUMN = r"(?s)(.+?):(\d+):\d+:?"


def _place(word: str, project: str) -> tuple[str, dict[str, int]]:
    """Return the path and the window that `path[:line[:column]|:start-end]` names; a file of that whole name wins."""
    if existing_path(word, project) is not None:
        return typed_path(word, project), {}
    match, column = re.fullmatch(_PLACE, word), re.fullmatch(_PLACE_WITH_COLUMN, word)
    if column is not None and match is not None and existing_path(match[1], project) is None:
        return typed_path(column[1], project), {"line": int(column[2])}
    if match is None:
        return typed_path(word, project), {}
    if match[3] is None:
        return typed_path(match[1], project), {"line": int(match[2])}
    return typed_path(match[1], project), {"start": int(match[2] or 1), **({"end": int(match[4])} if match[4] else {})}


def _text_from_stdin() -> str:
    if sys.stdin.isatty():
        print("Type the text; end it with Ctrl-D on a line of its own.", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as err:
        why = f"Standard input is not UTF-8 (byte {err.start}). Nothing was written."
        raise UsageError("bad_text", why, "Convert it first, with iconv.") from None


def _given(verb: str, args: SimpleNamespace) -> dict[str, Any]:
    """Return the options that were given, but for those of the command itself."""
    names = [one.key for one in VERBS[verb].options if one.names and one.key not in _OWN]
    return {name: value for name in names if (value := getattr(args, name)) is not None and value is not False}


def _on_file(verb: str, *words: str) -> Callable[[SimpleNamespace], Iterator[dict[str, Any]]]:
    """Return what makes the one call of a verb on a file: with some of its words as they are, and its options."""

    def call(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
        path = typed_path(args.path, args.project)
        yield {"path": path, **{name: getattr(args, name) for name in words}, **_given(verb, args)}

    return call


def _open(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    path, window = _place(args.path, args.project)
    yield {"path": path, **window, **_given("open", args)}


MOST = 500
"""Results that a search gives at most in one call."""


def _find(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    for root in args.roots or ["."]:
        yield {"pattern": args.pattern, "root": typed_path(root, args.project), **_given("find", args)}


def _grep(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    options = _given("grep", args)
    if args.files:
        options["limit"] = MOST
    names = _names_from_stdin() if args.roots == ["-"] or (not args.roots and _is_piped_to()) else args.roots or ["."]
    for root in names:
        yield {"pattern": args.pattern, "root": typed_path(root, args.project), **options}


def _is_piped_to() -> bool:
    """Tell whether another command writes names to standard input; one of the same pipeline is waited for."""
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        # A program that calls `main` may have put a text in the place of standard input.
        is_pipe = False
    if not is_pipe:
        return False
    stdin: Any = sys.stdin.buffer
    ready = select.select([stdin], [], [], None if _has_writer() else _WAIT_SECONDS)[0]
    if ready and stdin.peek(1):
        return True
    print("rt: no names came on standard input: the current folder is searched.", file=sys.stderr)
    return False


def _has_writer() -> bool:
    """Tell whether another child of the same shell has this standard input's other end as its standard output."""
    try:
        own, parent = os.readlink("/proc/self/fd/0"), os.getppid()
        with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
            others = [pid for pid in file.read().split() if pid != str(os.getpid())]
    except OSError:
        return False
    for pid in others:
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/1") == own:
                return True
    return False


def _names_from_stdin() -> Iterator[str]:
    """Yield the names that another command prints; its notice of names left out goes to standard error."""
    for name in sys.stdin.buffer.read().split(b"\n"):
        # A file may really have such a name, so the disk decides.
        if name.startswith(b"[truncated: ") and not os.path.lexists(name):
            print(f"rt: not all names came: {printable(os.fsdecode(name))}", file=sys.stderr)
        elif name:
            yield os.fsdecode(name)


def _edit(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    path = typed_path(args.path, args.project)
    # An end before its start is a slip of the hand here: `rt insert` inserts.
    lines = {"start_line": args.start, "end_line": args.end, "insert_form": False}
    text = "" if args.delete else _text_from_stdin()
    # A lost here-document or the pipe of a command that failed: a slip of the hand, which must not delete.
    if not text and not args.delete:
        why = "No text came on standard input. Nothing was written."
        raise UsageError("no_text", why, "Give the new lines in a here-document (<< 'EOF'); to delete the lines use --delete.")
    yield {"path": path, **lines, "new_text": text, **_given("edit", args)}


def _insert(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    path = typed_path(args.path, args.project)
    yield {"path": path, "line": args.line, "new_text": _text_from_stdin(), **_given("insert", args)}


def _create(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    profile.enabled()
    # `write` would replace it; the name create promises a new file.
    if existing_path(args.path, args.project) is not None:
        why = f"{printable(args.path)} exists. Nothing was written."
        raise UsageError("file_exists", why, "Use rt edit or rt insert to change it.")
    path = typed_path(args.path, args.project)
    yield {"file_path": path, "content": _text_from_stdin(), **_given("create", args)}


def _undo(args: SimpleNamespace) -> Iterator[dict[str, Any]]:
    options = _given("undo", args)
    if args.what is not None:
        # A file of such a name is `./NAME`. One that is gone, since its creation was undone, is named too.
        is_entry = re.fullmatch(_ENTRY, args.what) is not None
        options.update({"entry_id": args.what} if is_entry else {"file_path": typed_path(args.what, args.project)})
    yield options


# What makes the parameters of a verb's calls of its words.
CALLS: dict[str, Callable[[SimpleNamespace], Iterator[dict[str, Any]]]] = {
    "open": _open,
    "scroll": _on_file("scroll", "direction"),
    "find": _find,
    "grep": _grep,
    "grep-file": _on_file("grep-file", "pattern"),
    "edit": _edit,
    "insert": _insert,
    "create": _create,
    "undo": _undo,
}
