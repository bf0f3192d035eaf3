"""What a person types for a call: a tool's short name, and words that become the parameters of its schema.

A word is `name=value`, `name=@file` (the file's text), `name:=json`, `--name value`, or a bare value: bare values fill the
required parameters in the schema's order, then `path`, `root` or `file_path`. `rye read app.py limit=20` needs no more. One
word that is a JSON object of parameters is all of them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from rye.call import safe_text
from rye.cli.shared import current_in, typed_path
from rye.cli.table import VERBS
from rye.config import user_dirs
from rye.errors import UsageError
from rye.items import schema, spaces

_PLACES = ("path", "root", "file_path")
_WHERE = "working_dir"
_BEGIN = "Nothing is to be set up. Write `rye read FILE`; `rye mcp install --client NAME` tells an agent's client."
_SETTINGS = f"Settings are lines of {user_dirs.settings_file()}. Write `rye doctor` to check them."
# What one types elsewhere, and what to type here.
_ELSEWHERE = {
    **dict.fromkeys(("init", "setup", "install", "start"), _BEGIN),
    **dict.fromkeys(("config", "settings", "set"), _SETTINGS),
    "version": "Write `rye --version`.",
    "cat": "Write `rye read FILE`.",
    "find": "Write `rye glob PATTERN`.",
    "edit": "Write `rye edit_lines FILE 'ID|new text'`, ID as `rye read FILE` shows it.",
    "history": "Write `rye log`.",
    "status": "Write `rye log` for what was changed, `rye doctor` for this machine.",
}


def tool_id(word: str, project: str) -> str | None:
    """Return the id that a typed name stands for: itself if it has a `/`, else that of the one tool whose last part it is.

    Of several the system's own wins, as in the names that agents see: no project can take the name `read`. None for no tool.

    Raises:
        UsageError: `ambiguous_name`.
    """
    if "/" in word:
        return word
    found = spaces.ids_ending_in("tool", word, spaces.spaces(project))
    own = [one for one in found if one.startswith(spaces.RESERVED)]
    candidates = own or found
    if len(candidates) > 1:
        why = f"{word} is the name of {len(candidates)} tools."
        raise UsageError("ambiguous_name", why, f"Say which: {' or '.join(candidates)}.")
    return candidates[0] if candidates else None


def unknown_verb(word: str, project: str) -> UsageError:
    """Return the refusal of a word that is neither a verb nor a tool's name, with what does it here, or the nearest of both."""
    if word in _ELSEWHERE:
        return UsageError("unknown_verb", f"There is no verb {word!r}.", _ELSEWHERE[word])
    names = sorted({item_id.rpartition("/")[2] for item_id, _, _ in spaces.served_items("tool", spaces.spaces(project))})
    # What begins so first: `edit` is like `undo_edit`, but nobody means that.
    close = [one for one in names if len(word) > 2 and one.startswith(word)] or safe_text.nearest(word, [*VERBS, *names], 1)
    hint = (
        f"Did you mean {' or '.join(map(repr, close[:3]))}?" if close else "`rye help` lists the verbs, `rye tools` the tools."
    )
    return UsageError("unknown_verb", f"There is no verb or tool {word!r}.", hint)


def positions(tool_schema: Mapping[str, Any]) -> list[str]:
    """Return the parameters that bare values fill, in order: the required ones; without a path, then where to look."""
    properties = tool_schema.get("properties", {})
    required = [name for name in tool_schema.get("required", ()) if name in properties]
    # A search or a listing takes its folder last, as grep, find and ls do.
    places = [name for name in _PLACES if _is_path(properties.get(name))]
    return required if any(_is_path(properties[name]) for name in required) else [*required, *places[:1]]


def _is_path(part: object) -> bool:
    return isinstance(part, dict) and part.get("format") == schema.WORKSPACE_PATH


