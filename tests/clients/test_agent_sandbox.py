"""agent-sandbox's own Python client, in its direct `api_url` mode, against `rye serve --agent-sandbox`: every operation.

`python -m pytest -m clients tests/clients/test_agent_sandbox.py` installs `k8s-agent-sandbox[async]` from PyPI (100 MB) into a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.agent_sandbox import served
from support.client_programs import python_with

pytestmark = pytest.mark.clients

DRIVER = Path(__file__).parents[1] / "support" / "client_drivers" / "agent_sandbox.py"
LARGE = 220 * 1024 * 1024
EXPECTED = {
    "run": ["out\n", "e  r\n", 3], "run quoted": "a b\n", "run past its time": ["begun\n", 124, True], "run nothing": 127,
    "run long": 2_000_000, "read": "again\n", "read bytes": True, "list": [["bytes 100%.bin", "file", 256]], "list root": True,
    "list nothing": [], "exists": [True, True, False], "read none": ["SandboxRequestError", 404],
    "read folder": ["SandboxRequestError", 404], "list none": ["SandboxRequestError", 404],
    "list file": ["SandboxRequestError", 404], "read outside": ["SandboxRequestError", 403],
    "write outside": ["SandboxRequestError", 403], "list outside": ["SandboxRequestError", 403],
    "exists outside": ["SandboxRequestError", 403], "write protected": ["SandboxRequestError", 403],
    "without a token": ["SandboxRequestError", 401], "large": True, "large is listed": True, "async": ["async\n", "async\n"],
    "async exists": [True, True],
}  # fmt: skip


def test_every_operation_of_the_client_is_right(tmp_path_factory, tmp_path):
    python = python_with("agent-sandbox", tmp_path_factory.mktemp("client"), "k8s-agent-sandbox[async]")
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret").write_text("TOP SECRET")
    with served(project) as made:
        words = [python, str(DRIVER), made.url, made.token, str(LARGE)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert dict(json.loads(done.stdout.splitlines()[-1])) == EXPECTED
    assert (tmp_path / "secret").read_text() == "TOP SECRET"
    assert not (project / "refused").exists()
