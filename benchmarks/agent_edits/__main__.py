"""Price and check edits of coding agents, recorded and scripted, with these tools and others.

    python benchmarks/agent_edits PATH... --tokenizers DIR      all of it, with the recordings at PATH
    python benchmarks/agent_edits --only tasks --peers DIR      226 generated tasks, also with the filesystem server, installed in DIR
    python benchmarks/agent_edits --install --tokenizers DIR    install both tokenizers there

PATH is a transcript of Claude Code, a folder with some, or a git clone whose branches `entire/…` hold some (of Codex, OpenCode and
Gemini CLI, too). Recordings are other people's text: they are read in place, and nothing of them is stored or printed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import edit_replay
import report
import task_run
import tasks
import tokenizers as counting
from price import Tally, call_by_call, said, whole_sessions
from recordings import Session, sessions


def main(argv: list[str] | None = None) -> int:
    """Run the command line; exit 1 when an edit was silent."""
    options = _options(argv)
    if options.install:
        counting.install(options.tokenizers)
        return 0
    try:
        tokenizers: Any = counting.Bytes() if options.bytes else counting.Tokenizers(options.tokenizers.absolute())
    except counting.Missing as err:
        print(f"agent_edits: {err}", file=sys.stderr)
        return 2
    silent = 0
    with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
        # The user's own state and journal are none of the benchmark's business.
        os.environ["USER_SPACE"] = folder
        for name, part in PARTS.items():
            if options.only in (None, name):
                started = time.monotonic()
                silent += part(options, tokenizers)
                print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    tokenizers.close()
    return int(silent > 0)


def _definitions(_: argparse.Namespace, tokenizers: Any) -> int:
    from rye.mcp_server.listing import OfferedTools, Selection

    listed = OfferedTools(os.getcwd(), Selection()).tools()
    words = [said({name: tool[name] for name in ("name", "description", "inputSchema")}) for tool in listed]
    counts = (sum(some) for some in zip(*tokenizers.count(words), strict=True))
    print(f"## Definitions\n\n{len(listed)} tools: {dict(zip(counting.NAMES, counts, strict=True))} tokens\n")
    return 0


def _tasks(options: argparse.Namespace, tokenizers: Any) -> int:
    every = list(tasks.tasks())
    outcomes = {"rye": task_run.with_rye(every), "exact": task_run.with_exact_strings(every)}
    if options.peers:
        found = task_run.with_peer(every, "filesystem_server", options.peers)
        outcomes |= {"fs": found} if found is not None else {}
    print(report.task_table(len(every), outcomes, tokenizers))
    return outcomes["rye"].verdicts["silent"]


def _recordings(options: argparse.Namespace, tokenizers: Any) -> int:
    found = list(_part(options, sessions(options.paths)))
    if options.sessions and len(found) > options.sessions:
        found = random.Random(options.seed).sample(found, options.sessions)
    silent = 0
    for name, run in (("call by call", call_by_call), ("sessions in order", whole_sessions)):
        if found and options.way in (None, name.partition(" ")[0]):
            tally = Tally()
            run(found, tally)
            rows = report.rows(tally, tokenizers)
            print(json.dumps(rows) if options.json else report.table(name, rows), flush=True)
            silent += tally.counts["silent"]
    return silent


def _edits(options: argparse.Namespace, tokenizers: Any) -> int:
    found = edit_replay.replayed(_part(options, edit_replay.every_session(options.paths)))
    if found:
        print(json.dumps(edit_replay.facts(found)) if options.json else edit_replay.table(found), flush=True)
    return sum(one.edits["silent"] for one in found.values())


def _part(options: argparse.Namespace, every: Iterator[Session]) -> Iterator[Session]:
    part, parts = map(int, options.part.split("/"))
    return itertools.islice(every, part - 1, None, parts)


PARTS = {"definitions": _definitions, "tasks": _tasks, "edits": _edits, "recordings": _recordings}


def _options(argv: list[str] | None) -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rye-bench"
    parser = argparse.ArgumentParser(prog="agent_edits", description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--tokenizers", type=Path, default=cache / "tokenizers", help="where the two tokenizers are")
    parser.add_argument("--install", action="store_true", help="install the tokenizers")
    parser.add_argument("--bytes", action="store_true", help="count bytes of UTF-8 in place of tokens")
    parser.add_argument("--sessions", type=int, help="a random choice of so many sessions")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", choices=list(PARTS), help="one part of it")
    parser.add_argument("--way", choices=["call", "sessions"], help="one of the two ways to price recordings")
    parser.add_argument("--part", default="1/1", help="2/8 is the second of eight parts of the sessions")
    parser.add_argument("--peers", type=Path, help="where the peers of the replay benchmark are installed")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
