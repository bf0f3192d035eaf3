"""CONFIG_SCHEMA over a JSON Schema library: defaults, every problem in one message, which values are paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn

from rye.call import safe_text
from rye.call.safe_text import nearest
from rye.errors import ItemError, UsageError

WORKSPACE_PATH = "workspace-path"
"""The `format` that marks a string as a path below the project."""

NO_SCHEMA = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""What reading a schema may raise that is none, or nested too deeply: another's is checked when its tool is called."""

_SHOWN = 120
# A list of many members of a wrong type has as many errors.
_MOST_NAMED = 20
_LISTS_OF_ALTERNATIVES = ("anyOf", "oneOf")
_ALTERNATIVES = ("if", "then", "else")
_COMBINING = frozenset({"$ref", "allOf", "dependentSchemas", *_LISTS_OF_ALTERNATIVES, *_ALTERNATIVES})

_Part = dict[str, Any]


_KINDS_OF_VALUES = "array, boolean, integer, null, number, object and string"


def _what_is_wrong(err: Exception) -> str:
    """Return what a schema's error is, and where: the library's first line alone names neither."""
    path = [str(part) for part in getattr(err, "instance_path", ())]
    found = str(err).splitlines()[0]
    if path[-1:] == ["type"] and "anyOf" in found:
        found = f"{getattr(err, 'instance', None)!r} is no type; there are {_KINDS_OF_VALUES}"
    return f"at {'.'.join(path)}, {found}" if path else found


def is_one_of(schema: Any, value: object) -> bool:
    """Tell whether a text or an object, which stands where a schema wants a list, is one member of that list."""
    if not isinstance(schema, dict) or schema.get("type") != "array" or not isinstance(value, str | dict) or value == "":
        return False
    items = schema.get("items")
    return isinstance(items, dict) and ("string" if isinstance(value, str) else "object") in items.get("type", ())


