"""Fixtures of the tests that replace files."""

from __future__ import annotations

import pytest

from rye.fs import beneath
from support.replacing import OLD, without


@pytest.fixture
def file(project):
    path = project / "file"
    path.write_bytes(OLD)
    return path


@pytest.fixture(params=["exchange", "check-then-rename"])
def way(request, monkeypatch):
    """Also a file system that cannot exchange."""
    if request.param != "exchange":
        without(monkeypatch, beneath.EXCHANGE)
    return request.param
