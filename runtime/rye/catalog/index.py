"""What can be searched: the text of every verified item, in a full-text index in memory that follows the files' digests."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from rye.call import context
from rye.errors import ItemError, TrustError, UsageError
from rye.executor import texts
from rye.executor.admission import Admission
from rye.fs import names
from rye.items import parse, spaces
from rye.items.schema import NO_SCHEMA
from rye.items.spaces import Candidate, Space
from rye.plain_class import Record
from rye.snapshots.contents import in_sqlite
from rye.trust.verify import Verified

FIELDS = ("title", "name", "description", "category", "tags", "body")
WEIGHTS = {"title": 3.0, "name": 3.0, "description": 2.0, "category": 1.5, "tags": 2.0, "body": 1.0}
SPACES = ("project", "user", "system")
_REMEMBERED = 262_144
_INDICES = 4


class IndexedItem(Record):
    """A verified item as it is searched and listed.

    Attributes:
        type, id, space, path: what it is and where it lies.
        fields: its texts by the names in `FIELDS`, as they may be listed (but for the body, which is only searched).
        metadata: header fields or literals that describe it, as they may be listed.
        digest, signer, owner: of its signature.
        trusted: whether the system's key signed it.
        long_form: all that a tool says of itself, or the whole text of another item; made safe where it is shown.
    """

    type: str
    id: str
    space: str
    path: str
    fields: dict[str, str]
    metadata: dict[str, Any]
    digest: str
    signer: str
    owner: str
    trusted: bool
    long_form: str


_entries: dict[tuple[str, ...], IndexedItem] = {}
_indices: list[SearchIndex] = []
# A forked process begins anew: connections are its parent's.
os.register_at_fork(after_in_child=_indices.clear)


def entries(
    all_spaces: Sequence[Space], types: Sequence[str], only: str | None = None
) -> tuple[list[IndexedItem], Counter[str]]:
    """Return the verified items of spaces, in the order of ties, and how many were left out by verdict.

    Each file is read and verified at each search; what was parsed of the same bytes before is not parsed again.

    Args:
        all_spaces: the spaces of a project: whose keys count, and each item as the first of them serves it.
        types: item types.
        only: the space whose items are wanted, shadowed or not; None for all.
    """
    admission = Admission(all_spaces)
    installed = spaces.installed_bundles() if only is None else ()
    searched_spaces = all_spaces if only is None else [space for space in all_spaces if space.name == only]
    found: list[IndexedItem] = []
    left_out: Counter[str] = Counter()
    for item_type in types:
        for item_id, _, _ in spaces.served_items(item_type, searched_spaces, installed):
            context.check_deadline()
            try:
                found.append(_entry_of(spaces.find(item_type, item_id, searched_spaces), admission))
            except TrustError as err:
                left_out[err.code] += 1
            except ItemError as err:
                # Gone between the listing and the reading: no item, and no fault.
                left_out["malformed"] += err.code != "item_not_found"
            except NO_SCHEMA:
                # Another's schema may be none; the other items are still found.
                left_out["malformed"] += 1
    places = {name: place for place, name in enumerate(SPACES)}
    return sorted(found, key=lambda one: (places.get(one.space, len(places)), one.id, one.type)), +left_out


def _entry_of(candidate: Candidate, admission: Admission) -> IndexedItem:
    """Return a candidate as it is searched and listed, verified now. Errors as `Admission.admit` and reading the item."""
    # Also for what is remembered: trust may have been withdrawn since.
    verified = admission.admit(candidate)
    place = (candidate.space, candidate.item_type, candidate.item_id + candidate.suffix, str(candidate.path))
    known_as = (candidate.digest, *place, admission.state)
    cached = _entries.get(known_as)
    if cached is None:
        if len(_entries) >= _REMEMBERED:
            _entries.clear()
        cached = _entries[known_as] = _described(candidate, verified)
    return cached


def _described(candidate: Candidate, verified: Verified) -> IndexedItem:
    item_type, item_id = candidate.item_type, candidate.item_id
    item = parse.read(verified, item_type, item_id, candidate.suffix)
    metadata: dict[str, Any]
    title = tags = ""
    if isinstance(item, parse.Tool):
        metadata = {"version": item.version, "tool_type": item.tool_type, "executor_id": item.executor_id}
        body = "\n".join([item.docstring, *_parameters(item.schema).values()])
        whole = "\n".join([item.docstring, *_as_offered(item)])
    elif isinstance(item, parse.Knowledge):
        metadata, body, whole = item.header, item.body, item.body
        given = item.header.get("tags")
        title, tags = str(metadata.get("title", "")), " ".join(map(str, given)) if isinstance(given, list) else str(given or "")
    else:
        text = item.text
        metadata = {**text.metadata, "version": text.version, "inputs": [one["name"] for one in text.inputs]}
        about = [f"{one['name']}: {one['description']}" for one in text.inputs]
        body = whole = "\n".join([text.instructions, *about])
    category, _, name = item_id.rpartition("/")
    listed = texts.listable(verified, {"title": title, "description": item.description, "tags": tags}, 300)
    fields = {**listed, "name": name, "category": category, "body": body}
    # Without what is too large to be listed with every hit.
    small = texts.listable(verified, {key: value for key, value in metadata.items() if len(str(value)) <= 2_000}, 300)
    place, key = names.show(str(candidate.path).encode("utf-8", "surrogateescape")), verified.key
    signed = verified.digest, key.public.fingerprint, key.owner, key.role == "system"
    return IndexedItem(item_type, item_id, candidate.space, place, fields, small, *signed, whole)


def _as_offered(tool: parse.Tool) -> list[str]:
    """Return a line for each parameter, those that a model is offered first, with a model's default where that differs."""
    lines = _parameters(tool.schema, tool.agent_defaults)
    others = [line for name, line in lines.items() if name not in tool.offered]
    return [*(lines[name] for name in lines if name in tool.offered), *(["Not listed, but taken:"] if others else []), *others]


