"""A file as tools see it: held under its lock, as lines with IDs that are true for what stands on the disk now."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING

from rye.errors import WorkspaceError
from rye.record import Record
from rye.toolkit import cache, checkpoint_store, index_store, lines
from rye.toolkit.encoding import UTF8, Encoding, binary_kind, detect
from rye.toolkit.rows import Row
from rye.toolkit.text import Text, chunks, glanced, mark, parse, reopen, streamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rye.toolkit.beneath import Parts
    from rye.toolkit.lines import Index
    from rye.toolkit.text import Checkpoints
    from rye.toolkit.workspace import OpenFile, Workspace


# Bytes.
_GLANCE_WHOLE = 4 << 20


UNKEPT = ("no_space", "cache_unwritable", "read_only", "permission_denied")
"""Codes of errors after which line IDs cannot be kept, though the file can perhaps be read (`unnamed`)."""


class Document(Record, frozen=False):
    """A text file and its line index, in step with each other.

    Attributes:
        path: physical project-relative path.
        text: its lines.
        index: of exactly this content.
        before: the index of an older content, where the file was changed by others since; None when nobody did.
        known: whether an index existed before this call.
        data: the whole content, where it was read whole.
        stored: the kept index that this one is, where nothing but IDs and shown lines can differ from it.
        landed: the file's state after our own change, which the descriptor does not show.
    """

    ws: Workspace
    file: OpenFile
    text: Text
    index: Index
    before: Index | None
    known: bool
    data: bytes | None
    stored: index_store.Stored | None = None
    landed: os.stat_result | None = None

    @property
    def path(self) -> str:
        """Return the path as it stands in results."""
        return self.file.shown

    def rows(self, start: int, stop: int, *, ids: bool = True) -> list[Row]:
        """Return lines [start, stop), counted from 0; with `ids` each has one from now on."""
        texts = self.texts(start, stop)
        names = self.ids(start, start + len(texts)) if ids else [None] * len(texts)
        return list(map(Row, range(start + 1, start + 1 + len(texts)), names, texts))

    def texts(self, start: int, stop: int) -> list[str]:
        """Return lines [start, stop) as they are shown."""
        return self.text.encoding.show_all(self.text.lines(start, stop))

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the IDs of lines [start, stop), all of them in the text; each has one from now on."""
        if not all(map(self.index.marks.__contains__, range(start, stop))):
            key = self.text.encoding.key
            lines.give_ids(self.index, start, [key(line) for line in self.text.lines(start, stop)])
        marks = self.index.marks
        return [marks[at].id for at in range(start, stop)]

    def name(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Give every line of some ranges an ID, all at once."""
        raw = {at: line for start, stop in ranges for at, line in enumerate(self.text.lines(start, stop), start)}
        key, marks = self.text.encoding.key, self.index.marks
        lines.give_ids_at(self.index, {at: key(line) for at, line in raw.items() if at not in marks})

    def shown(self, *ranges: tuple[int, int]) -> None:
        """Record that lines [start, stop) of some ranges were printed with their IDs."""
        news = [lines.note_shown(self.index, start, stop) for start, stop in ranges]
        if any(news):
            self.keep()

    def confirm(self) -> None:
        """Keep that the content under the file's new times is the known one, so that the next view need not hash it.

        Where that cannot be kept, the next view hashes it.
        """
        if not self.index.digests and self.text.count:
            stored = index_store.load(self.ws, self.file.path, dense=True)
            if stored is None:
                return
            self.index = stored.index
        stored, self.stored = self.stored, None
        try:
            self.keep()
        except WorkspaceError:
            self.stored = stored

    def keep(self) -> None:
        """Store the index as it now is."""
        if self.stored is not None:
            index_store.note_shown(self.ws, self.file.path, self.stored)
        else:
            info = self.landed or os.fstat(self.file.fd)
            index_store.save(self.ws, self.file.path, self.index, self.text.encoding, info, self.text.points)
            self.stored = index_store.Stored(self.index, self.text.encoding, None, self.text.points, self.text.count)


@contextmanager
def view(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Hold a file for reading, its index brought up to date; of a large known file only what is asked for is read.

    Raises:
        WorkspaceError: as `Workspace.open_file`; `binary_file`, `file_too_large`, `locked`, `cache_unwritable`.
        UsageError: `unknown_encoding`.
    """
    with _held(ws, path) as file:
        yield _open(ws, file, encoding, whole=False)


@contextmanager
def glance(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[tuple[OpenFile, Text]]:
    """Hold a file for one look without line IDs: no lock is taken, nothing is indexed. Errors as `view`.

    Of a large file it is kept where lines begin, so that the next look need not count them.
    """
    with ws.file(path) as file:
        # Below this the whole file is read in less time than what is kept of it.
        if file.stat.st_size <= _GLANCE_WHOLE or encoding is not None:
            yield file, _glanced(file, encoding, None)
        else:
            yield file, _large(ws, file)


@contextmanager
def unnamed(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Hold a file for one look as `glance` does, as a document whose lines have no IDs. Errors as `view`."""
    with glance(ws, path, encoding) as (file, text):
        yield Document(ws, file, text, lines.fresh(0, "", b"", 32), None, known=False, data=None)


def _large(ws: Workspace, file: OpenFile) -> Text:
    """Return the text of a large file: as it was found by a look or an index in just this state, else counted now."""
    stamp = index_store.stamp_of(file.stat)
    kept, stored = checkpoint_store.load(ws, file.path, stamp), None
    if kept is None:
        stored = _loaded(ws, file)
        if stored is not None and stored.points is not None and stored.stamp == stamp:
            kept = stored.encoding, stored.count, stored.points
    if kept is not None:
        encoding, count, points = kept
        return reopen(file.fd, encoding, file.stat.st_size, count, points)
    text = _streamed(file) or _glanced(file, None, stored)
    checkpoint_store.save(ws, file.path, stamp, text)
    return text


def _loaded(ws: Workspace, file: OpenFile) -> index_store.Stored | None:
    """Return the kept index, if there is one and a place to keep it."""
    try:
        return index_store.load(ws, file.path, dense=False)
    except WorkspaceError:
        return None


def _streamed(file: OpenFile) -> Text | None:
    """Return the text of a large file of plain UTF-8 without holding it; None where that is not what it is."""
    if binary_kind(os.pread(file.fd, 64, 0)):
        return None
    text = streamed(file.fd, UTF8)
    return text if text is not None and index_store.stamp_of(os.fstat(file.fd)) == index_store.stamp_of(file.stat) else None


def _glanced(file: OpenFile, declared: str | None, stored: index_store.Stored | None) -> Text:
    data = _stable(file)
    return glanced(data, _encoding(data, declared, stored))


@contextmanager
def held_for_edit(ws: Workspace, path: str, encoding: str | None = None) -> Iterator[Document]:
    """Hold a file for changing: read whole and hashed, its index carried to what stands there. Errors as `view`."""
    with _held(ws, path) as file:
        yield _open(ws, file, encoding, whole=True)


@contextmanager
def opened_for_edit(ws: Workspace, path: str, parts: Parts, encoding: str | None = None) -> Iterator[Document]:
    """Open a file whose lock the caller holds, as `held_for_edit`.

    Raises:
        WorkspaceError: as `view`; `conflict` when `path` does not lead to the physical `parts` any more.
    """
    with ws.file(path) as file:
        if file.parts != parts:
            raise WorkspaceError("conflict", f"{path} keeps pointing to other places.", "Name the file itself.")
        yield _open(ws, file, encoding, whole=True)


@contextmanager
def _held(ws: Workspace, path: str) -> Iterator[OpenFile]:
    """Open the file that `path` names once its lock is held; the lock is that of the physical path."""
    for _ in range(5):
        with ws.file(path) as first:
            parts = first.parts
        with ExitStack() as stack:
            stack.enter_context(cache.locked(ws, b"/".join(parts)))
            file = stack.enter_context(ws.file(path))
            if file.parts == parts:
                yield file
                return
    raise WorkspaceError("conflict", f"{path} keeps pointing to other places.", "Name the file itself.")


def _open(ws: Workspace, file: OpenFile, declared: str | None, *, whole: bool) -> Document:
    stored = index_store.load(ws, file.path, dense=whole)
    if stored is not None and declared is not None and stored.encoding.bom == b"" and not _same(declared, stored.encoding):
        stored = None
    trusted = stored is not None and stored.stamp == index_store.stamp_of(file.stat)
    if stored is not None and trusted and stored.points is not None and not whole:
        text = reopen(file.fd, stored.encoding, file.stat.st_size, stored.count, stored.points)
        return Document(ws, file, text, stored.index, None, known=True, data=None, stored=stored)
    data = _stable(file)
    content_hash = stored.index.content_hash if stored is not None and trusted and not whole else sha256(data).hexdigest()
    if stored is not None and stored.index.content_hash == content_hash:
        text = (
            Text(stored.encoding, len(data), stored.count, stored.points, lambda low, high: data[low:high])
            if stored.points is not None
            else (parse if whole else glanced)(data, stored.encoding)
        )
        if text.count != stored.count:
            # Not ours: a clone can bring an index that names the right content.
            return _anew(ws, file, data, content_hash, declared, None)
        document = Document(ws, file, text, stored.index, None, known=True, data=data, stored=stored)
        if not trusted and index_store.settled(index_store.stamp_of(file.stat)):
            document.confirm()
        return document
    if stored is not None and not whole:
        stored = index_store.load(ws, file.path, dense=True)
    # What opens a file for editing and is refused leaves no index, so that the next edit gets the same answer; a change that
    # lands keeps its own. A damaged one is replaced at once.
    keep = stored is not None or not whole or index_store.load(ws, file.path, dense=False) is not None
    return _anew(ws, file, data, content_hash, declared, stored, keep=keep)


def _same(declared: str, known: Encoding) -> bool:
    return detect(b"", declared).name == known.name


def _stable(file: OpenFile) -> bytes:
    """Read the content such that no change fell between its first and last byte, as far as the times tell."""
    for _ in range(4):
        before = index_store.stamp_of(os.fstat(file.fd))
        data = file.read()
        if index_store.stamp_of(os.fstat(file.fd)) == before:
            return data
    raise WorkspaceError(
        "conflict",
        f"{file.shown} is being written by another program right now.",
        "Try again when it is done.",
    )


def _anew(
    ws: Workspace,
    file: OpenFile,
    data: bytes,
    content_hash: str,
    declared: str | None,
    stored: index_store.Stored | None,
    *,
    keep: bool = True,
) -> Document:
    """Index a content that was not known: as the successor of the known one, or as the first."""
    code = _encoding(data, declared, stored)
    text, width, digests = scan(data, code, stored.index.width if stored else None)
    if stored is None:
        index, before = lines.fresh(index_store.next_epoch(ws, file.path), content_hash, digests, width), None
    else:
        from rye.toolkit import carry

        before = stored.index
        index = carry.reconcile(before, digests, lambda at: code.key(text.lines(at, at + 1)[0]), content_hash)
    document = Document(ws, file, text, index, before, known=stored is not None, data=data, stored=None)
    fit(index, text)
    if keep:
        document.keep()
    return document


def _encoding(data: bytes, declared: str | None, stored: index_store.Stored | None) -> Encoding:
    code = detect(data, declared)
    if not code.certain and stored is not None and not stored.encoding.bom:
        return stored.encoding
    return code


def scan(data: bytes, code: Encoding, width: int | None = None) -> tuple[Text, int, bytes]:
    """Return a content's text, the digest width, and its lines' digests, in one pass."""
    if width is None:
        width = lines.width_for(data.count(b"\n") + 1)
    from array import array

    from rye.toolkit.text import Checkpoints

    points: Checkpoints = Checkpoints(array("Q"), array("Q"))
    digests: list[bytes] = []
    count = 0
    for offset, raw in chunks(data, code):
        mark(points, raw, count, offset)
        digests.append(lines.digest_lines(keys(raw, code), width))
        count += len(raw)
    if not count:
        mark(points, [b""], 0, len(code.bom))
    return Text(code, len(data), count, points, lambda low, high: data[low:high]), width, b"".join(digests)


def keys(raw: list[bytes], code: Encoding) -> list[bytes]:
    """Return lines' identifying texts; written out for UTF-8, where files are large."""
    if code.name == "utf-8":
        return [x[:-1] if x[-2:-1] != b"\r" and x[-1:] == b"\n" else code.body(x) for x in raw]
    return [code.key(line) for line in raw]


def fit(index: Index, text: Text) -> None:
    """Keep an index in the form that its file's size asks for: every line with an ID, or only those shown."""
    small = text.count <= lines.ALL_IDS_MAX
    if small and index.width == 8:
        index.digests, index.width = lines.digest_lines(keys(text.lines(), text.encoding), 32), 32
    elif not small and index.width == 32:
        index.digests = b"".join([index.digests[at : at + 8] for at in range(0, len(index.digests), 32)])
        index.width = 8
    if small:
        lines.give_ids(index, 0, keys(text.lines(), text.encoding))
