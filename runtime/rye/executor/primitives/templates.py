"""Placeholders in what a chain declares: `{name}` and `${VARIABLE:-default}`, filled in one pass.

What is filled in is never read again as a template. A placeholder is in one argument of a program, and what it stands for
stays in that argument: no shell sees it. Two things would still turn data into code or options, and are refused: a parameter
in what an interpreter takes as program text (behind `-c`, `-e`, …) or as the program itself, and a value that begins with `-`
where the program would take it for an option.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from rye.call.safe_text import is_encodable, plain
from rye.errors import ItemError, UsageError

FOLDER: Final = "\0"
"""Stands for the folder with the tool's files, whose path is known only where the program starts. No argument holds a NUL."""

WHOLE: Final = "params_json"
"""The placeholder of all parameters as one JSON object."""

_PLACEHOLDER: Final = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-([^{}]*))?\}|\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Behind these an interpreter or a shell takes program text.
_CODE: Final = re.compile(r"-[A-Za-z]{0,2}[ceEp]|--(?:eval|command|exec|print|execute|expression|require|import)")
_NUMBER: Final = re.compile(r"-\d+(?:\.\d+)?")


def names(text: str) -> set[str]:
    """Return the names of a text's `{…}` placeholders."""
    return {match[3] for match in _PLACEHOLDER.finditer(text) if match[3]}


def check(item_id: str, command: str, args: Sequence[str], parameters: Collection[str]) -> None:
    """Return if no parameter is spliced into program text, or names the program.

    Raises:
        ItemError: `spliced_parameter`.
    """
    data = {*parameters, WHOLE}
    for at, text in enumerate(args):
        spliced = sorted(names(text) & data)
        option = text.partition("{")[0].removesuffix("=")
        if spliced and (_CODE.fullmatch(option) or (at > 0 and _CODE.fullmatch(args[at - 1]))):
            raise _spliced(item_id, spliced[0], f"args[{at}] is program text")
    if spliced := sorted(names(command) & data):
        raise _spliced(item_id, spliced[0], "command is the program")


def _spliced(item_id: str, name: str, where: str) -> ItemError:
    why = f"The chain of {item_id} would put the parameter {{{name}}} where {where}: a value could become code."
    hint = "Pass it as an argument of its own, or let the program read it from its standard input, which is JSON."
    return ItemError("spliced_parameter", why, hint)


def fill(text: str, values: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled; a `{name}` that `values` lacks stays as it is, an unset `${X}` is empty."""

    def value(match: re.Match[str]) -> str:
        variable, default, name = match.groups()
        if variable:
            return variables.get(variable) or default or ""
        return values.get(name, match[0])

    return _PLACEHOLDER.sub(value, text)


def arguments(
    args: Sequence[str],
    values: Mapping[str, str],
    parameters: Mapping[str, str],
    absent: Collection[str],
    variables: Mapping[str, str],
) -> list[str]:
    """Return a program's arguments; one that names a parameter in `absent` is left out.

    Raises:
        UsageError: `option_like_value`.
    """
    found: list[str] = []
    for text in args:
        named = names(text)
        if named & set(absent):
            continue
        filled = fill(text, {**values, **parameters}, variables)
        first = _PLACEHOLDER.match(text)
        if first and first[3] in parameters and filled.startswith("-") and "--" not in found and not _NUMBER.fullmatch(filled):
            why = f"{first[3]} begins with `-`, and the program would take it for an option."
            hint = "Give another value, such as ./-x for a file; the tool's author can put `--` before it."
            raise UsageError("option_like_value", why, hint)
        found.append(filled)
    return found


def text_of(item_id: str, name: str, value: Any) -> str:
    """Return a parameter's value as one text: a text as it is, all else as JSON.

    Raises:
        UsageError: `bad_value`, no argument of a program can hold it.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\0" in text or not is_encodable(text):
        why = f"{plain(name)} of {item_id} holds a NUL or a lone surrogate, which no argument of a program can."
        raise UsageError("bad_value", why, "Leave it out.")
    return text
