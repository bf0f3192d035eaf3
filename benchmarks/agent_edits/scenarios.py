r"""The 34 scenarios of pi-edit-benchmark, restated as data, through these tools and an exact-string tool.

A scenario is a small file, lines to change, what another program does to the file between read and edit, and what must come of
it: `applied` with a content, `rejected` with the file untouched, or `either` of both (github.com/YuGiMob/pi-edit-benchmark).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from changes import quoted
from rye_caller import RyeCaller

FILE = "f.txt"


class Scenario(NamedTuple):
    """One scenario: lines [start, stop) of `text` become `new`; `meanwhile` is what another program replaces in between."""

    name: str
    text: str
    start: int
    stop: int
    new: tuple[str, ...]
    expected: str
    after: str = ""
    meanwhile: tuple[str, str] = ("", "")
    special: str = ""


def _lines(words: str) -> str:
    return "".join(f"{word}\n" for word in words.split())


_ABC = _lines("one two three")
_FIVE = _lines("one two three four five")
_BLOCKS = "def a():\n  pass 1\nend\ndef b():\n  pass 2\nend\n"
_MANY = "".join(f"row {number}\n" for number in range(1, 201))
_LONG = "z" * 61_440
_DRIFT = ("two", "two, by others")

SCENARIOS = (
    Scenario("one line", _FIVE, 1, 2, ("TWO",), "applied", _lines("one TWO three four five")),
    Scenario("a range", _FIVE, 1, 4, ("A", "B"), "applied", _lines("one A B five")),
    Scenario("a line deleted", _ABC, 1, 2, (), "applied", _lines("one three")),
    Scenario("the second of equal lines", _BLOCKS, 5, 6, ("end;",), "applied", _BLOCKS[:-4] + "end;\n"),
    Scenario("the second of equal imports", "use x\nuse y\nuse x\n", 2, 3, ("use z",), "applied", "use x\nuse y\nuse z\n"),
    Scenario("blanks at a line's end", "one\ntwo  \nthree\n", 1, 2, ("TWO",), "applied", "one\nTWO\nthree\n"),
    Scenario("CRLF", "one\r\ntwo\r\nthree\r\n", 1, 2, ("TWO",), "applied", "one\r\nTWO\r\nthree\r\n"),
    Scenario("a byte order mark", f"\ufeff{_ABC}", 1, 2, ("TWO",), "applied", "\ufeffone\nTWO\nthree\n"),
    Scenario("an empty file", "", 0, 0, ("one", "two"), "applied", "one\ntwo", special="no final newline"),
    Scenario("a line of 60 KB", f"a\n{_LONG}\nb\n", 1, 2, ("short",), "applied", "a\nshort\nb\n"),
    Scenario("a line put in its own place", _ABC, 1, 2, ("two",), "either", _ABC),
    Scenario("lines behind a line", _ABC, 2, 2, ("a", "b"), "applied", _lines("one two a b three")),
    Scenario(
        "other scripts",
        "h\u00e9\n\u65e5\u672c \U0001f389\n\u0441\n",
        1,
        2,
        ("\u65e5 \U0001f680",),
        "applied",
        "h\u00e9\n\u65e5 \U0001f680\n\u0441\n",
    ),
    Scenario("tabs", "f {\n\treturn 1\n\t\t# deep\n}\n", 1, 2, ("\treturn 2",), "applied", "f {\n\treturn 2\n\t\t# deep\n}\n"),
    Scenario("no final newline", "one\ntwo", 1, 2, ("TWO",), "applied", "one\nTWO"),
    Scenario("the line changed meanwhile", _ABC, 1, 2, ("TWO",), "rejected", meanwhile=_DRIFT),
    Scenario("the line is gone", _ABC, 1, 2, ("TWO",), "rejected", meanwhile=("two\n", "")),
    Scenario("a line of the range changed", _FIVE, 1, 4, ("A",), "rejected", meanwhile=("three", "3")),
    Scenario("a line came in above", _ABC, 1, 2, ("TWO",), "either", _lines("one new TWO three"), ("one\n", "one\nnew\n")),
    Scenario("a line far away changed", _FIVE, 2, 3, ("THREE",), "applied", _lines("1 two THREE four five"), ("one", "1")),
    Scenario("other addresses survive", _FIVE, 2, 3, ("THREE",), "applied", _lines("one two THREE four FIVE"), special="again"),
    Scenario("undo", _ABC, 1, 2, ("TWO",), "applied", _ABC, special="undo"),
    Scenario("a refusal shows the way", _ABC, 1, 2, ("TWO",), "rejected", meanwhile=_DRIFT, special="guidance"),
    Scenario(
        "changed and changed back", _lines("one two three four"), 1, 4, ("A",), "applied", _lines("one A"), ("three", "three")
    ),
    Scenario(
        "a line that was never shown", _FIVE, 4, 5, ("FIVE",), "either", _lines("one two three four FIVE"), special="paged"
    ),
    Scenario("a file that was never read", _ABC, 1, 2, ("TWO",), "either", _lines("one TWO three"), special="blind"),
    Scenario("the end of a range changed", _ABC, 1, 2, ("TWO",), "rejected", meanwhile=_DRIFT),
    Scenario("the block of an equal line changed", _BLOCKS, 5, 6, ("end;",), "rejected", meanwhile=("  pass 2", "  pass 3")),
    Scenario("nothing changed, others did", _ABC, 1, 2, ("two",), "either", _lines("1 two three"), ("one", "1")),
    Scenario(
        "a second edit by the first answer",
        _FIVE,
        2,
        3,
        ("THREE",),
        "applied",
        _lines("one two THREE FOUR five"),
        special="chained",
    ),
    Scenario("a large range with one change", _MANY, 9, 190, ("x",), "rejected", meanwhile=("row 100\n", "row 100!\n")),
    Scenario("undo after others changed the file", _ABC, 1, 2, ("TWO",), "either", _lines("one TWO 3"), special="late undo"),
    Scenario(
        "a range from end to start",
        _lines("one two three four"),
        1,
        3,
        ("A",),
        "either",
        _lines("one A four"),
        special="reversed",
    ),
    Scenario("the line before is repeated", _ABC, 1, 2, ("one", "TWO"), "applied", _lines("one one TWO three")),
)


def with_rye() -> tuple[Counter[str], dict[str, str]]:
    """Run the scenarios with these tools; return how many are right or wrong, and the wrong ones."""
    verdicts, wrong = Counter[str](), dict[str, str]()
    for one in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
            root = Path(folder)
            (root / ".git").mkdir()
            (root / FILE).write_bytes(one.text.encode())
            said = _run(RyeCaller(root), one)
            why = _fault(one, (root / FILE).read_bytes().decode(), said)
        verdicts["right" if not why else "wrong"] += 1
        if why:
            wrong[one.name] = why
    return verdicts, wrong


def with_exact_strings() -> tuple[Counter[str], dict[str, str]]:
    """Run the scenarios that a single exact-string replacement can express, on texts in memory."""
    verdicts, wrong = Counter[str](), dict[str, str]()
    for one in SCENARIOS:
        now = one.text.replace(*one.meanwhile) if one.meanwhile[0] else one.text
        wanted = _changed(one, one.text)
        text = now
        for old, new, _ in quoted(one.text, wanted) if wanted != one.text else ():
            text = text.replace(old, new, 1) if text.count(old) == 1 else text
        said = "" if text != now or wanted == one.text else "refused"
        why = (
            "it has no undo"
            if "undo" in one.special
            else _fault(one, text, said)
            if one.special in ("", "blind", "paged")
            else ""
        )
        verdicts["right" if not why else "wrong"] += 1
        if why:
            wrong[one.name] = why
    return verdicts, wrong


def _changed(one: Scenario, text: str) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(end)
    return end.join([*lines[: one.start], *one.new, *lines[one.stop :]])


def _run(caller: RyeCaller, one: Scenario) -> str:
    """Read, let others change the file, edit; return the refusal, empty where there was none."""
    if one.special == "paged":
        caller.call("read", file_path=FILE, limit=2)
    elif one.special != "blind":
        caller.call("read", file_path=FILE)
    rows = caller.rows(FILE) if one.special != "blind" else [(str(at), "") for at in range(1, 9)]
    file = caller.root / FILE
    if one.meanwhile[0]:
        file.write_bytes(file.read_bytes().decode().replace(*one.meanwhile).encode())
    more: dict[str, Any] = {"final_newline": "remove"} if one.special == "no final newline" else {}
    made = caller.call("edit_lines", file_path=FILE, changes=[_change(one, rows)], **more)
    if made.is_error:
        return made.text
    if one.special == "again":
        caller.call("edit_lines", file_path=FILE, changes=[f"{rows[4][0]}|FIVE"])
    if one.special == "chained":
        (next_address,) = [address for address, text in caller.known[FILE].items() if text == "four"]
        caller.call("edit_lines", file_path=FILE, changes=[f"{next_address}|FOUR"])
    if one.special == "late undo":
        file.write_bytes(file.read_bytes().replace(b"three", b"3"))
    if "undo" in one.special:
        caller.call("undo", **({} if one.special == "undo" else {"file_path": FILE}))
    return ""


def _change(one: Scenario, rows: list[tuple[str, str]]) -> str:
    text = "\n".join(one.new)
    if one.start == one.stop:
        return f"{rows[one.start - 1][0]}+|{text}" if rows else f"end+|{text}"
    first, last = rows[one.start][0], rows[one.stop - 1][0]
    if one.special == "reversed":
        first, last = last, first
    if not one.new:
        return f"{first}-{last} delete"
    return f"{first}|{text}" if first == last else f"{first}-{last}|{text}"


def _fault(one: Scenario, found: str, said: str) -> str:
    """Return what is wrong with an outcome; empty where it is right."""
    untouched = one.text.replace(*one.meanwhile) if one.meanwhile[0] else one.text
    if one.special == "guidance" and not ("two, by others" in said or "read(" in said):
        return f"the refusal does not help: {said[:160]}"
    if one.expected == "rejected":
        return "" if said and found == untouched else f"not refused: {found[:80]!r}"
    if found == one.after:
        return ""
    # After an undo that came too late, the file holds the edit and the other change, or the other change alone.
    late = one.special == "late undo" and found == _lines("one two 3")
    either = one.expected == "either" and found == untouched
    return "" if late or either else f"wrong content: {found[:80]!r} {said[:160]}"
