"""The fleet's adapter as a Ray task whose workers are killed now and then: FOLDER COUNT. Writes FOLDER/said.json."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import ray

import rye


def ray_workers() -> list[int]:
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if one.read_bytes().startswith(b"ray::run_workspace"):
                found.append(int(one.parent.name))
    return found


folder, count = Path(sys.argv[1]), int(sys.argv[2])
# Many edits in a job, so that a kill comes between two of them.
calls = [
    {
        "item_id": "rye/file-system/edit_lines",
        "parameters": {"file_path": "a.txt", "changes": [{"find": "one\n", "replace": f"one\n{at}\n"}]},
    }
    for at in range(10)
]
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
task = ray.remote(max_retries=20)(rye.fleet.run_workspace)
waiting = [task.remote(str(folder / str(at)), calls, f"ray:{at}") for at in range(count)]
rng, killed, left = random.Random(7), 0, list(waiting)
while left:
    _, left = ray.wait(left, num_returns=len(left), timeout=0.3)
    for pid in ray_workers():
        # Only those of this machine's own run: a test machine has no other Ray.
        if left and killed < 12 and rng.random() < 0.5:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    time.sleep(0.05)
found = ray.get(waiting)
repeated = sum(bool((call.get("data") or {}).get("repeated")) for one in found for call in one["calls"])
said = {"done": sum(one["status"] == "done" for one in found), "killed": killed, "repeated": repeated}
# Into a file: Ray prints its own lines.
(folder / "said.json").write_text(json.dumps(said))
