"""Replay real multi-file changes, each as one batch: byte-exact on all files, or refused whole.

    python benchmarks/replay_batches.py --repo PATH [--repo PATH ...] [--batches N] [--seed N] [--json]

A batch is one commit that changes at least two text files: modified files as line patches, new and deleted ones beside them. The
caller reads each file (its lines, its digest) and knows the change, nothing else. Each batch ends in one of four ways:

    exact          every file holds exactly the wanted bytes, new files are there, deleted ones gone
    refused        the batch was refused, and every file is as it was
    unexpressible  whole lines cannot carry the change (a final newline that comes or goes …); it was not sent
    silent         anything else

After each that landed the whole batch is undone, and every file must be as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import hunks
import pairs
import rye

_FILE_MODES = {"100644", "100755", "000000"}
_LOG = ("log", "--all", "--no-merges", "--raw", "-z", "--no-renames", "--diff-filter=AMD", "--no-abbrev", "--format=%H")
_NONE = "0" * 40
_MOST_FILES = 100
_BOM = b"\xef\xbb\xbf"


class File(NamedTuple):
    """One file of a commit; `before` or `after` is None where it is new or deleted."""

    path: str
    before: bytes | None
    after: bytes | None


class Commit(NamedTuple):
    """A real change of several files."""

    name: str
    files: list[File]


class Unsayable(Exception):
    """The change cannot be put into the terms of a batch."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; exit 1 when a batch went wrong silently, or was not undone to the byte."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repo", type=Path, action="append", required=True, help="may be given again")
    parser.add_argument("--batches", type=int, default=500, help="how many, over all repositories")
    parser.add_argument("--seed", type=int, default=20260221)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    verdicts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    files = changes = 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        os.environ["USER_SPACE"] = str(Path(folder) / "user")
        for number, commit in enumerate(_drawn(options), 1):
            verdict, reason, sent = _replayed(commit, Path(folder, "projects", str(number)))
            verdicts[verdict] += 1
            if verdict != "exact":
                reasons[f"{verdict}: {reason[:100]}"] += 1
            if verdict == "silent":
                print("SILENT", commit.name, reason, file=sys.stderr, flush=True)
            files += len(commit.files)
            changes += sent
            if number % 50 == 0:
                print(f"{number} {dict(verdicts)} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
    summary = {
        "seed": options.seed,
        "batches": sum(verdicts.values()),
        "files": files,
        "changes": changes,
        **dict(verdicts),
        "reasons": dict(reasons),
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(summary, indent=None if options.json else 2))
    return int(bool(verdicts["silent"]))


def _drawn(options: argparse.Namespace):
    """Yield the batches, evenly over the repositories."""
    left = options.batches
    for at, repo in enumerate(options.repo):
        wanted = left // (len(options.repo) - at)
        for commit in _commits(repo.resolve(), wanted, options.seed):
            left -= 1
            yield commit


def _commits(repo: Path, count: int, seed: int):
    found = sorted(_raw(repo).items())
    random.Random(seed).shuffle(found)
    with pairs._Blobs(repo) as blobs:
        for name, rows in found:
            if count == 0:
                return
            files = [_file(blobs, path, old, new) for path, old, new in rows]
            if 2 <= len(files) <= _MOST_FILES and None not in files:
                count -= 1
                yield Commit(f"{'/'.join(repo.parts[-3:-1])}@{name[:12]}", files)


def _raw(repo: Path) -> dict[str, list[tuple[str, str, str]]]:
    done = subprocess.run(["git", "-C", str(repo), *_LOG], capture_output=True, check=True)
    out: dict[str, list[tuple[str, str, str]]] = {}
    commit, odd = "", set()
    fields = iter(done.stdout.decode("utf-8", "surrogateescape").split("\0"))
    for field in fields:
        row = field.lstrip("\n")
        if row.startswith(":"):
            old_mode, new_mode, old, new, _ = row[1:].split(" ")
            path = next(fields)
            if {old_mode, new_mode} <= _FILE_MODES and old != new:
                out.setdefault(commit, []).append((path, old, new))
            else:
                odd.add(commit)
        elif row:
            commit = row
    return {name: rows for name, rows in out.items() if name not in odd}


def _file(blobs, path: str, old: str, new: str) -> File | None:
    before = None if old == _NONE else blobs.read(old)
    after = None if new == _NONE else blobs.read(new)
    text = all(data is None or pairs.is_text(data) for data in (before, after))
    return File(path, before, after) if text and (before, after) != (None, None) else None


def _replayed(commit: Commit, root: Path) -> tuple[str, str, int]:
    """Send one commit as a batch; return the verdict, its reason, and how many changes were sent."""
    (root / ".ai").mkdir(parents=True)
    # Files of earlier times may be folders now: each batch has a project of its own.
    for file in commit.files:
        if file.before is not None:
            (root / file.path).parent.mkdir(parents=True, exist_ok=True)
            (root / file.path).write_bytes(file.before)
    before = _tree(root)
    wanted = {file.path: file.after for file in commit.files if file.after is not None}
    try:
        request = _request(root, commit)
    except Unsayable as why:
        shutil.rmtree(root)
        return "unexpressible", str(why), 0
    sent = sum(len(one["changes"]) for one in request["files"])
    answer = rye.execute("rye/workspace/workspace_write_patch", request, project_path=root)
    found = _tree(root)
    if answer["status"] != "success":
        verdict, reason = ("refused" if found == before else "silent"), _why(answer)
    else:
        verdict, reason = ("exact" if found == wanted else "silent"), "wrong bytes"
        undone = rye.execute("rye/file-system/undo", {"batchId": answer["data"]["result"]["batchId"]}, project_path=root)
        if undone["status"] != "success" or _tree(root) != before:
            verdict, reason = "silent", f"not undone: {undone.get('error')}"
    shutil.rmtree(root)
    return verdict, reason, sent


def _why(answer: dict) -> str:
    errors = (answer["data"] or {}).get("errors")
    return ", ".join(sorted({one["code"] for one in errors})) if errors else f"{answer['code']}: {answer['error']}"


def _tree(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {name: path.read_bytes() for path in found if not (name := str(path.relative_to(root))).startswith(".ai/cache/")}


def _request(root: Path, commit: Commit) -> dict:
    request: dict = {"batchLabel": commit.name, "files": [], "createFiles": [], "deleteFiles": []}
    for file in commit.files:
        if file.before is None:
            try:
                request["createFiles"].append({"path": file.path, "content": file.after.decode()})
            except UnicodeDecodeError:
                raise Unsayable("a new file is not UTF-8") from None
        elif file.after is None:
            digest = sha256(file.before).hexdigest()
            request["deleteFiles"].append({"docPath": file.path.lower(), "originalSha256": digest})
        else:
            request["files"].append(_patch(root, file))
    return request


def _patch(root: Path, file: File) -> dict:
    """Build a file patch from what `workspace_read_file` shows, and the knowledge of the change."""
    doc_path = file.path.lower()
    shown: list[str] = []
    while True:
        parameters = {"docPath": doc_path, "offset": len(shown) + 1, "limit": 100_000}
        answer = rye.execute("rye/workspace/workspace_read_file", parameters, project_path=root)
        if answer["status"] != "success":
            raise Unsayable(f"cannot be read: {answer['code']}")
        told = answer["data"]
        rows = told["output"].split("\n")[1:]
        count = told["result"]["endLine"] - len(shown)
        shown += [row.partition(": ")[2] for row in rows[:count]]
        if not told["truncated"]:
            break
    old, new = _split(file.before), _split(file.after)
    if len(old) != len(shown):
        raise Unsayable("lines are counted otherwise")
    if any("[line shortened: " in line for line in shown):
        raise Unsayable("a line is too long to be shown")
    changes = []
    for hunk in hunks.hunks(old, new):
        lines = [_body(line) for line in new[hunk.new_start : hunk.new_end]]
        changes.append(_change(hunk, shown[hunk.old_start : hunk.old_end], lines))
    if not changes:
        raise Unsayable("no line changes")
    if _result(old, new, file) != file.after:
        raise Unsayable("line endings change")
    return {"docPath": doc_path, "originalSha256": told["result"]["sha256"], "changes": changes}


def _change(hunk: hunks.Hunk, expected: list[str], lines: list[str]) -> dict:
    if hunk.old_start == hunk.old_end:
        return {"operation": "insert", "afterLine": hunk.old_start, "newLines": lines}
    change = {"startLine": hunk.old_start + 1, "endLine": hunk.old_end, "expectedOriginalLines": expected}
    return {**change, "operation": "replace", "newLines": lines} if lines else {**change, "operation": "delete"}


def _result(old: list[bytes], new: list[bytes], file: File) -> bytes:
    """What whole lines can make of it: a change of a line's ending alone, or of the final newline, is none of theirs."""
    endings = {line[len(_raw_body(line)) :] for line in [*old, *new] if line.endswith(b"\n")}
    if len(endings) > 1:
        raise Unsayable("mixed line endings")
    # A line put into an empty file gets a newline.
    before, after = (bool(data) and not data.endswith(b"\n") for data in (file.before, file.after))
    if file.after and before != after:
        raise Unsayable("the final newline comes or goes")
    if file.before.startswith(_BOM) != file.after.startswith(_BOM):
        raise Unsayable("the byte order mark comes or goes")
    return (_BOM if file.after.startswith(_BOM) else b"") + b"".join(new)


def _split(data: bytes) -> list[bytes]:
    # The byte order mark is no part of the first line.
    lines = data.removeprefix(_BOM).split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _raw_body(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line


def _body(line: bytes) -> str:
    try:
        return _raw_body(line).decode()
    except UnicodeDecodeError:
        raise Unsayable("a new line is not UTF-8") from None


if __name__ == "__main__":
    sys.exit(main())
