"""Programs that call `rye.execute` in their own process: whatever their streams are, in threads, after a fork."""

import subprocess
import sys

import pytest

from support.harness import environment
from support.signed_tools import put_tool

HEAD = """
import multiprocessing, os, signal, sys, threading
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


def test_a_host_without_standard_output(project):
    program(project, "sys.stdout = None\ncall()\nprint('to nobody', flush=True)\ncall()\n")


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
