"""The record of what commands change: a look at the project's tree before and after, and a journal entry for what differs.

What a look finds is put down to the commands that ran since the look before. It is one entry of the journal for each look. What
changed while no command ran is told apart: either one of our tools made it, which has an entry of its own, or someone else did.
While an edit of ours is made nobody looks, and beside a running command it looks before and after: a change has one author.
"""

from __future__ import annotations

import errno
import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from rye.call import context
from rye.config import user_dirs
from rye.errors import RyeError, WorkspaceError
from rye.fs import atomic, beneath, stamps
from rye.fs.atomic import closing
from rye.journal import entries, history, journal, recovery, tree_undo_steps
from rye.journal.entries import Entry, printable
from rye.journal.own_edits import OwnEdits, fits
from rye.plain_class import changed
from rye.sandbox import hidden_paths, project_mounts
from rye.snapshots import known_tree, passed_over, watch
from rye.snapshots import tree as snapshots_tree
from rye.snapshots.contents import Contents
from rye.snapshots.known_tree import Known
from rye.snapshots.states import Change, Folders, Running, State, is_passed, state_of
from rye.snapshots.tree import Scope, TreeTooLargeError, Walk
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace

SOMEONE_ELSE: Final = "changed by someone else"
"""The `tool` of an entry for what changed while no command ran."""

_CUT_OFF: Final = "cut off, or someone else"
_BEGUN: Final = "recorded from now on; what was changed in it before is not"
_ABOUT: Final = 200
_SHARES: Final = 64
_PACKED_REFS_MAX: Final = 16 * 1024 * 1024
_KEEP_SHARE: Final = 0.9
_MOST_RECOVERIES: Final = 2
_MOST_LOOKS: Final = 5
_AFTER_JOB: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); from rye.journal import tree_changes; tree_changes.end_job(*sys.argv[2:])"
)
_RUNTIME: Final = str(Path(__file__).parents[2])
_COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")
_BRANCH: Final = re.compile(r"refs/(?!.*\.\.)[\w./@+=#-]{1,200}")


class Recording(NamedTuple):
    """A command whose changes are recorded.

    Attributes:
        token: its name in the record of running commands; empty: nothing is recorded.
        why_not: why nothing is recorded, for the result.
        git: where the project's repositories stood before: path -> position, as JSON.
        started: when it started by the clock of files (ns), as text: a job's supervisor gets it as an argument.
    """

    token: str
    why_not: str = ""
    git: str = ""
    started: str = "0"


class RecordedChanges(NamedTuple):
    """What a command changed.

    Attributes:
        entry_id: the journal entry that undo takes back; None where nothing changed.
        changes: what differs.
        left_out: what was not recorded: path -> why.
        shared: commands that ran beside it, and may have made some of it.
        git: how the repository moved, in words; empty where it did not.
        why_not: why nothing was recorded.
    """

    entry_id: str | None = None
    changes: Sequence[Change] = ()
    left_out: dict[str, str] = {}  # noqa: RUF012 - never changed
    shared: Sequence[str] = ()
    git: str = ""
    why_not: str = ""


def begin(ws: Workspace, token: str, tool: str, about: str) -> Recording:
    """Look at the tree before a command runs, and note that it does.

    Args:
        ws: the workspace.
        token: names the running command, see `rye.workspace.running_commands`; empty where its record could not be begun.
        tool: the item id that the journal names.
        about: what the command is; a long one is cut.
    """
    if not context.settings().get("record.commands"):
        return Recording("", "recording is off (record.commands)")
    if not token:
        return Recording("", "the state folder cannot be used")
    command = Running(token=token, tool=tool, actor=context.actor(), about=about[:_ABOUT], started=time.time())
    try:
        with _looked_at(ws) as (where, folders):
            known_tree.set_running(where, [*known_tree.running(where), command])
            git = git_positions(ws, _repositories(folders))
    except TreeTooLargeError as err:
        return Recording("", err.message)
    except OSError as err:
        return Recording("", f"the state folder cannot be used ({err.strerror or err})")
    return Recording(token, git=json.dumps(git), started=str(stamps.clock()))


