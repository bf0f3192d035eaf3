"""Each fault of `tests.support.planted_faults`, planted into a copy of the package, makes the test fail that is named for it."""

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


def _fails(test: str, package: Path) -> bool:
    """Tell whether a test fails with the package at another place."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-m", "not full", f"tests/{test}"]
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode in (0, 1), ran.stdout[-2000:] + ran.stderr[-2000:]
    print(ran.stdout[-300:])
    return ran.returncode == 1


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package, with the bundle where the package looks for it."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copytree(ROOT / "runtime", folder / "runtime")
    shutil.copytree(ROOT / ".ai", folder / ".ai", ignore=shutil.ignore_patterns("cache"))
    return folder / "runtime" / "rye"


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_fault_stands_once_in_the_code(fault: Fault) -> None:
    assert (ROOT / "runtime/rye" / fault.module).read_text().count(fault.old) == 1
    path, _, name = fault.test.partition("::")
    assert f"def {name}(" in (ROOT / "tests" / path).read_text()


@pytest.mark.slow
def test_without_a_fault_nothing_fails(copied: Path) -> None:
    """The control: a copy alone changes nothing."""
    assert not _fails("unit/trust/test_verify.py", copied)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_planted_fault_is_noticed(fault: Fault, copied: Path) -> None:
    module = copied / fault.module
    module.write_text(module.read_text().replace(fault.old, fault.new))
    try:
        assert _fails(fault.test, copied)
    finally:
        # With its time, so that what was compiled of it counts again.
        shutil.copy2(ROOT / "runtime/rye" / fault.module, module)
