"""A tool's schema as any interface can take it: on its own, without references, nothing combined at its root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rye.errors import ItemError
from rye.schema import WORKSPACE_PATH
from rye.strict_schema import NOT_AT_ROOT

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

_Schema = dict[str, Any]

_DEEPEST: Final = 64
_MOST_PARTS: Final = 20_000
_BOOKKEEPING: Final = frozenset({"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$ref"})
_NAMED: Final = ("properties", "patternProperties", "dependentSchemas")
_LISTED: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_VALUES: Final = ("enum", "const", "default", "examples", "required")


def alone(schema: Mapping[str, Any]) -> _Schema:
    """Return a schema with every `$ref` to its own parts written out, and without what only this house understands.

    Raises:
        ItemError: `not_expressible`, for one that refers to itself or outwards, or grows beyond 20,000 parts.
    """
    found: _Schema = _Inlining(schema).part(schema)
    return found


def at_root(base: _Schema) -> _Schema:
    """Return an object schema whose root combines nothing: no interface takes that there."""
    kept = {name: value for name, value in base.items() if name not in NOT_AT_ROOT}
    return {**kept, "type": "object", "properties": base.get("properties", {})}


def hold_names(part: Any, grammar: re.Pattern[str]) -> None:  # noqa: ANN401 - a schema, or true or false
    """Raise ItemError `not_expressible` for a property, at any depth, whose name an interface does not take."""
    if isinstance(part, list):
        for one in part:
            hold_names(one, grammar)
    if not isinstance(part, dict):
        return
    for name, below in part.get("properties", {}).items():
        if not grammar.fullmatch(name):
            raise ItemError("not_expressible", f"the interface takes no parameter named {name[:80]!r}")
        hold_names(below, grammar)
    for name in ("items", "additionalProperties", *_LISTED):
        hold_names(part.get(name), grammar)


class _Inlining:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._parts = 0

    def part(self, part: Any, depth: int = 0) -> Any:  # noqa: ANN401 - a schema, or true or false
        if not isinstance(part, dict):
            return part
        self._parts += 1
        if depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise ItemError("not_expressible", "its schema refers to itself, or is too large")
        own = {name: value for name, value in part.items() if name not in _BOOKKEEPING}
        if own.get("format") == WORKSPACE_PATH:
            del own["format"]
        own = {name: self._below(name, value, depth + 1) for name, value in own.items()}
        if "$ref" not in part:
            return own
        aim = self.part(self._aim(str(part["$ref"])), depth + 1)
        return {**aim, **own} if isinstance(aim, dict) else own

    def _below(self, name: str, value: Any, depth: int) -> Any:  # noqa: ANN401 - a keyword's value
        if name in _NAMED and isinstance(value, dict):
            return {key: self.part(below, depth) for key, below in value.items()}
        if name in _LISTED and isinstance(value, list):
            return [self.part(below, depth) for below in value]
        return value if name in _VALUES else self.part(value, depth)

    def _aim(self, reference: str) -> object:
        found: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is None or reference[:1] != "#":
            raise ItemError("not_expressible", f"its schema refers to {reference[:80]}, which is not in it")
        return found
