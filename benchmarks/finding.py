"""What grep, glob and ls cost on a tree of real files, beside bare ripgrep, pathlib and `ls -U` in the same run.

    python benchmarks/finding.py [--files 20000] [--runs 9] [--json] [FOLDER ...]

Copies so many text files from the folders (the Python installation if none is given; clones of repositories are better company)
into a fresh project, with their layout. All calls go through the whole corridor of one process; times are medians in
milliseconds, the rivals' turns alternate with ours. Bare ripgrep has the same ignore rules; it is timed writing every
match (`rg -n`), and only counting (`rg -c`), into a pipe that is read to its end. Path.rglob is timed alone, and answering the
same question (regular files, relative, sorted). At last 200 files that no call has shown are searched for one of their own
lines, and that line is edited by the ID that the match brought: exact means that all other bytes stayed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from random import Random

SUFFIXES = {
    ".py",
    ".pyi",
    ".c",
    ".h",
    ".js",
    ".ts",
    ".go",
    ".rs",
    ".md",
    ".rst",
    ".txt",
    ".toml",
    ".json",
    ".yaml",
    ".yml",
    ".html",
    ".css",
}
RARE, MEDIUM, COMMON = r"zlib\.crc32", r"raise NotImplementedError", "self"
RULES = [
    "--no-config",
    "--no-require-git",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    "--no-ignore-parent",
]


def main() -> None:
    """Build the tree, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        os.environ["USER_SPACE"] = f"{base}/user"
        project = Path(base, "project")
        (project / ".git").mkdir(parents=True)
        folders = args.folders or [Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))]
        count = plant(project, folders, args.files)
        print(f"{count:,} files, {sum(f.stat().st_size for f in project.rglob('*') if f.is_file()):,} bytes", file=sys.stderr)
        figures = {
            "files": count,
            **searches(project, args.runs),
            **names(project, args.runs),
            **listing(Path(base), args.runs),
            "search and edit: exact of 200": search_and_edit(project, args.seed),
        }
    if args.json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:<46} {value:>12,.1f}" if isinstance(value, float) else f"{name:<46} {value:>12,}")


def plant(project: Path, folders: list[Path], most: int) -> int:
    """Copy up to `most` text files; no folder of the ignore list, so that both sides see all of them."""
    from rye.workspace.workspace import IGNORED_DIRECTORIES

    count = 0
    for number, folder in enumerate(folders):
        for here, inner, found in os.walk(folder):
            inner[:] = sorted(name for name in inner if name not in IGNORED_DIRECTORIES and name[:1] != ".")
            for name in sorted(found):
                source = Path(here, name)
                if (
                    source.suffix not in SUFFIXES
                    or source.is_symlink()
                    or name.startswith(".")
                    or source.stat().st_size > 1_000_000
                ):
                    continue
                target = project / f"source_{number}" / source.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                count += 1
                if count == most:
                    return count
    return count


def call(tool: str, project: Path, **parameters: object) -> dict:
    """Return a tool's result."""
    import rye

    answer = rye.execute(f"rye/file-system/{tool}", parameters, project_path=os.fspath(project))
    assert answer["status"] == "success", answer
    return answer["data"]


def timed(*doings) -> list[float]:
    """Return the milliseconds that each of some actions takes, one after the other."""
    out = []
    for do in doings:
        started = time.perf_counter()
        do()
        out.append((time.perf_counter() - started) * 1000)
    return out


def medians(runs: int, *doings) -> list[float]:
    """Run some actions in turn, again and again; return the median of each."""
    rounds = [timed(*doings) for _ in range(runs)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def rg(project: Path, *words: str) -> bytes:
    """Run the same ripgrep bare, with the same rules about files."""
    from rye.filesearch.ripgrep import locate
    from rye.workspace.workspace import IGNORED_DIRECTORIES

    left_out = [f"--glob=!{name}/" for name in IGNORED_DIRECTORIES] if "--glob=*.py" not in words else []
    command = [locate(os.stat("/")), *RULES, *left_out, *words]
    return subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False).stdout