def split_assignment(word: str) -> tuple[str, str, str] | None:
    """Return name, sign (`=` or `:=`) and value of a word; None for a bare value. No pattern: compiling one takes longer."""
    name, equals, value = word.partition("=")
    sign = ":=" if name.endswith(":") else "="
    name = name.removesuffix(":")
    is_name = equals and name.isascii() and name.replace("-", "_").isidentifier() and not name.startswith("-")
    return (name, sign, value) if is_name else None


def parameters(
    tool_schema: Mapping[str, Any],
    typed: Sequence[str],
    after_dashes: Sequence[str],
    project: str,
    *,
    called: str,
    letters: Mapping[str, str],
) -> dict[str, Any]:
    """Return the parameters that words stand for, typed as the schema says, their paths taken from the current folder.

    Args:
        tool_schema: the tool's schema; {} where none is known.
        typed: words of any form.
        after_dashes: words behind `--`: values, unless they begin with a parameter's name.
        project: the project root.
        called: the tool as it was typed, for messages.
        letters: what the tool's options of one letter stand for.

    Raises:
        UsageError: `bad_word`, with how to write it.
    """
    known = tool_schema.get("properties", {})
    if len(typed) == 1 and not after_dashes and (whole := _whole(typed[0], known)):
        return whole
    texts: dict[str, str] = {}
    values: dict[str, Any] = {}
    loose: list[str] = []
    assigned = _assigned(typed, tool_schema, called, letters)
    for at, word in enumerate([*assigned, *after_dashes]):
        found = split_assignment(word)
        if found is None or (at >= len(assigned) and found[0] not in known):
            loose.append(word)
            continue
        name, sign, rest = found
        _check_named(name, word, tool_schema, called)
        if name in texts or name in values:
            raise UsageError("bad_word", f"{name} is given twice.", "Give each parameter once; several values are a JSON list.")
        if sign == ":=":
            values[name] = of_json(name, of_file(name, rest[1:]) if rest.startswith("@") else rest)
        else:
            texts[name] = _text(name, rest, tool_schema)
    texts.update(_placed(loose, tool_schema, {*texts, *values}, called, project))
    for name, text in texts.items():
        kind = part.get("type") if isinstance(part := known.get(name), dict) else None
        if kind == "array" and schema.is_one_of(part, one := _member(text, part)):
            # A change of `edit_lines` needs no brackets. Put into a list here, so that the paths in it are found.
            values[name] = [one]
        elif kind in ("array", "object"):
            of_json(name, text, "='[…]'")
    out = {**schema.from_words(tool_schema, texts), **values}
    paths = dict(schema.workspace_paths(tool_schema, out))
    is_outside = current_in(os.path.realpath(project)).partition("/")[0] == ".."
    if _is_path(known.get(_WHERE)) and _WHERE not in out and not is_outside:
        # A command runs where the person stands.
        out[_WHERE] = paths[_WHERE] = "."
    return {name: _path_value(value, name, paths, project) for name, value in out.items()}


