"""The tools by line number as Python functions: each calls the signed tool and returns the text of its answer.

`python -m rye.ragix_tools edit_range PATH START END` takes the new text from standard input; a verb of `rt` may stand for the
function's name.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from rye.errors import RyeError

_VERBS: Final = {
    "open_window": "open",
    "edit_range": "edit",
    "insert_at": "insert",
    "find_files": "find",
    "search_files": "grep",
}


def open_window(path: str, start: int = 1, size: int = 100) -> str:
    """Return lines of a file with their numbers. Raises RyeError, as all functions here, for what the tool refuses."""
    return _text("open_file_chunk", path=path, start=start, end=start + size - 1)


def edit_range(path: str, start: int, end: int, new_text: str) -> str:
    """Replace the lines from `start` to `end`, inclusive; return what became of them."""
    return _text("edit_range", path=path, start_line=start, end_line=end, new_text=new_text)


def insert_at(path: str, line: int, new_text: str) -> str:
    """Insert a text before a line; return the lines as they are then."""
    return _text("insert_at", path=path, line=line, new_text=new_text)


def find_files(pattern: str, root: str = ".") -> str:
    """Return the paths below a folder whose names fit."""
    return _text("find_file", pattern=pattern, root=root)


def search_files(pattern: str, root: str = ".") -> str:
    """Return the lines below a folder that fit a regular expression."""
    return _text("search_dir", pattern=pattern, root=root)


def _text(tool: str, **parameters: Any) -> str:
    from rye import api

    response = api.execute(f"rye/swe/{tool}", parameters)
    if response["status"] == "error":
        raise RyeError(str(response["code"]), str(response["error"]), "")
    return str(response["data"]["output"])


if __name__ == "__main__":
    from rye.cli import process
    from rye.cli.rt.main import main

    typed = sys.argv[1:]
    process.run(lambda: main([_VERBS.get(typed[0], typed[0]), *typed[1:]] if typed else []))
