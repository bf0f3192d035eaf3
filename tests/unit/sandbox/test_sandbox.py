"""The sandbox: what a command finds inside, what a report claims, what is refused, and what is left behind (nothing)."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import rye
from rye.sandbox import bubblewrap, environment, hidden_paths, landlock, sandbox
from support.confined import run_confined
from support.harness import put_program
from support.shell_calls import bash, configure, set_sandbox
from support.signed_tools import put_tool

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
    policy = sandbox.Policy(str(project), str(policy.pop("cwd", project)), **policy)
    done, report = run_confined(argv or ["/bin/sh", "-c", script], policy, mode, cwd=project)
    return done.returncode, done.stdout.decode(), done.stderr.decode(), report


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- what works inside ---


PYTHON = """
import asyncio, multiprocessing, socket, sqlite3, ssl, threading
print(multiprocessing.get_context("fork").Pool(2).map(abs, [-1, -2]))
a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1)); asyncio.run(asyncio.sleep(0))
"""


def test_a_command_works_in_the_project(layer, project):
    (project / "sub").mkdir()
    script = "pwd; echo made > file; mv file other; mkdir d; mv other d; cat d/other; echo said >&2; exit 7"
    code, out, err, report = run(project, script, cwd=project / "sub")
    assert (code, out, err) == (7, f"{project}/sub\nmade\n", "said\n")
    assert report["kind"] == layer
    assert (project / "sub/d/other").read_text() == "made\n"
    json.dumps(report)
    (project / "python.py").write_text(PYTHON)
    # A program named bwrap in the project or on PATH is never taken for the sandbox.
    for name in ("bwrap", "sub/bwrap"):
        put_program(project / name, "#!/bin/sh\necho fake\n")
    for script, expected in {
        'f=$(mktemp) && echo x > "$f" && cat "$f" && mkdir -p ~/.cache/x && ls -A ~/.ssh 2>/dev/null': "x\n",
        f"{sys.executable} python.py": "[1, 2]\nb'x'\n",
        "ulimit -c": "0\n",
        "echo /proc/self/fd/*": "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2\n",
        "/no/such/program 2>/dev/null; echo $?": "127\n",
    }.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{project}:{project}/sub:{os.environ['PATH']}")
            found = run(project, script, network="off")
        assert found[1].replace(" /proc/self/fd/3", "") == expected, found


def test_the_environment_is_the_allowed_one_and_what_was_added(layer, project, monkeypatch):
    for name in ("NOTES", "GIVEN"):
        monkeypatch.setenv(name, f"of {name}")
    _, out, _, _ = run(project, "env", pass_env=("GIVEN",), env={"ADDED": "a b\nc", "TERM": "dumb"})
    assert {"GIVEN=of GIVEN", "ADDED=a b", "TERM=dumb", f"PATH={os.environ['PATH']}"} <= {*out.splitlines()}
    assert "of NOTES" not in out


def test_what_a_caller_adds_opens_nothing(layer, project, user_space):
    """Neither a `PATH` that names a folder of keys, nor a value that would go on as options."""
    (user_space / "keys/bin").mkdir(parents=True)
    (user_space / "keys/key").write_text("secret")
    path = f"{user_space}/keys/bin:{os.environ['PATH']}"
    assert run(project, f"cat {user_space}/keys/key", env={"PATH": path})[1] == ""
    for env in ({"X": f"a\0--bind\0{user_space}\0{user_space}"}, {"X\0--bind": "a"}, {"": "a"}, {"A=B": "c"}):
        with pytest.raises(rye.RyeError) as caught:
            run(project, "true", env=env)
        assert caught.value.code == "bad_environment"
    assert names(project) == []


def test_a_name_exchanged_for_a_link_before_it_is_mounted_opens_nothing(bubblewrapped, project, user_space):
    (user_space / "keys").mkdir()
    (user_space / "keys/key").write_text("secret")
    (project / ".idea").mkdir()
    policy = sandbox.Policy(str(project), str(project))
    confined = sandbox.confine(["/bin/cat", f"{user_space}/keys/key", ".idea/key"], policy)
    (project / ".idea").rmdir()
    (project / ".idea").symlink_to(os.path.relpath(user_space / "keys", project))
    done = subprocess.run(
        confined.argv, env=confined.env, pass_fds=confined.fds, cwd=project, capture_output=True, text=True, check=False
    )
    confined.close()
    confined.finish()
    assert done.returncode != 0
    assert "secret" not in done.stdout


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


# --- what a policy takes away ---


OTHER_PROGRAMS = """
import ctypes, os, shutil, subprocess, sys
true = shutil.which("true")
def told(what, *a, **k):
    # Flushed at once: a call that succeeds may replace this process.
    try: print(what(*a, **k), flush=True)
    except OSError as err: print(err.strerror, flush=True)
