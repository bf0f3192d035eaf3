"""The record of what other processes change, with a process killed at each state of the disk: a recorded truth, never mixed.

A job's end (its supervisor is killed, or the look that it starts), a tool of another signer, and `rt undo` in a command of `bash`.
Several processes work here, so each kill watches the disk itself: the victim dies before the first system call that finds the
n-th state. A sample of them: `RYE_TEST_TIMES` (`support.harness.times`) makes it larger.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from attacks.test_record_crashes import everything_back, fresh, listed, look, undone, whole_undo
from rye.config import user_dirs
from rye.process import jobs
from rye.workspace import running_commands
from support import shell_calls, signed_tools
from support.harness import Template, times
from support.stepper import Stepper, fingerprint, works
from support.tree_photo import Photo, assert_same, photo
from support.waiting import until

CHANGES = (
    "echo more >> a.txt; mkdir new; echo new > new/b.txt; rm gone.txt; mv moved.txt new/moved.txt; chmod 755 x.sh; "
    "mkfifo -m 666 pipe; ln -s a.txt link; ln x.sh twin.txt"
)
TOOL = "mine/changes"
TOOL_BODY = (
    f"import subprocess\nsubprocess.run(['sh', '-c', {CHANGES!r}], cwd=project_path, check=True)\nreturn {{'success': True}}"
)


class Victim(NamedTuple):
    """What is followed.

    Attributes:
        stepper: follows it.
        release: lets it go on.
        ended: waits for all that it started, and returns whether it was killed.
    """

    stepper: Stepper
    release: Callable[[], object]
    ended: Callable[[], bool]


class Case(NamedTuple):
    """A thing to kill.

    Attributes:
        start: begins it in a project.
        check: holds everything to order afterwards; returns which state stood there.
    """

    start: Callable[[Template, Path, Path], Victim]
    check: Callable[[Path, object], str]


def descendants(pid: int) -> set[int]:
    """Return the processes that one started, with theirs."""
    out: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for one in map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()):
                out |= {one, *descendants(one)}
    return out


def is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


# --- a job's end ---


def job_end(*, children: bool) -> Callable[[Template, Path, Path], Victim]:
    def start(_made: Template, _folder: Path, project: Path) -> Victim:
        ORIGINAL.clear()
        ORIGINAL.update(photo(project))
        os.mkfifo(project / "go")
        look(project)
        job_id = shell_calls.started(project, f"read x < go; {CHANGES}")
        with jobs.home(str(project), job_id) as home:
            pid = (jobs.record(home) or {})["supervisor"]
        before = descendants(pid)

        def release() -> None:
            fd = os.open(project / "go", os.O_RDWR)
            os.write(fd, b"x\n")
            # Held, or what was written is gone before the job reads it.
            HELD.append(fd)

        def ended() -> bool:
            assert until(lambda: all(map(is_over, {pid, *before, *FOUND})))
            os.close(HELD.pop())
            return KILLED.pop() if KILLED else False

        return Victim(Stepper(pid, runs=True, children=children), release, ended)

    return start


HELD: list[int] = []
FOUND: set[int] = set()
KILLED: list[bool] = []


def check_job(project: Path, about: object) -> str:
    # The next call clears away what was made for the sandbox.
    assert shell_calls.bash(project, "true")["success"], about
    now = photo(project)
    look(project)
    assert_same(photo(project), now, about)
    found = listed(project)
    everything_back(project, ORIGINAL, about)
    # The oldest is the pipe that lets the job go on.
    assert all(one["tool"] == "rye/bash/bash" for one in found[:-1]), (about, found)
    (job,) = shell_calls.job(project, "list")["jobs"]
    assert job["status"] in ("ended", "lost"), (about, job)
    return "new" if "twin.txt" in now else "old" if len(found) == 1 else "part, recorded"


# --- a job's start ---


def supervisors() -> list[str]:
    """Return the processes of this test's user that run a job."""
    space, found = os.fsencode(f"USER_SPACE={os.environ['USER_SPACE']}"), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words, values = (Path(f"/proc/{name}/{one}").read_bytes() for one in ("cmdline", "environ"))
            if b"job_supervisor" in words and space in values.split(b"\0"):
                found.append(name)
    return found


def job_start(made: Template, folder: Path, project: Path) -> Victim:
    """A process that starts a job, and is killed; the job waits until that is over."""
    os.mkfifo(project / "go")
    look(project)
    ORIGINAL.clear()
    ORIGINAL.update(photo(project))
    command = f"read x < go; {CHANGES}"
    parameters = {"command": command, "background": True}
    pid = made.victim(job="execute", project=str(project), tool="rye/bash/bash", parameters=parameters, out=str(folder / "out"))

    def is_running() -> bool:
        folder = Path(user_dirs.state_dir(str(project)), running_commands.FOLDER)
        return any(running_commands.is_alive(str(project), one.name) for one in folder.glob("*"))

    def ended() -> bool:
        killed = made.ended() == -signal.SIGKILL
        fd = os.open(project / "go", os.O_RDWR)
        os.write(fd, b"x\n")
        # A supervisor may be on its way to the job that it starts, and have no record yet; a reaper may hold the command still.
        assert until(lambda: not supervisors() and not is_running())
        os.close(fd)
        return killed

    return Victim(Stepper(pid), lambda: os.kill(pid, signal.SIGCONT), ended)


