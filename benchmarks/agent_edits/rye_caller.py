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

from changes import find_words, joined, lines_of, named

import rye
from hunks import Hunk, hunks, quoted
from rye.agents.model_text import Sessions
from rye.call.context import CallOptions
from rye.mcp_server.calls import REPEATABLE_BUDGET
from rye.toolkit import view_lines

if TYPE_CHECKING:
    from pathlib import Path

_ROW = re.compile(r"(?:(\d+[g-z]*)\t|\d*:? ?\[LID:([0-9a-z]+)\] ?)(.*)", re.DOTALL)
_VERSION = re.compile(r"^\[version (\w+)(?:; [^\]]*)?\]$", re.MULTILINE)
_RECEIPT = re.compile(r"^\S[^\t]* -> (.+)$", re.MULTILINE)
_WINDOW = re.compile(r":\d+(-\d+)?$")
_NEXT = re.compile(r"Call read\(.*offset=(\d+).*\) to see more")
_LETTERS = "ghjkmnpqrstuvwxyz"
_CLOSE = 1
_NEAR = 20
_FEW = 60
_MOSTLY = 0.7
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
        answer = Sessions().answer(rye.execute(_TOOLS + name, arguments, project_path=self.root, options=options))
        made = Call(name, arguments, answer.text, answer.is_error)
        self.calls.append(made)
        if path := _WINDOW.sub("", arguments.get("file_path", "")):
            self._learn(path, answer.text)
            self._digests[path] = self._digest(path)
        return made

    def _learn(self, path: str, text: str) -> None:
        known = self.known.setdefault(path, {})
        for line in text.split("\n"):
            if found := _ROW.fullmatch(line):
                known[found[1] or found[2]] = found[3]
        if found := _VERSION.findall(text):
            self.versions[path] = found[-1]

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
            last = start + count - 1
            window = f":{start}-{last}" if last < total else f":{start}" if start > 1 else ""
            made = self.call("read", file_path=f"{path}{window}")
            if made.is_error:
                return False
            more = _NEXT.search(made.text)
            reached = int(more[1]) if more else start + count
            start, count = max(reached, start + 1), start + count - max(reached, start + 1)
        return True

    def write(self, path: str, content: str) -> bool:
        """Write a whole file; return whether it has that content now.

        The answer names the new lines by a range. A model does not count lines, so it knows none of these addresses by it.
        """
        return not self.call("write", file_path=path, content=content).is_error

    def read_again(self, path: str, start: int, count: int, total: int) -> bool:
        """Read a window, but for what was shown since the last compaction.

        Where most of it was shown, the model asks for what changed since, unless only its own edits touched the file; then it
        reads what it has still not seen, from the first such line to the last, in two parts where much that it knows is between.
        """
        unseen = self._unseen(path, start, count)
        same = self._digests.get(path) == self._digest(path)
        if unseen is None or len(unseen) > _MOSTLY * count or (count < _FEW and (unseen or not same)):
            return self.read(path, start, count, total)
        if not same or not unseen:
            if self.call("read", file_path=path, changes_since=self.versions[path]).is_error:
                return False
            unseen = self._unseen(path, start, count) or []
        return self._read_parts(path, [(start + first, start + last) for first, last in _runs(unseen)])

    def _read_parts(self, path: str, windows: list[tuple[int, int]]) -> bool:
        """Read windows of a file, from 1 and with their last lines, in one call."""
        if not windows:
            return True
        first, *others = [f":{start}-{last}" for start, last in windows]
        more: dict[str, Any] = {"more": others} if others else {}
        return not self.call("read", file_path=f"{path}{first}", **more).is_error

    def _unseen(self, path: str, start: int, count: int) -> list[int] | None:
        """Return which lines of a window no answer showed, from 0; None where nothing of the file was shown."""
        if path not in self.versions:
            return None
        shown = self.known.get(path, {})
        window = self.rows(path)[start - 1 : start - 1 + count]
        return [at for at, (address, text) in enumerate(window) if text and address not in shown]

    def _digest(self, path: str) -> bytes:
        file = self.root / path
        return sha256(file.read_bytes()).digest() if file.exists() else b""

    def edit(self, path: str, before: str, after: str) -> bool:
        """Change a file; return whether the tool said that it did.

        Lines that no answer showed are changed by quoting them, as the recorded model did: it knew them from elsewhere.
        """
        rows, old, new = self.rows(path), lines_of(before), lines_of(after)
        if [text for _, text in rows] != old:
            return False
        # An empty line is shown without its address.
        wide = joined(named(hunks(old, new), len(rows), lambda at: bool(rows[at][1])), _CLOSE)
        shown = self.known.get(path, {})
        ends = before.endswith("\n") or not before, after.endswith("\n") or not after
        # Where the last lines go, the line before keeps its newline.
        cut = not ends[1] and bool(wide) and wide[-1].stop == len(rows) and wide[-1].new_start == wide[-1].new_stop
        more: dict[str, Any] = {"final_newline": "add" if ends[1] else "remove"} if ends[0] != ends[1] or cut else {}
        if all(_is_seen(hunk, rows, shown) for hunk in wide):
            changes: list[Any] = [_change(hunk, new, rows) for hunk in wide]
        else:
            changes, more = [find_words(quote, text) for quote, text, _ in quoted(before, after)], {}
        made = self.call("edit_lines", file_path=path, changes=changes, **more)
        for hunk in wide:
            for address, _ in rows[hunk.start : hunk.stop]:
                self.known.get(path, {}).pop(address, None)
        if not made.is_error:
            self._learn(path, made.text)
            self._take_receipt(path, made.text)
        return not made.is_error

    def _take_receipt(self, path: str, text: str) -> None:
        """Remember which addresses the lines have that were sent: the receipt names them in their order."""
        named = {name for row in _RECEIPT.findall(text) for part in row.split(", ") for name in _spelled_out(part)}
        self.known.setdefault(path, {}).update((address, line) for address, line in self.rows(path) if address in named)


