"""Random command scripts of a model, and what a user and the user's programs do after each; run by `test_random_scripts.py`.

Arguments: a folder, `require` or `off`, how many scripts, a seed. Prints one line of JSON: how many scripts ran, how many programs
of the model ran outside, how many canaries were read, and the scripts that did it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import rye

CANARY = "canary-77b1d2"
PROGRAM = "touch $MARK/ran"
PER_PROJECT = 6
PLACES = (
    "a", "a/b", "docs", "vendor/lib", "sub", "n", ".git", ".git/hooks", ".git/config", ".git/modules/m", ".git/x", ".git/info",
    ".git/worktrees/w", ".git/objects/o", ".vscode", ".VSCODE", ".envrc", ".mcp.json", ".Mcp.json", ".claude", ".ai", ".ai/cache",
    ".gitmodules", "node_modules/p", "w", ".hooks", "shared.cfg",
)  # fmt: skip
KEYS = ("core.fsmonitor", "core.hooksPath", "core.pager", "core.editor", "diff.external", "filter.f.clean", "alias.status",
        "alias.st", "include.path", "core.sshCommand", "diff.f.textconv", "gpg.program", "core.worktree", "sequence.editor")  # fmt: skip
HOOKS = ("pre-commit", "post-checkout", "post-index-change", "pre-rebase", "prepare-commit-msg", "post-rewrite")
CONTENTS = {
    "config": '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch $MARK/ran; false"\n[alias]\n\tst = !touch $MARK/ran\n',
    "HEAD": "ref: refs/heads/main\n",
    "tasks": '{"tasks": [{"command": "touch $MARK/ran"}]}',
    "envrc": "touch $MARK/ran\n",
    "mcp": '{"mcpServers": {"x": {"command": "sh", "args": ["-c", "touch $MARK/ran"]}}}',
    "hook": "#!/bin/sh\ntouch $MARK/ran\n",
    "exec": "exec touch $MARK/ran\n",
    "gitlink": "gitdir: ../docs\n",
    "pointer": "gitdir: .git/x\n",
    "commondir": "../a\n",
    "filter": "* filter=f diff=f\n",
    "cache": '{"encoding": "utf-7"}',
}


class Script:
    """Builds one script; everything that changes files names places of the project only."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def text(self) -> str:
        steps = (
            self.write,
            self.write,
            self.files,
            self.files,
            self.git,
            self.git,
            self.git,
            self.repository,
            self.read,
            self.mounts,
        )
        return "\n".join(self.chance.choice(steps)() for _ in range(self.chance.randint(2, 6)))

    def place(self) -> str:
        return self.chance.choice(PLACES)

    def write(self) -> str:
        name = self.chance.choice(list(CONTENTS))
        target = {
            "config": f"{self.place()}/config", "HEAD": f"{self.place()}/HEAD", "tasks": ".vscode/tasks.json", "envrc": ".envrc",
            "mcp": ".mcp.json", "hook": f"{self.chance.choice(('.git/hooks', 'n/.git/hooks', 'docs/hooks', 'vendor/lib/.git/hooks', '.hooks'))}/{self.chance.choice(HOOKS)}",
            "exec": ".git/rebase-merge/git-rebase-todo", "gitlink": f"{self.place()}/.git", "pointer": ".git",
            "commondir": f"{self.place()}/commondir", "filter": f"{self.chance.choice(('.', 'n', 'vendor/lib'))}/.gitattributes",
            "cache": ".ai/cache/tools/read/line_index/x.json",
        }[name]  # fmt: skip
        if self.chance.random() < 0.2:
            target = self.chance.choice((f"{self.place()}/{os.path.basename(target)}", self.place()))
        return f"mkdir -p $(dirname {target}); cat >{target} <<'EOF'\n{CONTENTS[name]}EOF\nchmod +x {target}"

    def files(self) -> str:
        one, other = self.place(), self.place()
        return self.chance.choice((
            f"mkdir -p {one}/objects {one}/refs", f"mv -T {one} {other}", f"mv {one} {other}", f"cp -r {one} {other}", f"rm -rf {one}",
            f"ln -sfn $PWD/{one} {other}", f"ln -sfn ../{one} {other}", f"ln {one}/config {other}", f"chmod 311 {one}", f"chmod -R u+rwx {one}",
            f"mkdir -p {one}; ln -s $HOME/.ssh {one}/keys", f"touch {one}",
        ))  # fmt: skip

    def git(self) -> str:
        where, key = self.chance.choice((".", "n", "docs", "vendor/lib", "w", "sub")), self.chance.choice(KEYS)
        value = self.chance.choice((f"{PROGRAM}; false", f"!{PROGRAM}", "../a", "hooks2", "../../docs/config"))
        return self.chance.choice((
            f"git -C {where} config {key} '{value}'", f"git -C {where} config --worktree {key} '{value}'",
            f"git config -f {self.place()}/config {key} '{value}'", f"git -C {where} add -A", f"git -C {where} commit -qm x --allow-empty",
            f"git -C {where} checkout -q -b b{self.chance.randrange(99)}", f"git worktree add -q {self.place()}", f"git clone -q . {self.place()}",
            f"git -C {where} update-index --add --cacheinfo 160000,$(git rev-parse HEAD),{self.place()}", f"git -C {where} stash -q",
            f"GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git -C {where} rebase -q -i -x '{PROGRAM}' HEAD~1",
            f"git -C {where} config extensions.worktreeConfig true", f"git submodule add -q ./n {self.place()}", f"git -C {where} mv {self.place()} z",
        ))  # fmt: skip

    def repository(self) -> str:
        place = self.chance.choice(("n", "docs", "vendor/lib", "sub", ".git/x", ".git/objects/o", "a/b"))
        key, bare = self.chance.choice(KEYS), self.chance.choice(("", "--bare"))
        return (
            f"git init -q {bare} {place} && git -C {place} config {key} '{PROGRAM}; false' && "
            f"{{ git -C {place} commit -qm x --allow-empty; git add {place}; git -C {place} config core.bare false; }}"
        )

    def read(self) -> str:
        return self.chance.choice((
            "cat $HOME/.ssh/id_rsa", "cp -r $HOME/.ssh leak", "tar cf leak.tar $HOME/.ssh", "cat */keys/id_rsa", "cat /proc/*/environ | tr '\\0' '\\n'",
            "find / -name id_rsa -exec cat {} + 2>/dev/null | head -c 2000", "cat /proc/1/root$HOME/.ssh/id_rsa", "env; cat $HOME/.netrc",
        ))  # fmt: skip

    def mounts(self) -> str:
        return self.chance.choice((
            f"umount {self.place()}", "unshare -rm sh -c 'umount -l .git/config; mv .git/config .git/c; cp docs/config .git/config'",
            f"mount --bind docs {self.place()}", f"mv .git {self.chance.choice(('g', 'n/g'))}; mkdir .git", "mount -o remount,rw .git/hooks",
            "(sleep 0.2; cp docs/config .git/config) & disown",
        ))  # fmt: skip


