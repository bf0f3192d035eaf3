r"""The forms in which a caller writes a change: an object, or one string that says the same with fewer words.

    "12|text"  "12-15|one\ntwo"      replace a line, or a range with its last line, by the text behind the bar
    "12+|text"  "+12|text"           insert behind, or before, a line; "end+|text", "+start|text"
    "12-15 delete"                   delete; "12-15|" is one empty line
    "12-15 move after 40"            also copy, before, and a place in another file: "12-15 move after b.py:40"
    "find|old|new"  "find 3#a|b#c"   exact text, in one place or in 3; the sign behind find parts it, any that the text has not
    "b.py:12|text"                   any of these in another file
    "b.py delete file"  "b.py rename to c.py"

The text of a string takes the lines' place exactly: each "\n" begins another line, the last one too, as in a list of lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from rye.errors import EditError
from rye.workspace.text import content_lines

# With the mark that addresses have in a path, too.
_NAME = r"@?(?:\[?LID:)?[0-9a-z]+\]?"
# An address as `read` prints it, `[LID:a1b2c3]`, holds a colon, too.
_AT = r"(?:(?P<file>(?!\[?LID:|\d+:)[^|\n]+?):)?"
# A line beside a match has a mark in grep's answer, `12-`, which is copied with the address.
_LINES = rf"(?P<first>{_NAME})-?(?:\s*-\s*(?P<last>{_NAME})-?)?"
# What goes has no mark behind a lone address: of `12- delete` nobody can tell whether all behind it is meant, as in `a.py:12-`.
_RANGE = rf"{_AT}(?P<first>{_NAME})(?:-?\s*-\s*(?P<last>{_NAME})-?)?"
_TEXT = re.compile(rf"\s*{_AT}(?P<before>\+)?{_LINES}(?P<after>\+)?\s*", re.IGNORECASE)
_DELETE = re.compile(rf"\s*{_RANGE}\s+delete\s*", re.IGNORECASE)
_TRANSFER = re.compile(
    rf"\s*{_RANGE}\s+(?P<verb>move|copy)\s+(?P<side>after|before)\s+(?:(?P<to>(?!\[?LID:)[^|\n]+?):)?(?P<place>{_NAME})-?\s*",
    re.IGNORECASE,
)
# Before an address: `find` could be one.
_FIND = re.compile(rf"\s*{_AT}(?:{_LINES}\s+)?find(?:\s+(?P<count>\d+))?\s*(?P<sign>[^\w\s])")
# Of file_path, where it names no file. A name ends in no white space: much of it would be tried again and again.
_DELETE_FILE = re.compile(r"\s*(?:(?P<file>[^|\n]*?[^|\s]):?\s+)?delete file\s*")
_RENAME = re.compile(r"\s*(?:(?P<file>[^|\n]*?[^|\s]):?\s+)?rename to\s+(?P<to>[^|\n]+?)\s*")

FORMS = (
    '"12|new text", "12-15|one\\ntwo" (replace), "12+|text" (insert behind; "+12|", "end+|"), "12-15 delete", '
    '"12-15 move after 40" (copy, before), "find|old|new" (exact text; "find 3|old|new" in 3 places, find#old#new where it '
    'has a |), any of these with "b.py:" before it, "b.py rename to c.py", "b.py delete file"; '
    'or an object: {"line_id": 12, "new_content": "text"}'
)
"""The forms in words, for a refusal."""
_NO_CHANGE = "is no change."

# Longer than any path with addresses: a regular expression over more could take seconds.
_LONGEST_HEAD = 5_000

TRANSFERS = ("move_after", "move_before", "copy_after", "copy_before")
_KINDS = ("new_content", "find", "delete_file", "rename_to", *TRANSFERS)
_ADDRESSES = ("line_id", "start_line_id", "end_line_id", "after_line_id", "before_line_id")


class Change(NamedTuple):
    """One change as it was asked for: its number from 1, the file, its kind (a member of `_KINDS`), and its fields."""

    number: int
    file: str
    kind: str
    fields: Mapping[str, Any]

    @property
    def names(self) -> dict[str, Any]:
        """Return the addresses of lines of `file` that the change names, by key."""
        return {key: value for key, value in self.fields.items() if key in _ADDRESSES}


def parsed(changes: list[Any], file_path: str) -> list[Change]:
    """Return the changes of a call; `file_path` is the file of those that name none.

    Raises:
        EditError: `malformed_change`, which names every problem.
    """
    out, wrong = list[Change](), list[str]()
    for number, change in enumerate(changes, 1):
        try:
            out.append(_parsed(number, change, file_path))
        except ValueError as err:
            wrong.append(f"Change {number}: {err}")
    if wrong:
        listed = "\n".join(f"- {text}" for text in wrong)
        # Once, however many have none of the forms.
        hint = f"Write {FORMS}.\n" if any(text.endswith(_NO_CHANGE) for text in wrong) else ""
        hint += "Correct the changes and send all of them again."
        raise EditError("malformed_change", f"Nothing was written:\n{listed}\n", hint, problems=wrong)
    return out


def touched(changes: list[Any], file_path: str) -> dict[str, str | None]:
    """Return the files that the changes of a call name, each with its path after them: None where it is deleted.

    Raises:
        EditError: as `parsed`.
    """
    out: dict[str, str | None] = {} if changes else {file_path: file_path}
    for change in parsed(changes, file_path):
        for name in (change.file, change.fields.get("to_file")):
            if name is not None:
                out.setdefault(str(name), str(name))
        if change.kind in ("rename_to", "delete_file"):
            out[change.file] = None if change.kind == "delete_file" else str(change.fields["rename_to"])
    return out


def _parsed(number: int, change: Any, file_path: str) -> Change:
    fields = from_string(change) if isinstance(change, str) else {name: one for name, one in change.items() if one is not None}
    file = str(fields.pop("file_path", file_path))
    kinds = [kind for kind in _KINDS if kind in fields]
    if "find" in fields and "replace" not in fields:
        raise ValueError('find needs replace ("" removes what is found).')
    if len(kinds) > 1:
        raise ValueError(f"{' and '.join(kinds)} cannot go together.")
    if not kinds:
        raise ValueError(f"without new_content, find with replace, or where to move or copy the lines it {_NO_CHANGE}")
    return Change(number, file, kinds[0], fields)


def from_string(word: str) -> dict[str, Any]:
    """Return the object that a compact string stands for.

    Raises:
        ValueError: it is none of the forms.
    """
    text = word
    head, bar, content = text.partition("|")
    head = head if len(head) <= _LONGEST_HEAD else ""
    tab_head, tab, tab_content = text.partition("\t")
    # A line as read or grep prints it, changed: an address, a tab, the text.
    if tab and len(tab_head) <= _LONGEST_HEAD and (not bar or len(tab_head) < len(head)) and _TEXT.fullmatch(tab_head):
        head, bar, content = tab_head, tab, tab_content
    if bar != "\t" and (found := _FIND.match(word[:_LONGEST_HEAD])):
        return _find(found, word[found.end() :])
    if bar and (found := _TEXT.fullmatch(head)):
        return _text_change(found, [line.removesuffix("\r") for line in content.split("\n")])
    text = text.strip() if len(text) <= _LONGEST_HEAD else ""
    if found := _TRANSFER.fullmatch(text):
        where = {f"{found['verb']}_{found['side']}".lower(): found["place"]}
        return {**_file(found), **_range(found), **where, **({"to_file": found["to"]} if found["to"] else {})}
    if found := _DELETE.fullmatch(text):
        return {**_file(found), **_range(found), "new_content": []}
    if found := _DELETE_FILE.fullmatch(text):
        return {**_file(found), "delete_file": True}
    if found := _RENAME.fullmatch(text):
        return {**_file(found), "rename_to": found["to"]}
    raise ValueError(f"{word[:60]!r} {_NO_CHANGE}")


def _find(found: re.Match[str], text: str) -> dict[str, Any]:
    parts = text.split(sign := found["sign"])
    if len(parts) == 1:
        raise ValueError(f"find{sign}old{sign}new needs both texts; find{sign}old{sign} takes the text away.")
    if len(parts) != 2:
        raise ValueError(
            f"find{sign}old{sign}new has {sign} twice, this {len(parts)} times: where the text has it, take another sign "
            "(find#old#new, find~old~new)."
        )
    count = {"count": int(found["count"])} if found["count"] else {}
    return {**_file(found), **(_range(found) if found["first"] else {}), "find": parts[0], "replace": parts[1], **count}


def _text_change(found: re.Match[str], lines: list[str]) -> dict[str, Any]:
    if found["before"] or found["after"]:
        if found["last"] or (found["before"] and found["after"]):
            raise ValueError("an insertion names one line: 12+ behind it, +12 before it.")
        side = "before_line_id" if found["before"] else "after_line_id"
        return {**_file(found), side: found["first"], "new_content": lines}
    return {**_file(found), **_range(found), "new_content": lines}


def _file(found: re.Match[str]) -> dict[str, Any]:
    return {"file_path": found["file"].strip()} if found["file"] else {}


def _range(found: re.Match[str]) -> dict[str, Any]:
    if found["last"] is None:
        return {"line_id": found["first"]}
    return {"start_line_id": found["first"], "end_line_id": found["last"]}


def lines_of(content: object) -> list[str]:
    r"""Return new content as lines; of a list, each element is a line, and a newline in it begins another."""
    if isinstance(content, list):
        return [line.removesuffix("\r") for one in content for line in str(one).split("\n")]
    return content_lines(str(content))
