"""Make real before/after file pairs from successive source releases, and nasty variants of them.

    python benchmarks/corpus/build.py [--into DIR] [--per-step N] [--variants N]

Fetched when run and kept in DIR; nothing of it belongs in a repository. DIR/manifest.jsonl has one pair a
line: `{"name", "path", "kind", "before", "after"}`, the last two being files below DIR, and `kind` being
`release` or the name of a transposition in nasty.py.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import nasty
import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 2_000_000


class Change(NamedTuple):
    """One file that differs between two releases."""

    name: str
    path: str
    before: bytes
    after: bytes


def build(into: Path, per_step: int = 60, variants: int = 40) -> Path:
    """Fetch what is not there yet and write the manifest.

    Args:
        into: The folder to fill; what an earlier run fetched there is used again.
        per_step: The most pairs that one step from a release to the next contributes.
        variants: How many pairs of each nasty kind.

    Returns:
        The manifest's path.
    """
    for part in ("pypi", "debian", "files"):
        (into / part).mkdir(parents=True, exist_ok=True)
    changes = list(_changes(into, per_step))
    rows = [_row(into, change, "release") for change in changes]
    for number, variant in nasty.variants([(change.before, change.after) for change in changes], variants):
        change = changes[number]._replace(before=variant.before, after=variant.after)
        rows.append(_row(into, change, variant.kind))
    manifest = into / "manifest.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _note(f"{len(changes)} real pairs and {len(rows) - len(changes)} variants in {manifest}")
    return manifest


def default_folder() -> Path:
    """Return the folder that is used when none is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rye-bench" / "corpus"


def _changes(into: Path, per_step: int) -> Iterator[Change]:
    for releases in (sources.pypi_releases(into), sources.debian_releases(into)):
        for name, folders in releases:
            if isinstance(folders, str):
                _note(f"{name}: skipped, {folders}")
                continue
            found = 0
            for older, newer in itertools.pairwise(folders):
                step = list(_differing(older, newer))
                # Drawn by name, so that a second run draws the same.
                step.sort(key=lambda change: hashlib.sha256(os.fsencode(change.path)).digest())
                yield from step[:per_step]
                found += len(step[:per_step])
            _note(f"{name}: {found} pairs")


def _differing(older: Path, newer: Path) -> Iterator[Change]:
    before, after = _files(older), _files(newer)
    for path in sorted(before.keys() & after.keys()):
        if before[path].stat().st_size > _LARGEST or after[path].stat().st_size > _LARGEST:
            continue
        old, new = before[path].read_bytes(), after[path].read_bytes()
        if old != new and _is_text(old) and _is_text(new):
            yield Change(f"{older.name} to {newer.name}", path, old, new)


def _files(root: Path) -> dict[str, Path]:
    """Map relative paths to files, without the one folder of a release that bears its version."""
    only = list(root.iterdir())
    top = only[0] if len(only) == 1 and only[0].is_dir() else root
    files = (path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(top)): path for path in files}


def _is_text(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in data[:8000]


def _row(into: Path, change: Change, kind: str) -> dict[str, str]:
    sides = {"before": _kept(into, change.before), "after": _kept(into, change.after)}
    return {"name": change.name, "path": change.path, "kind": kind, **sides}


def _kept(into: Path, data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    path = into / "files" / digest[:2] / digest
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return str(path.relative_to(into))


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; exit 1 when not one pair could be had."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--into", type=Path, default=default_folder(), help="default: %(default)s")
    parser.add_argument("--per-step", type=int, default=60, help="the most pairs of two successive releases")
    parser.add_argument("--variants", type=int, default=40, help="pairs of each nasty kind")
    options = parser.parse_args(argv)
    manifest = build(options.into.absolute(), options.per_step, options.variants)
    print(manifest)
    return int(not manifest.stat().st_size)


if __name__ == "__main__":
    sys.exit(main())
