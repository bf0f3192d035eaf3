"""Calls of bash and job, as a model makes them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import rye
from rye.call.context import CallOptions
from support import calling


def call(tool, project, /, **parameters):
    """The tool's result, as `calling.call` gives it."""
    return calling.call(f"rye/bash/{tool}", project, **parameters)


def bash(project, command, /, **parameters):
    return call("bash", project, command=command, **parameters)


def job(project, action, job_id=None, /, **parameters):
    return call("job", project, action=action, **({"job_id": job_id} if job_id else {}), **parameters)


def started(project, command, /, **parameters):
    """The ID of a background job."""
    data = bash(project, command, background=True, **parameters)
    assert data["success"], data
    return data["job_id"]


def handed_on(project, command, seconds, cancellation=None):
    """The answer to a model's call, which is not waited for longer than `seconds`, and the job that the command became."""
    options = CallOptions(agent_defaults=True, cancellation=cancellation)
    answer = rye.execute("rye/bash/bash", {"command": command, "timeout": seconds}, project_path=project, options=options)
    return answer, answer["data"].get("job_id")


def configure(user_space, text):
    """Write the user's configuration."""
    path = Path(user_space, ".ai/config/rye.yaml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def set_sandbox(user_space, mode):
    configure(user_space, f"sandbox: {{mode: '{mode}'}}\n")


def record(user_space, job_id):
    """A job's record as it stands in the state folder."""
    (path,) = user_space.glob(f".ai/state/*/jobs/{job_id}/job.json")
    return json.loads(path.read_bytes())


def processes(mark, folder=None):
    """Return the processes whose command line has `mark` (`^` is its beginning), and whose working directory this is."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            has = mark.encode() in b"^" + (place / "cmdline").read_bytes()
            if has and (folder is None or folder == os.readlink(place / "cwd")):
                found.append(int(place.name))
    return found


def sleepers(number):
    """Processes that sleep a number of seconds."""
    return processes(f"^sleep\0{number}\0")
