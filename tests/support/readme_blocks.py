"""The code blocks of README.md and of the pages in docs/, each with what the comment above it says of running it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import rye

ROOT = Path(rye.__file__).parents[2]
README = ROOT / "README.md"
PAGES = (README, *(ROOT / "docs" / f"{name}.md" for name in ("mcp", "agent-loop", "shell", "trust", "figures")))
_BLOCK = re.compile(r"(?:^<!-- (.*?) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """One block: `marker` such as `run: shell`, or `not run: why`; "" where there is none."""

    marker: str
    language: str
    text: str


class Command(NamedTuple):
    """One command of a console block, and the output that is shown below it."""

    line: str
    shown: str


def blocks(text):
    """Return the blocks of a Markdown text."""
    return [Block(marker or "", language, body) for marker, language, body in _BLOCK.findall(text)]


def commands(text):
    """Return the commands of a console block: from `$ ` on, with lines behind a backslash or a prompt `> `."""
    out = []
    for line in text.splitlines():
        if line.startswith("$ "):
            out.append([line[2:], "", ""])
        elif out and not out[-1][2] and (line.startswith("> ") or out[-1][0].endswith("\\")):
            out[-1][0] += f"\n{line.removeprefix('> ')}"
        else:
            out[-1][2] += f"{line}\n"
    return [Command(line, shown) for line, _, shown in out]


def as_shown(shown, real):
    """Tell whether real output is what is shown, where a line `…` stands for any lines, and `…` in a line for any text."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*?") + r"\n" for line in shown.splitlines()
    )
    return re.fullmatch(pattern, real) is not None
