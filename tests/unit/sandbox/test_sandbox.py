"""The sandbox: what a command finds inside, what a report claims, what is refused, and what is left behind (nothing)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rye.errors import RyeError, UsageError
from rye.sandbox import bubblewrap, hidden_paths, landlock, project_mounts, sandbox
from rye.sandbox.sandbox import Policy, confine
from rye.workspace import running_commands
from support.confined import run_confined
from support.shell_calls import bash
from support.waiting import PATIENCE

USABLE = [name for name, why in sandbox.layers().items() if not why]


@pytest.fixture(params=USABLE or ["no layer works here"])
def layer(request, monkeypatch):
    """Each layer that works on this machine; at least one must."""
    assert USABLE, sandbox.layers()
    print("layer:", request.param, "usable:", USABLE)
    if request.param == "landlock":
        monkeypatch.setattr(bubblewrap, "ability", lambda: bubblewrap.Ability(why_not="switched off for this test"))
    return request.param


@pytest.fixture
def bubblewrapped():
    if "bubblewrap" not in USABLE:
        pytest.skip(f"bubblewrap: {sandbox.layers()['bubblewrap']}")


def run(project, script, mode="auto", argv=None, **policy):
    policy = Policy(str(project), str(policy.pop("cwd", project)), **policy)
    done, report = run_confined(argv or ["/bin/sh", "-c", script], policy, mode, cwd=project)
    return done.returncode, done.stdout.decode(), done.stderr.decode(), report


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- what works inside ---


def test_a_command_works_in_the_project(layer, project):
    (project / "sub").mkdir()
    script = "pwd; echo made > file; mv file other; mkdir d; mv other d; cat d/other; echo said >&2; exit 7"
    code, out, err, report = run(project, script, cwd=project / "sub")
    assert (code, out, err) == (7, f"{project}/sub\nmade\n", "said\n")
    assert report["kind"] == layer
    assert (project / "sub/d/other").read_text() == "made\n"
    json.dumps(report)


def test_temporary_files_and_a_home_can_be_used(layer, project):
    code, out, err, _ = run(project, 'f=$(mktemp) && echo x > "$f" && cat "$f" && mkdir -p ~/.cache/x && ls -A ~/.ssh')
    assert out == "x\n", err
    assert code != 0


def test_python_and_what_path_names_can_be_started(layer, project):
    code, out, err, _ = run(project, "", argv=[sys.executable, "-c", "import ssl, sqlite3; print(6 * 7)"])
    assert (code, out) == (0, "42\n"), err


def test_processes_threads_and_pairs_of_sockets_work(layer, project):
    code = (
        "import multiprocessing as m, socket, asyncio, threading; p = m.get_context('fork').Pool(2); print(p.map(abs, [-1, -2])); "
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1)); asyncio.run(asyncio.sleep(0)); p.terminate()"
    )
    status, out, err, _ = run(project, "", argv=[sys.executable, "-c", code], network="off")
    assert (status, out) == (0, "[1, 2]\nb'x'\n"), err


def test_the_environment_is_the_allowed_one_and_what_was_added(layer, project, monkeypatch):
    monkeypatch.setenv("NOTES", "private")
    monkeypatch.setenv("GIVEN", "through")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@proxy:3128")
    monkeypatch.setenv("NO_PROXY", "localhost")
    _, out, _, _ = run(project, "env", pass_env=("GIVEN",), env={"ADDED": "a b\nc", "TERM": "dumb"})
    for line in ("GIVEN=through", "LC_TIME=C", "NO_PROXY=localhost", "ADDED=a b", "TERM=dumb", f"PATH={os.environ['PATH']}"):
        assert line in out.splitlines()
    assert "private" not in out
    assert "secret" not in out


def test_what_a_caller_adds_does_not_reach_what_starts_the_sandbox(layer, project):
    confined = confine(["/bin/true"], Policy(str(project), str(project), env={"LD_PRELOAD": "/x.so", "VALUE": "hidden"}))
    confined.close()
    confined.finish()
    assert "LD_PRELOAD" not in confined.env
    assert "hidden" not in " ".join(confined.argv)


def test_what_a_caller_adds_opens_nothing(layer, project, user_space):
    """Neither a `PATH` that names a folder of keys, nor a value that would go on as options."""
    (user_space / "keys/bin").mkdir(parents=True)
    (user_space / "keys/key").write_text("secret")
    path = f"{user_space}/keys/bin:{os.environ['PATH']}"
    assert run(project, f"cat {user_space}/keys/key", env={"PATH": path})[1] == ""
    for env in ({"X": f"a\0--bind\0{user_space}\0{user_space}"}, {"X\0--bind": "a"}, {"": "a"}, {"A=B": "c"}):
        with pytest.raises(UsageError) as caught:
            run(project, "true", env=env)
        assert caught.value.code == "bad_environment"
    assert names(project) == []


@pytest.mark.parametrize("made", [1, None])
def test_names_of_a_process_that_was_killed_while_it_made_them_go(project, made):
    pid = os.fork()
    if not pid:
        make, left = project_mounts._make, made

        def stopped(*arguments):
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left = left and left - 1
            return make(*arguments)

        project_mounts._make = stopped
        project_mounts.shield(str(project), running_commands.begin(str(project)))
        os.kill(os.getpid(), signal.SIGKILL)
    # Nobody has asked how it ended: its number is still taken.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert len(names(project)) >= 1
    assert set(project_mounts.made_names(str(project))) == set(names(project))
    project_mounts.recover(str(project))
    assert names(project) == []
    os.waitpid(pid, 0)


def test_a_name_exchanged_for_a_link_before_it_is_mounted_opens_nothing(bubblewrapped, project, user_space):
    if not bubblewrap.ability().by_descriptor:
        with running_commands.running(str(project)) as token:
            assert not project_mounts.shield(str(project), token, when_present=False).open
        return
    (user_space / "keys").mkdir()
    (user_space / "keys/key").write_text("secret")
    (project / ".idea").mkdir()
    policy = Policy(str(project), str(project))
    confined = confine(["/bin/cat", f"{user_space}/keys/key", ".idea/key"], policy)
    (project / ".idea").rmdir()
    (project / ".idea").symlink_to(os.path.relpath(user_space / "keys", project))
    done = subprocess.run(
        confined.argv, env=confined.env, pass_fds=confined.fds, cwd=project, capture_output=True, text=True, check=False
    )
    confined.close()
    confined.finish()
    assert done.returncode != 0
    assert "secret" not in done.stdout


def test_no_descriptor_is_left_open_inside(layer, project):
    _, out, _, _ = run(project, "ls /proc/self/fd", network="off")
    assert set(out.split()) <= {"0", "1", "2", "3"}


def test_core_dumps_are_off(layer, project):
    assert run(project, "ulimit -c")[1] == "0\n"


WRITABLE = """
import os
for top, folders, files in os.walk("/proc"):
    # What belongs to processes is the command's own.
    folders[:] = [one for one in folders if not one.isdigit() and one not in ("self", "thread-self")]
    print(*(f"{top}/{one}" for one in files if os.access(f"{top}/{one}", os.W_OK)), sep="\\n", end="")
