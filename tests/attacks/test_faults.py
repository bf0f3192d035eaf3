"""Calls killed at any state of the disk, and failed at any system call: old, new or a recorded truth, never mixed.

A case is a call and what must hold afterwards; each is run whole first. The kills and failures that are tried are a sample:
`RYE_TEST_TIMES` (`support.harness.times`) makes it larger, so that `RYE_TEST_TIMES=1000` tries all.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support import calling, shell_calls
from support.faults import Stepper, Template, Unsynced, Victim, killed_at, needs_ptrace
from support.harness import descendants, is_over, times
from support.tree_photo import Photo, assert_same, photo
from support.waiting import until

EDIT, WRITE, UNDO = (f"rye/file-system/{name}" for name in ("edit_lines", "write", "undo"))
BASH, PATCH = "rye/bash/bash", "rye/workspace/workspace_write_patch"
NOBODY = "changed by someone else"
LINES = [f"line {number}\n" for number in range(30)]
# In three folders.
MANY = [f"d{number % 3}/f{number}.txt" for number in range(19)]
CHANGES = (
    "echo more >> a.txt; mkdir new; echo new > new/b.txt; rm gone.txt; mv moved.txt new/moved.txt; chmod 755 x.sh; "
    "mkfifo -m 666 pipe; ln -s a.txt link; ln x.sh twin.txt"
)


@dataclass
class Run:
    """One run of a case, in a project of its own: what stood there before the call, and after a whole run; the record's entries before;
    the tool and the parameters that are called; the job that runs meanwhile.
    """

    project: Path
    old: Photo
    new: Photo
    before: list[str]
    order: tuple[str, dict]
    job: str = ""

    def entries(self) -> list[dict]:
        """Return the record's entries since the run began, the newest first; what was cut off is settled by this call."""
        return [one for one in listed(self.project) if one["entry_id"] not in self.before]


Order = tuple[str, dict]


@dataclass(frozen=True)
class Case:
    """What is killed: `prepare` brings a project to where the victim starts, and returns the call; `check` holds everything to order
    afterwards, and returns which state stood there; `start` begins it (without one a forked process makes the call). A `job` runs
    meanwhile, and goes on once `go` is written to.
    """

    prepare: Callable[[Path], Order]
    check: Callable[[Run, object], str]
    start: Callable[[Template, Run], Victim] | None = None
    job: str = ""


def listed(project: Path) -> list[dict]:
    return calling.done("undo", project, list=True, limit=100)["entries"]


def command(project: Path, words: str) -> str:
    """Run a command; return the ID of its change."""
    data = shell_calls.bash(project, words)
    assert data["exit_code"] == 0, data
    return data.get("change_id", "")


def fresh(folder: Path) -> Path:
    project = folder / "project"
    project.mkdir()
    (project / "a.txt").write_text("".join(LINES))
    (project / "gone.txt").write_text("gone\n")
    (project / "moved.txt").write_bytes(b"\0moved")
    (project / "x.sh").write_text("echo\n")
    (project / "x.sh").chmod(0o640)
    os.mkfifo(project / "go")
    command(project, "true")
    return project


def everything_back(run: Run, about: object) -> None:
    """Take back every change since the run began, the newest first: all that happened must be in the record."""
    for _ in range(20):
        left = [one for one in run.entries() if one["undone_by"] is None and one["undoes"] is None]
        if not left:
            break
        calling.done("undo", run.project, entry_id=left[0]["entry_id"])
    assert_same(photo(run.project), run.old, about)


# --- calls that happen as a whole or not at all ---


def whole(run: Run, about: object) -> str:
    """All of the call's changes stand there and in the record, or none; the other way can be gone from here."""
    entries = run.entries()
    now = photo(run.project)
    assert now in (run.old, run.new), (about, "mixed", {path for path in now | run.old if now.get(path) != run.old.get(path)})
    assert bool(entries) == (now == run.new), (about, entries)
    assert NOBODY not in {one["tool"] for one in entries}, (about, entries)
    left = [name for name in now if "/.rye-" in f"/{name}" or name.endswith(".rye-conflict")]
    assert not left, (about, left)
    ids = calling.ids(run.project, "a.txt")
    assert len(ids) == len(set(ids)) == now["a.txt"][2].count(b"\n"), about
    command(run.project, "true")
    assert run.entries() == entries, (about, "what was settled is found once more as a command's change")
    if entries:
        newest = entries[0]
        many = len({one["entry_id"] for one in entries}) > 1
        calling.done("undo", run.project, **({"batchId": newest["batchId"]} if many else {"entry_id": newest["entry_id"]}))
        assert_same(photo(run.project), run.old, about)
        return "new"
    # What was shown before the fault may be unknown now; it is not known as anything else.
    tool, parameters = edit(run.project) if run.order[0] == EDIT else run.order
    calling.done(tool, run.project, **parameters)
    assert_same(photo(run.project), run.new, about)
    return "old"


