"""How many fresh workspaces a fleet goes through a second, and what the fleet costs beyond the calls.

Each workspace is new: read its file, edit one line, read it again. The same jobs run in three ways, in turn:
calls alone in this process, the adapter in this process (keys, records), and the fleet on N workers. Rates on a busy machine are
lower; the processor's time for each workspace is what to compare.

    python benchmarks/fleet_rate.py [--workspaces 400] [--workers 2] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import rye
from rye.fleet import adapter

TEXT = "".join(f"x{at} = {at}\n" for at in range(100))
READ = {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.py"}}
CALLS = [
    READ,
    {
        "item_id": "rye/file-system/edit_lines",
        "parameters": {"file_path": "a.py", "changes": [{"find": "x5 = 5\n", "replace": "x5 = 6\n"}]},
    },
    {"item_id": "rye/file-system/read", "parameters": {"file_path": "a.py", "offset": 5, "limit": 3}},
]


def fresh(folder: Path, count: int) -> list[Path]:
    made = []
    for at in range(count):
        place = folder / str(at)
        place.mkdir(parents=True)
        (place / "a.py").write_text(TEXT)
        made.append(place)
    return made


def checked(places: list[Path]) -> None:
    wanted = TEXT.replace("x5 = 5\n", "x5 = 6\n")
    assert all((place / "a.py").read_text() == wanted for place in places)


def measured(work, places: list[Path]) -> tuple[float, float]:
    """Return a workspace's wall time and processor time (ms), of this process and the children that ended."""

    def spent() -> float:
        return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    wall, cpu = time.perf_counter(), spent()
    work(places)
    out = (time.perf_counter() - wall) / len(places) * 1000, (spent() - cpu) / len(places) * 1000
    checked(places)
    return out


def of_tree() -> tuple[float, float]:
    """Return the processor's milliseconds of this process, and of all that it started and that still run."""

    def below(pid: str) -> list[str]:
        found: list[str] = []
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text(encoding="ascii").split():
                    found += [child, *below(child)]
        return found

    def used(pid: str) -> float:
        with suppress(OSError):
            return (
                sum(
                    int((one / "schedstat").read_text(encoding="ascii").split()[0])
                    for one in Path(f"/proc/{pid}/task").iterdir()
                )
                / 1e6
            )
        return 0.0

    return time.process_time() * 1000, sum(map(used, below("self")))


def calls_alone(places: list[Path]) -> None:
    for place in places:
        for call in CALLS:
            assert rye.execute(call["item_id"], call["parameters"], project_path=place)["status"] == "success"


def adapter_alone(places: list[Path]) -> None:
    for place in places:
        assert adapter.run_workspace(place, CALLS, os.urandom(8).hex())["status"] == "done"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspaces", type=int, default=400)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rates, rows = [], {"calls": [], "adapter": [], "fleet": []}
    driver: list[float] = []
    workers: list[float] = []

    def fleet(places: list[Path]) -> None:
        seen: list[tuple[int, float, float]] = []
        last: list[rye.fleet.Progress] = []

        def progress(now) -> None:
            # Some first ones load the modules of the workers.
            if now.finished >= len(places) // 4:
                seen.append((now.finished, *of_tree()))
            last[:] = [now]

        records = rye.fleet.run(places, CALLS, workers=args.workers, progress=progress)
        assert [record["status"] for record in records] == ["done"] * len(places)
        rates.append(last[0].rate)
        (first, own, others), (end, own_end, others_end) = seen[0], seen[-1]
        driver.append((own_end - own) / (end - first))
        workers.append((others_end - others) / (end - first))

    with tempfile.TemporaryDirectory() as top:
        os.environ["USER_SPACE"] = f"{top}/user"
        calls_alone(fresh(Path(top, "warm"), 5))
        adapter_alone(fresh(Path(top, "warm2"), 5))
        for number in range(args.rounds):
            for name, work, count in (
                ("calls", calls_alone, args.workspaces // 4),
                ("adapter", adapter_alone, args.workspaces // 4),
                ("fleet", fleet, args.workspaces),
            ):
                rows[name].append(measured(work, fresh(Path(top, name, str(number)), count)))
    print(f"{args.rounds} rounds, load {os.getloadavg()[0]:.1f}; medians for each workspace, ms")
    for name, found in rows.items():
        wall, cpu = (statistics.median(one[at] for one in found) for at in (0, 1))
        more = f"; with start and end of {args.workers} workers" if name == "fleet" else ""
        print(f"{name:8} wall {wall:7.2f}  processor {cpu:7.2f}{more}")
    parts = statistics.median(driver), statistics.median(workers)
    print(
        f"fleet    processor {sum(parts):.2f} once workers are up: {parts[0]:.2f} scheduler and driver, {parts[1]:.2f} workers"
    )
    print(f"fleet    {statistics.median(rates):.0f} workspaces/s once workers are up, best {max(rates):.0f}")


if __name__ == "__main__":
    main()
