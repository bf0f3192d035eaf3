"""`__requires__` of a Python tool: the distributions that it imports, checked before it runs."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING, Final

from rye.call.safe_text import plain
from rye.errors import ItemError

if TYPE_CHECKING:
    from rye.items.parse import Tool

_ONE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[\w, -]*\])?\s*(.*)", re.DOTALL)
_BOUND: Final = re.compile(r"(>=|<=|==|!=|~=|>|<)\s*([0-9][0-9A-Za-z.]*)(?:\.\*)?")


def check(tool: Tool) -> None:
    """Return if all that a tool requires is installed where it runs.

    Raises:
        ItemError: `requirement_missing`, naming each, and the command that installs them; `malformed_item`.
    """
    declared = tool.metadata.get("__requires__", ())
    if not declared:
        return
    if not isinstance(declared, list | tuple) or not all(isinstance(one, str) for one in declared):
        raise ItemError("malformed_item", f"{tool.id}: __requires__ must be a list of texts.", 'Write ["httpx>=0.28"].')
    missing = [(one, why) for one in declared if (why := _why_not(one))]
    if not missing:
        return
    named = "; ".join(f"{plain(one, 100)} ({why})" for one, why in missing)
    command = shlex.join([sys.executable, "-m", "pip", "install", *(plain(one, 100) for one, _ in missing)])
    raise ItemError("requirement_missing", f"{tool.id} requires {named}.", f"Run `{command}`.")


def _why_not(requirement: str) -> str:
    """Return why a requirement is not met; nothing where it is."""
    # Only for tools that require something: it reads the installed packages.
    from importlib.metadata import PackageNotFoundError, version

    # What is behind a semicolon says where it applies; that is for an installer to judge.
    match = _ONE.fullmatch(requirement.partition(";")[0].strip())
    if match is None:
        return "which cannot be read"
    try:
        found = version(match[1])
    except PackageNotFoundError:
        return "not installed"
    unmet = [bound for bound in _BOUND.finditer(match[2]) if not _holds(_numbers(found), bound[1], _numbers(bound[2]))]
    return f"{plain(found, 40)} is installed" if unmet else ""


def _numbers(text: str) -> tuple[int, ...]:
    # Up to the first part that is no number: a pre-release counts as its release.
    return tuple(int(one) for one in re.findall(r"\d+", re.match(r"[0-9.]*", text)[0]))  # type: ignore[index]


def _holds(found: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    most = max(len(found), len(bound))
    one, other = (part + (0,) * (most - len(part)) for part in (found, bound))
    if sign == "~=":
        return one >= other and found[: len(bound) - 1] == bound[:-1]
    if sign in ("==", "!="):
        return (found[: len(bound)] == bound or one == other) is (sign == "==")
    return {">=": one >= other, "<=": one <= other, ">": one > other, "<": one < other}[sign]