class SchemaChecker:
    """A compiled schema of one tool's parameters (an object schema; draft 2020-12)."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Compile.

        Raises:
            ItemError: `bad_schema`, when it is no valid schema or refers to anything outside itself.
        """
        self.schema = schema
        self._fits = plain_test(schema)
        # The library is loaded only where it is needed: that takes longer than a plain call.
        self._library: Any = self._compiled() if self._fits is None else None
        # What is asked of the schema at every call.
        self._certain = list(_applying([schema], schema, certain=True))
        self._defaults = _defaults(self._certain, schema)
        # In a plain schema only the parameters that say so can hold a path.
        named = schema.get("properties", {}) if self._fits is not None else {}
        self._paths = frozenset(name for name, part in named.items() if WORKSPACE_PATH in json.dumps(part))

    def _compiled(self) -> Any:
        import jsonschema_rs

        try:
            return jsonschema_rs.Draft202012Validator(dict(self.schema), retriever=_refuse)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as err:
            hint = "A schema must be self-contained: no file or network $ref, draft 2020-12."
            raise ItemError("bad_schema", f"CONFIG_SCHEMA is not usable: {_what_is_wrong(err)}.", hint) from None

    def check(self, parameters: object, arguments: object = None, offered: Collection[str] | None = None) -> dict[str, Any]:
        """Return the parameters with defaults filled in.

        Args:
            parameters: what is checked.
            arguments: what the caller gave of it, for the error; all of it where None.
            offered: the parameters that the caller was shown: the error lists no others; None for all.

        Raises:
            UsageError: `invalid_parameters`, naming every problem, what was given and what is wanted.
        """
        if not isinstance(parameters, dict) or not all(isinstance(key, str) for key in parameters):
            why = f"Parameters must be an object of named values, not {type(parameters).__name__}."
            raise UsageError("invalid_parameters", why, f"Wanted: {self.expected(offered=offered)}.")
        filled, problems = self._filled(parameters)
        if problems:
            own = arguments if isinstance(arguments, dict) else parameters
            told = ", ".join(_limited(f"{_cut(str(key))}={_short(value)}" for key, value in own.items())) or "nothing"
            texts = _limited(text for _, text in problems)
            why = f"Invalid parameters: {'; '.join(texts)}. Given: {told}.".replace("'?.", "'?")
            hint = f"Wanted: {self.expected([name for name, _ in problems], offered)}."
            raise UsageError("invalid_parameters", why, hint, problems=texts)
        return filled

    def _filled(self, parameters: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        # Most calls: parameters that certainly fit are JSON, and known by name.
        if self._fits is not None:
            filled = _with_missing(dict(parameters), self._defaults)
            if self._fits(filled):
                return filled, []
        try:
            # First, because the library would report NaN or a Python object in words of its own.
            json.dumps(parameters, allow_nan=False)
            known = self.schema.get("properties", {})
            # One member where a list is wanted is a list of one, as callers write it.
            parameters = {name: [one] if is_one_of(known.get(name), one) else one for name, one in parameters.items()}
            filled = _filled(parameters, self._certain, self._defaults, self.schema)
            unknown = list(islice(self._unknown(parameters), _MOST_NAMED + 1))
            return filled, [*unknown, *islice(self._problems(filled, named=bool(unknown)), _MOST_NAMED + 1)]
        except (ValueError, TypeError, OverflowError, RecursionError) as err:
            return {}, [("", f"not JSON: {err}")]

    def _unknown(self, parameters: dict[str, Any]) -> Iterator[Problem]:
        parts = list(_applying([self.schema], self.schema))
        # An object that takes further members has no unknown parameters.
        if any(part.get(name) not in (None, False) for part in parts for name in _OPEN):
            return
        known = [name for part in parts for name in part.get("properties", {})]
        patterns = [pattern for part in parts for pattern in part.get("patternProperties", {})]
        for key in parameters:
            if key not in known and not any(_matches(pattern, key) for pattern in patterns):
                close = nearest(key, known, 1, cutoff=0.66)
                yield "", _cut(f"unknown parameter {key!r}" + (f", did you mean {close[0]!r}?" if close else ""))

    def _problems(self, filled: dict[str, Any], *, named: bool) -> Iterator[Problem]:
        """Yield what the library finds; `named` where unknown names are reported already."""
        if self._fits is not None and self._fits(filled):
            return
        if self._library is None:
            self._library = self._compiled()
        for error in self._library.iter_errors(filled):
            if named and not error.instance_path and type(error.kind).__name__ == "AdditionalProperties":
                continue
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path).lstrip(".")
            message = _cut(_message(error)) + self._known(type(error.kind).__name__, error.schema_path)
            yield str(next(iter(error.instance_path), "")), f"{where}: {message}" if where else message

    def _known(self, kind: str, place: Iterable[str | int]) -> str:
        """Return the names that an object may have where one has another; `place` is the path of the forbidding keyword."""
        if kind != "AdditionalProperties":
            return ""
        part = target("#/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in [*place][:-1]), self.schema)
        names = list(part.get("properties", {})) if isinstance(part, dict) else []
        return _cut(f"; it has {', '.join(names)}") if names else ""

    def paths(self, checked: Mapping[str, Any]) -> Sequence[str]:
        """Return every workspace path among parameters that were checked, as `workspace_paths`."""
        among = checked if self._fits is None else {name: value for name, value in checked.items() if name in self._paths}
        return [path for _, path in workspace_paths(self.schema, among)]

    def expected(self, names: Sequence[str] = ("",), offered: Collection[str] | None = None) -> str:
        """Return the parameters in one line: `file_path (string, required), limit (integer, default 2000)`.

        Args:
            names: the parameters that are wrong: only these. An empty name stands for the call as a whole: all of them.
            offered: the others count only where they are among these; None for all.
        """
        required = self.schema.get("required", ())
        out = []
        for name, below in self.schema.get("properties", {}).items():
            if name not in names and ("" not in names or (offered is not None and name not in offered)):
                continue
            part = below if isinstance(below, dict) else {}
            kind = part.get("type", "any")
            facts = [" or ".join(kind) if isinstance(kind, list) else str(kind)]
            if "enum" in part:
                facts.append("one of " + "|".join(map(str, part["enum"])))
            if "minimum" in part and "maximum" in part:
                facts.append(f"{part['minimum']} to {part['maximum']}")
            else:
                facts += [f"at {word} {part[key]}" for key, word in (("minimum", "least"), ("maximum", "most")) if key in part]
            facts += ["required"] if name in required else []
            facts += [f"default {json.dumps(part['default'])}"] if "default" in part else []
            # A wrong value often is one of another meaning: milliseconds, say.
            meaning = f": {_cut(' '.join(str(part['description']).split()))}" if name in names and "description" in part else ""
            out.append(f"{name} ({', '.join(facts)}{meaning})")
        return safe_text.content(", ".join(out)) or "no parameters"


# A parameter's name (empty for the call as a whole) and what is wrong with it.
Problem = tuple[str, str]


# The JSON Schema library takes longer to load than a plain call takes to answer. So what is certain is said here: that the
# schema is a closed object of texts, whole numbers, switches and lists of these, and that the parameters fit it. Everything
# else, every refusal above all, is left to the library.
_TOP = {"type", "properties", "required", "additionalProperties", "description"}
_SAYS = {"type", "description", "default"}
_OF_TYPE = {
    "string": {"enum", "minLength", "maxLength", "format"},
    "integer": {"minimum", "maximum", "not"},
    "boolean": set[str](),
    "array": {"items"},
}
# Not `isinstance`: bool is a subclass of int, and true is no integer in JSON.
_KIND_OF: dict[type, str] = {str: "string", int: "integer", bool: "boolean", list: "array"}
# Larger numbers are left to the library.
_LARGEST = 1 << 53

_Test = Callable[[Any], bool]


def plain_test(schema: Mapping[str, Any]) -> _Test | None:
    """Return what tells that parameters certainly obey a schema; None for one of another shape, and one that is not valid.

    Where it says no, the library is to be asked.
    """
    properties, required = schema.get("properties"), schema.get("required", [])
    if not (
        set(schema) <= _TOP
        and schema.get("type") == "object"
        and schema.get("additionalProperties") is False
        and isinstance(schema.get("description", ""), str)
        and isinstance(required, list)
        and all(type(name) is str for name in required)
        and len(set(required)) == len(required)
        and isinstance(properties, dict)
        and all(type(name) is str for name in properties)
    ):
        return None
    tests = {name: test for name, part in properties.items() if (test := _part_test(part)) is not None}
    if len(tests) < len(properties):
        return None
    needed = frozenset(required)

    def fits(parameters: Mapping[str, Any]) -> bool:
        if not needed <= parameters.keys():
            return False
        # Written out: each call checks some ten values.
        for name, value in parameters.items():  # noqa: SIM110
            if name not in tests or not tests[name](value):
                return False
        return True

    return fits


def _part_test(part: object) -> _Test | None:
    """Return what tells that a value certainly obeys a parameter's schema; None as in `plain_test`."""
    if not isinstance(part, dict):
        return None
    kinds: list[Any] = part["type"] if isinstance(part.get("type"), list) else [part.get("type")]
    lengths = [part[name] for name in ("minLength", "maxLength") if name in part]
    bounds = [*lengths, *(part[name] for name in ("minimum", "maximum") if name in part)]
    choices, exception = part.get("enum", []), part.get("not", {"const": 0})
    items = _part_test(part.get("items")) if "array" in kinds else None
    if not (
        kinds
        and all(type(kind) is str and kind in _OF_TYPE for kind in kinds)
        and set(part) <= _SAYS.union(*(_OF_TYPE[kind] for kind in kinds))
        and len(set(kinds)) == len(kinds)
        and ("array" not in kinds or items is not None)
        and isinstance(part.get("description", ""), str)
        and part.get("format", WORKSPACE_PATH) == WORKSPACE_PATH
        and all(type(bound) is int and abs(bound) < _LARGEST for bound in bounds)
        and all(bound >= 0 for bound in lengths)
        and isinstance(exception, dict)
        and set(exception) == {"const"}
        and type(exception["const"]) is int
        and isinstance(choices, list)
        and all(type(one) is str for one in choices)
    ):
        return None
    least, most = max(part.get("minimum", -_LARGEST), -_LARGEST), part.get("maximum", _LARGEST)
    shortest, longest = part.get("minLength", 0), part.get("maxLength", _LARGEST)

    def fits(value: Any) -> bool:
        kind = _KIND_OF.get(type(value))
        # With `enum` a value of another kind would have to be one of these, too.
        if kind not in kinds or ("enum" in part and (kind != "string" or value not in choices)):
            return False
        if kind == "string":
            return shortest <= len(value) <= longest and (value.isascii() or safe_text.is_encodable(value))
        if kind == "integer":
            return bool(least <= value <= most and part.get("not") != {"const": value})
        return kind == "boolean" or (items is not None and all(map(items, value)))

    return fits


def _message(error: Any) -> str:
    forbidden = getattr(error.kind, "schema", None)
    if isinstance(forbidden, dict) and list(forbidden) == ["const"]:
        return f"{json.dumps(forbidden['const'])} is not allowed"
    return str(error.message) + _quotes(error)


def _quotes(error: Any) -> str:
    """Return how to write a value whose type alone is wrong: a number in quotes, or a text that is one without them."""
    types, value = getattr(error.kind, "types", ()), error.instance
    if "string" in types and type(value) in (int, float):
        return f"; write it in quotes: {json.dumps(str(value))}"
    if isinstance(value, str) and {"integer", "number"} & {*types} and re.fullmatch(r"-?\d{1,15}", value):
        return f"; write it without quotes: {int(value)}"
    if isinstance(value, str) and "boolean" in types and value.lower() in ("true", "false"):
        return f"; write it without quotes: {value.lower()}"
    return ""


_OPEN = ("additionalProperties", "unevaluatedProperties")


def _refuse(uri: str) -> NoReturn:
    # The library would fetch it: a schema must not read files or make requests while it is checked.
    raise ValueError(f"a schema may not refer to {uri}")


def _cut(text: str) -> str:
    # A schema's own words are the tool's, which may be anybody's.
    text = safe_text.content(text)
    return text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]} … {text[-_SHOWN:]}"


