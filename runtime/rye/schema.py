"""CONFIG_SCHEMA over a JSON Schema library: defaults, every problem in one message, which values are paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from rye.errors import ItemError, UsageError
from rye.toolkit.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORKSPACE_PATH = "workspace-path"
"""The `format` that marks a string as a path below the project."""

_SHOWN = 120


class Checker:
    """A compiled schema of one tool's parameters (an object schema; draft 2020-12)."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Compile.

        Raises:
            ItemError: `bad_schema`, when it is no valid schema or refers to anything outside itself.
        """
        import jsonschema_rs

        self.schema = schema
        try:
            self._validator = jsonschema_rs.Draft202012Validator(dict(schema), retriever=_refuse)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as err:
            raise ItemError(
                "bad_schema", f"CONFIG_SCHEMA is not usable: {str(err).splitlines()[0]}.",
                "A schema stands alone: no file or network $ref, draft 2020-12.",
            ) from None  # fmt: skip

    def check(self, parameters: object) -> dict[str, Any]:
        """Return the parameters with defaults filled in.

        Raises:
            UsageError: `invalid_parameters`, naming every problem, what was given and what is wanted.
        """
        if not isinstance(parameters, dict) or not all(isinstance(key, str) for key in parameters):
            raise UsageError(
                "invalid_parameters", f"Parameters must be an object of named values, not {type(parameters).__name__}.",
                f"Wanted: {self.wanted()}.",
            )  # fmt: skip
        filled: dict[str, Any] = with_defaults(self.schema, parameters)
        problems = [*self._unknown(parameters), *self._problems(filled)]
        if problems:
            given = ", ".join(f"{key}={_short(value)}" for key, value in parameters.items()) or "nothing"
            raise UsageError(
                "invalid_parameters", f"Invalid parameters: {'; '.join(problems)}. Given: {given}.",
                f"Wanted: {self.wanted()}.", problems=problems,
            )  # fmt: skip
        return filled

    def _unknown(self, parameters: dict[str, Any]) -> list[str]:
        known = self.schema.get("properties", {})
        if self.schema.get("additionalProperties") not in (None, False):
            return []
        out = []
        for key in parameters:
            if key not in known:
                close = nearest(key, known, 1)
                out.append(f"unknown parameter {key!r}" + (f", did you mean {close[0]!r}?" if close else ""))
        return out

    def _problems(self, filled: dict[str, Any]) -> list[str]:
        try:
            errors = list(self._validator.iter_errors(filled))
        except (ValueError, OverflowError) as err:
            return [f"not JSON: {err}"]
        out = []
        for error in errors:
            if not error.instance_path and type(error.kind).__name__ == "AdditionalProperties":
                continue
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path).lstrip(".")
            out.append(f"{where}: {_cut(error.message)}" if where else _cut(error.message))
        return out

    def wanted(self) -> str:
        """Return the parameters in one line: `file_path (string, required), limit (integer, default 2000)`."""
        required = self.schema.get("required", ())
        out = []
        for name, part in self.schema.get("properties", {}).items():
            kind = part.get("type", "any")
            facts = [" or ".join(kind) if isinstance(kind, list) else str(kind)]
            if "enum" in part:
                facts.append("one of " + "|".join(map(str, part["enum"])))
            facts += ["required"] if name in required else []
            facts += [f"default {json.dumps(part['default'])}"] if "default" in part else []
            out.append(f"{name} ({', '.join(facts)})")
        return ", ".join(out) or "no parameters"


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema may not refer to {uri}")


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]} … {text[-_SHOWN:]}"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def with_defaults(schema: Mapping[str, Any], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return `value` with the defaults of objects' properties filled in, at every depth; the input is not changed."""
    if isinstance(value, dict) and isinstance(schema.get("properties"), dict):
        out = dict(value)
        for name, part in schema["properties"].items():
            if name in out:
                out[name] = with_defaults(part, out[name])
            elif isinstance(part, dict) and "default" in part:
                out[name] = json.loads(json.dumps(part["default"]))
        return out
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [with_defaults(schema["items"], item) for item in value]
    return value


def workspace_paths(schema: Mapping[str, Any], value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (where, value) of every string that the schema marks as a workspace path."""
    if isinstance(value, str):
        if schema.get("format") == WORKSPACE_PATH:
            yield name, value
    elif isinstance(value, dict):
        for key, part in schema.get("properties", {}).items():
            if key in value:
                yield from workspace_paths(part, value[key], f"{name}.{key}".lstrip("."))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for at, item in enumerate(value):
            yield from workspace_paths(schema["items"], item, f"{name}[{at}]")


def from_words(schema: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters typed as the schema says from words of a command line.

    A value that is not JSON of a wanted type stays text, so that the check names it.
    """
    out: dict[str, Any] = {}
    for name, word in words.items():
        kinds = schema.get("properties", {}).get(name, {}).get("type", "string")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        out[name] = word
        if kinds != ["string"]:
            try:
                value = json.loads(word)
            except ValueError:
                continue
            if not (isinstance(value, str) and "string" not in kinds):
                out[name] = value
            if "string" in kinds and not isinstance(value, (list, dict)) and len(kinds) == 1:
                out[name] = word
    return out