# Bubblewrap's own process, which may start others (PTRACE_SEIZE).
print(ctypes.CDLL(None).ptrace(0x4206, os.getppid(), None, None), flush=True)
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
    assert out.splitlines() == ["-1"] + ["Permission denied"] * 5 + ["False"], err
    assert "no_programs" in report["holds"]
    # Control: with leave it is started, and bubblewrap's process can be traced, where Yama does not forbid it.
    _, out, err, report = run(project, "", argv=[sys.executable, "-c", OTHER_PROGRAMS])
    assert "CompletedProcess" in out, err
    assert out.startswith("0\n") == (report["kind"] == "bubblewrap") or os.path.exists("/proc/sys/kernel/yama")
    # A missing one is told as a shell does.
    code, _, err, _ = run(project, "", argv=["/no/such/program"], run=False)
    assert (code, "/no/such/program" in err) == (127, True)


def test_a_link_in_a_readable_environment_below_a_hidden_folder_stays_a_link(layer, project, user_space):
    """A virtual environment in the user's home: its `bin/python` links to an interpreter elsewhere in the home."""
    real, environment = user_space / "python3.11", user_space / "venv"
    (environment / "bin").mkdir(parents=True)
    real.write_text("the interpreter\n")
    link = environment / "bin" / "python"
    link.symlink_to(real)
    code, out, err, _ = run(project, f"readlink {link}; cat {link}", extra_read=(str(link), str(real), str(environment)))
    assert (code, out, err) == (0, f"{real}\nthe interpreter\n", "")


def test_a_home_below_a_hidden_folder_is_empty_and_can_be_written(layer, tmp_path, monkeypatch):
    monkeypatch.setattr(hidden_paths, "_HOMES", (str(tmp_path / "homes"),))
    home = tmp_path / "homes/me"
    monkeypatch.setenv("HOME", str(home))
    project, python = home / "work/project", home / ".local/share/uv/python/3/bin"
    for folder in (project, home / ".ssh", python, tmp_path / "homes/other"):
        folder.mkdir(parents=True)
    (home / ".ssh/id").write_text("key")
    put_program(python / "python", "#!/bin/sh\necho a python\n")
    (project / "python").symlink_to(python / "python")
    before = names(tmp_path / "homes")
    _, out, err, _ = run(
        project, f"cat {home}/.ssh/id; ./python; mkdir ~/.npm && echo made; ls {tmp_path}/homes/other; touch {tmp_path}/homes/x"
    )
    assert out == "a python\nmade\n", err
    assert names(tmp_path / "homes") == before


# --- protected names ---


def test_a_name_that_the_user_fills_meanwhile_stays(bubblewrapped, project):
    confined = sandbox.confine(["/bin/true"], sandbox.Policy(str(project), str(project)))
    (project / ".vscode/settings.json").write_text("{}")
    (project / ".mcp.json").rmdir()
    (project / ".mcp.json").write_text("{}")
    confined.close()
    confined.finish()
    assert names(project) == [".mcp.json", ".vscode", ".vscode/settings.json"]


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


