"""What a call costs: warm in the process, cold from the shell, and `rye verify --all` in files per second.

    python benchmarks/call_overhead.py [--calls 400] [--commands 15] [--files 2000] [--json]

Each figure stands beside a bare way of doing the same in the same run: open and split for a read of 200 lines, an idle
`python3` for a command, plain SHA-256 over the same files for verifying. Medians; the ways take turns, so that a slow moment
hits all. Commands run with their byte code cached, as an installed package has it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rye
from rye.trust import signature
from rye.trust import verify as trust_verify

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = 200
RUNTIME = Path(rye.__file__).parents[1]


def medians(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each way, the ways taking turns."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


def warm(project: Path, calls: int) -> dict[str, Any]:
    """Compare a warm read through the corridor with the toolkit alone, and with bare open and split."""
    from rye.toolkit import view_lines

    file = project / "file.py"
    file.write_text("".join(f"line {number} of a file that is read\n" for number in range(LINES)), encoding="utf-8")
    parameters = {"file_path": "file.py"}

    def call() -> None:
        assert rye.execute("rye/file-system/read", parameters, project_path=project)["status"] == "success"

    def toolkit() -> None:
        assert view_lines(str(project), "file.py", lambda document: document.printed(0, document.count))

    def bare() -> None:
        with open(file, "rb") as stream:
            assert len(stream.read().split(b"\n")) == LINES + 1

    call()
    for _ in range(20):
        call()
    found = medians({"rye.execute": call, "toolkit alone": toolkit, "bare": bare}, calls)
    return {
        "milliseconds": {name: round(seconds * 1000, 4) for name, seconds in found.items()},
        "ratio_to_bare": round(found["rye.execute"] / found["bare"], 1),
        "added_ms_to_bare": round((found["rye.execute"] - found["bare"]) * 1000, 3),
        "added_ms_to_toolkit": round((found["rye.execute"] - found["toolkit alone"]) * 1000, 3),
    }


def cached_bytecode(folder: Path) -> dict[str, str]:
    """Return an environment in which a second run finds the first one's byte code."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPATH": str(RUNTIME), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def cold(project: Path, commands: int) -> dict[str, Any]:
    """Compare commands from the shell with an interpreter that does nothing."""
    env = cached_bytecode(project)
    entry = [sys.executable, "-c", "from rye.cli.main import command; command()"]
    words = {
        "python3 -c pass": [sys.executable, "-c", "pass"],
        "rye --help": [*entry, "--help"],
        "rye tools --help": [*entry, "tools", "--help"],
        "rye execute rye/file-system/read": [*entry, "execute", "rye/file-system/read", "file_path=file.py"],
    }

    def runner(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, cwd=project, env=env, stdout=subprocess.DEVNULL, check=True)

    for command in words.values():
        runner(command)()
    found = medians({name: runner(command) for name, command in words.items()}, commands)
    base = found["python3 -c pass"]
    return {
        "milliseconds": {name: round(seconds * 1000, 1) for name, seconds in found.items()},
        "ratio": {name: round(seconds / base, 2) for name, seconds in found.items() if seconds is not base},
    }


def verifying(root: Path, files: int) -> dict[str, Any]:
    """Verify a folder of signed knowledge entries, from Python and from the shell, beside SHA-256 over the same files."""
    key = signature.PrivateKey(os.urandom(32))
    keys = Path(os.environ["USER_SPACE"], ".ai/trusted_keys")
    keys.mkdir(parents=True, exist_ok=True)
    (keys / f"{key.public.fingerprint}.toml").write_bytes(trust_verify.render_key_document(key.public, "bench"))
    folder = root / ".ai/knowledge/bench"
    folder.mkdir(parents=True)
    form = signature.form_of("knowledge", ".md")
    for number in range(files):
        text = f"```yaml\nid: entry{number}\ntitle: Entry {number}\ncategory: bench\n```\n\n" + "A line of knowledge.\n" * 100
        signed = signature.sign(text.encode(), form, key, timestamp="2026-01-02T03:04:05Z")
        (folder / f"entry{number}.md").write_bytes(signed)

    def verify() -> None:
        rows = rye.verify(everything=True, space="project", project_path=root)
        assert len(rows) == files
        assert all(row["verdict"] == "valid" for row in rows)

    def command() -> None:
        words = [sys.executable, "-m", "rye", "verify", "--all", "--space", "project", "--json"]
        subprocess.run(words, cwd=root, env=cached_bytecode(root), stdout=subprocess.DEVNULL, check=True)

    def plain() -> None:
        for name in os.listdir(folder):
            with open(folder / name, "rb") as stream:
                hashlib.sha256(stream.read()).hexdigest()

    command()
    found = medians({"rye.verify": verify, "rye verify --all": command, "sha256": plain}, 3)
    return {"files": files, "files_per_second": {name: round(files / seconds) for name, seconds in found.items()}}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=400, help="warm calls (default 400)")
    parser.add_argument("--commands", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--files", type=int, default=2000, help="knowledge entries to verify (default 2000)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = str(Path(scratch, "user"))
        project = Path(scratch, "project")
        project.mkdir()
        found = {
            "warm": warm(project, args.calls),
            "cold": cold(project, args.commands),
            "verify": verifying(Path(scratch, "library"), args.files),
        }
    if args.json:
        print(json.dumps(found, indent=2))
        return 0
    for part, figures in found.items():
        print(part)
        for name, value in figures.items():
            print(f"  {name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
