"""The look at repositories after a command: what is set aside, and what stays as it is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rye.process.autorun import command_check, findings, git_settings
from rye.sandbox import sandbox
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace
from support.machine import needs_bubblewrap
from support.shell_calls import bash, job, started
from support.waiting import until


def report():
    return {"kind": "bubblewrap", "holds": ["protected_names"], "missing": {}}


def confined():
    return sandbox.Confined([], {}, (), report())


def git(*words, cwd):
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
    words = ("-c", "user.name=a", "-c", "user.email=a@example.org", *words)
    return subprocess.run(["git", *words], cwd=cwd, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(project):
    """A project with a repository; what the test's own git did so far is the user's."""
    git("init", "-q", ".", cwd=project)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=project)
    return os.path.realpath(project)


def looked(root, *commands, cwd=None):
    """What a look finds after commands that run as a model's do."""
    with Workspace(root) as ws, running_commands.running(ws.fd) as token:
        look = command_check.begin(ws, token, confined(), lambda _: set(), {})
        for command in commands:
            subprocess.run(command, shell=True, cwd=cwd or root, check=True, capture_output=True)
        return command_check.end(look, report(), ws.fd)


def test_only_the_program_keys_are_set_aside_and_the_file_as_it_was_is_stored(root):
    done = looked(root, "git init -q new", "cd new && git config core.fsmonitor ./evil && git config user.name x")
    assert done == [{"path": "new/.git/config", "what": "core.fsmonitor", "stored": "new/.git/config.rye-set-aside"}]
    assert git("config", "user.name", cwd=f"{root}/new") == "a\n"
    text = Path(f"{root}/new/.git/config").read_text()
    assert "fsmonitor" not in text
    assert "name = x" in text
    assert "evil" in Path(f"{root}/new/.git/config.rye-set-aside").read_text()
    # The user puts it back, and the next command leaves it.
    os.replace(f"{root}/new/.git/config.rye-set-aside", f"{root}/new/.git/config")
    assert looked(root, "true") == []
    assert looked(root, "git -C new config user.email y") == []
    assert "evil" in Path(f"{root}/new/.git/config").read_text()


@pytest.mark.parametrize("times", [1, 100])
def test_what_a_person_sets_while_settings_are_set_aside_stays(root, monkeypatch, times):
    judged, rest = [], command_check._rest

    def interrupted(tree, folder, data, found):
        judged.append(found)
        if len(judged) <= times:
            git("config", "user.name", f"person{len(judged)}", cwd=f"{root}/new")
        return rest(tree, folder, data, found)

    monkeypatch.setattr(command_check, "_rest", interrupted)
    (done,) = looked(root, "git init -q new", "git -C new config core.fsmonitor ./evil")
    # Where somebody writes again and again, the program goes all the same: a command could write so.
    assert done["stored"]
    assert len(judged) == (2 if times == 1 else command_check._TRIES)
    text = Path(f"{root}/new/.git/config").read_text()
    assert "fsmonitor" not in text
    assert f"name = person{len(judged) - 1}" in text
    assert not [
        name for name in os.listdir(f"{root}/new/.git") if "aside" in name and name != done["stored"].rpartition("/")[2]
    ]


def test_what_the_user_set_before_stays(root):
    git("init", "-q", "lib", cwd=root)
    git("config", "core.sshCommand", "ssh -i key", cwd=f"{root}/lib")
    git("config", "core.hooksPath", ".husky", cwd=root)
    assert looked(root, "git -C lib remote add o x", "git config user.name z") == []
    # What the user sets between two commands is the user's too.
    git("config", "alias.st", "status", cwd=f"{root}/lib")
    assert looked(root, "git -C lib config user.name z") == []
    assert [one["what"] for one in looked(root, "git -C lib config core.editor ./evil")] == ["core.editor"]
    assert git("config", "--get-regexp", "core.sshcommand|alias", cwd=f"{root}/lib").count("\n") == 2


def refused(data, inside, root):
    return git_settings.refused(git_settings.questionable(data), str(inside), str(root))