def test_without_any_layer_auto_works_and_says_so(project, user_space, monkeypatch):
    monkeypatch.setattr(bubblewrap, "ability", lambda: bubblewrap.Ability(why_not="no bubblewrap"))
    monkeypatch.setattr(landlock, "why_not", lambda: "no Landlock")
    monkeypatch.setenv("SOME_TOKEN", "secret-value")
    monkeypatch.setenv("PLAIN", "kept")
    monkeypatch.setenv("GIVEN_TOKEN", "named")
    configure(user_space, "sandbox: {pass_env: [GIVEN_TOKEN]}\n")
    data = bash(project, "env")
    assert {"PLAIN=kept", "GIVEN_TOKEN=named"} <= {*data["output"].split()}
    assert "secret-value" not in data["output"]
    assert (data["sandbox"]["kind"], data["sandbox"]["holds"]) == ("none", [])
    assert "no bubblewrap; no Landlock" in data["sandbox"]["missing"]["writes_outside"]
    assert "left out" in data["sandbox"]["missing"]["environment_clean"]
    assert "no Landlock" in bash(project, "true", sandbox="require")["error"]
    set_sandbox(user_space, "off")
    assert set(bash(project, "true")["sandbox"]["missing"].values()) > {"the sandbox is off"}


# --- settings ---


@pytest.mark.parametrize(
    ("user", "project_", "call", "mode", "network", "passed"),
    [
        ("", "", (None, None), "auto", "on", ()),
        ("", "", ("require", "off"), "require", "off", ()),
        ("", "", ("off", "on"), "auto", "on", ()),
        ("{mode: off, network: on, pass_env: [A, B]}", "", (None, None), "off", "on", ("A", "B")),
        ("{mode: off}", "{mode: auto, pass_env: [A]}", ("off", None), "auto", "on", ()),
        ("{mode: require, network: off}", "{mode: off, network: on}", ("off", "on"), "require", "off", ()),
        ("{pass_env: [A, B]}", "{mode: require, network: off, pass_env: [A, EVIL]}", ("auto", "on"), "require", "off", ("A",)),
    ],
)
def test_the_tightest_setting_applies(project, user_space, user, project_, call, mode, network, passed):
    for folder, text in ((user_space, user), (project, project_)):
        if text:
            configure(folder, f"sandbox: {text}\n")
    found = sandbox.effective(str(project), *call)
    assert (found.mode, found.network, found.pass_env) == (mode, network, passed)


def test_the_user_names_what_require_insists_on(project, user_space):
    configure(project, "sandbox: {require: [writes_outside]}\n")
    assert sandbox.effective(str(project)).required == (), "a project cannot loosen it"
    configure(user_space, "sandbox: {mode: require, require: [writes_outside, home_hidden]}\n")
    assert sandbox.effective(str(project)).required == ("writes_outside", "home_hidden")
    assert "network_off" in sandbox.effective(str(project), network="off").required
    assert bash(project, "true")["success"], "Landlock holds these two as well"
    configure(user_space, "sandbox: {require: [everything]}\n")
    assert "there is no property 'everything'" in bash(project, "true")["error"]


def test_landlock_alone_is_enough_for_who_says_so(project, user_space, monkeypatch):
    monkeypatch.setattr(bubblewrap, "_PLACES", ())
    bubblewrap.ability.cache_clear()
    try:
        configure(user_space, "sandbox: {mode: require}\n")
        assert "processes_end" in bash(project, "true")["error"]
        configure(user_space, "sandbox: {mode: require, require: [writes_outside, home_hidden]}\n")
        if "landlock" in USABLE:
            assert bash(project, "true")["sandbox"]["kind"] == "landlock"
        else:
            assert "writes_outside" in bash(project, "true")["error"]
    finally:
        bubblewrap.ability.cache_clear()


# --- a protected name that another program removes between the moment it is listed and the moment it is mounted ---


def removed(project, monkeypatch, at="mounting", how_often=1):
    """Have `.vscode` removed at this moment, so often; return a list that grows with each time."""
    (project / ".vscode").mkdir()
    opens, gone = bubblewrap._mount_options, []

    def opened(option, path, fds):
        words = opens(option, path, fds) if at == "mounting" else None
        if path.endswith("/.vscode") and len(gone) < how_often:
            gone.append(path)
            os.rmdir(path)
            # In its place there is another one, as after an editor's or git's way to write.
            os.mkdir(path) if at == "mounting" else None
        return opens(option, path, fds) if words is None else words

    monkeypatch.setattr(bubblewrap, "_mount_options", opened)
    return gone


