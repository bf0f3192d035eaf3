"""Calls of the workspace tools, and the parts of a request."""

from __future__ import annotations

import hashlib
import re

from support.calling import call
from support.harness import files_of

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def sha(data):
    return hashlib.sha256(data).hexdigest()


def read(project, doc_path, **more):
    return _held(call("rye/workspace/workspace_read_file", project, docPath=doc_path, **more))


def write(project, **request):
    """Return the answer to a batch, good or bad; the envelope is held to its form."""
    return _held(call("rye/workspace/workspace_write_patch", project, **request))


def apply(project, batch_id, **more):
    return _held(call("rye/workspace/workspace_apply_patch", project, batchId=batch_id, **more))


def get(project, any_id, **more):
    return _held(call("rye/workspace/get_patch_change", project, id=any_id, **more))


def _held(answer):
    assert answer["successful"] is answer["success"], answer
    assert isinstance(answer["errors"], list)
    assert isinstance(answer["warnings"], list)
    if answer["success"]:
        assert answer["errors"] == []
        assert isinstance(answer["result"], dict)
    else:
        assert answer["result"] is None
        assert answer["errors"]
        assert all(one["code"] and one["message"] for one in answer["errors"])
    return answer


def patch(project, path, *changes, **more):
    """One entry of `files`, its digest that of the file as it is."""
    digest = sha((project / path).read_bytes())
    return {"docPath": path.lower(), "originalSha256": digest, "changes": list(changes), **more}


def insert(after, *lines, **more):
    return {"operation": "insert", "afterLine": after, "newLines": list(lines), **more}


def replace(start, expected, *lines, **more):
    return {
        "operation": "replace",
        "startLine": start,
        "endLine": start + len(expected) - 1,
        "expectedOriginalLines": list(expected),
        "newLines": list(lines),
        **more,
    }


def delete(start, *expected, **more):
    return {
        "operation": "delete",
        "startLine": start,
        "endLine": start + len(expected) - 1,
        "expectedOriginalLines": list(expected),
        **more,
    }


def done(project, *files, **more):
    """The result of a batch that is applied."""
    answer = write(project, files=list(files), **more)
    assert answer["success"], answer
    return answer["result"]


def refused(project, *files, **more):
    """The codes of a batch's problems, in order; nothing was written."""
    before = files_of(project)
    answer = write(project, files=list(files), **more)
    assert not answer["success"], answer
    assert before == files_of(project)
    return [one["code"] for one in answer["errors"]]