def _limited(texts: Iterable[str]) -> list[str]:
    """Return the first of some texts, and a word for the others."""
    found = list(islice(texts, _MOST_NAMED + 1))
    return found if len(found) <= _MOST_NAMED else [*found[:_MOST_NAMED], "and more"]


def _short(value: object) -> str:
    try:
        text = safe_text.content(json.dumps(value, ensure_ascii=False, default=repr))
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _applying(parts: Iterable[object], root: Mapping[str, Any], *, certain: bool = False) -> Iterator[_Part]:
    """Yield the schemas that speak of the same value: the given ones, and those that they combine or refer to.

    Args:
        parts: schemas; the boolean ones say nothing of interest.
        root: where a `$ref` to `#…` leads.
        certain: leave out alternatives, of which only one may hold.
    """
    visited: set[int] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in visited:
            continue
        # A schema can refer to itself, so each part is visited once.
        visited.add(id(part))
        yield part
        if _COMBINING.isdisjoint(part):
            continue
        if "$ref" in part:
            waiting.append(target(str(part["$ref"]), root))
        waiting += part.get("allOf", ())
        if not certain:
            waiting += (one for name in _LISTS_OF_ALTERNATIVES for one in part.get(name, ()))
            waiting += (part[name] for name in _ALTERNATIVES if name in part)
            waiting += part.get("dependentSchemas", {}).values()


