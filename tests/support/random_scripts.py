"""Random command scripts of a model, and what a user and the user's programs do after each: a campaign of `users_git.py`.

Words: how many scripts, and a seed. Yields after how many a program of the model ran outside, by shape, how many canaries were read,
the scripts that did it, and the codes of refusals.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from script_shapes import ACTED_ON, Script
from users_git import CANARY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from users_git import Arena

PER_PROJECT = 6
GIT = "git status; git diff; git st; git stash list; git commit -qm u --allow-empty"
# A hook as `pre-commit install` leaves it: the user's, and it does what another file says.
INSTALLED = "#!/bin/sh\ngrep -o 'touch [^ }]*' .pre-commit-config.yaml | sh\n"
USERS_OWN = (
    ("git config extensions.worktreeConfig true", 0.3),
    ("GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2", 0.3),
    ("echo 'true' >.envrc", 0.3),
    ("mkdir .vscode; echo '{}' >.vscode/tasks.json", 0.3),
    ("mkdir .idea .cargo; echo '<a/>' >.idea/watcherTasks.xml; touch .cargo/config.toml .npmrc", 0.2),
    ("git config include.path ../shared.cfg; touch shared.cfg", 0.2),
    ("git init -q n; git -C n commit -q --allow-empty -m x", 0.3),
    ("mkdir .hooks; git config core.hooksPath .hooks", 0.2),
    ("mkdir -p .husky/_; git config core.hooksPath .husky/_; printf '#!/bin/sh\\n. ./.husky/pre-commit\\n' >.husky/_/pre-commit; chmod +x .husky/_/*; echo true >.husky/pre-commit", 0.1),
    (f"printf '%s' '{INSTALLED.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo 'repos: []' >.pre-commit-config.yaml", 0.2),
    ("mkdir tools; printf '#!/bin/sh\\ncat\\n' >tools/clean; chmod +x tools/clean; git config filter.u.clean tools/clean; echo 'f* filter=u' >.gitattributes", 0.15),
    ("git worktree add -q w", 0.15),
    ("git -c protocol.file.allow=always submodule add -q ../other vendor/lib", 0.15),
)  # fmt: skip
MADE = "git init -q; for n in 1 2 3; do echo $n >f$n; git add f$n; git commit -qm $n; done"
ELSEWHERE = "git config core.hooksPath .hooks; git config filter.u.clean tools/clean; git worktree add -q ../project/w; cd ../project; mv w/.git .; rm -r w; mkdir .hooks; echo $PWD/.git >../other/.git/worktrees/w/gitdir"


def fresh(arena: Arena, chance: random.Random) -> None:
    """Make the project anew: a repository, or a linked worktree of one elsewhere, with some of what users have in theirs."""
    other = f"(mkdir ../other; cd ../other; {MADE})"
    if chance.random() < 0.15:
        arena.fresh(f"{other}; cd ../other; {ELSEWHERE}")
    else:
        arena.fresh("; ".join((other, MADE, *(f"({script})" for script, likely in USERS_OWN if chance.random() < likely))))


def turn(arena: Arena) -> None:
    """Do what the user's git does in every repository, and what editors, shells and MCP clients start by themselves."""
    places = [str(arena.root)]
    for folder, names, files in os.walk(arena.root):
        there = {*names, *files}
        if ".git" in there or {"HEAD", "config"} <= there or {"HEAD", "commondir"} <= there:
            places.append(folder)
        if len(places) > 8:
            break
    # One shell for all: most of a turn is the start of processes.
    steps = f'for place; do cd "$place" && {{ {GIT}; }}; done; cd "$1"; git rebase --continue; git add -A; git log -1 -p; true'
    arena.shell(steps, *dict.fromkeys(places), seconds=15)
    commands = [one for name in ACTED_ON if name != ".pre-commit-config.yaml" for one in named(arena, name)]
    if (arena.root / ".envrc").is_file():
        commands.append("bash ./.envrc")
    if commands:
        arena.shell("\n".join(commands), seconds=15)


def named(arena: Arena, name: str) -> list[str]:
    """Return the programs that a file names which a program of the user acts on; a link in its place is followed."""
    found: list[str] = []
    for path in arena.root.glob("*.code-workspace" if name.endswith(".code-workspace") else name):
        with suppress(OSError):
            if path.is_file():
                with open(path, encoding="utf-8", errors="replace") as file:
                    found += re.findall(r"touch \S+/marks/[\w-]+", file.read(1 << 16))
    return found


def commanded(arena: Arena, text: str, beside: str) -> tuple[str, str]:
    """Run a script, with a job beside it where there is a text for one; return what was printed, and the script's code."""
    job = arena.bash(beside, background=True, timeout=8).get("job_id") if beside else None
    data = arena.bash(text, timeout=8)
    out = f"{data.get('output')}{data.get('stderr')}"
    if job:
        out += str(arena.called("rye/bash/job", action="wait", job_id=job, timeout=60).get("output"))
    return out, data.get("code") or ""


def leaked(arena: Arena, output: str) -> bool:
    words = ["grep", "-rqsF", "--devices=skip", CANARY, arena.root]
    return CANARY in output or subprocess.run(words, capture_output=True, check=False).returncode == 0


def campaign(arena: Arena, count: str, seed: str) -> Iterator[dict]:
    ran, read, culprits, shapes, codes = 0, 0, [], Counter(), Counter()
    history: list[str] = []
    for number in range(int(count)):
        chance = random.Random(f"{seed}-{number}")
        if number % PER_PROJECT == 0 or (culprits and culprits[-1]["number"] == number - 1):
            fresh(arena, random.Random(f"{seed}-{number}-user"))
            history = []
        text = Script(chance, mounts=arena.mode != "off").text()
        beside = Script(chance, mounts=arena.mode != "off").text() if chance.random() < 0.08 else ""
        history += [text, f"job: {beside}"] if beside else [text]
        # What the user did must be older than what the command does, by a clock that goes on by ticks.
        time.sleep(0.012)
        out, code = commanded(arena, text, beside)
        codes[code] += 1
        # Without a sandbox the command itself runs programs; what counts is what runs afterwards.
        arena.ran()
        was_read = leaked(arena, out)
        turn(arena)
        was_run = arena.ran()
        shapes.update(was_run)
        ran, read = ran + bool(was_run), read + was_read
        if was_read or was_run:
            culprits.append({"number": number, "ran": was_run, "read": was_read, "scripts": list(history)})
    yield {"scripts": int(count), "ran": ran, "read": read, "shapes": shapes, "codes": codes, "culprits": culprits[:5]}
