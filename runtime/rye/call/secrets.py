"""The user's secrets that a call sends, taken out of whatever comes back: by value, in each form that a server may give it.

A value counts in plain, as JSON and percent-encoding write it, and within base64. A value of fewer than 8 characters could be
any word: it is taken out only where the whole header that bore it stands by itself.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

SHOWN: Final = "[secret]"
"""What stands in an answer for a secret."""

_SHORT: Final = 8


class Secrets:
    """The secrets of one call."""

    def __init__(self) -> None:
        """Begin without any."""
        self._patterns: dict[str, None] = {}

    def add(self, values: list[str], header: str) -> None:
        """Take the secrets that a header bears, and all of the header."""
        for value in values:
            if len(value) >= _SHORT:
                # The longest form first: one may begin with another.
                self._patterns["|".join(map(re.escape, sorted(set(_forms(value)), key=len, reverse=True)))] = None
            elif header:
                self._patterns["|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in {header, *_as_json(header)})] = None

    def removed(self, value: Any) -> Any:
        """Return a text, bytes or a JSON value without them."""
        if isinstance(value, str):
            for pattern in self._patterns:
                value = re.sub(pattern, SHOWN, value)
            return value
        if isinstance(value, bytes):
            # Byte by byte the same: each form of a value is found in any encoding that holds ASCII.
            return self.removed(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, dict):
            return {self.removed(name): self.removed(one) for name, one in value.items()}
        return [self.removed(one) for one in value] if isinstance(value, list | tuple) else value

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._patterns)


def _as_json(value: str) -> Iterator[str]:
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        # Some writers escape the slash, too.
        yield from (text, text.replace("/", "\\/"))
    yield "".join(f"\\u{ord(one):04x}" for one in value)


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from _as_json(value)
    for text in (quote(value, safe=""), quote(value), quote(value, safe="!'()*~"), quote_plus(value)):
        yield from (text, re.sub("%..", lambda match: match[0].lower(), text))
    data = value.encode()
    for before in range(3):
        # Of base64 the characters that hold bits of the value alone, wherever it begins within three bytes.
        first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
        text = b64encode(bytes(before) + data).decode()[first:last]
        yield from (text, text.replace("+", "-").replace("/", "_"), text.replace("/", "\\/"))
