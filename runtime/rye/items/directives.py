"""A directive's signed text: its header sections as XML, its inputs as a schema, its instructions with the inputs filled in.

A directive is one element, first its header, then the text that an agent follows::

    <directive name="release" version="1.0.0">
      <metadata><description>…</description><category>team/ops</category><author>…</author></metadata>
      <inputs><input name="tag" type="string" required="true" default="…">what it is</input></inputs>
      <outputs><output name="url">…</output></outputs>
      <process> … {input:tag} … </process>
    </directive>

Only `metadata`, `inputs` and `outputs` are read as XML, each alone: no document type can stand there, so no entity can be
declared or expanded. All else is text, and shown as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from rye.call.safe_text import plain
from rye.errors import ItemError, UsageError
from rye.items import schema
from rye.plain_class import Record

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_OPENING = re.compile(r"""<directive((?:\s+[\w.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*>""")
_ATTRIBUTE = re.compile(r"""([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CLOSING = "</directive>"
_ELEMENT = re.compile(r"\s*(?:<!--.*?-->\s*)*<([A-Za-z_][\w.-]*)((?:\s[^<>]*)?)>", re.DOTALL)
_SECTIONS = ("metadata", "inputs", "outputs")
_PLACEHOLDER = re.compile(r"\{input:([\w.-]+)(?:(\?)|[:|]([^{}]*))?\}|\$\{inputs\.([\w.-]+)\}")
_TYPES = {
    "string": "string", "str": "string", "text": "string", "path": "string", "integer": "integer", "int": "integer",
    "number": "number", "float": "number", "boolean": "boolean", "bool": "boolean", "array": "array", "list": "array",
    "object": "object", "dict": "object",
}  # fmt: skip


class DirectiveText(Record):
    """A directive as it is written.

    Attributes:
        name, version: the element's attributes.
        metadata: the text of each child of `<metadata>`, by its tag.
        inputs: `{"name", "type", "required", "description", "default"?}` each, in order.
        outputs: `{"name", "description"}` each.
        instructions: everything else, with placeholders.
    """

    name: str
    version: str
    metadata: dict[str, str]
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, str], ...]
    instructions: str


def parse(text: str) -> DirectiveText:
    """Read the span `<directive …>…</directive>`.

    Raises:
        ItemError: `malformed_item`.
    """
    opening = _OPENING.match(text)
    if opening is None or not text.endswith(_CLOSING):
        raise _malformed("it must be one element, directive, with a name and a version")
    attributes = {match[1]: match[2] if match[2] is not None else match[3] for match in _ATTRIBUTE.finditer(opening[1])}
    sections, rest = _split(text[opening.end() : -len(_CLOSING)])
    inputs = tuple(_input(one) for one in _children(sections, "inputs", "input"))
    names = [one["name"] for one in inputs]
    if len(set(names)) != len(names):
        raise _malformed("two inputs have one name")
    outputs = [{"name": one.get("name", ""), "description": _words(one)} for one in _children(sections, "outputs", "output")]
    metadata = {child.tag: _words(child) for child in _children(sections, "metadata", None)}
    return DirectiveText(attributes.get("name", ""), attributes.get("version", ""), metadata, inputs, tuple(outputs), rest)


def _split(text: str) -> tuple[dict[str, str], str]:
    """Return the header sections by name, and what is around and after them; the process ends the header."""
    sections: dict[str, str] = {}
    rest: list[str] = []
    at = 0
    while (element := _ELEMENT.match(text, at)) and element[1] != "process":
        end = element.end()
        if not element[2].endswith("/"):
            close = text.find(f"</{element[1]}>", end)
            if close < 0:
                break
            end = close + len(element[1]) + 3
        if element[1] not in _SECTIONS:
            rest.append(text[at:end])
        elif element[1] in sections:
            raise _malformed(f"it has two sections of {element[1]}")
        else:
            sections[element[1]] = text[element.start(1) - 1 : end]
        at = end
    return sections, "".join([*rest, text[at:]]).strip()


def _children(sections: Mapping[str, str], section: str, tag: str | None) -> list[Element]:
    if section not in sections:
        return []
    try:
        # An element alone has no prologue, where entities would be declared.
        found = list(ET.fromstring(sections[section]))  # noqa: S314 - see above
    except (ET.ParseError, ValueError, RecursionError) as err:
        raise _malformed(f"its {section} are not well-formed XML: {err}") from None
    return [child for child in found if tag in (None, child.tag)]


def _input(element: Element) -> dict[str, Any]:
    name = element.get("name", "")
    if not re.fullmatch(r"[\w.-]+", name):
        raise _malformed(f"an input has the name {name[:40]!r}")
    kind = _TYPES.get(element.get("type", "string").lower(), "any")
    found: dict[str, Any] = {
        "name": name,
        "type": kind,
        "required": element.get("required", "false").lower() == "true",
        "description": _words(element),
    }
    default = element.get("default")
    if default is not None:
        found["default"] = schema.from_words({"properties": {name: _kind(kind)}}, {name: default})[name]
    return found


def _words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _kind(kind: str) -> dict[str, str]:
    return {} if kind == "any" else {"type": kind}


def schema_of(text: DirectiveText) -> dict[str, Any]:
    """Return the inputs as a JSON Schema."""
    properties = {
        one["name"]: {**_kind(one["type"]), "description": one["description"]}
        | ({"default": one["default"]} if "default" in one else {})
        for one in text.inputs
    }
    required = [one["name"] for one in text.inputs if one["required"] and "default" not in one]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def check(text: DirectiveText, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with defaults filled in.

    Raises:
        UsageError: `invalid_parameters`; its details have `declared_inputs`.
    """
    try:
        return schema.SchemaChecker(schema_of(text)).check(inputs)
    except UsageError as err:
        declared = [{key: plain(one) if isinstance(one, str) else one for key, one in each.items()} for each in text.inputs]
        raise UsageError(err.code, err.message, err.hint, **{**err.details, "declared_inputs": declared}) from None


def fill(text: str, inputs: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Put inputs into their placeholders, once: what an input says is never filled in itself.

    `{input:k}` and `${inputs.k}` stand for the input, `{input:k?}` for nothing without it, `{input:k:default}` and
    `{input:k|default}` for the default. Texts stand as they are, other values as JSON.

    Returns:
        The text, and the names whose placeholders stand as they were, for want of an input or a default.
    """
    unfilled: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[4]
        if name in inputs:
            text = inputs[name]
            return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        if match[2] or match[3] is not None:
            return match[3] or ""
        unfilled[name] = None
        return match[0]

    return _PLACEHOLDER.sub(value, text), list(unfilled)


def _malformed(why: str) -> ItemError:
    return ItemError("malformed_item", f"The directive is not well formed: {plain(why)}.", "Correct it and sign it again.")
