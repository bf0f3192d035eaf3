"""Edits of Aider, from chat histories (`*chat-history.md`, `.aider.chat.history.md`) in the repository that they are about.

A reply's SEARCH/REPLACE blocks count once Aider says that it applied them to a file and committed that: the file before is that of
the commit's parent. Where a block's text does not stand there exactly, Aider found it by other means, and it is not rebuilt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from bases import History, is_repository
from recordings import Edit, Failure, Session, source_of

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK = re.compile(
    r"^(?P<path>[^\s`]\S*)\n+```\w*\n<<<<<<< SEARCH\n(?P<old>.*?)^=======\n(?P<new>.*?)^>>>>>>> REPLACE$",
    re.MULTILINE | re.DOTALL,
)
_APPLIED = re.compile(r"^> Applied edit to (\S+)\s*$", re.MULTILINE)
_COMMIT = re.compile(r"^> Commit ([0-9a-f]{7,40}) ", re.MULTILINE)
_MISSED = re.compile(r"SEARCH/REPLACE block(?:s)? failed to match")
_TURN = re.compile(r"^#### ", re.MULTILINE)


class _Block(NamedTuple):
    path: str
    old: str
    new: str


def sessions(path: Path) -> Iterator[Session]:
    """Yield one session for each chat history at the newest commit of a repository."""
    if not is_repository(path):
        return
    history = History(path)
    for name in history.files():
        if name.endswith(("chat-history.md", ".aider.chat.history.md")):
            session = Session(f"{source_of(path)}, Aider", name)
            # A request, the reply to it, and what Aider says it did with that.
            for turn in _TURN.split(history.blob(f"HEAD:{name}") or ""):
                _add(session, turn, history)
            yield session


def _add(session: Session, turn: str, history: History) -> None:
    blocks = [_Block(*found) for found in _BLOCK.findall(turn)]
    missed = _MISSED.search(turn)
    if blocks and missed:
        session.events.append(Failure(blocks[0].path, {}, missed[0], "not found"))
    commit = _COMMIT.search(turn, found.end()) if (found := _APPLIED.search(turn)) else None
    for path in dict.fromkeys(_APPLIED.findall(turn)):
        own = [block for block in blocks if block.path == path]
        before = history.blob(f"{commit[1]}^:{path}") if commit and own and not missed else None
        after = before
        for block in own:
            # As Aider does it: the first place that has the text; without text it adds to the end.
            fits = after is not None and block.old in after
            after = after.replace(block.old, block.new, 1) if after is not None and fits and block.old else None
        if before is None or after is None:
            session.unusable += bool(own)
        elif before != after:
            session.events.append(Edit(path, {"blocks": len(own)}, "", before, after, []))