"""


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user writes nothing there that is not their own, or everybody's")
def test_no_file_of_the_kernel_can_be_written(bubblewrapped, project):
    """Root may write some without any capability."""
    assert run(project, "", argv=[sys.executable, "-c", WRITABLE])[:3] == (0, "", "")
    # Standard output is one of the files below /proc that are no file of the kernel.
    assert run(project, "echo said >/proc/self/fd/1")[1] == "said\n"


def test_a_hidden_folder_is_empty_and_takes_nothing(bubblewrapped, project, user_space):
    (user_space / "key").write_text("secret")
    _, out, err, _ = run(project, f"ls -A {user_space}; touch {user_space}/x || mkdir {user_space}/y || echo refused")
    assert out == "refused\n", err
    assert names(user_space / "x") == names(user_space / "y") == []


# --- what a policy takes away ---


def test_a_project_that_may_only_be_read(layer, project):
    (project / "a").write_text("text")
    _, out, err, report = run(project, "cat a; echo x > b; rm -f a; mkdir c", write_project=False)
    assert out == "text"
    assert names(project) == ["a"], err
    assert {"project_read_only", "protected_names"} <= set(report["holds"])


def test_a_project_that_may_not_be_read(layer, project):
    (project / "a").write_text("text")
    _, out, _, report = run(project, f"cat a {project}/a; ls -A {project}; echo x > b", read_project=False)
    assert out == ""
    assert names(project) == ["a"]
    assert "project_hidden" in report["holds"]


OTHER_PROGRAMS = """
import ctypes, os, shutil, subprocess, sys
true = shutil.which("true")
def told(what, *a, **k):
    # Flushed at once: a call that succeeds may replace this process.
    try: print(what(*a, **k), flush=True)
    except OSError as err: print(err.strerror, flush=True)
