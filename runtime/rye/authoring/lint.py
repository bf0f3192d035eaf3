"""What a good tool file has, checked by reading it: nothing of it is run, and it need not be signed.

A finding is a line, a stable code, and what to do; of the file's own text it repeats names and short pieces, made plain.
Checked are: metadata, category and id by the folder, the docstring's six points in 1,500 characters, CONFIG_SCHEMA (valid,
closed, described, paths marked, names that every agent interface takes), effects, imports (the standard library, `rye.toolkit`,
what `__requires__` names), calls that no tool needs, size, hidden characters, and the file's permissions.
"""

from __future__ import annotations

import ast
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rye.call.safe_text import is_hidden, plain
from rye.errors import ItemError, RyeError
from rye.items import parse, schema, scripts, spaces
from rye.items.parse import DEFAULT_EFFECTS, FUNCTION_RUNTIME, LONGEST_DESCRIPTION, SECTION_STARTS, docstring_sections
from rye.trust import signature

MOST_LINES: Final = 400
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NEEDS_RYE: Final = re.compile(r">=\d+(\.\d+)*")
_PATH_NAME: Final = re.compile(r"(?:.*_)?(?:path|file|folder|directory)")
_FORBIDDEN: Final = frozenset({"open", "exec", "eval", "compile", "__import__"})
_POINT_NAMES: Final = ("what it does, first", *(mark.strip() for mark in SECTION_STARTS[:-1]), "Prefer it to …")


_PYTHON_NAMES: Final = {
    "__tool_description__": "description",
    "CONFIG_SCHEMA": "config_schema",
    "OUTPUT_SCHEMA": "output_schema",
}
_REQUIRED: Final = {
    "version": "X.Y.Z",
    "tool_type": '"python" for a Python tool',
    "category": "the folder's path below tools/",
    "description": "one line for lists",
}


class LintFinding(NamedTuple):
    """One thing to correct: `line` counts from 1, `code` is stable, `message` says what to do."""

    line: int
    code: str
    message: str


class _Tool(NamedTuple):
    """A tool as it is read.

    Attributes:
        fields: name -> (value, line) of what it says of itself, by the names of a YAML tool; a value that is computed is None.
        item_id: by its place.
        tree: of a Python tool; empty for any other.
        is_python: whether it is one.
    """

    fields: Mapping[str, tuple[Any, int]]
    item_id: str | None
    tree: ast.Module = ast.Module([], [])
    is_python: bool = False

    def get(self, name: str, default: Any = None) -> tuple[Any, int]:
        """Return a field's value, the default where it is missing or computed, and its line."""
        value, line = self.fields.get(name, (None, 1))
        return default if value is None else value, line

    def name(self, field: str) -> str:
        """Return a field's name as the file writes it."""
        if not self.is_python:
            return field
        return next((name for name, known in _PYTHON_NAMES.items() if known == field), f"__{field}__")


def lint(
    raw: bytes, suffix: str, item_id: str | None = None, mode: int | None = None, search_path: Sequence[spaces.Space] = ()
) -> list[LintFinding]:
    """Return what is to be corrected in a tool file, by line.

    Args:
        raw: the file.
        suffix: of its name.
        item_id: by its place below an `.ai`; None outside of any, where category and id are not compared.
        mode: the file's permission bits, as `os.stat` gives them; None to leave them out.
        search_path: the spaces in which the runtime of a script is looked for; without any it is not.
    """
    found = [*_file(raw, mode)]
    try:
        text = raw.decode()
    except UnicodeDecodeError as err:
        return [*found, LintFinding(raw.count(b"\n", 0, err.start) + 1, "not_utf8", "Save the file as UTF-8.")]
    found += _hidden(text)
    tool = _python(raw, item_id) if suffix == ".py" else _described(text, suffix, item_id)
    if isinstance(tool, LintFinding):
        found.append(tool)
    else:
        own = _PYTHON_CHECKS if tool.is_python else ()
        for check in (*_CHECKS, *own, *(_FUNCTION_CHECKS if tool.is_python and _has_function(tool) else ())):
            found += check(tool)
    try:
        scripts.check(item_id or "It", suffix, raw, search_path) if search_path else None
    except ItemError as err:
        found.append(LintFinding(1, err.code, plain(str(err), 900)))
    return sorted(found)


def _python(raw: bytes, item_id: str | None) -> _Tool | LintFinding:
    try:
        tree = parse.python_tree(raw)
    except ItemError as err:
        return LintFinding(err.details.get("line", 1), "syntax_error", f"{err.message} Correct it.")
    known = parse.literals_of(tree)[0]
    fields = {_PYTHON_NAMES.get(it, it.strip("_")): (known.get(it), node.lineno) for it, _, node in parse.assigned(tree)}
    return _Tool(fields, item_id, tree, is_python=True)


