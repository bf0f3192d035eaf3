"""A program run in a sandbox, as the tools run one; needs the package and the standard library only."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from rye.process import process_tree
from rye.sandbox import sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run_confined(
    argv: Sequence[str], policy: sandbox.Policy, mode: str = "auto", *, cwd: object, linger: float = 0
) -> tuple[subprocess.CompletedProcess[bytes], Mapping[str, object]]:
    """Return how a program ended, and the sandbox's report; what it left running has `linger` seconds until that is ended."""
    confined = sandbox.confine(list(argv), policy, mode)
    try:
        done = subprocess.run(
            confined.argv,
            env=confined.env,
            pass_fds=confined.fds,
            preexec_fn=lambda: process_tree.enter([os.fsencode(one) for one in confined.groups], scoped=confined.scoped),
            cwd=str(cwd),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        confined.close()
        time.sleep(linger)
        confined.finish()
    return done, confined.report
