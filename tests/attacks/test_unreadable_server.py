"""A command without a sandbox, run as the server's own user, cannot read the server's environment or memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from support.harness import environment
from support.other_users import UNHIDDEN, as_user, python_for, system_copy

# Root may read every process; what is tried here needs an ordinary user.
USER = 65534 if os.geteuid() == 0 else os.geteuid()
SECRET = "canary-77aa01"
# What a server is here: it closes itself or not, starts a command as `bash` does without a sandbox, and prints what that says.
SERVER = """
import subprocess, sys
from rye.sandbox import environment, sandbox
if sys.argv[2] == "closed":
    environment.close()
held = "in memory: " + "-".join(["canary", "88bb02"])
confined = sandbox.confine(["/bin/sh", "-c", sys.argv[3], "sh", sys.executable], sandbox.Policy(sys.argv[1], sys.argv[1]), "off")
done = subprocess.run(confined.argv, env=confined.env, pass_fds=confined.fds, cwd=sys.argv[1], capture_output=True, text=True)
print(done.stdout)
"""
ENVIRONMENT = "tr '\\0' '\\n' < /proc/$PPID/environ | grep canary"
MEMORY = """exec "$1" -c '
import os
parent = os.getppid()
needle = b"in memory: " + b"canary-" + b"88bb02"
with open(f"/proc/{parent}/maps") as maps, open(f"/proc/{parent}/mem", "rb", 0) as memory:
    for line in maps:
        low, high = (int(word, 16) for word in line.split()[0].split("-"))
        if line.split()[1].startswith("rw"):
            try:
                memory.seek(low)
                if needle in memory.read(high - low):
                    print("found in memory")
                    break
            except (OSError, ValueError, OverflowError):
                pass
'"""


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="rye-unreadable-", dir=UNHIDDEN) as name:
        path = system_copy(Path(name))
        project = Path(name, "project")
        project.mkdir()
        project.chmod(0o777)
        yield project, path


@pytest.mark.parametrize(
    ("command", "found"), [(ENVIRONMENT, SECRET), (MEMORY, "found in memory")], ids=["environment", "memory"]
)
def test_a_command_reads_nothing_of_the_server(folder, command, found):
    project, path = folder
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "MY_API_KEY": SECRET}
    env |= {"USER_SPACE": str(project), "HOME": str(project)}
    said = {}
    for state in ("open", "closed"):
        argv = [python_for(USER), "-c", SERVER, project, state, command]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False, **as_user(USER))
        assert done.returncode == 0, done.stderr
        said[state] = done.stdout
    if found not in said["open"] and Path("/proc/sys/kernel/yama/ptrace_scope").exists() and command is MEMORY:
        pytest.skip("this kernel lets no process read another's memory")
    # Control: an open server is read.
    assert found in said["open"]
    assert found not in said["closed"]


MAIN = "from rye.cli.main import main; main({!r})"
LIBRARY = "import rye; rye.execute('rye/bash/bash', {'command': 'true'}, project_path='.')"


@pytest.mark.parametrize(
    ("code", "dumpable"),
    [(MAIN.format(["mcp"]), 0), (MAIN.format(["execute", "rye/file-system/ls"]), 0), (MAIN.format(["tools"]), 1), (LIBRARY, 1)],
    ids=["server", "command with a tool", "command without one", "library"],
)
def test_the_doors_that_serve_close_themselves_and_a_library_leaves_its_host_as_it_is(project, code, dumpable):
    asked = f"{code}; import ctypes, os; os.write(2, b'dumpable %d' % ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    words = [sys.executable, "-c", asked]
    done = subprocess.run(words, cwd=project, env=environment(), input=b"", capture_output=True, timeout=60, check=False)
    assert b"dumpable %d" % dumpable in done.stderr, done
