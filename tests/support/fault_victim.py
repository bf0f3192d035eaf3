"""A warmed-up process that forks one victim for each line on its standard input (JSON), and says how it ended.

A victim stops itself (SIGSTOP) before its first system call that counts, so that a tracer can be attached.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import rye


def naive(project: str, path: str, content: str) -> dict:
    """The control: a file is written in place."""
    with open(f"{project}/{path}", "w") as file:
        for line in content.splitlines(keepends=True):
            file.write(line)
            file.flush()
    return {"status": "success"}


def open_files() -> list[str]:
    """Return this process's descriptors, whatever fails meanwhile."""
    while True:
        try:
            return os.listdir("/proc/self/fd")
        except OSError:
            continue


def victim(order: dict) -> None:
    """Do what is ordered, and write down the answer."""
    if order.get("boot"):
        from rye.process import reapers

        # Another supervisor for the jobs that are started.
        reapers._START = order["boot"]
    before = open_files()
    out = os.open(order["out"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.kill(os.getpid(), signal.SIGSTOP)
    try:
        if order["tool"] == "naive":
            answer = naive(order["project"], **order["parameters"])
        else:
            answer = rye.execute(order["tool"], order["parameters"], project_path=order["project"])
    except BaseException:
        answer = {"crashed": traceback.format_exc()}
    data = json.dumps({"answer": answer, "leaked": len(open_files()) - len(before) - 1}).encode()
    while data:
        # A fault that was meant for the call may fall here.
        try:
            data = data[os.write(out, data) :]
        except OSError:
            continue


def main() -> None:
    """Load what the calls need, then fork."""
    scratch = Path(sys.argv[1])
    scratch.mkdir()
    (scratch / "f.txt").write_text("one\ntwo\n")
    calls = [("read", {"file_path": "f.txt"}), ("edit_lines", {"file_path": "f.txt", "changes": ["end+|more"]}), ("undo", {})]
    for tool, parameters in calls:
        rye.execute(f"rye/file-system/{tool}", parameters, project_path=scratch)
    rye.execute(
        "rye/workspace/workspace_write_patch", {"createFiles": [{"path": "new.txt", "content": "x\n"}]}, project_path=scratch
    )
    rye.execute("rye/bash/job", {"action": "list"}, project_path=scratch)
    # Threads of these calls are over.
    time.sleep(0.1)
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                victim(json.loads(line))
            finally:
                os._exit(0)
        os.waitpid(pid, os.WUNTRACED)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
