"""What an agent runtime can discover: the tools of a project, with name, schemas, effects, digest, signer and verdict.

ToolListing runs nothing, and shows nothing of what is not verified. What a tool declares for it is said in `rye.agents.offers`;
what each interface accepts, in `rye.agents.provider_schemas`.

Function names are narrower than ids everywhere: OpenAI takes `[a-zA-Z0-9_-]{1,64}`, Anthropic the same up to 128, Gemini up
to 63 with a letter or `_` first, MCP `[A-Za-z0-9_.-]{1,128}`. One name per tool fits them all: a model's habits carry over.

A tool of the system's (`rye/file-system/read`) goes by its last part, by which the tools' own texts call each other, if no
other of the system's does. Any other tool's name is its whole id with `/` as `__`: `my/tools/count` is `my__tools__count`; one
without `/` gets a `_` in front, so that no foreign tool can take a short name. The name of an id that is too long for this, or
has signs that could be confused, ends in `--x` and 80 bits of its digest. A name leads back to its id by the listing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from rye.agents.offers import Offer, offer
from rye.call import profile
from rye.call.safe_text import nearest
from rye.errors import ItemError, RyeError, UsageError
from rye.executor.admission import Admission
from rye.executor.chain import Link
from rye.items import spaces
from rye.items.schema import NO_SCHEMA
from rye.plain_class import as_dict
from rye.sandbox import sandbox
from rye.workspace.workspace import find_root

LONGEST: Final = 63
"""Characters in a name: the least that any of the interfaces documents."""

_SHORT = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
# What `__` for `/` confuses with no other id.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_/-][A-Za-z0-9]+)*")
_DIGEST = 20
_SYSTEM = "rye/"


def encode(item_id: str) -> str:
    """Return the long name of an id; no other id has the same."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", item_id.replace("/", "__"))
    if "/" not in item_id or not name[0].isalpha():
        name = f"_{name}"
    if _PLAIN.fullmatch(item_id) and len(name) <= LONGEST:
        return name
    digest = sha256(item_id.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 3]}--x{digest}"


def names_of(item_ids: Iterable[str]) -> dict[str, str]:
    """Return name -> id for all tools that are served; each id has one name, and each name one id.

    Args:
        item_ids: every tool's, not a choice of them: what a tool is called does not depend on what else is asked for.
    """
    ids = sorted(set(item_ids))
    last = [item_id.rpartition("/")[2] for item_id in ids if item_id.startswith(_SYSTEM)]
    out: dict[str, str] = {}
    for item_id in ids:
        short = item_id.rpartition("/")[2]
        # Short names are for the system's tools alone, so that a project's tool cannot take the name of one.
        fits = item_id.startswith(_SYSTEM) and last.count(short) == 1 and _SHORT.fullmatch(short) and len(short) <= LONGEST
        out[short if fits else encode(item_id)] = item_id
    return out


class Category(NamedTuple):
    """A folder of tools: its id, and the last names of those in it, sorted; those below it do not count."""

    category: str
    names: list[str]


class LeftOut(NamedTuple):
    """A tool that is not offered, and why."""

    item_id: str
    reason: str


class ToolListing(NamedTuple):
    """What agents may be offered, sorted by id, and what is left out of it."""

    offers: list[Offer]
    left_out: list[LeftOut]


def tools(
    category: str | Sequence[str] | None = None, *, project_path: str | Path | None = None, format: str | None = None
) -> list[dict[str, Any]]:
    """Return the tools that are served in a project, sorted by id.

    Args:
        category: only ids in this category or below it, such as `rye/file-system`; a list of some.
        project_path: the project root; None: that of the current folder, as for `rye.execute`.
        format: `openai`, `anthropic`, `gemini` or `mcp`: only tools that can run, each exactly as that interface takes it.
            Their names lead back to ids through the `name` of the rows without a format, or `rye.toolset`.

    Returns:
        Without a format, for a valid tool `{"item_id", "verdict": "valid", "space", "name", "title", "category", "version",
        "tool_type", "description", "docstring", "parameters", "output", "effects", "permissions", "digest", "signer",
        "owner"}`, and `"hint"` if it cannot run; for any other only
        `{"item_id", "verdict", "space", "hint"}`: nothing of an unverified file is shown.

    Raises:
        UsageError: `unknown_format`; `unknown_category`, with the nearest names.
    """
    if format is None:
        return [_row(found) for found in _every(category, project_path, known=True)]
    from rye.agents.provider_schemas import render_all

    return render_all(listing(category, project_path=project_path, known=True).offers, format)[0]


def categories(*, project_path: str | Path | None = None) -> list[Category]:
    """Return the categories of the tools that are served in a project, sorted; no file is read for it."""
    found: dict[str, list[str]] = {}
    for item_id in _ids(project_path):
        above, _, name = item_id.rpartition("/")
        found.setdefault(above, []).append(name)
    return [Category(one, names) for one, names in sorted(found.items())]


def _ids(project_path: str | Path | None) -> list[str]:
    root = find_root() if project_path is None else project_path
    return [item_id for item_id, _, _ in spaces.served_items("tool", spaces.spaces(root))]


def refuse_misspelt(categories: Iterable[str], *, project_path: str | Path | None = None) -> None:
    """Refuse a category that looks misspelt: no tool has it, but some have others of its namespace, or one much like it.

    Another one may have its first tool later, or in another project of the same server.

    Raises:
        UsageError: `unknown_category`, with the nearest names.
    """
    ids = _ids(project_path)
    namespaces = {one.partition("/")[0] for one in ids}
    known = {one[:at] for one in ids for at, char in enumerate(one) if char == "/"}
    for category in (one.strip("/") for one in categories):
        if category.partition("/")[0] in namespaces or nearest(category, known, cutoff=_MUCH_ALIKE):
            _check_categories([f"{category}/"], ids)


