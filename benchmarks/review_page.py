"""How long the pages of `rye review` take with a full journal: the list, a search, a call, what is new, and a page that is unchanged.

    python benchmarks/review_page.py [--calls 10000] [--seed 7] [--rounds 9]

The journal holds real calls of `write`, `edit_lines` and `bash`, made through the executor (some minutes). Times are from request to the
whole answer over loopback (milliseconds): the first after the server's start, then median and worst of the others. Beside them stands the
time of one walk over the journal's entries with `os.stat`, which every list of them needs at least.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx

import rye
from rye.journal import history
from rye.review.server import Review, listen
from rye.workspace.workspace import Workspace

AIM_MS = 300
LISTS = {
    "list": "/",
    "list, far back": "/?first=5000",
    "search": "/?text=file17.py",
    "search in commands": "/?text=changed",
    "not reviewed": "/?show=open",
}


def fill(root, calls, rng):
    """Make so many recorded calls: seven edits for two writes and one command."""

    def call(tool, **parameters):
        answer = rye.execute(f"rye/{tool}", parameters, project_path=root)["data"]
        assert answer["success"], answer

    names = [f"src/part{number % 7}/file{number}.py" for number in range(200)]
    for name in names:
        Path(root, name).parent.mkdir(parents=True, exist_ok=True)
        Path(root, name).write_text("".join(f"line_{number} = {number}\n" for number in range(60)))
    for number in range(calls):
        name, kind = rng.choice(names), number % 100
        if kind == 0:
            call("bash/bash", command=f"sed -i '{rng.randrange(1, 50)}s/.*/changed = {number}/' {name} {rng.choice(names)}")
        elif kind < 20:
            call("file-system/write", file_path=name, content="".join(f"new_{number}_{at} = {at}\n" for at in range(60)))
        else:
            old = rng.choice(Path(root, name).read_text().splitlines())
            change = {"find": f"{old}\n", "replace": f"edit_{number} = {rng.randrange(999)}\n"}
            # A command may have changed it since it was read last.
            call("file-system/read", file_path=name, limit=1)
            call("file-system/edit_lines", file_path=name, changes=[change])


def timed(client, path, rounds, **options):
    """Return the first time of a request, and those after it (milliseconds)."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        answer = client.get(path, **options)
        found.append((time.perf_counter() - start) * 1000)
        assert answer.status_code in (200, 304), (path, answer.status_code)
    return found[0], found[1:]


def main():
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--calls", type=int, default=history.MAX_ENTRIES)
    words.add_argument("--seed", type=int, default=7)
    words.add_argument("--rounds", type=int, default=9)
    args = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        root.mkdir()
        os.environ["USER_SPACE"] = str(Path(folder, "user"))
        Path(folder, "user").mkdir()
        start = time.monotonic()
        fill(str(root), args.calls, random.Random(args.seed))
        print(f"{args.calls:,} calls made in {time.monotonic() - start:.0f} s, seed {args.seed}", flush=True)
        measure(root, args.rounds)


def measure(root, rounds):
    """Serve the pages and time them."""
    with Workspace(str(root)) as ws:
        where = history.folder(ws)
        start = time.perf_counter()
        count = sum(1 for name in os.listdir(where) if os.stat(where / name))
        print(f"{count:,} files of the journal, one walk {1000 * (time.perf_counter() - start):.0f} ms")
    listening = listen(0)
    review = Review(str(root), listening.getsockname()[1], lambda text: None)
    server = review.server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    base = review.address.rpartition("/")[0]
    try:
        while not server.started:
            time.sleep(0.01)
        with httpx.Client(base_url=base, timeout=120) as client:
            client.get(review.address)
            worst = 0.0
            for name, path in LISTS.items():
                worst = max(worst, show(name, *timed(client, path, rounds)))
            text = client.get("/").text
            one = text.partition("/change/")[2].partition('"')[0]
            show("a call", *timed(client, f"/change/{one}", rounds))
            mark = text.partition('data-live="')[2].partition('"')[0].replace("&quot;", '"')
            show("list, unchanged", *timed(client, "/", rounds, headers={"if-none-match": mark}))
            print(f"worst of the lists: {worst:.0f} ms (aim {AIM_MS})")
    finally:
        server.should_exit = True
        thread.join()
        review.site.close()


def show(name, first, others):
    """Print one row, and return its worst time."""
    print(f"{name:<20} first {first:7.1f}   median {statistics.median(others):7.1f}   worst {max(others):7.1f}", flush=True)
    return max(first, *others)


if __name__ == "__main__":
    main()
