"""Recorded edits of agents in runs of SWE-bench: SWE-agent (`*.traj`) and AutoCodeRover, from the repositories of their results.

The files before an edit are those of the task's repository at its base commit, where a clone of it is at hand, and what the run
itself made of them. Each edit of SWE-agent is held to the lines that its answer shows; where they differ, the file is given up.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bases import History, hunks_of, is_repository, patched
from recordings import Edit, Failure, Session, source_of

_EDIT = re.compile(r"edit (\d+):(\d+)\n(.*?)\n?end_of_edit", re.DOTALL)
_SHOWN = re.compile(r"^\[File: (.+?) \((\d+) lines total\)\]", re.MULTILINE)
_LINE = re.compile(r"^(\d+):(.*)$", re.MULTILINE)
_INDEX = re.compile(r"^diff --git a/(\S+) .*?^index ([0-9a-f]{7,40})\.\.", re.MULTILINE | re.DOTALL)


def sessions(path: Path, clones: list[Path]) -> Iterator[Session]:
    """Yield the runs of a repository of results; empty where it has none.

    Args:
        path: the repository of results.
        clones: folders of clones, each named `owner+name` or with that as its parent.
    """
    if not is_repository(path):
        return
    results, tasks = History(path), _Tasks(clones)
    names = results.files()
    for name in names:
        if name.endswith("/meta.json"):
            tasks.add(results.json(f"HEAD:{name}"))
    for name in names:
        if name.endswith(".traj"):
            yield _swe_agent(results.json(f"HEAD:{name}"), Path(name).stem, tasks, source_of(path))
    patches = [name for name in names if re.search(r"/extracted_patch_\d+\.diff$", name)]
    if patches:
        yield _auto_code_rover(results, patches, tasks, source_of(path))


class _Tasks:
    """The base commits of tasks, and the repositories that they are of."""

    def __init__(self, clones: list[Path]) -> None:
        self._commits: dict[str, tuple[str, str]] = {}
        self._clones = {_clone_name(clone).lower(): History(clone) for clone in clones}

    def add(self, meta: dict[str, Any]) -> None:
        """Learn a task from its `meta.json`."""
        info = meta.get("task_info")
        if isinstance(info, dict):
            self._commits[str(info["instance_id"])] = str(info["repo"]).lower(), str(info["base_commit"])

    def repository(self, task: str) -> History | None:
        """Return a clone of a task's repository, None where none is at hand."""
        repository = self._commits.get(task, (task.rpartition("-")[0].replace("__", "/"), ""))[0]
        return self._clones.get(repository.lower())

    def text(self, task: str, path: str) -> str | None:
        """Return a file at a task's base commit, None where that is not known."""
        clone, commit = self.repository(task), self._commits.get(task, ("", ""))[1]
        return clone.blob(f"{commit}:{path}") if clone is not None and commit else None


def _clone_name(clone: Path) -> str:
    return (clone.parent.name if clone.name in ("repo", ".git") else clone.name).replace("+", "/")


def _swe_agent(run: dict[str, Any], task: str, tasks: _Tasks, source: str) -> Session:
    session = Session(f"{source}, SWE-agent", task, f"/{task.rpartition('-')[0]}")
    files: dict[str, str | None] = {}
    blobs = dict(_INDEX.findall(str(run.get("info", {}).get("submission") or "")))
    clone = tasks.repository(task)

    def base(path: str) -> str | None:
        relative = path.removeprefix(session.root + "/")
        text = tasks.text(task, relative)
        # A task whose base commit is not recorded: the submission names the files that it began with.
        return clone.blob(blobs[relative]) if text is None and clone is not None and relative in blobs else text

    for step in run.get("trajectory", ()):
        action, answer = str(step.get("action", "")), str(step.get("observation", ""))
        shown = _SHOWN.search(answer)
        if action.startswith("create ") and shown:
            files[shown[1]] = "\n"
        found = _EDIT.match(action)
        if not found:
            continue
        path = str(_state(step).get("open_file", ""))
        given = {"file_path": path, "edit": action}
        if "File updated" not in answer or shown is None:
            why = "lint" if "syntax error" in answer else "other"
            session.events.append(Failure(path, given, answer, why))
            continue
        before = files[path] if path in files else base(path)
        after = None if before is None else _replaced(before, int(found[1]), int(found[2]), found[3])
        files[path] = after if after is not None and _agrees(after, answer, int(shown[2])) else None
        if files[path] is None or before is None or after is None:
            session.unusable += 1
        elif before != after:
            session.events.append(Edit(path, given, answer, before, after, []))
    return session


def _state(step: dict[str, Any]) -> dict[str, Any]:
    try:
        found = json.loads(str(step.get("state", "")))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _replaced(text: str, first: int, last: int, new: str) -> str:
    lines = text.split("\n")
    lines[first - 1 : last] = new.split("\n") if new else []
    return "\n".join(lines)


def _agrees(text: str, answer: str, total: int) -> bool:
    """Tell whether a text has the lines that an answer shows, and as many."""
    lines = text.split("\n")
    rows = _LINE.findall(answer[answer.index("[File: ") :])
    shown = {int(number): line for number, line in rows}
    return abs(len(lines) - total) <= 1 and all(at <= len(lines) and lines[at - 1] == line for at, line in shown.items())


def _auto_code_rover(results: History, names: list[str], tasks: _Tasks, source: str) -> Session:
    session, seen = Session(f"{source}, AutoCodeRover", "patches"), Counter[tuple[str, str]]()
    for name in names:
        task = re.sub(r"_\d{4}-\d\d-\d\d_.*", "", name.split("/")[-2])
        diff = results.blob(f"HEAD:{name}") or ""
        seen[task, diff] += 1
        if seen[task, diff] > 1:
            continue
        for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE)[1:]:
            path = part.split(" ", 1)[0].removeprefix("a/")
            before = tasks.text(task, path)
            after = None if before is None else patched(before, hunks_of(part))
            if before is None or after is None:
                session.unusable += 1
            elif before != after:
                session.events.append(Edit(path, {"patch": part}, "", before, after, []))
    return session
