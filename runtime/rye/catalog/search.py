"""Search: which verified items fit a query, a scope and filters, the best first.

Nothing of an item that is not verified is searched or shown: how many there are is all that is said of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rye.call import safe_text
from rye.catalog import index, query, rank
from rye.catalog.index import IndexedItem
from rye.errors import UsageError
from rye.items import spaces
from rye.workspace.workspace import Workspace

SORTS = ("score", "name", "date")
MOST = 100
_PREVIEW = 200
_LONG_FORM = 8_000
# Of the best score: what has less has one common word of several.
_LEAST_SHARE = 0.1
_SCOPE = re.compile(r"(?:rye\.search\.)?([a-z]+|\*)(?:[./](.*))?")
_NUMBERS = re.compile(r"\d{1,9}(?:\.\d{1,9})*")


class SearchRequest(NamedTuple):
    """One search; see `rye.api.search`."""

    query: str
    scope: str | None = None
    space: str = "all"
    limit: int = 10
    offset: int = 0
    sort_by: str = "score"
    fields: Sequence[str] | None = None
    filters: Mapping[str, Any] | None = None
    fuzzy: Mapping[str, Any] | None = None
    proximity: Mapping[str, Any] | None = None


def search(
    request: SearchRequest,
    project_path: str,
    reach: Callable[[str, str], bool] | None = None,
    offered: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Return the answer to a search; see `rye.api.search`.

    With `offered`, which tells of a tool's id whether the caller can call it, what fits by an accident of words is left out,
    and tools that cannot be called come last.
    """
    if not isinstance(request.query, str) or not isinstance(request.scope, str | None):
        raise UsageError("bad_call", "query and scope must be text.", 'Call rye.search("edit a line", project_path=".").')
    tree = query.parse(request.query)
    types, is_inside = _scoped(request.scope)
    options = _rank_options(request)
    with Workspace(project_path):
        only = None if request.space == "all" else request.space
        entries, left_out = index.entries(spaces.spaces(project_path), types, only)
    full_text = index.index_of(entries)
    filters = (request.filters or {}).items()

    def is_wanted(entry: IndexedItem) -> bool:
        reached = reach is None or reach(entry.type, entry.id)
        return reached and is_inside(entry.id) and all(_passes(entry, *one) for one in filters)

    ranked = rank.ranked(full_text, tree, options)
    scores = {at: score for at, score in ranked.items() if is_wanted(entries[at])}
    if offered is not None:
        least = max(scores.values(), default=0) * _LEAST_SHARE
        scores = {at: score for at, score in scores.items() if score >= least}
    words = [word.text for word in query.words_of(tree)]
    answer = {
        "results": [_row(scores[at], entries[at], words) for at in _shown(scores, entries, request, offered)],
        "total": len(scores),
        "query": request.query,
        "scope": request.scope,
        "space": request.space,
        "limit": request.limit,
        "offset": request.offset,
        "search_type": "keyword",
    }
    named = full_text.named(request.query.strip())
    if named is not None and (reach is None or reach(named.type, named.id)):
        # All that a tool says of itself (its docstring, and each of its parameters), or the text of another item.
        text = named.long_form if named.trusted else safe_text.plain(named.long_form, _LONG_FORM, lines=True)
        answer["long_form"] = {"type": named.type, "id": named.id, "text": text}
    return {**answer, **({"unverified": dict(sorted(left_out.items()))} if left_out else {})}


def _scoped(scope: str | None) -> tuple[Sequence[str], Callable[[str], bool]]:
    """Return the item types of a scope, and what tells whether an id lies in it: `tool.rye.file-system.*`, `knowledge`."""
    if scope is None:
        return tuple(spaces.TYPES), lambda _: True
    match = _SCOPE.fullmatch(scope.strip())
    if match is None or match[1] not in (*spaces.TYPES, "*"):
        why = f"The scope {scope[:80]!r} does not begin with an item type."
        raise UsageError("bad_scope", why, f"Write {', '.join(spaces.TYPES)}, or such as tool.rye.file-system.*")
    types = tuple(spaces.TYPES) if match[1] == "*" else (match[1],)
    path = (match[2] or "").replace(".", "/").strip("/")
    stem = path.rstrip("*").rstrip("/")
    if "*" in stem:
        raise UsageError("bad_scope", f"The scope {scope[:80]!r} has a * before its end.", "Put * last, or leave it out.")
    # `a.b*` means any id that starts so, `a.b.*` only what is below.
    open_end = path.endswith("*") and not path.endswith("/*") and path != "*"

    def inside(item_id: str) -> bool:
        # A scope writes `.` for `/`, so an id with dots is compared in the same form.
        flat = item_id.replace(".", "/")
        return not stem or flat == stem or flat.startswith(f"{stem}/") or (open_end and flat.startswith(stem))

    return types, inside


