"""A client's settings file, one member of which is set while every other byte of it stays.

Formats: JSON, also with comments and trailing commas as editors take it, TOML and YAML. What was there is kept beside the file.
Each change is read back before it is written: the new text must say what the old one said, and the member, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
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
            `not_written`.
    """
    real = os.path.realpath(path)
    try:
        before = _read(real)
        try:
            text = (before or "") if value is None and not before else _FORMATS[syntax].put(before or "", keys, value)
            if value is not None or text != (before or ""):
                _prove(syntax, real, before or "", text, keys, value)
        except (ValueError, RecursionError) as err:
            raise _broken(real, f"it cannot be read as {syntax.upper()} ({err})") from None
        if text == (before or ""):
            return Written(real, changed=False, kept=None)
        files, kept = [OwnFile(real, text.encode(), 0o600)], None
        if before is not None:
            # Private: settings can hold secrets.
            kept = _free_name(real)
            files.insert(0, OwnFile(kept, before.encode(), 0o600))
        own_files.write(files, _TOOL, [] if project is None else [project])
    except OSError as err:
        raise UsageError("not_written", f"{real}: {err.strerror or err}.", "Free the way, or put it there by hand.") from None
    return Written(real, changed=True, kept=kept)


def member(path: str, syntax: Syntax, keys: tuple[str, ...]) -> Any:
    """Return a member of a settings file; None where it is not there, or the file cannot be read as its format."""
    try:
        found: Any = parse(_read(os.path.realpath(path)) or "", syntax)
    except (OSError, ValueError, RecursionError, UsageError):
        return None
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _read(path: str) -> str | None:
    try:
        with atomic.open_regular(path) as file:
            data = file.read(_MOST + 1)
    except FileNotFoundError:
        return None
    try:
        if len(data) <= _MOST:
            return data.decode()
    except UnicodeDecodeError:
        pass
    raise _broken(path, "it is no UTF-8 text, or too large")


def _free_name(path: str) -> str:
    """Return a name beside a file that nothing has, for its former content."""
    for number in range(1, 10_000):
        kept = f"{path}.before-rye" + (f"-{number}" if number > 1 else "")
        if not os.path.lexists(kept):
            return kept
    raise _broken(path, "too many files .before-rye are beside it")


