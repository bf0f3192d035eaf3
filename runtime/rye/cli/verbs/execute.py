"""`rye execute`: run a tool, read knowledge or fill in a directive, and print what it says."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from rye.call.context import CallOptions, Cancellation
from rye.cli import terminal, words
from rye.cli.process import exit_code
from rye.cli.shared import answer_stream, at_terminal, current_in, project_to_work_in, require_person
from rye.cli.terminal import harmless, note, printable, told_json
from rye.config import user_dirs
from rye.errors import RyeError, UsageError
from rye.fs import atomic
from rye.sandbox import environment

if TYPE_CHECKING:
    from types import SimpleNamespace

    from rye.executor.executor import Prepared

# Characters at the end of what was shown.
_REMEMBERED = 1 << 16
_DAY = 86_400


def run_execute(args: SimpleNamespace) -> int:
    """Run `rye execute`; return its exit code."""
    from rye import api
    from rye.executor import executor

    # First of all: from here on no other process of this user can read this one's memory or attach to it.
    environment.close()
    project = project_to_work_in(args.project)
    if args.allow_unsigned:
        require_person("run a tool that is not signed")
    item_id = _item_id(args, project)
    # Admitted once, then passed to the call, so that no other file can come between typing and running.
    prepared = _prepared(args, item_id, project)
    parameters = _parameters(args, item_id, project, prepared)
    with answer_stream() as answer:
        cancellation = Cancellation()
        # A program that calls `main` may have put a stream of text alone in the place of standard output.
        piped = _Piped(answer, cancellation) if hasattr(answer, "buffer") and hasattr(sys.stderr, "buffer") else None
        watched = None if args.json else _Watched(answer) if answer.isatty() else piped
        options = CallOptions(
            on_output=watched if isinstance(watched, _Watched) else None,
            on_bytes=watched if isinstance(watched, _Piped) else None,
            cancellation=cancellation,
            # A model may read what no terminal shows.
            writes_call=words.command_of if at_terminal() and not args.json else None,
        )
        call = executor.Call(
            args.type, item_id, parameters, project, args.dry_run, args.allow_unsigned, options, prepared=prepared
        )
        response = api.answer(call)
        if watched is not None:
            watched.close()
        if not told_json(args, response, answer):
            _print(response, answer, project, watched)
    return exit_code(response)


def _item_id(args: SimpleNamespace, project: str) -> str:
    """Return the id of the item that was typed; what `rye execute` cannot find stays as it is, for the call to refuse."""
    found = words.tool_id(args.item_id, project) if args.type == "tool" else None
    if found is None and args.short and "/" not in args.item_id:
        raise words.unknown_verb(args.item_id, project)
    return found or str(args.item_id)


class _Watched:
    """Shows a terminal what a running tool says, as it comes."""

    def __init__(self, answer: TextIO) -> None:
        self._answer = answer
        self.shown = ""

    def __call__(self, text: str) -> None:
        # The end is enough to tell what the answer adds to it.
        self.shown = (self.shown + text)[-_REMEMBERED:]
        print(harmless(text), end="", file=self._answer, flush=True)

    def close(self) -> None:
        """Begin the rest of the answer on a line of its own."""
        if self.shown and not self.shown.endswith("\n"):
            print(file=self._answer)


class _Piped:
    """Gives a pipe what a running command writes, byte for byte and as it comes; its error output goes to ours."""

    def __init__(self, answer: TextIO, cancellation: Cancellation) -> None:
        self._answer, self._cancellation = answer, cancellation
        self._failure: OSError | None = None
        self.shown = ""

    def __call__(self, stream: int, block: bytes) -> None:
        if self._failure is not None or not block:
            return
        self.shown = (self.shown + block.decode(errors="replace"))[-_REMEMBERED:]
        target = self._answer if stream == 1 else sys.stderr
        try:
            target.flush()
            target.buffer.write(block)
            target.buffer.flush()
        except OSError as err:
            # Nobody reads any more (`| head`): as by SIGPIPE, the command ends.
            self._failure = err
            self._cancellation.cancel()

    def close(self) -> None:
        """Raise the OSError that ended the command, if one did."""
        if self._failure is not None:
            raise self._failure


def _prepared(args: SimpleNamespace, item_id: str, project: str) -> Prepared | None:
    """Return the tool whose schema types the words, admitted once; None where it is refused."""
    from rye.executor import executor

    if args.type != "tool":
        return None
    try:
        return executor.prepare(item_id, project, allow_unsigned=args.allow_unsigned)
    except RyeError:
        # The call says why.
        return None


def _parameters(args: SimpleNamespace, item_id: str, project: str, prepared: Prepared | None) -> dict[str, Any]:
    parameters = _json_parameters(args.params) if args.params is not None else {}
    if (args.values or args.rest) and (prepared is not None or args.type != "tool"):
        schema = prepared.ready.tool.schema if prepared else {}
        if args.type == "directive":
            from rye.executor import texts

            schema = texts.schema_of(item_id, project)
        letters = prepared.ready.tool.letters if prepared else {}
        # After `--params`, since a word on the command line wins over it.
        parameters.update(words.parameters(schema, args.values, args.rest, project, called=args.item_id, letters=letters))
        if args.dry_run and "dry_run" in schema.get("properties", {}):
            # The tool's own shows what it would do.
            args.dry_run, parameters["dry_run"] = False, True
    elif prepared is not None and args.params is None and not args.json:
        words.insist(prepared.ready.tool.schema, args.item_id)
    return parameters


def _json_parameters(source: str) -> dict[str, Any]:
    is_file = source == "-" or source[:1] == "@"
    text = words.of_file("--params", source.removeprefix("@")) if is_file else source
    found = words.of_json("--params", text, " '{…}'")
    if not isinstance(found, dict):
        raise UsageError("bad_params", "--params is no JSON object.", 'Give an object such as \'{"file_path": "a.py"}\'.')
    return found


def _print(response: dict[str, Any], answer: TextIO, project: str, watched: _Watched | _Piped | None) -> None:
    for warning in response.get("warnings", ()):
        note(f"warning: {warning}")
    data = response["data"]
    _tell_of_landlock((data or {}).get("sandbox"))
    if response["status"] == "validation_passed":
        print(f"{response['item_id']}: verified, parameters valid, not run.", file=answer)
    elif watched is not None and watched.shown:
        # What the tool adds to the output that was shown as it came: the sandbox's notes, on lines of their own.
        for line in str(data.get("output", "")).split("\n"):
            if line.startswith("[sandbox: ") and line not in watched.shown:
                print(harmless(line), file=sys.stderr)
    else:
        # A command that failed has printed something all the same.
        _print_text(data.get("output", ""), answer)
        _print_text(data.get("stderr", ""), sys.stderr)
    if response["status"] == "error":
        answer.flush()
        _print_trace(data)
        message = f"{response['error']}{_where(response, project)}"
        # What the command said last was shown as it came; what a tool says of its failure was not.
        if watched is not None and watched.shown and data.get("exit_code") and data.get("code") != "tool_failed":
            hint = f" {printable(str(data['hint']))}" if "missing_permission" in data else ""
            message = f"The command ended with exit code {data['exit_code']}.{hint}"
        if response.get("code") == "invalid_parameters":
            # Of a tool that runs another, such as rye_execute, the one that was refused.
            data = data or {}
            inner = data.get("details")
            data = {**data, **(inner if isinstance(inner, dict) else {})}
            called = printable(str(data.get("item_id", response["item_id"])).rpartition("/")[2])
            # The whole schema in a line is for a model; a person asks for it.
            message = "; ".join(data["problems"]) if "problems" in data else message
            message += f"{'' if message.endswith(('.', '?')) else '.'} `rye help {called}` explains them."
        print(f"{terminal.styled('rye:', 'error', sys.stderr)} {harmless(message)}", file=sys.stderr)


def _tell_of_landlock(report: Any) -> None:
    """Say once a day at most that a command could write git's hooks and settings; each result lists it under `missing`."""
    if not isinstance(report, dict) or report.get("kind") != "landlock" or "protected_names" not in report.get("missing", ()):
        return
    told = f"{user_dirs.user_ai()}/state/landlock-told"
    # Where nothing can be stored it is said each time.
    with suppress(OSError):
        if 0 <= time.time() - os.stat(told).st_mtime < _DAY:
            return
    with suppress(OSError):
        atomic.write(told, b"", 0o600, durably=False)
    note(
        "the sandbox here is Landlock, which does not protect names in the project (.git/hooks, .git/config, .vscode …): "
        "what would start a program is set aside after the command. `rye doctor` says how to get bubblewrap."
    )


def _print_trace(data: dict[str, Any]) -> None:
    """Show a person at a terminal the traceback of a crash; anything else may be a model, which gets the file's name alone."""
    if data.get("code") == "tool_crashed" and at_terminal():
        from rye.executor import failures

        print(harmless(failures.trace_of(data).rstrip()), file=sys.stderr)


def _where(response: dict[str, Any], project: str) -> str:
    """Return which project it was, where a path was not found and the current folder is another one."""
    if response.get("code") not in ("file_not_found", "path_outside") or current_in(os.path.realpath(project)) == ".":
        return ""
    return f" (The project is {printable(project)}.)"


def _print_text(text: object, stream: TextIO) -> None:
    # Terminators in a tool's text are its own: what the encoding cannot hold is escaped, nothing is translated. At a terminal
    # no text steers it; to a pipe it goes as it is.
    shown = harmless(str(text)) if stream.isatty() else str(text)
    if terminal.has_colour(stream):
        shown = terminal.painted(shown)
    print(shown, end="" if shown.endswith("\n") or not shown else "\n", file=stream)