def _whole(word: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that one word is as a JSON object, as `rye_execute` takes them; {} for another word."""
    if word[:1] != "{":
        return {}
    try:
        found = json.loads(word)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and found.keys() <= known.keys() else {}


def insist(tool_schema: Mapping[str, Any], called: str) -> None:
    """Refuse a call without a word of a tool that needs one, in two lines.

    Raises:
        UsageError: `invalid_parameters`, with how to call it.
    """
    if tool_schema.get("required"):
        line = f"usage: rye {called} {usage(tool_schema)}"
        raise UsageError("invalid_parameters", f"{line}\n`rye help {called}` explains them.")


def usage(tool_schema: Mapping[str, Any]) -> str:
    """Return the words of a call: the parameters that bare values fill, in capitals, and whether there are others."""
    order = positions(tool_schema)
    required = tool_schema.get("required", ())
    named = [name.upper() if name in required else f"[{name.upper()}]" for name in order]
    more = any(name not in order for name in tool_schema.get("properties", {}))
    return " ".join([*named, *(["[name=value …]"] if more else [])])


def option(name: str) -> str:
    """Return the option for a parameter: `--ignore-case`."""
    return f"--{name.replace('_', '-')}"


def _assigned(typed: Sequence[str], tool_schema: Mapping[str, Any], called: str, letters: Mapping[str, str]) -> list[str]:
    """Return words of which options, as `--limit 1` and `-i`, are written as assignments, `limit=1`."""
    known, out, left = tool_schema.get("properties", {}), list[str](), list(typed)
    while left:
        word = left.pop(0)
        # A lone dash and a negative number are values.
        if word[:1] != "-" or not word.lstrip("-")[:1].isalpha():
            out.append(word)
            continue
        if word[1] != "-" and (long := _of_letters(word, known, letters)) is not None:
            left[:0] = long
            continue
        name, equals, value = word[2:].partition("=")
        name = name.replace("-", "_")
        if word[:2] != "--" or name not in known:
            raise _no_option(word, name, typed, tool_schema, called)
        if not equals and known[name].get("type") == "boolean":
            value = "true"
        elif not equals:
            if not left:
                raise UsageError("bad_word", f"{word} has no value.", f"Write {word} VALUE.")
            value = left.pop(0)
        out.append(f"{name}={value}")
    return out


def _of_letters(word: str, known: Mapping[str, Any], letters: Mapping[str, str]) -> list[str] | None:
    """Return the long options that `-li` or `-C3` stands for; None where it has a letter that the tool does not declare."""
    out = list[str]()
    for at, letter in enumerate(word[1:], 2):
        if letter not in letters:
            return None
        name, equals, value = letters[letter].partition("=")
        if name and not equals and known[name].get("type") != "boolean":
            return [*out, f"--{name}", *filter(None, [word[at:]])]
        out += [f"--{name}={value or 'true'}"] if name else []
    return out


def _no_option(word: str, name: str, typed: Sequence[str], tool_schema: Mapping[str, Any], called: str) -> UsageError:
    import shlex

    known = tool_schema.get("properties", {})
    near = [option(one) for one in safe_text.nearest(name, known, 1)] if word[:2] == "--" else []
    instead = [part for one in typed for part in ([one] if one != word else near)]
    hint = f"{'Write' if near else 'Without it'}: rye {shlex.join([called, *instead])}"
    if positions(tool_schema) == ["command"]:
        hint = _quoted(called, typed)
    return UsageError("bad_word", f"{called} has no option {word}; it has {', '.join(map(option, known))}.", hint)


def _quoted(called: str, typed: Sequence[str]) -> str:
    import shlex

    return f"A command is one word: rye {called} {shlex.quote(' '.join(typed))}"


def _placed(
    loose: Sequence[str], tool_schema: Mapping[str, Any], filled: set[str], called: str, project: str
) -> list[tuple[str, str]]:
    """Return the parameter that each bare value fills."""
    if not loose:
        return []
    order = positions(tool_schema)
    free = [name for name in order if name not in filled]
    if len(loose) > len(free):
        takes = f"{called} takes {' '.join(name.upper() for name in order)}" if order else f"{called} takes no bare values"
        hint = f"Write the others as name=value; `rye help {called}` lists the names."
        if order == ["command"]:
            hint = _quoted(called, loose)
        elif "more" in tool_schema.get("properties", {}) and free:
            import shlex

            others = json.dumps([typed_path(one, project) for one in loose[len(free) :]], ensure_ascii=False)
            hint = f"Write: rye {shlex.join([called, *loose[: len(free)], f'more={others}'])}"
        raise UsageError("bad_word", f"{loose[len(free)]!r} has no name. {takes}.", hint)
    for name, word in zip(free, loose, strict=False):
        if word == "-":
            known = tool_schema["properties"][name]
            own, other = ("./-", "") if _is_path(known) else (f"{name}=-", f"Write {name}=@- for standard input. ")
            raise UsageError("bad_word", f"{called} takes - for itself, not for standard input.", f"{other}Write {own} for it.")
    return list(zip(free, loose, strict=False))


def _check_named(name: str, word: str, tool_schema: Mapping[str, Any], called: str) -> None:
    """Refuse a word that looks like `name=value`, is no parameter, and may be the whole value of another one."""
    known = tool_schema.get("properties", {})
    if not known or name in known or tool_schema.get("additionalProperties", True) is not False:
        return
    order = positions(tool_schema)
    # A name that is nearly right is a slip: the schema's own check says which name is meant.
    if not order or safe_text.nearest(name, known, 1):
        return
    why = f"{called} has no parameter {name!r}; it has {', '.join(known)}."
    raise UsageError("bad_word", why, f"If the whole word is the {order[0]}, write {order[0]}='{word}', or put -- before it.")


def _text(name: str, rest: str, tool_schema: Mapping[str, Any]) -> str:
    part = tool_schema.get("properties", {}).get(name)
    # `@types/node` is a folder, and nobody keeps a path in a file to give it here.
    if not rest.startswith("@") or _is_path(part):
        return rest
    literal = json.dumps(rest, ensure_ascii=False)
    text = of_file(name, rest[1:], f"To give the text itself, write {name}:='{literal}'.")
    # The file's final newline belongs to a text, and to nothing else.
    return text if not isinstance(part, dict) or part.get("type") in (None, "string") else text.strip()


def of_file(name: str, path: str, hint: str = "Name a file that can be read.") -> str:
    """Return the text of a file, or of standard input for `-`, byte for byte.

    Raises:
        UsageError: `bad_word`.
    """
    try:
        with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
            return file.read().decode()
    except OSError as err:
        raise UsageError("bad_word", f"{name}=@{path}: {err.strerror}.", hint) from None
    except UnicodeDecodeError:
        raise UsageError("bad_word", f"{path} is no UTF-8 text.", "Give a file of text.") from None


def of_json(name: str, text: str, form: str = ":='…'") -> Any:
    """Return what JSON says; what is broken is refused with the reason: most often a shell has taken its quotes.

    Raises:
        UsageError: `bad_word`.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as err:
        why = f"{name} is not JSON: {err}. It came as {text[:200]}"
        raise UsageError("bad_word", why, f"In a shell, quote it: {name}{form}.") from None


def _member(text: str, part: object) -> Any:
    """Return what a word is as the one member of a list: an object where that takes such, or a text; None for a whole list."""
    # An address as `read` prints it opens no list.
    if text.startswith("[") and not text.startswith("[LID:"):
        return None
    found = safe_text.of_json(text)
    if found is None:
        return None if text.startswith("{") else text
    return found if isinstance(found, str) or schema.is_one_of(part, found) else text


def _path_value(value: Any, name: str, paths: Mapping[str, str], project: str) -> Any:
    """Return a typed value, its paths taken from the current folder; those of `--params` are a program's, from the root."""
    if isinstance(value, list):
        return [_path_value(one, f"{name}[{at}]", paths, project) for at, one in enumerate(value)]
    return typed_path(value, project) if name in paths and isinstance(value, str) else value


def command_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call that an answer names as one types it, `rye NAME name=value …`; without a tool its words alone."""
    words = [as_word(name, value) for name, value in arguments.items()]
    return quoted(["rye", tool, *words]) if tool else " ".join(words)


def as_word(name: str, value: Any) -> str:
    """Return a parameter as one types it."""
    return f"{name}={value_text(value)}"


def value_text(value: Any) -> str:
    """Return a parameter's value as one types it; `…` is to be filled in."""
    return value if isinstance(value, str) else "…" if value is ... else json.dumps(value, ensure_ascii=False)


def quoted(words: Sequence[str]) -> str:
    """Return a command in backticks, its words quoted for a shell."""
    import shlex

    return f"`{' '.join(word if word == '…' else shlex.quote(word) for word in words)}`"
