"""Which permissions a Python tool's text shows that it needs: for hints where the tool does not declare them.

Read from the syntax tree alone. What is not found may still be needed, so nothing is decided by it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_MODULES: Final = {
    "subprocess": "run",
    "multiprocessing": "run",
    "socket": "network",
    "ssl": "network",
    "http": "network",
    "urllib": "network",
    "ftplib": "network",
    "smtplib": "network",
    "httpx": "network",
    "requests": "network",
    "aiohttp": "network",
    "urllib3": "network",
}
_NAMES: Final = {"edit_lines": "write", "replace_file": "write", "view_lines": "read", "Workspace": "read", "open": "read"}
_METHODS: Final = {
    "read_text": "read",
    "read_bytes": "read",
    "iterdir": "read",
    "rglob": "read",
    "listdir": "read",
    "scandir": "read",
    "walk": "read",
    "write_text": "write",
    "write_bytes": "write",
    "makedirs": "write",
    "mkdir": "write",
    "unlink": "write",
    "rmtree": "write",
    "rename": "write",
    "system": "run",
    "popen": "run",
}


class Need(NamedTuple):
    """A permission, the line that needs it, and what is there."""

    permission: str
    line: int
    what: str


def missing(tree: ast.Module, declared: Sequence[Any]) -> list[Need]:
    """Return what a tool seems to need beyond what it declares, each permission once, by line."""
    has = {*map(str, declared), *(["read"] if "write" in declared else [])}
    first: dict[str, Need] = {}
    for need in _needs(tree):
        if need.permission not in has and (need.permission not in first or need.line < first[need.permission].line):
            first[need.permission] = need
    # Who may write may read: one line says both.
    if "write" in first:
        first.pop("read", None)
    return sorted(first.values(), key=lambda need: (need.line, need.permission))


def _needs(tree: ast.Module) -> Iterator[Need]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            yield from _import(node.module or "", node.lineno)
        elif isinstance(node, ast.Call):
            yield from _call(node)


def _import(name: str, line: int) -> Iterator[Need]:
    # Of `urllib` only the part that opens connections.
    top = name.partition(".")[0]
    if top in _MODULES and name not in ("urllib.parse", "http"):
        yield Need(_MODULES[top], line, f"imports {name}")


def _call(node: ast.Call) -> Iterator[Need]:
    if isinstance(node.func, ast.Name) and node.func.id in _NAMES:
        permission = "write" if node.func.id == "open" and _writes(node) else _NAMES[node.func.id]
        yield Need(permission, node.lineno, f"calls {node.func.id}()")
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        yield Need(_METHODS[node.func.attr], node.lineno, f"calls {node.func.attr}()")


def _writes(node: ast.Call) -> bool:
    modes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)
