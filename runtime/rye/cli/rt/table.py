"""The verbs of `rt` and their options: data alone. An option is parsed as the parameter of the tool that it stands for."""

from __future__ import annotations

from typing import Final

from rye.cli.options import PROJECT, Option, Verb, completion

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
