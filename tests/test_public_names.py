"""What `import rye` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import rye
from support.harness import environment


def test_the_public_names_are_these():
    names = "RyeError __version__ execute fleet load search sign tools toolset verify"
    assert rye.__all__ == names.split()
    for name in rye.__all__:
        assert getattr(rye, name) is not None
    assert dir(rye) == sorted(rye.__all__)
    assert not hasattr(rye, "executor_of_everything")


def test_importing_rye_loads_nothing_of_itself_or_of_others():
    code = "import sys; before = set(sys.modules); import rye; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    loaded = [name for name in done.stdout.split() if name not in ("__future__", "typing")]
    assert [name for name in loaded if name.partition(".")[0] == "rye"] == ["rye", "rye._version"]
    assert not {"yaml", "httpx", "cryptography", "asyncio", "json", "pathlib"} & set(loaded)
