"""Real histories of files, read from git repositories where they lie; nothing of them is kept."""

from __future__ import annotations

import os
import random  # noqa: TC003
import subprocess
from pathlib import Path

VERSIONS = 10
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_EDITOR": "true", "GIT_NO_LAZY_FETCH": "1"}


def git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    names = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *names, "-C", str(folder), *arguments], capture_output=True, check=check, env={**os.environ, **QUIET}
    )


def histories(repository: Path, rng: random.Random, most: int) -> list[tuple[str, list[str]]]:
    """Return names and versions of text files that changed often, the oldest version first."""
    log = git(
        repository, "log", "--first-parent", "--reverse", "--raw", "--no-abbrev", "--no-renames", "--format=", "-n", "4000"
    )
    blobs: dict[str, list[str]] = {}
    for line in log.stdout.decode("utf-8", "replace").splitlines():
        head, _, path = line.partition("\t")
        fields = head.split()
        if len(fields) == 5 and fields[4] in ("A", "M") and fields[1].startswith("100"):
            blobs.setdefault(path, []).append(fields[3])
    often = sorted(path for path, found in blobs.items() if len(set(found)) >= 6)
    out = []
    for path in rng.sample(often, min(len(often), 3 * most)):
        texts = [text for one in blobs[path][-VERSIONS:] if (text := read(repository, one)) is not None]
        if len(texts) >= 5 and len(texts) == len(blobs[path][-VERSIONS:]) and any(texts):
            out.append((os.path.basename(path), texts))
        if len(out) == most:
            break
    return out


def read(repository: Path, blob: str) -> str | None:
    data = git(repository, "cat-file", "blob", blob, check=False).stdout
    if not data or len(data) > 60_000 or b"\0" in data or b"\r" in data or not data.endswith(b"\n"):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
