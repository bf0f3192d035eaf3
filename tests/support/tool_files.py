"""Run a tool file of the bundle in this thread, without the executor: for faults that count system calls."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

TOOLS = Path(__file__).parents[2] / ".ai/tools"


def execute(item_id, params, project):
    """Return what the file's `execute` returns; every parameter that it reads must be given."""
    return module(item_id).execute(params, str(project))


@functools.cache
def module(item_id):
    """Return a tool file as a module."""
    spec = importlib.util.spec_from_file_location(item_id.replace("/", "_").replace("-", "_"), TOOLS / f"{item_id}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made
