"""`rye execute`: run a tool, read knowledge or fill in a directive, and print what it says."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TextIO

from rye.cli.verbs import Verb, answer_stream, exit_code, print_json, project_to_work_in
from rye.errors import UsageError

if TYPE_CHECKING:
    import argparse

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
        "--type", metavar="T", choices=("tool", "knowledge", "directive"), default="tool",
        help="what the id names: tool (default), knowledge or directive",
    )  # fmt: skip
    parser.add_argument("values", nargs="*", default=[], metavar="name=value", help="a parameter; wins over --params")
    parser.add_argument("--params", metavar="JSON|@file|-", help="all parameters: JSON, a file, or stdin")
    parser.add_argument("--project", metavar="DIR", help="the project root (default: nearest folder above with .ai or .git)")
    parser.add_argument("--dry-run", action="store_true", help="verify, validate and confine, but do not run")
    parser.add_argument("--allow-unsigned", action="store_true", help="run an unsigned tool you are building (terminal only)")
    parser.add_argument("--json", action="store_true", help="print the whole response as JSON, and nothing else")


def _run(args: argparse.Namespace) -> int:
    from rye import api, executor
    from rye.toolkit import unreadable
    from rye.toolkit.output import Door

    unreadable.close()
    project = project_to_work_in(args.project)
    if args.allow_unsigned:
        _require_person()
    parameters = _parameters(args, project)
    with answer_stream() as answer:
        watched = _Watched(answer) if answer.isatty() and not args.json else None
        call = executor.Call(
            args.type, args.item_id, parameters, project, args.dry_run, args.allow_unsigned, Door(on_output=watched)
        )
        response = api.answer(call)
        if args.json:
            print_json(response, answer)
        else:
            _print(response, answer, watched is not None and watched.text_came)
    return exit_code(response)


class _Watched:
    """Shows a terminal what a running tool says, as it comes."""

    def __init__(self, answer: TextIO) -> None:
        self._answer = answer
        self.text_came = False

    def __call__(self, text: str) -> None:
        self.text_came = True
        print(text, end="", file=self._answer, flush=True)


def _require_person() -> None:
    from rye.cli.presence import at_terminal
    from rye.errors import RyeError

    if not at_terminal():
        raise RyeError(
            "needs_person", "--allow-unsigned is for a person at a terminal.", "Ask your user to run or sign the tool."
        )


def _parameters(args: argparse.Namespace, project: str) -> dict[str, Any]:
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
        from rye import schema

        wanted = _schema(args.type, args.item_id, project)
        for name, word in words.items():
            _check_json(name, word, wanted.get("properties", {}).get(name))
        given.update(schema.from_words(wanted, words))
    return given


def _check_json(name: str, word: str, wanted: object) -> None:
    """Refuse a broken list or object with the reason: most often a shell has taken its quotes."""
    if isinstance(wanted, dict) and wanted.get("type") in ("array", "object"):
        try:
            json.loads(word)
        except (ValueError, RecursionError) as err:
            raise UsageError(
                "bad_word", f"{name} is not JSON: {err}. It came as {word[:200]}", f"In a shell, quote it: {name}='[…]'."
            ) from None


def _schema(item_type: str, item_id: str, project: str) -> dict[str, Any]:
    from rye import executor, served

    return served.schema_of(item_id, project) if item_type == "directive" else executor.schema_of(item_id, project)


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


def _print(response: dict[str, Any], answer: TextIO, was_shown: bool) -> None:
    for warning in response.get("warnings", ()):
        print(f"rye: warning: {warning}", file=sys.stderr)
    if response["status"] == "validation_passed":
        print(f"{response['item_id']}: verified, parameters valid, not run.", file=answer)
    elif not was_shown:
        data = response["data"] or {}
        # A command that failed has printed something all the same.
        _print_text(data.get("output", ""), answer)
        _print_text(data.get("stderr", ""), sys.stderr)
    if response["status"] == "error":
        answer.flush()
        print(f"rye: {response['error']}", file=sys.stderr)


def _print_text(text: object, stream: TextIO) -> None:
    # Terminators in a tool's text are its own: what the encoding cannot hold is escaped, nothing is translated.
    shown = str(text)
    print(shown, end="" if shown.endswith("\n") or not shown else "\n", file=stream)


_SUMMARY = "Run a tool (verified, its parameters validated, its paths confined), read knowledge, or fill in a directive."
VERBS = {"execute": Verb(_SUMMARY, _build, _run)}
