"""Hostile values for git's own keys, in repositories that a call of ours made or changed; run by `test_users_git.py`.

Arguments: a folder, `require` or `off`, a seed, a share of keys and tries (1: all). `require`: many keys in one file, by each writer, at
each place, and those keys that our verdict lets stay, split on a hit; `off`: each key that is known to do harm alone, in a plain file. One line of
JSON for each try: what ran, asked the host, or changed a file outside.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import rye
from rye.agent_sandbox import files
from rye.process.autorun import git_settings

NAMED = {
    "alias": "st", "pager": "log", "branch": "main", "remote": "origin", "submodule": "sub", "url": "http://example.invalid/",
}  # fmt: skip
# What git lists under no name of its own, or only by a star.
ALSO = (
    "include.path", "alias.status", "http.http://127.0.0.1.proxy", "extensions.partialClone", "hook.k.command", "hook.k.event",
)  # fmt: skip
KINDS = {
    "program": "{base}/bin/{mark}", "shell": "touch {base}/marks/{mark}; false", "bang": "!touch {base}/marks/{mark}",
    "url": "http://127.0.0.1:{port}/{mark}", "ext": "ext::sh -c touch% {base}/marks/{mark}", "outside": "{base}/outside/file",
    "steps": "%s%nexec touch {base}/marks/{mark}", "true": "true", "folder": "{base}/outside", "hooks": "{base}/hooks",
    "jar": "{base}/outside/jar", "resolve": "example.invalid:443:127.0.0.1",
}  # fmt: skip
WIDE = ("program", "shell", "bang", "url", "ext", "outside", "steps", "true", "folder")
# Settings without which others start nothing; a missing object of a promisor makes git fetch.
PRELUDES = {
    "none": "",
    "plain": "commit.gpgsign=true log.showsignature=true diff.tool=k merge.tool=k",
    "http": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=https://example.invalid/x.git",
    "ssh": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=ssh://example.invalid/x.git",
    "asking": "core.repositoryformatversion=1 remote.origin.url=http://127.0.0.1:{port}/x.git http.savecookies=true",
    "local": "remote.origin.url={base}/copy/inner",
    "git": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=git://example.invalid/x.git",
}
ADDRESSES = ("remote.origin.url", "submodule.sub.url")
# So many are taken out of a file one by one; of more the file as a whole is set aside.
MIXED = 30
TOGETHER = 10
WRITERS = ("command", "write", "undo", "upload")
PLACES = ("nested", "worktree", "bare", "include", "includeif", "config.worktree", "submodule")
STORES = ("store", "commondir")
MADE = """git init -q -b main lib; cd lib; printf '* filter=k diff=k merge=k\\n' >.gitattributes; echo 1 >f; git add -A; git commit -qm 1
git branch side; echo 2 >f; git commit -qam 2; git checkout -q side; echo 3 >g; git add g; git commit -qm 3; git branch -q topic
git config extensions.worktreeConfig true; git worktree add -q ../tree main; git init -q ../inner; git -C ../inner commit -q --allow-empty -m x
git -c protocol.file.allow=always submodule add -q ../inner sub; git commit -qm sub; cd ..; git clone -q --bare lib bare 2>/dev/null
git -C bare config core.bare false; git -C bare config core.worktree .; git add lib; git commit -qm lib"""
USED = """git status; git log -1; git log --show-signature -1; git diff; git diff HEAD~1; echo 9 >>f; git add -A; git commit -m u
git commit --amend; git commit -qm t --allow-empty --trailer k=1; echo 8 >>f; echo y | git add -p; git st; git checkout -q f
git difftool -y -t k HEAD~1; git submodule update; git fetch; git archive --format=k HEAD; script -qec 'git log -1' /dev/null
script -qec 'git status' /dev/null; git rebase -i HEAD~1; git rebase main; git mergetool -y -t k; git rebase --abort; git merge main; git merge --abort
echo 7 >>f; git stash; git reset -q --hard"""
# What is known to start a program, to ask a host or to write outside, where nothing looks.
CONTROLS = """core.fsmonitor=shell core.editor=shell sequence.editor=shell core.pager=shell pager.log=shell pager.status=shell
core.sshCommand=shell:ssh core.gitProxy=program:git http.proxy=url:http remote.origin.proxy=url:http http.curloptResolve=resolve:http
filter.k.clean=shell filter.k.smudge=shell filter.k.process=shell diff.k.command=shell diff.k.textconv=shell diff.external=shell
merge.k.driver=shell gpg.program=program gpg.openpgp.program=program alias.st=bang credential.helper=bang:asking core.askPass=program:asking
difftool.k.cmd=shell mergetool.k.cmd=shell interactive.diffFilter=shell rebase.instructionFormat=steps submodule.sub.update=bang
core.worktree=folder trailer.k.cmd=shell trailer.k.command=shell tar.k.command=shell remote.origin.uploadpack=shell:local
http.cookieFile=jar:asking core.hooksPath=hooks remote.origin.url=url:http"""
LOSE = "cd lib; T=$(git rev-parse HEAD^{tree}); rm -f .git/objects/${T:0:2}/${T:2}"


class Asked(BaseHTTPRequestHandler):
    """A host that no look may ask."""

    def handle_one_request(self) -> None:
        line = self.rfile.readline(1000)
        if line:
            HITS.append(line.decode(errors="replace").strip())
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 401 no\r\nWWW-Authenticate: Basic realm=x\r\nSet-Cookie: a=b; Max-Age=999\r\nContent-Length: 0\r\n\r\n"
        )


HITS: list[str] = []
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
threading.Thread(target=SERVER.serve_forever, daemon=True).start()


def keys() -> list[str]:
    """Return git's own keys, with a name where the documentation has a placeholder."""
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True).stdout.split()
    found = []
    # An underscore is no part of a key: git would not read the file, and nothing would be tried.
    for one in (two for two in (*listed, *ALSO) if "_" not in two):
        section = one.partition(".")[0].lower()
        if re.fullmatch(r"[A-Za-z][\w.<>*()|:/-]*", one) and "." in one:
            found.append(re.sub(r"<[^>]*>|\*", NAMED.get(section, "k"), one))
    return list(dict.fromkeys(found))


