"""The session with `rt` in docs/shell.md: typed into a shell at a real terminal, recorded as it shows.

python tests/support/rt_session.py            record it and print it
python tests/support/rt_session.py --write    and put it into the page
"""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rye

PAGE = Path(__file__).parents[2] / "docs" / "shell.md"
RUNTIME = Path(rye.__file__).parents[1]
BLOCK = re.compile(r"(<!-- session: rt -->\n```console\n)(.*?)(```\n)", re.DOTALL)
TYPED = """\
rt create prices.py << 'EOF'
def total(prices):
    return sum(prices)


def mean(prices):
    return total(prices) / len(prices)
EOF
rt grep 'sum' prices.py
rt edit prices.py 1 2 << 'EOF'
def total(prices, tax=0.0):
    return round(sum(prices) * (1 + tax), 2)
EOF
rt insert prices.py 5 << 'EOF'
# Of no prices there is no mean.
EOF
rt undo
rt open prices.py:1-2
"""
_PROMPTS = (b"$ ", b"> ")


def record(folder: Path) -> str:
    """Type the session in an empty project made in `folder`; return what the terminal showed, its end of line as LF."""
    project, tools = folder / "project", folder / "bin"
    for one in (project, tools, folder / "home"):
        one.mkdir()
    (project / ".git").mkdir()
    (tools / "rt").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rye.cli.rt.main "$@"\n', encoding="utf-8")
    (tools / "rt").chmod(0o755)
    env = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "PYTHONPATH": str(RUNTIME),
        "TERM": "dumb",
        "PS1": "$ ",
        "LC_ALL": "C.UTF-8",
        "HISTFILE": "",
    }
    ours, theirs = pty.openpty()
    shell = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
    process = subprocess.Popen(shell, cwd=project, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        shown = _until_prompt(ours)
        # What bash says on starting is not part of the session.
        shown = b"$ "
        for line in TYPED.splitlines():
            os.write(ours, line.encode() + b"\n")
            shown += _until_prompt(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown.decode().replace("\r\n", "\n").removesuffix("$ ")


def _until_prompt(fd: int) -> bytes:
    """Read until the terminal waits behind a prompt."""
    shown, end = b"", time.monotonic() + 60
    while not (shown.endswith(_PROMPTS) and (shown[:-2].endswith(b"\n") or len(shown) == 2)):
        if not select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
            raise TimeoutError(shown)
        shown += os.read(fd, 65_536)
    return shown


def written() -> str:
    """Return the session as it stands in the PAGE."""
    match = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert match is not None, "the PAGE has no session"
    return match[2]


def main() -> int:
    """Record and print, or write."""
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = scratch
        session = record(Path(scratch))
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda match: match[1] + session + match[3], text), encoding="utf-8")
    print(session, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
