"""A file as tools see it: open under its lock, as lines whose IDs are those of its present content."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rye.call.results import call_text, shorten_all
from rye.errors import UsageError, WorkspaceError
from rye.fs.beneath import Parts
from rye.line_ids import addresses, store
from rye.line_ids import index as line_ids_index
from rye.line_ids.index import Index, LineId
from rye.line_ids.render import Row, reveal
from rye.plain_class import Record, changed
from rye.workspace import cache, escapes
from rye.workspace.encoding import UTF8, Encoding, binary_kind, detect
from rye.workspace.text import Text, parse, reopen, streamed
from rye.workspace.workspace import OpenFile, Workspace

if TYPE_CHECKING:
    from rye.workspace.notebook import Notebook

T = TypeVar("T")

# Bytes.
_GLANCE_WHOLE = 4 << 20
# So many views of one state of a file are remembered.
_VIEWS = 64


class Changes(NamedTuple):
    """What changed in a file since a version: ranges [start, stop) of new or changed lines; (ID, how, line) of those gone.

    `gone` lists the short addresses of the latter, as text.
    """

    lines: list[tuple[int, int]]
    ended: list[tuple[str, str, int]]
    gone: str = ""


IDS_NOT_STORED = ("no_space", "cache_unwritable", "read_only", "permission_denied")
"""Codes of errors after which line IDs cannot be stored, though the file can perhaps be read (`unnamed`)."""


class Document(Record, frozen=False):
    """A text file and its line index, in step with each other.

    Attributes:
        path: physical project-relative path, as results name it.
        text: its lines.
        index: of exactly this content.
        before: the index of an older content, where the file was changed by others since; None when nobody did.
        known: whether an index existed before this call.
        data: the whole content, where it was read whole.
        stored: the stored index that this one is, where nothing but IDs and shown lines can differ from it.
        no_ids: why the lines have no IDs, where these cannot be stored.
        applied_stat: the file's state after our own change, which the descriptor does not show.
        as_cells: a notebook's lines that hold a cell's text are shown as that text.
    """

    ws: Workspace
    file: OpenFile
    path: str
    text: Text
    index: Index
    before: Index | None
    known: bool
    data: bytes | None
    stored: store.Stored | None = None
    no_ids: str = ""
    applied_stat: os.stat_result | None = None
    as_cells: bool = False
    _parsed: tuple[Text, Notebook | None] | None = None

    @property
    def count(self) -> int:
        """Return the number of lines."""
        return self.text.count

    @property
    def version(self) -> str:
        """Return the name of the file's present state."""
        return self.index.version

    @property
    def short_version(self) -> str:
        """Return the short name of the file's present state."""
        return self.index.short_version

    @property
    def encoding(self) -> str:
        """Return the name of the file's encoding; `?` behind it where it is a guess."""
        return self.text.encoding.label

    def printed(self, start: int, stop: int, *, ids: bool = True, whitespace: bool = False, short: bool = False) -> list[str]:
        """Return lines [start, stop), counted from 0, as tools print them: `[LID:a1b2c3] text`, long ones shortened.

        Args:
            start: the first line.
            stop: the line behind the last one.
            ids: print each line's ID; it has one from now on. See `shown`.
            whitespace: make tabs, carriage returns and odd blanks visible.
            short: print short addresses instead of IDs: `12`, a tab, the text; an empty line as it is.
        """
        texts = shorten_all(self.texts(start, stop))
        if whitespace:
            code, raw = self.text.encoding, self.text.lines(start, stop)
            texts = [reveal(text, code.terminator(line) == code.crlf) for text, line in zip(texts, raw, strict=True)]
        if short:
            # The lines that are shown of a notebook are not side by side: each says its address, an empty one too.
            every = self.cells() is not None
            return [
                f"{name}\t{text}" if text or every else "" for name, text in zip(self.shorts(start, stop), texts, strict=True)
            ]
        if not ids:
            return texts
        return [f"[LID:{name}] {text}" for name, text in zip(self.ids(start, stop), texts, strict=True)]

    def encode(self, text: str) -> bytes:
        r"""Return new text in the file's encoding; `\xHH`, as views show it, becomes the byte again. See `escapes.encode`."""
        return escapes.encode(text, self.text.encoding, self.data or b"", self.path)

    def encoding_notice(self, ranges: Iterable[tuple[int, int]]) -> str:
        """Return the notice about the encoding for a reader of some lines; empty where it is certain or the lines are ASCII."""
        if self.text.encoding.certain:
            return ""
        return escapes.notice((line for low, high in ranges for line in self.text.lines(low, high)), self.text)

    def changes_since(self, version: str) -> Changes | None:
        """Return what changed since a version of the file, or None where that version is not among the stored ones."""
        since = self.index.revision_of(version)
        # No answer about this file named a content that its index did not know: it is the version of another, which a command
        # moved or copied here, and whose lines had other addresses.
        is_new = not self.known or self.before is not None
        if since is None or (is_new and since == self.index.revision):
            return None
        dead_lines = [(name, end) for name, end in self.index.dead.items() if end is not None and end.revision > since]
        rows = [(name, end.how, end.line) for name, end in dead_lines]
        shorts = sorted({end.short for _, end in dead_lines if end.short}, key=lambda one: addresses.split(one)[::-1])
        return Changes(self.index.ages.since(since), rows, addresses.ranges(shorts))

    def lines_named(self, first: str, last: str | None) -> tuple[int, int]:
        """Return the lines [start, stop) from one address or ID to another; where `last` is None, that one line.

        Raises:
            UsageError: `invalid_line_id`.
        """
        positions, found = self.index.positions(), list[int]()
        for name in (first, last or first):
            short = addresses.parsed(name)
            at = positions.get(name.lower()) if short is None else self.index.place(short)
            if at is None or self.no_ids:
                hint = f"Call grep, or {call_text('read', file_path=self.path)}."
                raise UsageError("invalid_line_id", f"No line of {self.path} has the address {name} now.", hint)
            found.append(at)
        if found[0] > found[1]:
            why = f"{first} is behind {last} in {self.path}: lines {found[0] + 1} and {found[1] + 1}."
            raise UsageError("invalid_line_id", why, f'Name them the other way round: ":@{last}-{first}".')
        return found[0], found[1] + 1

    def otherwise_named(self, first: int, last: int) -> str:
        """Return how to read what numbers of lines name as addresses, if that is other lines; else an empty text."""
        for number in (first, last):
            at = self.index.addresses.place(number, 1) if number > 0 else None
            if at is not None and at != number - 1:
                numbers = str(first) if first == last else f"{first}-{last}"
                call = call_text("read", file_path=f"{self.path}:@{numbers}")
                return f"{numbers} are line numbers; the addresses {numbers}: {call}"
        return ""

    def rows(self, start: int, stop: int, *, ids: bool = True) -> list[Row]:
        """Return lines [start, stop), counted from 0; with `ids` each has one from now on."""
        texts = self.texts(start, stop)
        if not ids:
            return [Row(number, None, text) for number, text in enumerate(texts, start + 1)]
        stop = start + len(texts)
        return list(map(Row, range(start + 1, stop + 1), self.ids(start, stop), texts, self.shorts(start, stop)))

    def texts(self, start: int, stop: int) -> list[str]:
        """Return lines [start, stop) as they are shown."""
        texts = self.text.encoding.show_all(self.text.lines(start, stop))
        cells = self.cells() if self.as_cells else None
        return texts if cells is None else [cells.texts.get(at, text) for at, text in enumerate(texts, start)]

    def show_as_cells(self) -> None:
        """Show a notebook's lines that hold a cell's text as that text, and take them so; of another file nothing changes."""
        self.as_cells = self.path.lower().endswith(".ipynb")

    def cells(self) -> Notebook | None:
        """Return the cells of a notebook that is shown as such; None for every other file."""
        if not self.as_cells or self.text.encoding.label != "utf-8":
            return None
        if self._parsed is None or self._parsed[0] is not self.text:
            from rye.workspace import notebook

            self._parsed = self.text, notebook.parse(self.text.slice(0, self.text.size))
        return self._parsed[1]

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the IDs of lines [start, stop), all of them in the text; each has one from now on."""
        return [mark.id for mark in self._named(start, stop)]

    def _named(self, start: int, stop: int) -> list[LineId]:
        """Return what is known of lines [start, stop), each of which has an ID from now on."""
        try:
            return [*map(self.index.marks.__getitem__, range(start, stop))]
        except KeyError:
            key = self.text.encoding.key
            line_ids_index.give_ids(self.index, start, [key(line) for line in self.text.lines(start, stop)])
        return [*map(self.index.marks.__getitem__, range(start, stop))]

    def shorts(self, start: int, stop: int) -> list[str]:
        """Return the short addresses of lines [start, stop), as `ids` returns their IDs."""
        self._named(start, stop)
        return self.index.addresses.names(start, stop)

    def name(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Give every line of some ranges an ID, all at once."""
        raw = {at: line for start, stop in ranges for at, line in enumerate(self.text.lines(start, stop), start)}
        key, marks = self.text.encoding.key, self.index.marks
        line_ids_index.give_ids_at(self.index, {at: key(line) for at, line in raw.items() if at not in marks})

    def shown(self, *ranges: tuple[int, int], short: bool = False) -> None:
        """Record that lines [start, stop) of some ranges were printed with their IDs, and store that.

        With `short` they were printed with their short addresses.
        """
        if self.note_shown(*ranges, short=short):
            self.store()

    def note_shown(self, *ranges: tuple[int, int], short: bool = False) -> bool:
        """Note in the index that lines of some ranges were printed, as `shown` does; tell whether that was news."""
        known = self.stored.views if self.stored is not None else None
        news = False
        for start, stop in ranges:
            if known is not None and (start, stop, short) in known:
                continue
            if line_ids_index.note_shown(self.index, start, stop, short=short):
                news = True
            elif known is not None and len(known) < _VIEWS:
                known.add((start, stop, short))
        return news

    def is_seen(self, at: int) -> bool:
        """Tell whether a line was shown as it is now."""
        known = self.index.marks.get(at)
        return known is not None and known.shown >= self.index.ages.values(at, at + 1)[0]

    def confirm(self) -> None:
        """Store that the content under the file's new times is the known one, so that the next view need not hash it.

        Where that cannot be stored, the next view hashes it.
        """
        if self.stored is not None:
            known, file = self.stored, self.file
            fresh = store.of_state(known.index, known.encoding, file.stat, self.text.points, looked=file.looked)
            with suppress(WorkspaceError):
                self.stored = store.save(self.ws, file.path, changed(fresh, dense=known.dense, count=known.count))

    def store(self) -> None:
        """Store the index as it now is."""
        stored, applied, file = self.stored, self.applied_stat, self.file
        if stored is None:
            # The state in which the content was read, not the present one: the file may have changed since.
            info, looked = (applied, 0) if applied is not None else (file.stat, file.looked)
            stored = store.of_state(self.index, self.text.encoding, info, self.text.points, looked=looked)
        self.stored = store.save(self.ws, file.path, stored)