def _prove(syntax: Syntax, path: str, before: str, after: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> None:
    """Raise `broken_settings` unless the new text says what the old one said but for the member; ValueError as parsing does."""
    wanted, made = parse(before, syntax), parse(after, syntax)
    place: Any = wanted
    for key in keys[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else None
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
    def _tokens(cls, text: str) -> Iterator[tuple[str, int, int]]:
        for match in cls._TOKEN.finditer(text.removeprefix(_BOM)):
            token = match[0]
            if not token.isspace() and not token.startswith(("//", "/*")):
                shift = len(_BOM) if text.startswith(_BOM) else 0
                yield token, match.start() + shift, match.end() + shift

    @classmethod
    def put(cls, text: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> str:
        tokens = list(cls._tokens(text))
        if not tokens:
            nested: Any = value
            for key in reversed(keys):
                nested = {key: nested}
            return json.dumps(nested, indent=2, ensure_ascii=False) + "\n"
        cls.parse(text)
        at, newline = 0, "\r\n" if "\r\n" in text else "\n"
        unit = match[1] if (match := re.search(r"\n([ \t]+)\S", text)) else "  "
        for depth, key in enumerate(keys):
            members = cls._members(tokens, at)
            if members is None:
                raise ValueError(f"{'.'.join(keys[:depth])} is no object")
            if key not in members and value is None:
                return text
            if key not in members:
                missing: Any = value
                for inner in reversed(keys[depth + 1 :]):
                    missing = {inner: missing}
                return cls._inserted(text, tokens, at, f"{json.dumps(key)}: ", missing, (newline, unit, depth + 1))
            at = members[key]
        end = cls._end(tokens, at)
        start, stop = tokens[at][1], tokens[end][2]
        if value is None:
            # With the comma before it, or else the one behind it; and with what is blank before it.
            start, stop = tokens[at - 2][1], tokens[end + 1][2] if tokens[end + 1][0] == "," else stop
            if tokens[at - 3][0] == ",":
                start, stop = tokens[at - 3][1], tokens[end][2]
            return text[:start].rstrip(" \t\r\n") + text[stop:]
        if cls._value(text[start:stop]) == value:
            return text
        return text[:start] + cls._written(value, newline, unit, len(keys)) + text[stop:]

    @classmethod
    def _value(cls, text: str) -> Any:
        return cls.parse('{"value": ' + text + "}")["value"]

    @classmethod
    def _members(cls, tokens: list[tuple[str, int, int]], at: int) -> dict[str, int] | None:
        """Return where the values of an object begin, by key; None for another value."""
        if tokens[at][0] != "{":
            return None
        found: dict[str, int] = {}
        at += 1
        while tokens[at][0] != "}":
            if tokens[at][0] == ",":
                at += 1
                continue
            found[json.loads(tokens[at][0])] = at + 2
            at = cls._end(tokens, at + 2) + 1
        return found

    @staticmethod
    def _end(tokens: list[tuple[str, int, int]], at: int) -> int:
        """Return the last token of the value that begins at one."""
        depth = 0
        while True:
            depth += (tokens[at][0] in ("{", "[")) - (tokens[at][0] in ("}", "]"))
            if depth == 0:
                return at
            at += 1

    @classmethod
    def _inserted(
        cls, text: str, tokens: list[tuple[str, int, int]], at: int, key: str, value: Any, style: tuple[str, str, int]
    ) -> str:
        """Return the text with a member at the end of the object that begins at a token."""
        newline, unit, depth = style
        member = key + cls._written(value, newline, unit, depth)
        last = cls._end(tokens, at) - 1
        close = tokens[last + 1][1]
        if last == at:
            return f"{text[: tokens[at][2]]}{newline}{unit * depth}{member}{newline}{unit * (depth - 1)}{text[close:]}"
        comma = "" if tokens[last][0] == "," else ","
        end = tokens[last][2]
        # Right behind the last member, before what may be a comment on its line: that comment is behind the comma then.
        rest = text[end:close]
        comment, _, tail = rest.partition("\n") if "\n" in rest else ("", "", "")
        if "//" in comment or "/*" in comment:
            return f"{text[:end]}{comma}{comment}\n{unit * depth}{member}{newline}{tail}{text[close:]}"
        return f"{text[:end]}{comma}{newline}{unit * depth}{member}{rest or newline}{text[close:]}"

    @staticmethod
    def _written(value: Any, newline: str, unit: str, depth: int) -> str:
        return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + unit * depth)


class _Toml:
    """TOML: the member is a table of its own, of plain values."""

    @staticmethod
    def parse(text: str) -> dict[str, Any]:
        import tomllib

        return tomllib.loads(text)

    @classmethod
    def put(cls, text: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> str:
        found: Any = cls.parse(text)
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found == value:
            return text
        newline = "\r\n" if "\r\n" in text else "\n"
        header = f"[{'.'.join(keys)}]"
        table = "" if value is None else toml_table(keys, value).replace("\n", newline)
        lines = text.splitlines(keepends=True)
        begins = next((number for number, line in enumerate(lines) if line.split("#")[0].strip() == header), None)
        if begins is None and value is None:
            return text
        if begins is None:
            gap = "" if not text else newline if text.endswith(("\n", "\r")) else newline * 2
            return f"{text}{gap}{table}"
        # Its sub-tables are the entry's as well.
        inner = f"[{'.'.join(keys)}."
        end = begins + 1
        while end < len(lines) and (not lines[end].lstrip().startswith("[") or lines[end].lstrip().startswith(inner)):
            end += 1
        rest = "".join(lines[end:])
        return "".join(lines[:begins]) + table + (newline if rest and table else "") + rest


def toml_table(keys: tuple[str, ...], value: dict[str, Any]) -> str:
    """Return a table of plain values and lists as TOML, which the standard library reads but does not write."""
    # A basic string of TOML escapes as JSON does, and so do lists, numbers and booleans of JSON.
    return "".join(
        [f"[{'.'.join(keys)}]\n", *(f"{name} = {json.dumps(one, ensure_ascii=False)}\n" for name, one in value.items())]
    )


class _Yaml:
    """YAML: the member is written as JSON, which YAML contains, behind the line of its section."""

    @staticmethod
    def parse(text: str) -> dict[str, Any]:
        import yaml

        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as err:
            raise ValueError(str(err).splitlines()[0]) from None
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise ValueError("it is no mapping")  # noqa: TRY004 - caught as a fault of the text
        return found

    @classmethod
    def put(cls, text: str, keys: tuple[str, ...], value: dict[str, Any] | None) -> str:
        section, name = keys
        found = cls.parse(text).get(section)
        if (found.get(name) if isinstance(found, dict) else None) == value:
            return text
        lines = text.splitlines(keepends=True)
        begins = next(
            (number for number, line in enumerate(lines) if re.match(rf"{re.escape(section)}:\s*(#.*)?$", line)), None
        )
        if begins is None:
            if value is None:
                raise ValueError(f"{name} is not where it can be removed")
            gap = "" if not text or text.endswith("\n") else "\n"
            return f"{text}{gap}{section}:\n{cls._member(name, value, '  ')}"
        indent = next((m[1] for line in lines[begins + 1 :] if (m := re.match(r"([ \t]+)[^\s#]", line))), "  ")
        start = begins + 1
        old = next((n for n in range(start, len(lines)) if re.match(rf"{indent}{re.escape(name)}:", lines[n])), None)
        if old is not None:
            end = old + 1
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(indent + " ")):
                end += 1
            return "".join([*lines[:old], *([] if value is None else [cls._member(name, value, indent)]), *lines[end:]])
        if value is None:
            raise ValueError(f"{name} is not where it can be removed")
        return "".join([*lines[:start], cls._member(name, value, indent), *lines[start:]])

    @staticmethod
    def _member(name: str, value: dict[str, Any], indent: str) -> str:
        inner = "".join(f"{indent * 2}{key}: {json.dumps(one, ensure_ascii=False)}\n" for key, one in value.items())
        return f"{indent}{name}:\n{inner}"


_FORMATS: Final[dict[str, Any]] = {"json": _Json, "toml": _Toml, "yaml": _Yaml}