PLAIN = """
core.bare=true core.filemode=false core.autocrlf=input extensions.worktreeconfig=true extensions.objectformat=sha256
core.sparsecheckoutcone=true index.sparse=true user.name=x user.email=a@b pull.rebase=true init.defaultbranch=main color.ui=auto
remote.o.url=https://example.org/x remote.o.url=git@example.org:a/b.git remote.o.url=ssh://git@example.org/x remote.o.url=../other
remote.o.url={root}/other remote.o.url=file://{root}/other remote.o.fetch=+refs/heads/*:refs/remotes/o/* remote.o.tagopt=--no-tags
branch.main.merge=refs/heads/main branch.main.remote=. branch.main.rebase=true submodule.a.update=checkout submodule.a.active=true
submodule.a.url=https://example.org/x user.signingkey=ABCDEF01! user.signingkey=a@b user.signingkey=key::ssh-ed25519
merge.conflictstyle=diff3 maintenance.strategy=incremental remote.o.gh-resolved=base core.worktree=../../../sub
"""
OTHERS = """
core.fsmonitor=true core.fsmonitor=./x core.sshcommand=x core.worktree=. core.worktree=/etc core.worktree=../../../link
core.worktree=../../../link/sub core.worktree=../../../other remote.o.url=ext::sh remote.o.url=/etc remote.o.url=../../../../../x
remote.o.url=-oProxyCommand=x:y remote.o.url=ssh://-oProxyCommand=x/y remote.o.url=file://etc/x remote.o.url=ftp://example.org/x
remote.o.partialclonefilter=blob:none remote.o.promisor=true remote.o.proxy=http://h remote.o.vcs=x
remote.o.uploadpack=x remote.o.fetch=../../x extensions.partialclone=o extensions.future=1 submodule.a.update=!x filter.a.clean=x
filter.a.required=true diff.a.textconv=x diff.external=x merge.a.driver=x alias.a=status include.path=x includeif.gitdir:/a.path=x
credential.helper=x gpg.program=x gpg.ssh.defaultkeycommand=x sequence.editor=x pager.log=x interactive.difffilter=x
protocol.ext.allow=always hook.a.command=x merge.tool=meld svn.authorsprog=x http.proxy=x http.https://h.sslverify=false url.x.insteadof=y
maintenance.gc.schedule=x rebase.instructionformat=%s pull.twohead=../x branch.main.mergeoptions=-sx init.templatedir=x user.signingkey=/x user.signingkey=-x user.signingkey=../x user.signingkey=~/x user.signingkey=!x
core.unknown=1 new.key=1
"""


@pytest.mark.parametrize(
    ("setting", "is_plain"), [(one, True) for one in PLAIN.split()] + [(one, False) for one in OTHERS.split()]
)
def test_which_settings_are_plain(tmp_path, setting, is_plain):
    root = Path(os.path.realpath(tmp_path))
    inside = root / ".git/modules/sub"
    for path in (inside, root / "sub", root / "other"):
        path.mkdir(parents=True)
    (root / "sub/.git").write_text("gitdir: ../.git/modules/sub\n")
    (root / "link").symlink_to(root)
    key, _, value = setting.format(root=root).partition("=")
    path = tmp_path / "config"
    git("config", "--file", str(path), key, value, cwd=tmp_path)
    found = refused(path.read_bytes(), inside, root)
    assert [one for _, one in found] == ([] if is_plain else [value])
    left = git_settings.without(path.read_bytes(), found, str(tmp_path))
    assert refused(left, inside, root) == []
    # However an address that starts a program is quoted.
    for value in ('ext:":"sh', '"ext::sh"', "ext::sh"):
        assert refused(f'[remote "o"]\n\turl = {value}\n'.encode(), inside, root) == [("remote.o.url", "ext::sh")]


