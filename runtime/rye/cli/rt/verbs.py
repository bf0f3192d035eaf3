"""The verbs of `rt`: the words each takes, and the parameters they are for its tool."""

from __future__ import annotations

import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from rye.call import profile
from rye.cli.main import add_color
from rye.cli.shared import add_project_option, existing_path, printable, typed_path
from rye.errors import UsageError
from rye.plain_class import Record

if TYPE_CHECKING:
    import argparse
    import io

    from rye.cli.shared import Plain

_PLACE = r"(?s)(.+?):(?=-?\d)(\d*)(?:(-)(\d*))?:?"
# As `edits.journal` makes them: 15 hexadecimal digits.
_ENTRY = r"[0-9a-f]{15}"
_WAIT_SECONDS = 10
_PLACE_WITH_COLUMN = r"(?s)(.+?):(\d+):\d+:?"


class Verb(Record):
    """One verb: its tool's id, what adds its words to a parser, what makes the calls' parameters of them.

    `plain` is as in `rye.cli.shared.Verb`.
    """

    tool: str
    build: Callable[[argparse.ArgumentParser], None]
    calls: Callable[[argparse.Namespace], Iterator[dict[str, Any]]]
    epilog: str = ""
    plain: Plain | None = None


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
        raise UsageError(
            "bad_text", f"Standard input is not UTF-8 (byte {err.start}). Nothing was written.", "Convert it first, with iconv."
        ) from None


def _options_given(args: argparse.Namespace, **names: str) -> dict[str, Any]:
    """Return the options that were given, under their parameters' names."""
    return {
        parameter: value
        for name, parameter in names.items()
        if (value := getattr(args, name)) is not None and value is not False
    }


