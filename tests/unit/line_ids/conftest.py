"""Files whose index was stored."""

from __future__ import annotations

import pytest

from support.calling import rows
from support.index_files import LARGE, SMALL, read, settle


@pytest.fixture
def small(project):
    (project / "f.txt").write_bytes(SMALL)
    settle(project / "f.txt")
    return rows(read(project))


@pytest.fixture
def large(project):
    (project / "f.txt").write_bytes(LARGE)
    settle(project / "f.txt")
    return rows(read(project, limit=100))