def searches(project: Path, runs: int) -> dict[str, float]:
    """Return the figures of grep, cold and warm, and whether anything was missed."""
    out: dict[str, float] = {}
    time.sleep(0.2)
    rg(project, "-c", "-e", RARE)
    for name, pattern in (("rare", RARE), ("common", COMMON)):
        cold = timed(lambda pattern=pattern: call("grep", project, pattern=pattern))[0]
        data = call("grep", project, pattern=pattern)
        lines = sum((project / path).read_bytes().count(b"\n") for path in {match["file"] for match in data["matches"]})
        warm, every, counted = medians(
            runs,
            lambda pattern=pattern: call("grep", project, pattern=pattern),
            lambda pattern=pattern: rg(project, "-n", "-e", pattern),
            lambda pattern=pattern: rg(project, "-c", "-e", pattern),
        )
        out |= {
            f"grep {name}: matches": data["total"],
            f"grep {name}: warm, ms": warm,
            f"grep {name}: rg -n, ms": every,
            f"grep {name}: rg -c, ms": counted,
            f"grep {name}: allowed beside rg -n (1.3x + 20), ms": 1.3 * every + 20,
            f"grep {name}: allowed beside rg -c (1.3x + 20), ms": 1.3 * counted + 20,
            f"grep {name}: cold, ms": cold,
            f"grep {name}: lines indexed": lines,
            f"grep {name}: cold cost a 1,000 lines, ms": (cold - warm) / max(lines, 1) * 1000,
        }
    return out | {
        f"hits of rg not found, {name}": missed(project, pattern) for name, pattern in (("rare", RARE), ("medium", MEDIUM))
    }


def missed(project: Path, pattern: str) -> int:
    """Count the (file, line) that ripgrep finds and no page of grep shows."""
    raw = rg(project, "-n", "--null", "-e", pattern).split(b"\n")
    wanted = {(os.fsdecode(line.split(b"\0")[0]), int(line.split(b"\0")[1].split(b":")[0])) for line in raw if line}
    found, offset = set(), 1
    while offset:
        data = call("grep", project, pattern=pattern, offset=offset, limit=1_000)
        found |= {(match["file"], match["line"]) for match in data["matches"]}
        offset = data.get("next_offset")
    assert wanted, pattern
    return len(wanted ^ found)


def names(project: Path, runs: int) -> dict[str, float]:
    """Return the figures of glob."""
    ours, bare, pathlib, same = medians(
        runs,
        lambda: call("glob", project, pattern="**/*.py"),
        lambda: rg(project, "--files", "--glob=*.py"),
        lambda: list(project.rglob("*.py")),
        lambda: sorted(os.fspath(path.relative_to(project)) for path in project.rglob("*.py") if path.is_file()),
    )
    assert call("glob", project, pattern="**/*.py")["total"] == len(list(project.rglob("*.py")))
    return {
        "glob **/*.py: ms": ours,
        "glob: rg --files -g *.py, ms": bare,
        "glob: times rg": ours / bare,
        "glob: Path.rglob alone, ms": pathlib,
        "glob: Path.rglob, the same answer, ms": same,
        "glob: times faster than Path.rglob alone": pathlib / ours,
        "glob: times faster than the same answer": same / ours,
        "glob: rg itself, times faster than Path.rglob alone": pathlib / bare,
    }


def search_and_edit(project: Path, seed: int, wanted: int = 200) -> int:
    """Find a line in each of some files never read, edit it by the returned ID; count the files that are then exact."""
    source = Random(seed)
    exact = 0
    files = sorted(path for path in project.rglob("*.py") if b"\0" not in path.read_bytes())
    for path in source.sample(files, 4 * wanted):
        before = path.read_bytes()
        lines = before.split(b"\n")
        usual = [at for at, line in enumerate(lines) if 8 < len(line.strip()) < 200 and line.isascii() and b"\r" not in line]
        if not usual or wanted == 0:
            continue
        wanted -= 1
        at = source.choice(usual)
        name = os.fspath(path.relative_to(project))
        data = call("grep", project, pattern=lines[at].decode(), literal=True, path=name, limit=1_000)
        found = next(match["line_id"] for match in data["matches"] if match["line"] == at + 1)
        call("edit_lines", project, file_path=name, changes=[{"line_id": found, "new_content": "edited = True"}])
        lines[at] = b"edited = True"
        exact += path.read_bytes() == b"\n".join(lines)
    assert wanted == 0
    return exact


def listing(base: Path, runs: int) -> dict[str, float]:
    """Return the figures of ls on 10,000 entries."""
    project = base / "wide"
    (project / ".git").mkdir(parents=True)
    for number in range(10_000):
        (project / f"entry {number}").touch()
    ours, bare = medians(
        runs,
        lambda: call("ls", project),
        lambda: subprocess.run(["ls", "-U", "."], cwd=project, stdout=subprocess.PIPE, check=True),
    )
    return {"ls of 10,000 entries: ms": ours, "ls -U: ms": bare}


if __name__ == "__main__":
    main()
