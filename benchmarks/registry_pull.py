"""What the registry does with many items, and how a pull of them compares with another OCI client's copy.

    PYTHONPATH=runtime:tests python benchmarks/registry_pull.py [--items 500] [--pushers 8] [--each 50] [--rounds 3]

Needs docker-registry and skopeo. For a layout in a directory, then for docker-registry on loopback:

* push the items, search, pull them as a second user into a second project, verify each, compare the bytes, execute one; and
  count the tags that skopeo lists (server) or the images that it copies;
* some processes push at once, each its own items: all must be found;
* the time of a pull (fetch, verify, install durably, each in the journal) against `skopeo sync` of the same repository (one
  process; fetch and hash) and `skopeo copy` of each tag (a process each, as it takes one image).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rye
from rye import api
from rye.registry import registry
from rye.registry.pull import PullOptions
from rye.registry.registry import RegistryTarget
from support.oci_server import put_items, running
from support.signed_tools import trust_key

RUNTIME = Path(rye.__file__).parents[1]
PUSH = """
import sys
from rye import registry
from rye.registry.registry import RegistryTarget
for item_id in sys.argv[3:]:
    registry.push(RegistryTarget(sys.argv[1], sys.argv[2]), "tool", [item_id])
"""


def timed(work):
    """Return (seconds, result)."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def fresh(folder, name):
    """Return a new project of a new user, who trusts the same key."""
    os.environ["USER_SPACE"] = str(folder / f"user-{name}")
    trust_key()
    project = folder / f"project-{name}"
    project.mkdir()
    return project


def travel(folder, where, count):
    """Push, search, pull, verify, compare, execute; print what each took."""
    source = fresh(folder, "a")
    ids = put_items(source, count)
    pushed, rows = timed(lambda: registry.push(RegistryTarget(str(source), where), "tool", ["my/*"]))
    assert len(rows) == count
    there = fresh(folder, "b")
    at = RegistryTarget(str(there), where)
    searched, found = timed(lambda: registry.search(at, ids[-1].rpartition("/")[2], ["my"]))
    assert found["results"][0]["item_id"] == ids[-1]
    again, _ = timed(lambda: registry.search(at, "test", ["my"]))
    pulled, rows = timed(lambda: registry.pull(at, "tool", ["my/*"], PullOptions()))
    assert sum(row["status"] == "installed" for row in rows) == count
    same = sum((there / f".ai/tools/{one}.py").read_bytes() == (source / f".ai/tools/{one}.py").read_bytes() for one in ids)
    done = api.execute(ids[count // 2], {}, project_path=str(there))
    assert done["status"] == "success", done
    print(
        f"  {count} items: push {pushed:.2f} s, search {searched:.2f} s (again {again:.2f} s), pull {pulled:.2f} s; "
        f"{same} byte for byte; one executed"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "rye", "verify", ".ai/tools", "--json"],
        cwd=there,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(RUNTIME)},
    )
    rows = json.loads(checked.stdout)
    print(f"  rye verify in the second project: {sum(row['verdict'] == 'valid' for row in rows)} of {len(rows)} valid")


def crowd(folder, where, pushers, each):
    """Let some processes push at once; print how many items are found."""
    source = fresh(folder, "crowd")
    ids = put_items(source, pushers * each, "many")
    env = {**os.environ, "PYTHONPATH": str(RUNTIME)}
    words = [[sys.executable, "-c", PUSH, str(source), where, *ids[at::pushers]] for at in range(pushers)]

    def push():
        started = [subprocess.Popen(one, env=env) for one in words]
        return [one.wait() for one in started]

    took, codes = timed(push)
    found = registry.listing(RegistryTarget(str(source), where), ["many"])
    print(
        f"  {pushers} processes pushing {each} each: exit codes {sorted(set(codes))}, {len(found)} of {len(ids)} found, {took:.1f} s"
    )
    return len(found) == len(ids) and not any(codes)


def quiet(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(folder, where, rounds):
    """Time pulls against skopeo, alternating; print the medians and the ratios."""
    server = where.startswith("oci://")
    source = f"docker://{where[6:]}/my" if server else f"oci:{where}/my"
    insecure = ["--src-tls-verify=false"] if server else []
    tags = [row["item_id"] for row in registry.listing(RegistryTarget(str(folder), where), ["my"])]
    names = [f"tool--{one.replace('/', '.')}--1.2.3" for one in tags]
    times = {"pull": [], "sync": [], "copies": []}
    for number in range(rounds):
        there = fresh(folder, f"r{number}")
        took, rows = timed(
            lambda there=there: registry.pull(RegistryTarget(str(there), where), "tool", ["my/*"], PullOptions())
        )
        assert all(row["status"] == "installed" for row in rows)
        times["pull"].append(took)
        target = folder / f"copy-{number}"
        if server:
            words = (
                "skopeo",
                "sync",
                "--src-tls-verify=false",
                "--src",
                "docker",
                "--dest",
                "dir",
                f"{where[6:]}/my",
                str(target),
            )
            times["sync"].append(timed(lambda words=words: quiet(*words))[0])
        if number == 0:
            target = folder / "copies"
            target.mkdir()
            took, _ = timed(
                lambda target=target: [
                    quiet("skopeo", "copy", *insecure, f"{source}:{name}", f"oci:{target}/my:{name}") for name in names
                ]
            )
            times["copies"].append(took)
            print(f"  skopeo copied {len(json.loads((target / 'my/index.json').read_bytes())['manifests'])} of {len(names)}")
    if server:
        listed = subprocess.run(["skopeo", "list-tags", "--tls-verify=false", source], check=True, capture_output=True)
        print(f"  skopeo lists {len(json.loads(listed.stdout)['Tags'])} of {len(names)} tags")
    middle = {way: sorted(took)[len(took) // 2] for way, took in times.items() if took}
    told = ", ".join(f"{way} {took:.2f} s ({middle['pull'] / took:.2f})" for way, took in middle.items() if way != "pull")
    print(f"  pull of {len(names)}: {middle['pull']:.2f} s; skopeo, and the pull's ratio to it: {told}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--pushers", type=int, default=8)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    numbers = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rye-registry-"))
    good = True
    try:
        with running(folder / "server") as server:
            for name, where in (("layout", str(folder / "layout")), ("server", server)):
                print(name, flush=True)
                here = folder / name[0]
                here.mkdir()
                travel(here, where, numbers.items)
                good = crowd(here, where, numbers.pushers, numbers.each) and good
                compare(here, where, numbers.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("ok" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
