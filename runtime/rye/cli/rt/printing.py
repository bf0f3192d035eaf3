"""How `rt` prints answers: text on standard output in a fixed format, all else on standard error; colours and a pager on
a terminal only.

What the tools' messages say in calls, said in commands: whoever reads them at a terminal can type those.

A call of a tool that has a verb becomes `rt …`; of any other, `rye NAME name=value …`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TextIO

from rye.cli.shared import EXIT_NO, EXIT_OK, exit_code, harmless, print_json
from rye.cli.terminal import has_colour

# The message's own words, and what one types here. Longer ones first: others are a part of them.
_WORDS = (
    ("insert_at with line=1 (rt insert PATH 1)", "rt insert PATH 1"),
    ("insert_at (rt insert)", "rt insert"),
    ("edit_range (rt edit)", "rt edit"),
    ("literal=true", "-F"),
    ("hidden=true", "--hidden"),
    ("no_ignore=true", "--no-ignore"),
    ("dry_run shows", "--dry-run shows"),
    ("list=true", "--list"),
    ("edit by line IDs", "edit by line number"),
    ("Use rye/bash/bash with head", "Use head"),
    ("project_path (or --project)", "--project"),
    ("project_path a directory", "--project a directory"),
    ("as ls, glob or grep show it", "as rt find or rt grep show it"),
    ("Use ls on its parent", "Use rt find"),
)
# Tools that messages name in calls.
_NAMES = (
    "read|write|edit_lines|undo|ls|glob|grep|job|lsp|get_patch_change|workspace_read_file|open_file_chunk|workspace_apply_patch"
)
# A call, with the word that leads to it: names, and values that are texts in quotes, numbers, words, or left to be filled in.
_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[\w.…]+|\[\])'
_CALL = re.compile(rf"\b(?:(?P<lead>[Cc]all|by) )?(?P<name>{_NAMES})\((?P<args>\w+={_VALUE}(?:, \w+={_VALUE})*)\)")
_ARG = re.compile(rf"(\w+)=({_VALUE})")
_ENCODING = r'\bencoding=(?:"([^"]*)")?'
_VERBS = {"Call": "Run ", "call": "run ", "by": "by "}


def in_commands(text: str) -> str:
    """Return a tool's message with commands of `rye` in place of its calls."""
    return _CALL.sub(lambda match: _command(match, lambda *_: None), text)


def in_words(text: str) -> str:
    """Return a tool's message with commands of `rt` in place of its calls, and options in place of parameters."""
    # Calls first: the plain words below occur inside them.
    text = _CALL.sub(lambda match: _command(match, _verb), text)
    text = re.sub(_ENCODING, lambda match: f"--encoding {match[1] or 'NAME'}", text)
    for tool, verb in _WORDS:
        text = text.replace(tool, verb)
    return text


def _command(match: re.Match[str], verb: Callable[[str, dict[str, str]], list[str] | None]) -> str:
    arguments = {name: _value(text) for name, text in _ARG.findall(match["args"])}
    words = verb(match["name"], arguments) or ["rye", match["name"], *(f"{k}={v}" for k, v in arguments.items())]
    return f"{_VERBS.get(match['lead'], '')}`{' '.join(word if word == '…' else shlex.quote(word) for word in words)}`"


