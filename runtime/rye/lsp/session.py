"""A running language server that knows the files on disk: one a project root, reused between calls, replaced when it fails.

Diagnostics are pulled if the server offers that. Otherwise they are waited for and matched by document version.
"""

from __future__ import annotations

import atexit
import contextlib
import fnmatch
import functools
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from rye.call.context import deadline
from rye.fs import beneath
from rye.fs.atomic import closing
from rye.line_ids import store
from rye.lsp.connection import LanguageServerConnection, LanguageServerError
from rye.lsp.positions import normal_uri, path_of, uri_of
from rye.lsp.servers import LanguageServer
from rye.plain_class import Record
from rye.sandbox.policy import Confined
from rye.workspace.repositories import IGNORED_DIRECTORIES
from rye.workspace.workspace import Identity, Workspace

START_SECONDS = 60.0
ANSWER_SECONDS = 60.0
# After an empty first publication: a server may say "nothing yet" before it looked.
_SETTLE_SECONDS = 1.5
# A server that was asked to look again at the same text, and finds the same, may say nothing.
_AGAIN_SECONDS = 10.0
_CLOSE_IDLE_SECONDS = 5.0
_CREATED, _CHANGED, _DELETED = 1, 2, 3
MAX_FILES = 50_000
MAX_FOLDERS = 20_000
# Of one folder.
_MAX_ENTRIES = 200_000
_IGNORED = re.compile("|".join(map(fnmatch.translate, IGNORED_DIRECTORIES)))
# What programs put into folders that they can make again: https://bford.info/cachedir/
_CACHE_MARK = "CACHEDIR.TAG"

Stamp = tuple[int, ...]


class Published(NamedTuple):
    """Diagnostics as a server last published them for a document: of which version, and how often until then."""

    version: int | None
    items: list[dict[str, Any]]
    times: int


class _Opened(Record, frozen=False):
    version: int
    text: str
    published_before: int


