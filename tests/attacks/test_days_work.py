"""A day's work with git is not disturbed: what tools write by `bash` stays, but for what starts programs, and a person goes on with it.

Each row names all that is set aside.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rye
from support.machine import needs_bubblewrap
from support.terminal import typed

pytestmark = [pytest.mark.slow, needs_bubblewrap]

FILES = "git -c protocol.file.allow=always"
ORIGIN = """git init -q -b main; mkdir src; echo 1 >src/f; echo /origins >.gitignore; git add -A; git commit -qm 0; git init -q -b main origins/lib
cd origins/lib; mkdir src; printf '[package]\\nname = "lib"\\nversion = "0.1.0"\\nedition = "2021"\\n' >Cargo.toml; echo 'pub fn f() {}' >src/lib.rs
echo '{"name": "lib", "version": "1.0.0"}' >package.json; printf 'module example.org/lib.git\\n\\ngo 1.19\\n' >go.mod; echo package lib >lib.go
git add -A; git commit -qm 1; git tag v1.0.0"""
NPM = """echo '{"name": "p", "version": "1.0.0"}' >package.json"""
CRATE = """mkdir -p src; echo 'fn main() { lib::f() }' >src/main.rs; printf '[package]\\nname = "p"\\nversion = "0.1.0"\\nedition = "2021"\\n' >Cargo.toml
printf '[dependencies]\\nlib = { git = "file://%s/origins/lib" }\\n' $PWD >>Cargo.toml"""
GO = """printf 'module p\\n\\ngo 1.19\\n' >go.mod; export GOFLAGS=-mod=mod GOPROXY=direct GOSUMDB=off GOMODCACHE=$PWD/.gm GOCACHE=$PWD/.gc
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$PWD/origins/lib.insteadOf GIT_CONFIG_VALUE_0=https://example.org/lib"""
CHECKS = "printf 'repos: []\\n' >.pre-commit-config.yaml; PRE_COMMIT_HOME=$PWD/.pc pre-commit install"
NESTED = "git clone -q origins/lib n; cd n"
LFS = ["n/.git/config", *(f"n/.git/hooks/{name}" for name in ("post-checkout", "post-commit", "post-merge", "pre-push"))]
REFUSED = ["refused: the project's own"]
# name: (programs that it needs, the command, what the person does after it, what is set aside)
ROWS = {
    "init": ("git", "git init -q a; cd a; git commit -q --allow-empty -m x; git config user.name y", "cd a; git log", []),
    "clone": ("git", "git clone -q origins/lib c; git clone -q --bare origins/lib b.git; git clone -q --depth 1 file://$PWD/origins/lib d", "cd c; git pull -q", []),
    "clone of a part": ("git", "git clone -q --filter=blob:none file://$PWD/origins/lib p", "cd p; git log", ["p/.git/config"]),
    "clone of a mirror": ("git", "git clone -q --mirror origins/lib m.git", "cd m.git; git log", ["m.git/config"]),
    "submodule add": ("git", f"{FILES} submodule --quiet add ./origins/lib sub", f"{FILES} submodule --quiet add ./origins/lib sub; git commit -m s", REFUSED),
    "submodule add, nested": ("git", f"{NESTED}; {FILES} submodule --quiet add $PWD/../origins/lib sub; git commit -qm s", "cd n; git submodule update", []),
    "fifty submodules": ("git", f"{NESTED}; for n in $(seq 50); do {FILES} submodule --quiet add --name s$n $PWD/../origins/lib s$n; done; git commit -qm s", f"cd n; {FILES} submodule update && git status", []),
    "worktree add": ("git", "git worktree add -q w", "git worktree add -q w", REFUSED),
    "worktree add, nested": ("git", f"{NESTED}; git worktree add -q ../w", "cd w; git commit --allow-empty -m y; git worktree list", []),
    "sparse-checkout set": ("git", "git sparse-checkout set src; git status", "git sparse-checkout list; git sparse-checkout disable", []),
    "sparse-checkout set, nested": ("git", f"{NESTED}; git sparse-checkout set src; git status", "cd n; git sparse-checkout disable", []),
    "remotes and branches": ("git", f"{NESTED}; git remote add up https://example.org/x.git; git config remote.up.gh-resolved base; git checkout -q -b a/b; git branch -q --set-upstream-to=origin/main; git config pull.ff only; git stash; git bisect start; git bisect reset; git config maintenance.auto false; git config maintenance.strategy incremental; git gc -q", "cd n; git log", []),
    "git lfs install --local": ("git-lfs", "git lfs install --local", "git lfs install --local; git status", REFUSED),
    "git lfs install --local, nested": ("git-lfs", f"{NESTED}; git lfs install --local", "cd n; git status", LFS),
    "pre-commit install": ("pre-commit", CHECKS, f"{CHECKS}; git commit --allow-empty -m x", [*REFUSED, ".pre-commit-config.yaml"]),
    "pre-commit install, nested": ("pre-commit", f"{NESTED}; {CHECKS}", "cd n; git commit --allow-empty -m x", ["n/.git/hooks/pre-commit"]),
    "husky": ("npm", f"{NPM}; npm install -D husky && npx husky init; git config core.hooksPath .husky/_", "npx husky && git config core.hooksPath && git commit --allow-empty --no-verify -m x", [*REFUSED, ".husky/pre-commit"]),
    "npm with a git dependency": ("npm", f"{NPM}; npm install git+file://$PWD/origins/lib", "npm ls && git status", []),
    "cargo with a git dependency": ("cargo", f"{CRATE}; CARGO_HOME=$PWD/.ch cargo fetch", "CARGO_HOME=$PWD/.ch cargo fetch && git status", []),
    "go with a git dependency": ("go", f"{GO}; go get example.org/lib.git@v1.0.0", "grep lib go.mod && git status", []),
}  # fmt: skip