def check_started(project: Path, about: object) -> str:
    assert shell_calls.bash(project, "true")["success"], about
    now = photo(project)
    found = listed(project)[:-1]
    assert all(one["tool"] == "rye/bash/bash" for one in found), (about, found)
    # The oldest is the pipe that lets the job go on, which someone else made.
    for one in found:
        undone(project, entry_id=one["entry_id"])
    assert_same(photo(project), ORIGINAL, about)
    return "new" if "twin.txt" in now else "old" if now == ORIGINAL else "part, recorded"


# --- a tool of another signer, and `rt undo` in a command ---


def called(made: Template, folder: Path, project: Path, tool: str, **parameters: object) -> Victim:
    """Have a forked process call a tool."""
    pid = made.victim(job="execute", project=str(project), tool=tool, parameters=parameters, out=str(folder / "out"))

    def ended() -> bool:
        killed = made.ended() == -signal.SIGKILL
        assert until(lambda: all(map(is_over, FOUND)))
        return killed

    return Victim(Stepper(pid), lambda: os.kill(pid, signal.SIGCONT), ended)


def foreign_tool(made: Template, folder: Path, project: Path) -> Victim:
    ORIGINAL.clear()
    ORIGINAL.update(photo(project))
    return called(made, folder, project, TOOL)


def check_foreign(project: Path, about: object) -> str:
    assert shell_calls.bash(project, "true")["success"], about
    now = photo(project)
    found = listed(project)
    everything_back(project, ORIGINAL, about)
    assert {one["tool"] for one in found} <= {TOOL}, (about, found)
    return "new" if "twin.txt" in now else "old" if now == ORIGINAL else "part, recorded"


def rt_undo(made: Template, folder: Path, project: Path) -> Victim:
    _, old, new, entry = whole_undo(project)
    STATES[str(project)] = (old, new, entry)
    return called(made, folder, project, "rye/bash/bash", command=f"{sys.executable} -m rye.cli.rt.main undo")


def check_rt(project: Path, about: object) -> str:
    old, new, entry = STATES.pop(str(project))
    assert shell_calls.bash(project, "true")["success"], about
    found = listed(project)
    # What the views of `rt` remember is no file of the project.
    now = {path: one for path, one in photo(project).items() if path.partition("/")[0] != ".ragix"}
    assert now in (old, new), (about, "mixed", {path for path in now | old if now.get(path) != old.get(path)}, found)
    by = [one["entry_id"] for one in found if one["undoes"] == entry and one["undone_by"] is None]
    assert (len(by), len(found)) == (now == new, 1 + (now == new)), (about, found)
    undone(project, entry_id=by[0] if by else entry)
    shutil.rmtree(project / ".ragix", ignore_errors=True)
    assert_same(photo(project), old if by else new, about)
    return "new" if by else "old"


ORIGINAL: Photo = {}
STATES: dict[str, tuple[Photo, Photo, str]] = {}
CASES = {
    "a job's end, its supervisor killed": Case(job_end(children=False), check_job),
    "a job's end, its look killed": Case(job_end(children=True), check_job),
    "a job's start, its starter killed": Case(job_start, check_started),
    "a tool of another signer": Case(foreign_tool, check_foreign),
    "rt undo in a command": Case(rt_undo, check_rt),
}


def one_run(made: Template, folder: Path, name: str, nth: int | None) -> tuple[int, bool, str]:
    """Run a case, killed at the n-th state of the disk; return how many states there were, whether it was killed, what stood."""
    case = CASES[name]
    project = fresh(folder, "project")
    FOUND.clear()
    victim = case.start(made, folder, project)
    victim.release()
    states, last = 0, b""
    for tid, _ in victim.stepper.entries():
        now = fingerprint(project, os.environ["USER_SPACE"])
        states += now != last
        last = now
        if states == nth:
            FOUND.update(descendants(victim.stepper.pid) | descendants(tid))
            by_child = tid not in {int(one) for one in os.listdir(f"/proc/{victim.stepper.pid}/task")}
            KILLED.append(True)
            victim.stepper.kill(tid if by_child else None)
            nth = -1
    killed = victim.ended() or nth == -1
    KILLED.clear()
    state = case.check(project, (name, nth))
    shutil.rmtree(project)
    return states, killed, state


def run(made: Template, folder: Path, name: str, chosen: Callable[[int], list[int]]) -> Counter:
    """Kill a case at the chosen ones of its states; return how often each state stood there."""
    signed_tools.put_tool(os.environ["USER_SPACE"], TOOL, TOOL_BODY, more='__permissions__ = ["write", "run"]')
    count, _, state = one_run(made, folder, name, None)
    assert state == "new", (folder / "out").read_text()
    out: Counter = Counter({"states on the disk": count})
    for nth in chosen(count):
        _, killed, state = one_run(made, folder, name, nth)
        out["killed" if killed else "not reached"] += 1
        out[state] += 1
    return out


@pytest.mark.slow
@pytest.mark.skipif(not works(), reason="needs ptrace")
@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere(made, tmp_path, rng, name):
    states = run(made, tmp_path, name, lambda count: rng.sample(range(1, count + 1), min(count, times(5))))
    print(states)
    assert states["killed"] > 2