told(subprocess.run, [true], check=True)
told(subprocess.run, [sys.executable, "-c", "1"], check=True)
told(os.posix_spawn, true, [true], {})
fd = os.memfd_create("x"); os.write(fd, open(true, "rb").read())
told(os.execve, fd, [true], {})
loader = next((f"{d}/{n}" for d in ("/lib64", "/lib") if os.path.isdir(d) for n in os.listdir(d) if n.startswith("ld-linux")), true)
told(subprocess.run, [loader, true], check=True)
print(os.system(true) == 0)
"""


def test_no_other_program_can_be_started(layer, project):
    _, out, err, report = run(project, "", argv=[sys.executable, "-c", OTHER_PROGRAMS], run=False)
    assert out.splitlines() == ["Permission denied"] * 5 + ["False"], err
    assert "no_programs" in report["holds"]
    # Control: with leave it is started.
    _, out, err, _ = run(project, "", argv=[sys.executable, "-c", OTHER_PROGRAMS])
    assert "CompletedProcess" in out, err


def test_what_another_user_keeps_closed_stays_so_without_a_mount(layer, project):
    if os.geteuid() == 0 or layer != "bubblewrap" or not os.path.exists("/etc/shadow"):
        pytest.skip("for an ordinary user in bubblewrap")
    _, out, err, _ = run(project, "cat /etc/shadow; grep -c ' /etc/shadow ' /proc/self/mountinfo")
    assert out == "0\n"
    assert "Permission denied" in err


def test_a_missing_program_is_told_as_a_shell_does(layer, project):
    for leave in (True, False):
        code, _, err, _ = run(project, "", argv=["/no/such/program"], run=leave)
        assert code == 127
        assert "/no/such/program" in err


def test_what_must_stay_readable_does_below_a_hidden_folder(layer, project, user_space):
    (user_space / "packages").mkdir()
    (user_space / "packages/m.py").write_text("x = 1\n")
    (user_space / "other").write_text("hidden")
    script = f"cat {user_space}/packages/m.py; cat {user_space}/other; echo x > {user_space}/packages/n"
    _, out, _, _ = run(project, script, extra_read=(str(user_space / "packages"),))
    assert out == "x = 1\n"
    assert not (user_space / "packages/n").exists()


def test_a_link_in_a_readable_environment_below_a_hidden_folder_stays_a_link(layer, project, user_space):
    """A virtual environment in the user's home: its `bin/python` links to an interpreter elsewhere in the home."""
    real, environment = user_space / "python3.11", user_space / "venv"
    (environment / "bin").mkdir(parents=True)
    real.write_text("the interpreter\n")
    link = environment / "bin" / "python"
    link.symlink_to(real)
    code, out, err, _ = run(project, f"readlink {link}; cat {link}", extra_read=(str(link), str(real), str(environment)))
    assert (code, out, err) == (0, f"{real}\nthe interpreter\n", "")


def test_a_project_that_is_the_home_keeps_its_keys_hidden(layer, project, monkeypatch):
    monkeypatch.setenv("HOME", str(project))
    (project / ".ssh").mkdir()
    (project / ".ssh/id").write_text("key")
    (project / "file").write_text("text")
    _, out, _, report = run(project, "cat file .ssh/id")
    assert out == "text"
    assert "home" not in str(report["holds"])
    assert str(project) in report["missing"]["home_hidden"]


def test_a_home_below_a_hidden_folder_is_empty_and_can_be_written(layer, tmp_path, monkeypatch):
    monkeypatch.setattr(hidden_paths, "_HOMES", (str(tmp_path / "homes"),))
    home = tmp_path / "homes/me"
    monkeypatch.setenv("HOME", str(home))
    project, python = home / "work/project", home / ".local/share/uv/python/3/bin"
    for folder in (project, home / ".ssh", python, tmp_path / "homes/other"):
        folder.mkdir(parents=True)
    (home / ".ssh/id").write_text("key")
    (python / "python").write_text("#!/bin/sh\necho a python\n")
    (python / "python").chmod(0o755)
    (project / "python").symlink_to(python / "python")
    before = names(tmp_path / "homes")
    _, out, err, _ = run(
        project, f"cat {home}/.ssh/id; ./python; mkdir ~/.npm && echo made; ls {tmp_path}/homes/other; touch {tmp_path}/homes/x"
    )
    assert out == "a python\nmade\n", err
    assert names(tmp_path / "homes") == before


