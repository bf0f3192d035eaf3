"""Replay real changes through several editors and compare bytes.

    python benchmarks/replay.py --repo PATH [--repo PATH ...] [--pairs N] [--variants N] [--seed N]

A change is the lines that differ between a file before and after. Every editor is driven by a careful caller
that knows the change and what the editor showed, and nothing else. Each attempt ends in one of four ways:

    exact          the file holds exactly the wanted bytes
    refused        the editor said no and left the file alone
    silent         the editor said yes, or said no after writing, and the bytes are wrong
    unexpressible  the editor's terms cannot carry the change, and the file was left alone
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pairs
from outcome import VERDICTS, Attempt, Pair, Tally, Unavailable, common_pairs, judge, kind_tables, table

if TYPE_CHECKING:
    from outcome import Editor

MODULES = {"rye": "rye_lines", "short": "rye_lines", "fs": "filesystem_server", "exact": "exact_string"}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; exit 1 when this project's own editor was silent or refused what can be said."""
    options = _options(argv)
    drawn = _drawn(options)
    _note(f"{len(drawn)} pairs, seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        # The user's own state and journal are none of the bench's business.
        os.environ["USER_SPACE"] = str(Path(folder) / "user")
        tallies = [_replayed(name, drawn, options, Path(folder).resolve() / name) for name in options.editors]
    if options.json:
        print(json.dumps([tally.summary(common_pairs(tallies)) for tally in tallies], indent=2))
    else:
        print(table(tallies))
        for title, rows in kind_tables(tallies):
            print(f"\n{title}\n{rows}")
    own = [tally for tally in tallies if tally.name in ("rye", "short")]
    return int(any(one.unavailable or one.verdicts["silent"] or one.verdicts["refused"] for one in own))


def _options(argv: list[str] | None) -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rye-bench"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repo", type=Path, action="append", required=True, help="may be given again")
    parser.add_argument("--pairs", type=int, default=1000, help="how many of history")
    parser.add_argument("--variants", type=int, default=0, help="so many of each kind of `nasty`, made of them, in their place")
    parser.add_argument("--seed", type=int, default=20260221)
    parser.add_argument("--editors", type=_names, default=list(MODULES), help="out of " + ",".join(MODULES))
    parser.add_argument("--tools", type=Path, default=cache / "tools", help="where the peers are installed")
    parser.add_argument("--keep", type=Path, help="where the bytes of every silent pair are put")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(MODULES):
        raise argparse.ArgumentTypeError(f"no such editor: {', '.join(sorted(unknown))}")
    return names


def _drawn(options: argparse.Namespace) -> list[Pair]:
    drawn: list[Pair] = []
    for left, repo in zip(range(len(options.repo), 0, -1), options.repo, strict=True):
        drawn += pairs.from_history(repo.resolve(), (options.pairs - len(drawn)) // left, options.seed)
    if options.variants:
        drawn = pairs.harder(drawn, options.variants)
    random.Random(options.seed).shuffle(drawn)
    return drawn


def _replayed(name: str, drawn: list[Pair], options: argparse.Namespace, root: Path) -> Tally:
    tally = Tally(name)
    # What makes a folder a project.
    (root / ".ai").mkdir(parents=True)
    module = importlib.import_module(f"editors.{MODULES[name]}")
    try:
        editor = module.open_editor(root, options.tools.absolute(), **({"form": "short"} if name == "short" else {}))
    except Unavailable as problem:
        tally.unavailable = str(problem)
        _note(f"{name}: {problem}")
        return tally
    try:
        _replay_all(editor, tally, drawn, root, options.keep)
    finally:
        editor.close()
    return tally


def _replay_all(editor: Editor, tally: Tally, drawn: list[Pair], root: Path, keep: Path | None) -> None:
    started = time.monotonic()
    for number, pair in enumerate(drawn, 1):
        target = root / f"{number:06}" / Path(pair.path).name
        target.parent.mkdir()
        target.write_bytes(pair.before)
        attempt = _attempt(editor, target, pair)
        found = target.read_bytes() if target.exists() else None
        verdict = judge(pair, attempt, found)
        tally.add(number, pair, attempt, verdict)
        if keep and verdict == "silent":
            _keep(keep / tally.name / f"{number:06}-{target.name}", pair, attempt, found)
        target.unlink(missing_ok=True)
        tally.seconds = time.monotonic() - started
        if number % 50 == 0 or number == len(drawn):
            counts = " ".join(f"{verdict} {tally.verdicts[verdict]}" for verdict in VERDICTS)
            _note(f"{tally.name}: {number}/{len(drawn)} {counts} ({tally.seconds:.0f} s)")


def _attempt(editor: Editor, target: Path, pair: Pair) -> Attempt:
    try:
        return editor.attempt(target, pair)
    except Exception as crash:
        # A crash is a refusal in bad manners; the bytes decide the rest.
        return Attempt(False, f"crashed: {type(crash).__name__}: {crash}")


def _keep(folder: Path, pair: Pair, attempt: Attempt, found: bytes | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "before").write_bytes(pair.before)
    (folder / "after").write_bytes(pair.after)
    (folder / "found").write_bytes(found or b"")
    (folder / "about.txt").write_text(f"{pair.name}\n{pair.path}\n{pair.kind}\n{attempt.reason}\n", "utf-8")


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
