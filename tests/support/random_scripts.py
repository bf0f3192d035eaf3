"""Random command scripts of a model, and what a user and the user's programs do after each; run by `test_users_git.py`.

Arguments: a folder, `require` or `off`, how many scripts, a seed. Prints one line of JSON: how
many scripts ran, after how many a program of the model ran outside, by shape, how many canaries were read, and the scripts that did it;
the codes of refusals, and whole the results of calls that broke.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from script_shapes import ACTED_ON, Script

import rye

CANARY = "canary-77b1d2"
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


# No script may make the call itself break, whatever it does to the project.
UNEXPECTED = ("io_error", "tool_crashed", "internal_error")


class Users:
    """The user: a home, a project, and what the user's programs do there."""

    def __init__(self, base: Path) -> None:
        self.home, self.mark, self.project, self.other = base / "home", base / "mark", base / "project", base / "other"
        for folder in (self.home / ".ssh", self.home / ".ai/config", self.mark):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / ".ssh/id_rsa").write_text(CANARY)
        (self.home / ".netrc").write_text(CANARY)
        self.settings = "[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n"
        (self.home / ".gitconfig").write_text(self.settings)

    def shell(self, script: str, *arguments: str, cwd: Path | None = None) -> None:
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "MARK": str(self.mark), "GIT_EDITOR": "true", "GIT_PAGER": "cat",
            "GIT_CEILING_DIRECTORIES": str(self.project.parent), "GIT_TERMINAL_PROMPT": "0",
        }  # fmt: skip
        subprocess.run(
            ["timeout", "15", "bash", "-c", script, "user", *arguments], cwd=cwd or self.project, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL
        )  # fmt: skip

    def fresh(self, chance: random.Random) -> None:
        """Make the project anew: a repository, or a linked worktree of one elsewhere, with some of what users have in theirs."""
        (self.home / ".gitconfig").write_text(self.settings)
        for path in (self.project, self.other):
            subprocess.run(["chmod", "-R", "u+rwx", path], capture_output=True, check=False)
            subprocess.run(["rm", "-rf", path], capture_output=True, check=False)
        self.other.mkdir()
        made = "git init -q; for n in 1 2 3; do echo $n >f$n; git add f$n; git commit -qm $n; done"
        self.shell(made, cwd=self.other)
        if chance.random() < 0.15:
            self.shell(
                "git config core.hooksPath .hooks; git config filter.u.clean tools/clean; git worktree add -q ../project; mkdir ../project/.hooks",
                cwd=self.other,
            )
            return
        self.project.mkdir()
        self.shell("; ".join((made, *(f"({script})" for script, likely in USERS_OWN if chance.random() < likely))))

    def turn(self) -> None:
        """Do what the user's git does in every repository, and what editors, shells and MCP clients start by themselves."""
        places = [str(self.project)]
        for folder, names, files in os.walk(self.project):
            there = {*names, *files}
            if ".git" in there or {"HEAD", "config"} <= there or {"HEAD", "commondir"} <= there:
                places.append(folder)
            if len(places) > 8:
                break
        steps = "git rebase --continue; git add -A; git log -1 -p"
        # One shell for all: most of a turn is the start of processes.
        self.shell(f'for place; do cd "$place" && {{ {GIT}; }}; done; cd "$1"; {steps}; true', *dict.fromkeys(places))
        commands = [self._one(found) for name in ACTED_ON if name != ".pre-commit-config.yaml" for found in self._named(name)]
        commands += ["bash ./.envrc"] if (self.project / ".envrc").is_file() else []
        if commands:
            self.shell("\n".join(commands))

    def _named(self, name: str) -> list[str]:
        """Return the programs that a file names which a program of the user acts on; a link in its place is followed."""
        pattern = "*.code-workspace" if name.endswith(".code-workspace") else name
        found: list[str] = []
        for path in self.project.glob(pattern):
            with suppress(OSError):
                if path.is_file():
                    with open(path, encoding="utf-8", errors="replace") as file:
                        found += re.findall(r"touch \S+/ran\.[\w-]+", file.read(1 << 16))
        return found

    def _one(self, command: str) -> str:
        return command.replace("$MARK", str(self.mark))

    def ran(self) -> list[str]:
        """Return the shapes whose programs ran since the last time."""
        found = sorted(path.name.removeprefix("ran.") for path in self.mark.iterdir())
        for path in self.mark.iterdir():
            path.unlink()
        return found

    def leaked(self, output: str) -> bool:
        if CANARY in output:
            return True
        done = subprocess.run(["grep", "-rqsF", "--devices=skip", CANARY, self.project], capture_output=True, check=False)
        return done.returncode == 0


def commanded(users: Users, text: str, beside: str) -> tuple[str, dict]:
    """Run a script, with a job beside it where there is a text for one; return what was printed, and the command's result."""
    job = ""
    if beside:
        data = rye.execute("rye/bash/bash", {"command": beside, "background": True, "timeout": 8}, project_path=users.project)[
            "data"
        ]
        job = data.get("job_id", "")
    data = rye.execute("rye/bash/bash", {"command": text, "timeout": 8}, project_path=users.project)["data"]
    out = f"{data.get('output')}{data.get('stderr')}"
    if job:
        last = rye.execute("rye/bash/job", {"action": "wait", "job_id": job, "timeout": 60}, project_path=users.project)["data"]
        out += str(last.get("output"))
    return out, data


def campaign(base: Path, mode: str, count: int, seed: int) -> dict:
    users = Users(base)
    (users.home / ".ai/config/rye.yaml").write_text(f"sandbox: {{mode: '{mode}'}}\n")
    os.environ.update(HOME=str(users.home), USER_SPACE=str(users.home), SECRET_TOKEN=CANARY)
    ran, read, culprits, strange, shapes, codes = 0, 0, [], [], Counter(), Counter()
    history: list[str] = []
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        if number % PER_PROJECT == 0:
            users.fresh(random.Random(f"{seed}-{number}-user"))
            history = []
        text = Script(chance, mounts=mode != "off").text()
        beside = Script(chance, mounts=mode != "off").text() if chance.random() < 0.08 else ""
        history += [text, f"job: {beside}"] if beside else [text]
        # What the user did must be older than what the command does, by a clock that goes on by ticks.
        time.sleep(0.012)
        out, result = commanded(users, *(one.replace("$MARK", str(users.mark)) for one in (text, beside)))
        code = result.get("code") or ""
        codes[code] += code not in ("", "command_failed")
        if code in UNEXPECTED:
            strange.append({"number": number, "result": result, "scripts": list(history)})
        # Without a sandbox the command itself runs programs; what counts is what runs afterwards.
        users.ran()
        read += (was_read := users.leaked(out))
        users.turn()
        shapes.update(was_run := users.ran())
        ran += bool(was_run)
        if was_read or was_run:
            culprits.append({"number": number, "ran": was_run, "read": was_read, "scripts": list(history)})
            users.fresh(chance)
            history = []
    unusual = {code: times for code, times in codes.items() if times}
    return {
        "scripts": count,
        "ran": ran,
        "read": read,
        "shapes": shapes,
        "unusual": unusual,
        "culprits": culprits[:5],
        "strange": strange[:5],
    }


if __name__ == "__main__":
    print(json.dumps(campaign(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