class ServerSession:
    """One server for one root.

    Attributes:
        server: what runs.
        wire: the connection to it.
        lock: locked during a question, so that documents and answers belong together.
        cold: no question was answered yet.
        loading: the server still reads the project: it is cold, or was just told of files that came or went.
        used: when it was last asked for.
        opened: the open documents, by path.
        published: the diagnostics that it published last, by URI.
        stamps: the file states that were reported to the server, by project.
        sees_all: whether the last look saw all source files, and not only the first `MAX_FILES` in the first `MAX_FOLDERS`.
        stale: open documents whose published diagnostics may be out of date.
    """

    def __init__(self, root: str, server: LanguageServer, started: Confined) -> None:
        """Start the server for a root, the real path of the folder that it works on, and make it ready.

        Raises:
            LanguageServerError: as `LanguageServerConnection`, and as its `request`.
        """
        self.server, self.lock = server, threading.RLock()
        self.cold, self.loading, self.sees_all, self.used = True, True, True, time.monotonic()
        self.opened: dict[str, _Opened] = {}
        self.published: dict[str, Published] = {}
        self.stamps: dict[str, dict[str, Stamp]] = {}
        self.stale: set[str] = set()
        self.wire = LanguageServerConnection(server.name, started, root, self.on_notification)
        try:
            reply = self.wire.request("initialize", _introduction(root, server), START_SECONDS)
        except BaseException:
            self.wire.close()
            raise
        self.capabilities = reply.get("capabilities", {}) if isinstance(reply, dict) else {}
        self.wire.notify("initialized", {})
        # Some servers wait for their settings before they answer anything.
        self.wire.notify("workspace/didChangeConfiguration", {"settings": {}})

    @contextlib.contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Lock the session for one question; wait so long for another caller's, and no longer than this call may take.

        Raises:
            LanguageServerError: `server_timeout`.
            DeadlineError: the call's own time is up.
        """
        limit = deadline()
        if not self.lock.acquire(timeout=max(0.0, min(limit.remaining(), seconds))):
            limit.check()
            message = f"{self.server.name} is busy with another question."
            raise LanguageServerError("server_timeout", message, "Try again: it may still be loading the project.")
        try:
            yield
        finally:
            self.lock.release()

    def on_notification(self, method: str, params: Any) -> None:
        """Take a notification of the server's."""
        if method == "textDocument/publishDiagnostics" and isinstance(params, dict):
            uri = normal_uri(str(params.get("uri", "")))
            if path_of(uri) not in self.opened:
                # Not asked for. Storing diagnostics of every file would grow without bound.
                return
            # Counted, because servers that send no version can be matched only by what came after our change.
            times = self.published[uri].times + 1 if uri in self.published else 1
            self.published[uri] = Published(params.get("version"), well_formed(params.get("diagnostics")), times)

    def offers(self, capability: str) -> bool:
        """Tell whether the server announced a capability."""
        return bool(self.capabilities.get(capability))

    def look(self, ws: Workspace, read: Callable[[str], str | None]) -> None:
        """Report to the server what changed on disk in a project since the last question.

        Args:
            ws: the project, whose root may lie above the server's.
            read: gives a file's text, or None where it has none.

        Raises:
            DeadlineError: the call's time is up.
        """
        stamps, self.sees_all = source_stamps(ws, self.server)
        before = self.stamps.get(ws.root)
        self.stamps[ws.root] = stamps
        # Open documents first: the server takes their text from us and ignores the disk.
        same = self._reopened(stamps, before or {}, read)
        if before is None:
            return
        self.loading = self.cold or stamps.keys() != before.keys()
        events = [(path, _CREATED) for path in stamps.keys() - before.keys()]
        events += [(path, _DELETED) for path in before.keys() - stamps.keys()]
        events += [(path, _CHANGED) for path in stamps.keys() & before.keys() - same if stamps[path] != before[path]]
        if events:
            # Another file's change may change the diagnostics of any open document.
            self.stale |= self.opened.keys() - ({events[0][0]} if len(events) == 1 else set())
            changes = [{"uri": uri_of(path), "type": kind} for path, kind in sorted(events)]
            # Sorted, so that the server sees the same order in every run.
            self.wire.notify("workspace/didChangeWatchedFiles", {"changes": changes})

    def _reopened(self, stamps: dict[str, Stamp], before: dict[str, Stamp], read: Callable[[str], str | None]) -> set[str]:
        """Send open documents as they are on disk, and close those that are gone; return the unchanged ones."""
        same: set[str] = set()
        for path, opened in list(self.opened.items()):
            stamp = stamps.get(path)
            if stamp is not None and stamp == before.get(path):
                continue
            text = read(path) if stamp is not None or os.path.exists(path) else None
            if text is None:
                self.wire.notify("textDocument/didClose", {"textDocument": {"uri": uri_of(path)}})
                del self.opened[path]
            elif text != opened.text:
                self.show(path, text)
            else:
                same.add(path)
        return same

    def show(self, path: str, text: str, *, again: bool = False) -> None:
        """Open a document, or send its new text; `again` makes the server check the same text anew, includes too."""
        uri = uri_of(path)
        known = self.opened.get(path)
        before = self.published[uri].times if uri in self.published else 0
        if known is None:
            language = self.server.languages.get(os.path.splitext(path)[1].lower(), "plaintext")
            document = {"uri": uri, "languageId": language, "version": 1, "text": text}
            self.opened[path] = _Opened(1, text, before)
            self.wire.notify("textDocument/didOpen", {"textDocument": document})
        elif again or known.text != text:
            self.opened[path] = _Opened(known.version + 1, text, before)
            document = {"uri": uri, "version": known.version + 1}
            # clangd's own field. Without it clangd does not rebuild for the same text, nor for files changed within a second.
            change = {"textDocument": document, "contentChanges": [{"text": text}], "forceRebuild": again}
            self.wire.notify("textDocument/didChange", change)

    def diagnostics(self, path: str, seconds: float) -> list[dict[str, Any]]:
        """Return the diagnostics of an open document as it was last sent. Errors as `LanguageServerConnection.request`."""
        uri = uri_of(path)
        if self.offers("diagnosticProvider"):
            reply = self.wire.request("textDocument/diagnostic", {"textDocument": {"uri": uri}}, seconds)
            return well_formed(reply.get("items")) if isinstance(reply, dict) else []
        current = functools.partial(self._current, path)
        if path in self.stale:
            # Those of the text itself come first: after them its silence can be understood.
            self.wire.wait_for(current, seconds, "textDocument/publishDiagnostics")
            self.stale.discard(path)
            self.show(path, self.opened[path].text, again=True)
            # The text is the same, so a server may publish nothing: take its silence for "unchanged".
            self.wire.pause(min(seconds, _AGAIN_SECONDS), current)
            if not current() and self.wire.alive:
                known = self.published[uri]
                self.published[uri] = Published(known.version and self.opened[path].version, known.items, known.times + 1)
        self.wire.wait_for(current, seconds, "textDocument/publishDiagnostics")
        # A server that still loads may publish an empty list first.
        if self.loading and not self.published[uri].items:
            count_before = self.published[uri].times
            self.wire.pause(_SETTLE_SECONDS, lambda: self.published[uri].times > count_before)
        return list(self.published[uri].items)

    def _current(self, path: str) -> bool:
        """Tell whether the published diagnostics are of the text that was sent last."""
        found, document = self.published.get(uri_of(path)), self.opened[path]
        if found is None:
            return False
        # Servers that send no version: only diagnostics that came after our change can be about it.
        return found.version == document.version if found.version is not None else found.times > document.published_before


