"""Random scripts that build a repository in parts and in any order, by many writers: a campaign of `users_git.py`.

Words: how many scripts, and a seed. Yields each script that a program ran of, and at last the figures.
"""

from __future__ import annotations

import os
import random
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from users_git import Arena

WRITERS = ("command", "command", "job", "write", "patch", "undo", "upload")
# (where the repository lies, the work tree that its user goes into, where its settings lie)
SHAPES = (
    ("n/.git", "n", "n/.git"), ("a/b/.git", "a/b", "a/b/.git"), ("store", "sub", "store"), ("docs", "docs", "docs"),
    ("g", "sub", "c"), (".git/modules/x", "x", ".git/modules/x"), ("n/.git/modules/y", "n/y", "n/.git/modules/y"),
)  # fmt: skip
RUN = "touch $MARKS/ran; false"
MONITOR = f'[core]\n\tfsmonitor = "{RUN}"\n'
HOOKS = ("post-commit", "pre-commit")
USED = """git status; git st; git add -A; git commit -m x; git commit --amend --allow-empty; echo 2 >>f; git diff; git log -p -1; git add f
git checkout -q -b side; git rebase main; git submodule update"""


def harms(at: str, tree: str, settings: str) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    """Return what makes the user's git run a program: a line of its settings, and (kind, path, content) of what else there is."""

    def hooks(folder: str) -> list[tuple[str, str, str]]:
        return [("program", f"{folder}/{name}", f"#!/bin/sh\n{RUN}\n") for name in HOOKS]

    def up(name: str) -> str:
        return os.path.relpath(name, settings)

    return {
        "fsmonitor": (MONITOR, []),
        "filter": (f'[filter "k"]\n\tclean = "{RUN}"\n', []),
        "alias": (f'[alias]\n\tst = "!{RUN}"\n', []),
        "editor": (f'[core]\n\teditor = "{RUN};"\n', []),
        "textconv": (f'[diff "k"]\n\ttextconv = "{RUN};"\n', []),
        "external": (f'[diff]\n\texternal = "{RUN};"\n', []),
        "hook": ("", hooks(f"{settings}/hooks")),
        "hookspath": ("[core]\n\thooksPath = .hooks\n", hooks(f"{tree}/.hooks")),
        "hookslink": ("", [*hooks("shared"), ("link", f"{settings}/hooks", up("shared"))]),
        "include": (f"[include]\n\tpath = {up('inc')}\n", [("file", "inc", MONITOR)]),
        "includeif": (f'[includeIf "gitdir:**"]\n\tpath = {up("inc")}\n', [("file", "inc", MONITOR)]),
        "config.worktree": ("[extensions]\n\tworktreeConfig = true\n", [("file", f"{at}/config.worktree", MONITOR)]),
        "configlink": (MONITOR, [("link", f"{settings}/config", up("cfg"))]),
    }


