"""The index of a large catalogue on the disk: another process need not read a hundred thousand items before its first search.

It lies in the project's state in the user's space, one file for each kind of question and each state of trust. A file is never
changed: who finds that items changed copies it, mends the copy, and puts that in its place. So a crash leaves the old one
or the new one, and readers are never disturbed.

It only says where to look. What a search shows is read from the item, verified and described at that moment, so an index that
was forged or damaged can hide an item or rank it wrongly, but never show a word of its own, nor an item that does not verify.
Only a regular file of the user's own with mode 0600 is opened.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import shutil
import sqlite3
import stat
import time
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from rye._version import __version__
from rye.call import context
from rye.catalog.index import FIELDS, Entry, FullTextIndex, entry_of, full_text_tables, in_tie_order, indexable
from rye.config import user_dirs
from rye.errors import ItemError, TrustError
from rye.executor.admission import Admission
from rye.fs import atomic
from rye.items import folder_scan, spaces
from rye.items.spaces import Space

LEAST: Final = 2_000
"""Catalogues of fewer files are indexed in memory, which takes less than to look for an index on the disk."""

_FORM: Final = "1"
_KEPT: Final = 6
_MOST_BYTES: Final = 2 << 30
_MOST_AGE: Final = 30 * 86_400.0
# Longer than a file's times may lag behind the clock, see `folder_scan`.
_SETTLES: Final = 0.06
_BATCH: Final = 500
_TELLS_EVERY: Final = 2.0


class _Item(NamedTuple):
    """An item that is served: what it is, where it lies, and the stamp of its file."""

    item_type: str
    item_id: str
    space: str
    path: str
    stamp: str


class _Scope(NamedTuple):
    """One kind of question: which spaces and types, and what decides about them: keys, and by space a bundle's manifest."""

    searched_spaces: Sequence[Space]
    types: Sequence[str]
    installed: Sequence[Space]
    admission: Admission
    manifests: dict[str, str]

    @property
    def all_spaces(self) -> tuple[Space, ...]:
        """All spaces, in the order in which they serve."""
        return (*self.searched_spaces, *self.installed)


def opened(
    searched_spaces: Sequence[Space], types: Sequence[str], installed: Sequence[Space], admission: Admission, project_path: str
) -> StoredIndex | None:
    """Return the index of the items of spaces as they are now; None where it belongs in memory, or cannot be stored.

    Args:
        searched_spaces: the spaces that are searched.
        types: item types.
        installed: the installed bundles, where these are searched too.
        admission: whose keys count.
        project_path: the project, in whose state the index lies.
    """
    scanned = _settled((*searched_spaces, *installed), types)
    if scanned is None or sum(len(one.files) for one in scanned) < LEAST:
        return None
    try:
        bundled = [space.name for space in (*searched_spaces, *installed) if space.name not in ("project", "user")]
        _, *manifests = admission.judged_by((*searched_spaces, *installed))
        scope = _Scope(searched_spaces, types, installed, admission, dict(zip(bundled, manifests, strict=True)))
        question = _question(scope)
        folder = f"{user_dirs.state_dir(project_path)}/catalog"
        path = f"{folder}/{question}.db"
        cached = _open.get(path)
        if cached is not None and cached.is_of(scanned, scope.manifests):
            cached.ask_by(scope)
            return cached
        seal = _seal(scanned, scope.manifests)
        found = cached if cached is not None and cached.seal == seal else _load(path, scope, seal)
        if found is None:
            found = _made(folder, path, scope, scanned, seal)
    except (OSError, sqlite3.Error, TrustError):
        return None
    found.state = scanned
    found.ask_by(scope)
    while len(_open) >= _KEPT:
        _open.pop(next(iter(_open)), None)
    _open[path] = found
    return found


_open: dict[str, StoredIndex] = {}
# In a forked process another thread may have held an index's lock.
os.register_at_fork(after_in_child=_open.clear)


def _settled(all_spaces: Sequence[Space], types: Sequence[str]) -> tuple[folder_scan.Scan, ...] | None:
    """Return what stands in the folders of spaces; None where it has links, whose targets have times of their own."""
    scanned = folder_scan.scans(all_spaces, types)
    if scanned is None:
        # A file that was written just now could be written again at the same time by the clock.
        time.sleep(_SETTLES)
        scanned = folder_scan.scans(all_spaces, types)
    return scanned


