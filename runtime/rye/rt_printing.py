"""How `rt` prints answers: text on standard output in a fixed format, all else on standard error; colours and a pager on
a terminal only.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any, TextIO

from rye.cli.verbs import EXIT_NO, EXIT_OK, exit_code, print_json

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
    ("literal", "-F"), ("ignore_case", "-i"), ("line_ids", "--ids"), ("hidden", "--hidden"), ("no_ignore", "--no-ignore"),
    ("include", "--include"), ("limit", "--limit"),
)  # fmt: skip


class Printing:
    """Prints the answers of one command; `code` is its exit code."""

    def __init__(self, answer: TextIO, *, as_json: bool) -> None:
        """Print to `answer`."""
        self._answer, self._as_json = answer, as_json
        self._terminal = answer.isatty()
        self._pages: list[str] = []
        self._beside: list[str] = []
        self.code = EXIT_OK
        self._found = False

    def show(self, verb: str, response: dict[str, Any], parameters: dict[str, Any]) -> None:
        """Print one answer, or keep it for the pager."""
        self._judge(verb, response, parameters)
        if self._as_json:
            print_json(response, self._answer)
            return
        for warning in response.get("warnings", ()):
            print(f"rt: warning: {_in_words(str(warning))}", file=sys.stderr)
        if response["status"] == "error":
            print(f"rt: {_in_words(response['error'])}", file=sys.stderr)
            return
        data = response["data"]
        text = str(data["output"])
        for notice in reversed(data.get("notices", ())):
            text = text.removesuffix(notice).removesuffix("\n")
        if data.get("truncated") and "entries" in data:
            text = text.rpartition("\n[tool_result: ")[0]
        lines = [*([text] if text else []), *_cut(verb, data, parameters)]
        if lines:
            self._write("\n".join(lines) + "\n")
        self._beside += _beside(verb, data, parameters)

    def _judge(self, verb: str, response: dict[str, Any], parameters: dict[str, Any]) -> None:
        """Several searches are one: something found in any of them is success."""
        code = exit_code(response)
        data = response["data"] or {}
        if code == EXIT_OK and verb in _SEARCHES:
            self._found |= data["total"] > 0
            code = EXIT_OK if self._found else EXIT_NO
            self.code = code if self.code in (EXIT_OK, EXIT_NO) else self.code
            return
        if code == EXIT_OK and data.get("applied") is False and not parameters.get("dry_run"):
            code = EXIT_NO
        self.code = max(self.code, code)

    def _write(self, text: str) -> None:
        if self._terminal:
            self._pages.append(text)
        else:
            self._answer.write(text)

    def close(self) -> None:
        """Finish: what was kept goes to the terminal, what is to be said beside it to standard error."""
        if self._pages:
            _to_terminal("".join(self._pages), self._answer)
        self._answer.flush()
        for line in self._beside:
            print(line, file=sys.stderr)


def _to_terminal(text: str, answer: TextIO) -> None:
    """Write text that cannot steer the terminal, through a pager where it is longer than the screen."""
    text = _harmless(text)
    if _wants_colour():
        text = "\n".join(map(_coloured, text.split("\n")))
    command = _pager(text.count("\n"))
    if command is None or not _paged(command, text, answer):
        answer.write(text)


def _in_words(said: str) -> str:
    """Name the commands where a message names the tools' calls."""
    # Its patterns are compiled only where there is something to say.
    from rye.rt_words import in_words

    return in_words(said)


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
    given = [(option, parameters[name]) for name, option in _OPTIONS if parameters.get(name) not in (None, False)]
    return [word for option, value in given for word in ([option] if value is True else [option, str(value)])]


def _beside(verb: str, data: dict[str, Any], parameters: dict[str, Any]) -> list[str]:
    """Return what is said on standard error: where a window stands, why nothing was found, what could not be read."""
    out = [_in_words(str(one)) for one in data.get("notices", ()) if not str(one).startswith("[tool_result: ")]
    if verb in _VIEWS and data["more_below"] and not data["truncated"]:
        path = shlex.quote(data["file_path"])
        out.append(f"[lines {data['start_line']}-{data['end_line']} of {data['total_lines']}; go on: rt scroll {path} +]")
    if data.get("applied") is False and not parameters.get("dry_run"):
        out.append(f"rt: not applied: the profile is {data['profile']} (RAGIX_PROFILE, or swe.profile in a rye.yaml).")
    return out


def _harmless(text: str) -> str:
    """Return text whose control characters cannot steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _wants_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"


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
    import shutil

    if lines < shutil.get_terminal_size().lines or not sys.stdin.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    words = shlex.split(os.environ.get("PAGER", _PAGER))
    return words if words and words[0] != "cat" and shutil.which(words[0]) else None


def _paged(command: list[str], text: str, answer: TextIO) -> bool:
    import subprocess

    answer.flush()
    try:
        done = subprocess.run(command, input=text.encode(), stdout=answer, check=False)  # noqa: S603 - the user's own pager
    except OSError:
        return False
    return done.returncode not in (126, 127)