def _described(text: str, suffix: str, item_id: str | None) -> _Tool | LintFinding:
    """Read a tool that is described in YAML: by all of the file, or by the header of a script, whose rest is not looked at."""
    if suffix not in (".yaml", ".yml") and not signature.is_script_suffix(suffix):
        return LintFinding(1, "not_a_tool", "Tools are files that end in .py, .yaml, .yml, or in the suffix of a runtime.")
    try:
        header = parse.header(text.encode(), suffix)
        found = None if header is None else parse.yaml_mapping(header)
    except ItemError as err:
        return LintFinding(1, "bad_yaml", plain(str(err), 300))
    if found is None:
        fence = f"`{scripts.marker_of(suffix)} ---`"
        message = f"Begin with a comment that holds the metadata as YAML between two lines {fence}."
        return LintFinding(1, "missing_metadata", message)
    return _Tool({name: (value, 1) for name, value in found.items()}, item_id)


def _metadata(tool: _Tool) -> Iterator[LintFinding]:
    required = _REQUIRED if not tool.is_python else {**_REQUIRED, "executor_id": f'"{FUNCTION_RUNTIME}"'}
    for field, meaning in required.items():
        value, line = tool.get(field)
        if not isinstance(value, str) or not value:
            yield LintFinding(line, "missing_metadata", f"Give {tool.name(field)}, a literal text: {meaning}.")
    item_id = tool.item_id
    folder = (item_id or "").rpartition("/")[0]
    runtime = f'The bundle has no such runtime; see "{FUNCTION_RUNTIME}".'
    checks: tuple[tuple[str, Callable[[str], object], str, str], ...] = (
        ("version", parse.has_version_form, "bad_version", 'Write the version as "1.0.0".'),
        ("executor_id", _may_be_runtime, "unknown_runtime", runtime),
        ("category", lambda it: not item_id or it == folder, "wrong_category", f'The category is its folder, "{folder}".'),
        ("requires_rye", _NEEDS_RYE.fullmatch, "bad_requirement", 'Write it as ">=0.1".'),
        ("item_id", lambda it: item_id in (None, it), "wrong_item_id", f'Its id here is "{item_id}".'),
        ("tool_type", lambda it: not tool.is_python or it == "python", "bad_tool_type", 'A Python tool says "python".'),
        ("description", lambda it: not tool.is_python or _is_summary(it), "long_summary", "Say it in one line of 100."),
    )
    for field, fits, code, message in checks:
        value, line = tool.get(field)
        if isinstance(value, str) and value and not fits(value):
            yield LintFinding(line, code, message)


def _is_summary(text: str) -> bool:
    return len(text) <= 100 and "\n" not in text


def _may_be_runtime(executor_id: str) -> bool:
    """Tell whether an id can name a runtime: the bundle's are known, others stand in a space that is not looked at here."""
    if not executor_id.startswith(spaces.RESERVED):
        return True
    system = spaces.Space("system", spaces.system_folder())
    return any(spaces.read_file(system, f"tools/{executor_id}{suffix}") is not None for suffix in (".yaml", ".yml"))


def _runtime(tool: _Tool) -> Iterator[LintFinding]:
    found = {name: value for name, (value, _) in tool.fields.items()}
    if found.get("tool_type") == "runtime" and (why := parse.wrong_claim(tool.item_id or "", found)):
        yield LintFinding(1, "bad_claim", f"{why[0].upper()}{why[1:]}.")


def _permissions(tool: _Tool) -> Iterator[LintFinding]:
    declared, line = tool.get("permissions", [])
    name = tool.name("permissions")
    if not isinstance(declared, list | tuple) or not set(map(str, declared)) <= set(parse.PERMISSIONS):
        yield LintFinding(line, "bad_permissions", f"{name} is a list of some of {', '.join(parse.PERMISSIONS)}.")
        return
    # The system's own tools are not confined, so they declare nothing.
    own = tool.item_id is not None and tool.item_id.startswith(spaces.RESERVED)
    takes_path = f"'format': '{schema.WORKSPACE_PATH}'" in repr(tool.get("config_schema")[0])
    if takes_path and not own and not {"read", "write"} & set(declared):
        listed = '__permissions__ = ["read"], or ["write"]' if tool.is_python else "permissions: [read], or [write]"
        yield LintFinding(line, "missing_permission", f"It takes a path: give {listed}.")
    if _url(tool) and "network" not in declared:
        yield LintFinding(line, "missing_permission", "It sends a request: give permissions: [network].")
    effects = tool.get("effects", {})[0]
    if isinstance(effects, dict) and effects.get("read_only") is True and "write" in declared:
        yield LintFinding(line, "bad_permissions", "What is read_only needs no permission to write.")


