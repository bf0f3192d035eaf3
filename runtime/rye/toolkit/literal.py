"""Matches of plain words in small files, found here: starting a program for a few of them takes longer than finding them.

The same as `Tree.hits` finds, or nothing is said: a file that ripgrep would read otherwise than byte by byte (one with a NUL or
a byte order mark), a large one, one with more than 1,000 of them, and a pattern that is more than a word are left to it.
"""

from __future__ import annotations

import codecs
import os
from typing import TYPE_CHECKING

from rye.toolkit.rows import Hit

if TYPE_CHECKING:
    from rye.toolkit.ripgrep import Pattern

_LARGEST = 1 << 20
_MOST_HITS = 1_000
_SPECIAL = frozenset("\\.+*?()|[]{}^$#&-~\r\n\0")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def word_of(pattern: Pattern) -> bytes | None:
    """Return the bytes that a pattern stands for; None where it stands for more than one text, or for none."""
    special = frozenset("\r\n\0") if pattern.literal else _SPECIAL
    if pattern.ignore_case or pattern.multiline or not pattern.text or not special.isdisjoint(pattern.text):
        return None
    return pattern.text.encode()


def hits(word: bytes, fd: int, count: int) -> list[Hit] | None:
    """Return the `count` lines of an open file that hold `word`; None where it is not certain that these are all.

    `count` is how many ripgrep found: another number means that the file changed meanwhile, or is read otherwise.
    """
    if count > _MOST_HITS or os.fstat(fd).st_size > _LARGEST:
        return None
    data = os.pread(fd, _LARGEST + 1, 0)
    if len(data) > _LARGEST or b"\0" in data or data.startswith(_MARKS):
        return None
    found: list[Hit] = []
    number, counted, at = 1, 0, data.find(word)
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at) + 1 or len(data)
        number += data.count(b"\n", counted, start)
        found.append(Hit(number, number, at - start, data[start:end]))
        counted, at = start, data.find(word, end)
    return found if len(found) == count else None