def test_with_the_network_on_a_service_of_the_session_cannot_be_asked(layer, project, tmp_path):
    """An abstract unix socket lies in no folder; a display or a session bus listens on one."""
    import socket

    name = f"\0rye-test-{os.getpid()}"
    code = (
        "import socket, sys; s = socket.socket(); s.connect(('127.0.0.1', int(sys.argv[1]))); print('tcp')\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[2]); print('abstract')"
    )
    with socket.socket(socket.AF_UNIX) as abstract, socket.create_server(("127.0.0.1", 0)) as tcp:
        abstract.bind(name)
        abstract.listen()
        argv = [sys.executable, "-c", code, str(tcp.getsockname()[1]), name[1:]]
        assert run(project, "", argv=argv)[1] == "tcp\n"
        # Control: without a sandbox it answers.
        assert run(project, "", argv=argv, mode="off")[1] == "tcp\nabstract\n"


# --- protected names ---


def test_nothing_is_left_behind(bubblewrapped, project):
    subprocess.run(["git", "init", "-q", project], check=True)
    before = names(project)
    assert ".mcp.json" in run(project, "ls -A")[1]
    assert names(project) == before


def test_a_repository_can_be_used_while_absent_names_are_covered(bubblewrapped, project):
    subprocess.run(["git", "init", "-q", project], check=True)
    who = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    script = "echo 1 > a && git add -A && git commit -qm one && git checkout -qb b && git stash list && git gc -q && git status --short"
    code, out, err, _ = run(project, script, env=who)
    assert (code, out) == (0, ""), err
    shown = subprocess.run(["git", "-C", project, "ls-files"], capture_output=True, text=True, check=True)
    assert shown.stdout == "a\n"


def test_of_several_commands_the_last_one_takes_away_what_was_made(bubblewrapped, project):
    policy = Policy(str(project), str(project))
    first, second = confine(["/bin/true"], policy), confine(["/bin/true"], policy)
    for confined in (first, second):
        confined.close()
    first.finish()
    first.finish()
    assert ".vscode" in names(project)
    second.finish()
    assert names(project) == []


def test_what_a_killed_process_left_is_taken_away_by_the_next(bubblewrapped, project):
    code = (
        "import os, sys; from rye.sandbox.sandbox import Policy, confine; "
        "confine(['/bin/true'], Policy(*sys.argv[1:3])); os.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", code, project, project], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False
    )
    assert ".vscode" in names(project)
    run(project, "true")
    assert names(project) == []


def test_a_name_that_the_user_fills_meanwhile_stays(bubblewrapped, project):
    confined = confine(["/bin/true"], Policy(str(project), str(project)))
    (project / ".vscode/settings.json").write_text("{}")
    (project / ".mcp.json").rmdir()
    (project / ".mcp.json").write_text("{}")
    confined.close()
    confined.finish()
    assert names(project) == [".mcp.json", ".vscode", ".vscode/settings.json"]


