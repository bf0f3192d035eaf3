"""The system's tools keep nothing of a call at the top level of their modules: a process runs the text of each once."""

import re
from pathlib import Path

import pytest

from rye.items import spaces

TOOLS = sorted(Path(spaces.system_folder(), "tools").rglob("*.py"))
KEEPS = re.compile(
    # What is no constant at the top level can change; no constant and no class is changed.
    r"^[a-z]\w*\s*(:.*)?=\s*(\[|\{|set|dict|list)"
    r"|^\s+(global\s|[A-Z]\w*\.\w+\s*[-+|]?=[^=]|_?[A-Z]+[A-Z_0-9]*(\[.*\])+\s*[-+|]?=[^=])"
    r"|\b_?[A-Z]+[A-Z_0-9]*(\[.*\])*\.(append|add|clear|extend|insert|pop|popitem|remove|discard|setdefault|sort|update)\("
    # A memory of the library's, or a default that can change.
    r"|\b(lru_cache|globals\(|setattr\(|functools\.cache)|@cache\b|def \w+\(.*=\s*(\[|\{)",
    re.MULTILINE,
)


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_keeps_nothing_of_a_call(path):
    code = re.sub(r'"""[\s\S]*?"""|#.*|"[^"\n]*"', "", path.read_text(encoding="utf-8"))
    assert [match[0] for match in KEEPS.finditer(code)] == []


@pytest.mark.parametrize(
    "text",
    [
        *["seen = []\n", "SEEN = {}\ndef execute(p, r):\n    SEEN['x'] = 1\n", "_SEEN = []\ndef f():\n    _SEEN.append(1)\n"],
        *["def execute(p, r):\n    global count\n", "@functools.lru_cache\n", "def execute(p, r):\n    globals()['x'] = 1\n"],
        *["def execute(p, r):\n    A.n += 1\n", "def execute(p, r, seen=[]):\n"],
    ],
)
def test_control_a_tool_that_keeps_something_is_found(text):
    assert KEEPS.search(text)