def target(reference: str, root: Mapping[str, Any]) -> object:
    """Return what a JSON pointer into the schema leads to; None where it is no such pointer."""
    found: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            # RFC 6901: a step of digits is the index of a list.
            found = found[int(name)]
        elif isinstance(found, dict):
            found = found.get(name)
        else:
            return None
    return found if reference[:2] in ("#", "#/") else None


def _members(parts: Iterable[_Part], key: str) -> Iterator[object]:
    """Yield the schemas that an object's member must obey."""
    for part in parts:
        patterns = [below for pattern, below in part.get("patternProperties", {}).items() if _matches(pattern, key)]
        named = part.get("properties", {})
        yield from patterns
        if key in named:
            yield named[key]
        elif not patterns:
            yield from (part[name] for name in _OPEN if name in part)


def _elements(parts: Iterable[_Part], at: int) -> Iterator[object]:
    """Yield the schemas that an array's element must obey."""
    for part in parts:
        first = part.get("prefixItems", ())
        if at < len(first):
            yield first[at]
        else:
            yield from (part[name] for name in ("items", "unevaluatedItems") if name in part)
        yield from (part[name] for name in ("contains",) if name in part)


def _matches(pattern: str, key: str) -> bool:
    import jsonschema_rs

    try:
        # By the library, whose search is bounded: the pattern is the tool's, and Python's own could take for ever.
        return jsonschema_rs.is_valid({"pattern": pattern}, key)
    except (jsonschema_rs.ValidationError, ValueError):
        # Taken to match, so that no path below it goes unseen.
        return True


