"""`rye execute`: run a tool, read knowledge or fill in a directive, and print what it says."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from rye.call.context import CallOptions
from rye.cli.shared import (
    Verb,
    add_project_option,
    answer_stream,
    at_terminal,
    exit_code,
    harmless,
    print_json,
    printable,
    project_to_work_in,
    typed_path,
)
from rye.errors import RyeError, UsageError
from rye.items import schema
from rye.sandbox import environment

if TYPE_CHECKING:
    from rye.executor.executor import Prepared

_EPILOG = """\
A value is typed by the tool's schema: limit=20 is a number, changes='[{"line_id": "a1b2c3", "new_content": "x"}]' a list.

examples:
  rye execute rye/file-system/read file_path=README.md limit=20
  rye execute rye/file-system/edit_lines file_path=a.py changes='[{"line_id": "a1b2c3", "new_content": "x = 1"}]'
  rye execute rye/core/signing-and-trust --type knowledge
  echo '{"file_path": "a.py", "content": "x = 1\\n"}' | rye execute rye/file-system/write --params -
"""


def _build(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rye execute ITEM_ID [name=value …] [--type T] [--params JSON|@file|-] [--project DIR] [--dry-run] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("item_id", help="the item's id, such as rye/file-system/read (see `rye search`)")
    parser.add_argument(
        "--type",
        metavar="T",
        choices=("tool", "knowledge", "directive"),
        default="tool",
        help="what the id names: tool (default), knowledge or directive",
    )
    parser.add_argument(
        "values",
        nargs="*",
        default=[],
        metavar="name=value",
        help="a parameter; wins over --params. A path is tried from the current folder, then from the project root",
    )
    parser.add_argument("--params", metavar="JSON|@file|-", help="all parameters: JSON, a file, or stdin")
    add_project_option(parser)
    parser.add_argument("--dry-run", action="store_true", help="verify, validate and confine, but do not run")
    parser.add_argument("--allow-unsigned", action="store_true", help="run an unsigned tool you are building (terminal only)")
    parser.add_argument("--json", action="store_true", help="print the whole response as JSON, and nothing else")


def _run(args: argparse.Namespace) -> int:
    from rye import api
    from rye.executor import executor

    # First of all: from here on no other process of this user can read this one's memory or attach to it.
    environment.close()
    project = project_to_work_in(args.project)
    if args.allow_unsigned:
        _require_person()
    # Admitted once, then passed to the call, so that no other file can come between typing and running.
    prepared = _prepared(args, project)
    parameters = _parameters(args, project, prepared)
    with answer_stream() as answer:
        watched = _Watched(answer) if answer.isatty() and not args.json else None
        call = executor.Call(
            args.type,
            args.item_id,
            parameters,
            project,
            args.dry_run,
            args.allow_unsigned,
            CallOptions(on_output=watched),
            prepared=prepared,
        )
        response = api.answer(call)
        if args.json:
            print_json(response, answer)
        else:
            _print(response, answer, project, watched is not None and watched.text_came)
    return exit_code(response)


class _Watched:
    """Shows a terminal what a running tool says, as it comes."""

    def __init__(self, answer: TextIO) -> None:
        self._answer = answer
        self.text_came = False

    def __call__(self, text: str) -> None:
        self.text_came = True
        print(harmless(text), end="", file=self._answer, flush=True)


def _require_person() -> None:
    if not at_terminal():
        raise RyeError(
            "needs_person", "--allow-unsigned is for a person at a terminal.", "Ask your user to run or sign the tool."
        )


def _prepared(args: argparse.Namespace, project: str) -> Prepared | None:
    """Return the tool whose schema types the words, admitted once; None where there are no words, or it is refused."""
    from rye.executor import executor

    if args.type != "tool" or not args.values:
        return None
    try:
        return executor.prepare(args.item_id, project, allow_unsigned=args.allow_unsigned)
    except RyeError:
        # The call says why.
        return None


def _parameters(args: argparse.Namespace, project: str, prepared: Prepared | None) -> dict[str, Any]:
    given = _json_parameters(args.params) if args.params is not None else {}
    words: dict[str, str] = {}
    for word in args.values:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError("bad_word", f"Not name=value: {word!r}.", "Name the parameter, as in file_path=README.md.")
        if name in words:
            raise UsageError("bad_word", f"{name} is given twice.", "Give each parameter once; several values are a JSON list.")
        words[name] = value
    if words:
        wanted = prepared.ready.tool.schema if prepared else _inputs(args.type, args.item_id, project)
        for name, word in words.items():
            _check_json(name, word, wanted.get("properties", {}).get(name))
        typed = schema.from_words(wanted, words)
        paths = dict(schema.workspace_paths(wanted, typed))
        # After `--params`, since a word on the command line wins over it.
        given.update((name, _path_value(value, name, paths, project)) for name, value in typed.items())
    return given


def _path_value(value: Any, name: str, paths: Mapping[str, str], project: str) -> Any:
    """Return a typed value, its paths taken from the current folder; those of `--params` are a program's, from the root."""
    if isinstance(value, list):
        return [_path_value(one, f"{name}[{at}]", paths, project) for at, one in enumerate(value)]
    return typed_path(value, project) if name in paths and isinstance(value, str) else value


