"""A project with an indexed file, and where its index is kept."""

from __future__ import annotations

import os
import re
import time
from hashlib import sha256

import rye
from rye.line_ids import index

SMALL = b"".join(b"line %d\n" % (n % 7) for n in range(12))
LARGE = b"".join(b"line %d\n" % n for n in range(index.ALL_IDS_MAX + 50))


def read(project, path="f.txt", **more):
    answer = rye.execute("rye/file-system/read", {"file_path": path, **more}, project_path=project)
    assert answer["status"] == "success", answer
    return answer["data"]


def rows(data):
    return re.findall(r"^\[LID:([0-9a-z]+)\] (.*)$", data["output"], re.MULTILINE)


def edit(project, path="f.txt", **change):
    answer = rye.execute("rye/file-system/edit_lines", {"file_path": path, "changes": [change]}, project_path=project)
    return answer["data"]


def folder(project):
    return project / ".ai/cache/tools/read/line_index"


def entry(project, path="f.txt"):
    return folder(project) / f"{sha256(path.encode()).hexdigest()[:16]}.json"


def binary(project):
    return next(folder(project).glob("*.lines"))


def settle(path, seconds=10):
    """Make a file old enough that its times are believed."""
    past = time.time() - seconds
    os.utime(path, (past, past))