def with_defaults(schemas: Iterable[object], value: Any, root: Mapping[str, Any]) -> Any:
    """Return `value` with the defaults of objects' properties filled in, at every depth; the input is not changed.

    Args:
        schemas: what the value must obey.
        value: any JSON value. Where an integer is expected and it is a float of integral value (2.0), it becomes one.
        root: the schema that references lead into.
    """
    parts = list(_applying(schemas, root, certain=True))
    if isinstance(value, float):
        # JSON Schema counts 2.0 as an integer; a tool that asks for one gets one.
        wants_integer = any(part.get("type") == "integer" for part in parts)
        return int(value) if wants_integer and value.is_integer() else value
    if isinstance(value, list):
        return [
            with_defaults(_elements(parts, at), item, root) if isinstance(item, dict | list | float) else item
            for at, item in enumerate(value)
        ]
    return _filled(value, parts, _defaults(parts, root), root)


def _filled(
    value: Mapping[str, Any], parts: Sequence[_Part], defaults: Mapping[str, Any], root: Mapping[str, Any]
) -> dict[str, Any]:
    """Return an object with defaults; `parts` are the schemas that it must obey, `defaults` those of its properties."""
    out = {
        key: with_defaults(_members(parts, key), item, root) if isinstance(item, dict | list | float) else item
        for key, item in value.items()
    }
    return _with_missing(out, defaults)


def _with_missing(out: dict[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Put the defaults of what is missing into an object, and return it."""
    for name, default in defaults.items():
        if name not in out:
            # A copy: a tool that changes its parameters must not change the default of later calls.
            out[name] = json.loads(json.dumps(default)) if isinstance(default, dict | list | tuple) else default
    return out


def _defaults(parts: Iterable[_Part], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of an object's properties, the first that speaks of each."""
    out: dict[str, Any] = {}
    for part in parts:
        for name, below in part.get("properties", {}).items():
            for default in (one["default"] for one in _applying([below], root, certain=True) if "default" in one):
                out.setdefault(name, default)
                break
    return out


def workspace_paths(schema: Mapping[str, Any], value: object) -> list[tuple[str, str]]:
    """Return (where, value) of every string that the schema marks as a workspace path, if only in one of its alternatives."""
    return list(_workspace_paths([schema], value, "", schema))


def _workspace_paths(schemas: Iterable[object], value: object, name: str, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    parts = list(_applying(schemas, root))
    if isinstance(value, str):
        if any(part.get("format") == WORKSPACE_PATH for part in parts):
            yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if item is None or isinstance(item, int | float):
                continue
            yield from _workspace_paths(_members(parts, key), item, f"{name}.{key}".lstrip("."), root)
    elif isinstance(value, list | tuple) and parts:
        for at, item in enumerate(value):
            yield from _workspace_paths(_elements(parts, at), item, f"{name}[{at}]", root)


_KINDS: dict[type, tuple[str, ...]] = {
    str: ("string",),
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}


def from_words(schema: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters typed as the schema says from words of a command line.

    Where the schema wants text, the word is the value. Where it wants another type, it is read as JSON; a word that is not
    JSON stays text, so that the check names it. Where it wants both, it is read as JSON if that has a wanted type, else as
    text; `"5"` in quotes is then the text 5.
    """
    return {name: _typed(word, _kinds(_members([dict(schema)], name), schema)) for name, word in words.items()}


def _kinds(schemas: Iterable[object], root: Mapping[str, Any]) -> set[str]:
    out: set[str] = set()
    for part in _applying(schemas, root):
        kinds = part.get("type", [])
        out.update([kinds] if isinstance(kinds, str) else kinds)
        values = [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
        if "type" not in part:
            out.update(_KINDS[type(value)][0] for value in values if type(value) in _KINDS)
    return out or {"string"}


def _typed(word: str, kinds: set[str]) -> Any:
    if kinds == {"string"}:
        return word
    value = _json(word)
    if "string" not in kinds:
        return word if isinstance(value, str) else value
    if isinstance(value, str) and value != word:
        return value if kinds.intersection(_KINDS[type(_json(value))]) - {"string"} else word
    return value if kinds.intersection(_KINDS[type(value)]) else word


def _json(word: str) -> Any:
    """Return the word read as JSON, or the word."""
    try:
        return json.loads(word, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return word