def test_git_is_found_on_path_too_but_never_in_the_project(root, tmp_path, monkeypatch):
    program = shutil.which("git")
    (tmp_path / "opt").mkdir()
    (tmp_path / "opt/git").symlink_to(program)
    Path(f"{root}/git").write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec {program} "$@"\n')
    Path(f"{root}/git").chmod(0o755)
    monkeypatch.setattr(git_settings, "_PLACES", "/nowhere")
    monkeypatch.setenv("PATH", f"{root}:{tmp_path}/opt:{os.environ['PATH']}")
    assert looked(root, "git init -q new", "git -C new config user.name x") == []
    found = looked(root, "git -C new config core.fsmonitor x")
    assert [one["what"] for one in found] == ["core.fsmonitor"]
    assert Path(f"{root}/new/.git/config").exists()
    # Without any, what cannot be read is set aside as a whole.
    (tmp_path / "ran").unlink(missing_ok=True)
    monkeypatch.setenv("PATH", root)
    found = looked(root, "echo '[user]' >>new/.git/config")
    assert [one["what"] for one in found] == ["unreadable"]
    assert not (tmp_path / "ran").exists()


def test_a_command_whose_caller_was_killed_is_looked_for_by_the_next(root, user_space):
    with Workspace(root) as ws, running_commands.running(ws.fd) as token:
        command_check.begin(ws, token, confined(), lambda _: set(), {})
        # Of so much that the record would have more than 64 MB, were all of it kept.
        Path(root, "much").write_bytes(b"[alias]\n" + b"\ta = %s\n" % (b"\xff" * 9_000) * 110)
        looked(root, "for n in $(seq 12); do git init -q r$n; { cat much; echo '#' $n; } >>r$n/.git/config; done")
        git("init", "-q", "new", cwd=root)
        git("config", "core.pager", "./evil", cwd=f"{root}/new")
    (path,) = user_space.glob(".ai/state/*/repositories.json")
    assert json.loads(path.read_bytes())["running"] == [token]
    assert [one["what"] for one in looked(root, "true")] == ["core.pager"]
    assert json.loads(path.read_bytes())["running"] == []


@pytest.mark.parametrize("while_it_runs", [False, True])
def test_what_a_job_made_is_set_aside_at_its_end_or_at_that_of_a_command_beside_it(project, while_it_runs):
    job_id = started(project, f"git init -q new; git -C new config core.pager ./evil; echo made; sleep {60 * while_it_runs}")
    if while_it_runs:
        until(lambda: "made" in job(project, "read", job_id)["output"])
        data = bash(project, "true")
        assert data["output"].startswith("[sandbox: git or another program")
        job(project, "end", job_id)
    else:
        data = job(project, "wait", job_id, timeout=120)
        assert "core.pager" in job(project, "read", job_id)["output"]
    assert [one["what"] for one in data["set_aside"]] == ["core.pager"]
    assert "core.pager of new/.git/config" in data["output"]


@needs_bubblewrap
def test_two_jobs_do_not_exchange_each_others_settings_for_ever(project):
    git("init", "-q", ".", cwd=project)
    jobs = [
        started(project, "while sleep 0.02; do echo '[core] pager = ./evil' >> .git/config || echo refused; done")
        for _ in range(2)
    ]
    for one in jobs:
        until(lambda one=one: "refused" in job(project, "read", one)["output"])
    for number in range(5):
        git("config", "user.name", f"z{number}", cwd=project)
    git("config", "alias.st", "!git status", cwd=project)

    def state():
        time.sleep(1)
        return os.stat(project / ".git/config").st_ino, [job(project, "read", one)["total_bytes"] for one in jobs]

    states = [state()]
    end = time.monotonic() + 60
    while len(states) < 3 or len({inode for inode, _ in states[-3:]}) > 1:
        assert time.monotonic() < end, states
        states.append(state())
    # They go on, and their writes are refused.
    assert all(before < after for before, after in zip(states[-3][1], states[-1][1], strict=True))
    assert "alias" not in git("config", "--list", "--local", cwd=project)
    assert git("config", "--file", ".git/config", "user.name", cwd=project) == "z4\n"
    for one in jobs:
        assert job(project, "read", one)["status"] == "running"
        job(project, "end", one)