def _parameters(schema: dict[str, Any], for_models: dict[str, Any] | None = None) -> dict[str, str]:
    """Return a line for each parameter; its kind, such as "string", is not searched: that is a word of other meanings, too."""
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    own = properties if isinstance(properties, dict) else {}
    lines = {}
    for name, part in own.items():
        if isinstance(part, dict):
            kind = ""
            if for_models is not None:
                here = {**part, "default": for_models[name]} if name in for_models else part
                by_id = f"; by its id {json.dumps(part.get('default'))}" if name in for_models else ""
                kind = f" ({_kind(here)}{by_id}{', required' if name in required else ''})"
            lines[name] = f"{name}{kind}: {part.get('description', '')}"
    return lines


def _kind(part: dict[str, Any]) -> str:
    """Return a parameter's type, values and default in a few words."""
    values, kinds = part.get("enum"), part.get("type", "any")
    kind = "|".join(map(str, values)) if isinstance(values, list) else kinds if isinstance(kinds, str) else " or ".join(kinds)
    return f"{kind}, default {json.dumps(part['default'], default=str)}" if "default" in part else kind


class SearchIndex:
    """Entries in full-text tables: by stems for words, by whole words for phrases and patterns. A row's number is its entry's.

    Attributes:
        entries: by their rows, in the order of ties.
    """

    def __init__(self, entries: Sequence[IndexedItem], seal: str) -> None:
        """Index the entries, which the seal tells from others.

        Raises:
            UsageError: `search_unavailable`.
        """
        self.entries, self.seal = entries, seal
        # One connection for all threads, so each query holds the lock.
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        # As a query may be: a tool's id or last name, another item's id; the first of a name, and tools before others.
        self._named: dict[str, int] = {}
        for at in sorted(range(len(entries)), key=lambda at: entries[at].type != "tool"):
            self._named.setdefault(entries[at].id, at)
            if entries[at].type == "tool":
                self._named.setdefault(entries[at].fields["name"], at)
        columns, marks = ", ".join(FIELDS), ", ".join("?" * len(FIELDS))
        # SQLite refuses lone surrogates.
        texts_of = [[entry.fields[name].encode("utf-8", "replace").decode() for name in FIELDS] for entry in entries]
        rows = [(at, *fields) for at, fields in enumerate(texts_of)]
        try:
            # Two tables, because a stemmed index cannot match a phrase or pattern letter by letter.
            for table, tokens in (("stems", "porter unicode61"), ("words", "unicode61")):
                kind = f"fts5({columns}, tokenize='{tokens} remove_diacritics 2')"
                self._db.execute(f"CREATE VIRTUAL TABLE {table} USING {kind}")
                self._db.executemany(f"INSERT INTO {table}(rowid, {columns}) VALUES (?, {marks})", rows)  # noqa: S608 - ours
            self._db.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)")
        except sqlite3.OperationalError as err:
            why = f"The SQLite of this Python has no full-text search ({err})."
            hint = "Use a Python whose SQLite has FTS5, as those of python.org, Debian and Homebrew have."
            raise UsageError("search_unavailable", why, hint) from None

    def __del__(self) -> None:
        # Here, not where it leaves the cache: another thread may still search it.
        if hasattr(self, "_db"):
            with in_sqlite:
                self._db.close()

    def hits(self, table: str, expression: str, fields: Sequence[str]) -> dict[int, float]:
        """Return the BM25 value of each row that an FTS5 expression matches in some fields, the higher the better."""
        weights = ", ".join(str(WEIGHTS[name]) for name in FIELDS)
        # FTS5's column filter; the expression holds only quoted strings and our operators.
        only = f"{{{' '.join(fields)}}} : ({expression})"
        # The table is one of two names, the weights are numbers.
        sql = f"SELECT rowid, -bm25({table}, {weights}) FROM {table} WHERE {table} MATCH ?"  # noqa: S608
        with in_sqlite:
            return dict(self._db.execute(sql, (only,)))

    def vocabulary(self) -> list[str]:
        """Return every word of the index, folded as it is matched."""
        with in_sqlite:
            return [str(row[0]) for row in self._db.execute("SELECT term FROM vocabulary ORDER BY term")]

    def named(self, name: str) -> IndexedItem | None:
        """Return the item that has a name: its id, or of a tool the last part of it."""
        at = self._named.get(name)
        return None if at is None else self.entries[at]


def index_of(entries: Sequence[IndexedItem]) -> SearchIndex:
    """Return the index of entries; it is reused while they stay the same."""
    known_as = sha256()
    for entry in entries:
        known_as.update(f"{entry.type} {entry.id} {entry.space} {entry.digest} {entry.signer}\n".encode())
    seal = known_as.hexdigest()
    with in_sqlite:
        cached = next((one for one in _indices if one.seal == seal), None) or SearchIndex(entries, seal)
        # The oldest goes.
        _indices[:] = [cached, *(one for one in _indices if one is not cached)][:_INDICES]
        return cached