def test_threads_share_what_was_made(bubblewrapped, project):
    failed = []

    def often():
        for _ in range(5):
            code, _, err, _ = run(project, "mkdir .vscode/x 2>/dev/null && exit 1; exit 0")
            failed.extend([err] if code else [])

    threads = [threading.Thread(target=often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert names(project) == []


def test_a_protected_name_that_is_a_link_is_told(bubblewrapped, project):
    (project / "editor").mkdir()
    (project / ".vscode").symlink_to("editor")
    report = run(project, "true")[3]
    assert ".vscode" in report["missing"]["protected_names"]


@pytest.mark.parametrize("path", [".mcp.json", ".envrc", ".git/config"])
def test_a_protected_file_with_another_name_is_told(bubblewrapped, project, path):
    """As where the file system folds case: `.MCP.JSON` is `.mcp.json`, and a mount lies on one name only."""
    subprocess.run(["git", "init", "-q", project], check=True)
    (project / path).write_text("")
    assert "protected_names" in run(project, "true")[3]["holds"]
    folded = (project / path).with_name((project / path).name.upper())
    os.link(project / path, folded)
    _, _, _, report = run(project, f"echo WAS-HERE > {folded.relative_to(project)}")
    # Control: the other name does get past the mount.
    assert (project / path).read_text() == "WAS-HERE\n"
    assert "folds case" in report["missing"]["protected_names"]
    folded.rename(project / "other")
    assert "hard link" in run(project, "true")[3]["missing"]["protected_names"]


def test_a_folder_that_cannot_be_written_needs_no_cover(project):
    with running_commands.running("/proc/self") as token:
        assert project_mounts.shield("/proc/self", token).pinned == ()
        project_mounts.release("/proc/self", token)


def test_a_linked_worktree_can_read_its_repository(bubblewrapped, tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    main, tree = home / "main", home / "tree"
    main.mkdir(parents=True)
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", main], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", tree], check=True, capture_output=True)
    _, out, err, _ = run(tree, f"git log --format=%s; echo x > {main}/.git/hooks/pre-commit; echo x > .git; ls ~")
    assert out.splitlines() == ["first", "main", "tree"], err
    assert not (main / ".git/hooks/pre-commit").exists()
    # A `.git` file that names a place which does not point back opens nothing.
    (home / "keys").mkdir()
    (home / "keys/key").write_text("secret")
    (tree / ".git").write_text(f"gitdir: {home}/keys\n")
    assert "secret" not in run(tree, f"cat {home}/keys/key")[1]


# --- modes and reports ---


def test_every_property_holds_or_says_why_not(layer, project):
    for policy in ({}, {"network": "off"}, {"run": False}, {"read_project": False}, {"write_project": False}):
        asked = sandbox.properties_of(Policy(str(project), str(project), **policy))
        report = run(project, "true", **policy)[3]
        assert set(asked) <= {*report["holds"], *report["missing"]}
        assert not set(report["holds"]) & set(report["missing"])
        assert all(isinstance(why, str) and why for why in report["missing"].values())


def test_require_is_met_or_refused_with_reasons(layer, project):
    policy = Policy(str(project), str(project), required=("writes_outside", "home_hidden"))
    confined = confine(["/bin/true"], policy, "require")
    confined.close()
    confined.finish()
    everything = Policy(str(project), str(project), network="off")
    if layer == "bubblewrap":
        confined = confine(["/bin/true"], everything, "require")
        confined.close()
        confined.finish()
        assert set(sandbox.properties_of(everything)) <= set(confined.report["holds"])
        return
    with pytest.raises(RyeError) as caught:
        confine(["/bin/true"], everything, "require")
    assert caught.value.code == "sandbox_unavailable"
    assert "protected_names (Landlock allows by folder" in str(caught.value)
    assert caught.value.hint
    assert names(project) == []


def test_without_any_layer_auto_works_and_says_so(project, monkeypatch):
    monkeypatch.setattr(bubblewrap, "ability", lambda: bubblewrap.Ability(why_not="no bubblewrap"))
    monkeypatch.setattr(landlock, "why_not", lambda: "no Landlock")
    monkeypatch.setenv("SOME_TOKEN", "secret-value")
    monkeypatch.setenv("PLAIN", "kept")
    code, out, _, report = run(project, "env")
    assert code == 0
    assert "PLAIN=kept" in out
    assert "secret-value" not in out
    assert report["kind"] == "none"
    assert report["holds"] == []
    assert "no bubblewrap; no Landlock" in report["missing"]["writes_outside"]
    assert "left out" in report["missing"]["environment_clean"]
    with pytest.raises(RyeError, match="no Landlock"):
        confine(["/bin/true"], Policy(str(project), str(project)), "require")


def test_off_is_off_and_says_so(project, tmp_path):
    _, _, _, report = run(project, f"echo x > {tmp_path}/outside", mode="off")
    assert (tmp_path / "outside").exists()
    assert report["kind"] == "none"
    assert set(report["missing"].values()) > {"the sandbox is off"}


def test_bubblewrap_is_never_taken_from_path(project, monkeypatch):
    fake = project / "bwrap"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}:{os.environ['PATH']}")
    assert "fake" not in run(project, "echo true")[1]


def test_why_bubblewrap_does_not_work_is_told(project, monkeypatch):
    broken = project / "broken"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2; exit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "_PLACES", (str(broken),))
    bubblewrap.ability.cache_clear()
    try:
        assert bubblewrap.ability().why_not == "bubblewrap does not work here: no permissions"
    finally:
        bubblewrap.ability.cache_clear()


def test_a_command_ends_with_the_process_that_started_it(bubblewrapped, project):
    code = (
        "import subprocess, sys; from rye.sandbox.sandbox import Policy, confine; "
        "c = confine(['/bin/sh', '-c', 'setsid sleep 98765 & sleep 98765'], Policy(*sys.argv[1:3])); "
        "p = subprocess.Popen(c.argv, env=c.env, pass_fds=c.fds); print(flush=True); p.wait()"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code, project, project], env=env, stdout=subprocess.PIPE)
    child.stdout.readline()
    until(lambda: len(sleeping()) >= 2)
    child.kill()
    child.wait()
    child.stdout.close()
    until(lambda: not sleeping())


