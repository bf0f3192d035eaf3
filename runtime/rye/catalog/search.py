"""Search: which verified items fit a query, a scope and filters, the best first.

Nothing of an item that is not verified is searched or shown: how many there are is all that is said of them.
"""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rye.call import safe_text
from rye.catalog import index, query, rank, stored_index
from rye.catalog.index import Entry
from rye.errors import UsageError
from rye.executor.admission import Admission
from rye.items import spaces
from rye.workspace.workspace import Workspace

SORTS = ("score", "name", "date")
MOST = 100
_PREVIEW = 200
_LONG_FORM = 8_000
# More than rounding to four places can change of a score.
_ROUNDED = 2e-4
_SCOPE = re.compile(r"(?:rye\.search\.)?([a-z]+|\*)(?:[./](.*))?")
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


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


def search(request: SearchRequest, project_path: str, reach: Callable[[str, str], bool] | None = None) -> dict[str, Any]:
    """Return the answer to a search; see `rye.api.search`."""
    if not isinstance(request.query, str) or not isinstance(request.scope, str | None):
        raise UsageError("bad_call", "query and scope must be text.", 'Call rye.search("edit a line", project_path=".").')
    query.parse(request.query)
    types, _ = _scoped(request.scope)
    _rank_options(request)
    for _ in range(2):
        with Workspace(project_path):
            full_text, left_out = _index_to_search(spaces.spaces(project_path), types, request.space, project_path, reach)
        try:
            return _answer(request, full_text, left_out, reach)
        except sqlite3.DatabaseError:
            if not isinstance(full_text, stored_index.StoredIndex):
                raise
            # Damaged: it is made anew.
            full_text.drop()
    return _answer(request, *_in_memory(spaces.spaces(project_path), types, request.space, reach), reach)


def _answer(
    request: SearchRequest,
    full_text: index.FullTextIndex,
    left_out: Mapping[str, int],
    reach: Callable[[str, str], bool] | None,
) -> dict[str, Any]:
    tree = query.parse(request.query)
    _, prefix = _scoped(request.scope)
    scores = rank.ranked(full_text, tree, _rank_options(request))
    if not isinstance(full_text, index.Index) and reach is not None:
        scores = {at: score for at, score in scores.items() if reach(*full_text.id_of(at))}
    if request.scope is not None:
        scores = {at: score for at, score in scores.items() if prefix(full_text.id_of(at)[1])}
    filters = (request.filters or {}).items()
    if filters:
        scores = {at: score for at, score in scores.items() if all(_passes(full_text.entry(at), *one) for one in filters)}
    words = [word.text for word in query.words_of(tree)]
    window = [(score, full_text.current_entry(at)) for score, at in _first(scores, full_text, request)]
    # What an index on the disk says of an item is not believed: it is shown as it is now, or not at all.
    results = [(score, entry) for score, entry in window if entry is not None and all(_passes(entry, *one) for one in filters)]
    answer = {
        "results": [_row(score, entry, words) for score, entry in results],
        "total": len(scores) - len(window) + len(results),
        "query": request.query,
        "scope": request.scope,
        "space": request.space,
        "limit": request.limit,
        "offset": request.offset,
        "search_type": "keyword",
    }
    at = full_text.row_of_tool(request.query.strip())
    named = full_text.current_entry(at) if at is not None and (reach is None or reach(*full_text.id_of(at))) else None
    if named is not None:
        answer["long_form"] = {"id": named.id, "text": _long_form(named)}
    return {**answer, **({"unverified": dict(sorted(left_out.items()))} if left_out else {})}


def _index_to_search(
    all_spaces: Sequence[spaces.Space],
    types: Sequence[str],
    space: str,
    project_path: str,
    reach: Callable[[str, str], bool] | None,
) -> tuple[index.FullTextIndex, Mapping[str, int]]:
    """Return the index to search, and how many items are left out by verdict: on the disk where they are many."""
    only = None if space == "all" else space
    searched_spaces = all_spaces if only is None else [one for one in all_spaces if one.name == only]
    installed = spaces.installed_bundles() if only is None else ()
    stored = stored_index.opened(searched_spaces, types, installed, Admission(all_spaces), project_path)
    if stored is not None:
        return stored, stored.left_out
    return _in_memory(all_spaces, types, space, reach)