def _url(tool: _Tool) -> str:
    """Return the URL of a request that is described as YAML; "" where there is none."""
    config = tool.get("config")[0] if not tool.is_python else None
    url = config.get("url") if isinstance(config, dict) else None
    return url if isinstance(url, str) else ""


def _schemas(tool: _Tool) -> Iterator[LintFinding]:
    for field in ("config_schema", "output_schema"):
        name = tool.name(field)
        value, line = tool.get(field)
        if field not in tool.fields:
            if field == "config_schema" and tool.is_python:
                yield LintFinding(1, "missing_schema", "Assign CONFIG_SCHEMA, an object schema; without parameters, of none.")
            continue
        if not isinstance(value, dict) or value.get("type", "" if tool.is_python else "object") != "object":
            yield LintFinding(line, "bad_schema", f'{name} is a literal dict with "type": "object".')
            continue
        try:
            schema.SchemaChecker(value)
        except (RyeError, TypeError, RecursionError) as err:
            yield LintFinding(line, "bad_schema", plain(f"{name}: {err}", 300))
            continue
        if tool.is_python and field == "config_schema":
            yield from _object(value, name, line)
    known = tool.get("config_schema", {})[0]
    for name in re.findall(r"\{([a-z_][a-z0-9_]*)\}", _url(tool)):
        if isinstance(known, dict) and name not in known.get("properties", {}):
            yield LintFinding(1, "unknown_parameter", f"The URL names {{{name}}}, which is no parameter in config_schema.")


def _object(part: dict[str, Any], where: str, line: int) -> Iterator[LintFinding]:
    known = part.get("properties", {})
    if part.get("additionalProperties") is not False and (known or where == "CONFIG_SCHEMA"):
        yield LintFinding(
            line, "open_schema", f'{where}: say "additionalProperties": False, so that a misspelt name is an error.'
        )
    for name in part.get("required", ()):
        if name not in known:
            yield LintFinding(line, "bad_schema", f"{where} requires a parameter that it does not describe.")
    for at, (name, below) in enumerate(known.items(), 1):
        # A name that is none is not repeated: it may be a sentence.
        label = name if _PARAMETER.fullmatch(name) else f"<the name of property {at}>"
        yield from _parameter(below, name, f"{where}.{label}", line)


def _parameter(part: Any, name: str, where: str, line: int) -> Iterator[LintFinding]:
    if not _PARAMETER.fullmatch(name):
        yield LintFinding(
            line, "bad_parameter_name", f"{where}: letters, digits and _, at most 64; not every interface takes more."
        )
    if not isinstance(part, dict):
        yield LintFinding(line, "bad_schema", f"{where}: describe it with a schema.")
        return
    if not part.get("description"):
        yield LintFinding(line, "undescribed_parameter", f"{where}: give it a description.")
    if part.get("type") == "string" and _PATH_NAME.fullmatch(name) and "format" not in part and "enum" not in part:
        message = f'{where}: say "format": "{schema.WORKSPACE_PATH}", so that it is confined; if it is none, name it otherwise.'
        yield LintFinding(line, "unmarked_path", message)
    if part.get("type") == "object":
        yield from _object(part, where, line)
    items_part = part.get("items")
    if isinstance(items_part, dict) and items_part.get("type") == "object":
        yield from _object(items_part, f"{where}[]", line)


def _python_fields(tool: _Tool) -> Iterator[LintFinding]:
    if tool.item_id is not None and "item_id" not in tool.fields:
        yield LintFinding(
            1, "missing_item_id", f'Assign __item_id__ = "{tool.item_id}", so that the signature binds its place.'
        )
    seconds, line = tool.get("timeout", 1)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        yield LintFinding(line, "bad_timeout", "__timeout__ is a number of seconds above 0.")
    value, line = tool.get("effects")
    if not isinstance(value, dict) or set(value) != set(DEFAULT_EFFECTS) or {*map(type, value.values())} != {bool}:
        named = ", ".join(DEFAULT_EFFECTS)
        yield LintFinding(line, "bad_effects", f"Assign __effects__, a dict of True or False for each of {named}.")
    elif value["read_only"] and value["destructive"]:
        yield LintFinding(line, "bad_effects", "What is read_only is not destructive.")
    config = tool.get("config_schema")[0]
    known = config.get("properties", {}) if isinstance(config, dict) else {}
    declared, line = tool.get("agent_defaults", {})
    if not isinstance(declared, dict) or not set(declared) <= set(known):
        yield LintFinding(
            line, "bad_agent_defaults", "__agent_defaults__ gives some of the schema's parameters another default."
        )
    letters, line = tool.get("letters", {})
    stand = letters.items() if isinstance(letters, dict) else [("", "")]
    if not all(len(one) == 1 and str(words).partition("=")[0] in ("", *known) for one, words in stand):
        yield LintFinding(
            line, "bad_letters", '__letters__ gives letters to parameters: {"i": "ignore_case", "l": "mode=files"}.'
        )