def sleeping():
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if path.read_bytes() == b"sleep\x0098765\x00" else []
        except OSError:
            continue
    return found


def until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


# --- settings ---


def settings(folder, text):
    path = folder / ".ai/config/rye.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("user", "project_", "call", "mode", "network"),
    [
        ("", "", (None, None), "auto", "on"),
        ("", "", ("require", "off"), "require", "off"),
        ("", "", ("off", "on"), "auto", "on"),
        ("{mode: off, network: on}", "", (None, None), "off", "on"),
        ("{mode: off}", "{mode: auto}", ("off", None), "auto", "on"),
        ("{mode: require, network: off}", "{mode: off, network: on}", ("off", "on"), "require", "off"),
        ("{mode: 'off'}", "{mode: require, network: 'off'}", ("auto", "on"), "require", "off"),
    ],
)
def test_the_tightest_setting_applies(project, user_space, user, project_, call, mode, network):
    for folder, text in ((user_space, user), (project, project_)):
        if text:
            settings(folder, f"sandbox: {text}\n")
    found = sandbox.effective(str(project), *call)
    assert (found.mode, found.network) == (mode, network)


def test_a_project_can_only_take_away_what_passes(project, user_space):
    settings(project, "sandbox: {pass_env: [A, EVIL]}\n")
    assert sandbox.effective(str(project)).pass_env == ()
    settings(user_space, "sandbox: {pass_env: [A, B]}\n")
    assert sandbox.effective(str(project)).pass_env == ("A",)
    settings(project, "{}\n")
    assert sandbox.effective(str(project)).pass_env == ("A", "B")


def test_the_user_names_what_require_insists_on(project, user_space):
    settings(project, "sandbox: {require: [writes_outside]}\n")
    assert sandbox.effective(str(project)).required == (), "a project cannot loosen it"
    settings(user_space, "sandbox: {mode: require, require: [writes_outside, home_hidden]}\n")
    assert sandbox.effective(str(project)).required == ("writes_outside", "home_hidden")
    assert "network_off" in sandbox.effective(str(project), network="off").required
    assert bash(project, "true")["success"], "Landlock holds these two as well"
    settings(user_space, "sandbox: {require: [everything]}\n")
    with pytest.raises(UsageError, match="there is no property 'everything'"):
        sandbox.effective(str(project))


def test_landlock_alone_is_enough_for_who_says_so(project, user_space, monkeypatch):
    monkeypatch.setattr(bubblewrap, "_PLACES", ())
    bubblewrap.ability.cache_clear()
    try:
        settings(user_space, "sandbox: {mode: require}\n")
        assert "processes_end" in bash(project, "true")["error"]
        settings(user_space, "sandbox: {mode: require, require: [writes_outside, home_hidden]}\n")
        if "landlock" in USABLE:
            assert bash(project, "true")["sandbox"]["kind"] == "landlock"
        else:
            assert "writes_outside" in bash(project, "true")["error"]
    finally:
        bubblewrap.ability.cache_clear()


@pytest.mark.parametrize(
    "text",
    ["sandbox: {mode: never}", "sandbox: {mode: 5}", "sandbox: {pass_env: A}", "sandbox: {pass_env: [1]}", "a: [", "\xff"],
)
def test_a_malformed_file_is_named_whoever_wrote_it(project, user_space, text):
    for folder in (project, user_space):
        settings(folder, "")
        (folder / ".ai/config/rye.yaml").write_bytes(text.encode("latin-1"))
        with pytest.raises(UsageError) as caught:
            sandbox.effective(str(project))
        assert caught.value.code == "bad_config"
        assert str(folder) in str(caught.value)
        (folder / ".ai/config/rye.yaml").unlink()


def test_a_projects_file_is_opened_beneath_the_project(project, tmp_path):
    (tmp_path / "rye.yaml").write_text("sandbox: {mode: require}\n")
    (project / ".ai/config").mkdir(parents=True)
    (project / ".ai/config/rye.yaml").symlink_to("../../../rye.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        sandbox.effective(str(project))
    (project / ".ai/config/rye.yaml").unlink()
    os.mkfifo(project / ".ai/config/rye.yaml")
    with pytest.raises(UsageError, match="not a regular file"):
        sandbox.effective(str(project))
