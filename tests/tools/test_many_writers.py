"""Several processes change the same files at once, by commands and by edits: each change is recorded once, as one chain."""

import multiprocessing
import random
import subprocess
import sys

import pytest

from support.calling import call, undo
from support.harness import RUNTIME, environment, times
from support.shell_calls import bash, job, started

RT = f"{sys.executable} -m rye.cli.rt.main"
FILES = [f"d{number % 3}/f{number}.txt" for number in range(10)]


def content(project):
    """What the files hold, and their modes."""
    found = (project / path for path in FILES)
    return {path.name: (path.read_bytes(), path.stat().st_mode) for path in found if path.exists()}


def write(project, seed, count, made):
    """Make random changes; put the ID of each into `made`, or what failed in another way than it may."""
    rng = random.Random(seed)
    mine = []
    for number in range(count):
        (one, other), tag = rng.sample(FILES, 2), f"{seed}-{number}"
        step = rng.random()
        if step < 0.5:
            commands = [
                f"echo {tag} >> {one}",
                f"sed -i '3s/.*/{tag}/' {one}",
                f"mv {one} {other}",
                f"rm -f {one}",
                f"cp {one} {other}; echo {tag} >> {other}",
                f"sleep 0.1; cat {one} > {other}",
                f"chmod 600 {one}",
                f"for x in 1 2 3; do echo {tag} >> {one}; sleep 0.03; done",
                f"echo {tag} >> {one}; echo {tag} | {RT} insert {other} 2 || true; echo {tag} >> {one}",
                f"{RT} undo || true",
            ]
            answer = bash(project, rng.choice(commands), env={"PYTHONPATH": str(RUNTIME)})
        elif step < 0.55:
            job_id = started(project, f"sleep 0.1; echo {tag} >> {one}; sleep 0.1; rm {other}")
            answer = job(project, "wait", job_id, timeout=100)
        elif step < 0.65:
            answer = call("write", project, file_path=one, content=f"{tag}\n" * rng.randrange(1, 8))
        elif step < 0.75:
            changes = [{"file_path": path, "find": "line 2\n", "replace": f"line 2\n{tag}\n"} for path in (one, other)]
            changes += [{"file_path": one, "rename_to": f"{one}.{tag}"}] * rng.choice((0, 1))
            answer = call("edit_lines", project, changes=changes)
        elif step < 0.9:
            change = {"find": "line 5\n", "replace": f"line 5\n{tag}\n"}
            answer = call("edit_lines", project, file_path=one, changes=[change])
        elif mine:
            answer = undo(project, entry_id=mine.pop(rng.randrange(len(mine))))
        else:
            continue
        entry = answer.get("change_id") or answer.get("entry_id")
        if entry:
            mine.append(entry)
            made.put(entry)


def judge(project, seed, processes=3, count=10):
    """Let processes write at once, then take all back, the last change first; return how many there were."""
    for path in FILES:
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text("".join(f"line {number}\n" for number in range(10)))
    bash(project, "true")
    first = content(project)
    fork = multiprocessing.get_context("fork")
    made = fork.SimpleQueue()
    writers = [fork.Process(target=write, args=(project, seed * 100 + number, count, made)) for number in range(processes)]
    for one in writers:
        one.start()
    known = set()
    while any(one.is_alive() for one in writers) or not made.empty():
        if made.empty():
            writers[0].join(0.05)
        else:
            known.add(made.get())
    assert [one.exitcode for one in writers] == [0] * processes
    entries = [entry["entry_id"] for entry in undo(project, list=True, limit=1000)["entries"]]
    assert known <= {*entries}
    for entry in dict.fromkeys(entries):
        answer = undo(project, entry_id=entry)
        assert answer["success"] or answer["code"] == "already_undone", (seed, entry, answer)
    assert content(project) == first, seed
    return len(entries)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(times(4)))
def test_what_many_writers_changed_is_one_chain_of_changes(project, seed):
    assert judge(project, seed) > 0


EDITOR = """
import sys
import rye
for _ in range(8):
    for name in sys.argv[2:]:
        rye.execute("rye/file-system/read", {"file_path": name}, project_path=sys.argv[1])
    order = {"file_path": sys.argv[2], "changes": [f"{name}:end+|x" for name in sys.argv[2:]], "on_stale": "rebase"}
    answer = rye.execute("rye/file-system/edit_lines", order, project_path=sys.argv[1])
    assert answer["status"] == "success", answer
"""


def test_edits_of_the_same_files_by_processes_neither_wait_in_a_circle_nor_lose_one(project):
    """In threads of one process sets of names have one order; in processes they have many."""
    names = [f"f{number}.txt" for number in range(6)]
    for name in names:
        (project / name).write_text("0\n")
    orders = (names[:4], names[:1:-1], names[1:5:2] + names[:1])
    words = [sys.executable, "-c", EDITOR, project]
    editors = [subprocess.Popen([*words, *order], env=environment()) for order in orders]
    assert [one.wait(100) for one in editors] == [0, 0, 0]
    edits = {name: 8 * sum(name in one for one in orders) for name in names}
    assert {name: (project / name).read_text().count("x") for name in names} == edits