def _value(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _verb(name: str, arguments: dict[str, str]) -> list[str] | None:
    """Return the `rt` command for a call; None where there is none."""
    path = arguments.get("file_path", arguments.get("path", "."))
    if name in ("read", "open_file_chunk"):
        at = arguments.get("offset") or arguments.get("line") or arguments.get("start")
        named = ["--encoding", arguments["encoding"]] if "encoding" in arguments else []
        return ["rt", "open", f"{path}:{at}" if at else path, *named]
    if name == "ls":
        return ["rt", "find", "*", *([path] if path != "." else [])]
    if name == "undo" and "list" in arguments:
        return ["rt", "undo", "--list", *(["--offset", arguments["offset"]] if "offset" in arguments else [])]
    if name == "undo" and "entry_id" in arguments:
        return ["rt", "undo", arguments["entry_id"]]
    return None


_VIEWS = ("open", "scroll")
_SEARCHES = ("find", "grep", "grep-file")
_PAGER = "less -FRX"
# (what a line looks like, its parts' colours): the numbers are those of the terminal (ECMA-48, SGR).
_COLOURS = (
    (r"(--- .* \(lines \d+-\d+\) ---)$", ("1",)),
    (r"(✓ (?:Edited|Undone) .*)$", ("32",)),
    (r"(?s)(\d+ ?:)( .*)?$", ("2",)),
    (r"(?s)([^\n:]+)(:\d+:)( .*)$", ("35", "32")),
    (r"(?s)(\+.*)$", ("32",)),
    (r"(?s)(-.*)$", ("31",)),
    (r"(?s)(@@ .*)$", ("36",)),
)


_OPTIONS = (
    ("literal", "-F"),
    ("ignore_case", "-i"),
    ("line_ids", "--ids"),
    ("hidden", "--hidden"),
    ("no_ignore", "--no-ignore"),
    ("include", "--include"),
    ("limit", "--limit"),
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
            self._show(verb, response, parameters)
        return None

    def _show_names(self, data: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any] | None:
        names = dict.fromkeys(match["file"] for match in data["matches"])
        self._write("".join(f"{name}\n" for name in names if name not in self._named))
        self._named.update(names)
        return {**parameters, "offset": data["next_offset"]} if "next_offset" in data else None

    def _show(self, verb: str, response: dict[str, Any], parameters: dict[str, Any]) -> None:
        for warning in response.get("warnings", ()):
            print(harmless(f"rt: warning: {in_words(str(warning))}"), file=sys.stderr)
        if response["status"] == "error":
            # A refused edit's is the patch that it would have been.
            if text := (response["data"] or {}).get("output"):
                self._write(f"{text}\n")
            print(harmless(f"rt: {in_words(response['error'])}"), file=sys.stderr)
            return
        data = response["data"]
        text = str(data["output"])
        # Notices end the text in their order, so they come off from the last one.
        for notice in reversed(data.get("notices", ())):
            text = text.removesuffix(notice).removesuffix("\n")
        if data.get("truncated") and "entries" in data:
            text = text.rpartition("\n[tool_result: ")[0]
        lines = [*([text] if text else []), *_cut(verb, data, parameters)]
        if lines:
            self._write("\n".join(lines) + "\n")
        self._notes += _notes(verb, data)

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
    if command is None or not _paged(command, text, answer):
        answer.write(text)


def _cut(verb: str, data: dict[str, Any], parameters: dict[str, Any]) -> list[str]:
    """Return the line that ends an answer which leaves out something that was asked for."""
    if not data.get("truncated"):
        return []
    if verb in _VIEWS:
        path = shlex.quote(data["file_path"])
        return [f"[truncated: lines {data['start_line']}-{data['end_line']} shown; go on: rt open {path}:{data['next_line']}]"]
    if verb in _SEARCHES:
        if "next_offset" not in data:
            return ["[truncated: the time ran out; narrow the folder or the pattern]"]
        where = parameters.get("root", parameters.get("path", "."))
        words = [parameters["pattern"], where, *_options(parameters), "--offset", str(data["next_offset"])]
        unit = "files" if verb == "find" else "matches"
        return [f"[truncated: {data['count']} of {data['total']} {unit} shown; go on: rt {verb} {shlex.join(words)}]"]
    if "entries" in data:
        call = shlex.join(["rt", "undo", "--list", *_options(parameters), "--offset", str(data["next_offset"])])
        return [f"[truncated: {data['count']} of {data['total']} changes shown; go on: {call}]"]
    return ["[truncated: the answer is too long to be shown whole]"]


def _options(parameters: dict[str, Any]) -> list[str]:
    """Return the options with which the call was made, but for where it began."""
    options = [(option, parameters[name]) for name, option in _OPTIONS if parameters.get(name) not in (None, False)]
    return [word for option, value in options for word in ([option] if value is True else [option, str(value)])]


def _notes(verb: str, data: dict[str, Any]) -> list[str]:
    """Return the notes for standard error: where a window begins, why nothing was found, what could not be read."""
    out = [in_words(str(one)) for one in data.get("notices", ()) if not str(one).startswith("[tool_result: ")]
    if verb in _VIEWS and data["more_below"] and not data["truncated"]:
        path, end = shlex.quote(data["file_path"]), data["end_line"]
        # Without a memory of the last window `scroll` would show the first one again.
        go_on = f"rt scroll {path} +" if data.get("remembered", True) else f"rt open {path}:{end + 1}-{end + 100}"
        out.append(f"[lines {data['start_line']}-{end} of {data['total_lines']}; go on: {go_on}]")
    return out


def _painted(text: str, stream: TextIO) -> str:
    return "\n".join(map(_coloured, text.split("\n"))) if has_colour(stream) else text


def _coloured(line: str) -> str:
    for pattern, colours in _COLOURS:
        match = re.match(pattern, line)
        if match is not None:
            parts = [part or "" for part in match.groups()]
            painted = [f"\x1b[{code}m{part}\x1b[0m" for code, part in zip(colours, parts, strict=False)]
            return "".join([*painted, *parts[len(colours) :]])
    return line


def _pager(lines: int) -> list[str] | None:
    """Return the pager's command where the text is longer than the screen, and somebody can leave it again."""
    if lines < shutil.get_terminal_size().lines or not sys.stdin.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    words = shlex.split(os.environ.get("PAGER", _PAGER))
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


def _paged(command: list[str], text: str, answer: TextIO) -> bool:
    answer.flush()
    try:
        result = subprocess.run(command, input=text.encode(), stdout=answer, check=False)
    except OSError:
        return False
    # The shell's codes for a program that cannot run or is not found: the text was not shown then.
    return result.returncode not in (126, 127)
