"""Files that another process exchanges or replaces without pause: no read or write escapes, no evil twin runs, no version is lost.

Each race has its control: the same done in the naive way, which loses it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

import rye
from rye.errors import WorkspaceError
from rye.executor import admission
from rye.workspace.workspace import Workspace
from support.harness import can_exchange, exchanging, fingerprint, times
from support.opening import BOTH_WAYS, open_by
from support.signed_tools import STRANGER, put_tool, signed, tool_text

READ, WRITE, EDIT = (f"rye/file-system/{name}" for name in ("read", "write", "edit_lines"))


@pytest.fixture(autouse=True)
def _exchange_works(tmp_path):
    if not can_exchange(tmp_path):
        pytest.skip("this file system cannot exchange two names")


def race(one, other, attempt, attempts, *, seen="") -> Counter:
    """Call `attempt` with a number while a process exchanges two names; count what it returns.

    Where something must be `seen`, go on (up to ten times as long) until it was.
    """
    tally, number = Counter(), 0
    with exchanging(one, other) as swaps:
        while number < attempts or (seen and not tally[seen] and number < 10 * attempts):
            tally[attempt(number)] += 1
            number += 1
    assert swaps[0] > 100, "the other process did not get to work"
    print(dict(tally))
    return tally


# --- a folder and a link that leads out ---

SECRET, INSIDE = b"THE SECRET\n", b"inside\n"
# What a refusal may be while names change under the call.
EXPECTED = {"path_outside", "file_not_found", "symlink_loop", "conflict", "not_a_directory", "is_directory", None}
PATHS = ("dir/f", "link/f", "dir/sub/f", "dir/../dir/f", "dir/sub/../f", "absolute/f", "absolute/sub/f")


@pytest.fixture
def arena(tmp_path):
    """A project whose `dir` is exchanged with `link`, which leads out; both names hold `f`."""
    project, outside = tmp_path / "race/project", tmp_path / "race/outside"
    for folder, content in ((project / "dir", INSIDE), (outside, SECRET)):
        for name in ("f", "sub/f"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    (project / "link").symlink_to("../outside")
    # An absolute link that stays inside, through the folder that is exchanged.
    (project / "absolute").symlink_to(project / "dir")
    return project


def verdict(seen: bytes | None) -> str:
    return "refused" if seen is None else "escaped" if SECRET.strip() in seen else "inside"


def expected(err: WorkspaceError) -> None:
    if err.code not in EXPECTED:
        raise err


def read_by_workspace(project, path, _number):
    try:
        with Workspace(str(project)) as ws, ws.file(path) as file:
            return file.read()
    except WorkspaceError as err:
        return expected(err)


def read_by_tool(project, path, _number):
    response = rye.execute(READ, {"file_path": path}, project_path=project)
    assert response.get("code") in EXPECTED, response
    seen = str(response).encode()
    return seen if response["status"] == "success" or SECRET.strip() in seen else None


def read_naively(project, path, _number):
    """Resolve, compare, then open."""
    root = os.path.realpath(project)
    try:
        if os.path.realpath(f"{root}/{path}").startswith(f"{root}/"):
            return Path(f"{root}/{path}").read_bytes()
    except OSError:
        pass
    return None


def write_by_tool(project, path, number):
    target = f"{os.path.dirname(path)}/w{number}{'/deep' if number % 2 else ''}"
    response = rye.execute(WRITE, {"file_path": target, "content": "x\n"}, project_path=project)
    assert response.get("code") in EXPECTED, response
    return INSIDE if response["status"] == "success" else None


def write_naively(project, path, number):
    target = f"{os.path.realpath(project)}/{os.path.dirname(path)}/w{number}"
    try:
        if os.path.realpath(target).startswith(f"{os.path.realpath(project)}/"):
            return Path(target).write_bytes(INSIDE) and INSIDE
    except OSError:
        pass
    return None


def at_the_folder(project, way):
    """Return an attempt of a way: what it saw, or that what it wrote landed outside, from where it is taken away."""

    def attempt(number):
        seen = way(project, PATHS[number % len(PATHS)], number)
        landed = list((project.parent / "outside").rglob(f"w{number}*"))
        for path in landed:
            path.unlink()
        return "escaped" if landed else verdict(seen)

    return attempt


@pytest.mark.parametrize("available", BOTH_WAYS)
@pytest.mark.parametrize(("way", "attempts"), [(read_by_workspace, 3_000), (read_by_tool, 150), (write_by_tool, 200)])
def test_no_read_or_write_escapes(arena, monkeypatch, available, way, attempts):
    open_by(monkeypatch, available)
    before = fingerprint(arena.parent / "outside")
    tally = race(arena / "dir", arena / "link", at_the_folder(arena, way), times(attempts))
    assert fingerprint(arena.parent / "outside") == before
    assert tally["escaped"] == 0
    assert tally["inside"] > 0


@pytest.mark.parametrize("naive", [read_naively, write_naively])
def test_control_the_naive_way_escapes(arena, naive):
    assert race(arena / "dir", arena / "link", at_the_folder(arena, naive), 3_000, seen="escaped")["escaped"]


# --- a tool and its evil twin ---

GOOD, EVIL = (f'return {{"success": True, "output": "{word}"}}' for word in ("GOOD", "EVIL"))
REFUSALS = {"unsigned", "tampered", "bad_signature", "untrusted_key", "item_not_found"}
AFTER = b'\ndef execute(params, project_path):\n    return {"success": True, "output": "EVIL"}\n'
# Each as near to the good one as can be.
TWINS = {
    "unsigned": lambda good: tool_text("my/tool", EVIL),
    "under the good signature": lambda good: good.split(b"\n", 1)[0] + b"\n" + tool_text("my/tool", EVIL),
    "one byte changed": lambda good: good.replace(b"GOOD", b"EVIL"),
    "good, with a line after": lambda good: good + AFTER,
    "signed by a stranger": lambda good: signed(tool_text("my/tool", EVIL), key=STRANGER),
}


@pytest.fixture
def twins(project, here):
    """A function that puts a twin beside the good tool; it returns both paths."""

    def put(name):
        tool, evil = put_tool(project, "my/tool", GOOD), project / "evil.py"
        evil.write_bytes(TWINS[name](tool.read_bytes()))
        return tool, evil

    return put


@pytest.mark.parametrize("name", TWINS)
def test_no_evil_twin_runs(project, twins, name):
    def load(number):
        if number % 2:
            # The next load is a cold one.
            admission._ready.clear()
            admission._verdicts.cache_clear()
        response = rye.execute("my/tool", project_path=project)
        assert response["status"] == "success" or response["code"] in REFUSALS, response
        return response["data"]["output"] if response["status"] == "success" else "refused"

    tally = race(*twins(name), load, times(300))
    assert tally["EVIL"] == 0
    assert tally["GOOD"] > 0
    assert tally["refused"] > 0


def test_control_hash_then_import_runs_it(twins, monkeypatch):
    tool, evil = twins("one byte changed")
    good = hashlib.sha256(tool.read_bytes()).hexdigest()

    def load(number):
        if hashlib.sha256(tool.read_bytes()).hexdigest() != good:
            return "refused"
        spec = importlib.util.spec_from_file_location(f"naive_{number}", tool)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.execute({}, "")["output"]

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert race(tool, evil, load, 2_000, seen="EVIL")["EVIL"]


# --- an editor that takes no lock: every version of it is kept, or we were told ---

# What a second editor of the same line is told, and tries again after.
RETRY = {"invalid_line_id", "stale_file", "conflict", "locked", None}
EDITOR = r"""
import ctypes, json, os, random, sys, time
file, count, seed = sys.argv[1].encode(), int(sys.argv[2]), sys.argv[3]  # and the longest pause
rng = random.Random(seed)
call = ctypes.CDLL(None, use_errno=True).renameat2
fresh = file + b".editor"
displaced = []
for number in range(1, count + 1):
    with open(fresh, "w") as out:
        out.write(f"version {number}\n" + "other text\n" * 20)
    if call(-100, fresh, -100, file, 2):
        sys.exit(f"the file was not there: errno {ctypes.get_errno()}")
    with open(fresh) as old:
        displaced.append(old.readline())
    # A new file each time: truncating the displaced one would change it under whoever still reads it.
    os.unlink(fresh)
    time.sleep(rng.random() * float(sys.argv[4]))
