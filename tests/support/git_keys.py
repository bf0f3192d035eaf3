"""Hostile values for git's own keys, in repositories that a call of the model made or changed: a campaign of `users_git.py`.

Words: a seed, a share of keys and tries (1: all). With a sandbox many keys stand in one file, at each place, and those
keys that our verdict lets stay; without one each key that is known to do harm stands alone.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from rye.process.autorun import git_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from users_git import Arena

NAMED = {
    "alias": "st", "pager": "log", "branch": "main", "remote": "origin", "submodule": "sub", "url": "http://example.invalid/",
}  # fmt: skip
# What git lists under no name of its own, or only by a star.
ALSO = (
    "include.path", "alias.status", "http.http://127.0.0.1.proxy", "extensions.partialClone", "hook.k.command", "hook.k.event",
)  # fmt: skip
KINDS = {
    "program": "$BASE/bin/{mark}", "shell": "touch $MARKS/{mark}; false", "bang": "!touch $MARKS/{mark}",
    "url": "http://127.0.0.1:$PORT/{mark}", "ext": "ext::sh -c touch% $MARKS/{mark}", "outside": "$BASE/outside/file",
    "steps": "%s%nexec touch $MARKS/{mark}", "true": "true", "folder": "$BASE/outside", "hooks": "$BASE/hooks",
    "jar": "$BASE/outside/jar", "resolve": "example.invalid:443:127.0.0.1",
}  # fmt: skip
WIDE = ("program", "shell", "bang", "url", "ext", "outside", "steps", "true", "folder")
# Settings without which others start nothing; a missing object of a promisor makes git fetch.
PRELUDES = {
    "none": "",
    "plain": "commit.gpgsign=true log.showsignature=true diff.tool=k merge.tool=k",
    "http": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=https://example.invalid/x.git",
    "ssh": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=ssh://example.invalid/x.git",
    "asking": "core.repositoryformatversion=1 remote.origin.url=http://127.0.0.1:$PORT/x.git http.savecookies=true",
    "local": "remote.origin.url=$BASE/copy/inner",
    "git": "core.repositoryformatversion=1 extensions.partialclone=origin remote.origin.promisor=true remote.origin.url=git://example.invalid/x.git",
}
ADDRESSES = ("remote.origin.url", "submodule.sub.url")
# So many are taken out of a file one by one; of more the file as a whole is set aside.
MIXED = 30
TOGETHER = 10
PLACES = ("nested", "worktree", "bare", "include", "includeif", "config.worktree", "submodule")
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
# In the root nothing is hostile but what git finds below it.
IN_THE_ROOT = "git status; git diff; echo 9 >>f; git add -A; git commit -m u; git submodule update; git stash"
LOSE = "cd lib; T=$(git rev-parse HEAD^{tree}); rm -f .git/objects/${T:0:2}/${T:2}"


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


class Bench:
    """The user's nested repositories, made anew for each try from one copy, and files outside."""

    def __init__(self, arena: Arena) -> None:
        self.arena, self.outside = arena, arena.base / "outside"
        for name in ("bin", "copy", "hooks", "outside"):
            (arena.base / name).mkdir()
        self.program("hooks/post-commit", "core_hooksPath")
        (self.outside / "file").write_text("outside\n")
        arena.fresh("")
        arena.shell(f"git init -q; git commit -q --allow-empty -m 0; {MADE}", folder=arena.base / "copy")

    def program(self, path: str, mark: str) -> None:
        (self.arena.base / path).write_text(f"#!/bin/sh\ntouch {self.arena.marks}/{mark}\nfalse\n")
        (self.arena.base / path).chmod(0o755)

    def lines(self, chosen: list[str], kind: str, prelude: str) -> str:
        """Return the text of settings that have a kind of value for each key."""
        out = PRELUDES[prelude].split()
        for key in chosen:
            mark = re.sub(r"\W", "_", key)
            if kind == "program":
                self.program(f"bin/{mark}", mark)
            out.append(f"{key}={KINDS[kind].replace('{mark}', mark)}")
        return self.arena.filled("".join(map(as_text, out)))

    def fresh(self, prelude: str) -> None:
        # Worktrees name the folder that they were made in.
        self.arena.fresh(
            "cp -a $BASE/copy/. .; git -C lib worktree repair ../tree"
            + (f"; {LOSE}" if prelude in ("http", "ssh", "git") else "")
        )
        self.arena.ran()
        self.arena.asked.clear()

    def fired(self, place: str) -> list[str]:
        """Do what a user does in the root and in the repository, and return what happened by it."""
        self.arena.shell(IN_THE_ROOT)
        named = {"worktree": "tree", "bare": "bare", "submodule": "lib/sub"}
        folder = self.arena.root / named.get(place, "lib")
        if folder.is_dir():
            self.arena.shell(USED, folder=folder, seconds=20)
        found = self.arena.ran()
        if {path.name: path.read_text() if path.is_file() else "" for path in self.outside.iterdir()} != {"file": "outside\n"}:
            found.append("a file outside changed")
            shutil.rmtree(self.outside)
            self.outside.mkdir()
            (self.outside / "file").write_text("outside\n")
        return found + [f"host asked: {one}" for one in self.arena.asked[:1]]

    def tried(self, place: str, text: str, prelude: str) -> list[str]:
        """Return what happened by the lines, which a command put into a repository's settings.

        It is tried twice: once it may be late, of the try before.
        """
        included = {"include": "include", "includeif": "includeIf.gitdir:**"}.get(place)
        first = f"git -C lib config '{included}.path' ../shared; " if included else ""
        found: list[str] = []
        for _ in range(2):
            self.fresh(prelude)
            self.arena.bash(f"{first}cat >>{FILES[place]}", stdin=text)
            found = self.fired(place)
            if not found:
                break
        return found


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


