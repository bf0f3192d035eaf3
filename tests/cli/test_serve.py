"""`rye serve`: what it refuses before it listens, and what its help says of who is let in."""

from __future__ import annotations

import sys

from support.in_process import rye


def test_what_it_refuses_before_it_listens_and_whom_it_lets_in(project, monkeypatch):
    done = rye("serve", "--agent-sandbox", "--port", "0", cwd=project, env={"RYE_SANDBOX_TOKEN": "short"})
    assert (done.returncode, b"RYE_SANDBOX_TOKEN holds no usable token" in done.stderr) == (2, True)
    said = rye("serve", "--help", cwd=project).stdout
    assert b"listens on this machine alone" in said
    assert b"Whoever reaches such a port runs commands" in said
    # Without the server's packages it says what to install.
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "-packages" not in folder])
    done = rye("serve", "--agent-sandbox", cwd=project)
    assert (done.returncode, b"extra `mcp`" in done.stderr, b"pip install" in done.stderr) == (2, True, True)