@needs_bubblewrap
def test_a_job_is_ended_where_a_covered_name_cannot_be_covered_again(project):
    git("init", "-q", ".", cwd=project)
    job_id = started(project, "sleep 60")
    time.sleep(0.3)
    (project / ".git/config").unlink()
    data = job(project, "wait", job_id, timeout=120)
    assert (data["status"], data["why"], data["uncovered"]) == ("ended", "unprotected", f"{project}/.git/config")
    assert "Start it again" in data["output"]


def test_settings_made_to_take_long_do_not(root):
    """A file that includes itself a thousand times, and very many repositories."""
    includes = "".join("\tpath = config\n" for _ in range(1_000))
    others = "".join(f"\tpath = ../../x{number}\n" for number in range(1_000))
    Path(root, "made").write_text(f"[include]\n{includes}{others}")
    files = "for n in $(seq 0 999); do printf '[alias]\\n\\ta = b\\n' > x$n; done"
    many = "git init -q new; for n in $(seq 300); do cp -r new r$n; done; cat made >> new/.git/config"
    # Git would list the one as half a gigabyte; to follow the other takes the square of its length.
    Path(root, "long").write_text(f'[s "{"x" * 32_000}"]\n' + "a\n" * 16_000)
    Path(root, "way").write_text(f'[filter "x"]\n\tclean = python3 {"a/" * 400_000}\n')
    started = time.process_time()
    done = looked(root, f"{files}; {many}; cat long >>r1/.git/config; cat way >>r2/.git/config; cat way >>r3/.git/config")
    assert time.process_time() - started < 30
    assert {one["path"] for one in done} > {"new/.git/config", "x0"}
    assert [one["what"] for one in done if one["path"] == "r1/.git/config"] == ["unreadable"]
    assert looked(root, "true") == []


@pytest.mark.parametrize(("few", "found"), [(256, "3001"), (4, "[Errno 24]")])
def test_folders_of_any_depth_are_found_with_few_descriptors_and_with_too_few_the_look_fails(tmp_path, few, found):
    made = "import os, resource\nfrom rye.workspace import repositories\nfor _ in range(3_000): os.mkdir('d'); os.chdir('d')\n"
    less = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({few}, {few}))\n"
    code = (
        f"{made}{less}try: print(len(repositories.listings({os.path.realpath(tmp_path)!r})))\nexcept OSError as err: print(err)"
    )
    words = ["sh", "-c", '"$@"; rm -rf d', "sh", sys.executable, "-c", code]
    assert subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.startswith(found)


@pytest.mark.parametrize("name", ["open", "listdir", "scandir"])
def test_a_look_that_is_short_of_descriptors_at_any_point_fails(root, monkeypatch, name):
    made = (
        "mkdir .hooks .claude json; touch .envrc .claude/s json/m.py; cp .envrc .hooks/commit-msg; cp .envrc inc; git init -q n"
    )
    settings = "git config core.hooksPath .hooks; git config include.path ../inc; git config filter.x.clean 'python3 x.py'"
    subprocess.run(
        f"{made}; {settings}; echo gitdir: / >json/.git; echo 'exec x' >n/.git/sequencer", shell=True, cwd=root, check=True
    )
    real, looks, info = getattr(os, name), [], os.stat(root)
    for at in range(99):
        left = iter([False] * at + [True])

        def short(*words, left=left, **more):
            if next(left, False):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return real(*words, **more)

        place = info.st_dev, info.st_ino
        with monkeypatch.context() as patch, suppress(OSError), findings.opened(root, place) as tree:
            patch.setattr(os, name, short)
            looks.append(command_check._all(tree, {"parsed": {}}, [".envrc", ".claude"], exactly=[".envrc", ".claude"]))
    assert len(looks) < 99
    assert all(look == looks[-1] for look in looks)
    assert {one.what for one in looks[-1]} >= {"hook", "pointer", findings.NAME, findings.PROGRAM}