@contextmanager
def _looked_at(ws: Workspace) -> Iterator[tuple[Path, Folders]]:
    """Hold the project's tree, which was looked at since this thread asked for its turn, or is now; yields its folder and it.

    So calls that wait at once share one: it began when all were there, and none of their commands runs yet.
    """
    known_watch = watch.known(os.fstat(ws.fd))
    if known_watch is not None and known_watch.looked > running_commands.turn.asked:
        with known_tree.locked(ws.fd) as where:
            if known := known_tree.load(where):
                yield where, known.folders
                return
    with look_at(ws, quick=True) as look:
        look.attribute()
        yield look.where, look.folders


def _repositories(folders: Folders) -> list[str]:
    """Return the folders below the root that hold a repository of their own."""
    return [path.removesuffix("/.git") for path in folders if path.endswith("/.git")]


def after_job(recording: Recording) -> list[str]:
    """Return the command that looks when a job is over, and prints what `fields` returns; empty where nothing is recorded."""
    if not recording.token:
        return []
    # The environment of a supervisor has only what it needs, so the user's space goes in as an argument.
    return [user_dirs.python(), "-I", "-c", _AFTER_JOB, _RUNTIME, user_dirs.user_space(), *recording]


def end_job(user_space: str, *recording: str) -> None:
    """Look at the tree of the current folder after a job, and print what it changed as JSON."""
    from rye.workspace.workspace import Workspace

    os.environ["USER_SPACE"] = user_space
    with Workspace(os.getcwd()) as ws:
        print(json.dumps(fields(end(ws, Recording(*recording)))))  # noqa: T201 - read by the job's supervisor


def end(ws: Workspace, recording: Recording) -> RecordedChanges:
    """Look at the tree after a command, and record what it changed. Failures are told in the result, never raised."""
    if not recording.token:
        return RecordedChanges(why_not=recording.why_not)
    git = ""
    try:
        with look_at(ws, quick=True, ending=recording.token, at_end=True) as look:
            git = moved(json.loads(recording.git), git_positions(ws, _repositories(look.folders)))
            entry = look.attribute(recording.token, git)
            known_tree.set_running(look.where, [one for one in look.running if one.token != recording.token])
            left_out = _said_of_root(ws) | look.said_of_left_out(int(recording.started))
    except OSError as err:
        return RecordedChanges(why_not=f"the state folder cannot be used ({err.strerror or err})")
    except WorkspaceError as err:
        return RecordedChanges(why_not=str(err))
    if entry is None:
        return RecordedChanges(None, (), left_out, (), git)
    return RecordedChanges(entry.id, entry.files or (), left_out, entry.shared, git)


def _said_of_root(ws: Workspace) -> dict[str, str]:
    """Return what to say where another folder lies in the project's place now: what is in it belongs to no look."""
    with suppress(OSError):
        info = os.stat(ws.root)
        if (info.st_dev, info.st_ino) == ws.identity:
            return {}
    return {".": "the project's folder was moved or replaced; what lies in its place now is not recorded"}


def drop(ws: Workspace, recording: Recording) -> None:
    """Forget a command that was not started."""
    if recording.token:
        with suppress(OSError, WorkspaceError), known_tree.locked(ws.fd, at_end=True) as where:
            known_tree.set_running(where, [one for one in known_tree.running(where) if one.token != recording.token])


@contextmanager
def beside_commands(ws: Workspace, edits: Sequence[tuple[Entry, bytes | None]]) -> Iterator[None]:
    """Run an edit of ours: what running commands changed until now is recorded first, and the edit is not taken for theirs.

    The contents that it brings are stored: where a command changes one before the next look, that is what it was before.
    """
    with suppress(OSError, TreeTooLargeError), look_at(ws) as look:
        # A command that is at work on a file may leave it as it was: that is a change, too, and comes before the edit.
        for seen in look.and_later():
            if seen.saw(one for entry, _ in edits for one in entry.changes):
                break
        for _, data in edits:
            if data is not None and len(data) <= context.settings().number("record.max_file_bytes"):
                look.contents.put(data)
        look.contents.save()
    try:
        yield
    finally:
        with suppress(OSError, WorkspaceError), look_at(ws, at_end=True) as look:
            look.attribute()


