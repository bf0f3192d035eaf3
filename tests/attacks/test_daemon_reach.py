"""Who may not have the helper (`rye daemon`) make a call, and does not: confined processes, other users, forged requests."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rye.cli.daemon import client
from support.helper_process import AT_A_PROMPT, NOT_SERVED, HelperProcess
from support.other_users import ORDINARY, as_user, python_for

_NO_NEW_PRIVILEGES = 38
READ = ("rye", "read", "a.txt")
# Speaks to the helper as the client does, but for what the words say; prints what it answers.
RAW = (
    AT_A_PROMPT
    + """
import os, sys, socket
from rye.cli.daemon import client
how, path = sys.argv[1:3]
server = socket.socket(socket.AF_UNIX)
server.connect(path)
server.settimeout(20)
try:
    nonce, process = client.greeting(server)
except (OSError, ValueError) as err:
    print("no greeting", err)
    sys.exit()
if how == "nonce":
    nonce = bytes(16)
sys.argv = ["rye", "read", "a.txt"]
request = client._Request("rye")
if how == "length":
    request._fields = request._fields[:20]
if how == "garbage":
    request._fields = os.urandom(400)
if how == "another":
    if os.fork():
        os.wait()
    else:
        request.send(server, nonce)
        os._exit(0)
elif how == "none":
    server.shutdown(socket.SHUT_WR)
else:
    request.send(server, nonce)
print("answer", server.recv(1))
"""
)


@pytest.fixture(scope="module")
def helper(tmp_path_factory):
    running = HelperProcess(tmp_path_factory.mktemp("space"))
    yield running
    running.end()


@pytest.fixture
def own(project):
    (project / ".git").mkdir()
    (project / "a.txt").write_text("content\n")
    return project


def _raw(helper, how, project, **options):
    words = [sys.executable, "-c", RAW, how, str(helper.socket)]
    done = subprocess.run(
        words, env=helper.env, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True, **options
    )
    # A call that is served prints to the same stream, before or after.
    return done.stdout.rstrip("\n") + done.stderr[-300:]


@pytest.mark.parametrize("how", ["nonce", "another", "garbage", "none"])
def test_a_forged_request_is_not_served(helper, own, how):
    assert _raw(helper, how, own) in ("answer b'n'", "answer b''")
    # Control: the same program, honest.
    assert "answer b's'" in _raw(helper, "honest", own).split("\n")


def test_a_command_in_the_sandbox_does_not_reach_the_helper(helper, own):
    reach = f"import socket; socket.socket(socket.AF_UNIX).connect({str(helper.socket)!r}); print('reached')"
    control = subprocess.run([sys.executable, "-c", reach], capture_output=True, text=True, check=False)
    assert control.stdout == "reached\n"
    for network in ("off", "on"):
        words = ("rye", "bash", f'{sys.executable} -c "{reach}"; ls -a {helper.folder}', f"network={network}")
        for call in (helper.call, helper.normal):
            done = call(*words, cwd=own)
            assert b"reached" not in done.stdout
            assert b".socket" not in done.stdout
            assert b"Error" in done.stderr, done


def test_rt_within_a_command_asks_the_process_that_started_it(helper, own):
    done = helper.call("rye", "bash", "rt open a.txt; echo more | rt insert a.txt 2", cwd=own)
    assert b"1: content" in done.stdout, done
    assert (own / "a.txt").read_bytes() == b"content\nmore\n"
    # By the parent, which alone can write the journal.
    assert b"swe" in helper.call("rye", "log", cwd=own).stdout


def _no_new_privileges():
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _fewer_rights():
    # PR_CAPBSET_DROP of CAP_SYS_CHROOT
    ctypes.CDLL(None).prctl(24, 18, 0, 0, 0)


@pytest.mark.parametrize(
    "confine", [_no_new_privileges, pytest.param(_fewer_rights, marks=pytest.mark.skipif(os.geteuid() != 0, reason="root's"))]
)
def test_a_process_that_gave_up_rights_is_not_served(helper, own, confine):
    assert helper.call(*READ, cwd=own).returncode == 0
    assert helper.once(*READ, cwd=own, preexec_fn=confine).returncode == NOT_SERVED


@pytest.mark.parametrize(
    "options", [["--unshare-pid", "--proc", "/proc"], ["--unshare-net"], ["--unshare-ipc"], ["--tmpfs", "/mnt"]]
)
def test_a_process_in_other_namespaces_is_not_served(helper, own, options):
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        pytest.skip("bubblewrap is not installed")
    words = [bubblewrap, "--dev-bind", "/", "/", *options, *helper.words(*READ, tries=1)]
    done = subprocess.run(words, env=helper.env, cwd=own, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if b"bwrap:" in done.stderr:
        pytest.skip("bubblewrap does not work here")
    assert done.returncode == NOT_SERVED, done
    # Control: it reached the socket, and was judged.
    raw = [bubblewrap, "--dev-bind", "/", "/", *options, sys.executable, "-c", RAW, "honest", str(helper.socket)]
    said = subprocess.run(raw, env=helper.env, cwd=own, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    assert said.stdout.startswith(("answer b'n'", "no greeting")), said


_GREETED = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
server.settimeout(20)
try:
    print(server.recv(4))
except OSError as err:
    print(err)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_another_user_is_not_served(tmp_path_factory, own):
    open_helper = HelperProcess(tmp_path_factory.mktemp("open"))
    path = open_helper.socket
    # As if nothing else kept others out.
    path.chmod(0o777)
    top = Path(tempfile.gettempdir()).resolve()
    for folder in path.parents:
        # Workers of one run have their folders one deeper.
        if top in folder.resolve().parents:
            folder.chmod(0o755)
    for user, greeted in ((0, True), (ORDINARY, False)):
        words = [python_for(user), "-I", "-c", _GREETED, str(path)]
        said = subprocess.run(words, cwd="/", capture_output=True, text=True, check=False, **as_user(user))
        assert (client.MAGIC.decode() in said.stdout) == greeted, said
        assert said.stdout, "control: the socket was reached"
    # A folder that others may enter is not used at all.
    assert open_helper.once(*READ, cwd=own).returncode == NOT_SERVED
    open_helper.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize(("user", "trusted"), [(0, True), (ORDINARY, False)])
def test_nothing_is_sent_to_a_helper_of_another_user(tmp_path_factory, own, user, trusted):
    stopped = HelperProcess(tmp_path_factory.mktemp("left"))
    path = stopped.socket
    stopped.end()
    path.unlink(missing_ok=True)
    with _listener(str(path), user) as listener:
        words = stopped.words(*READ, tries=1)
        caller = subprocess.Popen(words, cwd=own, env=stopped.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        connection = listener.accept()[0]
        process = os.pidfd_open(os.getpid())
        with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(connection, [client.MAGIC + bytes(client.NONCE_BYTES)], [process])
            assert bool(connection.recv(100)) == trusted
        os.close(process)
        assert caller.wait(60) == NOT_SERVED


def _listener(path, user):
    """Return a socket on which a process of a user listens, as the kernel tells."""
    folder = os.path.dirname(path)
    os.chmod(folder, 0o777)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    pid = os.fork()
    if not pid:
        os.setresuid(user, user, user)
        listener.listen()
        os._exit(0)
    os.waitpid(pid, 0)
    os.chmod(folder, 0o700)
    return listener
