"""Checks of settings files: plain values under text keys, and the shape of each file that has layers.

A shape is a type, `[shape]` for a list, or a mapping of names to shapes, where `"*"` means every other name. What a shape
does not name may be anything. A name without a value says nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

from rye.errors import UsageError

_NUMBER: Final = (int, float)
_LONGEST_NUMBER = 1 << 63
_SERVERS = {"command": [str], "install": str, "least_version": int, "settings": {}, "markers": [str]}
_LANGUAGE = {"suffixes": {"*": str}, "servers": [str], "server": str}
_PROVIDER = {"type": str, "api_key": str, "base_url": str}

SHAPES: Final[dict[str, Any]] = {
    "lsp.yaml": {
        "limits": {"idle_seconds": _NUMBER, "max_memory_mb": _NUMBER},
        "languages": {"*": _LANGUAGE},
        "servers": {"*": _SERVERS},
    },
    "web/websearch.yaml": {"default_provider": (str, _PROVIDER), "providers": {"*": _PROVIDER}},
}


def plain(content: Any, where: object, at: str = "") -> None:
    """Hold what a file says to what JSON can say, too: text keys, and no dates, bytes, sets or boundless numbers.

    Raises:
        UsageError: `bad_config`, naming `where` and the key.
    """
    if isinstance(content, dict):
        for key, value in content.items():
            if not isinstance(key, str):
                raise _bad(where, f"has the key {_short(key)}{_in(at)}, which is no text", "Write it in quotes.")
            plain(value, where, f"{at}.{key}" if at else key)
    elif isinstance(content, list):
        for value in content:
            plain(value, where, at)
    elif isinstance(content, float) and not math.isfinite(content):
        raise _bad(where, f"holds {content}{_in(at)}, which is no number", "Write a number.")
    # A longer one would fail later, in a JSON reader or a C library, far from the file that holds it.
    elif isinstance(content, int) and abs(content) >= _LONGEST_NUMBER:
        raise _bad(where, f"holds a number of more than 63 bits{_in(at)}", "Write a smaller one, or put it in quotes.")
    elif not (content is None or isinstance(content, str | int | float)):
        raise _bad(where, f"holds a {type(content).__name__}{_in(at)}", "Put it in quotes.")


def checked(name: str, content: dict[str, Any], where: str) -> dict[str, Any]:
    """Return what the settings file `name` says, without what says nothing; `content` is plain.

    Raises:
        UsageError: `bad_config`, naming `where` and the key.
    """
    found = _shaped(content, SHAPES.get(name, {}), where, "")
    assert isinstance(found, dict)  # as its shape is
    return found


def _shaped(content: Any, shape: Any, where: str, at: str) -> Any:
    if isinstance(shape, tuple):
        shape = next((one for one in shape if isinstance(content, dict if isinstance(one, dict) else one)), shape[0])
    if isinstance(shape, dict):
        if not isinstance(content, dict):
            raise _wrong(where, at, "a mapping", content)
        return {
            key: _shaped(value, shape[key] if key in shape else shape["*"], where, f"{at}.{key}" if at else key)
            if key in shape or "*" in shape
            else value
            for key, value in content.items()
            if value is not None
        }
    if isinstance(shape, list):
        if not isinstance(content, list):
            raise _wrong(where, at, "a list", content)
        return [_shaped(value, shape[0], where, at) for value in content]
    # bool is a subclass of int: `true` must not pass for a number.
    if not isinstance(content, shape) or (isinstance(content, bool) and shape is not bool):
        raise _wrong(where, at, _WORDS[shape], content)
    return content


_WORDS = {str: "text", int: "a whole number", float: "a number"}


def _wrong(where: str, at: str, expected: str, content: object) -> UsageError:
    return _bad(where, f"must have {expected} at {at}, not {_short(content)}", "Mend or remove it.")


def _bad(where: object, why: str, hint: str) -> UsageError:
    return UsageError("bad_config", f"{where} {why}.", hint)


def _in(at: str) -> str:
    return f" in {at[:100]}" if at else ""


def _short(content: object) -> str:
    return repr(content)[:100]
