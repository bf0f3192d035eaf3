"""`Verified` bytes to `Tool`, `Knowledge` or `Directive`: metadata by literals and YAML, never by import.

The misplaced are refused. A Python tool's metadata are its module-level assignments of literals. A YAML tool's are its keys.
A knowledge entry's stand in a fenced `yaml` block at its beginning, or between `---` lines that the signature covers. A
directive's stand in its element, which is all that its signature covers (see `rye.directives`).
"""

from __future__ import annotations

import ast
import json
import re
import threading
from typing import TYPE_CHECKING, Any

from rye.errors import ItemError, TrustError
from rye.record import Record
from rye.toolkit import untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rye import directives
    from rye.trust import Verified

_FENCE = r"(?s)\s*```ya?ml[ \t]*\n(.*?\n)```[ \t]*(?:\n|\Z)"
_FRONT = r"(?s)\s*---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)"
_DEEPEST = 64
PERMISSIONS = ("read", "write", "network", "run")
"""What `__permissions__` may name: to read the project's files, to change them too, the network, other programs."""
# CPython 3.11 counts the depth of the trees that it makes for all threads together, and gives up where two of them meet.
_PARSING = threading.Lock()
_VERSION = r"\d+\.\d+\.\d+"


class Tool(Record):
    """A verified tool's metadata.

    Attributes:
        id: item id.
        verified: its bytes and signer.
        suffix: of its file, `.py` or another.
        version, tool_type, category, description: as declared.
        executor_id: the item that runs it; None for a primitive.
        docstring: what a model reads.
        schema: CONFIG_SCHEMA.
        metadata: every literal of the file by name (Python), or every key (YAML).
        permissions: those of `PERMISSIONS` that it declares; without one, it gets none where it is confined.
    """

    id: str
    verified: Verified
    suffix: str
    version: str
    tool_type: str
    category: str
    description: str
    executor_id: str | None
    docstring: str
    schema: dict[str, Any]
    metadata: dict[str, Any]
    permissions: tuple[str, ...] = ()


class Knowledge(Record):
    """A verified knowledge entry: header fields and the text below them."""

    id: str
    verified: Verified
    header: dict[str, Any]
    body: str


class Directive(Record):
    """A verified directive: what its element says, nothing from around it."""

    id: str
    verified: Verified
    text: directives.Text


_NAMES = {
    "version": "__version__", "tool_type": "__tool_type__", "executor_id": "__executor_id__", "category": "__category__",
    "description": "__tool_description__",
}  # fmt: skip


def read_tool(verified: Verified, item_id: str, suffix: str) -> Tool:
    """Return the tool that verified bytes are.

    Raises:
        ItemError: `malformed_item`, naming what is missing or wrong.
        TrustError: `misplaced`, when the signed category or id is not that of where it stands.
    """
    if suffix == ".py":
        found, docstring = _python_literals(verified.body)
        metadata: dict[str, Any] = {name: found.get(dunder) for name, dunder in _NAMES.items()}
        schema = found.get("CONFIG_SCHEMA", {"type": "object", "properties": {}})
        bound = found.get("__item_id__")
    elif suffix in (".yaml", ".yml"):
        found = yaml_mapping(_text(verified.body))
        metadata, docstring = {name: found.get(name) for name in _NAMES}, str(found.get("description", ""))
        schema = found.get("config_schema", {"type": "object", "properties": {}})
        bound = found.get("item_id")
    else:
        return Tool(item_id, verified, suffix, "", suffix[1:], item_id.rpartition("/")[0], "", None, "", {}, {})
    _place(item_id, metadata["category"], bound)
    wrong = [name for name in ("version", "tool_type", "description") if not isinstance(metadata[name], str)]
    if metadata["executor_id"] is not None and not isinstance(metadata["executor_id"], str):
        wrong.append("executor_id")
    if not wrong and not re.fullmatch(_VERSION, str(metadata["version"])):
        wrong.append("version (X.Y.Z)")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        wrong.append("CONFIG_SCHEMA (an object schema)")
    if wrong:
        raise _malformed(item_id, f"missing or wrong: {', '.join(wrong)}")
    return Tool(
        item_id, verified, suffix, metadata["version"], metadata["tool_type"], metadata["category"],
        metadata["description"], metadata["executor_id"], docstring, schema, found, _permissions(item_id, found),
    )  # fmt: skip