def _question(scope: _Scope) -> str:
    """Return the name of the file for a kind of question, under one state of trust."""
    places = [(space.name, space.folder, sorted(space.shadows)) for space in scope.all_spaces]
    return sha256(json.dumps([_FORM, __version__, places, list(scope.types), scope.admission.state]).encode()).hexdigest()[:32]


def _seal(scanned: Sequence[folder_scan.Scan], manifests: dict[str, str]) -> str:
    """Return what a state of the files is known by."""
    seal = sha256(str(manifests).encode())
    for one in scanned:
        seal.update(str(one.files).encode("utf-8", "surrogateescape"))
    return seal.hexdigest()


class StoredIndex(FullTextIndex):
    """An index in a file. Any thread may use it."""

    def __init__(self, db: sqlite3.Connection, scope: _Scope, path: str) -> None:
        super().__init__(db)
        self._scope, self._path = scope, path
        kept: dict[str, bytes] = dict(db.execute("SELECT name, value FROM kept"))
        self.seal: str = kept["seal"].decode()
        self.state: tuple[folder_scan.Scan, ...] = ()
        self.left_out: Counter[str] = Counter(json.loads(kept["left_out"]))
        # By row; a row that is free has an empty id.
        self._ids: list[str] = kept["ids"].decode().split("\n")
        self._types: bytes = kept["types"]
        order = array("l")
        order.frombytes(kept["order"])
        self.order: Sequence[int] = order
        self.rows = [at for at, item_id in enumerate(self._ids) if item_id]
        self._there = set(self.rows)
        self.count = len(self.rows)
        if len(order) != len(self._ids) or len(self._types) != len(self._ids):
            raise ValueError("not as it was written")

    def hits(self, table: str, expression: str, fields: Sequence[str]) -> dict[int, float]:
        """Return the rows that match, see `FullTextIndex.hits`; only such as there are."""
        found = super().hits(table, expression, fields)
        return found if found.keys() <= self._there else {row: found[row] for row in found.keys() & self._there}

    def drop(self) -> None:
        """Remove the file, which is damaged."""
        _open.pop(self._path, None)
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def is_of(self, scanned: tuple[folder_scan.Scan, ...], manifests: dict[str, str]) -> bool:
        """Tell whether it was last found to be that of the very scans."""
        same = len(self.state) == len(scanned) and all(map(operator.is_, self.state, scanned))
        return same and self._scope.manifests == manifests

    def ask_by(self, scope: _Scope) -> None:
        """Take by which decisions an item is judged when it is shown: those of the call that asks."""
        self._scope = scope

    def id_of(self, at: int) -> tuple[str, str]:
        """Return the type and the id of a row."""
        return list(spaces.TYPES)[self._types[at]], self._ids[at]

    def entry(self, at: int) -> Entry:
        """Return an entry as it was when it was indexed, without its body: to choose and to order by, never to be shown."""
        with self._lock:
            row = self._db.execute("SELECT about FROM docs WHERE row = ?", (at,)).fetchone()
        try:
            about = json.loads(row[0])
            return Entry(*self.id_of(at), **{**about, "fields": {**about["fields"], "body": ""}})
        except (ValueError, TypeError, KeyError):
            raise sqlite3.DatabaseError("not as it was written") from None

    def current_entry(self, at: int) -> Entry | None:
        """Return an entry as its item says now; None where it is gone, or does not verify any more."""
        try:
            return entry_of(spaces.find(*self.id_of(at), self._scope.searched_spaces), self._scope.admission)
        except (TrustError, ItemError):
            return None

    def row_of_tool(self, name: str) -> int | None:
        """Return the row of a tool by its id or the last part of it."""
        ends = f"/{name}"
        tool = list(spaces.TYPES).index("tool")
        fits = (at for at in self.rows if self._types[at] == tool and (self._ids[at] == name or self._ids[at].endswith(ends)))
        return next(fits, None)