def source_stamps(ws: Workspace, server: LanguageServer) -> tuple[dict[str, Stamp], bool]:
    """Return the state of a server's source files below a project's root, by absolute path, and whether these are all.

    Breadth first, without linked and hidden folders. What `.gitignore` leaves out is looked at: generated sources are sources
    to a language server.

    Raises:
        DeadlineError: the call's time is up.
    """
    limit, now = deadline(), time.time_ns()
    found: dict[str, Stamp] = {}
    pending, folders = deque[tuple[str, ...]]([()]), 0
    while pending and len(found) < MAX_FILES and folders < MAX_FOLDERS:
        # A large project takes seconds, and the call may be over before the walk is.
        limit.check()
        parts, folders = pending.popleft(), folders + 1
        with contextlib.suppress(OSError):
            # Linked folders are not walked, since links may form circles.
            with closing(beneath.open_unlinked(ws.fd, parts, os.O_RDONLY | os.O_DIRECTORY)) as fd:
                files, names = _sources_in(fd, server, now)
            prefix = "/".join((ws.root.rstrip("/"), *parts, ""))
            found |= {prefix + name: stamp for name, stamp in files}
            pending += [(*parts, name) for name in names]
    return found, not pending


def _sources_in(fd: int, server: LanguageServer, now: int) -> tuple[list[tuple[str, Stamp]], list[str]]:
    """Return a folder's source files with their states, and the folders to be walked; nothing of one tagged as a cache."""
    files: list[tuple[str, Stamp]] = []
    folders: list[str] = []
    with os.scandir(fd) as entries:
        for entry in islice(entries, _MAX_ENTRIES):
            name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
            # By convention such a folder can be made again; its files are nobody's sources.
            if name == _CACHE_MARK:
                return [], []
            is_source = name[0] != "." and os.path.splitext(name)[1].lower() in server.languages
            if (is_source or name in server.markers) and not is_folder:
                # A link may be turned to another file, or that file may change: both states count.
                both = (False, True) if entry.is_symlink() else (False,)
                with contextlib.suppress(OSError):
                    stamps = [store.stamp_of(entry.stat(follow_symlinks=follow)) for follow in both]
                    # A state that is too young to be told from the next one is no other's.
                    young = () if all(store.settled(stamp, now) for stamp in stamps) else (now,)
                    files.append((name, (*chain.from_iterable(stamps), *young)))
            elif is_folder and name[0] != "." and not _IGNORED.match(name):
                folders.append(name)
    return files, folders


def well_formed(diagnostics: object) -> list[dict[str, Any]]:
    """Return the diagnostics that have a range; drop malformed ones."""
    listed = diagnostics if isinstance(diagnostics, list) else []
    return [one for one in listed if isinstance(one, dict) and _placed(one.get("range"))]


