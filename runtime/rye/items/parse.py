"""`Verified` bytes to `Tool`, `Knowledge` or `Directive`: metadata by literals and YAML, never by import.

An item at another place than its signed text names is refused. A Python tool's metadata are its module-level
assignments of literals. A YAML tool's are its keys. A knowledge entry's stand in a fenced `yaml` block at its beginning, or
between `---` lines that the signature covers. A directive's stand in its element, which is all that its signature covers (see
`rye.items.directives`). A script's stand as YAML in the comment at its beginning (see `header`).

A tool's docstring has six sections, in the order in which a model reads them. What the tool does comes first, unmarked; then
lines that begin with `Requires:`, `Does not:`, `Side effects:`, `Returns:`, and `Prefer `. A section goes on until the next
one begins.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rye.call import safe_text
from rye.errors import ItemError, TrustError
from rye.fs import strict_yaml
from rye.plain_class import Record
from rye.trust import signature
from rye.trust.verify import Verified

if TYPE_CHECKING:
    import ast

    from rye.items import directives

    # A Python tool's metadata, and its docstring.
    ToolMetadata = tuple[dict[str, Any], str]


# Other installations leave the mark of a file that was not signed yet above the header.
_FENCE = r"(?s)\s*(?:<!-- rye:unsigned -->\s*)*```ya?ml[ \t]*\n(.*?\n)```[ \t]*(?:\n|\Z)"
_FRONT = r"(?s)\s*---[ \t]*\n(.*?\n)---[ \t]*(?:\n|\Z)"
PERMISSIONS = ("read", "write", "network", "run")
"""What `__permissions__` may name: to read the project's files, to change them too, the network, other programs."""
PERMISSIONS_KEY = "__permissions__"
SECRET = re.compile(r"\{secret:([A-Za-z_][A-Za-z0-9_]*)\}")
"""How the text of a header names one of the user's secrets."""
OLD_SECRET = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-[^{}]*)?\}")
"""The same in `config.auth`, as other installations write it."""
# CPython 3.11 counts the depth of the trees that it makes for all threads together, and gives up where two of them meet.
_PARSING = threading.Lock()
# Another thread may hold it where a process forks.
os.register_at_fork(after_in_child=_PARSING._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001
AFTER: Final = ("#!", "<?php")
"""What a runtime may let a script's first line begin with, before the header."""

_BEFORE_HEADER: Final = r"#!|<\?php|(?:#|//|--|;) rye:signed:"

SECTION_STARTS: Final = ("Requires:", "Does not:", "Side effects:", "Returns:", "Prefer ")
"""How the sections after the first begin."""
_SENTENCE_END: Final = r"(?<=\.)\s+"
LONGEST_DESCRIPTION: Final = 1_500
DEFAULT_EFFECTS: Final = {"read_only": False, "destructive": True, "idempotent": False, "open_world": True}
"""What the effects of a tool are taken for that does not declare them; also the names of all four."""
FUNCTION_RUNTIME = "rye/core/runtimes/python_function_runtime"
_NAMES = {
    "version": "__version__",
    "tool_type": "__tool_type__",
    "executor_id": "__executor_id__",
    "category": "__category__",
    "description": "__tool_description__",
}
# A YAML tool writes them without underscores.
_DECLARED = ("permissions", "effects", "timeout", "requires", "requires_rye", "files", "agent_defaults", "envelope", "letters")


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

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return `secret:NAME` for each of the user's secrets that it names: a permission, which an approval shows."""
        config = self.metadata.get("config") if self.suffix != ".py" else None
        if not isinstance(config, dict):
            return ()
        text, auth = json.dumps(config, default=str), json.dumps(config.get("auth"), default=str)
        return tuple(f"secret:{name}" for name in dict.fromkeys(SECRET.findall(text) + OLD_SECRET.findall(auth)))

    @property
    def agent_defaults(self) -> dict[str, Any]:
        """Return the defaults of parameters that it declares for calls of models, in `__agent_defaults__`."""
        declared, known = self.metadata.get("__agent_defaults__"), self.schema.get("properties", {})
        return {name: value for name, value in declared.items() if name in known} if isinstance(declared, dict) else {}

    @property
    def letters(self) -> dict[str, str]:
        """Return what each option of one letter stands for on a command line, as it declares them in `__letters__`.

        That is a parameter, `name=value`, or "" for what it does without being asked.
        """
        declared, known = self.metadata.get("__letters__"), ("", *self.schema.get("properties", ()))
        stand = declared.items() if isinstance(declared, dict) else ()
        return {letter: str(words) for letter, words in stand if str(words).partition("=")[0] in known}

    @property
    def offered(self) -> frozenset[str]:
        """Return the parameters that models are offered: those in `__agent_parameters__`, where it is, and required ones."""
        declared, known = self.metadata.get("__agent_parameters__"), self.schema.get("properties", {})
        named = {*declared, *self.schema.get("required", ())} if isinstance(declared, dict) else known
        return frozenset(name for name in known if name in named)


class Knowledge(Record):
    """A verified knowledge entry: header fields and the text below them."""

    id: str
    verified: Verified
    header: dict[str, Any]
    body: str

    @property
    def version(self) -> str:
        """The header's, if it has one."""
        return str(self.header.get("version", ""))

    @property
    def description(self) -> str:
        """The header's, if it has one."""
        return str(self.header.get("description", ""))


class Directive(Record):
    """A verified directive: what its element says, nothing from around it."""

    id: str
    verified: Verified
    text: directives.DirectiveText

    @property
    def version(self) -> str:
        """The element's."""
        return self.text.version

    @property
    def description(self) -> str:
        """That of its metadata."""
        return self.text.metadata["description"]


Item = Tool | Knowledge | Directive


def read(verified: Verified, item_type: str, item_id: str, suffix: str) -> Item:
    """Return the item that verified bytes are, at the place that its signed text names. Errors as `read_tool`."""
    if item_type == "tool":
        return read_tool(verified, item_id, suffix)
    return read_knowledge(verified, item_id, suffix) if item_type == "knowledge" else read_directive(verified, item_id)


def read_tool(verified: Verified, item_id: str, suffix: str, stated: ToolMetadata | None = None) -> Tool:
    """Return the tool that verified bytes are.

    `stated` is what their bundle's manifest vouches for as `literals_of` them: then they are not parsed.

    Raises:
        ItemError: `malformed_item`, naming what is missing or wrong.
        TrustError: `misplaced`, when the signed category or id does not match the place of the file.
    """
    if suffix == ".py":
        found, docstring = stated or literals_of(python_tree(verified.body))
        metadata: dict[str, Any] = {name: found.get(dunder) for name, dunder in _NAMES.items()}
        schema = found.get("CONFIG_SCHEMA", {"type": "object", "properties": {}})
        bound_id = found.get("__item_id__")
    else:
        text = header(verified.body, suffix)
        if text is None:
            return Tool(item_id, verified, suffix, "", suffix[1:], item_id.rpartition("/")[0], "", None, "", {}, {})
        found = yaml_mapping(text)
        found |= {f"__{name}__": found[name] for name in _DECLARED if name in found and f"__{name}__" not in found}
        metadata = {name: found.get(name) for name in _NAMES}
        docstring = str(found.get("docstring", found.get("description", "")))
        schema = found.get("config_schema", {"type": "object", "properties": {}})
        bound_id = found.get("item_id")
    # Before anything else: a file that was moved must be reported as that, whatever else is wrong with it.
    _place(item_id, metadata["category"], bound_id)
    wrong = [name for name in ("version", "tool_type", "description") if not isinstance(metadata[name], str)]
    if metadata["executor_id"] is not None and not isinstance(metadata["executor_id"], str):
        wrong.append("executor_id")
    if not wrong and not has_version_form(str(metadata["version"])):
        wrong.append("version (X.Y.Z)")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        wrong.append("CONFIG_SCHEMA (an object schema)")
    if wrong:
        raise _malformed(item_id, f"missing or wrong: {', '.join(wrong)}")
    if metadata["tool_type"] == "runtime" and (why := wrong_claim(item_id, found)):
        raise _malformed(item_id, why)
    permissions = _permissions(item_id, found)
    return Tool(
        item_id, verified, suffix, **metadata, docstring=docstring, schema=schema, metadata=found, permissions=permissions
    )


def has_version_form(text: str) -> bool:
    """Tell whether a text can be the version of an item."""
    # Bounded, as a number of thousands of digits is none to Python.
    return re.fullmatch(r"\d{1,9}\.\d{1,9}\.\d{1,9}", text) is not None


def wrong_claim(item_id: str, found: Mapping[str, Any]) -> str:
    """Return what is wrong with the files that a runtime says it takes; empty where nothing is."""
    suffixes, own = found.get("suffixes", []), item_id.startswith("rye/")
    if not isinstance(suffixes, list) or not all(isinstance(one, str) and one.startswith(".") for one in suffixes):
        return 'suffixes must be a list such as [".lua"]'
    for one in suffixes:
        if not own and not signature.is_script_suffix(one):
            return f"suffixes may not claim {safe_text.plain(one)}; leave out the list, or write the suffix of another language"
    if found.get("comment", "#") not in signature.MARKERS:
        return f"comment must be one of {' '.join(signature.MARKERS)}"
    if found.get("after", "#!") not in AFTER:
        return f"after must be one of {' '.join(AFTER)}"
    return ""


def header(raw: bytes, suffix: str) -> str | None:
    """Return the YAML that describes a tool; see `header_at`."""
    found = header_at(text_of(raw), suffix)
    return None if found is None else found[0]


def header_at(text: str, suffix: str) -> tuple[str, int, str] | None:
    """Return the YAML that describes a tool, signed or not; None where there is none.

    It is all of a YAML file. In a script it stands between two lines `# ---` at the beginning, and every line begins with the
    comment marker of the file's language, one of `signature.MARKERS`.

    Returns:
        The YAML, the number of its first line (from 0), and what each of its lines begins with.
    """
    if suffix in (".yaml", ".yml"):
        return text, 0, ""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip() and not re.match(_BEFORE_HEADER, line)), 0)
    fence = lines[start].rstrip()
    marker = fence.removesuffix(" ---")
    if marker not in signature.MARKERS or fence == marker:
        return None
    for stop in range(start + 1, len(lines)):
        if lines[stop].rstrip() == fence:
            inside = [line.removeprefix(marker).removeprefix(" ") for line in lines[start + 1 : stop]]
            return "\n".join(inside), start + 1, f"{marker} "
        if not lines[stop].startswith(marker):
            break
    raise ItemError("malformed_item", f"The header has no second line `{marker} ---`.", "Close it and sign it again.")