def _rank_options(request: SearchRequest) -> rank.RankOptions:
    # None named is no wish: an empty list, too.
    fields = tuple(request.fields or index.FIELDS)
    known = {"content": "body", "preview": "body"}
    named = tuple(known.get(name, name) for name in fields)
    _one_of("fields", [name for name in named if name not in index.FIELDS], index.FIELDS)
    _one_of("sort_by", [request.sort_by] if request.sort_by not in SORTS else [], SORTS)
    _one_of("space", [request.space] if request.space not in ("all", *index.SPACES) else [], ("all", *index.SPACES))
    for name, value, low, high in (("limit", request.limit, 1, MOST), ("offset", request.offset, 0, 1_000_000)):
        if not low <= value <= high:
            raise UsageError("bad_search", f"{name} is {value}.", f"Give {low} to {high:,}.")
    distance = _option(request.fuzzy, 1, 3)
    within = _option(request.proximity, 5, 100)
    return rank.RankOptions(named, distance or 0, within)


def _one_of(name: str, wrong: Sequence[str], known: Sequence[str]) -> None:
    if wrong:
        raise UsageError("bad_search", f"{name}: there is no {wrong[0]!r}.", f"Use {', '.join(known)}.")


def _option(given: Mapping[str, Any] | None, usual: int, most: int) -> int | None:
    """Read `{"enabled": true, "max_distance": n}`; None where it is not enabled."""
    if not given or not given.get("enabled", True):
        return None
    value = given.get("max_distance", usual)
    # True would pass as 1.
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise UsageError("bad_search", f"max_distance is {value!r}.", f"Give a number from 1 to {most}.")
    return value


def _shown(
    scores: dict[int, float], entries: Sequence[IndexedItem], request: SearchRequest, offered: Callable[[str], object] | None
) -> list[int]:
    """Return the rows that are shown, in their order; ties by space, then by id, as the rows stand."""

    def key(at: int) -> Any:
        if request.sort_by == "name":
            return entries[at].fields["name"]
        if request.sort_by == "date":
            return str(entries[at].metadata.get("created_at", ""))
        later = offered is not None and entries[at].type == "tool" and not offered(entries[at].id)
        # Rounded as it is shown: equal figures must not hide an order by rounding noise.
        return later, -round(scores[at], 4)

    # The newest first; ties keep their order then, too.
    found = sorted(sorted(scores), key=key, reverse=request.sort_by == "date")
    return found[request.offset : request.offset + request.limit]


def _passes(entry: IndexedItem, name: str, expected: object) -> bool:
    """Tell whether an entry has what a filter wants.

    A value equal but for letter case; any of a list; `!x` for anything else; `>=1.2`, `>`, `<=`, `<` as versions;
    `date_from` and `date_to` (ISO 8601) on created_at. Of a field with many values, such as tags, one must fit.
    """
    if name in ("date_from", "date_to"):
        date = str(entry.metadata.get("created_at", ""))[:10]
        bound = str(expected)[:10]
        return bool(date) and (date >= bound if name == "date_from" else date <= bound)
    own = {
        "type": entry.type,
        "id": entry.id,
        "space": entry.space,
        "source": entry.space,
        "signer": entry.signer,
        "owner": entry.owner,
        "name": entry.fields["name"],
        "category": entry.fields["category"],
    }
    value = own[name] if name in own else entry.metadata.get(name, entry.fields.get(name))
    values = value if isinstance(value, list) else [value]
    return any(_fits(values, one) for one in (expected if isinstance(expected, list) else [expected]))


def _fits(values: Sequence[object], expected: object) -> bool:
    text = str(expected)
    # Negated after all values were tried: none of a list may be equal.
    if text.startswith("!"):
        return not _fits(values, text[1:])
    for sign in (">=", "<=", ">", "<"):
        if text.startswith(sign):
            return any(_compares(str(value), sign, text.removeprefix(sign)) for value in values)
    return any(value is not None and str(value).casefold() == text.casefold() for value in values)


def _compares(value: str, sign: str, bound: str) -> bool:
    if not (_NUMBERS.fullmatch(value) and _NUMBERS.fullmatch(bound.strip())):
        return False
    one, other = ([int(part) for part in text.strip().split(".")] for text in (value, bound))
    # 1.2 and 1.2.0 are the same version.
    width = max(len(one), len(other))
    one, other = one + [0] * (width - len(one)), other + [0] * (width - len(other))
    return {">=": one >= other, "<=": one <= other, ">": one > other, "<": one < other}[sign]


def _row(score: float, entry: IndexedItem, words: Sequence[str]) -> dict[str, Any]:
    return {
        "type": entry.type,
        "id": entry.id,
        "name": entry.fields["name"],
        "title": entry.fields["title"],
        "description": entry.fields["description"],
        "preview": _preview(entry, words),
        "category": entry.fields["category"],
        "source": entry.space,
        "path": entry.path,
        "score": round(score, 4),
        "metadata": entry.metadata,
        "signed": True,
        "integrity": entry.digest,
        "signer": entry.signer,
        "owner": entry.owner,
    }


def _preview(entry: IndexedItem, words: Sequence[str]) -> str:
    """Return the line of an entry's text that has most of the words, else its first."""
    stems = [word.casefold().strip("*")[:5] for word in words]
    lines = [line for line in (line.strip() for line in entry.fields["body"].split("\n")) if any(map(str.isalnum, line))]
    best = max(lines, key=lambda line: sum(stem in line.casefold() for stem in stems), default="")
    if entry.trusted:
        return best if len(best) <= _PREVIEW else best[: _PREVIEW - 1] + "…"
    return safe_text.plain(best, _PREVIEW)
