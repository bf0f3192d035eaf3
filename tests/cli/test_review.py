"""`rye review` as it is typed: what it says before it serves; tests/unit/review and tests/attacks have the pages."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("uvicorn")

from support.terminal import typed


@pytest.mark.parametrize("port", ["taken", "-1", "70000"])
def test_a_port_that_cannot_be_had_is_said(project, port):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        wanted = taken.getsockname()[1] if port == "taken" else port
        code, shown = typed("review", f"--port={wanted}", cwd=project)
    assert code != 0
    assert f"Cannot listen at 127.0.0.1:{wanted}" in shown
    assert "open?code" not in shown
