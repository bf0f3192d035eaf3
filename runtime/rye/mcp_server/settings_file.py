"""A client's settings file, one member of which is set while every other byte of it stays.

Formats: JSON, also with comments and trailing commas as editors take it, and TOML; YAML is read alone. What was there is kept
beside the file.
Each change is read back before it is written: the new text must say what the old one said, and the member, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
from itertools import count
from typing import Any, Final, Literal, NamedTuple

from rye.errors import UsageError
from rye.fs import atomic
from rye.journal import own_files
from rye.journal.own_files import OwnFile

Syntax = Literal["json", "toml", "yaml"]

_TOOL: Final = "rye/cli/mcp-install"
_MOST: Final = 64 << 20
_BOM: Final = "\ufeff"


class Written(NamedTuple):
    """What became of a file: its real path, whether it changed, and where its former content is kept (None: there was none)."""

    path: str
    changed: bool
    kept: str | None


def put(path: str, syntax: Syntax, keys: tuple[str, ...], value: dict[str, Any] | None, project: str | None = None) -> Written:
    """Set a member of a settings file, which is made with its folders if it is not there; or remove one that is.

    Args:
        path: the file; a link is followed.
        syntax: its format.
        keys: the way to the member, such as `("mcpServers", "rye")`.
        value: what it becomes; None: it is removed.
        project: the folder of a project; where the file lies in it, what is written is in its journal.

    Raises:
        UsageError: `broken_settings`, for a file that cannot be read as that format or changed without loss;
            `not_by_file`, for YAML; `not_written`.
    """
    real = os.path.realpath(path)
    try:
        before = _read(real)
        try:
            if _at(parse(before or "", syntax), keys) == value:
                return Written(real, changed=False, kept=None)
            if syntax == "yaml":
                what = "Without --write the entry is printed: put it there" if value is not None else "Take the entry out"
                raise UsageError("not_by_file", f"{real} is YAML, which is not written here.", f"{what} by hand.")
            text = _FORMATS[syntax].put(before or "", keys, value)
            _prove(syntax, real, before or "", text, keys, value)
        except (ValueError, RecursionError) as err:
            raise _broken(real, f"it cannot be read as {syntax.upper()} ({err})") from None
        files, kept = [OwnFile(real, text.encode(), 0o600)], None
        if before is not None:
            names = (f"{real}.before-rye" + (f"-{number}" if number > 1 else "") for number in count(1))
            # Private: settings can hold secrets.
            kept = next(name for name in names if not os.path.lexists(name))
            files.insert(0, OwnFile(kept, before.encode(), 0o600))
        own_files.write(files, _TOOL, [] if project is None else [project])
    except OSError as err:
        raise UsageError("not_written", f"{real}: {err.strerror or err}.", "Free the way, or put it there by hand.") from None
    return Written(real, changed=True, kept=kept)


def content(path: str, syntax: Syntax) -> dict[str, Any]:
    """Return what a settings file says, nothing where there is none. Raises OSError, ValueError, RecursionError, UsageError."""
    return parse(_read(os.path.realpath(path)) or "", syntax)


def member(path: str, syntax: Syntax, keys: tuple[str, ...]) -> Any:
    """Return a member of a settings file; None where it is not there, or the file cannot be read as its format."""
    try:
        return _at(content(path, syntax), keys)
    except (OSError, ValueError, RecursionError, UsageError):
        return None


def _at(found: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _read(path: str) -> str | None:
    try:
        return atomic.read_regular(path, _MOST, whole=True)[0].decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError:
        raise _broken(path, "it is no UTF-8 text") from None


def _prove(syntax: Syntax, path: str, before: str, after: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> None:
    """Raise `broken_settings` unless the new text says what the old one said but for the member; ValueError as parsing does."""
    wanted, made = parse(before, syntax), parse(after, syntax)
    place: Any = wanted
    for key in keys[:-1]:
        place = place.setdefault(key, {})
    if not isinstance(place, dict):
        raise _broken(path, f"{'.'.join(keys[:-1])} is no object there")
    if value is not None:
        place[keys[-1]] = value
    elif place.pop(keys[-1], None) is not None and not place and not made.get(keys[0]):
        # A section without members may be empty, nothing, or gone.
        wanted.pop(keys[0])
        made.pop(keys[0], None)
    # As JSON: comparing values alone would take 1 and true for the same.
    if json.dumps(made, sort_keys=True, default=str) != json.dumps(wanted, sort_keys=True, default=str):
        raise _broken(path, "it cannot be changed without touching something else")


def _broken(path: str, why: str) -> UsageError:
    hint = "Nothing was changed. Mend the file, or put the entry there by hand: without --write it is printed."
    return UsageError("broken_settings", f"{path}: {why}.", hint)


def parse(text: str, syntax: Syntax) -> dict[str, Any]:
    """Return what a settings file says. Raises ValueError or RecursionError where it is no such text."""
    found: dict[str, Any] = _FORMATS[syntax].parse(text)
    return found


def block(syntax: Syntax, section: str, name: str, value: dict[str, Any], more: dict[str, Any]) -> str:
    """Return a member of a section as text, with `more` members of the file before it (JSON alone)."""
    if syntax == "json":
        return _dumped({**more, section: {name: value}}, "\n") + "\n"
    return _Toml.table((section, name), value) if syntax == "toml" else f"{section}:\n{_Yaml.member(name, value, '  ')}"


def _dumped(value: Any, newline: str, depth: int = 0) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", newline + "  " * depth)


_Token = tuple[str, int, int]


class _Json:
    """JSON as editors take it: with comments and trailing commas, which stay."""

    _TOKEN: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+|\s+|.', re.DOTALL)

    @classmethod
    def parse(cls, text: str) -> dict[str, Any]:
        tokens = [token for token, _, _ in cls._tokens(text)]
        # A comma before a closing bracket: the standard library takes none.
        followed = zip(tokens, [*tokens[1:], ""], strict=False)
        plain = [one for one, after in followed if one != "," or after not in ("}", "]")]
        found = json.loads(" ".join(plain)) if plain else {}
        if not isinstance(found, dict):
            raise ValueError("it is no object")  # noqa: TRY004 - caught as a fault of the text
        return found

    @classmethod
    def _tokens(cls, text: str) -> list[_Token]:
        """Return the tokens that say something, each with where it begins and ends."""
        begin = len(_BOM) if text.startswith(_BOM) else 0
        found = [(match[0], *match.span()) for match in cls._TOKEN.finditer(text, begin)]
        return [one for one in found if not one[0].isspace() and not one[0].startswith(("//", "/*"))]

    @classmethod
    def put(cls, text: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> str:
        tokens, newline, at = cls._tokens(text), "\r\n" if "\r\n" in text else "\n", 0
        cls.parse(text)
        for depth, key in enumerate(keys if tokens else ()):
            if tokens[at][0] != "{":
                raise ValueError(f"{'.'.join(keys[:depth])} is no object")
            found = cls._value(tokens, at)[0].get(key)
            if found is None:
                # The first member of the object: whatever stands behind the brace is behind it.
                end, comma = tokens[at][2], "" if tokens[at + 1][0] == "}" else ","
                written = _dumped(cls._nested(keys[depth:], value), newline, depth)[1:-1].rstrip()
                return f"{text[:end]}{written}{comma}{text[end:] if comma else newline + text[end:].lstrip()}"
            at = found
        if not tokens:
            return _dumped(cls._nested(keys, value), "\n") + "\n"
        last = cls._value(tokens, at)[1]
        start, stop = tokens[at][1], tokens[last][2]
        if value is not None:
            return text[:start] + _dumped(value, newline, len(keys)) + text[stop:]
        # With the comma behind it, or else the one before it; and with what is blank before it.
        start = tokens[at - 2][1]
        if tokens[last + 1][0] == ",":
            stop = tokens[last + 1][2]
        elif tokens[at - 3][0] == ",":
            start = tokens[at - 3][1]
        return text[:start].rstrip() + text[stop:]

    @staticmethod
    def _nested(keys: tuple[str, ...], value: Any) -> Any:
        for key in reversed(keys):
            value = {key: value}
        return value

    @staticmethod
    def _value(tokens: list[_Token], at: int) -> tuple[dict[str, int], int]:
        """Return the last token of the value that begins at one; of an object also where its members' values begin, by key."""
        depth, members = 0, dict[str, int]()
        for number in range(at, len(tokens)):
            text = tokens[number][0]
            depth += (text in ("{", "[")) - (text in ("}", "]"))
            if depth == 0:
                return members, number
            if depth == 1 and text == ":":
                members[json.loads(tokens[number - 1][0])] = number + 1
        raise ValueError("it ends too early")


