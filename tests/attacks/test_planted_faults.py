"""Each fault of `tests.support.planted_faults`, planted into a copy of the package, makes one of the tests fail that are named for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.planted_faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
NAMES = [fault.name for fault in FAULTS]


def _fail(tests: str, package: Path) -> str:
    """Return the first test of some files that fails with the package at another place; "" where all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-m", "not full", *tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode in (0, 1), ran.stdout[-2000:] + ran.stderr[-2000:]
    return next((line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "FAILED") * ran.returncode


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a copy of the package, with the bundle where the package looks for it."""
    shutil.copytree(ROOT / "runtime", tmp_path / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / ".ai", tmp_path / ".ai", ignore=shutil.ignore_patterns("cache"))
    return tmp_path / "runtime" / "rye"


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_stands_once_in_the_code(fault: Fault) -> None:
    assert (ROOT / "runtime/rye" / fault.module).read_text().count(fault.old) == 1
    assert all((ROOT / path).exists() for path in fault.tests.split())


@pytest.mark.slow
def test_without_a_fault_nothing_fails(copied: Path) -> None:
    """The control: a copy alone changes nothing."""
    assert _fail("tests/unit/trust/test_verify.py tests/unit/fs", copied) == ""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_is_noticed(fault: Fault, copied: Path) -> None:
    module = copied / fault.module
    module.write_text(module.read_text().replace(fault.old, fault.new))
    print(_fail(fault.tests, copied) or pytest.fail("no test notices it"))