def _has_function(tool: _Tool) -> bool:
    """Tell whether a tool is called by its function; a script is run from its first line to its last."""
    executor_id = str(tool.get("executor_id", FUNCTION_RUNTIME)[0])
    return executor_id == FUNCTION_RUNTIME or not executor_id.endswith("script_runtime")


def _docstring(tool: _Tool) -> Iterator[LintFinding]:
    text = ast.get_docstring(tool.tree) or ""
    if not text:
        yield LintFinding(1, "missing_docstring", f"Begin with a docstring for a model: {'; '.join(_POINT_NAMES)}.")
        return
    line = tool.tree.body[0].lineno
    if len(text) > LONGEST_DESCRIPTION:
        yield LintFinding(line, "long_docstring", f"It has {len(text):,} characters; cut it to {LONGEST_DESCRIPTION:,}.")
    has = docstring_sections(text)
    if not has[0]:
        yield LintFinding(line, "missing_point", "Begin the docstring with what the tool does.")
    for mark, name in zip(SECTION_STARTS, _POINT_NAMES[1:], strict=True):
        if not any(point.startswith(mark) and len(point) > len(mark) for point in has[1:]):
            yield LintFinding(line, "missing_point", f"The docstring has no line that begins with {name!r}.")


def _imports(tool: _Tool) -> Iterator[LintFinding]:
    from packaging.requirements import Requirement

    declared, line = tool.get("requires", ())
    listed: list[Any] = [*declared] if isinstance(declared, list | tuple) else [None]
    names: set[str] = set()
    try:
        # As a call reads them.
        names = {Requirement(one).name.replace("-", "_").lower() for one in listed}
    except (ValueError, TypeError):
        yield LintFinding(line, "bad_requirement", '__requires__ is a list such as ["pillow>=11"].')
    for node in ast.walk(tool.tree):
        for name, level in _imported(node):
            top = name.split(".")[0]
            is_system = name == "rye.toolkit" or (name.startswith("rye.") and (tool.item_id or "").startswith("rye/"))
            if level or not (is_system or top in sys.stdlib_module_names or top.lower() in names):
                hint = "Import the standard library, rye.toolkit, or what __requires__ names; never another tool."
                yield LintFinding(getattr(node, "lineno", 1), "import_not_allowed", f"{plain(name, 80) or '.'}: {hint}")


def _imported(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, 0) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        yield from ((f"{module}.{alias.name}" if module == "rye" else module, node.level) for alias in node.names)


def _calls(tool: _Tool) -> Iterator[LintFinding]:
    for node in ast.walk(tool.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FORBIDDEN:
            fault = (
                "Files are opened through rye.toolkit, which confines them." if node.func.id == "open" else "No tool needs it."
            )
            yield LintFinding(node.lineno, "forbidden_call", f"{node.func.id}(): {fault}")


def _entry(tool: _Tool) -> Iterator[LintFinding]:
    found = [one for one in tool.tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == "execute"]
    if not found:
        yield LintFinding(1, "missing_entry_point", "Define execute(params, project_path), which returns a dict.")
    elif [one.arg for one in found[-1].args.args] != ["params", "project_path"]:
        yield LintFinding(found[-1].lineno, "bad_entry_point", "The signature is execute(params, project_path).")


_CHECKS: Final = (_metadata, _runtime, _permissions, _schemas)
_PYTHON_CHECKS: Final = (_python_fields, _docstring, _imports)
_FUNCTION_CHECKS: Final = (_calls, _entry)


def _file(raw: bytes, mode: int | None) -> Iterator[LintFinding]:
    lines = raw.count(b"\n")
    if lines > MOST_LINES:
        message = f"It has {lines} lines, over {MOST_LINES}; a tool is a page, logic goes elsewhere."
        yield LintFinding(MOST_LINES + 1, "long_file", message)
    if mode is not None and mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield LintFinding(1, "writable_by_others", "Others may write it; run `chmod go-w` on it.")
    if mode is not None and mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH):
        yield LintFinding(1, "executable_file", "A tool is read, never executed as a program; run `chmod a-x` on it.")


def _hidden(text: str) -> Iterator[LintFinding]:
    for number, line in enumerate(text.split("\n"), 1):
        hidden = {char for char in line.removesuffix("\r") if char != "\t" and is_hidden(char)}
        if hidden:
            codes = ", ".join(sorted(f"U+{ord(char):04X}" for char in hidden))
            yield LintFinding(number, "hidden_character", f"Write {codes} as an escape such as \\u200b, so that it is seen.")