def _check_categories(prefixes: Iterable[str], ids: Sequence[str]) -> None:
    """Refuse a category that no tool has, not even below it."""
    for prefix in prefixes:
        if any(one.startswith(prefix) for one in ids):
            continue
        # A category, each folder above it, and the last part alone, as one may remember it.
        known = {one[:at] for one in ids for at, char in enumerate(one) if char == "/"}
        name = prefix.rstrip("/")
        alike = [one for one in sorted(known) if one.rpartition("/")[2] == name or one.startswith(name)]
        close = alike[:3] or nearest(name, sorted(known))
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Categories: {', '.join(sorted(known))}."
        raise UsageError("unknown_category", f"There is no category {name!r}.", hint)


def listing(
    category: str | Iterable[str] | None = None, *, project_path: str | Path | None = None, known: bool = False
) -> ToolListing:
    """Return the tools that agents may be offered: valid, and run by a runtime that is here; and the others with the reason.

    With `known` a category that no tool has is an error (`unknown_category`); else it has no tools yet, as for a server.
    """
    offers: list[Offer] = []
    left_out: list[LeftOut] = []
    for found in _every(category, project_path, known=known):
        if found.offer is not None and not found.why_not:
            offers.append(found.offer)
        # What runs tools is none itself, so that it is not offered is no news.
        elif found.offer is None or found.offer.tool_type not in _NO_TOOLS:
            left_out.append(LeftOut(found.item_id, found.why_not))
    return ToolListing(offers, left_out)


_MUCH_ALIKE = 0.85
_NO_TOOLS = ("runtime", "primitive")


class _Found(NamedTuple):
    """A tool that is served: its offer if it is valid, and why it cannot run; else `facts` has its verdict."""

    item_id: str
    facts: dict[str, Any]
    why_not: str
    offer: Offer | None = None


def _every(category: str | Iterable[str] | None, project_path: str | Path | None, *, known: bool) -> list[_Found]:
    given = [category] if isinstance(category, str) else list(category or ())
    if not all(isinstance(one, str) for one in given):
        raise UsageError("bad_call", "A category is text, or a list of texts.", 'Give one such as "rye/file-system".')
    prefixes = None if category is None else tuple(one.strip("/") + "/" for one in given)
    root = find_root() if project_path is None else project_path
    search_path = spaces.spaces(root)
    admission = Admission(search_path)
    # All ids, before the choice: a name must not depend on the category asked for.
    ids = [item_id for item_id, _, _ in spaces.served_items("tool", search_path)]
    if known:
        _check_categories(prefixes or (), ids)
    name_of = {item_id: name for name, item_id in names_of(ids).items()}
    ids_chosen = [item_id for item_id in ids if prefixes is None or item_id.startswith(prefixes)]
    # Asked once, and only where another signer's tool may be listed.
    confined = cache(lambda: sandbox.confines(os.fspath(root)))
    # What is behind a tool is the same for all that name it from the same space.
    whys: dict[tuple[str, ...], str] = {}
    return [_find(item_id, name_of[item_id], admission, confined, whys) for item_id in ids_chosen]


def _find(
    item_id: str, name: str, admission: Admission, confined: Callable[[], bool], whys: dict[tuple[str, ...], str]
) -> _Found:
    facts: dict[str, Any] = {}
    try:
        candidate = spaces.find("tool", item_id, admission.search_path)
        facts["space"] = candidate.space
        tool = admission.read(candidate)
        is_listed = tool.verified.key.role == "system" or confined()
        offered = offer(tool, name, candidate.space, confined=is_listed)
    except RyeError as err:
        verdict = "malformed" if isinstance(err, ItemError) else err.code
        return _Found(item_id, {**facts, "verdict": verdict, "hint": err.hint}, err.hint or verdict)
    # Another's schema may be none, or nested deeper than Python's stack; the other tools are still listed.
    except NO_SCHEMA:
        hint = "Its schema is none, or nested too deeply."
        return _Found(item_id, {**facts, "verdict": "malformed", "hint": hint}, hint)
    facts |= {"verdict": "valid", "permissions": list(tool.permissions)}
    return _Found(item_id, facts, _why_not(Link(candidate, tool), admission, whys), offered)


def _why_not(first: Link, admission: Admission, known: dict[tuple[str, ...], str]) -> str:
    """Return why a valid tool cannot run; nothing where its chain is whole. `known`: of the tools asked about before."""
    tool = first.tool
    if tool.id.startswith("rye/swe/"):
        try:
            profile.enabled()
        except RyeError as err:
            return str(err)
    behind = None if tool.tool_type in _NO_TOOLS else tool.executor_id
    key = (first.candidate.space, first.candidate.suffix, tool.tool_type, behind or tool.id)
    if key not in known:
        try:
            admission.chain(first)
            known[key] = ""
        except RyeError as err:
            known[key] = str(err)
    return known[key]


# Of an offer these are said elsewhere in a row, or not.
_NOT_IN_ROW: Final = ("summary", "description", "space", "owner", "listed_schema")


def _row(found: _Found) -> dict[str, Any]:
    one = found.offer
    if one is None:
        return {"item_id": found.item_id, **found.facts}
    hint = {"hint": found.why_not} if found.why_not else {}
    shown = {name: value for name, value in as_dict(one).items() if name not in _NOT_IN_ROW}
    return {**hint, "item_id": one.item_id, **found.facts, **shown, "description": one.summary, "owner": one.owner or None}