def person(project: Path, script: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
    settings = "[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n"
    (project.parent / ".gitconfig").write_text(settings)
    names = {name: value for name, value in os.environ.items() if name in ("PATH", "RUSTUP_HOME", "HOME")}
    env = {**names, "GIT_CONFIG_GLOBAL": f"{project.parent}/.gitconfig", "npm_config_cache": f"{project.parent}/npm"}
    return subprocess.run(["bash", "-c", script], cwd=project / folder, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)  # fmt: skip


def bash(project: Path, command: str, **more: object) -> dict:
    identity = {f"GIT_{who}_{what}": "m@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return rye.execute("rye/bash/bash", {"command": command, "env": identity, "timeout": 300, **more}, project_path=project)[
        "data"
    ]


def done(project: Path, name: str) -> list[str]:
    """Have a command and then a person do a row's work; return what was set aside."""
    _, command, after, _ = ROWS[name]
    made = person(project, ORIGIN)
    assert made.returncode == 0, made.stderr
    data = bash(project, command)
    if re.search("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT", data.get("output", "")):
        pytest.skip("needs npm's registry")
    moved = sorted(one["path"] for one in data.get("set_aside") or ())
    if "Ask the user to run this git command in a terminal" in data.get("output", ""):
        moved = REFUSED
    else:
        assert data["success"], data
    went = person(project, after)
    assert went.returncode == 0, went.stdout + went.stderr
    # What the person made start by that, where a command wrote it last, is judged at the next look.
    return moved + sorted(one["path"] for one in bash(project, "true").get("set_aside") or ())


@pytest.mark.parametrize("name", ROWS)
def test_what_tools_write_stays(project, name):
    needs, _, _, expected = ROWS[name]
    if shutil.which(needs) is None:
        pytest.skip(f"needs {needs}")
    assert done(project, name) == expected
    for path in (one for one in expected if one not in REFUSED):
        code, shown = typed("trust", "settings", path, cwd=project, answers=["yes"])
        assert code == 0, shown
    assert "set_aside" not in bash(project, "true")


def test_a_persons_own_work_while_a_job_runs(project):
    """Plain work is not set aside; what starts a program, and its way back, is cli/test_trust's."""
    person(project, f"{ORIGIN}; cd ../..; git clone -q origins/lib n")
    work = [
        "git commit --allow-empty -m 1; git checkout -q -b side; git tag t",
        "git stash; git rebase main",
        "git worktree add -q ../$RANDOM; git gc -q",
    ]
    settings = [
        "git config user.name z", "git remote add up https://example.org/x.git; git config branch.side.rebase true",
        f"{FILES} submodule --quiet add {project}/origins/lib s; git commit -qm s", "git sparse-checkout set src",
    ]  # fmt: skip
    for folder, rows in ((".", work + settings), ("n", work + settings)):
        job_id = bash(project, "sleep 300", background=True)["job_id"]
        for one in rows:
            assert person(project, one, folder).returncode == 0, one
            data = bash(project, "true")
            # A protected name, which the command's look or the job's own takes for the job's: whichever comes first.
            aside = [place for place in data.get("set_aside", ()) if place["path"] != ".gitmodules"]
            assert not aside, (folder, one, aside)
        # Also where the person's git replaces the settings of the root, which the job's sandbox covers.
        status = rye.execute("rye/bash/job", {"action": "read", "job_id": job_id}, project_path=project)["data"]
        assert (status["status"], status.get("why")) == ("running", None)
    for row in rye.execute("rye/bash/job", {"action": "list"}, project_path=project)["data"]["jobs"]:
        rye.execute("rye/bash/job", {"action": "end", "job_id": row["job_id"]}, project_path=project)
