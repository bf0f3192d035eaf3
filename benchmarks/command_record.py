"""What recording a command's changes costs, in a project of 20,000 files, as ratios in one run.

    python benchmarks/command_record.py --files 20000 --rounds 9

It compares `bash true`, and a `sed -i` of one file, with recording and without, and relates the difference to one walk with
`os.scandir` and `stat` over the same tree. The first snapshot is told apart, with the room that it takes.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def prepared(root: Path, files: int) -> None:
    """Make a tree of small source files, 20 in each folder."""
    random_ = random.Random(1)
    for number in range(files):
        folder = root / f"d{number // 20 % 40}" / f"e{number // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"value_{n} = {random_.random()}\n" for n in range(random_.randint(5, 200)))
        (folder / f"f{number}.py").write_text("".join(lines))


def walk(root: str) -> int:
    """Visit every entry once, with its state."""
    count, waiting = 0, [root]
    while waiting:
        with os.scandir(waiting.pop()) as listing:
            for entry in listing:
                entry.stat(follow_symlinks=False)
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return count


def seconds(work: Callable[[], object]) -> float:
    """Return how long a call takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["USER_SPACE"] = f"{folder}/user"
        project, config = Path(folder, "project"), Path(folder, "user/.ai/config/rye.yaml")
        project.mkdir()
        config.parent.mkdir(parents=True)
        prepared(project, given.files)
        import rye

        def bash(command: str) -> None:
            answer = rye.execute("rye/bash/bash", {"command": command}, project_path=str(project))
            assert answer["status"] == "success", answer

        def recording(on: bool) -> None:
            config.write_text(f"record:\n  commands: {str(on).lower()}\n")

        changed = next(project.rglob("f0.py")).relative_to(project)
        recording(False)
        bash("true")
        recording(True)
        first = seconds(lambda: bash("true"))
        state = sum(path.stat().st_size for path in Path(folder, "user").rglob("*") if path.is_file())
        # What was made a moment ago is read once more.
        time.sleep(0.1)
        bash("true")
        found: dict[str, list[float]] = {"walk": [], "true, off": [], "true": [], "sed, off": [], "sed": []}
        for number in range(given.rounds):
            found["walk"].append(seconds(lambda: walk(str(project))))
            for on in (False, True):
                recording(on)
                tail = "" if on else ", off"
                found[f"true{tail}"].append(seconds(lambda: bash("true")))
                found[f"sed{tail}"].append(seconds(lambda n=number: bash(f"sed -i '1s/.*/round = {n}/' {changed}")))  # type: ignore[misc]
        middle = {name: statistics.median(times) for name, times in found.items()}
        after = sum(path.stat().st_size for path in Path(folder, "user").rglob("*") if path.is_file())
    print(
        f"{given.files} files; one walk {middle['walk'] * 1000:.0f} ms; the first snapshot {first:.2f} s, {state / 1e6:.1f} MB"
    )
    for name in ("true", "sed"):
        more = middle[name] - middle[f"{name}, off"]
        print(
            f"bash {name}: {middle[f'{name}, off'] * 1000:.0f} ms unrecorded, {middle[name] * 1000:.0f} ms recorded: "
            f"{more * 1000:.0f} ms more, {more / middle['walk']:.2f} walks"
        )
    print(f"room used by {2 * given.rounds} recorded commands: {(after - state) / 1000 / (2 * given.rounds):.1f} kB each")


if __name__ == "__main__":
    main()
