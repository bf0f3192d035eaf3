"""Programs that call `rye.execute` in their own process: whatever their streams are, in threads, after a fork."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.harness import environment
from support.signed_tools import put_tool

HEAD = """
import multiprocessing, os, sys, threading, time
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
def status(number): return call()["status"]
call(); call("my/count"); rye.search("read", project_path=project)
stop = threading.Event()
def work():
    while not stop.is_set():
        call(); rye.search("read", project_path=project); print(end="")
def run():
    while not stop.is_set():
        call("rye/bash/bash", command="echo x >> b.txt")
threads = [threading.Thread(target=work) for _ in range(3)] + [threading.Thread(target=run)]
[thread.start() for thread in threads]
failed = []
for number in range(25):
    pid = os.fork()
    if pid == 0:
        try:
            call(); print(end="", flush=True); rye.search("read", project_path=project)
            if number % 8 == 0: call("my/count"); call("rye/bash/bash", command="echo y >> c.txt")
            os._exit(0)
        except BaseException:
            import traceback; traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + 20
    while (done := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(pid, 9); os.waitpid(pid, 0); failed.append("hangs"); break
        time.sleep(0.01)
    else:
        failed += [done[1]] if done[1] else []
stop.set()
[thread.join() for thread in threads]
assert not failed, failed
call(); call("my/count")
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(len([one for one in pool.map(status, range(12)) if one == "success"]))
"""
    assert program(project, body, timeout=240).endswith("12\n")
