"""Words that steer a terminal: a file's name gets them into an argument, by completion or `*`. No command prints them raw."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from rye.cli.rt.table import VERBS as RT_VERBS
from rye.cli.table import VERBS
from support.terminal import typed

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202e\r"
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
MORE = [
    ("read", f"--{EVIL}"),
    ("read", f"{EVIL}=1"),
    ("bash", "true", f"working_dir={EVIL}"),
    (f"--color={EVIL}",),
    ("mcp", "install", "--client", EVIL),
    ("mcp", "install", "--client", "codex", "--project", "{evil}"),
    ("mcp", "install", "--client", "codex", "--project", "{evil}", "--write"),
    ("mcp", "--category", EVIL),
    ("mcp", "--tools", EVIL),
    ("mcp", "--http", EVIL),
    ("mcp", "import", EVIL, "--", EVIL),
    ("serve", "--agent-sandbox", "--project", f"none/{EVIL}"),
    ("serve", "--agent-sandbox", "--host", EVIL, "--port", "0"),
    ("fleet", "run", "{evil}/jobs", "--out", "{evil}/out"),
    ("keys", "show", EVIL),
    ("trust", "add", EVIL),
    ("trust", "approve", EVIL),
    ("trust", "revoke", EVIL),
    ("lock", EVIL),
    ("new", "tool", EVIL),
    ("sign", "{evil}/x.py"),
    ("bundle", "create", EVIL, "--folder", "{evil}"),
    ("bundle", "inspect", EVIL),
    ("registry", "inspect", EVIL),
    ("registry", "trust", EVIL),
    ("registry", "pull", f"oci://127.0.0.1:1/{EVIL}"),
    ("load", "tool", EVIL),
    ("search", EVIL),
    ("blame", "{evil}/f"),
    ("diff", EVIL, EVIL),
    ("undo", EVIL),
    ("tools", "--format", EVIL),
    ("completion", EVIL),
    ("doctor", "--project", "{evil}"),
    ("help", EVIL),
]


@pytest.mark.slow
def test_no_word_of_a_command_line_steers_the_terminal(project):
    (project / EVIL).mkdir()
    (project / EVIL / "f").write_text("x\n")
    lines = [(verb, *more) for verb in VERBS for more in ((EVIL,), (EVIL, f"--{EVIL}"), ("--project", EVIL))]
    lines += [tuple(word.replace("{evil}", str(project / EVIL)) for word in line) for line in MORE]
    lines += [("rt", verb, *more) for verb in RT_VERBS for more in ((EVIL,), ("f", EVIL, EVIL))]

    def shown(line):
        module = ("rye.cli.rt.main", *line[1:]) if line[0] == "rt" else ("rye", *line)
        return typed(*module[1:], cwd=project, module=module[0], env={"NO_COLOR": "1"}, until=rb"Ctrl-C ends|Bearer|review at")[
            1
        ]

    with ThreadPoolExecutor(2) as threads:
        screens = list(threads.map(shown, lines))
    assert sum("52;c;ZXZpbA==" in screen for screen in screens) > len(lines) // 3, "control: the words are shown"
    raw = [
        (line, found[0], screen)
        for line, screen in zip(lines, screens, strict=True)
        if (found := RAW.search(screen) or re.search("Traceback", screen))
    ]
    assert not raw, "\n".join(f"{line!r}: {char!r} in {screen!r}" for line, char, screen in raw)