def _is_seen(hunk: Hunk, rows: list[tuple[str, str]], shown: dict[str, str]) -> bool:
    """Tell whether answers showed the lines that a change names, as they are."""
    first, last = hunk.start, hunk.stop
    if first == last:
        # What an insertion stands behind, or else before.
        behind = hunk.start > 0 and bool(rows[hunk.start - 1][1])
        first, last = (hunk.start - 1, hunk.start) if behind else (hunk.start, min(hunk.start + 1, len(rows)))
    return all(not text or _same(shown.get(address), text) for address, text in rows[first:last])


def _spelled_out(part: str) -> list[str]:
    """Return the addresses of `12` or `12-15`."""
    first, _, last = part.partition("-")
    digits = first.rstrip(_LETTERS)
    stop = int(last.rstrip(_LETTERS) or digits)
    return [f"{number}{first[len(digits) :]}" for number in range(int(digits), stop + 1)]


def _runs(positions: list[int]) -> list[tuple[int, int]]:
    """Return the first and last of the runs that positions make, where those that stand near are one run."""
    out: list[tuple[int, int]] = []
    for at in positions:
        if out and at - out[-1][1] <= _NEAR:
            out[-1] = (out[-1][0], at)
        else:
            out.append((at, at))
    return out


def _same(shown: str | None, text: str) -> bool:
    if shown is None or shown == text:
        return shown is not None
    # A long line is shown in part.
    return text.startswith(shown[:-1]) if shown.endswith("…") else len(text) > 1_000 and shown[:500] == text[:500]


def _change(hunk: Hunk, new: list[str], rows: list[tuple[str, str]]) -> str | dict[str, Any]:
    """Return the change of one hunk in the fewest words: a string, or exact text in one line where that is shorter."""
    lines = new[hunk.new_start : hunk.new_stop]
    if hunk.start == hunk.stop:
        if hunk.start and rows[hunk.start - 1][1]:
            place = f"{rows[hunk.start - 1][0]}+"
        elif hunk.start == len(rows):
            place = "end+"
        else:
            place = f"+{rows[hunk.start][0]}" if hunk.start else "+start"
        return "\n".join([f"{place}|{lines[0]}", *lines[1:]])
    first, last = rows[hunk.start][0], rows[hunk.stop - 1][0]
    where = first if first == last else f"{first}-{last}"
    if not lines:
        return f"{where} delete"
    whole = "\n".join([f"{where}|{lines[0]}", *lines[1:]])
    part = _part(rows[hunk.start][1], lines[0]) if first == last and len(lines) == 1 else None
    if part is not None:
        found = find_words(*part, first)
        if len(str(found)) < len(whole):
            return found
    return whole


def _part(old: str, new: str) -> tuple[str, str] | None:
    """Return the words in which two lines differ, where they stand once in the old one."""
    head = _same_start(old, new)
    tail = _same_start(old[head:][::-1], new[head:][::-1])
    while head and not old[head - 1].isspace():
        head -= 1
    while tail and not old[len(old) - tail].isspace():
        tail -= 1
    find = old[head : len(old) - tail]
    return (find, new[head : len(new) - tail]) if find and old.count(find) == 1 else None


def _same_start(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
