"""Which permissions a tool's text shows that it needs: for hints where the tool does not declare them.

Read from the syntax tree of Python, from words in scripts of other languages, and from what a YAML tool describes. What is not
found may still be needed, so nothing is decided by it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rye.items.schema import WORKSPACE_PATH

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

# Where a command begins: at a line's start, behind `|`, `;`, `&&`, `(`, a backquote, or a word such as `then`.
_BEGIN = r"(?:^\s*|[|;&(`]\s*|\b(?:then|do|else|if|while|!)\s+)"
# In `$((3 > 2))` the sign is no redirection.
_ARITHMETIC = re.compile(r"\$\(\([^\n]*?\)\)")
_PROGRAMS = (
    r"(?:awk|cat|cmp|cp|curl|cut|date|diff|env|find|git|grep|gzip|head|jq|ls|make|mkdir|mv|node|npm|perl|python3?|rg|rm|ruby|sed"
    r"|sort|ssh|tail|tar|tee|touch|tr|uniq|wc|wget|xargs)\b"
)
# What words of a script show: the permission, and a pattern of one line.
_SHELL = (
    ("network", _BEGIN + r"(?:curl|wget|ssh|scp|rsync|nc|git (?:clone|fetch|pull|push)|pip3? install|npm (?:i|ci|install))\b"),
    ("network", r"/dev/tcp/"),
    ("write", _BEGIN + r"(?:mkdir|rm|cp|mv|touch|tee|sed -i)\b"),
    ("write", r"(?<![0-9&<>=-])>{1,2}\s*(?![&>\s(]|/dev/|\"?\$\{?TMPDIR)\S+"),
    ("read", r"\$\{?PARAM_\w*path\b"),
    ("run", _BEGIN + _PROGRAMS),
)
_NODE = (
    ("network", r"\bfetch\(|['\"](?:node:)?(?:https?|net|dns|tls|dgram|undici|axios)['\"]"),
    ("run", r"['\"](?:node:)?child_process['\"]"),
    ("write", r"\b(?:writeFile|appendFile|mkdir|unlink|rename|rm|rmdir|copyFile|createWriteStream)(?:Sync)?\("),
    ("read", r"\b(?:readFile|readdir|createReadStream|opendir)(?:Sync)?\((?!\s*0\b)"),
)
_RUBY = (
    ("network", r"\bNet::HTTP\b|['\"]open-uri['\"]|\bTCPSocket\b"),
    ("run", r"\b(?:system|exec|spawn)[ (]|\bOpen3\b|%x"),
    ("write", r"\bFile\.(?:write|delete|rename)\b|\bFileUtils\.|\bDir\.mkdir\b"),
    ("read", r"\bFile\.(?:read|open|foreach|readlines)\b|\bDir\.(?:glob|children|entries)\b"),
)
_PERL = (
    ("network", r"\b(?:LWP|HTTP::Tiny|IO::Socket)\b"),
    ("run", r"\b(?:system|exec)[ (]|\bqx\b"),
    ("write", r"\bopen\b.*['\"]\s*[+]?>|\b(?:unlink|mkdir|rename)\b"),
    ("read", r"\bopen\b|\bopendir\b"),
)
_SCRIPTS: Final = {
    ".sh": (_SHELL, "#"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), (_NODE, "//")),
    ".rb": (_RUBY, "#"),
    ".pl": (_PERL, "#"),
}


class Need(NamedTuple):
    """A permission, the line that needs it, and what is there."""

    permission: str
    line: int
    reason: str


def missing(tree: ast.Module, declared: Sequence[Any]) -> list[Need]:
    """Return what a Python tool seems to need beyond what it declares, each permission once, by line."""
    return _undeclared(_needs(tree), declared)


def missing_in_script(text: str, suffix: str, declared: Sequence[Any]) -> list[Need]:
    """Return the same of a script with this ending; lines are counted from the text's first."""
    signs, comment = _SCRIPTS.get(suffix, ((), "#"))
    found = [
        Need(permission, number, f"has `{sign[0].strip(' (|;&`')}`")
        for number, line in enumerate(_ARITHMETIC.sub("0", text).split("\n"), 1)
        if not line.lstrip().startswith(comment)
        for permission, pattern in signs
        if (sign := re.search(pattern, line))
    ]
    return _undeclared(found, declared)


def missing_in_description(found: Mapping[str, Any], declared: Sequence[Any]) -> list[Need]:
    """Return the same of a tool that is described as YAML, or of a script's header."""
    config = found.get("config")
    url = config.get("url") if isinstance(config, dict) else None
    needs = [Need("network", 1, "sends a request")] if isinstance(url, str) else []
    if f"'format': '{WORKSPACE_PATH}'" in repr(found.get("config_schema")):
        needs.append(Need("read", 1, "takes a path"))
    return _undeclared(needs, declared)


def advice(need: Need, declared: Sequence[Any], suffix: str) -> str:
    """Return the line that declares a permission beside the others, as a tool with this ending writes it."""
    named = [*map(str, declared), need.permission]
    return f"__permissions__ = {json.dumps(named)}" if suffix == ".py" else f"permissions: [{', '.join(named)}]"


def _undeclared(needs: Iterable[Need], declared: Sequence[Any]) -> list[Need]:
    has = {*map(str, declared), *(["read"] if "write" in declared else [])}
    first: dict[str, Need] = {}
    for need in needs:
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