class Arena:
    """A user's project with nested repositories, made anew for each try from one copy."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.copy = base, base / "project", base / "copy"
        for name in ("marks", "bin", "outside", "home", "hooks"):
            (base / name).mkdir(parents=True, exist_ok=True)
        (base / "hooks/post-commit").write_text(f"#!/bin/sh\ntouch {base}/marks/core_hooksPath\n")
        (base / "hooks/post-commit").chmod(0o755)
        (base / "outside/file").write_text("outside\n")
        (base / "home/.gitconfig").write_text(
            "[user]\n\tname=u\n\temail=u@example.org\n[init]\n\tdefaultBranch=main\n[advice]\n\tdetachedHead=false\n"
        )
        self.copy.mkdir()
        self.shell(f"git init -q; git commit -q --allow-empty -m 0; {MADE}", self.copy, seconds=60)

    def shell(self, script: str, folder: Path, seconds: float = 20) -> None:
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.base / "home"), "EDITOR": "true", "PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
            "GIT_CEILING_DIRECTORIES": str(self.base),
        }  # fmt: skip
        subprocess.run(["timeout", str(seconds), "bash", "-c", script], cwd=folder, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)  # fmt: skip

    def fresh(self, prelude: str) -> None:
        for _ in range(3):
            shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self.copy, self.root, symlinks=True, dirs_exist_ok=True)
        # Worktrees name the folder that they were made in.
        self.shell("git -C lib worktree repair ../tree", self.root)
        if prelude in ("http", "ssh", "git"):
            self.shell(LOSE, self.root)
        for path in (self.base / "marks").iterdir():
            path.unlink()
        HITS.clear()

    def lines(self, chosen: list[str], kind: str, prelude: str) -> str:
        out = [*PRELUDES[prelude].format(base=self.base, port=SERVER.server_port).split()]
        for key in chosen:
            mark = re.sub(r"\W", "_", key)
            if kind == "program":
                (self.base / "bin" / mark).write_text(f"#!/bin/sh\ntouch {self.base}/marks/{mark}\nfalse\n")
                (self.base / "bin" / mark).chmod(0o755)
            out.append(f"{key}={KINDS[kind].format(base=self.base, mark=mark, port=SERVER.server_port)}")
        return "".join(map(as_text, out))

    def fired(self, place: str) -> list[str]:
        """Do what a user does in the root and in the repository, and return what happened by it."""
        for folder in (
            ".",
            {"worktree": "tree", "bare": "bare", "submodule": "lib/sub", "store": "sub", "commondir": "sub"}.get(place, "lib"),
        ):
            if (self.root / folder).is_dir():
                self.shell(USED, self.root / folder)
        found = sorted(path.name for path in (self.base / "marks").iterdir())
        outside = {path.name: path.read_text() if path.is_file() else "" for path in (self.base / "outside").iterdir()}
        if outside != {"file": "outside\n"}:
            found.append("a file outside changed")
            shutil.rmtree(self.base / "outside")
            (self.base / "outside").mkdir()
            (self.base / "outside/file").write_text("outside\n")
        return found + [f"host asked: {one}" for one in HITS[:1]]


def as_text(setting: str) -> str:
    key, _, value = setting.partition("=")
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    head = f'[{section} "{middle}"]' if middle else f"[{section}]"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{head}\n\t{name} = "{quoted}"\n'


FILES = {
    "nested": "lib/.git/config", "worktree": "lib/.git/worktrees/tree/config.worktree", "bare": "bare/config", "include": "lib/shared", "includeif": "lib/shared",
    "config.worktree": "lib/.git/config.worktree", "submodule": "lib/.git/modules/sub/config",
}  # fmt: skip


def wrote(arena: Arena, writer: str, place: str, text: str) -> str:
    """Have a call of ours put the lines into a repository's settings; return the place where the user meets it."""

    def bash(command: str, **more: str) -> None:
        answer = rye.execute("rye/bash/bash", {"command": command, **more}, project_path=arena.root)
        assert answer["data"].get("code") in (None, "command_failed"), answer

    if writer == "command":
        named = {"include": "include", "includeif": "includeIf.gitdir:**"}.get(place)
        first = f"git -C lib config '{named}.path' ../shared; " if named else ""
        bash(f"{first}cat >>{FILES[place]}", stdin=text)
        return place
    text = f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n{text}"
    if writer == "write":
        rye.execute("rye/file-system/write", {"file_path": "store/config", "content": text}, project_path=arena.root)
    elif writer == "upload":
        files.put(str(arena.root), "/store/config", io.BytesIO(text.encode()))
    else:
        bash("mkdir store; cat >store/config", stdin=text)
        bash("rm -r store")
        rye.execute("rye/file-system/undo", {}, project_path=arena.root)
    parts = "for one in HEAD refs objects index; do cp -r lib/.git/$one {0}/; done"
    if place == "commondir":
        bash(
            f"mkdir -p store g sub; {parts.format('store')}; {parts.format('g')}; echo ../store >g/commondir; echo gitdir: ../g >sub/.git; git add sub"
        )
    else:
        bash(f"mkdir -p store sub; {parts.format('store')}; echo gitdir: ../store >sub/.git; git add sub")
    return place