@pytest.mark.parametrize(
    ("at", "how_often", "ended"), [("opening", 1, "ran"), ("mounting", 2, "ran"), ("mounting", 1_000, "sandbox_failed")]
)
def test_the_names_are_listed_anew_and_the_command_runs_once_or_is_refused(
    bubblewrapped, project, user_space, monkeypatch, at, how_often, ended
):
    set_sandbox(user_space, "auto")
    gone = removed(project, monkeypatch, at, how_often)
    data = bash(project, "echo ran")
    assert (data.get("code") or data["output"].strip()) == ended
    assert ended != "ran" or len(gone) == how_often


def test_a_tool_of_another_signer_is_refused_before_it_begins_and_runs_at_the_next_call(
    bubblewrapped, project, user_space, monkeypatch
):
    set_sandbox(user_space, "auto")
    removed(project, monkeypatch)
    body = "open(project_path + '/made', 'a').write('x')\nreturn {'success': True, 'output': 'ran'}"
    put_tool(project, "my/writer", body, more='__permissions__ = ["read", "write"]')
    refused = rye.execute("my/writer", {}, project_path=project)
    found = (refused["code"], "before the tool began" in refused["error"], "try again" in refused["error"])
    assert found == ("isolation_failed", True, True)
    assert not (project / "made").exists()
    assert rye.execute("my/writer", {}, project_path=project)["data"]["output"] == "ran"


# --- which variables a child inherits ---


