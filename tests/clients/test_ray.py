"""The fleet's adapter under Ray: the same plain function, with Ray's own retries, while its workers are killed.

`python -m pytest -m clients tests/clients/test_ray.py` installs `ray` from PyPI (240 MB) and this package into a folder of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.client_programs import python_with
from support.readme_blocks import ROOT

pytestmark = pytest.mark.clients

DRIVER = Path(__file__).parents[1] / "support" / "client_drivers" / "ray_fleet.py"
COUNT = 60


def test_ray_runs_the_adapter_and_killed_workers_double_nothing(tmp_path_factory, tmp_path):
    python = python_with("ray", tmp_path_factory.mktemp("client"), "ray", "-e", str(ROOT))
    for at in range(COUNT):
        (tmp_path / str(at)).mkdir()
        (tmp_path / str(at) / "a.txt").write_text("one\n")
    words = [python, str(DRIVER), str(tmp_path), str(COUNT)]
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3_000:]
    said = json.loads((tmp_path / "said.json").read_text())
    print(said)
    assert said["done"] == COUNT
    assert said["killed"], "control: workers were killed"
    wanted = "one\n" + "".join(f"{at}\n" for at in reversed(range(10)))
    assert {(tmp_path / str(at) / "a.txt").read_text() for at in range(COUNT)} == {wanted}
