"""Random scripts that build a repository in parts and in any order, by many writers; run by `test_users_git.py`.

Arguments: a folder, `require` or `off`, a number of scripts, a seed, the number of the first script. `off`: the same scripts as plain
writes. One line of JSON for each script that a program ran of, and a last one of figures.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import rye
from rye.agent_sandbox import files
from rye.errors import RyeError

WRITERS = ("command", "command", "job", "write", "patch", "undo", "upload")
# (where the repository lies, the work tree that its user goes into, where its settings lie)
SHAPES = (
    ("n/.git", "n", "n/.git"), ("a/b/.git", "a/b", "a/b/.git"), ("store", "sub", "store"), ("docs", "docs", "docs"),
    ("g", "sub", "c"), (".git/modules/x", "x", ".git/modules/x"), ("n/.git/modules/y", "n/y", "n/.git/modules/y"),
)  # fmt: skip
BAD = (
    "fsmonitor", "filter", "hook", "hookspath", "include", "includeif", "config.worktree", "alias", "editor", "textconv", "external",
    "hookslink", "configlink",
)  # fmt: skip
USED = """git status; git st; git add -A; git commit -m x; git commit --amend --allow-empty; echo 2 >>f; git diff; git log -p -1; git add f
git checkout -q -b side; git rebase main; git submodule update"""


class Script:
    """One random script: its steps are made from the seed alone, so that the control runs the same ones."""

    def __init__(self, base: Path, seed: str, mode: str) -> None:
        self.base, self.mode, self.chance = base, mode, random.Random(seed)
        self.root, self.mark = base / f"project-{seed}", base / "mark"
        self.said: list[str] = []
        self.aside, self.fired = 0, False
        self.repository, self.tree, self.settings = self.chance.choice(SHAPES)
        self.writers = self.chance.sample(WRITERS, 3)

    def parts(self) -> list[tuple[str, str, str]]:
        """Return (kind, path, content) of what makes the repository, and of what makes the user's git run a program by it."""
        run, bad = f"touch {self.mark}; false", self.chance.choice(BAD)
        at, tree, settings = self.repository, self.tree, self.settings
        lines = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
        lines += f"\tworktree = {'.' if tree == at else os.path.relpath(tree, at)}\n" if not at.endswith("/.git") else ""
        found = [
            ("file", f"{at}/HEAD", "ref: refs/heads/main\n"),
            ("file", f"{at}/objects/x", ""),
            ("file", f"{at}/refs/x", ""),
        ]
        monitor = f'[core]\n\tfsmonitor = "{run}"\n'
        bads = {
            "fsmonitor": monitor, "filter": f'[filter "k"]\n\tclean = "{run}"\n', "alias": f'[alias]\n\tst = "!{run}"\n',
            "editor": f'[core]\n\teditor = "{run};"\n', "textconv": f'[diff "k"]\n\ttextconv = "{run};"\n',
            "external": f'[diff]\n\texternal = "{run};"\n', "hookspath": "[core]\n\thooksPath = .hooks\n",
            "include": f"[include]\n\tpath = {os.path.relpath('inc', settings)}\n",
            "includeif": f'[includeIf "gitdir:**"]\n\tpath = {os.path.relpath("inc", settings)}\n',
            "config.worktree": "[extensions]\n\tworktreeConfig = true\n",
        }  # fmt: skip
        lines += bads.get(bad, "")
        hooks = {"hook": f"{settings}/hooks", "hookspath": f"{tree}/.hooks", "hookslink": "shared"}
        if bad in hooks:
            found += [("program", f"{hooks[bad]}/{name}", f"#!/bin/sh\n{run}\n") for name in ("post-commit", "pre-commit")]
        if bad == "hookslink":
            found.append(("link", f"{settings}/hooks", os.path.relpath("shared", settings)))
        if bad in ("include", "includeif"):
            found.append(("file", "inc", monitor))
        if bad == "config.worktree":
            found.append(("file", f"{at}/config.worktree", monitor))
        if bad == "configlink":
            found += [("file", "cfg", lines + monitor), ("link", f"{settings}/config", os.path.relpath("cfg", settings))]
        else:
            found.append(("file", f"{settings}/config", lines))
        if settings != at:
            found += [("file", f"{at}/commondir", f"{os.path.relpath(settings, at)}\n")]
            found += [("file", f"{settings}/objects/x", ""), ("file", f"{settings}/refs/x", "")]
        if tree != at and not at.endswith("/.git"):
            found.append(("file", f"{tree}/.git", f"gitdir: {os.path.relpath(at, tree)}\n"))
        return [*found, ("file", f"{tree}/f", "1\n"), ("file", f"{tree}/.gitattributes", "f filter=k diff=k\n")]

    def run(self) -> None:
        self.root.mkdir()
        self.users("git init -q -b main; git commit -q --allow-empty -m 0", self.root)
        self.users("git config extensions.worktreeConfig true" if self.chance.random() < 0.3 else ":", self.root)
        steps = self.parts()
        self.chance.shuffle(steps)
        for step in ("user", "gitlink", "own", "move", "init"):
            if self.chance.random() < 0.3:
                steps.insert(self.chance.randrange(len(steps) + 1), (step, "", ""))
        moved = any(kind == "move" for kind, _, _ in steps)
        waiting: list[str] = []
        for kind, path, content in steps:
            place = (
                path.replace(self.repository, f"made/{self.repository.replace('/', '-').replace('.', '')}", 1)
                if moved
                else path
            )
            commands = self.commands(kind, place, content)
            if kind == "user":
                self.shell(waiting)
                self.check()
            elif kind == "own":
                self.users("git config user.nick x; git branch b", self.root)
            elif kind == "move":
                moved = False
                waiting += commands
            elif kind == "file" and (writer := self.writer(path)) != "command":
                # A job writes while what follows is done.
                self.shell(waiting)
                self.written(writer, place, content, commands)
            else:
                waiting += commands
            if self.chance.random() < 0.4:
                self.shell(waiting)
        self.shell(waiting)
        self.check()
        shutil.rmtree(self.root, ignore_errors=True)

    def writer(self, path: str) -> str:
        """Return who writes a part. What the file tools refuse always is mostly a command's, or no script would get far."""
        skeleton = path.rpartition("/")[2] in ("HEAD", "x")
        return self.chance.choice(("command", "command", "command", "job", "undo") if skeleton else self.writers)

    def commands(self, kind: str, path: str, content: str) -> list[str]:
        made = f"made/{self.repository.replace('/', '-').replace('.', '')}"
        quoted = content.replace("'", "'\\''")
        folder = os.path.dirname(path) or "."
        return {
            "file": [f"mkdir -p {folder}; printf '%s' '{quoted}' >{path}"],
            "program": [f"mkdir -p {folder}; printf '%s' '{quoted}' >{path}; chmod 755 {path}"],
            "link": [f"mkdir -p {folder}; ln -s {content} {path}"],
            "move": [f"mkdir -p {self.repository} {made}; cp -a {made}/. {self.repository}/; rm -r {made}"],
            "init": [f"mkdir -p {self.tree}; cd {self.tree} && git init -q; cd - >/dev/null"],
            "gitlink": [f"git -C {self.tree} commit -q --allow-empty -m x; git add {self.tree}"],
        }.get(kind, [])  # fmt: skip

    def shell(self, commands: list[str], *, job: bool = False) -> None:
        if not commands:
            return
        text = "; ".join(commands)
        commands.clear()
        self.said.append(f"{'job' if job else 'command'}: {text}")
        if self.mode == "off":
            self.users(text, self.root)
            return
        identity = {f"GIT_{who}_{what}": "m@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        more = {"background": True} if job else {}
        data = rye.execute("rye/bash/bash", {"command": text, "env": identity, **more}, project_path=self.root)["data"]
        assert data.get("code") in (None, "command_failed"), data
        self.aside += len(data.get("set_aside") or ())

    def written(self, writer: str, path: str, content: str, commands: list[str]) -> None:
        if self.mode == "off" or writer == "job":
            self.shell([f"sleep 0.{self.chance.randrange(3)}", *commands] if self.mode != "off" else commands, job=True)
            return
        self.said.append(f"{writer}: {path}")
        if writer == "upload":
            try:
                files.put(str(self.root), f"/{path}", io.BytesIO(content.encode()))
            except (OSError, RyeError):
                self.said.append("refused")
        elif writer == "undo":
            self.shell(commands)
            self.shell([f"rm {path}"])
            rye.execute("rye/file-system/undo", {}, project_path=self.root)
        elif writer == "patch":
            made = {"batchLabel": "x", "files": [], "createFiles": [{"path": path, "content": content}]}
            rye.execute("rye/workspace/workspace_write_patch", made, project_path=self.root)
        else:
            rye.execute("rye/file-system/write", {"file_path": path, "content": content}, project_path=self.root)

    def users(self, script: str, folder: Path) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base / "home"),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": str(self.base),
        }
        subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)  # fmt: skip

    def check(self) -> None:
        """Do what a user does, when the jobs are over, in the root and in the repository."""
        while self.mode != "off" and self.jobs():
            time.sleep(0.1)
        self.mark.unlink(missing_ok=True)
        for folder in dict.fromkeys((".", self.tree, self.repository)):
            if (self.root / folder).is_dir():
                self.users(USED, self.root / folder)
        self.fired |= self.mark.exists()
        self.said.append("user" + (" FIRED" if self.mark.exists() else ""))

    def jobs(self) -> bool:
        listed = rye.execute("rye/bash/job", {"action": "list"}, project_path=self.root)["data"]["jobs"]
        return any(one["status"] == "running" for one in listed)


def main() -> None:
    base, mode, count, seed, first = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    os.environ["USER_SPACE"] = str(base / "user")
    (base / "user/.ai/config").mkdir(parents=True)
    (base / "user/.ai/config/rye.yaml").write_text("sandbox: {mode: require}\n")
    (base / "home").mkdir()
    (base / "home/.gitconfig").write_text("[user]\n\tname = u\n\temail = u@example.org\n[core]\n\teditor = true\n")
    fired = aside = 0
    for number in range(first, first + count):
        script = Script(base, f"{seed}-{number}", mode)
        script.run()
        fired, aside = fired + script.fired, aside + bool(script.aside)
        if script.fired and mode != "off":
            print(json.dumps({"script": number, "shape": script.repository, "steps": script.said}), flush=True)
    print(json.dumps({"scripts": count, "fired": fired, "with_something_set_aside": aside}), flush=True)


if __name__ == "__main__":
    main()
