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

import tool_files
from tree_photo import change_many


def edit(order):
    """One edit through the toolkit, in the main thread, so that the n-th system call means one thing."""
    from rye.errors import RyeError
    from rye.toolkit import Show, edit_lines

    try:
        applied = edit_lines(order["project"], "f.txt", order["changes"], tool="rye/file-system/edit_lines", show=Show(20_000))
        return {"success": True, "output": "\n".join(applied.diff), "warnings": applied.warnings}
    except RyeError as err:
        return {"success": False, "code": err.code, "error": str(err)}


def loop(order):
    """Edits without end through the whole corridor: the first and the last line get the same number."""
    import rye

    for number in range(order["from"], 1 << 30):
        answer = rye.execute(
            "rye/file-system/edit_lines", {"file_path": "f.txt", "changes": order["changes"]}, project_path=order["project"]
        )
        if answer["status"] != "success":
            return answer
        rows = answer["data"]["lines"]
        ids = (rows[0]["id"], rows[-1]["id"])
        order["changes"] = [{"line_id": one, "new_content": f"number {number + 1}"} for one in ids]
    return None


def naive(order):
    """The control: the file is written in place."""
    lines = Path(order["project"], "f.txt").read_text().splitlines(keepends=True)
    with open(f"{order['project']}/f.txt", "w") as file:
        file.writelines([order["changes"][0]["new_content"] + "\n", *lines[1:]])
    return {"success": True}


def naive_loop(order):
    for number in range(1 << 30):
        order["changes"] = [{"new_content": f"number {number}"}]
        lines = Path(order["project"], "f.txt").read_text().splitlines(keepends=True)
        with open(f"{order['project']}/f.txt", "w") as file:
            file.writelines([f"number {number}\n", *lines[1:-1], f"number {number}\n"])


BATCH = {"apply": True, "dryRun": False}


def batch(order):
    """One batch of several files through the toolkit, in the main thread."""
    from rye.errors import RyeError

    try:
        return tool_files.execute("rye/workspace/workspace_write_patch", {**BATCH, **order["request"]}, order["project"])
    except RyeError as err:
        return {"success": False, "code": err.code, "error": str(err)}


def batch_loop(order):
    """Batches without end through the whole corridor: the first line of every file gets the same number."""
    import rye

    digests = order["digests"]
    for number in range(order["from"], 1 << 30):
        old, new = [f"number {number}"], [f"number {number + 1}"]
        change = {"operation": "replace", "startLine": 1, "endLine": 1, "expectedOriginalLines": old, "newLines": new}
        files = [{"docPath": path, "originalSha256": digest, "changes": [change]} for path, digest in digests.items()]
        answer = rye.execute("rye/workspace/workspace_write_patch", {"files": files}, project_path=order["project"])
        if answer["status"] != "success":
            return answer
        digests = {told["docPath"]: told["newSha256"] for told in answer["data"]["result"]["files"]}
    return None


def naive_batch_loop(order):
    """The control: each file is replaced by itself, safely, one after the other."""
    for number in range(order["from"], 1 << 30):
        for path in order["digests"]:
            file = Path(order["project"], path)
            rest = file.read_text().partition("\n")[2]
            fresh = file.with_suffix(".new")
            fresh.write_text(f"number {number + 1}\n{rest}")
            fresh.replace(file)


def record(order):
    """A command between two looks."""
    from rye.journal import tree_changes
    from rye.workspace import running_commands
    from rye.workspace.workspace import Workspace

    with Workspace(order["project"]) as ws:
        recording = tree_changes.begin(ws, running_commands.begin(ws.fd), "rye/bash/bash", "a command")
        change_many(order["project"])
        return {"entry": tree_changes.end(ws, recording).entry_id}


def execute(order):
    """A call of any tool, with the processes and threads that it takes."""
    import rye

    return rye.execute(order["tool"], order["parameters"], project_path=order["project"])


def edit_a(order):
    """One edit through the toolkit, of `a.txt`."""
    from rye.toolkit import Show, edit_lines

    applied = edit_lines(order["project"], "a.txt", order["changes"], tool="rye/file-system/edit_lines", show=Show(20_000))
    return {"success": True, "warnings": applied.warnings}


def undo(order):
    """An undo or a redo, with the tool's own parameters, in the main thread."""
    from rye.errors import RyeError

    try:
        return tool_files.execute("rye/file-system/undo", order["request"], order["project"])
    except RyeError as err:
        return {"success": False, "code": err.code, "error": str(err)}


JOBS = {
    "record": record,
    "edit_a": edit_a,
    "execute": execute,
    "undo": undo,
    "edit": edit,
    "loop": loop,
    "naive": naive,
    "naive_loop": naive_loop,
    "batch": batch,
    "batch_loop": batch_loop,
    "naive_batch_loop": naive_batch_loop,
}


def open_files():
    while True:
        try:
            return sorted(os.listdir("/proc/self/fd"))
        except OSError:
            continue


def victim(order):
    if order.get("short"):
        real = os.write
        os.write = lambda fd, data: real(fd, bytes(data)[: max(1, len(data) // 2)])
    before = open_files()
    out = os.open(order["out"], os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600) if "out" in order else None
    os.kill(os.getpid(), signal.SIGSTOP)
    os.getpriority(os.PRIO_PROCESS, 0)
    try:
        result = JOBS[order["job"]](order)
    except BaseException:
        result = {"crashed": traceback.format_exc()}
    os.getpriority(os.PRIO_PROCESS, 0)
    after = open_files()
    if out is not None:
        # The fault that was meant for the edit may fall here.
        data = json.dumps({"result": result, "leaked": len(after) - len(before) - 1}).encode()
        while data:
            try:
                data = data[os.write(out, data) :]
            except OSError:
                continue


def main():
    scratch = Path(sys.argv[1])
    scratch.mkdir()
    (scratch / "f.txt").write_text("one\ntwo\n")
    import rye

    answer = rye.execute("rye/file-system/read", {"file_path": "f.txt"}, project_path=scratch)
    ids = [line[5:11] for line in answer["data"]["output"].split("\n")]
    order = {"project": str(scratch), "changes": [{"line_id": ids[0], "new_content": "x"}]}
    edit(order)
    edit(order)
    rye.execute("rye/file-system/edit_lines", {"file_path": "f.txt", "changes": order["changes"]}, project_path=scratch)
    patch = {"path": "new.txt", "content": "x\n"}
    rye.execute("rye/workspace/workspace_write_patch", {"createFiles": [patch]}, project_path=scratch)
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