def edit(project: Path) -> Order:
    ids = calling.ids(project, "a.txt")
    return EDIT, {"file_path": "a.txt", "changes": [{"line_id": ids[7], "new_content": "changed"}]}


def batch(project: Path) -> Order:
    """Eighteen files patched, one deleted, one created in a new folder."""
    for path in MANY:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(f"{path}\nsecond\n")
    command(project, "true")
    change = {"operation": "replace", "startLine": 2, "endLine": 2, "expectedOriginalLines": ["second"], "newLines": ["2", "3"]}
    digest = {path: hashlib.sha256((project / path).read_bytes()).hexdigest() for path in MANY}
    return PATCH, {
        "files": [{"docPath": path, "originalSha256": digest[path], "changes": [change]} for path in MANY[:18]],
        "createFiles": [{"path": "d3/created.txt", "content": "created\n"}],
        "deleteFiles": [{"docPath": MANY[18], "originalSha256": digest[MANY[18]]}],
    }


def undone(order: Order, project: Path) -> str:
    """Make an order; return the ID of the entry that it made."""
    tool, parameters = order
    return str(calling.done(tool, project, **parameters)["entry_id"])


def undo_command(project: Path) -> Order:
    return UNDO, {"entry_id": command(project, CHANGES)}


def redo_command(project: Path) -> Order:
    return UNDO, {"entry_id": undone(undo_command(project), project)}


def undo_merged_hunk(project: Path) -> Order:
    """One hunk out of two, in a file that changed elsewhere since."""
    entry = command(project, "sed -i 's/^line 3$/changed 3/; s/^line 12$/changed 12/' a.txt")
    command(project, "echo later >> a.txt")
    return UNDO, {"entry_id": entry, "file_path": "a.txt", "hunks": [2]}


def redo_in_new_folders(project: Path) -> Order:
    written = undone((WRITE, {"file_path": "n/e/w.txt", "content": "new\n"}), project)
    return UNDO, {"entry_id": undone((UNDO, {"entry_id": written}), project)}


def undo_batch(project: Path) -> Order:
    """Also of two files in one new folder."""
    tool, parameters = batch(project)
    parameters["createFiles"].append({"path": "d3/other.txt", "content": "other\n"})
    return UNDO, {"batchId": calling.done(tool, project, **parameters)["result"]["batchId"]}


def rt_undo(project: Path) -> Order:
    """`rt undo`, in a command."""
    command(project, CHANGES)
    return BASH, {"command": f"{sys.executable} -m rye.cli.rt.main undo"}


def without_views(run: Run, about: object) -> str:
    """What the views of `rt` remember is no file of the project."""
    shutil.rmtree(run.project / ".ragix", ignore_errors=True)
    return whole(run, about)


# --- programs, whose changes may stop anywhere ---


def recorded(run: Run, about: object) -> str:
    """Whatever stands there is in the record, as the command's, and nothing else is."""
    if run.job:
        (job,) = shell_calls.job(run.project, "list")["jobs"]
        assert job["status"] in ("ended", "lost"), (about, job)
    # The next command clears away what was made for the sandbox.
    command(run.project, "true")
    now, entries = photo(run.project), run.entries()
    everything_back(run, about)
    assert {one["tool"] for one in entries} <= {BASH}, (about, entries)
    return "new" if now == run.new else "old" if now == run.old else "part, recorded"


# --- how a victim starts and ends ---


def called(made: Template, run: Run) -> Victim:
    """Have a forked process make the call."""
    pid = made.victim(run.project, *run.order)

    def ended(dying: set[int]) -> bool:
        was_killed = made.ended() == -signal.SIGKILL
        assert until(lambda: all(map(is_over, dying)))
        return was_killed

    return Victim(Stepper(pid), lambda: os.kill(pid, signal.SIGCONT), ended)


def let_go(project: Path) -> None:
    """Let the job go on; what is written waits in the pipe until it reads."""
    fd = os.open(project / "go", os.O_RDWR)
    os.write(fd, b"x\n")
    HELD.append(fd)


HELD: list[int] = []