def _load(path: str, scope: _Scope, seal: str | None) -> StoredIndex | None:
    """Return the stored index, if it is there, the user's own, and (with a seal) of this state of the files."""
    try:
        info = os.stat(path, follow_symlinks=False)
        if not (stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and stat.S_IMODE(info.st_mode) == 0o600):
            return None
        # Immutable: no lock is taken, and nothing is written beside it.
        db = sqlite3.connect(f"file:{_quoted(path)}?immutable=1&mode=ro", uri=True, check_same_thread=False)
    except (OSError, sqlite3.Error):
        return None
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA cell_size_check = ON")
        # Read, not mapped: a file that is cut off while it is mapped ends the process.
        db.execute("PRAGMA cache_size = -8192")
        found = StoredIndex(db, scope, path)
        if seal is None or found.seal == seal:
            return found
    except (sqlite3.Error, KeyError, ValueError, TypeError, AttributeError, IndexError):
        # Damaged: it is made anew.
        pass
    return None


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _made(folder: str, path: str, scope: _Scope, scanned: tuple[folder_scan.Scan, ...], seal: str) -> StoredIndex:
    """Make the index, from the last one where there is one, and store it."""
    with atomic.locked(f"{folder}/.lock"):
        # Another process may have made it meanwhile.
        found = _load(path, scope, seal)
        if found is not None:
            return found
        aside = f"{folder}/.{os.path.basename(path)}.{os.urandom(4).hex()}"
        try:
            _write(aside, path, scope, scanned, seal)
            os.replace(aside, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside)
        atomic.prune(folder, _KEPT, _MOST_BYTES, _MOST_AGE)
    found = _load(path, scope, seal)
    if found is None:
        raise OSError(f"{path} cannot be read")
    return found


