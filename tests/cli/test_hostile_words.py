"""Words that steer a terminal: a file's name gets them into an argument, by completion or `*`. No command prints them raw."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from rye.cli.rt.verbs import VERBS as RT_VERBS
from rye.cli.table import VERBS
from support.terminal import typed

EVIL = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202e\r"
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
# Words behind a verb, EVIL for such a word and PLACE for a folder of that name.
MORE = {
    "read": ["--EVIL", "EVIL=1"],
    "bash": ["true working_dir=EVIL"],
    "--color=EVIL": [""],
    "mcp": [
        *("install --client EVIL", "install --client codex --project PLACE", "install --client codex --project PLACE --write"),
        *("--category EVIL", "--tools EVIL", "--http EVIL", "import EVIL -- EVIL"),
    ],
    "serve": ["--agent-sandbox --project none/EVIL", "--agent-sandbox --host EVIL --port 0"],
    "fleet": ["run PLACE/jobs --out PLACE/out"],
    "keys": ["show EVIL"],
    "trust": ["add EVIL", "approve EVIL", "revoke EVIL"],
    "new": ["tool EVIL"],
    "sign": ["PLACE/x.py"],
    "bundle": ["create EVIL --folder PLACE", "inspect EVIL"],
    "registry": ["inspect EVIL", "trust EVIL", "pull oci://127.0.0.1:1/EVIL"],
    "load": ["tool EVIL"],
    "blame": ["PLACE/f"],
    "diff": ["EVIL EVIL"],
    "tools": ["--format EVIL"],
    "doctor": ["--project PLACE"],
    **{verb: ["EVIL"] for verb in ("lock", "search", "undo", "completion", "help")},
}


@pytest.mark.slow
def test_no_word_of_a_command_line_steers_the_terminal(project):
    (project / EVIL).mkdir()
    (project / EVIL / "f").write_text("x\n")
    lines = [(verb, *more) for verb in VERBS for more in ((EVIL,), (EVIL, f"--{EVIL}"), ("--project", EVIL))]
    stands_for = {"EVIL": EVIL, "PLACE": str(project / EVIL)}
    for line in (f"{verb} {words}".split() for verb, all_words in MORE.items() for words in all_words):
        lines.append(tuple(re.sub("EVIL|PLACE", lambda match: stands_for[match[0]], word) for word in line))
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
