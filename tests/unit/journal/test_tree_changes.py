"""Whose a change is: a command's, a job's beside it, our own tools', or someone else's; and what a kill leaves."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

import rye
from rye.call.context import CallOptions, Cancellation
from rye.config import user_dirs
from rye.fs import beneath
from rye.journal import history, journal, tree_changes
from rye.line_ids import store
from rye.snapshots import known_tree, watch
from rye.workspace import running_commands
from rye.workspace.workspace import Workspace
from support.calling import call, undo
from support.harness import environment, fingerprint
from support.in_process import rye as rye_command
from support.shell_calls import bash, configure, record, set_sandbox
from support.waiting import PATIENCE, until

SOMEONE_ELSE = "changed by someone else"


def listed(project):
    return undo(project, list=True, limit=100)["entries"]


@pytest.fixture
def started(project):
    (project / "a.txt").write_text("one\n")
    bash(project, "true")
    return project


def test_what_changes_between_calls_is_told_apart_and_is_nobodys_last_change(started):
    (started / "a.txt").write_text("an editor\n")
    assert bash(started, "echo x > b.txt")["changed"] == ["b.txt"]
    mine, other = listed(started)
    assert (mine["tool"], other["tool"]) == ("rye/bash/bash", SOMEONE_ELSE)
    assert undo(started)["undone"] == mine["entry_id"]
    assert undo(started)["code"] == "nothing_to_undo"
    assert undo(started, entry_id=other["entry_id"])["success"]
    assert (started / "a.txt").read_text() == "one\n"


def test_an_edit_during_the_first_look_is_no_commands_change(project, monkeypatch):
    (project / "a.txt").write_text("one\n")
    made, edited, begin, attribute = [], threading.Event(), journal.begin, tree_changes.Look.attribute

    def look_first(*of, **how):
        made.append(pool.submit(bash, project, "echo x > b.txt"))
        # It has seen the file by then, or waits for the edit.
        time.sleep(0.5)
        begin(*of, **how)

    monkeypatch.setattr(tree_changes.Look, "attribute", lambda *of, **how: edited.wait(PATIENCE) and attribute(*of, **how))
    monkeypatch.setattr(journal, "begin", look_first)
    with ThreadPoolExecutor(1) as pool:
        assert call("write", project, file_path="a.txt", content="two\n")["success"]
        edited.set()
        assert made[0].result()["changed"] == ["b.txt"]


def test_a_command_that_restores_what_a_tool_left_is_recorded(started):
    call("write", started, file_path="a.txt", content="ours\n")
    bash(started, "echo theirs > a.txt")
    assert bash(started, "echo ours > a.txt")["changed"] == ["a.txt"]
    undo(started)
    assert (started / "a.txt").read_text() == "theirs\n"


HELD = """
import mmap, os, time
file = open("a.txt", "r+b")
pages = mmap.mmap(file.fileno(), 0)
file.close()
pages[:1] = b"1"
open("mapped", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
pages[:1] = b"2"
"""


@pytest.mark.parametrize("kind", ["command", "job"])
def test_what_is_written_into_a_mapping_after_a_look_is_recorded(started, kind):
    """The kernel tells of it when the mapping goes."""
    (started / "mapper.py").write_text(HELD)
    waiting = bash(started, "read line", background=True)["job_id"]
    with ThreadPoolExecutor(1) as pool:
        mapper = pool.submit(bash, started, f"{sys.executable} mapper.py", background=kind == "job")
        until((started / "mapped").exists)
        # Longer ago than a tick of the clock of files: the next look takes the file for settled.
        time.sleep(0.1)
        bash(started, "true")
        before = (started / "a.txt").stat().st_ctime_ns
        (started / "go").touch()
        done = mapper.result(PATIENCE)
    if kind == "job":
        done = call("rye/bash/job", started, action="wait", job_id=done["job_id"], timeout=60)
        if (started / "a.txt").stat().st_ctime_ns == before:
            pytest.skip("this file system gives a file that is written by a mapping no new time")
    assert ("a.txt" in done["changed"], (started / "a.txt").read_text()) == (True, "2ne\n")
    call("rye/bash/job", started, action="end", job_id=waiting)
    while (started / "a.txt").read_text() != "one\n":
        assert undo(started, file_path="a.txt")["success"]


def test_a_command_beside_a_job_names_it_and_what_a_job_puts_back_just_before_an_edit_is_recorded(started, monkeypatch):
    """A formatter that empties a file before it writes the same text, say."""
    job = bash(started, "read line", background=True)["job_id"]
    assert bash(started, "echo x > b.txt")["changed_beside"] == ["read line"]
    file, aside, attribute = started / "a.txt", started / "c.txt", tree_changes.Look.attribute
    with monkeypatch.context() as patch:
        patch.setattr(
            tree_changes, "look_at", lambda ws, look=tree_changes.look_at, **of: file.rename(aside) and look(ws, **of)
        )
        patch.setattr(tree_changes.Look, "attribute", lambda look: (attribute(look), aside.exists() and aside.rename(file)))
        assert call("edit_lines", started, file_path="a.txt", changes=["find|one|two"])["success"]
    call("rye/bash/job", started, action="end", job_id=job)
    with Workspace(started) as ws:
        made = [change for row in history.History(ws) for change in history.entry_of(ws, row).changes if change.path == "a.txt"]
    contents = [[one and one.value for one in change[1:]] for change in made]
    assert [before for before, _ in contents[:-1]] == [after for _, after in contents[1:]], contents


def test_what_other_threads_remember_meanwhile_breaks_no_call(started, monkeypatch):
    class Other:
        @property
        def raw(self):
            store._checked[object()] = self
            return b""

        @property
        def folders(self):
            known_tree._latest[object()] = None, self
            return b""

    roots = [os.open(one, os.O_RDONLY) for one in ("/", "/dev", "/proc", "/usr", "/var")]
    monkeypatch.setattr(store, "_checked", {0: Other()})
    monkeypatch.setattr(known_tree, "_latest", {0: (None, Other())})
    drain = watch.Watch._drain
    monkeypatch.setattr(
        watch.Watch, "_drain", lambda own: drain((own, *(watch.of_project(one, own.skipped) for one in roots))[0])
    )
    assert call("read", started, file_path="a.txt")["success"]
    assert bash(started, "echo x > b.txt").get("changed") == ["b.txt"]
    for one in roots:
        os.close(one)


def shell(project, script):
    """Run a script outside of any tool; it fails where one of its commands does."""
    subprocess.run(["bash", "-ec", script], cwd=project, check=True)


class Taken(NamedTuple):
    """A command whose change is taken back, and a shell's conditions of the project after the undo and after the redo.

    Attributes:
        before: what stood there, made outside of any tool; `since`: what was done after the command.
        path: the one file that is taken back.
        said: part of the answer; one of these words alone is the code of a refusal.
    """

    command: str
    then: str
    before: str = ""
    since: str = ""
    path: str = ""
    said: str = ""
    redone: str = ""
    sandbox: bool = True


DEEP = "e" * 100
WALK = f"for i in $(seq 60); do cd {DEEP}; done"
TAKEN_BACK = {
    "one file of many": Taken("echo two > a.txt; echo new > b.txt", "grep one a.txt; test -e b.txt", path="a.txt"),
    "one whose lines changed since": Taken(
        "echo two > a.txt; echo new > b.txt",
        "grep three a.txt; test -e b.txt",
        since="echo three > a.txt",
        said="changed_since",
    ),
    "names of one file that were joined anew": Taken(
        "cp a.txt t; mv t a.txt; ln a.txt g",
        "test a.txt -ef linked",
        before="ln a.txt linked",
        redone="test a.txt -ef g; test ! a.txt -ef linked",
    ),
    "a file that was moved": Taken(
        "mkdir d; mv a.txt d/b", "grep one a.txt", said="renamed d/b to a.txt", redone="grep one d/b"
    ),
    "a folder that holds more": Taken(
        "mkdir d; echo x > d/x", "test -e d/mine; test ! -e d/x", since="echo mine > d/mine", said="d stays"
    ),
    # To an ordinary user its files could not be removed, and the undo ended half done.
    "a folder that the command closed": Taken(
        "mkdir -p closed/inner; echo x > closed/inner/f; chmod 500 closed/inner closed",
        "test ! -e closed",
        said="--- a/closed/inner/f\\n+++ /dev/null",
        redone="stat -c %a closed closed/inner | uniq | grep -x 500; grep x closed/inner/f",
    ),
    "a file in a closed folder": Taken(
        "echo two >> d/closed/f",
        "grep -x one d/closed/f; ! grep two d/closed/f; stat -c %a d d/closed | uniq | grep -x 500",
        before="mkdir -p d/closed; echo one > d/closed/f; chmod 500 d/closed d",
        said="'file_paths': ['d/closed/f']",
        redone="grep two d/closed/f; stat -c %a d d/closed | uniq | grep -x 500",
    ),
    "nothing": Taken("mkdir -p d/node_modules/x", "test -e d/node_modules/x", said="d stays"),
    "a folder whose unrecorded content went": Taken("mkdir -p d/node_modules/x", "test ! -e d", since="rm -r d/node_modules"),
    "a folder with the git file of a submodule": Taken(
        "rm -rf sub",
        "grep kept sub/f",
        before="mkdir sub; echo gitdir: ../elsewhere > sub/.git; echo kept > sub/f",
        sandbox=False,
    ),
    "a protected name among others": Taken(
        "rm .envrc a.txt",
        "test -e a.txt; test ! -e .envrc",
        before="echo mine > .envrc",
        said=".envrc",
        redone="test ! -e a.txt",
        sandbox=False,
    ),
    "a protected name alone": Taken(
        "rm .envrc a.txt", "test ! -e a.txt", before="echo mine > .envrc", path=".envrc", said="protected_path", sandbox=False
    ),
    "a file where a link came meanwhile": Taken(
        "echo new > d/x",
        "grep new ../outside/x",
        before="mkdir d ../outside; echo old > d/x; echo new > ../outside/x",
        since="rm -r d; ln -s ../outside d",
        said="changed_since",
    ),
    # Programs reach such a path step by step.
    "a path longer than the kernel takes": Taken(
        f"for i in $(seq 60); do mkdir {DEEP}; cd {DEEP}; done; echo deep > f",
        f"test ! -e {DEEP}",
        redone=f"{WALK}; grep deep f",
    ),
    "a file that has a set-id bit now": Taken(
        "echo two >> a.txt", "test ! -u a.txt", since="chmod 4644 a.txt", said="a.txt had a set-user-id or set-group-id bit"
    ),
    # A program that builds by times sees that the file is another one.
    "an old file": Taken("echo two >> a.txt", "test $(date -r a.txt +%Y) != 2001", before="touch -d 2001-01-01 a.txt"),
}


@pytest.mark.parametrize("name", TAKEN_BACK)
def test_a_command_is_taken_back(started, user_space, name):
    row = TAKEN_BACK[name]
    if not row.sandbox:
        set_sandbox(user_space, "off")
    shell(started, row.before)
    bash(started, "true")
    done = bash(started, row.command)
    shell(started, row.since)
    answer = undo(started, entry_id=done["change_id"], **({"file_path": row.path} if row.path else {}))
    assert row.said in str(answer)
    assert answer["success"] == (row.said not in ("changed_since", "protected_path") and name != "nothing"), answer
    shell(started, row.then)
    if row.redone:
        assert undo(started, entry_id=answer["entry_id"])["success"]
        shell(started, row.redone)


def test_where_case_is_ignored_and_inodes_go_by_names_a_command_is_taken_back(started, monkeypatch):
    """A file that only changed its case was removed: at its old name the file system found it, so that it seemed to be there."""
    real = {name: getattr(os, name) for name in ("stat", "open")}

    def folded(name, path, *args, dir_fd=None, **more):
        if dir_fd is not None:
            there = os.listdir(f"/proc/self/fd/{dir_fd}")
            path = next((one for one in there if one.casefold() == os.fsdecode(path).casefold()), path)
        found = real[name](path, *args, dir_fd=dir_fd, **more)
        if name == "open" or dir_fd is None:
            return found
        facts, times = found.__reduce__()[1]
        return os.stat_result((facts[0], zlib.crc32(os.fsencode(path)), *facts[2:]), times)

    shell(started, "mkdir d; echo x | tee b.txt > d/f")
    bash(started, "true")
    done = bash(started, "mv a.txt A.txt; mv d D; echo more >> b.txt; ln -s b.txt link")
    for name in real:
        monkeypatch.setattr(os, name, partial(folded, name))
    monkeypatch.setattr(beneath, "_UNABLE", (errno.ENOENT, *beneath._UNABLE))
    answer = undo(started, entry_id=done["change_id"])
    shell(started, "grep one a.txt; grep x d/f; grep -vz more b.txt; test ! -e A.txt -a ! -e D -a ! -L link")
    assert undo(started, entry_id=answer["entry_id"])["success"]
    shell(started, "grep one A.txt; grep x D/f; grep more b.txt; test -L link -a ! -e a.txt -a ! -e d")


def test_the_attributes_and_the_owner_of_a_file_that_is_there_stay(started):
    try:
        os.setxattr(started / "a.txt", "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")
    bash(started, "true")
    done = bash(started, "echo two >> a.txt; chmod 600 a.txt")
    os.chown(started / "a.txt", *([12345, 12345] if os.geteuid() == 0 else [-1, -1]))
    assert undo(started, entry_id=done["change_id"])["warnings"] == []
    bash(started, "true")
    assert undo(started, list=True)["total"] == 2
    info = (started / "a.txt").stat()
    assert ((started / "a.txt").read_text(), os.getxattr(started / "a.txt", "user.note")) == ("one\n", b"kept")
    assert (info.st_uid, info.st_mode & 0o777) == (os.geteuid() or 12345, 0o644)


def test_an_undo_lists_the_root_a_few_times_however_many_files_it_takes_back(started, monkeypatch):
    """It once listed it for each file: two thousand new files in the root took 13 seconds, ten thousand minutes."""
    done = bash(started, "seq -f n%g 300 | xargs touch")
    counted, listing = [], os.listdir
    monkeypatch.setattr(os, "listdir", lambda *where: counted.append(where) or listing(*where))
    assert undo(started, entry_id=done["change_id"])["success"]
    assert 0 < len(counted) < 30
    assert not (started / "n300").exists()


def test_what_is_left_out_is_said(started):
    done = bash(started, "truncate -s 1G large; echo x > small")
    assert list(done["not_recorded"]) == ["large"]
    assert set(done["changed"]) == {"large", "small"}
    refused = undo(started, entry_id=done["change_id"])
    assert refused["code"] == "changed_since"
    assert "large was left as a file whose content is not recorded" in refused["error"]
    assert undo(started, entry_id=done["change_id"], file_path="small")["success"]
    done = bash(started, "rm large")
    assert (done["changed"], done["not_recorded"]) == (["large"], {"large": "what it held before was not recorded"})
    assert undo(started)["code"] == "changed_since"


def test_a_link_in_the_place_of_a_folder_is_not_followed(started):
    shell(started, "mkdir ../outside; echo hunter2 > ../outside/secret")
    assert bash(started, "ln -s ../outside d")["changed"] == ["d"]
    shell(started, "echo changed > ../outside/secret")
    assert "changed" not in bash(started, "true")


def test_recording_can_be_off(started, user_space):
    configure(user_space, "record: {commands: false}\n")
    done = bash(started, "echo x > b.txt")
    assert ("changed" in done, "record.commands" in done["not_recorded"]["."]) == (False, True)


@pytest.mark.parametrize("name", ["known", "known.log", "contents.sqlite", "running.json"])
@pytest.mark.parametrize(
    "content", [b"", b"rubbish", b"{}", os.urandom(300), b"a3a6bf43 {}", b"%b{}" % sha256(b"{}").hexdigest().encode()]
)
def test_damage_of_what_is_stored_breaks_no_command(started, name, content):
    bash(started, "echo two > a.txt")
    (Path(user_dirs.state_dir(str(started))) / "tree" / name).write_bytes(content)
    assert bash(started, "echo three > a.txt")["success"]
    assert bash(started, "echo four > a.txt")["changed"] == ["a.txt"]
    assert undo(started)["success"]
    assert (started / "a.txt").read_text() == "three\n"


KILLED = """
import sys
import rye
order = {"command": "echo two > a.txt; touch there; sleep 60", "background": sys.argv[2] == "job"}
print(rye.execute("rye/bash/bash", order, project_path=sys.argv[1])["data"].get("job_id"), flush=True)
"""


def killed_command(project, user_space, kind):
    """Run a command, or a job, and kill the process that would have looked when it ends, while it runs."""
    words = [sys.executable, "-c", KILLED, str(project), kind]
    host = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True)
    until((project / "there").exists)
    pid = host.pid if kind == "command" else record(user_space, host.stdout.readline().strip())["supervisor"]
    os.kill(pid, signal.SIGKILL)
    host.communicate()
    (command,) = known_tree.running(known_tree.folder(str(project)))
    until(lambda: not running_commands.is_alive(str(project), command.token))


def first_look(project, way):
    if way in ("log", "diff"):
        return rye_command(way, cwd=project).stdout.decode()
    if way == "bash":
        assert "changed" not in bash(project, "true")
        return listed(project)[0]["file_path"]
    return undo(project, **({"list": True} if way == "list" else {"dry_run": True}))["output"]


@pytest.mark.parametrize("kind", ["command", "job"])
@pytest.mark.parametrize("way", ["log", "diff", "list", "undo", "bash"])
def test_the_first_look_after_a_kill_shows_what_the_command_changed_and_ends_it(started, user_space, kind, way):
    killed_command(started, user_space, kind)
    assert "a.txt" in first_look(started, way)
    (started / "mine.txt").write_text("by hand\n")
    (started / "a.txt").write_text("two\nby hand\n")
    other, entry = listed(started)
    assert (other["tool"], entry["tool"]) == (SOMEONE_ELSE, "rye/bash/bash")
    assert undo(started)["undone"] == entry["entry_id"]
    assert ((started / "mine.txt").read_text(), (started / "a.txt").read_text()) == ("by hand\n", "one\nby hand\n")
    assert not (started / "there").exists()


def test_what_a_look_had_recorded_when_it_was_killed_is_recorded_once(started, monkeypatch):
    with monkeypatch.context() as patch:
        # Not at the look before: it stores the tree, too, where the file was written just before the first look.
        store = known_tree.store
        patch.setattr(known_tree, "store", lambda *given: os._exit(9) if (started / "n").exists() else store(*given))
        if not os.fork():
            bash(started, "echo two >> a.txt; mkdir n")
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
    bash(started, "true")
    (entry,) = listed(started)
    assert (undo(started)["undone"], (started / "a.txt").read_text()) == (entry["entry_id"], "one\n")


def test_what_someone_does_after_an_edit_is_theirs_alone_also_after_an_undo_that_was_killed(started, monkeypatch):
    change = bash(started, "rm a.txt; echo two > b.txt")["change_id"]
    with monkeypatch.context() as patch:
        store = known_tree.store
        patch.setattr(known_tree, "store", lambda *given: os._exit(9) if (started / "a.txt").exists() else store(*given))
        if not os.fork():
            undo(started, entry_id=change)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
    for _ in range(2):
        assert call("edit_lines", started, file_path="a.txt", changes=[{"find": "one\n", "replace": "ours\none\n"}])["success"]
    (started / "a.txt").unlink()
    bash(started, "true")
    entries = listed(started)
    assert [entry["tool"].rpartition("/")[2] for entry in entries] == [SOMEONE_ELSE, "edit_lines", "edit_lines", "undo", "bash"]
    for entry in entries[:3]:
        assert undo(started, entry_id=entry["entry_id"])["success"], entry
    assert (started / "a.txt").read_text() == "one\n"


def test_a_socket_is_left_and_named_and_the_rest_comes_back(started):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(started / "old.sock"))
    bash(started, "true")
    text = (started / "a.txt").read_text()
    changed = bash(started, "rm old.sock; echo more >> a.txt; mkfifo pipe; mkdir n; " + SOCKET)
    assert sorted(changed["changed"]) == ["a.txt", "n", "n/new.sock", "old.sock", "pipe"]
    back = undo(started, entry_id=changed["change_id"])
    assert back["warnings"] == ["Left as they are: old.sock. They were sockets or devices, which no undo makes again."]
    assert ((started / "a.txt").read_text(), (started / "n").exists(), (started / "pipe").exists()) == (text, False, False)
    again = undo(started, entry_id=back["entry_id"])
    assert again["warnings"] == ["Left as they are: n/new.sock. They were sockets or devices, which no undo makes again."]
    assert ((started / "n").is_dir(), (started / "pipe").is_fifo()) == (True, True)
    only = bash(started, SOCKET + "; rm n/new.sock; " + SOCKET)
    gone = bash(started, "rm n/new.sock")
    assert only["success"]
    assert undo(started, entry_id=gone["change_id"])["code"] == "not_recorded"


# Not by binding one: Landlock's sandbox gives commands no sockets of this machine.
SOCKET = "python3 -c \"import os, stat; os.mknod('n/new.sock', stat.S_IFSOCK | 0o600)\""


def test_a_mode_that_someone_else_gave_an_edited_file_is_theirs_alone(started):
    call("write", started, file_path="a.txt", content="two\n")
    (started / "a.txt").chmod(0o755)
    bash(started, "true")
    theirs, ours = listed(started)[:2]
    assert (theirs["tool"], theirs["file_path"], ours["tool"]) == ("changed by someone else", "a.txt", "rye/file-system/write")
    assert undo(started, entry_id=theirs["entry_id"])["success"]
    assert ((started / "a.txt").read_text(), (started / "a.txt").stat().st_mode & 0o777) == ("two\n", 0o644)


def test_a_command_that_puts_another_folder_in_the_projects_place_is_told(started, user_space):
    set_sandbox(user_space, "off")
    changed = bash(started, f"mv {started} {started}-old; mkdir {started}; echo x > {started}/x")
    assert list(changed["not_recorded"]) == ["."]
    assert (started / "x").exists()


@contextmanager
def held(project):
    lock = known_tree.folder(str(project)) / "lock"
    with subprocess.Popen(["flock", "-x", lock, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        holder.stdin.write("held\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        yield holder
        holder.stdin.close()


def files(project):
    return {path: one for path, one in fingerprint(project).items() if not path.startswith(".ai")}


CALLS = {
    "write": ("rye/file-system/write", {"file_path": "a.txt", "content": "two\n"}),
    "edit several": ("rye/file-system/edit_lines", {"file_path": "a.txt", "changes": ["end+|two", "b.txt:end+|two"]}),
    "bash": ("rye/bash/bash", {"command": "echo two > a.txt"}),
    "undo": ("rye/file-system/undo", {}),
}


@pytest.mark.parametrize("name", CALLS)
def test_who_waits_for_the_tree_is_told_who_holds_it_or_ends_in_time(started, monkeypatch, name):
    tool, parameters = CALLS[name]
    for path in ("b.txt", "c.txt"):
        call("rye/file-system/write", started, file_path=path, content="one\n")
    call("rye/file-system/read", started, file_path="a.txt")
    before = files(started)
    with held(started) as holder:
        with monkeypatch.context() as patch:
            patch.setattr(known_tree, "PATIENCE", 0.3)
            refused = call(tool, started, **parameters)
        assert (refused["code"], refused.get("pid")) == ("locked", holder.pid), refused
        assert "flock" in refused["error"]
        ending = Cancellation()
        threading.Timer(0.5, ending.cancel).start()
        late = rye.execute(tool, parameters, project_path=started, options=CallOptions(cancellation=ending))
        assert late["code"] == "cancelled", late
        assert files(started) == before
    assert call(tool, started, **parameters)["success"]


def test_a_command_that_no_look_could_end_is_ended_by_the_next(started, monkeypatch):
    monkeypatch.setattr(known_tree, "PATIENCE_AT_END", 0.3)

    def hold(lock):
        until((started / "go").exists)
        fcntl.flock(lock, fcntl.LOCK_EX)
        (started / "held").touch()

    with (known_tree.folder(str(started)) / "lock").open("rb") as lock:
        thread = threading.Thread(target=hold, args=(lock,))
        thread.start()
        data = bash(started, "touch go; while ! test -e held; do sleep 0.01; done; echo two > a.txt")
        thread.join()
    assert "is held by" in data["not_recorded"]["."], data
    assert [one["tool"] for one in listed(started)] == ["rye/bash/bash"]
    (started / "a.txt").write_text("three\n")
    assert listed(started)[0]["tool"] == SOMEONE_ELSE
