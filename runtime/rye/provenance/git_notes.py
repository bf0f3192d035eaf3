"""Who wrote the lines that a commit holds, as a git note: written when a person asks for it, and never by itself.

A note is an Agent Trace record of the files that the commit changed, at the commit's own content, under `refs/notes/rye`. Git
keeps notes beside commits: no commit changes, `git log --notes=rye` shows them, and they travel where they are pushed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Final

from rye.errors import RyeError, UsageError
from rye.fs import names
from rye.journal import tree_changes
from rye.process.autorun import git_settings
from rye.provenance import blame, exports
from rye.provenance.blame import BlamedLine
from rye.workspace.workspace import Workspace

REF: Final = "refs/notes/rye"
_MAX_FILES: Final = 2_000
_MAX_BYTES: Final = 4 * 1024 * 1024
_COMMIT: Final = re.compile(rb"[0-9a-f]{40,64}")
# A repository's own settings name programs that git starts; none is needed here.
_QUIET: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false")


class GitError(RyeError):
    """Git refused what was asked of it."""


def write(ws: Workspace, revision: str, version: str) -> tuple[str, list[str]]:
    """Note on a commit who wrote which of its lines; a note that is there already is replaced.

    Args:
        ws: the workspace, the root of a repository.
        revision: as `git rev-parse` takes it.
        version: this program's own.

    Returns:
        The commit, and the files of which at least one line's writer is recorded. Without any no note is written.

    Raises:
        GitError: `git_failed`.
        UsageError: `unknown_commit`.
    """
    commit = _commit_of(ws, revision)
    files = _files(ws, commit)
    if files:
        record = exports.agent_trace(files, commit, version)
        _git(ws, "notes", f"--ref={REF}", "add", "-f", "-F", "-", commit, stdin=json.dumps(record, indent=1).encode())
    return commit, [path for path, _ in files]


def _commit_of(ws: Workspace, revision: str) -> str:
    try:
        found = _git(ws, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").strip()
    except GitError:
        found = b""
    if not _COMMIT.fullmatch(found):
        raise UsageError("unknown_commit", f"There is no commit {revision[:80]!r} here.", "`git log` shows the commits.")
    return found.decode()


def _files(ws: Workspace, commit: str) -> list[tuple[str, list[BlamedLine]]]:
    """Return the files that a commit changed with whose their lines are, as far as the record knows."""
    kind = ("--root", "-r", "-m", "-z", "--no-commit-id", "--name-only", "--diff-filter=d", "--relative")
    changed = _git(ws, "diff-tree", *kind, commit)
    out = []
    for name in dict.fromkeys(changed.split(b"\0")[:_MAX_FILES]):
        path = os.fsdecode(name)
        data = _git(ws, "cat-file", "blob", f"{commit}:./{path}") if path else b"\0"
        lines = blame.of_content(ws, names.show(name), data) if b"\0" not in data and len(data) <= _MAX_BYTES else None
        if lines is not None and any(one.entry is not None and one.entry.tool != tree_changes.SOMEONE_ELSE for one in lines):
            out.append((names.show(name), lines))
    return out


def _git(ws: Workspace, *arguments: str, stdin: bytes = b"") -> bytes:
    program = git_settings.git_program()
    if program is None:
        raise GitError("git_failed", "git is not installed.", "Install git.")
    result = subprocess.run([program, *_QUIET, "-C", ws.real, *arguments], input=stdin, capture_output=True, check=False)
    if result.returncode:
        error_text = result.stderr.decode("utf-8", "replace").strip()[:500] or f"exit code {result.returncode}"
        raise GitError("git_failed", f"git {arguments[0]} failed: {error_text}", "Mend that, then try again.")
    return result.stdout