def _placed(span: object) -> bool:
    start = span.get("start") if isinstance(span, dict) else None
    return isinstance(start, dict) and all(isinstance(start.get(name), int) for name in ("line", "character"))


def _introduction(root: str, server: LanguageServer) -> dict[str, Any]:
    document = {
        "synchronization": {"didSave": False, "dynamicRegistration": False},
        "publishDiagnostics": {"versionSupport": True, "relatedInformation": False},
        "diagnostic": {"dynamicRegistration": False, "relatedDocumentSupport": False},
        "definition": {"linkSupport": False},
        "references": {},
        "hover": {"contentFormat": ["plaintext", "markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "rename": {"prepareSupport": False},
        "formatting": {},
    }
    workspace = {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True},
        "symbol": {},
    }
    folder = {"uri": uri_of(root), "name": os.path.basename(root)}
    return {
        # No process id: in its own process namespace the server would not find it, and exit.
        "processId": None,
        "rootUri": uri_of(root),
        "workspaceFolders": [folder],
        "clientInfo": {"name": "rye"},
        "initializationOptions": server.settings,
        "capabilities": {"textDocument": document, "workspace": workspace, "general": {"positionEncodings": ["utf-16"]}},
    }


# By process, too: a fork has the sessions of its parent, whose servers are not its own, and must not close their descriptors.
_Key = tuple[int, str, str, Identity | None]
_sessions: dict[_Key, ServerSession] = {}
_guard = threading.Lock()
# Another thread of the parent may have held the lock at the fork; nobody in the child would release it.
os.register_at_fork(after_in_child=_guard._at_fork_reinit)  # type: ignore[attr-defined]  # noqa: SLF001


def session(root: str, server: LanguageServer, start: Callable[[], Confined], project: Identity | None = None) -> ServerSession:
    """Return the running session for a root and server, or start one; replace one that is dead or uses too much memory.

    Args:
        root: the folder that the server works on.
        server: which one.
        start: starts it.
        project: device and inode of the project's root: another folder at its path has a session of its own.

    Raises:
        LanguageServerError: as `LanguageServerConnection`.
    """
    key = (os.getpid(), root, server.name, project)
    with _guard:
        known = _sessions.get(key)
        serves = known is not None and known.wire.alive and not known.wire.hangs and known.server == server
        if known is not None and serves and _memory(known.wire.pid) <= server.max_memory_bytes:
            known.used = time.monotonic()
            return known
        _sessions.pop(key, None)
    if known is not None:
        known.wire.close()
    # Outside the lock: a start takes seconds, and servers of other roots must stay usable.
    fresh = ServerSession(root, server, start())
    # Another thread may have started one for the same root meanwhile: the first wins.
    with _guard:
        raced = _sessions.get(key)
        if raced is None or not raced.wire.alive:
            _sessions[key] = fresh
            _watch()
            return fresh
    fresh.wire.close()
    return raced


def _memory(pid: int) -> int:
    """Return how much memory a process and its children use (bytes); 0 if the system does not tell."""
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{one}/statm", "rb") as file:
                total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            # The server proper may be a child of a wrapper script or of the sandbox.
            with open(f"/proc/{one}/task/{one}/children", "rb") as file:
                waiting += [int(child) for child in file.read().split()]
    return total


_watching: list[threading.Thread] = []


def _watch() -> None:
    # In a fork the parent's thread is not alive.
    if not any(thread.is_alive() for thread in _watching):
        thread = threading.Thread(target=_close_idle, name="lsp-idle", daemon=True)
        _watching[:] = [thread]
        thread.start()
        atexit.register(close_all)


def _close_idle() -> None:
    while True:
        time.sleep(_CLOSE_IDLE_SECONDS)
        _close(lambda one: time.monotonic() - one.used > one.server.idle_seconds or not one.wire.alive)


def close_all() -> None:
    """End every server of this process."""
    _close(lambda _: True)


def _close(is_over: Callable[[ServerSession], bool]) -> None:
    with _guard:
        over = [key for key, one in _sessions.items() if key[0] == os.getpid() and is_over(one)]
        # Removed under the lock, closed outside it: closing waits for the process.
        sessions = [_sessions.pop(key) for key in over]
    for one in sessions:
        one.wire.close()