def _check_json(name: str, word: str, wanted: object) -> None:
    """Refuse a broken list or object with the reason: most often a shell has taken its quotes."""
    if isinstance(wanted, dict) and wanted.get("type") in ("array", "object"):
        try:
            json.loads(word)
        except (ValueError, RecursionError) as err:
            raise UsageError(
                "bad_word", f"{name} is not JSON: {err}. It came as {word[:200]}", f"In a shell, quote it: {name}='[…]'."
            ) from None


def _inputs(item_type: str, item_id: str, project: str) -> dict[str, Any]:
    from rye.executor import texts

    return texts.schema_of(item_id, project) if item_type == "directive" else {}


def _json_parameters(source: str) -> dict[str, Any]:
    try:
        if source == "-":
            text = sys.stdin.read()
        elif source.startswith("@"):
            with open(source[1:], encoding="utf-8") as file:
                text = file.read()
        else:
            text = source
        found = json.loads(text)
    except OSError as err:
        raise UsageError("bad_params", f"{source[1:]}: {err.strerror}.", "Give --params @file with a readable file.") from None
    except (ValueError, RecursionError) as err:
        raise UsageError("bad_params", f"--params is not JSON: {err}.", 'Give one such as \'{"file_path": "a.py"}\'.') from None
    if not isinstance(found, dict):
        raise UsageError("bad_params", "--params is no JSON object.", 'Give an object such as \'{"file_path": "a.py"}\'.')
    return found


def _print(response: dict[str, Any], answer: TextIO, project: str, was_shown: bool) -> None:
    for warning in response.get("warnings", ()):
        print(f"rye: warning: {warning}", file=sys.stderr)
    if response["status"] == "validation_passed":
        print(f"{response['item_id']}: verified, parameters valid, not run.", file=answer)
    elif not was_shown:
        data = response["data"]
        # A command that failed has printed something all the same.
        _print_text(data.get("output", ""), answer)
        _print_text(data.get("stderr", ""), sys.stderr)
    if response["status"] == "error":
        answer.flush()
        print(f"rye: {response['error']}{_where(response, project)}", file=sys.stderr)


def _where(response: dict[str, Any], project: str) -> str:
    """Return which project it was, where a path was not found and the current folder is another one."""
    if response.get("code") not in ("file_not_found", "path_outside") or os.path.realpath(project) == os.getcwd():
        return ""
    return f" (The project is {printable(project)}.)"


def _print_text(text: object, stream: TextIO) -> None:
    # Terminators in a tool's text are its own: what the encoding cannot hold is escaped, nothing is translated. At a terminal
    # no text steers it; to a pipe it goes as it is.
    shown = harmless(str(text)) if stream.isatty() else str(text)
    print(shown, end="" if shown.endswith("\n") or not shown else "\n", file=stream)


_SUMMARY = "Run a tool (verified, its parameters validated, its paths confined), read knowledge, or fill in a directive."
VERBS = {"execute": Verb(_SUMMARY, _build, _run)}
