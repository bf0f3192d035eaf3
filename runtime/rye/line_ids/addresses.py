"""Short line addresses: how the second view of a line's identity is spelled, `12`, `12h` or `100000g`, and read.

A line of a file has a number that is never given to another line of that file. In the first index of a file the numbers are
the line numbers, of all lines, whether they are shown or not; every later line counts on. `Addresses` keeps them as runs: those
of a file that nobody edited take no room. An index that had to begin anew is of a later epoch (see `rye.line_ids.epochs`), and
its addresses end in letters that name the epoch: an address of a lost index is unknown, never another line's.

Six digits and more could be an ID (`[LID:123456]`), so such numbers always end in letters. The letters are none of the
hexadecimal digits, and none that look like a digit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from rye.errors import UsageError

if TYPE_CHECKING:
    from rye.line_ids.render import Row

_LETTERS = "ghjkmnpqrstuvwxyz"
_FIRST_LONG = 100_000
_ADDRESS = rf"0*([1-9]\d{{0,14}})([{_LETTERS}]{{0,8}})"

Number = tuple[int, int]
"""A line's number, and its epoch."""

Run = tuple[int, int, int]
"""How many lines have numbers that count on, the first number, and their epoch."""

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
    return f"{number}{_tail(epoch)}"


def _tail(epoch: int) -> str:
    tail, rest = "", epoch - 1
    while rest:
        rest, digit = divmod(rest, len(_LETTERS))
        tail = _LETTERS[digit] + tail
    return tail


def number_of(address: str) -> Number:
    """Return the number of an address as `spelled` spells it, and its epoch."""
    number, tail = split(address)
    epoch = 0
    for letter in tail:
        epoch = epoch * len(_LETTERS) + _LETTERS.index(letter)
    return number, epoch + 1


def split(address: str) -> tuple[int, str]:
    """Return an address's number and letters."""
    digits = address.rstrip(_LETTERS)
    return int(digits), address[len(digits) :]


def cut(starts: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """Yield what lines [start, stop) are of runs that begin at `starts`, of which the last is the end.

    That is which run, how many of its lines come before, and how many are taken.
    """
    # By bisection: a file edited in many places has many runs, and each shown line asks.
    for which in range(max(bisect_right(starts, start) - 1, 0), len(starts) - 1):
        low, high = max(starts[which], start), min(starts[which + 1], stop)
        if starts[which] >= stop:
            return
        if low < high:
            yield which, low - starts[which], high - low


class Addresses:
    """The addresses of all lines of a file, in order, as runs that count on; never changed. Most files are one run."""

    __slots__ = ("_by_number", "_starts", "runs")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Take runs in order; empty ones are dropped, those that count on are joined."""
        joined: list[Run] = []
        for length, first, epoch in runs:
            if length <= 0:
                continue
            if joined and joined[-1][2] == epoch and joined[-1][1] + joined[-1][0] == first:
                joined[-1] = joined[-1][0] + length, joined[-1][1], epoch
            else:
                joined.append((length, first, epoch))
        self.runs = joined
        self._starts = [0, *accumulate(length for length, _, _ in joined)]
        # (epoch, first number, position, length) of each run; made when an address is first looked up.
        self._by_number: list[tuple[int, int, int, int]] = []

    def __len__(self) -> int:
        return self._starts[-1]

    def part(self, start: int, stop: int) -> list[Run]:
        """Return the runs of the lines [start, stop)."""
        return [
            (many, self.runs[which][1] + skipped, self.runs[which][2])
            for which, skipped, many in cut(self._starts, start, stop)
        ]

    def numbers(self, start: int, stop: int) -> list[Number]:
        """Return the numbers of the lines [start, stop), each with its epoch."""
        return [(number, epoch) for many, first, epoch in self.part(start, stop) for number in range(first, first + many)]

    def names(self, start: int, stop: int) -> list[str]:
        """Return the addresses of the lines [start, stop)."""
        out: list[str] = []
        for length, first, epoch in self.part(start, stop):
            numbers = range(first, first + length)
            if epoch == 1:
                out += map(str, numbers) if numbers.stop <= _FIRST_LONG else [spelled(number, 1) for number in numbers]
            else:
                tail = _tail(epoch)
                out += [f"{number}{tail}" for number in numbers]
        return out

    def place(self, number: int, epoch: int) -> int | None:
        """Return the position of the line that has a number, None where none has it."""
        if not self._by_number:
            placed = zip(self.runs, self._starts, strict=False)
            self._by_number = sorted((tail, first, at, length) for (length, first, tail), at in placed)
        which = bisect_right(self._by_number, (epoch, number, len(self), 0)) - 1
        if which < 0:
            return None
        found_epoch, first, at, length = self._by_number[which]
        return at + number - first if found_epoch == epoch and number < first + length else None


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
