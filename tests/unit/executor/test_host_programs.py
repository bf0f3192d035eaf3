"""Programs that call `rye.execute` in their process: with any streams, in threads, after a fork, at exit (3.12 has no threads then)."""

import os
import subprocess
import sys

import pytest

import rye
from support.harness import environment
from support.signed_tools import put_tool

HEAD = """
import atexit, multiprocessing, os, signal, sys, threading
import rye
project = sys.argv[1]

def call(item="rye/file-system/read", **parameters):
    if item.endswith("read"):
        parameters["file_path"] = "a.txt"
    answer = rye.execute(item, parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer

"""


def program(project, body, timeout=60):
    (project / "a.txt").write_text("one\ntwo\n")
    command = [sys.executable, "-c", f"{HEAD}{body}", str(project)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


USED = """
def use():
    call()
    kind = "none"
    for command, code in (("echo hi", 0), ("exit 3", 3)):
        answer = rye.execute("rye/bash/bash", {"command": command}, project_path=project)
        assert answer["data"].get("exit_code") == code, answer
        kind = answer["data"]["sandbox"]["kind"]
    assert kind == KIND, kind
    job = call("rye/bash/bash", command="echo done", background=True)["data"]["job_id"]
    assert "done" in call("rye/bash/job", action="wait", job_id=job)["data"]["output"]
    for pattern, code in (("two", None), ("((", "bad_pattern")):
        answer = rye.execute("rye/file-system/grep", {"pattern": pattern}, project_path=project)
        assert answer.get("code") == code, answer
"""
HOSTS = {
    "as others": "use()",
    "no standard output": "sys.stdout = None; use(); print('to nobody', flush=True)",
    "closed streams": "[os.close(fd) for fd in range(3)]; use()",
    "blocked signals": "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); use()",
    "ignored children": "signal.signal(signal.SIGCHLD, signal.SIG_IGN); use()",
    # A module that is being imported has no names yet.
    "another thread just imports": "import time\nthreading.settrace(lambda *_: time.sleep(0.0002))\n"
    "threading.Thread(target=__import__, args=('logging',)).start()\nwhile 'logging' not in sys.modules: pass\n"
    "threading.settrace(None)\nuse()",
    "interrupted as a thread starts": """
started = threading.Thread.start
threading.Thread.start = lambda one: (started(one), one.name == "rye-tool" and signal.raise_signal(signal.SIGINT))
for command in ("sleep 1; echo > late", "true", "true"):
    try: call("rye/bash/bash", command=command)
    except KeyboardInterrupt: threading.Event().wait(1)
threading.Thread.start = started
use()
assert sum(one.name == "rye-tool" for one in threading.enumerate()) < 4 and not os.path.exists(f"{project}/late")
""",
    "a program that embeds Python": "for sys.executable in ('/bin/true', '', None): use()",
    "sockets that time out": """
import socket
from concurrent.futures import ThreadPoolExecutor
socket.setdefaulttimeout(30)
with ThreadPoolExecutor(8) as pool: [*pool.map(lambda _: call("rye/bash/bash", command="true"), range(60))]
use()
""",
    "at its end": "def last():\n    try: use()\n    except: os._exit(1)\nsys.version_info[:2] == (3, 12) or atexit.register(last)",
}


@pytest.mark.parametrize("body", HOSTS.values(), ids=HOSTS)
def test_a_host_of_any_state(project, body):
    kind = rye.execute("rye/bash/bash", {"command": "true"}, project_path=project)["data"]["sandbox"]["kind"]
    program(project, f"{USED.replace('KIND', repr(kind))}{body}\n", timeout=20)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as another for a time")
def test_a_host_that_can_be_another_again_starts_nothing(project):
    """A shell takes its real user and group at once."""
    body = "os.setegid(65534)\nprint(rye.execute('rye/bash/bash', {'command': 'id'}, project_path=project)['code'])"
    assert program(project, f"call('rye/bash/bash', command='id')\n{body}\n") == "two_users\n"


@pytest.mark.slow
def test_forked_processes_call_too_whatever_other_threads_did_at_the_fork(project):
    put_tool(project, "my/count", 'return {"success": True, "output": "1"}', more='__permissions__ = ["read"]\n')
    body = """
def search(): rye.search("read", project_path=project)
def bash(): call("rye/bash/bash", command="echo x >> b.txt")
def again_and_again(*works):
    while not stop.is_set():
        for work in works: work()
def status(number): return call()["status"]
call(); call("my/count"); search()
stop = threading.Event()
every = [(call, search, lambda: print(end=""))] * 3 + [(bash,)]
threads = [threading.Thread(target=again_and_again, args=works) for works in every]
[thread.start() for thread in threads]
ends = []
for number in range(25):
    pid = os.fork()
    if pid == 0:
        # One that hangs is ended by this.
        signal.alarm(20)
        ended = 1
        try:
            call(); print(end="", flush=True); search()
            if number % 8 == 0: call("my/count")
            if number % 2 == 0: bash()
            ended = 0
        finally:
            os._exit(ended)
    ends.append(os.waitpid(pid, 0)[1])
stop.set()
[thread.join() for thread in threads]
assert ends == [0] * 25, ends
call(); call("my/count")
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(pool.map(status, range(12)).count("success"))
"""
    assert program(project, body, timeout=240).endswith("12\n")
