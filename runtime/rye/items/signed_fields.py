"""One field put into a tool's text: into an assignment in Python, a member in YAML or JSON, or a line of a script's header.

`rye sign` writes this way what binds a tool to its place and to its other files. The result is read again: where anything else
than the field would have changed, it is refused.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from rye.errors import ItemError
from rye.items import parse

if TYPE_CHECKING:
    import ast

    import yaml

_METADATA: Final = re.compile(r"__(?:version|tool_type|executor_id|category|tool_description)__")


def fields(raw: bytes, suffix: str) -> dict[str, Any]:
    """Return the fields of a tool's text by their names there; none of a script without a header. Errors as `with_field`."""
    if suffix == ".py":
        return parse.literals_of(parse.python_tree(raw))[0]
    found = parse.header(raw, suffix)
    return {} if found is None else parse.yaml_mapping(found)


def with_field(raw: bytes, suffix: str, name: str, value: str | dict[str, str]) -> bytes:
    """Return a tool's text with a field set; a new one comes behind the others. Raises ItemError: `malformed_item`."""
    known, text = fields(raw, suffix), parse.text_of(raw)
    if suffix == ".py":
        made = _in_python(parse.python_tree(raw), raw, name, json.dumps(value, indent=4).encode())
    elif (found := parse.header_at(text, suffix)) is None:
        raise ItemError("malformed_item", "The script has no header.", "Begin it with its metadata between two lines of ---.")
    else:
        yaml_text, first, prefix = found
        made = _in_lines(text, yaml_text, _in_yaml(yaml_text, name, json.dumps(value)), first, prefix).encode()
    if fields(made, suffix) != {**known, name: value}:
        why = f"Its field {name} cannot be written without a change of others"
        raise ItemError("malformed_item", f"{why}.", "Write each field on lines of its own, then sign it again.")
    return made


def _in_python(tree: ast.Module, raw: bytes, name: str, value: bytes) -> bytes:
    lines = raw.split(b"\n")
    ends: list[int] = []
    for known, old, node in parse.assigned(tree):
        if known == name:
            before, behind = lines[old.lineno - 1][: old.col_offset], lines[(old.end_lineno or 0) - 1][old.end_col_offset :]
            lines[old.lineno - 1 : old.end_lineno] = [before + value + behind]
            return b"\n".join(lines)
        if _METADATA.fullmatch(known):
            ends.append(node.end_lineno or 0)
    if not ends:
        raise ItemError("malformed_item", f"There is no place for {name}.", "Write each metadata on a line of its own.")
    lines.insert(max(ends), b"%b = %b" % (name.encode(), value))
    return b"\n".join(lines)


def _in_yaml(text: str, name: str, value: str) -> str:
    import yaml

    # Read before: it is one mapping. A tab is refused where JSON has it between members; only the places count here.
    root = yaml.compose(text.replace("\t", " "), yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    for key, old in root.value:
        if key.value == name:
            return f"{text[: key.end_mark.index]}: {value}{text[_end_of(old) :]}"
    if not root.flow_style:
        return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{name}: {value}\n"
    end = root.end_mark.index - 1
    before = text[:end].rstrip()
    return f"{before}{'' if before.endswith((',', '{')) else ','} {json.dumps(name)}: {value}{text[end:]}"


def _end_of(node: yaml.Node) -> int:
    """Return where a value ends; that of a block is said to end where the next token begins."""
    if isinstance(node.value, str) or getattr(node, "flow_style", False) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end_of(last[-1] if isinstance(last, tuple) else last)


def _in_lines(text: str, old: str, new: str, first: int, prefix: str) -> str:
    """Return a text with some lines of it, given without their prefix, replaced; a line that stays is not touched."""
    lines, before, after = text.split("\n"), old.split("\n"), new.removesuffix("\n" if prefix else "").split("\n")
    same = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), min(len(before), len(after))
    )
    behind = 0
    while behind < min(len(before), len(after)) - same and before[-1 - behind] == after[-1 - behind]:
        behind += 1
    lines[first + same : first + len(before) - behind] = [f"{prefix}{line}" for line in after[same : len(after) - behind]]
    return "\n".join(lines)