def staying(bench: Bench, some: list[str], kind: str) -> list[str]:
    """Return those keys that our verdict lets stay with a kind of value."""
    try:
        found = git_settings.questionable(bench.lines(some, kind, "none").encode())
    except git_settings.UnreadableError:
        # One of them spoils the file.
        halves = (some[: len(some) // 2], some[len(some) // 2 :]) if len(some) > 1 else ()
        return [key for half in halves for key in staying(bench, half, kind)]
    questionable = {key.lower() for key, _ in found}
    return [key for key in some if key.lower() not in questionable]


def campaign(arena: Arena, seed: str, share: str) -> Iterator[dict]:
    bench, chance = Bench(arena), random.Random(int(seed))
    yield from without_a_look(bench) if arena.mode == "off" else under_the_look(bench, chance, float(share))


def without_a_look(bench: Bench) -> Iterator[dict]:
    ways: dict[str, list[str]] = {}
    for one in CONTROLS.split():
        ways.setdefault(one.partition("=")[2], []).append(one.partition("=")[0])
    for how, controls in ways.items():
        kind, _, prelude = how.partition(":")
        # Two that start a program are in one file, where no other one of their section is beside them.
        files = 10 if how == "shell" else len(controls)
        for group in (controls[at::files] for at in range(files)):
            bench.fresh(prelude or "plain")
            with open(bench.arena.root / FILES["nested"], "a", encoding="utf-8") as file:
                file.write(bench.lines(group, kind, prelude or "plain"))
            # Asked is the address itself there: only a program or a file counts.
            found = [one for one in bench.fired("nested") if prelude != "asking" or not one.startswith("host")]
            for key in group:
                mine = found if len(group) == 1 else [one for one in found if one == re.sub(r"\W", "_", key)]
                yield {"key": key, "kind": kind, "fired": mine}


def under_the_look(bench: Bench, chance: random.Random, share: float) -> Iterator[dict]:
    # A remote's address stays, and the user's own fetch asks it: documented as open.
    every = [key for key in keys() if key not in ADDRESSES]
    controls = {one.partition("=")[0] for one in CONTROLS.split()}.difference(ADDRESSES)
    chosen = every if share >= 1 else sorted({*controls, *chance.sample(every, int(len(every) * share))})
    tries = [("nested", kind, prelude) for kind in WIDE for prelude in ("plain", "http", "ssh", "git")]
    tries += [(place, kind, "plain") for place in PLACES[1:] for kind in WIDE]
    chance.shuffle(chosen)
    for number, (place, kind, prelude) in enumerate(chance.sample(tries, min(len(tries), int(len(tries) * share) + 1))):
        mixed = [chosen[at % len(chosen)] for at in range(number * MIXED, (number + 1) * MIXED)]
        yield {"place": place, "kind": kind, "fired": bench.tried(place, bench.lines(mixed, kind, prelude), prelude)}
    # What our verdict lets stay is tried without the rest, with which the file as a whole is set aside.
    for kind in WIDE:
        stay = staying(bench, chosen, kind)
        chance.shuffle(stay)
        for at in range(0, len(stay), TOGETHER):
            group = stay[at : at + TOGETHER]
            yield {"keys": group, "kind": kind, "fired": bench.tried("nested", bench.lines(group, kind, "none"), "ssh")}
