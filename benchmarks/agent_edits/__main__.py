"""Price and check edits of coding agents, recorded and scripted, with these tools and others.

    python benchmarks/agent_edits PATH... --tokenizers DIR      price of recorded reads and edits, call by call and in order
    python benchmarks/agent_edits --install --tokenizers DIR    install both tokenizers there

PATH is a transcript of Claude Code, a folder with some, or a git clone whose branches `entire/…` hold some. Recordings are other
people's text: they are read in place, and nothing of them is stored or printed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report
import tokenizers as counting
from price import Tally, call_by_call, whole_sessions
from recordings import sessions


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
    found = list(sessions(options.paths))
    if options.sessions and len(found) > options.sessions:
        found = random.Random(options.seed).sample(found, options.sessions)
    silent = 0
    with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
        # The user's own state and journal are none of the benchmark's business.
        os.environ["USER_SPACE"] = folder
        for name, run in (("call by call", call_by_call), ("sessions in order", whole_sessions)):
            if options.only and not name.startswith(options.only):
                continue
            tally, started = Tally(), time.monotonic()
            run(found, tally)
            rows = report.rows(tally, tokenizers)
            print(json.dumps(rows) if options.json else report.table(name, rows), flush=True)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr)
            silent += tally.counts["silent"]
    tokenizers.close()
    return int(silent > 0)


def _options(argv: list[str] | None) -> argparse.Namespace:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rye-bench"
    parser = argparse.ArgumentParser(prog="agent_edits", description=__doc__.split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--tokenizers", type=Path, default=cache / "tokenizers", help="where the two tokenizers are")
    parser.add_argument("--install", action="store_true", help="install the tokenizers")
    parser.add_argument("--bytes", action="store_true", help="count bytes of UTF-8 in place of tokens")
    parser.add_argument("--sessions", type=int, help="a random choice of so many sessions")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--only", choices=["call", "sessions"], help="one of the two ways to count")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