def catch_up(ws: Workspace, *, lost_only: bool = False) -> None:
    """Record what was changed since the last look, before the record is shown or used.

    Not while a command runs, whose changes would become several; nor where none was recorded yet: the first look takes long.
    With `lost_only` a look is made only where a command was killed without one, or one may have written something unseen (see
    `rye.snapshots.watch`): what changed until now is put down to it.
    """
    if not known_tree.is_known(ws.fd) or not context.settings().get("record.commands"):
        return
    # The record is shown all the same where it cannot be brought up to date, as beside an undo that cannot be finished.
    with suppress(OSError, WorkspaceError):
        running = known_tree.running(known_tree.folder(ws.fd))
        known_watch = watch.known(os.fstat(ws.fd))
        is_owed = known_watch is not None and known_watch.owed is not None
        if any(_is_alive(ws, one) for one in running) or (lost_only and not running and not is_owed):
            return
        # First what the kernel tells of, which nobody did unseen.
        for quick in (True, False) if is_owed else (True,):
            with look_at(ws, quick=quick) as look:
                if not any(_is_alive(ws, one) for one in look.running):
                    look.attribute(owed=not quick)


def _is_alive(ws: Workspace, command: Running) -> bool:
    """Tell whether the process lives that will look when a command ends."""
    return running_commands.is_alive(ws.fd, command.token)


def settle_undo(ws: Workspace) -> list[str]:
    """Finish an undo of a command's changes that was cut off; return what became of it. One that is under way is waited for."""
    try:
        where = known_tree.folder(ws.fd)
        if not tree_undo_steps.is_pending(where):
            return []
        with known_tree.locked(ws.fd) as where, Contents(where) as contents:
            return tree_undo_steps.recover(ws, where, contents)
    except (OSError, WorkspaceError) as err:
        return [f"An undo that was cut off could not be finished: {err}"]


def is_of_running(ws: Workspace, entry: Entry) -> bool:
    """Tell whether a command that still runs made a change."""
    return any(
        (one.tool, one.about) == (entry.tool, entry.about) and one.started <= entry.time and _is_alive(ws, one)
        for one in known_tree.running(known_tree.folder(ws.fd))
    )


