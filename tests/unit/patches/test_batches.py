"""Landing several files as one: IDs live on, and processes that meet on the same files lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rye

_WORKER = """
import hashlib, pathlib, sys
import rye

project, times, names = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
done = tries = 0
while done < times:
    files = []
    for name in names:
        data = (project / name).read_bytes()
        old = data.decode().rstrip()
        files.append({"docPath": name, "originalSha256": hashlib.sha256(data).hexdigest(), "changes": [{
            "operation": "replace", "startLine": 1, "endLine": 1, "expectedOriginalLines": [old],
            "newLines": [str(int(old) + 1)]}]})
    tries += 1
    answer = rye.execute("rye/workspace/workspace_write_patch", {"files": files}, project_path=project)
    if answer["status"] == "success":
        done += 1
    else:
        assert answer["code"] in ("invalid_batch", "conflict"), answer
print(tries)
"""


def test_processes_with_overlapping_batches_neither_wait_in_a_circle_nor_lose_a_change(project):
    names = [f"f{number}" for number in range(6)]
    for name in names:
        (project / name).write_text("0\n")
    env = {**os.environ, "PYTHONPATH": str(Path(rye.__file__).parents[1])}
    orders = [names[:4], names[:1:-1], names[1:5:2] + names[:1]]
    children = [
        subprocess.Popen([sys.executable, "-c", _WORKER, project, "8", *order], env=env, stdout=subprocess.PIPE)
        for order in orders
    ]
    for child in children:
        child.communicate(timeout=100)
        assert child.returncode == 0
    for name in names:
        assert int((project / name).read_text()) == 8 * sum(name in order for order in orders)
    assert not [path for path in project.iterdir() if path.name.startswith(".rye-")]


def test_as_many_files_as_a_batch_may_have(project):
    request = {"createFiles": [{"path": f"d{number % 7}/f{number}", "content": f"{number}\n"} for number in range(200)]}
    answer = rye.execute("rye/workspace/workspace_write_patch", request, project_path=project)
    assert answer["data"]["result"]["fileCount"] == 200
    assert len([path for path in project.rglob("f*") if path.is_file() and ".ai" not in path.parts]) == 200
