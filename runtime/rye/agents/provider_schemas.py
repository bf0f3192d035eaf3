"""Offers as four agent interfaces take them: OpenAI, Anthropic, Gemini, MCP. Each within what it documents.

Sources, as of 2026: OpenAI's guide to function calling (names, 1,024 characters of description); Anthropic's tool use
reference (names, property names, no `$ref`, no combination at the root); the `FunctionDeclaration` reference of the Gemini API
(`parametersJsonSchema`); the MCP specification's tools. All take JSON Schema, and get the same plain one.

A schema for a model may be wider than the tool's own: every call is checked by the tool's own, whatever schema the model saw.
Models and clients that fill in every parameter write null or an empty text for "not given": `arguments_for_tool` leaves it out.

Names that are nearly right are understood: `filePath`, `path` or `cmd` where a tool has `file_path` or `command`; but only
where a name can mean one thing: it is none of the tool's own, the tool takes no further names, and exactly one of its
parameters that were not given is meant. So are the first and last line of a file in place of offset and limit, and the members
of an item beside the list that it belongs in: `old_string` and `new_string` where `changes` is wanted. Everything else is left
to the executor, which refuses it and says what was probably meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rye.agents.model_schema import check_property_names, plain, resolved
from rye.agents.offers import Offer
from rye.errors import ItemError, UsageError
from rye.items.parse import fitted_docstring
from rye.items.schema import NO_SCHEMA, WORKSPACE_PATH, is_one_of

_MEANINGS: Final = tuple(
    frozenset(words.split())
    for words in (
        "filepath path file filename docpath targetfile targetpath relativepath absolutepath relativeworkspacepath",
        "path dir directory folder root searchpath targetdirectory directorypath",
        "workingdir cwd workdir workingdirectory dir directory",
        "command cmd script commandline shellcommand",
        "pattern regex regexp query search searchpattern globpattern",
        "include glob fileglob filepattern includepattern includes",
        "query q search keywords",
        "content contents text filetext filecontent body code",
        "limit maxresults headlimit maxlines numlines count maxcount",
        "offset start startline fromline lineoffset",
        "oldstring oldstr oldtext old find",
        "newstring newstr newtext new replace replacement",
        "find old oldstring oldstr oldtext search",
        "replace new newstring newstr newtext replacement",
        "newcontent newtext newlines content text replacement newstring newstr",
        "lineid id line",
        "startlineid startline start",
        "endlineid endline end",
        "mode outputmode",
        "ignorecase caseinsensitive icase i",
        "literal fixedstrings plain",
        "context contextlines surroundinglines c a b before after",
        "background runinbackground isbackground",
        "depth maxdepth levels",
        "dryrun preview",
        "timeout timeoutseconds timeouts",
        "changes edits",
        "jobid id outputid shellid bashid",
        "entryid id changeid",
        "data input",
        "parameters params arguments args",
        "sort sortby order",
    )
)
"""Names that mean the same, each folded; a group applies where a tool has exactly one of them."""


_SWITCH: Final = ("true", "false")
_NEEDLESS: Final = {"n": _SWITCH, "linenumbers": _SWITCH, "replaceall": ("false",), "overwrite": ("true",)}
"""Names and values of what a tool does anyway: left out, as a note to the reader is, where it has no such parameter."""
_SIDES: Final = frozenset(("a", "b", "before", "after"))
_RANGES: Final = ("viewrange", "linerange", "lines", "range")
_ENDS: Final = ("endline", "end", "toline", "lastline")
_LAST_LINE: Final = -1
_STARTS: Final = ("startline", "start", "fromline", "firstline", "offset")


def folded(name: str) -> str:
    """Return a name without letter case, underscores, hyphens and dots."""
    return name.casefold().translate({ord(char): None for char in "_-. "})


def tool_name(name: str, known: Iterable[str]) -> str | None:
    """Return the tool that a name means: another spelling of one, or one with a client's prefix; None where that is not one."""
    names = list(known)
    if name in names:
        return name
    plain_name = folded(name.rpartition("__")[2])
    found = [one for one in names if folded(one) == plain_name]
    return found[0] if len(found) == 1 else None