def _permissions(item_id: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Return what a tool declares, in the order of `PERMISSIONS`; who may write may also read."""
    declared = found.get("__permissions__", [])
    unknown = [one for one in declared if one not in PERMISSIONS] if isinstance(declared, list | tuple) else [declared]
    if unknown:
        known = ", ".join(PERMISSIONS)
        raise _malformed(item_id, f"__permissions__ names {unknown[0]!r}, which is none of {known}")
    granted = {*declared, *(["read"] if "write" in declared else [])}
    return tuple(one for one in PERMISSIONS if one in granted)


def read_knowledge(verified: Verified, item_id: str, suffix: str) -> Knowledge:
    """Return the knowledge entry that verified bytes are. Errors as `read_tool`."""
    text = verified.body.decode("utf-8", "replace")
    if suffix in (".yaml", ".yml"):
        header, body = yaml_mapping(text), ""
    else:
        match = re.match(_FENCE, text) or re.match(_FRONT, text)
        if match is None:
            raise _malformed(item_id, "no YAML header in a ```yaml block at its beginning")
        header, body = yaml_mapping(match[1]), text[match.end() :]
    name = header.get("id", header.get("name"))
    _place(item_id, header.get("category", item_id.rpartition("/")[0]), None)
    if name not in (item_id, item_id.rpartition("/")[2]):
        raise _misplaced(item_id, f"its id is {name!r}")
    return Knowledge(item_id, verified, header, body)


def read_directive(verified: Verified, item_id: str) -> Directive:
    """Return the directive that verified bytes are. Errors as `read_tool`."""
    from rye import directives

    text = directives.parse(_text(verified.body))
    name = item_id.rpartition("/")[2]
    _place(item_id, text.metadata.get("category", item_id.rpartition("/")[0]), None)
    if text.name != name:
        raise _misplaced(item_id, f"its name is {text.name!r}")
    wrong = [] if text.metadata.get("description") else ["description (in the metadata)"]
    if not re.fullmatch(_VERSION, text.version):
        wrong.append("version (X.Y.Z)")
    if wrong:
        raise _malformed(item_id, f"missing or wrong: {', '.join(wrong)}")
    return Directive(item_id, verified, text)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ItemError("malformed_item", "The item is not UTF-8.", "Save it as UTF-8 and sign it again.") from None


def check_place(verified: Verified, item_type: str, item_id: str, suffix: str) -> str:
    """Read an item only to see that it stands where its signed text says; return its version, if it has one."""
    if item_type == "tool":
        return read_tool(verified, item_id, suffix).version
    if item_type == "knowledge":
        return str(read_knowledge(verified, item_id, suffix).header.get("version", ""))
    return read_directive(verified, item_id).text.version


def _place(item_id: str, category: object, bound: object) -> None:
    if category != item_id.rpartition("/")[0]:
        raise _misplaced(item_id, f"its category is {category!r}")
    if bound is not None and bound != item_id:
        raise _misplaced(item_id, f"it is bound to the id {bound!r}")


def _misplaced(item_id: str, why: str) -> TrustError:
    return TrustError(
        "misplaced", f"The file at {item_id} is not the item that was signed: {untrusted.plain(why)}.",
        "Put the right file there, or correct the text and sign it again.",
    )  # fmt: skip


def _malformed(item_id: str, why: str) -> ItemError:
    return ItemError(
        "malformed_item", f"{item_id} is not a well-formed item: {untrusted.plain(why)}.", "Correct it and sign it again."
    )


def _python_literals(body: bytes) -> tuple[dict[str, Any], str]:
    try:
        text = _text(body)
        with _PARSING:
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        raise ItemError(
            "malformed_item", f"The tool is not valid Python: {untrusted.plain(str(err))}.", "Correct it and sign it again."
        ) from None
    found: dict[str, Any] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value is not None:
            try:
                found[target.id] = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
    return found, _dedented(ast.get_docstring(tree, clean=False) or "")


def _dedented(docstring: str) -> str:
    """Return a docstring without its indentation, as `inspect.cleandoc` does, which costs a cold call 5 ms to import."""
    first, *rest = docstring.expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    lines = [first.lstrip(), *(line[min(indents, default=0) :] for line in rest)]
    return "\n".join(lines).strip("\n")


def yaml_mapping(text: str) -> dict[str, Any]:
    """Read YAML that is one mapping; repeated keys, aliases and tags are refused, so that it reads the same everywhere.

    YAML in flow style that is JSON too, as the bundle's own files are, is read as that: a cold call need not load the
    YAML library.
    """
    plain = _json_mapping(text)
    if plain is not None:
        return plain
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_hazards(yaml.scan(text, loader))
        _refuse_repeats(yaml.compose(text, loader))
        content = yaml.load(text, loader)  # noqa: S506 - a safe loader, whichever of the two
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        first = str(err).splitlines()[0] if str(err) else type(err).__name__
        raise ItemError(
            "malformed_item", f"The YAML cannot be read: {untrusted.plain(first)}.", "Correct it and sign it again."
        ) from None
    if not isinstance(content, dict):
        raise ItemError("malformed_item", "The YAML is not a mapping.", "Write `key: value` lines.")
    return content


def _json_mapping(text: str) -> dict[str, Any] | None:
    """Return a mapping written as JSON; None for any other text, which YAML may still be able to read."""
    if text.lstrip()[:1] != "{":
        return None
    try:
        return dict(json.loads(text, object_pairs_hook=_unrepeated))
    except (ValueError, TypeError, RecursionError):
        return None


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ItemError("malformed_item", "The YAML repeats a key.", "Keep one of them.")
    return found


def _refuse_hazards(tokens: Iterable[Any]) -> None:
    """Refuse what could read otherwise elsewhere, and what is nested so deep that the C loader would end the process."""
    import yaml

    opening = (
        yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken | yaml.FlowMappingStartToken | yaml.FlowSequenceStartToken
    )
    closing = yaml.BlockEndToken | yaml.FlowMappingEndToken | yaml.FlowSequenceEndToken
    depth = 0
    for token in tokens:
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken | yaml.TagToken):
            raise ItemError("malformed_item", "The YAML has anchors, aliases or tags.", "Write the values out.")
        depth += isinstance(token, opening) - isinstance(token, closing)
        if depth > _DEEPEST:
            raise ItemError("malformed_item", f"The YAML is nested deeper than {_DEEPEST} levels.", "Write it flatter.")


def _refuse_repeats(node: Any) -> None:  # noqa: ANN401 - a node of the YAML library
    if node is None or not hasattr(node, "value") or isinstance(node.value, str):
        return
    keys = [pair[0].value for pair in node.value if isinstance(pair, tuple)]
    if len(keys) != len({str(key) for key in keys}):
        raise ItemError("malformed_item", "The YAML repeats a key.", "Keep one of them.")
    for child in node.value:
        for part in child if isinstance(child, tuple) else (child,):
            _refuse_repeats(part)
