"""What `import rye` offers, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rye


def test_the_public_names_are_these():
    assert rye.__all__ == [
        "RyeError",
        "__version__",
        "execute",
        "fleet",
        "load",
        "search",
        "sign",
        "tools",
        "toolset",
        "verify",
    ]
    for name in rye.__all__:
        assert getattr(rye, name) is not None
    assert dir(rye) == sorted(rye.__all__)
    assert not hasattr(rye, "executor_of_everything")


def test_importing_rye_loads_nothing_of_itself_or_of_others():
    runtime = Path(rye.__file__).parents[1]
    code = "import sys; before = set(sys.modules); import rye; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.fspath(runtime)},
    )
    loaded = [name for name in done.stdout.split() if name not in ("__future__", "typing")]
    assert [name for name in loaded if name.partition(".")[0] == "rye"] == ["rye", "rye._version"]
    assert not {"yaml", "httpx", "cryptography", "asyncio", "json", "pathlib"} & set(loaded)


def test_the_error_of_the_house_is_one_class():
    from rye.errors import DeadlineError, EditError, ItemError, TrustError, UsageError, WorkspaceError

    for kind in (EditError, ItemError, TrustError, UsageError, WorkspaceError):
        err = kind("some_code", "It went wrong.", "Do this.", where="here")
        assert isinstance(err, rye.RyeError)
        assert (err.code, str(err), err.details) == ("some_code", "It went wrong. Do this.", {"where": "here"})
    assert DeadlineError(2.5).code == "deadline_exceeded"
    assert "2.5 s" in str(DeadlineError(2.5))
