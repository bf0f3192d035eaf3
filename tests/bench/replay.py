"""Replay real changes through several editors and compare bytes.

    python tests/bench/replay.py --repo PATH [--repo PATH ...] [--pairs N] [--corpus DIR] [--seed N]

A change is the lines that differ between a file before and after. Every editor is driven by a careful caller that
knows the change and what the editor showed, and nothing else. Each attempt ends in one of four ways:

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
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pairs
from outcome import VERDICTS, Attempt, Pair, Unavailable, judge

if TYPE_CHECKING:
    from outcome import Editor

MODULES = {
    "rye": "rye_lines",
    "fs": "filesystem_server",
    "mte": "text_editor_server",
    "exact": "exact_string",
}


@dataclass
class Tally:
    """What one editor came to over all pairs."""

    name: str
    unavailable: str = ""
    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    reasons: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    wrote: int = 0
    read: int = 0
    read_plain: int = 0
    seconds: float = 0.0

    def add(self, pair: Pair, attempt: Attempt, verdict: str) -> None:
        """Count one attempt."""
        self.verdicts[verdict] += 1
        self.kinds[pair.kind][verdict] += 1
        self.wrote += attempt.wrote
        self.read += attempt.read
        self.read_plain += attempt.read_plain
        if verdict != "exact":
            self.reasons[f"{verdict}: {attempt.reason[:80]}"] += 1
            about = {"verdict": verdict, "kind": pair.kind, "pair": pair.name, "path": pair.path}
            self.failures.append({**about, "reason": attempt.reason})

    def summary(self) -> dict[str, Any]:
        """Return plain data for `--json`."""
        if self.unavailable:
            return {"editor": self.name, "unavailable": self.unavailable}
        return {
            "editor": self.name,
            "pairs": self.verdicts.total(),
            **{verdict: self.verdicts[verdict] for verdict in VERDICTS},
            "bytes_written": self.wrote,
            "bytes_read": self.read,
            "bytes_read_without_addresses": self.read_plain,
            "seconds": round(self.seconds, 1),
            "kinds": {kind: dict(counts) for kind, counts in sorted(self.kinds.items())},
            "reasons": dict(self.reasons.most_common(20)),
            "failures": self.failures,
        }


def main(argv: list[str] | None = None) -> int:
    """Run the command line; exit 1 when this project's own editor was silent or refused what can be said."""
    options = _options(argv)
    drawn = _drawn(options)
    _note(f"{len(drawn)} pairs, seed {options.seed}")
    tallies = [_replayed(name, drawn, options) for name in options.editors]
    if options.json:
        print(json.dumps([tally.summary() for tally in tallies], indent=2))
    else:
        print(_table(tallies))
        for title, rows in _kind_tables(tallies):
            print(f"\n{title}\n{rows}")
    own = next((tally for tally in tallies if tally.name == "rye"), None)
    return int(own is not None and bool(own.unavailable or own.verdicts["silent"] or own.verdicts["refused"]))


def _options(argv: list[str] | None) -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rye-bench"
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repo", type=Path, action="append", default=[], help="a git repository; may be repeated")
    parser.add_argument("--corpus", type=Path, help="a folder made by tests/corpus/build.py")
    parser.add_argument("--pairs", type=int, default=1000, help="how many from the repositories, and from the corpus")
    parser.add_argument("--seed", type=int, default=20260221)
    parser.add_argument("--editors", type=lambda text: text.split(","), default=list(MODULES), metavar="A,B,…")
    parser.add_argument("--tools", type=Path, default=cache / "tools", help="where the peers are installed")
    parser.add_argument("--keep", type=Path, help="a folder for the before/after/found bytes of every silent pair")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    if not options.repo and not options.corpus:
        parser.error("give --repo, --corpus, or both")
    if unknown := set(options.editors) - set(MODULES):
        parser.error(f"no such editor: {', '.join(sorted(unknown))}; there are {', '.join(MODULES)}")
    return options


def _drawn(options: argparse.Namespace) -> list[Pair]:
    drawn: list[Pair] = []
    for number, repo in enumerate(options.repo):
        share = options.pairs * (number + 1) // len(options.repo) - options.pairs * number // len(options.repo)
        drawn += pairs.from_history(repo.resolve(), share, options.seed)
    if options.corpus:
        drawn += pairs.from_corpus(options.corpus, options.pairs, options.seed)
    random.Random(options.seed).shuffle(drawn)
    return drawn


def _replayed(name: str, drawn: list[Pair], options: argparse.Namespace) -> Tally:
    tally = Tally(name)
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        root = Path(folder).resolve() / "project"
        (root / ".ai").mkdir(parents=True)
        # The user's own state and journal are none of the bench's business.
        os.environ.setdefault("USER_SPACE", str(Path(folder) / "user"))
        try:
            editor = importlib.import_module(f"editors.{MODULES[name]}").open_editor(root, options.tools.absolute())
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
        tally.add(pair, attempt, verdict)
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


def _table(tallies: list[Tally]) -> str:
    head = ["editor", "pairs", "exact", "refused", "silent", "unexpressible", "bytes written", "bytes read", "no IDs"]
    return _aligned([head, *(_row(tally) for tally in tallies)])


def _row(tally: Tally) -> list[str]:
    if tally.unavailable:
        return [tally.name, tally.unavailable]
    said = tally.verdicts.total() - tally.verdicts["unexpressible"]
    shares = [f"{100 * tally.verdicts[verdict] / max(1, said):.2f}%" for verdict in VERDICTS[:3]]
    sizes = [f"{size:,}" for size in (tally.wrote, tally.read, tally.read_plain)]
    return [tally.name, str(tally.verdicts.total()), *shares, str(tally.verdicts["unexpressible"]), *sizes]


def _kind_tables(tallies: list[Tally]) -> list[tuple[str, str]]:
    """One table of counts, when there is more than one kind of pair."""
    run = [tally for tally in tallies if not tally.unavailable]
    kinds = sorted({kind for tally in run for kind in tally.kinds})
    if len(kinds) < 2:
        return []
    rows = [["kind", *(tally.name for tally in run)]]
    rows += [[kind, *("/".join(str(t.kinds[kind][v]) for v in VERDICTS) for t in run)] for kind in kinds]
    return [("by kind, " + "/".join(VERDICTS), _aligned(rows))]


def _aligned(rows: list[list[str]]) -> str:
    full = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[column]) for row in full) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