def job_ends(_made: Template, run: Run) -> Victim:
    """The supervisor of a job is killed."""
    pid = shell_calls.record(Path(os.environ["USER_SPACE"]), run.job)["supervisor"]
    before = descendants(pid)

    def ended(dying: set[int]) -> bool:
        assert until(lambda: all(map(is_over, {pid, *before, *dying})))
        return False

    return Victim(Stepper(pid, runs=True), lambda: let_go(run.project), ended)


WAITING = f"read x < go; {CHANGES}"
ATOMIC = {
    "an edit": Case(edit, whole),
    "a batch": Case(batch, whole),
    "undo of a command": Case(undo_command, whole),
    "redo of a command": Case(redo_command, whole),
    "undo of a hunk, merged": Case(undo_merged_hunk, whole),
    "redo of a file in new folders": Case(redo_in_new_folders, whole),
    "undo of a batch": Case(undo_batch, whole),
    "rt undo in a command": Case(rt_undo, without_views),
}
CASES = {
    **ATOMIC,
    "a command": Case(lambda _: (BASH, {"command": CHANGES}), recorded),
    "a job's end, its supervisor killed": Case(lambda _: ("", {}), recorded, job_ends, job=WAITING),
}  # fmt: skip


class Bench:
    """Runs of one case."""

    def __init__(self, made: Template, folder: Path, name: str) -> None:
        self.made, self.folder, self.name, self.case = made, folder, name, CASES[name]
        self.new: Photo = {}
        self.ends: Counter[str] = Counter()

    def begin(self) -> tuple[Run, Victim]:
        project = fresh(self.folder)
        first, before = photo(project), [one["entry_id"] for one in listed(project)]
        job = shell_calls.started(project, self.case.job) if self.case.job else ""
        order = self.case.prepare(project)
        if not job:
            first, before = photo(project), [one["entry_id"] for one in listed(project)]
        run = Run(project, first, self.new, before, order, job)
        return run, (self.case.start or called)(self.made, run)

    def end(self, run: Run, about: object) -> str:
        state = self.case.check(run, (self.name, about))
        self.ends[state] += 1
        self.settled(run)
        return state

    def settled(self, run: Run) -> None:
        while HELD:
            os.close(HELD.pop())
        shutil.rmtree(run.project)
        # Each further project would make every look at the disk slower.
        shutil.rmtree(Path(os.environ["USER_SPACE"], ".ai/state"))

    def whole(self, watch: Callable[[Run, Victim], object]) -> None:
        """Run the case whole, watched: that it works is the control of all else."""
        run, victim = self.begin()
        watch(run, victim)
        run.new = self.new = photo(run.project)
        assert self.new != run.old
        assert self.end(run, "whole") == "new", self.made.out.read_text()
        self.ends.clear()

    def kill(self, nth: int) -> None:
        run, victim = self.begin()
        was_killed = killed_at(victim, nth, run.project, os.environ["USER_SPACE"])
        self.ends["killed" if was_killed else "not reached"] += 1
        self.end(run, nth)

    def states(self) -> tuple[list[int], list[int]]:
        """Run the case whole; return the states of the disk in which the project is neither old nor new, and the others."""
        looks: dict[int, Photo] = {}

        def watch(run: Run, victim: Victim) -> None:
            assert not killed_at(
                victim, None, run.project, os.environ["USER_SPACE"], seen=lambda at: looks.update({at: look(run)})
            )

        self.whole(watch)
        ends = [looks[min(looks)], {path: one for path, one in self.new.items() if ".rye-" not in path}]
        between = [at for at, found in looks.items() if found not in ends]
        return between, [at for at in looks if at not in between]


def look(run: Run) -> Photo:
    """The project as it stands, but for temporary files; nothing, where programs that are not followed change it meanwhile."""
    with suppress(OSError):
        return {path: one for path, one in photo(run.project).items() if ".rye-" not in path}
    return {}