def _permissions(item_id: str, found: dict[str, Any]) -> tuple[str, ...]:
    """Return what a tool declares, in the order of `PERMISSIONS`; who may write may also read."""
    declared = found.get(PERMISSIONS_KEY, [])
    unknown = [one for one in declared if one not in PERMISSIONS] if isinstance(declared, list | tuple) else [declared]
    if unknown:
        known = ", ".join(PERMISSIONS)
        raise _malformed(item_id, f"__permissions__ names {unknown[0]!r}, which is none of {known}")
    # The sandbox mounts the project either read-only or writable: there is no writing without reading.
    granted = {*declared, *(["read"] if "write" in declared else [])}
    return tuple(one for one in PERMISSIONS if one in granted)


def read_knowledge(verified: Verified, item_id: str, suffix: str) -> Knowledge:
    """Return the knowledge entry that verified bytes are. Errors as `read_tool`."""
    text = verified.body.decode("utf-8", "replace")
    if suffix in (".yaml", ".yml"):
        header, body = yaml_mapping(text), text
    else:
        match = re.match(_FENCE, text) or re.match(_FRONT, text)
        if match is None:
            raise _malformed(item_id, "no YAML header in a ```yaml block at its beginning")
        header, body = yaml_mapping(match[1]), text[match.end() :]
    name = header.get("id", header.get("name"))
    _place(item_id, header.get("category", item_id.rpartition("/")[0]), None)
    # Entries of other installations name only the last part of the id.
    if name not in (item_id, item_id.rpartition("/")[2]):
        raise _misplaced(item_id, f"its id is {name!r}")
    return Knowledge(item_id, verified, header, body)


