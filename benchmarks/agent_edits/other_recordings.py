"""Recorded edits of agents other than Claude Code: Codex, OpenCode and Gemini CLI, on branches `entire/…`.

Gemini CLI and OpenCode record a file before and after each edit. Codex records where a patch was applied: the file before it is
what earlier edits of the session left, or a version from the repository's history in which the patch fits at its lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bases import History, hunks_of, is_repository, patched
from recordings import Edit, Failure, Session, source_of, transcripts

if TYPE_CHECKING:
    from pathlib import Path


def sessions(path: Path) -> Iterator[Session]:
    """Yield one session for each of these agents that has edits at a path; each call is there once."""
    history = History(path) if is_repository(path) else None
    found = {name: Session(f"{source_of(path)}, {name}", name) for name in ("OpenCode", "Gemini CLI")}
    seen, codex = set[str](), dict[str, _Codex]()
    for text in transcripts(path):
        if whole := _object(text):
            _opencode(found["OpenCode"], whole, seen)
            continue
        entries = [entry for line in text.split(b"\n") if (entry := _object(line))]
        if any("toolCalls" in entry for entry in entries):
            _gemini(found["Gemini CLI"], entries, seen)
        elif name := _codex_session(entries):
            codex.setdefault(name, _Codex(Session(f"{source_of(path)}, Codex", name), history)).fill(entries)
    yield from (one for one in (*found.values(), *(each.session for each in codex.values())) if one.events or one.unusable)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _opencode(session: Session, whole: dict[str, Any], seen: set[str]) -> None:
    session.root = session.root or str(whole.get("info", {}).get("directory", ""))
    for message in whole.get("messages", ()):
        for part in message.get("parts", ()):
            state = part.get("state", {})
            if part.get("tool") not in ("apply_patch", "edit") or part.get("callID") in seen:
                continue
            seen.add(str(part.get("callID")))
            given, answer = state.get("input", {}), str(state.get("output", ""))
            if state.get("status") != "completed":
                session.events.append(Failure(str(given.get("filePath", "")), given, str(state.get("error", "")), "other"))
                continue
            metadata = state.get("metadata", {})
            one = metadata.get("filediff", {})
            files = metadata.get("files", [{"filePath": one.get("file"), **one}] if one else [])
            session.unusable += not files
            for file in files:
                path, before, after = str(file.get("filePath", "")), file.get("before"), file.get("after")
                _add(session, path, given, answer, before, after)


def _gemini(session: Session, entries: list[dict[str, Any]], seen: set[str]) -> None:
    for entry in entries:
        for call in entry.get("toolCalls") or ():
            if call.get("name") != "replace" or call.get("id") in seen:
                continue
            seen.add(str(call.get("id")))
            given, shown = call.get("args", {}), call.get("resultDisplay")
            path, answer = str(given.get("file_path", "")), json.dumps(call.get("result", ""))
            if call.get("status") != "success":
                why = "not found" if "0 occurrences" in answer else "other"
                session.events.append(Failure(path, given, answer, why))
            elif isinstance(shown, dict):
                _add(session, path, given, answer, shown.get("originalContent"), shown.get("newContent"))
            else:
                session.unusable += 1


def _add(session: Session, path: str, given: dict[str, Any], answer: str, before: object, after: object) -> None:
    if not isinstance(before, str) or not isinstance(after, str):
        session.unusable += 1
    elif before and after and before != after:
        # What makes or removes a file is no edit.
        session.events.append(Edit(path, given, answer, before, after, []))


def _codex_session(entries: list[dict[str, Any]]) -> str:
    return next((str(entry["payload"].get("id")) for entry in entries if entry.get("type") == "session_meta"), "")


class _Codex:
    """One session of Codex: patches in order, and what files held at last."""

    def __init__(self, session: Session, history: History | None) -> None:
        self.session, self.history = session, history
        self._known: dict[str, str] = {}
        self._seen = set[str]()
        self._asked: dict[str, str] = {}

    def fill(self, entries: list[dict[str, Any]]) -> None:
        """Add the edits of a transcript that no transcript before it had."""
        for entry in entries:
            payload = entry.get("payload")
            if not isinstance(payload, dict):
                continue
            if entry.get("type") == "session_meta":
                self.session.root = str(payload.get("cwd", ""))
            if payload.get("name") == "apply_patch":
                self._asked[str(payload.get("call_id"))] = str(payload.get("input", payload.get("arguments", "")))
            if payload.get("type") == "patch_apply_end" and payload.get("call_id") not in self._seen:
                self._seen.add(str(payload["call_id"]))
                self._applied(payload, {"input": self._asked.get(str(payload["call_id"]), "")})

    def _applied(self, payload: dict[str, Any], given: dict[str, Any]) -> None:
        answer = str(payload.get("stdout", "")) + str(payload.get("stderr", ""))
        if not payload.get("success"):
            self.session.events.append(Failure("", given, answer, "not found" if "find" in answer else "other"))
            return
        for path, change in payload.get("changes", {}).items():
            if change.get("type") == "add":
                self._known[path] = str(change.get("content", ""))
            elif change.get("type") == "update":
                self._updated(path, change, given, answer)

    def _updated(self, path: str, change: dict[str, Any], given: dict[str, Any], answer: str) -> None:
        hunks, relative = hunks_of(str(change.get("unified_diff", ""))), self.session.relative(path)
        for text in (
            *([self._known[path]] if path in self._known else []),
            *(self.history.texts(relative) if self.history else ()),
        ):
            after = patched(text, hunks)
            if after is not None:
                self._known[path] = after
                _add(self.session, path, given, answer, text, after)
                return
        self._known.pop(path, None)
        self.session.unusable += 1
