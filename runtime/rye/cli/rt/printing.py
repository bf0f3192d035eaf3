"""How `rt` prints answers: text on standard output in a fixed format, all else on standard error; colours and a pager on
a terminal only.

A call that an answer names is written as a command: whoever reads it can type that.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

from rye.cli.process import EXIT_NO, EXIT_OK, exit_code
from rye.cli.rt.verbs import VERBS
from rye.cli.terminal import harmless, has_colour, painted, print_json
from rye.cli.words import as_word, command_of, quoted, value_text

_VERB_OF: Final = {
    **{verb.module.rpartition("/")[2]: name for name, verb in VERBS.items()},
    "read": "open",
    "ls": "find",
    "undo": "undo",
}
_BARE: Final = ("pattern", "path", "file_path", "root", "entry_id")
_LINES: Final = ("line", "start", "offset")


def typed_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as a command: `rt …` where a verb takes all its parameters, else `rye …`. Without a tool: the options."""
    if not tool:
        options = [_option(name, value) or [as_word(name, value)] for name, value in arguments.items()]
        return " ".join(word for one in options for word in one)
    words = _words(_VERB_OF[tool], arguments) if tool in _VERB_OF else None
    return quoted(["rt", *words]) if words else command_of(tool, arguments)


def _words(verb: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """Return the words of a verb for a call's arguments; None where it does not take them all."""
    bare = [value_text(arguments[name]) for name in _BARE if name in arguments]
    if verb == "find" and "pattern" not in arguments:
        bare = ["*", *(one for one in bare if one != ".")]
    options: list[str] = []
    for name, value in arguments.items():
        if verb == "open" and name in _LINES:
            bare = [f"{bare[0]}:{value}"]
        elif name not in _BARE:
            option = _option(name, value, verb)
            if option is None:
                return None
            options += option
    return [verb, *bare, *options]


def _option(name: str, value: Any, verb: str = "") -> list[str] | None:
    """Return the option that a verb, or any, has for a parameter, with its value; None where none has one."""
    for one in VERBS[verb].options if verb else (one for each in VERBS.values() for one in each.options):
        if one.names and one.key == name:
            return [one.names[0], *([value_text(value)] if one.value else [])]
    return None


_VIEWS = ("open", "scroll")
_SEARCHES = ("find", "grep", "grep-file")
_PAGER = "less -FRX"
# (what a line looks like, its parts' colours): the numbers are those of the terminal (ECMA-48, SGR).
_ROWS: Final = (
    (r"(--- .* \(lines \d+-\d+\) ---)$", ("1",)),
    (r"(✓ (?:Edited|Undone) .*)$", ("32",)),
    (r"(?s)(\d+ ?:)( .*)?$", ("2",)),
    (r"(?s)([^\n:]+)(:\d+:)( .*)$", ("35", "32")),
)


class Printing:
    """Prints the answers of one command; `code` is its exit code."""

    def __init__(self, answer: TextIO, *, as_json: bool, names_only: bool = False) -> None:
        """Print to `answer`; with `names_only` each file that holds a match once, in place of the matches."""
        self._answer, self._as_json, self._names_only = answer, as_json, names_only
        self._named: set[str] = set()
        self._calls = 0
        self._failed = False
        self._terminal = answer.isatty()
        self._pages: list[str] = []
        self._notes: list[str] = []
        self.code = EXIT_OK
        self._found = False

    def show(self, verb: str, response: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any] | None:
        """Print one answer, or store it for the pager; return the parameters of the call that follows, if one must."""
        self._calls += 1
        self._judge(verb, response)
        if self._as_json:
            print_json(response, self._answer)
        elif self._names_only and response["status"] != "error":
            return self._show_names(response["data"], parameters)
        else:
            self._show(verb, response)
        return None

    def _show_names(self, data: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any] | None:
        names = dict.fromkeys(match["file"] for match in data["matches"])
        self._write("".join(f"{name}\n" for name in names if name not in self._named))
        self._named.update(names)
        return {**parameters, "offset": data["next_offset"]} if "next_offset" in data else None

    def _show(self, verb: str, response: dict[str, Any]) -> None:
        for warning in response.get("warnings", ()):
            print(harmless(f"rt: warning: {warning}"), file=sys.stderr)
        if response["status"] == "error":
            # A refused edit's is the patch that it would have been.
            if text := (response["data"] or {}).get("output"):
                self._write(f"{text}\n")
            print(harmless(f"rt: {response['error']}"), file=sys.stderr)
            return
        data = response["data"]
        text = str(data["output"])
        notices = [str(one) for one in data.get("notices", ())]
        # Notices end the text in their order, so they come off from the last one.
        for notice in reversed(notices):
            text = text.removesuffix(notice).removesuffix("\n")
        if "entries" in data:
            text, *notices = text.split("\n[tool_result: ")
            notices = [f"[tool_result: {one}" for one in notices]
        # That something was left out belongs to the answer; what else is to be said stands beside it.
        cut = [one.replace("[tool_result: ", "[truncated: ", 1) for one in notices if one.startswith("[tool_result: ")]
        lines = [*([text] if text else []), *(cut if data.get("truncated") else ())]
        if lines:
            self._write("\n".join(lines) + "\n")
        self._notes += [one for one in notices if not one.startswith("[tool_result: ")]
        self._notes += _go_on(data) if verb in _VIEWS else []

    def _judge(self, verb: str, response: dict[str, Any]) -> None:
        """Several searches are one: something found in any of them is success."""
        code = exit_code(response)
        data = response["data"]
        if code == EXIT_OK and verb in _SEARCHES:
            self._found |= data["total"] > 0
            if not self._failed:
                self.code = EXIT_OK if self._found else EXIT_NO
            return
        # What could not be searched is an error, also where other files were.
        self._failed |= code != EXIT_OK
        # The worst of several calls, as grep reports it.
        self.code = max(self.code, code)

    def _write(self, text: str) -> None:
        if self._terminal:
            self._pages.append(text)
        else:
            self._answer.write(_painted(text, self._answer))

    def close(self) -> None:
        """Finish: print the collected text to the terminal, and the notes to standard error."""
        if self._pages:
            _to_terminal("".join(self._pages), self._answer)
        self._answer.flush()
        notes = self._notes
        if self._calls > 1:
            # One search of many files: that some of them hold nothing is no news.
            notes = [line for line in notes if not line.startswith("[no matches")]
            if not self._found and len(notes) < len(self._notes):
                notes.append(f"[no matches in the {self._calls} files and folders searched]")
        for line in notes:
            print(harmless(line), file=sys.stderr)


def _to_terminal(text: str, answer: TextIO) -> None:
    """Write text that cannot steer the terminal, through a pager where it is longer than the screen."""
    text = _painted(harmless(text), answer)
    command = _pager(text.count("\n"))
    if command is None:
        answer.write(text)
        return
    answer.flush()
    subprocess.run(command, input=text.encode(), stdout=answer, check=False)


def _go_on(data: dict[str, Any]) -> list[str]:
    """Return the note that says where a window of a file is in it, and what shows the next one."""
    if not data["more_below"] or data["truncated"]:
        return []
    path, end = shlex.quote(data["file_path"]), data["end_line"]
    # Without a memory of the last window `scroll` would show the first one again.
    go_on = f"rt scroll {path} +" if data.get("remembered", True) else f"rt open {path}:{end + 1}-{end + 100}"
    return [f"[lines {data['start_line']}-{end} of {data['total_lines']}; go on: {go_on}]"]


def _painted(text: str, stream: TextIO) -> str:
    return painted(text, _ROWS) if has_colour(stream) else text


def _pager(lines: int) -> list[str] | None:
    """Return the pager's command where the text is longer than the screen, and somebody can leave it again."""
    if lines < shutil.get_terminal_size().lines or not sys.stdin.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    words = shlex.split(os.environ.get("PAGER", _PAGER))
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None
