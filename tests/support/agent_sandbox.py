"""`rye serve --agent-sandbox` in a process of its own, for tests."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import NamedTuple

from support.harness import environment
from support.waiting import PATIENCE


class Served(NamedTuple):
    url: str
    token: str
    headers: dict[str, str]
    pid: int


@contextmanager
def served(project, *options, **variables):
    """Serve a project at a free port; yields where, and the token ("" without one)."""
    words = [sys.executable, "-m", "rye", "serve", "--agent-sandbox", "--port", "0", "--project", str(project), *options]
    process = subprocess.Popen(words, env=environment(**variables), stderr=subprocess.PIPE, text=True)
    try:
        first, second = process.stderr.readline(), process.stderr.readline()
        found = re.search(r"http://\S+", first)
        assert found, first + second + process.stderr.read()
        token = second.rpartition("Bearer ")[2].strip() if "Bearer" in second else ""
        token = variables.get("RYE_SANDBOX_TOKEN", token)
        url = found[0].replace("0.0.0.0", "127.0.0.1")
        yield Served(url, token, {"Authorization": f"Bearer {token}"} if token else {}, process.pid)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stderr.close()