# Made up, in the shapes that services give out.
SECRET = {
    **dict.fromkeys(("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "MYSQL_PWD", "GOOGLE_CREDENTIALS"), "x"),
    **dict.fromkeys(("SENTRY_DSN", "GH_PAT", "stripe_key"), "x"),
    "HTTPS_PROXY": "http://me:word@proxy:1", "A": "postgres://u:p@h/d", "B": "ghp_" + "a1" * 18,
    "C": "AKIA" + "ABCDEFGH12345678", "D": "sk-ant-" + "api03-abcdefgh", "E": "-----BEGIN RSA PRIVATE KEY",
    "F": "eyJhbGciOiJI.eyJzdWIiOiIx.abc", "G": "0123456789abcdef" * 3,
}  # fmt: skip
PLAIN = {
    "PATH": "/usr/bin:/bin", "PWD": "/home/me", "OLDPWD": "/", "HOME": "/home/me", "LANG": "C.UTF-8", "EDITOR": "vi",
    "HTTPS_PROXY": "http://proxy:3128", "LS_COLORS": "rs=0:di=01;34:ln=01;36", "TERM": "xterm-256color",
    "JAVA_HOME": "/usr/lib/jvm/java-17", "XDG_SESSION_TYPE": "x11",
}  # fmt: skip
# Of the allowed names, whose values are places where packages are found.
PACKAGES = {
    "HTTPS_PROXY": ["me:word@proxy:3128", "http://proxy:1/?token=abc"],
    "PIP_INDEX_URL": ["https://pypi.corp/a1b2c3d4e5f6a7b8c9d0e1/simple", "https://host/simple?token=x"],
    "UV_INDEX_URL": ["https://host/t/0123456789abcdef0123456789abcdef/simple"],
    "GOPROXY": ["https://goproxy.corp/tok3nTok3nTok3nTok3n,direct", "https://a|me:word@b"],
    "npm_config_registry": ["https://npm.corp/?auth=abc"],
    "PIP_FIND_LINKS": ["https://host/AbCdEf0123456789AbCdEf/links"],
    "LC_DEPLOY_TOKEN": ["anything"],
}
HARMLESS = {
    "PIP_INDEX_URL": "https://artifacts.corp.example:8443/artifactory/api/pypi/pypi-virtual-2024/simple",
    "GOPROXY": "https://proxy.golang.org,direct", "npm_config_registry": "https://registry.npmjs.org/",
    "LC_TIME": "de_DE.UTF-8", "NO_PROXY": "localhost,127.0.0.1,.corp.example",
    "PATH": "/opt/python@3.11/bin:/usr/bin:/opt/node@18/bin",
    "SSL_CERT_FILE": "/etc/ssl/cert.pem", "HTTPS_PROXY": "proxy.corp.example:3128",
}  # fmt: skip


def test_what_looks_like_a_secret_is_left_out_unless_the_user_names_it_and_what_does_not_stays():
    for name, values in PACKAGES.items():
        for value in values:
            assert environment.allowed_variables({name: value}) == {}
            assert environment.allowed_variables({name: value}, [name]) == {name: value}
    for name, value in HARMLESS.items():
        assert environment.allowed_variables({name: value}) == {name: value}
    assert environment.without_secrets(SECRET) == environment.allowed_variables(SECRET) == {}
    assert environment.without_secrets(PLAIN) == PLAIN


def test_the_allowed_are_few_and_known_and_what_the_user_names_goes_through():
    others = {"EDITOR": "vi", "NOTES": "x", "LD_PRELOAD": "/x.so", "BASH_ENV": "/x"}
    environ = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/h"}
    assert environment.allowed_variables({**environ, **others}) == environ
    environ = {"GITHUB_TOKEN": "x", "OTHER_TOKEN": "y"}
    assert environment.allowed_variables(environ, ["GITHUB_TOKEN", "ABSENT"]) == {"GITHUB_TOKEN": "x"}
    assert environment.without_secrets(environ, ["GITHUB_TOKEN"]) == {"GITHUB_TOKEN": "x"}


# --- what a sandbox hides and shows: ways are followed as the kernel follows them ---


def steps(path):
    """The plain way: each step in turn, as the kernel takes it; the last is the real path."""
    at, parts, links = "/", path.split("/")[::-1], 0
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        at = os.path.dirname(at) if part == ".." else f"{at.rstrip('/')}/{part}"
        yield at
        if not os.path.islink(at):
            os.lstat(at)
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, path)
        target = os.readlink(at)
        at = "/" if target.startswith("/") else os.path.dirname(at)
        parts += target.split("/")[::-1]
    yield at


def inode(path):
    return os.stat(path).st_ino


@pytest.mark.parametrize("seed", range(20))
def test_ways_that_share_their_steps_lead_where_the_kernel_goes(tmp_path, seed):
    dice = random.Random(seed)
    base = os.path.realpath(tmp_path)
    folders = [base, *(f"{base}/{one}" for one in ("p", "p/in", "out", "out/deep"))]
    for folder in folders[1:]:
        os.mkdir(folder)
    for number in range(30):
        place = f"{dice.choice(folders)}/l{number % 12}"
        kind = dice.choice(("link", "link", "link", "file", "up"))
        if os.path.lexists(place):
            continue
        if kind == "file":
            Path(place).touch()
        else:
            led = f"{dice.choice(folders)}/{dice.choice(('', 'l1', 'l2', 'deep', 'in/l3', 'l4/../l5', '.'))}"
            os.symlink(os.path.relpath(led, os.path.dirname(place)) if kind == "up" else led, place)
    ways = hidden_paths._Ways(f"{base}/p")
    parts = ("p", "in", "out", "deep", "..", ".", "", *(f"l{number}" for number in range(12)))
    for _ in range(400):
        path = "/".join([base, *dice.choices(parts, k=dice.randrange(1, 5))])
        found = ways.of(path)
        try:
            way = list(steps(path))
        except OSError:
            assert found is None, path
            assert hidden_paths.way(path) == (), path
        else:
            # Such as `file/..`.
            if os.path.exists(path):
                assert {*map(inode, hidden_paths.way(path))} >= {*map(inode, way)}, path
            assert found == (way[-1], any(hidden_paths.is_below(step, f"{base}/p") for step in way)), path


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_does(tmp_path):
    base = os.path.realpath(tmp_path)
    for number in range(1_000):
        os.symlink(f"l{number - 1}" if number else "end", f"{base}/l{number}")
    Path(base, "end").touch()
    ways = hidden_paths._Ways("/nowhere")
    assert ways.of(f"{base}/l999") is None
    assert ways.of(f"{base}/l990/" + "a/" * 3_000) is None
    # What too many links led to is found all the same.
    assert ways.of(f"{base}/l970") is None
    assert ways.of(f"{base}/l30") == ways.of(f"{base}/end") == (f"{base}/end", False)
