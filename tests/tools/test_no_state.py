"""The system's tools keep nothing of a call at the top level of their modules: a process runs the text of each once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rye.items import spaces

TOOLS = sorted(Path(spaces.system_folder(), "tools").rglob("*.py"))
# Methods that change a list, dict or set where it stands.
CHANGING = {"append", "add", "clear", "extend", "insert", "pop", "popitem", "remove", "discard", "setdefault", "sort", "update"}


def state_kept(text: str) -> list[str]:
    """Return how a module's functions could keep something for a later call, by line."""
    tree = ast.parse(text)
    top = {name for node in tree.body for name in bound(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            found.append(f"{node.lineno}: global")
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("cache", "lru_cache", "globals", "setattr"):
            found.append(f"{node.lineno}: {ast.unparse(node.func)}()")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            found += [f"{node.lineno}: {name} is changed" for name in top & {root_of(node.func)}]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += [f"{one.lineno}: {ast.unparse(one)}" for one in node.decorator_list if "cache" in ast.unparse(one)]
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            found += [f"{one.lineno}: a default that can change" for one in defaults if isinstance(one, ast.List | ast.Dict)]
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        for node in ast.walk(function):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [getattr(node, "target", None)]
            parts = [one for one in targets if isinstance(one, ast.Subscript | ast.Attribute)]
            found += [f"{one.lineno}: {root_of(one)} is changed" for one in parts if root_of(one) in top - local(function)]
    return found


def bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [one.id for one in node.targets if isinstance(one, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def local(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    stored = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}


def root_of(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_keeps_nothing_of_a_call(path):
    assert state_kept(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "seen = []\ndef execute(p, r):\n    seen.append(1)\n",
        "seen = {}\ndef execute(p, r):\n    seen['x'] = 1\n",
        "count = 0\ndef execute(p, r):\n    global count\n    count += 1\n",
        "import functools\n@functools.lru_cache\ndef f(x):\n    return x\n",
        "class A:\n    n = 0\ndef execute(p, r):\n    A.n += 1\n",
        "def execute(p, r, seen=[]):\n    seen.append(1)\n",
        "def execute(p, r):\n    globals()['x'] = 1\n",
    ],
)
def test_control_a_tool_that_keeps_something_is_found(text):
    assert state_kept(text)
