"""A scripted model that uses this project's tools: it knows what their answers showed it, and nothing else.

Its calls go the way of a client's: the defaults for agents, and the text that an MCP client shows its model. Before a change it
looks up which address each line has now, without showing the line to itself; it uses only addresses that an answer printed
beside that very text, and reads first where one is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from changes import Hunk, hunks, joined, lines_of, widened

import rye
from rye.agents.model_text import answer_of
from rye.call.context import CallOptions
from rye.mcp_server.results import REPEATABLE_BUDGET
from rye.toolkit import view_lines

if TYPE_CHECKING:
    from pathlib import Path

_ROW = re.compile(r"(?:(\d+[g-z]*)\t|\d*:? ?\[LID:([0-9a-z]+)\] ?)(.*)", re.DOTALL)
_VERSION = re.compile(r"\[(?:.*[ ;])?version (\S+?)[\];,. ]")
_NEXT = re.compile(r"Call read\(.*offset=(\d+).*\) to see more")
_CLOSE = 1
_TOOLS = "rye/file-system/"


class Call(NamedTuple):
    """A call as the model wrote it, and the text that it read."""

    name: str
    arguments: dict[str, Any]
    text: str
    is_error: bool


@dataclass
class RyeCaller:
    """One project, and what the model remembers of it."""

    root: Path
    known: dict[str, dict[str, str]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    _digests: dict[str, bytes] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget all that was shown."""
        self.known.clear()
        self.versions.clear()

    def call(self, name: str, **arguments: Any) -> Call:
        """Call a file tool as a model does."""
        options = CallOptions(REPEATABLE_BUDGET, actor="benchmark", agent_defaults=True)
        answer = answer_of(rye.execute(_TOOLS + name, arguments, project_path=self.root, options=options))
        made = Call(name, arguments, answer.text, answer.is_error)
        self.calls.append(made)
        if path := arguments.get("file_path"):
            self._learn(path, answer.text)
            self._digests[path] = self._digest(path)
        return made

    def _learn(self, path: str, text: str) -> None:
        known = self.known.setdefault(path, {})
        for line in text.split("\n"):
            if found := _ROW.fullmatch(line):
                known[found[1] or found[2]] = found[3]
        if found := _VERSION.search(text):
            self.versions[path] = found[1]

    def rows(self, path: str) -> list[tuple[str, str]]:
        """Return the address and text of each line as they are now; the model is shown nothing."""
        found = view_lines(
            str(self.root),
            path,
            lambda document: {"rows": [(row.short, row.text) for row in document.rows(0, document.count)]},
            None,
        )
        return list(found["rows"])

    def read(self, path: str, start: int, count: int, total: int) -> bool:
        """Read lines [start, start + count) from 1, by as many calls as it takes; return whether all succeeded."""
        while count > 0:
            window: dict[str, Any] = {"offset": start} if start > 1 else {}
            window |= {"limit": count} if start + count - 1 < total else {}
            made = self.call("read", file_path=path, **window)
            if made.is_error:
                return False
            more = _NEXT.search(made.text)
            reached = int(more[1]) if more else start + count
            start, count = max(reached, start + 1), start + count - max(reached, start + 1)
        return True

    def read_again(self, path: str, start: int, count: int, total: int) -> bool:
        """Read a window, but for what was shown since the last compaction.

        Where all of it was shown, the model asks only for what changed since. Where a part was shown, and nobody else changed
        the file since, it reads from the first to the last line that it has not seen.
        """
        version, shown = self.versions.get(path), self.known.get(path, {})
        same = self._digests.get(path) == self._digest(path)
        rows = self.rows(path) if version else []
        window = rows[start - 1 : start - 1 + count]
        unseen = [at for at, (address, text) in enumerate(window) if text and address not in shown]
        if window and not (unseen and not same) and len(unseen) < len(window):
            if not unseen:
                return not self.call("read", file_path=path, changes_since=version).is_error
            return self.read(path, start + unseen[0], unseen[-1] + 1 - unseen[0], total)
        return self.read(path, start, count, total)

    def _digest(self, path: str) -> bytes:
        return sha256((self.root / path).read_bytes()).digest()

    def edit(self, path: str, before: str, after: str) -> bool:
        """Change a file; return whether the tool said that it did."""
        rows, old, new = self.rows(path), lines_of(before), lines_of(after)
        if [text for _, text in rows] != old:
            return False
        found = hunks(old, new)
        self._see(path, rows, found)
        known = self.known.get(path, {})
        wide = [widened(hunk, len(rows), lambda at: rows[at][0] in known and bool(rows[at][1])) for hunk in found]
        found = joined(wide, _CLOSE)
        changes = [_change(hunk, new, rows) for hunk in found]
        ends = before.endswith("\n") or not before, after.endswith("\n") or not after
        more: dict[str, Any] = {} if ends[0] == ends[1] else {"final_newline": "add" if ends[1] else "remove"}
        made = self.call("edit_lines", file_path=path, changes=changes, **more)
        for hunk in found:
            for address, _ in rows[hunk.start : hunk.stop]:
                self.known.get(path, {}).pop(address, None)
        if not made.is_error:
            self._learn(path, made.text)
        return not made.is_error

    def _see(self, path: str, rows: list[tuple[str, str]], found: list[Hunk]) -> None:
        """Read the lines that a change names and no answer showed as they are."""
        for hunk in found:
            first, last = (hunk.start, hunk.stop) if hunk.start < hunk.stop else (max(hunk.start - 1, 0), hunk.start + 1)
            shown = self.known.get(path, {})
            unseen = [
                at
                for at in range(first, min(last, len(rows)))
                if rows[at][1] and not _same(shown.get(rows[at][0]), rows[at][1])
            ]
            if unseen:
                self.read(path, unseen[0] + 1, unseen[-1] + 1 - unseen[0], len(rows))


def _same(shown: str | None, text: str) -> bool:
    # A long line is shown in part.
    return shown is not None and (shown == text or (len(text) > 1_000 and shown[:500] == text[:500]))


def _change(hunk: Hunk, lines: list[str], rows: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the change of one hunk, in the objects that edit_lines takes."""
    new = lines[hunk.new_start : hunk.new_stop]
    # A last line that is empty has to be said: "a\\n" is one line.
    text = "\n".join(new) + ("\n" if new[-1:] == [""] else "")
    if hunk.start == hunk.stop:
        if hunk.start == len(rows):
            return {"after_line_id": "end", "new_content": text}
        if hunk.start and rows[hunk.start - 1][1]:
            return {"after_line_id": _name(rows[hunk.start - 1][0]), "new_content": text}
        return {"before_line_id": _name(rows[hunk.start][0]) if hunk.start else "start", "new_content": text}
    first, last = rows[hunk.start][0], rows[hunk.stop - 1][0]
    if first == last:
        return {"line_id": _name(first), "new_content": text}
    return {"start_line_id": _name(first), "end_line_id": _name(last), "new_content": text}


def _name(address: str) -> str | int:
    return int(address) if address.isdigit() and len(address) < 6 else address
