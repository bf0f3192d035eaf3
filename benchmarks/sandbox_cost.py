"""What a sandbox costs: starting `true` plain, under each layer, and making the command that starts it.

    python benchmarks/sandbox_cost.py [--rounds 60] [--json]

Medians of milliseconds, the ways taking turns, in a project with a repository; `confine` is the part of this process alone, which
is contained in the figures of the layers. `python` is starting an idle interpreter, for comparison with the launcher.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from rye.sandbox import bubblewrap, landlock, policy, sandbox


def spawned(confined: policy.Confined) -> None:
    """Run what was confined to its end."""
    subprocess.run(confined.argv, env=confined.env, pass_fds=confined.fds, stdin=subprocess.DEVNULL, check=True)
    confined.close()
    confined.finish()


def given_back(confined: policy.Confined) -> None:
    confined.close()
    confined.finish()


def ways(root: str) -> dict:
    """Return each way of starting `true` that this machine has."""
    plain = {"PATH": os.environ["PATH"]}
    wide, off = policy.Policy(root, root), policy.Policy(root, root, network="off")
    found = {
        "plain": lambda: subprocess.run(["/bin/true"], env=plain, stdin=subprocess.DEVNULL, check=True),
        "python": lambda: subprocess.run(
            [sys.executable, "-I", "-S", "-c", ""], env=plain, stdin=subprocess.DEVNULL, check=True
        ),
    }
    if not bubblewrap.ability().why_not:
        found["bubblewrap"] = lambda: spawned(bubblewrap.confine(["/bin/true"], wide))
        found["bubblewrap, network off"] = lambda: spawned(bubblewrap.confine(["/bin/true"], off))
        found["confine for bubblewrap"] = lambda: given_back(bubblewrap.confine(["/bin/true"], wide))
    if not landlock.why_not():
        found["landlock"] = lambda: spawned(landlock.confine(["/bin/true"], wide))
        found["confine for landlock"] = lambda: given_back(landlock.confine(["/bin/true"], wide))
    return found


def main() -> int:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print(f"layers: {dict(sandbox.layers())}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        root = f"{folder}/project"
        os.makedirs(f"{root}/.git/objects")
        taken: dict[str, list[float]] = {}
        for _ in range(given.rounds):
            for name, way in ways(root).items():
                started = time.perf_counter()
                way()
                taken.setdefault(name, []).append((time.perf_counter() - started) * 1000)
    medians = {name: round(statistics.median(times), 2) for name, times in taken.items()}
    if given.json:
        print(json.dumps(medians))
    else:
        for name, median in medians.items():
            print(f"{name:<26} {median:8.2f} ms   {median / medians['plain']:6.1f} x plain")
    return 0


if __name__ == "__main__":
    sys.exit(main())