class _Toml:
    """TOML: the member is a table of its own, of plain values."""

    @staticmethod
    def parse(text: str) -> dict[str, Any]:
        import tomllib

        return tomllib.loads(text)

    @classmethod
    def put(cls, text: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> str:
        newline = "\r\n" if "\r\n" in text else "\n"
        table = "" if value is None else cls.table(keys, value).replace("\n", newline)
        name = re.escape(".".join(keys))
        # Up to the next table; its sub-tables are the entry's as well.
        place = rf"^[ \t]*\[{name}\][ \t]*(?:#[^\n]*)?\r?$.*?(?=^[ \t]*\[(?!{name}\.)|\Z)"
        found = re.search(place, text, re.MULTILINE | re.DOTALL)
        if found is None:
            return f"{text}{newline * (bool(text) + bool(text and text[-1] != newline[-1]))}{table}"
        end = found.end()
        return f"{text[: found.start()]}{table}{newline * (bool(table) and end < len(text))}{text[end:]}"

    @staticmethod
    def table(keys: tuple[str, ...], value: dict[str, Any]) -> str:
        # The standard library reads TOML and does not write it. A basic string of TOML escapes as JSON does, and so do lists,
        # numbers and booleans of JSON.
        rows = "".join(f"{name} = {json.dumps(one, ensure_ascii=False)}\n" for name, one in value.items())
        return f"[{'.'.join(keys)}]\n{rows}"


class _Yaml:
    """YAML, which is read, and printed with the member's values as JSON, which YAML contains."""

    @staticmethod
    def parse(text: str) -> dict[str, Any]:
        import yaml

        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as err:
            raise ValueError(str(err).splitlines()[0]) from None
        if found is not None and not isinstance(found, dict):
            raise ValueError("it is no mapping")
        return found or {}

    @staticmethod
    def member(name: str, value: dict[str, Any], indent: str) -> str:
        inner = "".join(f"{indent * 2}{key}: {json.dumps(one, ensure_ascii=False)}\n" for key, one in value.items())
        return f"{indent}{name}:\n{inner}"


_FORMATS: Final[dict[str, Any]] = {"json": _Json, "toml": _Toml, "yaml": _Yaml}
