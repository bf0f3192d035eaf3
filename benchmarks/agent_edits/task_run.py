"""Do the generated tasks with these tools and with others, by scripted callers, and compare every byte of the folder."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changes import find_words, lines_of
from price import Cost, put, said
from rye_caller import Call, RyeCaller
from tasks import Block, Insert, Operation, Replace, Task

from hunks import quoted
from outcome import Pair, Unavailable

_AROUND = 8
_CARRIED = ("move-block", "copy-block", "copy-within", "move-between")


@dataclass
class Outcome:
    """How the tasks ended with one set of tools."""

    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    cost: Cost = field(default_factory=Cost)
    carried: list[int] = field(default_factory=list)
    read: int = 0
    written: int = 0

    def add(self, task: Task, folder: Path, *, refused: bool, why: str, written: int) -> None:
        """Judge a task by the bytes of its folder."""
        exact = _files(folder) == {name: text.encode() for name, text in task.after.items()}
        unchanged = _files(folder) == {name: text.encode() for name, text in task.before.items()}
        verdict = "exact" if exact else "refused" if refused and unchanged else "silent"
        self.verdicts[verdict] += 1
        self.written += written
        if verdict != "exact":
            self.wrong[task.id] = why
        if task.family in _CARRIED:
            self.carried.append(written)


def with_rye(tasks: Iterable[Task]) -> Outcome:
    """Do the tasks with this project's tools."""
    outcome = Outcome()
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
            root = _laid_out(Path(folder), task)
            caller = RyeCaller(root)
            failed = _done(caller, task)
            _priced(outcome.cost, caller.calls)
            written = sum(len(said(call.arguments).encode()) for call in caller.calls if call.name == "edit_lines")
            outcome.add(task, root, refused=failed is not None, why=failed.text[:200] if failed else "", written=written)
    return outcome


def with_exact_strings(tasks: Iterable[Task]) -> Outcome:
    """Do the tasks with exact-string replacement and `cat -n`: each file is read, each change quotes text that stands once."""
    outcome = Outcome()
    for task in tasks:
        with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
            root = _laid_out(Path(folder), task)
            written = 0
            for name, before in task.before.items():
                after = task.after[name]
                if before == after:
                    continue
                outcome.cost.written.append(said({"file_path": name}))
                outcome.cost.read.append("\n".join(f"{at:6}\t{line}" for at, line in enumerate(lines_of(before), 1)))
                text = before
                every = next(
                    (one for one in task.operations if isinstance(one, Replace) and one.file == name and not one.title), None
                )
                if every is not None:
                    arguments = {
                        "file_path": name,
                        "old_string": every.old,
                        "new_string": every.new,
                        "replace_all": every.count > 1,
                    }
                    outcome.cost.written.append(said(arguments))
                    written += len(outcome.cost.written[-1].encode())
                    outcome.cost.answered.append(f"The file {name} has been edited.")
                    put(root, name, before.replace(every.old, every.new))
                    continue
                for old, new, _ in quoted(before, after):
                    outcome.cost.written.append(said({"file_path": name, "old_string": old, "new_string": new}))
                    outcome.cost.answered.append(f"The file {name} has been edited.")
                    written += len(outcome.cost.written[-1].encode())
                    text = text.replace(old, new, 1) if text.count(old) == 1 else text
                put(root, name, text)
            outcome.add(task, root, refused=False, why="", written=written)
    return outcome