class Script:
    """One random script."""

    def __init__(self, arena: Arena, chance: random.Random) -> None:
        self.arena, self.chance = arena, chance
        self.repository, self.tree, self.settings = chance.choice(SHAPES)
        self.made = f"made/{self.repository.replace('/', '-').replace('.', '')}"
        self.writers = chance.sample(WRITERS, 3)
        self.waiting: list[str] = []
        self.said: list[str] = []
        self.aside, self.fired = 0, False

    def parts(self) -> list[tuple[str, str, str]]:
        """Return (kind, path, content) of what makes the repository, and of what makes the user's git run a program by it."""
        at, tree, settings = self.repository, self.tree, self.settings
        line, found = self.chance.choice([*harms(at, tree, settings).values()])
        lines = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n" + line
        lines += "" if at.endswith("/.git") else f"[core]\n\tworktree = {os.path.relpath(tree, at)}\n"
        is_linked = ("link", f"{settings}/config") in [one[:2] for one in found]
        found = [*found, ("file", "cfg" if is_linked else f"{settings}/config", lines)]
        found += [("file", f"{at}/HEAD", "ref: refs/heads/main\n")]
        found += [("file", f"{folder}/{name}/x", "") for folder in {at, settings} for name in ("objects", "refs")]
        if settings != at:
            found.append(("file", f"{at}/commondir", f"{os.path.relpath(settings, at)}\n"))
        if tree != at and not at.endswith("/.git"):
            found.append(("file", f"{tree}/.git", f"gitdir: {os.path.relpath(at, tree)}\n"))
        return [*found, ("file", f"{tree}/f", "1\n"), ("file", f"{tree}/.gitattributes", "f filter=k diff=k\n")]

    def run(self) -> None:
        configured = "; git config extensions.worktreeConfig true" if self.chance.random() < 0.3 else ""
        self.arena.fresh(f"git init -q; git commit -q --allow-empty -m 0{configured}")
        steps = sorted(self.parts())
        self.chance.shuffle(steps)
        for step in ("user", "gitlink", "own", "move", "init"):
            if self.chance.random() < 0.3:
                steps.insert(self.chance.randrange(len(steps) + 1), (step, "", ""))
        # What comes before it is made elsewhere.
        moves = next((number for number, step in enumerate(steps) if step[0] == "move"), -1)
        for number, (kind, path, content) in enumerate(steps):
            self.step(kind, path.replace(self.repository, self.made, 1) if number < moves else path, content)
            if self.chance.random() < 0.4:
                self.command()
        self.check()

    def step(self, kind: str, path: str, content: str) -> None:
        # What the file tools refuse always is mostly a command's, or no script would get far.
        skeleton = (
            ("command", "command", "command", "job", "undo") if path.rpartition("/")[2] in ("HEAD", "x") else self.writers
        )
        if kind == "user":
            self.check()
        elif kind == "own":
            self.arena.shell("git config user.nick x; git branch b")
        elif kind == "file" and (writer := self.chance.choice(skeleton)) != "command":
            self.command()
            self.said.append(f"{writer}: {path}")
            self.arena.put(writer, {path: content})
        else:
            folder, tree = os.path.dirname(path) or ".", self.tree
            written = f"mkdir -p {folder}; printf %s {shlex.quote(content)} >{path}"
            self.waiting.append(
                {
                    "file": written,
                    "program": f"{written}; chmod 755 {path}",
                    "link": f"mkdir -p {folder}; ln -s {content} {path}",
                    "move": f"mkdir -p {self.repository} {self.made}; cp -a {self.made}/. {self.repository}/; rm -r {self.made}",
                    "init": f"mkdir -p {tree}; cd {tree} && git init -q; cd - >/dev/null",
                    "gitlink": f"git -C {tree} commit -q --allow-empty -m x; git add {tree}",
                }[kind]
            )

    def command(self) -> None:
        """Have the model run what waits as one command."""
        if self.waiting:
            self.said.append(f"command: {'; '.join(self.waiting)}")
            self.aside += len(self.arena.bash("; ".join(self.waiting)).get("set_aside") or ())
            self.waiting.clear()

    def check(self) -> None:
        """Do what a user does, when the jobs are over, in the root and in the repository."""
        self.command()
        self.arena.wait_for_jobs()
        self.arena.ran()
        for folder in dict.fromkeys((".", self.tree, self.repository)):
            if (self.arena.root / folder).is_dir():
                self.arena.shell(USED, folder=self.arena.root / folder)
        fired = bool(self.arena.ran())
        self.fired |= fired
        self.said.append("user" + (" FIRED" if fired else ""))


def campaign(arena: Arena, count: str, seed: str) -> Iterator[dict]:
    fired = aside = 0
    for number in range(int(count)):
        script = Script(arena, random.Random(f"{seed}-{number}"))
        script.run()
        fired, aside = fired + script.fired, aside + bool(script.aside)
        if script.fired and arena.mode != "off":
            yield {"script": number, "shape": script.repository, "steps": script.said}
    yield {"scripts": int(count), "fired": fired, "with_something_set_aside": aside}
