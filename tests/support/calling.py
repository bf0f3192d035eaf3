"""Calls of the file tools (or, by their whole id, of others), as a model makes them."""

from __future__ import annotations

import re

import rye

ROW = re.compile(r"^\[LID:([0-9a-z]+)\] (.*)$", re.MULTILINE)


def call(tool, project, /, **parameters):
    """Return the tool's result, success or failure; a refusal before the tool ran looks the same."""
    item_id = tool if "/" in tool else f"rye/file-system/{tool}"
    answer = rye.execute(item_id, parameters, project_path=project)
    data = (
        answer["data"] if answer["data"] is not None else {"success": False, "error": answer["error"], "code": answer["code"]}
    )
    assert data.get("code") != "tool_crashed", answer
    return data


def response(project, item_id="my/tool", /, **parameters):
    """The whole response to a call, as a program gets it."""
    return rye.execute(item_id, parameters, project_path=project)


def done(tool, project, /, **parameters):
    """The result of a call that succeeds."""
    data = call(tool, project, **parameters)
    assert data["success"], data
    return data


def undo(project, /, **parameters):
    """The result of undo."""
    return call("undo", project, **parameters)


def refused(code, tool, project, /, **parameters):
    """The error of a call that is refused with this code."""
    data = call(tool, project, **parameters)
    assert not data["success"], data
    assert data["code"] == code, data
    return data["error"]


def rows(data):
    """(ID, text) of the lines that a read shows."""
    return ROW.findall(data["output"])


def ids(project, path="f.txt", **more):
    """The IDs of a file's lines, all read."""
    return [name for name, _ in rows(done("read", project, file_path=path, **more))]