def with_peer(tasks: Iterable[Task], module: str, tools: Path) -> Outcome | None:
    """Do the tasks that change one file with another editor of the replay benchmark; None where it is not installed."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="agent-edits-") as top:
        try:
            editor: Any = importlib.import_module(f"editors.{module}").open_editor(Path(top).resolve(), tools.absolute())
        except Unavailable as problem:
            print(f"{module}: {problem}", file=sys.stderr)
            return None
        try:
            for number, task in enumerate(tasks):
                root = _laid_out(Path(top).resolve() / f"{number:04}", task)
                written, why = 0, ""
                for name in (name for name in task.before if task.before[name] != task.after[name]):
                    pair = Pair(name, name, task.before[name].encode(), task.after[name].encode(), "task")
                    attempt = editor.attempt(root / name, pair)
                    written += attempt.wrote
                    outcome.read += attempt.read
                    why = why or ("" if attempt.accepted else attempt.reason)
                outcome.add(task, root, refused=bool(why), why=why, written=written)
        finally:
            editor.close()
    return outcome


def _laid_out(folder: Path, task: Task) -> Path:
    (folder / ".git").mkdir(parents=True)
    for name, text in task.before.items():
        put(folder, name, text)
    return folder


def _files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0] not in (".git", ".ai"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _priced(cost: Cost, calls: Iterable[Call]) -> None:
    for call in calls:
        cost.written.append(said(call.arguments))
        (cost.answered if call.name == "edit_lines" else cost.read).append(call.text)


def _done(caller: RyeCaller, task: Task) -> Call | None:
    """Do a task in one edit; return the call that failed, if one did."""
    put_in_words: dict[type, Callable[[RyeCaller, Any], dict[str, Any] | str]] = {
        Replace: _replace,
        Insert: _insert,
        Block: _block,
    }
    first = task.operations[0].file
    changes = [_of_file(one, put_in_words[type(one)](caller, one), first) for one in task.operations]
    for _ in range(2):
        made = caller.call("edit_lines", file_path=first, changes=changes)
        if not made.is_error:
            return None
        # What was never shown is not written over: it is read first, and the same call made again.
        if not any(isinstance(one, Block) and _read_whole(caller, one) for one in task.operations):
            return made
    return made


def _of_file(operation: Operation, change: dict[str, Any] | str, first: str) -> dict[str, Any] | str:
    if operation.file == first:
        return change
    return {"file_path": operation.file, **change} if isinstance(change, dict) else f"{operation.file}:{change}"


def _replace(caller: RyeCaller, one: Replace) -> dict[str, Any] | str:
    if not one.title:
        return find_words(one.old, one.new, count=one.count)
    first, last = _located(caller, one.file, one.title, one.end)
    return find_words(one.old, one.new, first if first == last else f"{first}-{last}", one.count)


def _insert(caller: RyeCaller, one: Insert) -> str:
    place = _located(caller, one.file, one.title or one.anchor, one.anchor)[1]
    side = f"+{place}" if one.before else f"{place}+"
    return f"{side}|" + "\n".join(one.lines)


def _block(caller: RyeCaller, one: Block) -> str:
    first, last = _located(caller, one.file, one.first, one.last)
    if one.verb == "delete":
        return f"{first}-{last} delete"
    if one.verb == "rewrite":
        return f"{first}-{last}|" + "\n".join((one.first, *one.lines, one.last))
    place = _located(caller, one.to, one.place, one.place)[0] if one.place else "end"
    return f"{first}-{last} {one.verb} after {'' if one.to == one.file else one.to + ':'}{place}"


def _located(caller: RyeCaller, file: str, first: str, last: str) -> tuple[str, str]:
    """Return the addresses of a line and of the next one with another text, by as little searching as it takes."""
    rows = _searched(caller, file, first, 0 if first == last else _AROUND)
    at = next((at for at, (_, text) in enumerate(rows) if text == first), None)
    if at is None:
        return "0", "0"
    end = next((address for address, text in rows[at:] if text == last), None)
    if end is None:
        end = next((address for address, text in _searched(caller, file, last, 0) if text == last), "0")
    return rows[at][0], end


def _searched(caller: RyeCaller, file: str, text: str, context: int) -> list[tuple[str, str]]:
    made = caller.call("grep", pattern=text, literal=True, path=file, **({"context": context} if context else {}))
    rows = (line.partition("\t") for line in made.text.split("\n"))
    # Behind the address of a line of context stands "-".
    return [(address.rstrip("-"), text) for address, tab, text in rows if tab and address[:1].isdigit()]


def _read_whole(caller: RyeCaller, one: Block) -> bool:
    """Read the lines of a block; return whether there was anything to read that was not shown."""
    texts = [text for _, text in caller.rows(one.file)]
    start = texts.index(one.first)
    stop = texts.index(one.last, start) + 1
    return caller.read(one.file, start + 1, stop - start, len(texts))