def read_directive(verified: Verified, item_id: str) -> Directive:
    """Return the directive that verified bytes are. Errors as `read_tool`."""
    from rye.items import directives

    text = directives.parse(text_of(verified.body))
    name = item_id.rpartition("/")[2]
    _place(item_id, text.metadata.get("category", item_id.rpartition("/")[0]), None)
    if text.name != name:
        raise _misplaced(item_id, f"its name is {text.name!r}")
    wrong = [] if text.metadata.get("description") else ["description (in the metadata)"]
    if not has_version_form(text.version):
        wrong.append("version (X.Y.Z)")
    if wrong:
        raise _malformed(item_id, f"missing or wrong: {', '.join(wrong)}")
    return Directive(item_id, verified, text)


def text_of(body: bytes) -> str:
    """Return an item's text; ItemError `malformed_item` where it is no UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ItemError("malformed_item", "The item is not UTF-8.", "Save it as UTF-8 and sign it again.") from None


def _place(item_id: str, category: object, bound_id: object) -> None:
    if category != item_id.rpartition("/")[0]:
        raise _misplaced(item_id, f"its category is {category!r}, and its folder {item_id.rpartition('/')[0]!r}")
    if bound_id is not None and bound_id != item_id:
        raise _misplaced(item_id, f"it is bound to the id {bound_id!r}")


def _misplaced(item_id: str, why: str) -> TrustError:
    what = f"The file at {item_id} is not the item that was signed: {safe_text.plain(why)}."
    return TrustError("misplaced", what, "Put the right file there, or correct the text and sign it again.")


def _malformed(item_id: str, why: str) -> ItemError:
    what = f"{item_id} is not a well-formed item: {safe_text.plain(why)}."
    return ItemError("malformed_item", what, "Correct it and sign it again.")


def python_tree(body: bytes) -> ast.Module:
    """Return the syntax tree of a Python tool.

    Raises:
        ItemError: `malformed_item`.
    """
    import ast

    try:
        text = text_of(body)
        with _PARSING:
            # Without a name: of an error Python reads the line in the file that has it, in the current folder.
            return ast.parse(text, filename="")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        where = f" (line {err.lineno})" if isinstance(err, SyntaxError) and err.lineno else ""
        why = f"{err.msg}{where}" if isinstance(err, SyntaxError) else str(err)
        what = f"The tool is not valid Python: {safe_text.plain(why)}."
        raise ItemError(
            "malformed_item", what, "Correct it and sign it again.", line=getattr(err, "lineno", None) or 1
        ) from None


def literals_of(tree: ast.Module) -> ToolMetadata:
    """Return a Python tool's metadata, the literals that it assigns at its top level by their names, and its docstring."""
    import ast

    found: dict[str, Any] = {}
    for name, value, _ in assigned(tree):
        # Literals only: metadata must be known before anything of the file runs.
        with suppress(ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            found[name] = ast.literal_eval(value)
    return found, ast.get_docstring(tree) or ""


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr, ast.stmt]]:
    """Yield each name to which a Python tool assigns something at its top level, the value, and the statement."""
    import ast

    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value is not None:
            yield target.id, node.value, node


