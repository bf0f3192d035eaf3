"""Item ids as the names that agent interfaces accept, and back again, exactly.

Function names are narrower than ids everywhere: OpenAI takes `[a-zA-Z0-9_-]{1,64}`, Anthropic the same up to 128, Gemini up
to 63 with a letter or `_` first, MCP `[A-Za-z0-9_.-]{1,128}`. One name per tool fits them all: a model's habits carry over.

A tool of the system's (`rye/file-system/read`) goes by its last part, by which the tools' own texts call each other, if no
other of the system's does. Any other tool's name is its whole id with `/` as `__`: `my/tools/count` is `my__tools__count`. What
that could confuse is escaped: `.` is `--d`, and a `_` or `-` that does not stand between letters or digits is `--u` or `--h`;
an id without `/`, or with a digit first, gets a `_` in front. So no foreign tool can take a short name. An id too long for a
name is cut and ends in `--x` and 80 bits of its digest; such a name leads back by the listing only.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from rye.errors import ItemError

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST: Final = 63
"""Characters in a name: the least that any of the interfaces documents."""

_SHORT = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*")
_ESCAPES = {".": "--d", "_": "--u", "-": "--h", "/": "__"}
_PARTS = re.compile(r"--[duh]|__|[A-Za-z0-9_-]")
_BACK = {escape: char for char, escape in _ESCAPES.items()}
_DIGEST = 20
_SYSTEM = "rye/"


def encode(item_id: str) -> str:
    """Return the long name of an id; no other id has the same."""
    name = "".join(_escaped(item_id, at) for at in range(len(item_id)))
    if "/" not in item_id or not (name[0].isascii() and name[0].isalpha()):
        name = f"_{name}"
    if len(name) <= LONGEST:
        return name
    digest = sha256(item_id.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 3]}--x{digest}"


def decode(name: str) -> str | None:
    """Return the id of a long name; None for a short or a cut one, and for what is no name."""
    text = name.removeprefix("_")
    parts = _PARTS.findall(text)
    item_id = "".join(_BACK.get(part, part) for part in parts)
    return item_id if item_id and encode(item_id) == name and len(encode(item_id)) <= LONGEST else None


def names_of(item_ids: Iterable[str]) -> dict[str, str]:
    """Return name -> id for all tools that are served; each id has one name, and each name one id.

    Args:
        item_ids: every tool's, not a choice of them: what a tool is called does not depend on what else is asked for.

    Raises:
        ItemError: `ambiguous_name`, when two long ids share 80 bits of their digests.
    """
    ids = sorted(set(item_ids))
    last = [item_id.rpartition("/")[2] for item_id in ids if item_id.startswith(_SYSTEM)]
    out: dict[str, str] = {}
    for item_id in ids:
        short = item_id.rpartition("/")[2]
        fits = item_id.startswith(_SYSTEM) and last.count(short) == 1 and _SHORT.fullmatch(short) and len(short) <= LONGEST
        name = short if fits else encode(item_id)
        if name in out:
            raise ItemError("ambiguous_name", f"{out[name]} and {item_id} come to one name.", "Rename one of them.")
        out[name] = item_id
    return out


def _escaped(item_id: str, at: int) -> str:
    char = item_id[at]
    if char not in _ESCAPES:
        return char
    between = 0 < at < len(item_id) - 1 and item_id[at - 1].isalnum() and item_id[at + 1].isalnum()
    return char if char in "_-" and between else _ESCAPES[char]
