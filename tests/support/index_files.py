"""A project with an indexed file, and where its index is kept."""

from __future__ import annotations

import os
import time
from hashlib import sha256

from rye.line_ids import index
from support.calling import call, done

SMALL = b"".join(b"line %d\n" % (n % 7) for n in range(12))
LARGE = b"".join(b"line %d\n" % n for n in range(index.ALL_IDS_MAX + 50))


def read(project, path="f.txt", **more):
    return done("read", project, file_path=path, **more)


def edit(project, path="f.txt", **change):
    return call("edit_lines", project, file_path=path, changes=[change])


def folder(project):
    return project / ".ai/cache/tools/read/line_index"


def entry(project, path="f.txt"):
    return folder(project) / f"{sha256(path.encode()).hexdigest()[:16]}.json"


def settle(path, seconds=10):
    """Make a file old enough that its times are believed."""
    past = time.time() - seconds
    os.utime(path, (past, past))
