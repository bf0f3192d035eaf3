"""Recorded sessions of coding agents, read in place: reads and edits of files, in order, as each was asked and answered.

A path is a transcript of Claude Code (`*.jsonl`), a folder with some, or a git repository whose branches with `entire` in their
names hold some. Nothing is copied out of them but into memory.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bases import History, is_repository, patched, structured

if TYPE_CHECKING:
    from pathlib import Path

_FAILURES = (
    ("not found", "String to replace not found"),
    ("ambiguous", "matches of the string to replace"),
    ("modified since read", "modified since read"),
    ("modified since read", "unexpectedly modified"),
    ("not read yet", "not been read yet"),
    ("no change", "No changes to make"),
    ("no such file", "does not exist"),
    ("sibling failed", "Sibling tool call errored"),
    ("user said no", "user doesn't want"),
)


@dataclass
class Read:
    """A read that succeeded: lines `start` (from 1) on, of `total` lines."""

    path: str
    arguments: dict[str, Any]
    answer: str
    lines: list[str]
    start: int
    total: int


@dataclass
class Edit:
    """An edit that succeeded: the whole file before and after; `steps` are its (old, new, all) replacements."""

    path: str
    arguments: dict[str, Any]
    answer: str
    before: str
    after: str
    steps: list[tuple[str, str, bool]]


@dataclass
class Write:
    """A whole file that was written."""

    path: str
    content: str


@dataclass
class Failure:
    """An edit that was refused, and why."""

    path: str
    arguments: dict[str, Any]
    answer: str
    why: str


@dataclass
class Compaction:
    """From here on the model remembers nothing that it was shown before."""


Event = Read | Edit | Write | Failure | Compaction


@dataclass
class Session:
    """One context of one model: its events in order."""

    source: str
    name: str
    root: str = ""
    events: list[Event] = field(default_factory=list)
    unusable: int = 0

    def relative(self, path: str) -> str:
        """Return a recorded path as a model in the project's folder would write it."""
        path = path.replace("\\", "/")
        inside = self.root and path.startswith(self.root.rstrip("/") + "/")
        return path[len(self.root.rstrip("/")) + 1 :] if inside else "/".join(path.strip("/").split("/")[-3:])


def sessions(paths: Iterable[Path]) -> Iterator[Session]:
    """Yield the sessions of all recordings that have a read or an edit, each once."""
    for path in paths:
        entries: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        history = History(path) if is_repository(path) else None
        for text in transcripts(path):
            for entry in _entries(text):
                # A checkpoint repeats what the one before it had.
                context = (str(entry.get("sessionId")), str(entry.get("agentId", "")))
                entries.setdefault(context, {}).setdefault(str(entry.get("uuid")), entry)
        for (name, agent), found in entries.items():
            ordered = sorted(found.values(), key=lambda entry: str(entry.get("timestamp", "")))
            root = next((str(entry["cwd"]) for entry in ordered if entry.get("cwd")), "").replace("\\", "/")
            session = Session(source_of(path), f"{name}{agent and '/'}{agent}", root)
            _Filling(session, history).fill(ordered)
            if any(isinstance(event, Read | Edit) for event in session.events):
                yield session


def source_of(path: Path) -> str:
    """Return the name of a recording: its file's, or its repository's."""
    return path.parent.name if path.name in ("repo", ".git") else path.name


def transcripts(path: Path) -> Iterator[bytes]:
    """Yield each transcript (`*.jsonl`) at a path: a file, those in a folder, or those on branches `entire/…` of a repository."""
    if path.is_file():
        yield path.read_bytes()
    elif is_repository(path):
        yield from _from_git(History(path))
    elif path.is_dir():
        for file in sorted(path.rglob("*.jsonl")):
            yield file.read_bytes()
    else:
        print(f"{path}: no file, folder or git repository; left out.", file=sys.stderr)


def _from_git(history: History) -> Iterator[bytes]:
    blobs: dict[str, None] = {}
    for line in history.git("for-each-ref", "--format=%(refname)").decode().split():
        if "entire" not in line:
            continue
        for row in history.git("ls-tree", "-r", "-l", line).decode("utf-8", "replace").splitlines():
            facts, _, name = row.partition("\t")
            _, _, blob, size = facts.split()
            # A clone without all of its objects lists those that are absent without a size.
            if name.endswith(".jsonl") and size.isdigit():
                blobs[blob] = None
    for blob in blobs:
        yield history.git("cat-file", "blob", blob)


