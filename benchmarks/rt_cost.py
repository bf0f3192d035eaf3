"""What `rt` costs beside the plain commands it stands for, on a large tree and in a file of a million lines.

    python benchmarks/rt_cost.py [--files 20000] [--lines 1000000] [--rounds 15] [--json]

Each `rt` command stands beside the plain one and `rt --version` in the same run, the commands taking turns; medians. What is
to hold: `rt open` of a line costs at most `sed -n` of that line plus `rt --version`; `rt grep` at most 1.5 times `rg` plus
`rt --version`. Commands run with their byte code cached, as an installed package has it, and every file in the page cache.
`elapsed` are medians; `processor` is the least processor time of each, which says more on a machine that is busy.
`first` is a window of a file never looked at before, `again` one of the same file at another line, `known` one of a file whose
line index exists.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from call_overhead import cached_bytecode, medians
from rye.workspace import cache

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 8
_WORDS = ("alpha", "beta", "gamma", "delta", "value", "return", "total", "index", "price", "order")


def tree(root: Path, files: int) -> None:
    """Make source files in nested folders: 60 lines each; one of 1,000 holds `needle`, all hold `total`."""
    dice = random.Random(SEED)
    for number in range(files):
        folder = root / f"pkg{number % 40:02}" / f"mod{number // 40 % 25:02}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"    {' '.join(dice.choices(_WORDS, k=6))} = {at}" for at in range(60)]
        if number % 1_000 == 0:
            lines[30] = "    needle = 1"
        (folder / f"file{number}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def big(path: Path, lines: int) -> None:
    """Make a file of many lines of about 50 bytes."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            file.write(f"{number:>9} a line of a log that goes on and on here\n")


def forget_looks(root: Path) -> None:
    """Forget where the lines of `big.log` begin: each look is the first."""
    (root / ".ai/cache/tools/read/line_index" / f"{cache.name_of(b'big.log')}.points").unlink(missing_ok=True)


def commands(lines: int) -> dict[str, list[str]]:
    """Return the commands by name."""
    rt = [sys.executable, "-c", "from rye.cli.rt.main import command; command()"]
    rg = os.path.join(os.path.dirname(sys.executable), "rg")
    at = lines * 3 // 4
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "rt --version": [*rt, "--version"],
        "sed -n": ["sed", "-n", f"{at}p", "big.log"],
        "sed -n, a window": ["sed", "-n", f"{at - 50},{at + 49}p", "big.log"],
        "rt open, first": [*rt, "open", f"big.log:{at}"],
        "rt open, again": [*rt, "open", f"again.log:{at}"],
        "rt open, known": [*rt, "open", f"known.log:{at}"],
        "rg, rare": [rg, "-n", "needle", "."],
        "rt grep, rare": [*rt, "grep", "needle"],
        "rg, common": [rg, "-n", "total", "."],
        "rt grep, common": [*rt, "grep", "total"],
    }


def measured(root: Path, lines: int, rounds: int) -> dict[str, Any]:
    """Time the commands and judge what is to hold."""
    env = {**cached_bytecode(root.parent), "USER_SPACE": str(root.parent / "user")}

    def runner(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(
            command,
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    wanted = commands(lines)
    runner([*wanted["rt open, known"], "--ids"])()
    for command in wanted.values():
        runner(command)()
    processor: dict[str, list[float]] = {}

    def counted(name: str) -> Callable[[], object]:
        run = runner(wanted[name])

        def count() -> None:
            if name == "rt open, first":
                forget_looks(root)
            before = _processor_seconds()
            run()
            processor.setdefault(name, []).append(_processor_seconds() - before)

        return count

    found = medians({name: counted(name) for name in wanted}, rounds)
    return {"elapsed": _judged(found), "processor": _judged({name: min(taken) for name, taken in processor.items()})}


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _judged(found: dict[str, float]) -> dict[str, Any]:
    version = found["rt --version"]
    limits = {
        "rt open, first": found["sed -n"] + version,
        "rt open, again": found["sed -n"] + version,
        "rt open, known": found["sed -n"] + version,
        "rt grep, rare": 1.5 * found["rg, rare"] + version,
        "rt grep, common": 1.5 * found["rg, common"] + version,
    }
    return {
        "milliseconds": {name: round(seconds * 1_000, 1) for name, seconds in found.items()},
        "of the limit": {name: round(found[name] / limit, 2) for name, limit in limits.items()},
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=20_000, help="files of the tree (default 20,000)")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the large file (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "project")
        (root / ".git").mkdir(parents=True)
        tree(root, args.files)
        for name in ("big.log", "again.log", "known.log"):
            big(root / name, args.lines)
        # Not to be searched: the tree is what the greps are about.
        (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
        found = {"seed": SEED, "files": args.files, "lines": args.lines, **measured(root, args.lines, args.rounds)}
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