def _open(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    path, window = _place(args.path, args.project)
    yield {"path": path, **window, **_options_given(args, line="line", ids="line_ids", encoding="encoding")}


def _scroll(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    options = _options_given(args, ids="line_ids", encoding="encoding")
    yield {"path": typed_path(args.path, args.project), "direction": args.direction, **options}


MOST = 500
"""Results that a search gives at most in one call."""

_SEARCH = {"limit": "limit", "offset": "offset", "hidden": "hidden", "no_ignore": "no_ignore"}


def _find(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for root in args.roots or ["."]:
        yield {"pattern": args.pattern, "root": typed_path(root, args.project), **_options_given(args, **_SEARCH)}


def _grep(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    options = _options_given(args, **_SEARCH, include="include", ignore_case="ignore_case", literal="literal", ids="line_ids")
    if args.files:
        options["limit"] = MOST
    names = _names_from_stdin() if args.roots == ["-"] or (not args.roots and _is_piped_to()) else args.roots or ["."]
    for root in names:
        yield {"pattern": args.pattern, "root": typed_path(root, args.project), **options}


def _stdin_kind() -> int:
    """Return what standard input is, as `stat.S_IFMT` gives it; 0 where it is none of the system's."""
    try:
        return stat.S_IFMT(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return 0


def _is_piped_to() -> bool:
    """Tell whether another command writes names to standard input; one that writes nothing for long is not waited for."""
    if _stdin_kind() != stat.S_IFIFO:
        return False
    stdin = sys.stdin.buffer
    if select.select([stdin], [], [], _WAIT_SECONDS)[0] and cast("io.BufferedReader", stdin).peek(1):
        return True
    print("rt: no names came on standard input: the current folder is searched.", file=sys.stderr)
    return False


def _names_from_stdin() -> Iterator[str]:
    """Yield the names that another command prints; its notice of names left out goes to standard error."""
    for name in sys.stdin.buffer.read().split(b"\n"):
        # A file may really have such a name, so the disk decides.
        if name.startswith(b"[truncated: ") and not os.path.lexists(name):
            print(f"rt: not all names came: {printable(os.fsdecode(name))}", file=sys.stderr)
        elif name:
            yield os.fsdecode(name)


def _grep_file(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    options = _options_given(args, limit="limit", offset="offset", ignore_case="ignore_case", literal="literal", ids="line_ids")
    yield {"path": typed_path(args.path, args.project), "pattern": args.pattern, **options}


_EDIT = {"dry_run": "dry_run", "show_diff": "show_diff", "ids": "line_ids", "encoding": "encoding"}


def _edit(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    path = typed_path(args.path, args.project)
    # An end before its start is a slip of the hand here: `rt insert` inserts.
    lines = {"start_line": args.start, "end_line": args.end, "insert_form": False}
    text = "" if args.delete else _text_from_stdin()
    # No here-document and no pipe: a slip of the hand, which must not delete.
    if not text and not args.delete and _stdin_kind() == stat.S_IFCHR:
        raise UsageError(
            "no_text",
            "No text came on standard input. Nothing was written.",
            "Give the new lines in a here-document (<< 'EOF'); to delete the lines use --delete.",
        )
    yield {"path": path, **lines, "new_text": text, **_options_given(args, **_EDIT)}


def _insert(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    path = typed_path(args.path, args.project)
    yield {"path": path, "line": args.line, "new_text": _text_from_stdin(), **_options_given(args, **_EDIT)}


def _create(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    profile.enabled()
    # `write` would replace it; the name create promises a new file.
    if existing_path(args.path, args.project) is not None:
        raise UsageError(
            "file_exists", f"{printable(args.path)} exists. Nothing was written.", "Use rt edit or rt insert to change it."
        )
    yield {
        "file_path": typed_path(args.path, args.project),
        "content": _text_from_stdin(),
        **_options_given(args, encoding="encoding"),
    }


def _undo(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    options = _options_given(args, list="list", limit="limit", offset="offset", dry_run="dry_run")
    if args.what is not None:
        # A file of such a name is `./NAME`. One that is gone, since its creation was undone, is named too.
        is_entry = re.fullmatch(_ENTRY, args.what) is not None
        options.update({"entry_id": args.what} if is_entry else {"file_path": typed_path(args.what, args.project)})
    yield options


def _build_open(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="path[:line[:column]|:start-end]", help="a file; one of that whole name wins")
    parser.add_argument("--line", type=int, metavar="N", help="the 100 lines around N, as :N does")
    _reading(parser)


def _build_scroll(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="a file")
    parser.add_argument("direction", nargs="?", choices=("+", "-"), default="+", help="down (default) or up")
    _reading(parser)


def _build_find(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", help="a part of the file's name, or a glob such as 'test_*.py' or 'src/**/*.md'")
    parser.add_argument("roots", nargs="*", default=[], metavar="root", help="folders to start from (default: the current one)")
    _searching(parser)
    _ignored(parser)


def _build_grep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", help="a regular expression; plain text with -F, or when quotes arrive with it: '\"a.b\"'")
    parser.add_argument("roots", nargs="*", default=[], metavar="root", help="folders and files; - for names on standard input")
    parser.add_argument("-l", "--files", action="store_true", help="print only the names of the files")
    parser.add_argument("-r", "-R", action="store_true", help="nothing: folders are always searched whole")
    parser.add_argument("--include", metavar="GLOB", help="only files that fit, such as '*.py'")
    _matching(parser)
    _ignored(parser)


def _build_grep_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", help="a regular expression; plain text with -F, or when quotes arrive with it")
    parser.add_argument("path", help="a file")
    _matching(parser)


def _build_edit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="a file")
    parser.add_argument("start", type=int, help="first line to replace, from 1")
    parser.add_argument("end", type=int, help="last line to replace, inclusive")
    parser.add_argument("--delete", action="store_true", help="delete the lines; standard input is not read")
    _editing(parser)


def _build_insert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="a file")
    parser.add_argument("line", type=int, help="insert before this line; last + 1 appends")
    _editing(parser)


def _build_create(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="the new file; missing folders are made")
    parser.add_argument("--encoding", metavar="NAME", help="codec of the new file (default: UTF-8)")


def _build_undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="?", metavar="edit|file", help="an edit's ID, or a file: your last edit of it (default: your last edit)"
    )
    parser.add_argument("--list", action="store_true", help="list edits instead, those of the file alone if one is given")
    parser.add_argument("--limit", type=int, metavar="N", help="most edits to list")
    parser.add_argument("--offset", type=int, metavar="N", help="first edit to list, from 1")
    parser.add_argument("--dry-run", action="store_true", help="show the patch, write nothing")


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ids", action="store_true", help="show line IDs")
    parser.add_argument("--encoding", metavar="NAME", help="codec, only where it is not recognised")


def _searching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help="most results (default 200, at most 500)")
    parser.add_argument("--offset", type=int, metavar="N", help="first result, from 1")


def _ignored(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hidden", action="store_true", help="look at hidden files too")
    parser.add_argument("--no-ignore", action="store_true", help="look at ignored files too")


def _matching(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-F", "--literal", action="store_true", help="the pattern is plain text")
    parser.add_argument("-n", action="store_true", help="nothing: line numbers are always shown")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="letter case does not count")
    parser.add_argument("--ids", action="store_true", help="show line IDs")
    _searching(parser)


def _editing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the diff, write nothing")
    parser.add_argument("--show-diff", action="store_true", help="show the diff too (RAGIX_AUTO_DIFF=1: always)")
    _reading(parser)


_ALWAYS = {"json": False, "project": None, "color": None}
_SEARCHED = {"limit": None, "offset": None, "hidden": False, "no_ignore": False, **_ALWAYS}
_MATCHED = {"literal": False, "n": False, "ignore_case": False, "ids": False}


def _plain_open(words: Sequence[str]) -> dict[str, Any] | None:
    return {"path": words[0], "line": None, "ids": False, "encoding": None, **_ALWAYS} if len(words) == 1 else None


def _plain_find(words: Sequence[str]) -> dict[str, Any]:
    return {"pattern": words[0], "roots": list(words[1:]), **_SEARCHED}


def _plain_grep(words: Sequence[str]) -> dict[str, Any]:
    return {**_plain_find(words), "files": False, "r": False, "include": None, **_MATCHED}


_HERE = "example:\n  rt edit src/app.py 3 4 << 'EOF'\n  …new lines…\n  EOF"
VERBS = {
    "open": Verb("rye/swe/open_file_chunk", _build_open, _open, plain=_plain_open),
    "scroll": Verb("rye/swe/scroll_file", _build_scroll, _scroll),
    "find": Verb("rye/swe/find_file", _build_find, _find, plain=_plain_find),
    "grep": Verb("rye/swe/search_dir", _build_grep, _grep, "example:\n  rt find route | rt grep 'def get'", _plain_grep),
    "grep-file": Verb("rye/swe/search_file", _build_grep_file, _grep_file),
    "edit": Verb("rye/swe/edit_range", _build_edit, _edit, _HERE),
    "insert": Verb("rye/swe/insert_at", _build_insert, _insert),
    "create": Verb("rye/file-system/write", _build_create, _create),
    "undo": Verb("rye/swe/undo_edit", _build_undo, _undo),
}


def _formatter(prog: str) -> argparse.HelpFormatter:
    import argparse

    # With a given width the formatter does not import shutil to find it.
    width = int(columns) if (columns := os.environ.get("COLUMNS", "")).isdigit() and columns != "0" else 100
    return argparse.RawDescriptionHelpFormatter(prog, width=width)


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a verb's words."""
    from rye.cli.main import make_parser

    verb = VERBS[name]
    parser = make_parser(prog=f"rt {name}", epilog=verb.epilog, formatter_class=_formatter)
    verb.build(parser)
    parser.add_argument("--json", action="store_true", help="print the whole response as JSON, and nothing else")
    add_project_option(parser)
    add_color(parser)
    return parser


def options_of(name: str) -> list[str]:
    """Return the options of a verb."""
    return [word for action in parser_of(name)._actions for word in action.option_strings]  # noqa: SLF001 - argparse has no other way
