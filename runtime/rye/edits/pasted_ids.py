"""Address prefixes that a caller pasted with the text of a view: `[LID:a1b2c3] x`, `12` and a tab before x.

They are refused only where they equal an address that a view of this very file showed; anything else is text. A file that holds
such lines itself, such as a table of numbers or a page about these tools, may be given more of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from rye.errors import EditError, WorkspaceError
from rye.line_ids import addresses, store
from rye.line_ids.index import Index
from rye.workspace.workspace import Workspace

_PREFIX = re.compile(r"\s*(?:\d+: )?\[LID:(?P<lid>[0-9a-z]+)\]|(?:\d+: )?(?P<short>\d+[a-z]*)\t")
_IN_FILE = re.compile(rb"^(?:\s*(?:\d+: )?\[LID:[0-9a-z]+\]|(?:\d+: )?\d+[a-z]*\t)", re.MULTILINE)


def first_prefix(index: Index, data: bytes, lines: Sequence[str]) -> str | None:
    """Return the first pasted prefix of some new lines, None without any.

    Args:
        index: of the file that they go to.
        data: the file's present content.
        lines: the new text.
    """
    prefixes = [(match["lid"], match["short"], match[0]) for line in lines if (match := _PREFIX.match(line))]
    if not prefixes:
        return None
    ids = {mark.id for mark in index.marks.values() if mark.shown >= 0} | index.dead.keys()
    dead = {end.short for end in index.dead.values() if end is not None}
    for lid, short, prefix in prefixes:
        address = addresses.parsed(short) if short else None
        at = index.place(address) if address is not None else None
        if (lid in ids) if lid else (address in dead or (at is not None and index.is_told(at))):
            return None if _IN_FILE.search(data) else prefix
    return None


def refuse(index: Index, data: bytes, lines: Sequence[str], path: str) -> None:
    """Refuse new lines with a pasted prefix.

    Raises:
        EditError: `pasted_ids`. Nothing was written.
    """
    prefix = first_prefix(index, data, lines)
    if prefix is not None:
        raise EditError("pasted_ids", f"{explained(prefix)} Nothing was written to {path}.", "Send the text alone.")


def refuse_in_file(ws: Workspace, path: bytes, shown: str, data: bytes, content: str) -> None:
    """Refuse a whole new content with a prefix that views of the file at a physical path showed. Errors as `refuse`."""
    if "\t" not in content and "[LID:" not in content:
        return
    stored = None
    with suppress(WorkspaceError):
        stored = store.load(ws, path, dense=False)
    if stored is not None:
        refuse(stored.index, data, content.split("\n"), shown)


def explained(prefix: str) -> str:
    """Return the sentence that says what is wrong."""
    shown = prefix.strip().replace("\t", "")
    return f"The new text begins a line with {shown}, the address of a line as a view showed it, which is not part of the file."
