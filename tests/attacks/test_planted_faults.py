"""Each fault of `support.planted_faults`, planted into a copy of the package, makes the test fail that is named for it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.machine import WHY_NO_BUBBLEWRAP
from support.planted_faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
NAMES = [fault.name for fault in FAULTS]
# Forks one run of pytest for each line of its input: what does not belong to the package is loaded once.
RUNNER = """
import _hypothesis_pytestplugin, anyio._backends._asyncio, anyio.pytest_plugin, xdist.looponfail, xdist.plugin
import hypothesis.stateful, httpx, json, jsonschema_rs, os, pytest, sys, yaml
from cryptography.hazmat.primitives.asymmetric import ed25519
for line in sys.stdin:
    if not (pid := os.fork()):
        os.dup2(2, 1)
        os._exit(pytest.main(["-x", "-n", "0", "-m", "not full", "-W", "ignore::pytest.PytestAssertRewriteWarning", json.loads(line)]))
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, with the bundle where the package looks for it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT / "runtime", folder / "runtime")
    shutil.copytree(ROOT / ".ai", folder / ".ai", ignore=shutil.ignore_patterns("cache"))
    return folder / "runtime" / "rye"


@pytest.fixture(scope="module")
def fails(copied: Path) -> Iterator[Callable[[str], bool]]:
    """Yield a function that tells whether a test fails with the copy."""
    # Each run deletes what lies of the fourth last one: not of others, whose folders are large.
    own = {"PYTHONPATH": str(copied.parent), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DEBUG_TEMPROOT": str(copied.parents[1])}
    environment = {**os.environ, **own}
    command = [sys.executable, "-c", RUNNER]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runner:

        def run(test: str) -> bool:
            runner.stdin.write(json.dumps(f"tests/{test}") + "\n")
            runner.stdin.flush()
            code = runner.stdout.readline().strip()
            assert code in ("0", "1"), code
            return code == "1"

        yield run
        runner.stdin.close()


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_stands_once_in_the_code(fault: Fault) -> None:
    assert (ROOT / "runtime/rye" / fault.module).read_text().count("\n".join(fault.old)) == 1
    path, _, name = fault.test.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / "tests" / path).read_text()


@pytest.mark.slow
def test_without_a_fault_nothing_fails(fails: Callable[[str], bool]) -> None:
    """The control: a copy alone changes nothing."""
    assert not fails("unit/trust/test_verify.py")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_is_noticed(fault: Fault, copied: Path, fails: Callable[[str], bool]) -> None:
    if fault.module == "sandbox/bubblewrap.py" and WHY_NO_BUBBLEWRAP:
        pytest.skip(WHY_NO_BUBBLEWRAP)
    module = copied / fault.module
    module.write_text(module.read_text().replace("\n".join(fault.old), "\n".join(fault.new)))
    try:
        assert fails(fault.test), "no test notices it"
    finally:
        # With its time, so that what was compiled of it counts again.
        shutil.copy2(ROOT / "runtime/rye" / fault.module, module)
