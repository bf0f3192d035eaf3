"""The record as other programs read it: a patch in git's form, and who wrote which lines as Agent Trace 0.1.

A patch is one that `git apply` takes: texts, binary files, modes, links and renames. Git makes it: both states are put into a
repository of their own, which holds nothing else and is gone afterwards. No file of the project is read, and neither settings
nor attributes of the user or of the project have a say.

Agent Trace: https://agent-trace.dev, version 0.1.0 (files, conversations, ranges with 1-based line numbers, contributors).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal

from rye.errors import RyeError
from rye.fs import names
from rye.journal import tree_changes
from rye.process.autorun.git_settings import git_program
from rye.provenance.blame import BlamedLine
from rye.provenance.points import FileDiff, Side

TRACE_VERSION: Final = "0.1.0"


def agent_trace(files: Iterable[tuple[str, Sequence[BlamedLine]]], revision: str, version: str) -> dict[str, Any]:
    """Return an Agent Trace record that says who wrote which lines of some files.

    Args:
        files: path and blamed lines.
        revision: the commit that the files belong to; empty without one.
        version: this program's own.
    """
    record: dict[str, Any] = {
        "version": TRACE_VERSION,
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tool": {"name": "rye", "version": version},
        "files": [{"path": path, "conversations": list(_conversations(lines))} for path, lines in files],
    }
    return record | ({"vcs": {"type": "git", "revision": revision}} if revision else {})


def _conversations(lines: Sequence[BlamedLine]) -> Iterator[dict[str, Any]]:
    ranges: dict[tuple[str, str], list[dict[str, int]]] = {}
    numbered = groupby(enumerate(lines, 1), key=lambda pair: _contributor(pair[1]))
    for contributor, group in numbered:
        found = [number for number, _ in group]
        ranges.setdefault(contributor, []).append({"start_line": found[0], "end_line": found[-1]})
    for (kind, actor), spans in ranges.items():
        about = {"metadata": {"actor": actor}} if actor else {}
        yield {"contributor": {"type": kind}, "ranges": spans, **about}


def _contributor(line: BlamedLine) -> tuple[str, str]:
    """Return whose a line is: `ai` for a named client, `unknown` for anyone else."""
    entry = line.entry
    if entry is None or entry.tool == tree_changes.SOMEONE_ELSE or not entry.actor:
        return "unknown", ""
    return "ai", entry.actor


_SECONDS: Final = 120.0
# Names that only other systems take for git's own.
_SETTINGS: Final = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "-c", "core.quotePath=true")
_HOW: Final = ("-r", "-p", "-M", "--binary", "--no-color", "--no-ext-diff", "--no-textconv")


def patch(changes: Iterable[FileDiff], root: str) -> bytes:
    """Return a patch of what is known of some changes. Git has no folders, pipes and devices: they are left out.

    Args:
        changes: of different paths.
        root: the project, in which git is not looked for.

    Raises:
        RyeError: `no_git`, or it fails.
    """
    known = [one for one in changes if one.is_known and b".git" not in names.parse(one.path).lower().split(b"/")]
    if not any(_is_of_git(one.before) or _is_of_git(one.after) for one in known):
        return b""
    program = git_program(root)
    if program is None:
        raise RyeError("no_git", "A patch is made by git, and there is none on this machine.", "Install git.")
    with tempfile.TemporaryDirectory(prefix="rye-patch-") as folder:
        for name in ("objects", "refs"):
            os.mkdir(f"{folder}/{name}")
        with open(f"{folder}/HEAD", "w", encoding="ascii") as file:
            file.write("ref: refs/heads/none\n")
        _git(program, folder, ["fast-import", "--quiet"], b"".join([*_commit("before", known), *_commit("after", known)]))
        return _git(program, folder, ["diff-tree", *_HOW, "refs/heads/before", "refs/heads/after"])


def _git(program: str, folder: str, arguments: Sequence[str], data: bytes = b"") -> bytes:
    alone = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    environment = {"GIT_DIR": folder, **alone, "LC_ALL": "C", "HOME": folder}
    try:
        command = [program, *_SETTINGS, *arguments]
        done = subprocess.run(
            command, input=data, capture_output=True, cwd=folder, env=environment, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as err:
        said = getattr(err, "stderr", b"") or str(err).encode()
        raise RyeError("no_git", f"Git could not make the patch: {said.decode(errors='replace')[:500].strip()}.") from None
    return done.stdout


def _is_of_git(side: Side | None) -> bool:
    return side is not None and side.kind in ("file", "link")


def _commit(when: Literal["before", "after"], changes: Sequence[FileDiff]) -> Iterator[bytes]:
    """Yield the state of all paths before or after, as `git fast-import` takes it."""
    yield f"commit refs/heads/{when}\ncommitter rye <> 0 +0000\ndata 0\n".encode()
    for one in changes:
        side, other = (one.before, one.after) if when == "before" else (one.after, one.before)
        if side is not None and _is_of_git(side):
            # A mode that is not recorded is that of the other side.
            known = side.mode if side.mode is not None or other is None else other.mode
            mode = b"120000" if side.kind == "link" else b"100755" if (known or 0) & 0o100 else b"100644"
            data = side.data or b""
            yield b"M %s inline %s\ndata %d\n%s\n" % (mode, _quoted(names.parse(one.path)), len(data), data)


def _quoted(path: bytes) -> bytes:
    """Return a path in quotes, every byte that is no letter or digit by its number."""
    return b'"%s"' % b"".join(bytes([one]) if chr(one).isalnum() and one < 128 else b"\\%03o" % one for one in path)