@contextmanager
def view(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Open a file for reading under its lock, its index up to date; of a large known file only what is asked for is read.

    Raises:
        WorkspaceError: as `Workspace.open_file`; `binary_file`, `file_too_large`, `locked`, `cache_unwritable`.
        UsageError: `unknown_encoding`.
    """
    with _locked(ws, path, needed=False) as file:
        yield _open(ws, file, encoding, read_whole=False)


def view_lines(project_path: str, path: str, show: Callable[[Document], T], encoding: str | None = None) -> T:
    """Return what `show` makes of a file's lines, each with its ID, as `view` opens it.

    Where IDs cannot be stored (a full disk), `show` is called again with a document that has none; `no_ids` says why.

    Raises:
        WorkspaceError, UsageError: as `view`.
    """
    with Workspace(project_path) as ws:
        try:
            with _locked(ws, path, needed=False) as file:
                return show(_open(ws, file, encoding, read_whole=False))
        except WorkspaceError as err:
            if err.code not in IDS_NOT_STORED:
                raise
            with without_ids(ws, path, encoding) as document:
                document.no_ids = err.message
                return show(document)


@contextmanager
def without_ids(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Open a file for one look, as a document whose lines have no IDs; nothing is locked or indexed. Errors as `view`.

    Of a large file the offsets of some lines are stored, so that the next look need not count them.
    """
    with ws.file(path) as file:
        # Below this the whole file is read in less time than what is stored of it.
        is_whole = file.stat.st_size <= _GLANCE_WHOLE or encoding is not None
        text = _glanced(file, encoding, None) if is_whole else _large(ws, file)
        yield Document(ws, file, file.shown, text, line_ids_index.fresh(0, "", b"", 32), None, known=False, data=None)


def _large(ws: Workspace, file: OpenFile) -> Text:
    """Return the text of a large file: as it was found by a look or an index in just this state, else counted now."""
    stored = None
    for load in (store.load_looked, partial(store.load, dense=False)):
        with suppress(WorkspaceError):
            stored = load(ws, file.path)
        if stored is not None and stored.points is not None and stored.stamp == store.stamp_of(file.stat):
            return reopen(file.fd, stored.encoding, file.stat.st_size, stored.count, stored.points)
    # Plain UTF-8 is counted without holding it in memory; compared after the scan: a writer may have changed the file.
    text = None if binary_kind(os.pread(file.fd, 64, 0)) else streamed(file.fd, UTF8)
    if text is None or not store.same_state(os.fstat(file.fd), file.stat):
        text = _glanced(file, None, stored)
    store.save_looked(ws, file, text)
    return text


def _glanced(file: OpenFile, declared: str | None, stored: store.Stored | None) -> Text:
    _, data = _stable(file)
    return parse(data, encoding_of(data, declared, stored))


@contextmanager
def open_for_edit(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Open a file for editing under its lock: read whole and hashed, its index brought up to date. Errors as `view`."""
    with _locked(ws, path) as file, _for_edit(ws, file, encoding) as document:
        yield document


@contextmanager
def open_locked_for_edit(ws: Workspace, path: str, parts: Parts, encoding: str | None = None) -> Iterator[Document]:
    """Open a file whose lock the caller holds, as `open_for_edit`.

    Raises:
        WorkspaceError: as `view`; `conflict` when `path` does not lead to the physical `parts` any more.
    """
    with _file_at(ws, path, parts) as file, _for_edit(ws, file, encoding) as document:
        yield document


@contextmanager
def _for_edit(ws: Workspace, file: OpenFile, encoding: str | None) -> Iterator[Document]:
    document = _open(ws, file, encoding, read_whole=True)
    try:
        yield document
    finally:
        if not document.known and document.stored is None:
            from rye.line_ids import epochs

            # Nothing was written or shown: else the addresses of the next look would be of a later epoch, with letters.
            epochs.give_back(ws, file.path, document.index.epoch)


@contextmanager
def _file_at(ws: Workspace, path: str, parts: Parts) -> Iterator[OpenFile]:
    with ws.file(path) as file:
        # A link can be switched between finding the lock's name and holding the lock.
        if file.parts != parts:
            raise WorkspaceError("conflict", f"{path} points to another place now.", "Try again, or name the file itself.")
        yield file


@contextmanager
def _locked(ws: Workspace, path: str, *, needed: bool = True) -> Iterator[OpenFile]:
    """Open the file that `path` names once its lock is held; the lock is that of the physical path.

    Where no file system has locks, one that is not `needed` is left out: indexes are replaced whole.
    """
    with ws.held(path, os.O_PATH) as (_, parts):
        pass
    with ExitStack() as held:
        try:
            held.enter_context(cache.locked(ws, b"/".join(parts)))
        except WorkspaceError as err:
            if needed or err.code != "no_locks":
                raise
        yield held.enter_context(_file_at(ws, path, parts))


def _open(ws: Workspace, file: OpenFile, declared: str | None, *, read_whole: bool) -> Document:
    stored = store.load(ws, file.path, dense=read_whole)
    # Another encoding splits lines differently, so the stored index does not apply; a byte order mark outranks `declared`.
    if stored is not None and declared is not None and stored.encoding.bom == b"" and not _same(declared, stored.encoding):
        stored = None
    confirmed = stored is not None and declared is not None and not stored.encoding.certain
    if stored is not None and confirmed:
        stored = changed(stored, encoding=changed(stored.encoding, certain=True))
    # A view trusts the file's times; an edit hashes the content all the same.
    trusted = stored is not None and stored.stamp == store.stamp_of(file.stat)
    if stored is not None and trusted and stored.points is not None and not read_whole:
        text = reopen(file.fd, stored.encoding, file.stat.st_size, stored.count, stored.points)
        document = Document(ws, file, file.shown, text, stored.index, None, known=True, data=None, stored=stored)
        if confirmed:
            document.confirm()
        return document
    file, data = _stable(file)
    content_hash = stored.index.content_hash if stored is not None and trusted and not read_whole else sha256(data).hexdigest()
    if stored is not None and stored.index.content_hash == content_hash:
        text = (
            Text(stored.encoding, len(data), stored.count, stored.points, lambda low, high: data[low:high])
            if stored.points is not None
            else parse(data, stored.encoding)
        )
        document = Document(ws, file, file.shown, text, stored.index, None, known=True, data=data, stored=stored)
        # An edit stores the index anyway.
        if confirmed or (not read_whole and not trusted and store.settled(store.stamp_of(file.stat), file.looked)):
            document.confirm()
        return document
    # Aligning needs the digests of all lines, which a view does not load.
    if stored is not None and not read_whole:
        stored = store.load(ws, file.path, dense=True)
    # What opens a file for editing and is refused leaves no index, so that the next edit gets the same answer; a change that
    # is made stores its own. A damaged one is replaced at once.
    keep = stored is not None or not read_whole or store.load(ws, file.path, dense=False) is not None
    return _anew(ws, file, data, content_hash, declared, stored, keep=keep)


def _same(declared: str, known: Encoding) -> bool:
    return detect(b"", declared).name == known.name


def _stable(file: OpenFile) -> tuple[OpenFile, bytes]:
    """Read the content such that no change fell between its first and last byte, as far as the times tell.

    Returns:
        The file with the state in which it was read, and the content.
    """
    for _ in range(4):
        data = file.read()
        looked, info = time.time_ns(), os.fstat(file.fd)
        if store.same_state(info, file.stat):
            return file, data
        file = changed(file, stat=info, looked=looked)
    why = f"{file.shown} is being written by another program right now."
    raise WorkspaceError("conflict", why, "Try again when it is done.")


def _anew(
    ws: Workspace,
    file: OpenFile,
    data: bytes,
    content_hash: str,
    declared: str | None,
    stored: store.Stored | None,
    *,
    keep: bool = True,
) -> Document:
    """Index a content that was not known: as the successor of the known one, or as the first."""
    code = encoding_of(data, declared, stored)
    # In the width of the stored index, so that old and new digests can be compared.
    text, width, digests = scan(data, code, stored.index.width if stored else None)
    if stored is None:
        index, before = line_ids_index.fresh(_next_epoch(ws, file.path), content_hash, digests, width), None
    else:
        from rye.line_ids import reconcile

        before = stored.index
        index = reconcile.reconcile(before, digests, lambda at: code.key(text.lines(at, at + 1)[0]), content_hash)
    document = Document(ws, file, file.shown, text, index, before, known=stored is not None, data=data, stored=None)
    bound_dead(ws, file.path, index)
    fit(index, text)
    if keep:
        document.store()
    return document


def encoding_of(data: bytes, declared: str | None, stored: store.Stored | None) -> Encoding:
    """Return the encoding in which a file's content is read: by its bytes, what is declared, and what is remembered of it.

    Raises:
        WorkspaceError, UsageError: as `rye.workspace.encoding.detect`.
    """
    code = detect(data, declared)
    known = stored.encoding if stored is not None else None
    # A guess must not change from one read to the next: a known or confirmed encoding goes first.
    if not code.certain and known is not None and not known.bom and (known.certain or known.name != "utf-8"):
        return known
    return code


def scan(data: bytes, code: Encoding, width: int | None = None) -> tuple[Text, int, bytes]:
    """Return a content's text, the digest width, and its lines' digests, in one pass."""
    if width is None:
        width = 32 if data.count(b"\n") < line_ids_index.ALL_IDS_MAX else 8
    digests: list[bytes] = []
    text = parse(data, code, lambda raw: digests.append(line_ids_index.digest_lines(keys(raw, code), width)))
    return text, width, b"".join(digests)


def keys(raw: list[bytes], code: Encoding) -> list[bytes]:
    """Return lines' identifying texts; written out for UTF-8, where files are large."""
    if code.name == "utf-8":
        # The usual line without a method call; one with CR or without a newline takes the general way.
        return [x[:-1] if x[-2:-1] != b"\r" and x[-1:] == b"\n" else code.body(x) for x in raw]
    return [code.key(line) for line in raw]


def _next_epoch(ws: Workspace, path: bytes) -> int:
    # A known file, which most reads are of, needs none: a cold read does not load it.
    from rye.line_ids import epochs

    return epochs.next_epoch(ws, path, store.FOLDER)


def bound_dead(ws: Workspace, path: bytes, index: Index) -> None:
    """Keep the number of stored dead IDs bounded, however many edits a file has seen."""
    if len(index.dead) > line_ids_index.DEAD_MAX:
        epoch = _next_epoch(ws, path)
        # A random epoch may be the one in use.
        if epoch not in (index.epoch, index.id_epoch):
            line_ids_index.begin_epoch(index, epoch)


def fit(index: Index, text: Text) -> None:
    """Keep an index in the form that its file's size asks for: every line with an ID, or only those shown."""
    small = text.count <= line_ids_index.ALL_IDS_MAX
    if small and index.width == 8:
        index.digests, index.width = line_ids_index.digest_lines(keys(text.lines(), text.encoding), 32), 32
    elif not small and index.width == 32:
        # The narrow digest is the first 8 bytes of the wide one, so nothing is hashed again.
        index.digests = b"".join([index.digests[at : at + 8] for at in range(0, len(index.digests), 32)])
        index.width = 8
    if small and len(index.marks) < text.count:
        line_ids_index.give_ids(index, 0, keys(text.lines(), text.encoding))