def _in_memory(
    all_spaces: Sequence[spaces.Space], types: Sequence[str], space: str, reach: Callable[[str, str], bool] | None
) -> tuple[index.FullTextIndex, Mapping[str, int]]:
    found, left_out = index.entries(all_spaces, types, None if space == "all" else space)
    return index.index_of(_reached(found, reach)), left_out


# The entries that were asked for last, who asked, and those of them that are reached.
_last: tuple[object, object, list[Entry]] = (None, None, [])


def _reached(found: list[Entry], reach: Callable[[str, str], bool] | None) -> list[Entry]:
    """Return the entries that a caller reaches; the same list for as long as nothing changes."""
    global _last  # noqa: PLW0603 - one server asks the same again and again
    if reach is None:
        return found
    last = _last
    if last[0] is not found or last[1] != reach:
        last = _last = found, reach, [entry for entry in found if reach(entry.type, entry.id)]
    return last[2]


def _long_form(entry: Entry) -> str:
    """Return all that a tool says of itself: its docstring, and each of its parameters."""
    text = entry.long_form
    return text if entry.trusted else safe_text.plain(text, _LONG_FORM, lines=True)


def _scoped(scope: str | None) -> tuple[Sequence[str], Callable[[str], bool]]:
    """Return the item types of a scope, and what tells whether an id lies in it: `tool.rye.file-system.*`, `knowledge`."""
    if scope is None:
        return tuple(spaces.TYPES), lambda _: True
    match = _SCOPE.fullmatch(scope.strip())
    if match is None or match[1] not in (*spaces.TYPES, "*"):
        raise UsageError(
            "bad_scope",
            f"The scope {scope[:80]!r} does not begin with an item type.",
            f"Write {', '.join(spaces.TYPES)}, or such as tool.rye.file-system.*",
        )
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


def _first(scores: dict[int, float], full_text: index.FullTextIndex, request: SearchRequest) -> list[tuple[float, int]]:
    """Return the rows that are shown with their scores, in their order; ties in that of the index."""
    name, order, last = request.sort_by, full_text.order, request.offset + request.limit
    keyed: list[tuple[Any, int, int]]
    if name == "name":
        keyed = [(full_text.id_of(at)[1].rpartition("/")[2], order[at], at) for at in scores]
    elif name == "date":
        keyed = [(_newest_first(str(full_text.entry(at).metadata.get("created_at", ""))), order[at], at) for at in scores]
    else:
        # Rounded as it is shown: equal figures must not hide an order by rounding noise.
        keyed = [(-round(score, 4), order[at], at) for at, score in _highest(scores, last)]
    return [(scores[at], at) for _, _, at in heapq.nsmallest(last, keyed)[request.offset :]]


def _highest(scores: dict[int, float], most: int) -> Iterable[tuple[int, float]]:
    """Return at least so many of the highest scores, and all that are rounded to the same as the last of them."""
    if len(scores) <= 4 * most:
        return scores.items()
    least = heapq.nlargest(most, scores.values())[-1] - _ROUNDED
    return [(at, score) for at, score in scores.items() if score >= least]


def _newest_first(date: str) -> tuple[int, list[int]]:
    # Each character is negated, since a text itself has no opposite order.
    return (0 if date else 1), [-ord(char) for char in date]


def _passes(entry: Entry, name: str, expected: object) -> bool:
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
    if isinstance(expected, list):
        return any(_fits(values, one) for one in expected)
    return _fits(values, expected)


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


def _row(score: float, entry: Entry, words: Sequence[str]) -> dict[str, Any]:
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


def _preview(entry: Entry, words: Sequence[str]) -> str:
    """Return the line of an entry's text that has most of the words, else its first."""
    stems = [word.casefold().strip("*")[:5] for word in words]
    lines = [line for line in (line.strip() for line in entry.fields["body"].split("\n")) if any(map(str.isalnum, line))]
    best = max(lines, key=lambda line: sum(stem in line.casefold() for stem in stems), default="")
    if entry.trusted:
        return best if len(best) <= _PREVIEW else best[: _PREVIEW - 1] + "…"
    return safe_text.plain(best, _PREVIEW)