def _entries(text: bytes) -> Iterator[dict[str, Any]]:
    for line in text.split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("uuid") and entry.get("type") in ("assistant", "user", "system"):
            yield entry


@dataclass
class _Filling:
    """Turns the entries of a transcript into the events of a session; knows what files held at last."""

    session: Session
    history: History | None
    known: dict[str, list[str]] = field(default_factory=dict)

    def fill(self, entries: list[dict[str, Any]]) -> None:
        asked: dict[str, tuple[str, dict[str, Any]]] = {}
        for entry in entries:
            if entry.get("subtype") == "compact_boundary" or entry.get("isCompactSummary"):
                self.session.events.append(Compaction())
            message = entry.get("message")
            parts = message.get("content") if isinstance(message, dict) else None
            for part in parts if isinstance(parts, list) else ():
                if not isinstance(part, dict):
                    continue
                if part.get("type") == "tool_use" and isinstance(part.get("input"), dict):
                    asked[str(part.get("id"))] = (str(part.get("name")), part["input"])
                elif part.get("type") == "tool_result" and str(part.get("tool_use_id")) in asked:
                    name, arguments = asked[str(part["tool_use_id"])]
                    self._add(name, arguments, part, entry.get("toolUseResult"))

    def _add(self, name: str, arguments: dict[str, Any], part: dict[str, Any], result: object) -> None:
        answer, session = _text(part.get("content")), self.session
        path = str(arguments.get("file_path") or "")
        if name in ("Edit", "MultiEdit") and (part.get("is_error") or not isinstance(result, dict)):
            why = next((why for why, mark in _FAILURES if mark in answer), "other")
            session.events.append(Failure(path, arguments, answer, why))
        elif not isinstance(result, dict) or part.get("is_error"):
            return
        elif name == "Read" and isinstance(file := result.get("file"), dict) and isinstance(file.get("content"), str):
            lines = file["content"].split("\n")
            start, total = int(file.get("startLine") or 1), int(file.get("totalLines") or len(lines))
            session.events.append(Read(path, arguments, answer, lines, start, max(total, start + len(lines) - 1)))
            if start == 1 and len(lines) >= total:
                self.known[path] = [file["content"], f"{file['content']}\n"]
        elif name in ("Edit", "MultiEdit"):
            edit = self._edit(path, arguments, answer, result)
            session.unusable += edit is None
            session.events += [edit] if edit is not None and edit.after != edit.before else []
            if edit is not None:
                self.known[path] = [edit.after]
        elif name == "Write" and isinstance(result.get("content"), str):
            session.events.append(Write(path, result["content"]))
            self.known[path] = [result["content"]]

    def _edit(self, path: str, arguments: dict[str, Any], answer: str, result: dict[str, Any]) -> Edit | None:
        """Return an edit with the file before and after it; None where these cannot be told from the recording."""
        before = result.get("originalFile", result.get("originalFileContents"))
        steps = [
            (
                str(one.get("oldString", one.get("old_string", ""))),
                str(one.get("newString", one.get("new_string", ""))),
                _all(one),
            )
            for one in result.get("edits", [result])
        ]
        if isinstance(before, str):
            after = _stepped(before, steps)
            return None if after is None else Edit(path, arguments, answer, before, after, steps)
        # Later versions leave the file out of the record: one that fits the recorded diff at its lines stands for it.
        patch = result.get("structuredPatch")
        if not isinstance(patch, list) or not patch:
            return None
        hunks = structured(patch)
        history = self.history.texts(self.session.relative(path)) if self.history else ()
        for text in itertools.chain(self.known.get(path, ()), history):
            after = patched(text, hunks)
            if after is not None and after == _stepped(text, steps):
                return Edit(path, arguments, answer, text, after, steps)
        return None


def _stepped(text: str, steps: list[tuple[str, str, bool]]) -> str | None:
    """Return a text after replacements, None where one has nothing to replace."""
    found: str | None = text
    for old, new, every in steps:
        found = None if found is None else _replaced(found, old, new, every=every)
    return found


def _all(one: dict[str, Any]) -> bool:
    return bool(one.get("replaceAll", one.get("replace_all")))


def _replaced(text: str, old: str, new: str, *, every: bool) -> str | None:
    if not old:
        return new if not text else None
    if old not in text:
        return None
    # As Claude Code does it: a deletion takes the line's end along.
    if not new and not old.endswith("\n") and f"{old}\n" in text:
        old = f"{old}\n"
    return text.replace(old, new) if every else text.replace(old, new, 1)


def _text(content: object) -> str:
    """Return what a tool answered, as the model read it."""
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