@pytest.mark.slow
@needs_ptrace
@pytest.mark.parametrize("name", CASES)
def test_killed_anywhere(made, tmp_path, rng, name):
    bench = Bench(made, tmp_path, name)
    size = times(4 if name in ATOMIC else 3)
    between, others = bench.states()
    chosen = rng.sample(between, min(len(between), size * 3 // 4))
    chosen += rng.sample(others, min(len(others), size - len(chosen)))
    for nth in chosen:
        bench.kill(nth)
    print(bench.ends, len(between), len(others))
    assert bench.ends["killed"] >= max(1, len(chosen) // 2)


ERRORS = (errno.EIO, errno.ENOSPC, errno.EINTR)


def failed_at(bench: Bench, nth: int | None, error: int = 0) -> list[bool]:
    """Let a call's n-th system call on files fail; hold the answer to what happened. Tell of each whether it may change the disk."""
    run, victim = bench.begin()
    victim.release()
    found: list[bool] = []
    for call in victim.stepper.entries():
        if call.can_fail:
            found.append(call.may_change)
            if len(found) == nth:
                victim.stepper.fail(call, error)
    assert not victim.ended(set())
    said = bench.made.said()
    about, answer = (nth, errno.errorcode.get(error), said), said["answer"]
    assert "crashed" not in answer, answer.get("crashed")
    assert answer.get("code") not in ("tool_crashed", "tool_failed"), about
    assert said["leaked"] <= 0, about
    if nth is None:
        run.new = bench.new = photo(run.project)
    warned = any("Not recorded" in one for one in (answer["data"] or {}).get("warnings", ()))
    bench.ends["failed" if nth is not None and len(found) >= nth else "not reached"] += 1
    if warned:
        assert photo(run.project) == run.new, about
        # A command's look may find it, as nobody's.
        assert {one["tool"] for one in run.entries()} <= {NOBODY}, about
        bench.settled(run)
        return found
    state = bench.end(run, about)
    if answer.get("code") != "unsettled":
        assert state == ("new" if answer["status"] == "success" else "old"), about
        assert answer["status"] == "success" or answer["error"], about
    return found


@pytest.mark.slow
@needs_ptrace
@pytest.mark.parametrize("name", ["an edit", "a batch"])
def test_failed_anywhere_the_answer_is_true(made, tmp_path, rng, name):
    bench = Bench(made, tmp_path, name)
    calls = [*enumerate(failed_at(bench, None), 1)]
    bench.ends.clear()
    # A batch has many more calls, of the same kinds.
    some = times(20 if name == "an edit" else 12)
    drawn, rest = list[int](), list[int]()
    for changes, size in ((True, some // 2), (False, some // 6)):
        points = [nth for nth, may_change in calls if may_change == changes]
        # As many before the call has landed as afterwards.
        for half in (points[: len(points) // 2], points[len(points) // 2 :]):
            chosen = rng.sample(half, len(half))
            drawn += chosen[:size]
            rest += chosen[size:]
    while drawn or not (bench.ends["old"] and bench.ends["new"]):
        failed_at(bench, (drawn or rest).pop(0), rng.choice(ERRORS))
    print(bench.ends, len(calls))
    assert bench.ends["failed"] > bench.ends["not reached"] * 2


@needs_ptrace
@pytest.mark.parametrize(
    "name", ["an edit", *(pytest.param(one, marks=pytest.mark.slow) for one in ("a batch", "undo of a batch"))]
)
def test_content_is_durable_before_it_is_visible(made, tmp_path, name):
    """At no moment would a power cut leave a file under its name without its content, nor lose a change that was answered."""
    Bench(made, tmp_path, name).whole(watch_durability)


def watch_durability(run: Run, victim: Victim) -> None:
    unsynced = Unsynced()
    victim.release()
    torn: set[Path] = set()
    looks = 0
    for call in victim.stepper.entries():
        # What stands under the names of the project's files now; temporary files beside them may wait.
        visible = {
            path.stat().st_ino: path for path in run.project.rglob("[!.]*") if path.is_file() and ".ai" not in path.parts
        }
        torn |= {visible[inode] for inode in visible.keys() & unsynced.inodes}
        unsynced.see(call)
        looks += call.may_change
    assert not victim.ended(set())
    assert looks
    assert torn == set()
    folders = {
        path.stat().st_ino: path for path in [run.project, *run.project.rglob("*")] if path.is_dir() and ".ai" not in path.parts
    }
    assert {folders[one] for one in folders.keys() & unsynced.inodes} == set()


@needs_ptrace
def test_control_writing_in_place_is_torn_and_not_durable(made, tmp_path):
    def begin() -> tuple[Run, Victim]:
        project = fresh(tmp_path)
        content = "".join(LINES).replace("line 7\n", "changed\n")
        run = Run(project, photo(project), {}, [], ("naive", {"path": "a.txt", "content": content}))
        return run, called(made, run)

    run, victim = begin()
    with pytest.raises(AssertionError, match=r"a\.txt"):
        watch_durability(run, victim)
    shutil.rmtree(run.project)
    run, victim = begin()
    killed_at(victim, 12, run.project)
    text = (run.project / "a.txt").read_text()
    assert 0 < len(text) < len("".join(LINES)) - 20
