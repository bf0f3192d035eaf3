"""Programs that call `rye.execute` in their own process: whatever their streams are, in threads, in asyncio, after a fork."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rye
from support.signed_tools import put_tool, trust_key

HEAD = """
import asyncio, contextlib, io, json, multiprocessing, os, sys, threading, time
import rye
project = sys.argv[1]

def call(item="rye/file-system/read", **parameters):
    if item.endswith("read"):
        parameters["file_path"] = "a.txt"
    answer = rye.execute(item, parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer

"""


@pytest.fixture
def project(tmp_path):
    trust_key()
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / "a.txt").write_text("one\ntwo\n")
    return tmp_path / "project"


def program(project, body, timeout=60):
    runtime = str(Path(rye.__file__).parents[1])
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {runtime!r})\n{HEAD}{body}", str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout


STREAMS = {
    "write returns nothing": """
class Stream:
    def __init__(self, to): self.to = to
    def write(self, text): self.to.write(text)
    def flush(self): self.to.flush()
sys.stdout = Stream(sys.stdout)
""",
    "a notebook's, without descriptor": """
class Stream(io.TextIOBase):
    def __init__(self, to): self.to = to
    encoding = "UTF-8"
    def write(self, text): return self.to.write(text)
    def flush(self): self.to.flush()
    def fileno(self): raise io.UnsupportedOperation("IOStream has no fileno.")
sys.stdout, sys.stderr = Stream(sys.stdout), Stream(sys.stderr)
""",
    "as it was": "",
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("tool", ["rye/file-system/read", "my/prints"])
def test_the_host_prints_before_and_after_a_call_to_any_stream(project, stream, tool):
    put_tool(project, "my/prints", 'print("the tool says")\nreturn {"success": True, "output": "done"}')
    parameters = ', file_path="a.txt"' if tool.endswith("read") else ""
    body = f"""{stream}
print("before")
answer = rye.execute({tool!r}, dict({parameters.strip(", ")}), project_path=project)
assert answer["status"] == "success", answer
print("after", flush=True)
sys.stdout.write("last\\n")
"""
    assert program(project, body) == "before\nafter\nlast\n"


def test_a_host_without_standard_output(project):
    program(project, "sys.stdout = None\ncall()\nprint('to nobody', flush=True)\ncall()\n")


def test_a_host_that_replaces_the_stream_between_calls(project):
    body = """
call()
with contextlib.redirect_stdout(io.StringIO()) as kept:
    print("kept")
    call()
    print("kept too")
print("out")
call()
outer = sys.stdout
class Tee:
    def write(self, text): outer.write(text.upper()); return len(text)
    def flush(self): outer.flush()
sys.stdout = Tee()
call()
print("tee")
sys.stdout = outer
print("end", json.dumps(kept.getvalue()))
import copy; copy.copy(sys.stdout)
"""
    assert program(project, body) == 'out\nTEE\nend "kept\\nkept too\\n"\n'


def test_calls_in_threads_beside_a_host_that_prints(project):
    body = """
def work(number):
    for at in range(10):
        call()
        sys.stdout.write(f"{number}:{at}\\n")
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
    assert sorted(program(project, body).split()) == sorted(f"{number}:{at}" for number in range(6) for at in range(10))


def test_calls_in_an_event_loop(project):
    body = """
async def main():
    call()
    answers = await asyncio.gather(*(asyncio.to_thread(call) for _ in range(8)))
    print(len(answers))
asyncio.run(main())
"""
    assert program(project, body) == "8\n"


@pytest.mark.slow
def test_forked_processes_call_too_whatever_other_threads_did_at_the_fork(project):
    put_tool(project, "my/count", 'return {"success": True, "output": "1"}', more='__permissions__ = ["read"]\n')
    body = """
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
    print(len([one for one in pool.map(lambda_free, range(12)) if one == "success"]))
"""
    body = "def lambda_free(number): return call()['status']\n" + body
    assert program(project, body, timeout=240).endswith("12\n")


SPAWNING = """
import concurrent.futures, multiprocessing, sys
sys.path.insert(0, {runtime!r})
import rye

def work(number):
    read = rye.execute("rye/file-system/read", {{"file_path": "a.txt"}}, project_path=sys.argv[1])
    made = {{"file_path": f"made{{number}}.txt", "content": "x\\n"}}
    print("from", number)
    return read["status"], rye.execute("rye/file-system/write", made, project_path=sys.argv[1])["status"]

if __name__ == "__main__":
    rye.execute("rye/file-system/read", {{"file_path": "a.txt"}}, project_path=sys.argv[1])
    for method in ("spawn", "fork", "forkserver"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            assert set(pool.map(work, range(4))) == {{("success", "success")}}
    print("done")
"""


@pytest.mark.slow
def test_pools_of_processes_of_every_kind(project, tmp_path):
    script = tmp_path / "pools.py"
    script.write_text(SPAWNING.format(runtime=str(Path(rye.__file__).parents[1])))
    done = subprocess.run([sys.executable, script, project], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.endswith("done\n")
    assert done.stdout.count("from") == 12