def shell(project: Path, script: str, home: Path, mark: Path, cwd: Path | None = None) -> str:
    env = {
        "PATH": os.environ["PATH"], "HOME": str(home), "MARK": str(mark), "GIT_EDITOR": "true", "GIT_PAGER": "cat",
        "GIT_CEILING_DIRECTORIES": str(project.parent),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=cwd or project,
        env=env,
        capture_output=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def fresh(project: Path, home: Path, mark: Path, chance: random.Random) -> None:
    """The user's project: a repository with two commits, sometimes a rebase under way, worktree settings or a start file."""
    subprocess.run(["chmod", "-R", "u+rwx", project], capture_output=True, check=False)
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir()
    shell(project, "git init -q; for n in 1 2 3; do echo $n >f$n; git add f$n; git commit -qm $n; done", home, mark)
    for script, likely in (
        ("git config extensions.worktreeConfig true", 0.3),
        ("GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2", 0.4),
        ("echo 'true' >.envrc", 0.3),
        ("mkdir .vscode; echo '{}' >.vscode/tasks.json", 0.3),
        ("git config include.path ../shared.cfg; touch shared.cfg", 0.2),
        ("git init -q n; git -C n commit -q --allow-empty -m x", 0.3),
        ("mkdir .hooks; git config core.hooksPath .hooks", 0.2),
    ):
        if chance.random() < likely:
            shell(project, script, home, mark)


def users_turn(project: Path, home: Path, mark: Path) -> None:
    """The user's git in every repository, and what an editor, a shell and an MCP client start by themselves."""
    places = [project]
    for folder, names, files in os.walk(project):
        if ".git" in names + files or {"HEAD", "config"} <= {*names, *files}:
            places.append(Path(folder))
        if len(places) > 10:
            break
    for place in dict.fromkeys(places):
        shell(project, "git status; git diff; git st; git commit -qm u --allow-empty", home, mark, place)
    shell(project, "git rebase --continue; git stash list; git log -1 -p", home, mark)
    for name in (".envrc", ".ENVRC"):
        if (project / name).is_file():
            shell(project, f"bash ./{name}", home, mark)
    for command in started_by_programs(project):
        shell(project, command, home, mark)


def started_by_programs(project: Path) -> list[str]:
    commands = []
    for path, key in ((".vscode/tasks.json", "tasks"), (".mcp.json", "mcpServers")):
        try:
            found = json.loads((project / path).read_bytes())[key]
            entries = found if isinstance(found, list) else list(found.values())
            commands += [" ".join([one["command"], *(f"'{word}'" for word in one.get("args", []))]) for one in entries]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return commands


def leaked(project: Path, output: str) -> bool:
    if CANARY in output:
        return True
    done = subprocess.run(["grep", "-rqsF", "--exclude-dir=proc", CANARY, project], capture_output=True, check=False)
    return done.returncode == 0


def campaign(base: Path, mode: str, count: int, seed: int) -> dict:
    home, mark, project = base / "home", base / "mark", base / "project"
    for folder in (home / ".ssh", home / ".ai/config", mark):
        folder.mkdir(parents=True, exist_ok=True)
    (home / ".ssh/id_rsa").write_text(CANARY)
    (home / ".netrc").write_text(CANARY)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n"
    )
    (home / ".ai/config/rye.yaml").write_text(f"sandbox: {{mode: '{mode}'}}\n")
    os.environ.update(HOME=str(home), USER_SPACE=str(home), SECRET_TOKEN=CANARY)
    ran, read, culprits, unusual = 0, 0, [], 0
    for number in range(count):
        chance = random.Random(f"{seed}-{number}")
        if number % PER_PROJECT == 0:
            fresh(project, home, mark, random.Random(f"{seed}-{number}-user"))
            history: list[str] = []
        text = Script(chance).text()
        history.append(text)
        time.sleep(0.012)
        parameters = {"command": text.replace("$MARK", str(mark)), "timeout": 20}
        data = rye.execute("rye/bash/bash", parameters, project_path=project)["data"]
        unusual += data.get("code") not in (None, "command_failed")
        # Without a sandbox the command itself runs programs; what counts is what runs afterwards.
        (mark / "ran").unlink(missing_ok=True)
        read += (was_read := leaked(project, str(data.get("output")) + str(data.get("stderr"))))
        users_turn(project, home, mark)
        ran += (was_run := (mark / "ran").exists())
        (mark / "ran").unlink(missing_ok=True)
        if was_read or was_run:
            culprits.append({"number": number, "ran": was_run, "read": was_read, "scripts": list(history)})
            subprocess.run(["chmod", "-R", "u+rwx", project], capture_output=True, check=False)
            fresh(project, home, mark, chance)
            history = []
    return {"scripts": count, "ran": ran, "read": read, "unusual": unusual, "culprits": culprits[:5]}


if __name__ == "__main__":
    print(json.dumps(campaign(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
