"""Short line addresses: how the second view of a line's identity is spelled, `12`, `12h` or `100000g`, and read.

A line of a file has a number that is never given to another line of that file. In the first index of a file the numbers are
the line numbers; every later line counts on. An index that had to begin anew is of a later epoch (see `rye.line_ids.epochs`),
and its addresses end in letters that name the epoch: an address of a lost index is unknown, never another line's.

Six digits and more could be an ID (`[LID:123456]`), so such numbers always end in letters. The letters are none of the
hexadecimal digits, and none that look like a digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rye.errors import UsageError

if TYPE_CHECKING:
    from rye.line_ids.render import Row

_LETTERS = "ghjkmnpqrstuvwxyz"
_FIRST_LONG = 100_000
_ADDRESS = rf"0*([1-9]\d{{0,14}})([{_LETTERS}]{{0,8}})"

FORMS = ("lid", "short", "none")
"""How a tool can show lines: `[LID:a1b2c3] text`, `12` and a tab before the text, or the text alone."""


def form_of(value: object) -> str:
    """Return the form that a parameter `line_ids` asks for; `all`, and True where it was a boolean, mean `lid`.

    Raises:
        UsageError: `bad_line_ids`.
    """
    if isinstance(value, str) and value in FORMS:
        return value
    if value in (None, False, "false"):
        return "none"
    if value in (True, "all", "true"):
        return "lid"
    raise UsageError("bad_line_ids", f"There is no form of line IDs {value!r}.", "Give line_ids lid, short or none.")


def spelled(number: int, epoch: int) -> str:
    """Return the address of a number of an index's epoch."""
    if epoch == 1:
        return str(number) if number < _FIRST_LONG else f"{number}{_LETTERS[0]}"
    tail, rest = "", epoch - 1
    while rest:
        rest, digit = divmod(rest, len(_LETTERS))
        tail = _LETTERS[digit] + tail
    return f"{number}{tail}"


def split(address: str) -> tuple[int, str]:
    """Return an address's number and letters."""
    digits = address.rstrip(_LETTERS)
    return int(digits), address[len(digits) :]


def runs_of(names: Iterable[str]) -> list[list[Any]]:
    """Return addresses as runs: how many, the first number, the letters behind each. Most files are one run."""
    runs: list[list[Any]] = []
    for name in names:
        number, tail = (int(name), "") if name.isdecimal() else split(name)
        if runs and runs[-1][2] == tail and runs[-1][1] + runs[-1][0] == number:
            runs[-1][0] += 1
        else:
            runs.append([1, number, tail])
    return runs


def parsed(value: object) -> str | None:
    """Return the address that a caller names, as `spelled` spells it; None where it can be none, as an ID.

    A number of JSON is an address, a text of six hexadecimal digits an ID.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return spelled(value, 1) if 0 < value < 10**15 else None
    found = re.fullmatch(_ADDRESS, str(value).strip().lower())
    if found is None or (len(str(value).strip()) >= 6 and not found[2]):
        return None
    number, tail = int(found[1]), found[2]
    # Epoch 1 has no letters; `12g` says the same.
    return spelled(number, 1) if tail in ("", _LETTERS[0]) else f"{number}{tail}"


def printed(address: str, text: str) -> str:
    """Return a line as the short view prints it; an empty line has nothing before it, though it has an address too."""
    return f"{address}\t{text}" if text else ""


def printed_all(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return lines as `printed` does each; of a whole window in one go."""
    return [f"{name}\t{text}" if text else "" for name, text in zip(names, texts, strict=True)]


def one_view(row: Row, form: str) -> Row:
    """Return a row with its ID alone, or with its short address alone."""
    return row._replace(id=None) if form == "short" else row._replace(short=None)


def ranges(names: Sequence[str]) -> str:
    """Return addresses as a caller can name them: `12-15, 40`; those that count on are one range."""
    out: list[tuple[str, str]] = []
    for name in names:
        if out and split(name) == (split(out[-1][1])[0] + 1, split(out[-1][1])[1]):
            out[-1] = out[-1][0], name
        else:
            out.append((name, name))
    return ", ".join(first if first == last else f"{first}-{last}" for first, last in out)