print(json.dumps(displaced))
"""


@contextmanager
def editor(file: Path, count: int, pause: float):
    """Have an editor replace the file `count` times; yields a function that tells whether it still does, and its findings."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    words = [sys.executable, "-I", "-S", "-c", EDITOR, file, str(count), str(seed), str(pause)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        findings: list[str] = []
        reader = threading.Thread(target=lambda: findings.append(child.stdout.read()))
        reader.start()
        try:
            yield lambda: child.poll() is None, findings
            reader.join()
            assert child.wait(60) == 0
        finally:
            child.kill()
            reader.join()


def replace_by_tool(project: Path, number: int) -> bool:
    answer = rye.execute(READ, {"file_path": "file"}, project_path=project)
    assert answer["status"] == "success" or answer["code"] == "conflict", answer
    if answer["status"] != "success":
        return False
    change = {"after_line_id": answer["data"]["output"].rsplit("[LID:", 1)[1][:6], "new_content": f"ours {number}"}
    answer = rye.execute(EDIT, {"file_path": "file", "changes": [change], "on_stale": "rebase"}, project_path=project)
    assert answer.get("code") in RETRY, answer
    return answer["status"] == "success"


def replace_naively(project: Path, number: int) -> bool:
    """Check, write, sync, rename, as good editors do."""
    file, fresh = project / "file", project / ".naive"
    old = file.read_bytes()
    if file.read_bytes() != old:
        return False
    with fresh.open("wb") as out:
        out.write(old + b"ours %d\n" % number)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
    return True


def lost(project: Path, change, count: int, pause: float = 0.004) -> tuple[set[str], Counter]:
    """Return which versions of the editor were lost, and how often our changes landed or not."""
    file, ours = project / "file", Counter()
    file.write_text("version 0\n")
    with editor(file, count, pause) as (at_work, findings):
        while at_work():
            ours["landed" if change(project, ours.total()) else "refused"] += 1
    kept = {path.read_text().split("\n", 1)[0] for path in project.glob("*.rye-conflict")}
    # A version is accounted for when the editor itself replaced it (with or without our change), when it stands, or is kept.
    seen = {line.strip() for line in json.loads(findings[0])} | {file.read_text().split("\n", 1)[0]} | kept
    for path in project.glob("*.rye-conflict"):
        path.unlink()
    assert not [name for name in os.listdir(project) if name.startswith(".rye-")]
    print(dict(ours), len(kept), "kept as .rye-conflict")
    return {f"version {number}" for number in range(count + 1)} - seen, ours


@pytest.mark.slow
def test_no_version_of_an_editor_is_lost_unreported(project):
    versions, ours = lost(project, replace_by_tool, times(150), 0.05)
    assert versions == set()
    assert ours["landed"] > 0


def test_control_checking_before_the_rename_loses_some(project):
    assert any(lost(project, replace_naively, 300)[0] for _ in range(10))
