"""Understands names that are nearly right: `filePath`, `path` or `cmd` where a tool has `file_path` or `command`.

A name is understood only where it can mean one thing: it is none of the tool's own, the tool takes no further names, and
exactly one of its parameters that were not given is meant. Everything else is left to the executor, which refuses it and says
what was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

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
        "find old oldstring oldstr oldtext",
        "replace new newstring newstr newtext replacement",
        "newcontent newtext newlines content text replacement newstring",
        "lineid id line",
        "ignorecase caseinsensitive icase",
        "literal fixedstrings plain",
        "context contextlines surroundinglines",
        "background runinbackground isbackground",
        "depth maxdepth levels",
        "dryrun preview",
        "timeout timeoutseconds timeouts",
        "changes edits",
        "jobid id outputid shellid bashid",
        "data input",
        "sort sortby order",
    )
)
"""Names that mean the same, each folded; a group applies where a tool has exactly one of them."""


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


def with_own_names(schema: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments under the names that a tool has for them, in the order given.

    Args:
        schema: the tool's own, an object schema without references.
        arguments: as a model gave them.
    """
    known = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or not isinstance(known, dict) or set(arguments) <= set(known):
        return _nested(known, arguments)
    used = set(arguments) & set(known)
    renamed: dict[str, str] = {}
    for name in arguments:
        if name not in known and (meant := _meant(name, set(known) - used)) is not None:
            renamed[name] = meant
            used.add(meant)
    return _nested(known, {renamed.get(name, name): value for name, value in arguments.items()})


def _meant(name: str, free: set[str]) -> str | None:
    """Return the one parameter, of those not given, that a name means."""
    plain_name = folded(name)
    if same := [one for one in free if folded(one) == plain_name]:
        return same[0] if len(same) == 1 else None
    found = {one for group in _MEANINGS if plain_name in group for one in free if folded(one) in group}
    return found.pop() if len(found) == 1 else None


def _nested(known: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Do the same in the objects of a list, such as the changes of an edit."""
    out = dict(arguments)
    for name, value in arguments.items():
        items = known[name].get("items") if isinstance(known.get(name), dict) else None
        if isinstance(items, dict) and items.get("properties") and isinstance(value, list):
            out[name] = [with_own_names(items, one) if isinstance(one, dict) else one for one in value]
    return out