def yaml_mapping(text: str) -> dict[str, Any]:
    """Return what YAML says that is one mapping; see `rye.fs.strict_yaml`. Raises ItemError: `malformed_item`."""
    try:
        content = strict_yaml.read(text)
    except strict_yaml.YamlError as err:
        why = f"The YAML {safe_text.plain(err.fault)}."
        raise ItemError("malformed_item", why, f"{err.remedy} Then sign it again.") from None
    if not isinstance(content, dict):
        raise ItemError("malformed_item", "The YAML is not a mapping.", "Write `key: value` lines.")
    return content


def docstring_sections(docstring: str) -> list[str]:
    """Return the sections that a docstring has, each on one line; the first is what the tool does, and may be empty."""
    found = [""]
    for line in docstring.split("\n"):
        if line.startswith(SECTION_STARTS):
            found.append(line.strip())
        else:
            found[-1] = f"{found[-1]} {line.strip()}".strip()
    return found


def fitted_docstring(docstring: str, most: int) -> str:
    """Return a docstring within a number of characters: sections lose their last sentences until all fit.

    What it returns goes first, which a model sees anyway; then that of the longest section. Every section keeps its first
    sentence. What is too long even then ends with `…`.
    """
    if len(docstring) <= most:
        return docstring
    sections = [re.split(_SENTENCE_END, section) for section in docstring_sections(docstring)]
    while len(text := "\n".join(" ".join(section) for section in sections)) > most:
        long = [section for section in sections if len(section) > 1]
        if not long:
            return f"{text[: most - 1]}…"
        returned = [section for section in long if section[0].startswith("Returns:")]
        max(returned or long, key=lambda section: len(" ".join(section))).pop()
    return text