class Look:
    """One look at the tree; the caller holds its lock.

    Attributes:
        changes: what differs from the look before.
        folders: the tree as it is.
    """

    def __init__(self, ws: Workspace, where: Path, contents: Contents, *, quick: bool = False, ending: str = "") -> None:
        self._ws, self.where, self.contents, self._ending = ws, where, contents, ending
        self._began = time.monotonic()
        self.known = known_tree.load(where)
        self.running = known_tree.running(where)
        walk = self._walk(quick=quick)
        if walk.short and self.known is not None:
            # Older changes make room for these. The first look has nothing older.
            self._bound([self.known.folders, walk.folders], walk.short)
            walk = self._walk(quick=quick)
        self.left_out = walk.left_out
        self._is_whole, self._gone = walk.is_whole, walk.gone
        self.folders = walk.folders
        self._begun = [path for path in walk.turned if not is_passed(walk.folders[path])]
        # The first look finds everything new, and nothing changed.
        self.changes = [] if self.known is None else walk.changes
        self._is_same = self.known is not None and self.folders == self.known.folders and not walk.changes

    def _walk(self, *, quick: bool) -> Walk:
        settings = context.settings()
        skipped = snapshots_tree.SKIPPED | {*settings.texts("record.skip")}
        folders: Folders = {} if self.known is None else self.known.folders
        room = settings.number("record.max_bytes") // (2 if self.known is None else 1)
        self._watch = watch.of_project(self._ws.fd, frozenset(skipped))
        made = partial(project_mounts.made_names, self._ws.real)
        scope = Scope(settings.number("record.max_file_bytes"), room, frozenset(skipped), made)
        beside = any(one.token != self._ending for one in self.running)
        # Between two commands there is nobody who would hide something, and our own edits make names that go again.
        wary = bool(self._ending)
        # Of a mapping the kernel tells when it goes. What was written so before a command begins must not be found at its end.
        quick = quick and (wary or not beside)
        walk = Walk(folders, self.contents, scope, self._watch, quick=quick, beside=beside, wary=wary)
        walk.run(self._ws.fd)
        return walk

    def and_later(self) -> Iterator[Look]:
        """Yield this look, and later ones under the same lock: what changed until each is recorded as what it is.

        For whoever changes files beside a command, which may write them meanwhile: that is its change, and comes first.
        """
        for number in range(_MOST_LOOKS):
            look = Look(self._ws, self.where, self.contents) if number else self
            look.attribute()
            yield look

    def saw(self, changes: Iterable[Change]) -> bool:
        """Tell whether files that changes begin with are as this look found them, or nothing runs that could have written."""
        return not self.running or all(self._saw(one.path, one.before) for one in changes)

    def _saw(self, path: str, now: State | None) -> bool:
        folder, _, name = path.rpartition("/")
        marks = self.folders.get(folder)
        if marks is None or is_passed(marks) or (now is not None and now.kind != "file"):
            return True
        mark = marks.get(name)
        found = None if mark is None else state_of(mark)
        is_unstored = found is not None and now is not None and found.value is None
        return is_unstored or fits(found, now)

    def said_of_left_out(self, since: int) -> dict[str, str]:
        """Return what changed and is not recorded, path -> why; `since` is the command's start by the clock of files (ns)."""
        said = dict(self.left_out)
        for one in self.changes:
            if any(state is not None and state.kind == "file" and state.value is None for state in one[1:]):
                said.setdefault(one.path, "what it held before was not recorded")
        said |= dict.fromkeys(self._begun, _BEGUN)
        own = (".git", ".ragix")
        there = [path for path, marks in self.folders.items() if is_passed(marks)]
        passed, gone = ([path for path in paths if os.path.basename(path) not in own] for paths in (there, self._gone))
        more = passed_over.said(self._ws.fd, passed, gone, since) if passed or gone else {}
        return said | {path: why for path, why in more.items() if path not in said}

    def attribute(self, token: str = "", git: str = "", *, owed: bool = False) -> Entry | None:
        """Record what was found but for what our own tools recorded, and store the tree.

        Args:
            token: the command that ends; empty: none does.
            git: how that command moved the repository, in words.
            owed: where no command runs, the latest one made it, unseen; else someone else.

        Returns:
            The entry that was made, None where nothing changed.
        """
        if self._is_same and self.known is not None and self.known.newest == newest_entry(self._ws):
            known_tree.remember(self.where, self.known)
            self._settle(self.known.folders)
            return None
        # The first look has nothing to compare with.
        own = None if self.known is None else OwnEdits(self._ws, self.known.newest)
        rest = [] if own is None else own.without(self.changes, self.folders, self.contents)
        entry = changed(self._entry(rest, token, owed=owed), git=git) if rest else None
        self.contents.save()
        if entry is not None:
            history.put(history.folder(self._ws), [entry], durably=True)
        now = Known(self.folders, entry.id if entry is not None else newest_entry(self._ws))
        known_tree.store(self.where, self.known, now)
        self._settle(now.folders)
        if self.contents.disk_size() > context.settings().number("record.max_bytes"):
            self._bound([self.folders], 0)
        return entry

    def _settle(self, folders: Folders) -> None:
        self._watch.settle(folders)
        self._watch.looked = self._began
        ended = next((one for one in self.running if one.token == self._ending), None)
        self._watch.owed = None if self._is_whole else ended or self._watch.owed

    def _entry(self, changes: list[Change], token: str, *, owed: bool) -> Entry:
        """Return the entry for changes, put down to the command that ends, to those that run, or to someone else."""
        commands, latest = sorted(self.running, key=lambda one: (one.token != token, one.started)), self._watch.owed
        # What one that is over has written unseen is found by a look at everything, also beside one that began before it.
        if latest and (any(one.started < latest.started for one in commands) if commands else owed) and self._is_whole:
            commands.append(latest)
        first = commands[0] if commands else None
        tool = first.tool if first is not None else SOMEONE_ELSE
        entry = journal.new_entry(self._ws, tool, printable(changes[0].path), None, None, "utf-8", [])
        dead = first is not None and token == "" and not _is_alive(self._ws, first)
        return changed(
            entry,
            # The look may be made by a named call that changed none of this.
            key="",
            files=changes,
            actor=first.actor if first is not None else "",
            about=f"{first.about}{f' [{_CUT_OFF}]' if dead else ''}" if first is not None else "",
            shared=[one.about for one in commands[1:][:_SHARES]],
        )

    def _bound(self, trees: Sequence[Folders], wanted: int) -> None:
        """Drop contents that nothing needs, and the oldest changes with theirs, until the rest leaves room.

        Args:
            trees: whose files must stay.
            wanted: room to make for what comes (bytes): at most half of all.
        """
        most = context.settings().number("record.max_bytes")
        limit = self.contents.limit(most)
        # On a full disk two bytes make room for one.
        most = limit - min(wanted if limit == most else 2 * wanted, limit // 2)
        sizes = self.contents.sizes()
        files = (state_of(mark) for folders in trees for _, mark in snapshots_tree.entries(folders))
        needed = {bytes.fromhex(one.value) for one in files if one is not None and one.kind == "file" and one.value}
        room = most * _KEEP_SHARE - sum(sizes.get(one, 0) for one in needed)
        for path in sorted(history.folder(self._ws).glob("*.json"), reverse=True):
            entry = entries.load(path)
            digests = set(_digests(entry)) - needed if entry is not None else set()
            room -= sum(sizes.get(one, 0) for one in digests)
            if room >= 0 or not digests:
                needed |= digests
            else:
                # Newest first: what does not fit any more is older than all that does.
                path.unlink(missing_ok=True)
        self.contents.keep_only(needed)


def _digests(entry: Entry) -> Iterator[bytes]:
    for change in entry.files or ():
        for state in change[1:]:
            if state is not None and state.kind == "file" and state.value is not None:
                yield bytes.fromhex(state.value)


@contextmanager
def look_at(
    ws: Workspace, *, quick: bool = False, ending: str = "", at_end: bool = False, beside: Collection[bytes] = ()
) -> Iterator[Look]:
    """Hold the project's tree and look at it; what was cut off before is finished first. Raises OSError, TooLargeError.

    Errors else, and `at_end`, as `known_tree.locked`.

    A `quick` look goes by what the kernel told of changes since the last one (see `rye.snapshots.watch`), unless a command
    runs and none ends. `ending` is one that is over: only others write on. `beside` are paths whose locks the caller holds.
    """
    with ExitStack() as held:
        for _ in range(_MOST_RECOVERIES):
            held.close()
            # An edit that was cut off has an entry of its own, and would count as found here, too. Before the tree is held:
            # recovery waits for the locks of files, and an edit has its file locked when it waits for the tree. A command that
            # its caller ended, or whose time is up, is looked at all the same.
            with suppress(OSError, RyeError):
                recovery.recover(ws, patience=recovery.WAIT_SECONDS, beside=beside)
            where = held.enter_context(known_tree.locked(ws.fd, at_end=at_end))
            # While it was waited for, an edit may have been killed: none is at work now.
            if not recovery.is_left(ws):
                break
        contents = held.enter_context(Contents(where))
        tree_undo_steps.recover(ws, where, contents)
        look = Look(ws, where, contents, quick=quick, ending=ending)
        # A command whose process was killed without a look ran until now.
        yield look
        tokens = {one.token for one in look.running if not _is_alive(ws, one)}
        if tokens:
            known_tree.set_running(where, [one for one in known_tree.running(where) if one.token not in tokens])


def newest_entry(ws: Workspace) -> str:
    """Return the id of the newest entry; empty where there is none."""
    return next((row.id for row in history.History(ws)), "")


# --- git ---


def git_positions(ws: Workspace, folders: Sequence[str] = ()) -> dict[str, str]:
    """Return where the repositories of the root (`""`) and of folders are, as `git_position` says it; of those that are one."""
    found = {path: git_position(ws, path) for path in ("", *folders)}
    return {path: position for path, position in found.items() if position}


def moved(before: dict[str, str], after: dict[str, str]) -> str:
    """Return how repositories moved, in words: `main at … -> main at …; FOLDER: no repository -> …`; empty where none did."""
    out = []
    for path in sorted({*before, *after}):
        was, now = (positions.get(path, "no repository") for positions in (before, after))
        if was != now:
            out.append(f"{printable(path)}: {was} -> {now}" if path else f"{was} -> {now}")
    return "; ".join(out)


def git_position(ws: Workspace, folder: str = "", *, whole: bool = False) -> str:
    """Return where a folder's repository is, in words: the branch, its commit and the last stash; empty without one.

    Commits are shortened unless `whole`. No link is followed, and nothing is opened outside the project but the repository of
    which the project is a linked worktree.
    """
    linked = None if folder else hidden_paths.linked_repository(ws.real)
    top, where = linked or (ws.real, os.path.join(ws.real, folder, ".git"))
    with suppress(OSError, ValueError), closing(os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        files = _GitFiles(top, fd)
        if not linked:
            with suppress(OSError):
                where = os.path.join(ws.real, folder, files.line(where).removeprefix("gitdir:").strip())
        head = files.line(f"{where}/HEAD")
        branch = head.removeprefix("ref: ") if head.startswith("ref: ") else ""
        # Checked, because a command may have put anything in their place.
        if branch and not _BRANCH.fullmatch(branch):
            return ""
        commit = _commit(files.reference(where, branch) if branch else head)
        stash = _commit(files.reference(where, "refs/stash"))
        name, shown = branch.removeprefix("refs/heads/") or "detached HEAD", 64 if whole else 12
        return f"{name} at {commit[:shown] or 'no commit'}{f', stash {stash[:shown]}' if stash else ''}"
    return ""


def _commit(text: str) -> str:
    return text if _COMMIT.fullmatch(text) else ""


class _GitFiles(NamedTuple):
    """The files of a repository, read by absolute paths below a folder that is open, through no link."""

    top: str
    top_fd: int

    def reference(self, where: str, name: str) -> str:
        folder = where
        with suppress(OSError):
            folder = os.path.normpath(os.path.join(where, self.line(f"{where}/commondir")))
        for one in dict.fromkeys((where, folder)):
            with suppress(OSError):
                return self.line(f"{one}/{name}")
        with suppress(OSError):
            for line in self._text(f"{folder}/packed-refs", _PACKED_REFS_MAX).split("\n"):
                if line.endswith(f" {name}"):
                    return line.split(" ", 1)[0]
        return ""

    def line(self, path: str) -> str:
        return self._text(path, 4096).strip()

    def _text(self, path: str, most: int) -> str:
        # Exact, as no link is followed; what leads out of the folder is not opened.
        below = os.path.normpath(path).removeprefix(f"{self.top.rstrip('/')}/")
        if below.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        # A command may have put a named pipe or a device there, which would block, or never end.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        fd = beneath.open_unlinked(self.top_fd, below.split("/"), flags)
        return atomic.read_open(fd, most, path)[0].decode("utf-8", "replace")


def fields(recorded: RecordedChanges) -> dict[str, Any]:
    """Return what a result says of the record: `change_id`, `changed` (at most 50 paths), `not_recorded`, `git`."""
    out: dict[str, Any] = {}
    if recorded.entry_id is not None:
        paths = [printable(one.path) for one in recorded.changes]
        out |= {"change_id": recorded.entry_id, "changed": paths[:_SHOWN], "changed_count": len(paths)}
    if recorded.shared:
        out["changed_beside"] = list(recorded.shared)
    if recorded.left_out:
        out["not_recorded"] = dict(list(recorded.left_out.items())[:_SHOWN])
    if recorded.why_not:
        out["not_recorded"] = {".": recorded.why_not}
    if recorded.git:
        out["git"] = recorded.git
    return out


_SHOWN: Final = 50