def tried(arena: Arena, writer: str, place: str, text: str, prelude: str) -> list[str]:
    """Return what happened by the lines in a repository's settings, twice: once it may be late, of the try before."""
    found: list[str] = []
    for _ in range(2):
        arena.fresh(prelude)
        found = arena.fired(wrote(arena, writer, place, text))
        if not found:
            break
    return found


def stays(text: str) -> bool:
    try:
        return not git_settings.questionable(text.encode())
    except git_settings.UnreadableError:
        return False


def split(arena: Arena, kind: str, chosen: list[str]) -> bool:
    """Try keys together, and on a hit each half, down to the keys that did it; tell whether there was one."""
    found = tried(arena, "command", "nested", arena.lines(chosen, kind, "none"), "ssh")
    halves = [chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]] if found and len(chosen) > 1 else []
    if not sum(split(arena, kind, half) for half in halves):
        print(
            json.dumps({"writer": "command", "place": "nested", "kind": kind, "key": " ".join(chosen), "fired": found}),
            flush=True,
        )
    return bool(found)


def main() -> None:
    base, mode, chance, share = Path(sys.argv[1]), sys.argv[2], random.Random(int(sys.argv[3])), float(sys.argv[4])
    os.environ["USER_SPACE"] = str(base / "user")
    arena = Arena(base)
    if mode == "off":
        ways: dict[str, list[str]] = {}
        for one in CONTROLS.split():
            ways.setdefault(one.partition("=")[2], []).append(one.partition("=")[0])
        for how, controls in ways.items():
            kind, _, prelude = how.partition(":")
            # Two that start a program are in one file, where no other one of their section is beside them.
            files = 10 if how == "shell" else len(controls)
            for group in (controls[at::files] for at in range(files)):
                arena.fresh(prelude or "plain")
                with open(arena.root / FILES["nested"], "a", encoding="utf-8") as file:
                    file.write(arena.lines(group, kind, prelude or "plain"))
                # Asked is the address itself there: only a program or a file counts.
                found = [one for one in arena.fired("nested") if prelude != "asking" or not one.startswith("host")]
                for key in group:
                    mine = found if len(group) == 1 else [one for one in found if one == re.sub(r"\W", "_", key)]
                    print(json.dumps({"key": key, "kind": kind, "fired": mine}), flush=True)
        return
    every = keys()
    controls = [one.partition("=")[0] for one in CONTROLS.split()]
    chosen = every if share >= 1 else sorted({*controls, *chance.sample(every, int(len(every) * share))})
    tries = [("command", "nested", kind, prelude) for kind in WIDE for prelude in ("plain", "http", "ssh", "git")]
    tries += [("command", place, kind, "plain") for place in PLACES[1:] for kind in WIDE]
    tries += [
        (writer, store, kind, prelude)
        for store in STORES
        for writer in WRITERS[1:]
        for kind in WIDE
        for prelude in ("plain", "ssh")
    ]
    chance.shuffle(chosen)
    for number, (writer, place, kind, prelude) in enumerate(chance.sample(tries, min(len(tries), int(len(tries) * share) + 1))):
        mixed = [chosen[at % len(chosen)] for at in range(number * MIXED, (number + 1) * MIXED)]
        # A remote's address stays, and the user's own fetch asks it.
        mixed = [key for key in mixed if key not in ADDRESSES]
        found = tried(arena, writer, place, arena.lines(mixed, kind, prelude), prelude)
        print(json.dumps({"writer": writer, "place": place, "kind": kind, "prelude": prelude, "fired": found}), flush=True)
    # What our verdict lets stay is tried without the rest, with which the file as a whole is set aside.
    for kind in WIDE:
        stay = [key for key in chosen if stays(arena.lines([key], kind, "none"))]
        chance.shuffle(stay)
        for at in range(0, len(stay), TOGETHER):
            split(arena, kind, stay[at : at + TOGETHER])


if __name__ == "__main__":
    main()