def _write(aside: str, path: str, scope: _Scope, scanned: tuple[folder_scan.Scan, ...], seal: str) -> None:
    """Write the index of a state of the files into a new file."""
    # With the mode from the start: what is in it is the user's.
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    items = {one.path: one for one in _served(scope, scanned)}
    cached = _copied(path, aside, scope)
    try:
        with contextlib.closing(_Writing(aside, is_new=not cached)) as made:
            gone = [old for path, old in cached.items() if path not in items or old.item != items[path]]
            made.remove(gone)
            stay = cached.keys() - {old.item.path for old in gone}
            made.add([one for place, one in items.items() if place not in stay], scope)
            made.finish(seal)
    except sqlite3.Error:
        if not cached:
            raise
        # What was copied is damaged.
        os.unlink(path)
        os.truncate(aside, 0)
        with contextlib.closing(_Writing(aside, is_new=True)) as made:
            made.add(list(items.values()), scope)
            made.finish(seal)
    fd = os.open(aside, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class _Known(NamedTuple):
    """An item as it was indexed; its row is None where it was refused."""

    item: _Item
    row: int | None


def _copied(path: str, aside: str, scope: _Scope) -> dict[str, _Known]:
    """Copy the last index, and return its items by path; nothing where there is none that can be used."""
    if _load(path, scope, None) is None:
        return {}
    shutil.copyfile(path, aside)
    try:
        with contextlib.closing(sqlite3.connect(aside)) as db:
            rows = db.execute("SELECT type, id, space, path, stamp, row FROM files").fetchall()
        return {one[3]: _Known(_Item(*one[:5]), one[5]) for one in rows}
    except sqlite3.Error:
        os.truncate(aside, 0)
        return {}


def _served(scope: _Scope, scanned: Sequence[folder_scan.Scan]) -> Iterator[_Item]:
    """Yield the items that are served, as `spaces.served_items` has them, from what a scan saw."""
    all_spaces = scope.all_spaces
    for at, item_type in enumerate(scope.types):
        found: set[str] = set()
        for place, space in enumerate(all_spaces):
            files = scanned[place * len(scope.types) + at].files
            for item_id, path in spaces.items_of(space, item_type, files):
                if item_id not in found and spaces.serves(space, item_id):
                    found.add(item_id)
                    # A bundle's item is judged by the bundle's manifest, too.
                    yield _Item(item_type, item_id, space.name, path, f"{files[path]}{scope.manifests.get(space.name, '')}")


class _Writing:
    """An index that is being written."""

    def __init__(self, path: str, *, is_new: bool) -> None:
        self._is_new = is_new
        self._db = db = sqlite3.connect(path, isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -65536"):
            db.execute(f"PRAGMA {setting}")
        db.execute("BEGIN")
        self._columns = ", ".join(FIELDS)
        if is_new:
            db.execute(f"CREATE TABLE docs(row INTEGER PRIMARY KEY, about TEXT, {self._columns})")
            db.execute("CREATE TABLE files(path TEXT PRIMARY KEY, type TEXT, id TEXT, space TEXT, stamp TEXT, row, code TEXT)")
            db.execute("CREATE TABLE kept(name TEXT PRIMARY KEY, value BLOB)")
            full_text_tables(db, "content='docs', content_rowid='row'")

    def close(self) -> None:
        self._db.close()

    def remove(self, gone: Iterable[_Known]) -> None:
        """Remove items."""
        for one in gone:
            self._db.execute("DELETE FROM files WHERE path = ?", (one.item.path,))
            if one.row is None:
                continue
            # A full-text table over another one wants the old texts to remove them.
            for table in ("stems", "words"):
                self._db.execute(
                    f"INSERT INTO {table}({table}, rowid, {self._columns}) "  # noqa: S608 - ours
                    f"SELECT 'delete', row, {self._columns} FROM docs WHERE row = ?",
                    (one.row,),
                )
            self._db.execute("DELETE FROM docs WHERE row = ?", (one.row,))

    def add(self, items: Sequence[_Item], scope: _Scope) -> None:
        """Read, verify and index items; of one that is refused only the verdict is kept."""
        row = self._db.execute("SELECT COALESCE(MAX(row), -1) + 1 FROM docs").fetchone()[0]
        docs: list[tuple[Any, ...]] = []
        files: list[tuple[Any, ...]] = []
        last_told = time.monotonic()
        for at, one in enumerate(items):
            code, entry = _judged(one, scope)
            if entry is not None:
                fields = [indexable(entry.fields[name]) for name in FIELDS]
                docs.append((row, json.dumps(_about(entry)), *fields))
            if entry is not None or code:
                files.append((*_Item(*map(indexable, one)), row if entry is not None else None, code))
            row += entry is not None
            if len(files) >= _BATCH or at == len(items) - 1:
                self._put(docs, files)
                docs, files = [], []
                context.check_deadline()
                if time.monotonic() - last_told > _TELLS_EVERY:
                    last_told = time.monotonic()
                    context.report(f"{at + 1:,} of {len(items):,} items read for the search\n")

    def _put(self, docs: list[tuple[Any, ...]], files: list[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" * len(FIELDS))
        self._db.executemany(f"INSERT INTO docs(row, about, {self._columns}) VALUES (?, ?, {marks})", docs)  # noqa: S608 - ours
        for table in ("stems", "words"):
            rows = [(row, *fields) for row, _, *fields in docs]
            self._db.executemany(f"INSERT INTO {table}(rowid, {self._columns}) VALUES (?, {marks})", rows)  # noqa: S608 - ours
        sql = "INSERT OR REPLACE INTO files(type, id, space, path, stamp, row, code) VALUES (?, ?, ?, ?, ?, ?, ?)"
        self._db.executemany(sql, files)

    def finish(self, seal: str) -> None:
        """Write what a reader loads at once, and end."""
        if self._is_new:
            for table in ("stems", "words"):
                self._db.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")  # noqa: S608 - ours
        rows = self._db.execute("SELECT row, type, id, space FROM files WHERE row IS NOT NULL").fetchall()
        size = max((row for row, *_ in rows), default=-1) + 1
        ids, types, order = [""] * size, bytearray(size), array("l", bytes(size * array("l").itemsize))
        places = {name: at for at, name in enumerate(spaces.TYPES)}
        for row, item_type, item_id, _ in rows:
            ids[row], types[row] = item_id, places[item_type]
        for place, (row, *_) in enumerate(in_tie_order(rows)):
            order[row] = place
        left_out = dict(self._db.execute("SELECT code, COUNT(*) FROM files WHERE row IS NULL GROUP BY code"))
        kept = {
            "seal": seal.encode(),
            "left_out": json.dumps(left_out).encode(),
            "ids": "\n".join(ids).encode(),
            "types": bytes(types),
            "order": order.tobytes(),
        }
        self._db.executemany("INSERT OR REPLACE INTO kept(name, value) VALUES (?, ?)", kept.items())
        self._db.execute("COMMIT")


def _judged(one: _Item, scope: _Scope) -> tuple[str, Entry | None]:
    """Return an item's entry; where it is refused the verdict, which is empty for one that is gone."""
    try:
        return "", entry_of(spaces.find(one.item_type, one.item_id, scope.searched_spaces), scope.admission, remember=False)
    except TrustError as err:
        return err.code, None
    except ItemError as err:
        return "" if err.code == "item_not_found" else "malformed", None


def _about(entry: Entry) -> dict[str, Any]:
    fields = {name: text for name, text in entry.fields.items() if name != "body"}
    return {
        "space": entry.space,
        "path": entry.path,
        "fields": fields,
        "metadata": entry.metadata,
        "digest": entry.digest,
        "signer": entry.signer,
        "owner": entry.owner,
        "trusted": entry.trusted,
    }