def _with_own_names(schema: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the members of an object under the names that its schema has for them, in the order given."""
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or not isinstance(known, dict) or set(arguments) <= set(known):
        return arguments
    arguments = _with_context(known, _with_window(schema, arguments))
    used = set(arguments) & set(known)
    renamed: dict[str, str] = {}
    # What is new comes last: beside old text it is `replace`, beside lines `new_content`.
    for name in sorted(arguments, key=lambda one: folded(one).startswith("new")):
        if name not in known and (meant := _meant(name, set(known) - used)) is not None:
            renamed[name] = meant
            used.add(meant)
    left = [name for name in arguments if name not in known and name not in renamed]
    needless = {name for name in left if _is_needless(folded(name), arguments[name])}
    return {renamed.get(name, name): value for name, value in arguments.items() if name not in needless}


def _is_needless(name: str, value: Any) -> bool:
    return isinstance(value, str) if name == "description" else str(value).lower() in _NEEDLESS.get(name, ())


def _with_context(known: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the lines before and after a match, where both are given, as one number: the larger."""
    sides = {name: value for name, value in arguments.items() if name not in known and folded(name) in _SIDES}
    if "context" not in known or "context" in arguments or [type(value) for value in sides.values()] != [int, int]:
        return arguments
    return {name: value for name, value in arguments.items() if name not in sides} | {"context": max(sides.values())}


def _with_window(schema: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the first and the last line of a file, as other tools name them, as offset and limit."""
    known = schema["properties"]
    # Without a file that must be named they are of a list, as `undo` has one.
    if (
        not {"offset", "limit"} <= set(known)
        or not {"file_path", "docPath"} & {*schema.get("required", ())}
        or "limit" in arguments
    ):
        return arguments
    given = {folded(name): name for name in arguments if name == "offset" or name not in known}
    windows, starts, ends = ([given[name] for name in names if name in given] for names in (_RANGES, _STARTS, _ENDS))
    if (len(windows), len(starts), len(ends)) not in ((1, 0, 0), (0, 1, 1), (0, 0, 1)):
        return arguments
    pair = [arguments[name] for name in (*starts, *ends)] if ends else arguments[windows[0]]
    try:
        *first, last = map(int, pair.split("-") if isinstance(pair, str) else pair)
    except (TypeError, ValueError):
        return arguments
    begin = first[0] if first else 1
    # -1 is the file's last line.
    if len(first) > 1 or not (first or ends) or begin < 1 or not (last >= begin or last == _LAST_LINE):
        return arguments
    others = {name: value for name, value in arguments.items() if name not in (*windows, *starts, *ends)}
    return others | {"offset": begin} | ({} if last == _LAST_LINE else {"limit": last - begin + 1})


def _as_one_item(schema: Mapping[str, Any], arguments: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the schema's names, members of an item of the one list that is missing as that item."""
    known, own = schema.get("properties", {}), _with_own_names(schema, arguments)
    missing = [name for name in schema.get("required", ()) if name in known and name not in own]
    if schema.get("additionalProperties") is not False or len(missing) != 1 or set(own) <= set(known):
        return own
    part = resolved(resolved(known[missing[0]], root).get("items"), root)
    said = {name: value for name, value in own.items() if name not in known}
    members = part.get("properties", {}) if isinstance(part, dict) else {}
    # A number under another tool's name can be a line's number, where an address is wanted.
    if any(type(value) is int and name not in members for name, value in said.items()):
        return own
    item = _with_own_names(part or {}, said)
    if not set(item) <= set(members):
        return own
    return {name: value for name, value in own.items() if name in known} | {missing[0]: [item]}


def _meant(name: str, free: set[str]) -> str | None:
    """Return the one parameter, of those not given, that a name means."""
    plain_name = folded(name)
    if same := [one for one in free if folded(one) == plain_name]:
        return same[0] if len(same) == 1 else None
    found = {one for group in _MEANINGS if plain_name in group for one in free if folded(one) in group}
    if found == {"replace", "new_content"}:
        found.remove("replace" if "find" in free else "new_content")
    return found.pop() if len(found) == 1 else None


_OPENAI_DESCRIPTION: Final = 1_024


def render(offer: Offer, format: str) -> dict[str, Any]:
    """Return an offer as an interface takes it.

    Raises:
        UsageError: `unknown_format`.
        ItemError: `not_expressible`, when the interface has no way to say it.
    """
    check_format(format)
    try:
        made, names = _FORMATS[format]
        schema = plain(offer.parameters if offer.listed_schema is None else offer.listed_schema)
        check_property_names(schema, re.compile(names))
        return made(offer, schema)
    except (ItemError, *NO_SCHEMA) as err:
        why = err.message if isinstance(err, ItemError) else "its schema is none, refers to itself, or is nested too deeply"
        raise ItemError("not_expressible", f"{offer.item_id} has no {format} form: {why}.") from None


def check_format(format: str) -> None:
    """Raise UsageError `unknown_format` unless there is such a format."""
    if format not in _FORMATS:
        raise UsageError("unknown_format", f"Unknown format: {format!r}.", f"Use one of {', '.join(_FORMATS)}.")


def render_all(offers: Iterable[Offer], format: str) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the offers as an interface takes them, and (id, reason) of those that it cannot express.

    Raises:
        UsageError: `unknown_format`.
    """
    check_format(format)
    rendered: list[dict[str, Any]] = []
    refused: list[tuple[str, str]] = []
    for offer in offers:
        try:
            rendered.append(render(offer, format))
        except ItemError as err:
            refused.append((offer.item_id, str(err)))
    return rendered, refused


def _openai(offer: Offer, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a function tool of the Chat Completions interface."""
    return {
        "type": "function",
        "function": {
            "name": offer.name,
            "description": fitted_docstring(offer.description, _OPENAI_DESCRIPTION),
            "parameters": schema,
            # Said, because some libraries take strict mode where nothing is: it refuses optional parameters.
            "strict": False,
        },
    }


def _anthropic(offer: Offer, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a client tool of the Messages interface."""
    return {"name": offer.name, "description": offer.description, "input_schema": schema}


def _gemini(offer: Offer, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a `FunctionDeclaration`; one without parameters has no schema."""
    parameters = {"parametersJsonSchema": schema} if schema["properties"] else {}
    return {"name": offer.name, "description": offer.description, **parameters}


def _mcp(offer: Offer, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a tool as `tools/list` gives it; `_meta` says whose it is, by which an agent can pin it."""
    return {
        "name": offer.name,
        "title": offer.title,
        "description": offer.description,
        "inputSchema": schema,
        "outputSchema": offer.output,
        "annotations": {"title": offer.title, **{hint: offer.effects[effect] for hint, effect in _HINTS.items()}},
        "_meta": {f"rye/{name}": getattr(offer, name) for name in ("item_id", "digest", "signer", "space", "version")},
    }


_HINTS: Final = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
# Of each interface what makes its form of an offer and its plain schema, and how it lets a parameter be called.
_FORMATS: Final[dict[str, tuple[Callable[[Offer, dict[str, Any]], dict[str, Any]], str]]] = {
    "openai": (_openai, "(?s).*"),
    "anthropic": (_anthropic, r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": (_gemini, r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
    "mcp": (_mcp, "(?s).*"),
}


def arguments_for_tool(schema: Mapping[str, Any], arguments: Any) -> Any:
    """Return a model's arguments as the tool's own schema wants them (see the module's text); nothing else is changed."""
    try:
        return _coerced(schema, arguments, schema)
    except NO_SCHEMA:
        # A form of the schema is that form itself, or the arguments are nested too deeply: the tool's own check judges them.
        return arguments


def _coerced(schema: Any, value: Any, root: Mapping[str, Any]) -> Any:
    """Return a value as a part of a tool's schema wants it."""
    schema = resolved(schema, root)
    if not isinstance(schema, dict):
        return value
    # Models and forms write nested values and numbers as JSON text now and then, also where the schema does not ask for it.
    kind = schema.get("type")
    if isinstance(value, str) and isinstance(kind, str) and kind in _FROM_TEXT:
        value = _from_json(value, _FROM_TEXT[kind])
    elif isinstance(value, str) and isinstance(kind, list) and "object" in kind and value.lstrip().startswith("{"):
        # Listed as texts alone, since many clients read no unions: an object comes as its JSON text then.
        value = _from_json(value, (dict,))
    items = resolved(schema.get("items"), root)
    if is_one_of({"type": kind, "items": items}, value):
        value = [value]
    if isinstance(value, list):
        return [_coerced(items, one, root) for one in value]
    if not isinstance(value, dict):
        return value
    known, required = schema.get("properties", {}), schema.get("required", ())
    return {
        name: _coerced(known.get(name), one, root)
        for name, one in _as_one_item(schema, value, root).items()
        if name not in known or name in required or (one is not None and one != "") or _takes(known[name], one, root)
    }


_FROM_TEXT: Final = {"object": (dict,), "array": (list,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def _from_json(text: str, kinds: tuple[type, ...]) -> Any:
    try:
        found = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    # Of another kind it was meant as text: the executor then reports the type error. By exact type: True is an int.
    return found if type(found) in kinds else text


def _takes(part: Any, value: str | None, root: Mapping[str, Any]) -> bool:
    """Tell whether a parameter takes null, or an empty text; where it takes neither, they stand for "not given".

    An empty text can be meant, as a new content or standard input.
    """
    part = resolved(part, root)
    if not isinstance(part, dict):
        return part is True
    kinds = part.get("type", ())
    if kinds and ("null" if value is None else "string") not in ([kinds] if isinstance(kinds, str) else kinds):
        return False
    if "enum" in part:
        return value in part["enum"]
    if forms := [*part.get("anyOf", ()), *part.get("oneOf", ())]:
        return any(_takes(one, value, root) for one in forms)
    if value is None:
        return bool(kinds) or not {"const", "allOf"} & part.keys()
    if part.get("minLength", 0) > 0 or part.get("format") == WORKSPACE_PATH:
        return False
    try:
        return "pattern" not in part or re.search(part["pattern"], "") is not None
    except (re.error, TypeError):
        # A pattern that only the schema's own library reads: the executor decides.
        return True
