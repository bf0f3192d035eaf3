"""Calls with a key take effect once, however often and wherever they are made or cut off."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import rye
from rye.call.context import CallOptions
from rye.config import user_dirs
from support.signed_tools import put_yaml
from support.waiting import until

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
EDIT, WRITE, BASH, UNDO = "rye/file-system/edit_lines", "rye/file-system/write", "rye/bash/bash", "rye/file-system/undo"
APPEND = {"file_path": "a.txt", "changes": ["end+|more"]}


def once(project, item_id, parameters, key="k", **options):
    return rye.execute(item_id, parameters, project_path=project, options=CallOptions(key=key, **options))


def text(project, name="a.txt"):
    return (project / name).read_text()


def fresh(project):
    for name in ("a.txt", "b.txt"):
        (project / name).write_text("one\n")
        rye.execute("rye/file-system/read", {"file_path": name}, project_path=project)
    return project


@pytest.fixture
def files(project):
    return fresh(project)


def test_an_edit_with_a_key_is_made_once_and_its_repetition_names_the_change(files):
    first, again = once(files, EDIT, APPEND), once(files, EDIT, APPEND)
    assert (first["status"], again["status"]) == ("success", "success")
    assert text(files) == "one\nmore\n"
    assert (first["metadata"]["ran"], again["metadata"]["ran"]) == (True, False)
    assert (again["data"]["repeated"], again["data"]["entry_id"]) == (True, first["data"]["entry_id"])
    assert [one["file_path"] for one in again["data"]["files"]] == ["a.txt"]
    assert "Nothing was written again" in again["data"]["output"]


def test_control_without_a_key_and_under_another_one_it_is_made_again(files):
    for _ in range(2):
        rye.execute(EDIT, APPEND, project_path=files)
    assert text(files) == "one\nmore\nmore\n"
    once(files, EDIT, APPEND, "k1")
    once(files, EDIT, APPEND, "k2")
    assert text(files).count("more") == 4
    # A refused edit is no effect, and can be made later under its key.
    wanted = {"file_path": "later.txt", "changes": [{"find": "two", "replace": "three"}]}
    assert once(files, EDIT, wanted)["status"] == "error"
    (files / "later.txt").write_text("two\n")
    assert once(files, EDIT, wanted)["status"] == "success"
    assert text(files, "later.txt") == "three\n"
    # Reading is done each time, and leaves no record.
    for content in ("two\n", "three\n"):
        (files / "a.txt").write_text(content)
        assert content[:-1] in once(files, "rye/file-system/read", {"file_path": "a.txt", "line_ids": "none"})["data"]["output"]


def test_control_a_change_by_others_between_two_named_edits_is_refused(files):
    assert once(files, EDIT, APPEND)["status"] == "success"
    (files / "a.txt").write_text("one\nother\n")
    assert (
        once(files, EDIT, {"file_path": "a.txt", "changes": [{"find": "one", "replace": "two"}]}, "k2")["code"] == "stale_file"
    )
    assert text(files) == "one\nother\n"


def test_several_files_a_written_file_and_an_undo_are_once_too(files):
    both = {"file_path": "a.txt", "changes": ["end+|more", "b.txt:end+|more"]}
    made = once(files, EDIT, both, "both")
    again = once(files, EDIT, both, "both")
    assert text(files) == text(files, "b.txt") == "one\nmore\n"
    assert again["data"]["batchId"] == made["data"]["batchId"]
    assert [one["file_path"] for one in again["data"]["files"]] == ["a.txt", "b.txt"]
    once(files, WRITE, {"file_path": "c.txt", "content": "x\n"}, "write")
    (files / "c.txt").write_text("someone else\n")
    assert once(files, WRITE, {"file_path": "c.txt", "content": "x\n"}, "write")["data"]["repeated"]
    assert text(files, "c.txt") == "someone else\n"
    for _ in range(2):
        assert once(files, UNDO, {"batchId": made["data"]["batchId"]}, "undo")["status"] == "success"
    assert text(files) == text(files, "b.txt") == "one\n"


def test_a_command_that_ended_is_answered_with_its_result(files):
    counted = {"command": "echo x >> a.txt; echo said; exit 3"}
    first, again = once(files, BASH, counted), once(files, BASH, counted)
    assert text(files) == "one\nx\n"
    assert first["data"]["exit_code"] == again["data"]["exit_code"] == 3
    assert (again["data"]["output"], again["data"]["repeated"]) == (first["data"]["output"], True)
    assert (again["status"], again["metadata"]["ran"]) == ("error", False)
    # One that was refused before it ran is not one whose end nobody saw.
    put_yaml(files, "my/rest", "rye/core/runtimes/http_runtime", tool_type="http", config={"url": "https://a.example/"})
    assert [once(files, "my/rest", {}, "refused")["code"] for _ in range(2)] == ["permission_missing"] * 2


def test_a_nested_call_has_no_key_of_its_own(files):
    inner = {"item_type": "tool", "item_id": EDIT, "parameters": APPEND}
    assert once(files, "rye/primary-tools/rye_execute", inner)["status"] == "success"
    [entry] = Path(user_dirs.state_dir(str(files)), "journal").glob("*.json")
    assert b'"key"' not in entry.read_bytes()


def test_what_a_command_changed_is_not_recorded_under_the_key_of_an_edit_beside_it(files):
    started = rye.execute(BASH, {"command": "echo x > made; sleep 1000", "background": True}, project_path=files)
    until((files / "made").exists)
    assert once(files, EDIT, APPEND, "beside")["data"].get("repeated") is None
    again = once(files, EDIT, APPEND, "beside")
    assert [one["file_path"] for one in again["data"]["files"]] == ["a.txt"]
    ended = rye.execute("rye/bash/job", {"action": "end", "job_id": started["data"]["job_id"]}, project_path=files)
    assert ended["status"] == "success", ended


def test_a_key_that_cannot_be_one_and_without_a_place_for_the_record_nothing_is_run(files):
    for key in ("x" * 201, "a\nb"):
        assert once(files, EDIT, APPEND, key)["code"] == "bad_key"
    state = Path(user_dirs.state_dir(str(files)))
    for name, calls in (("calls", [(EDIT, APPEND), (BASH, {"command": "echo x >> a.txt"})]), ("journal", [(EDIT, APPEND)])):
        (state / name).write_text("")
        for item_id, parameters in calls:
            assert once(files, item_id, parameters)["code"] == "state_unwritable"
        (state / name).unlink()
    assert text(files) == "one\n"
    assert once(files, EDIT, APPEND, "x" * 200)["status"] == "success"


@pytest.mark.parametrize("harm", ["lost", "cut", "changed"])
def test_a_damaged_index_of_the_journal_hides_no_call(files, harm):
    once(files, EDIT, APPEND, "before")
    once(files, EDIT, APPEND, "k")
    index = Path(user_dirs.state_dir(str(files)), "journal", "index")
    data = index.read_bytes()
    damaged = {"lost": None, "cut": data[:-30], "changed": data.replace(b'"k"', b'"j"')}[harm]
    index.unlink() if damaged is None else index.write_bytes(damaged)
    assert once(files, EDIT, APPEND, "k")["data"]["repeated"]
    assert text(files).count("more") == 2


def test_attempts_at_the_same_time_take_effect_once(files):
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: once(files, EDIT, APPEND), range(8))]
    assert [one["status"] for one in answers] == ["success"] * 8
    assert sum(one["metadata"]["ran"] for one in answers) == 1
    assert text(files) == "one\nmore\n"


def kill_at(nth):
    """Have this process killed at its n-th file operation from now on."""
    seen = 0

    def hook(event, _arguments):
        nonlocal seen
        seen += event == "open" or event.startswith(("os.", "fcntl."))
        if seen == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def killed_everywhere(root, changes, key):
    """What became of edits that were killed at each file operation and made again: (killed, status, times made)."""
    rows = []
    # As models edit: without a key a repeated edit is refused or made twice, with one it is neither.
    wanted = {"file_path": "a.txt", "changes": changes, "on_stale": "rebase"}
    # What is imported by the first call is no place to be killed at.
    assert once(root, EDIT, wanted, "warm")["status"] == "success"
    while sum(not killed for killed, *_ in rows) < 3:
        # One of its own, so that no torn record of another kill is looked at.
        project = root / str(len(rows))
        project.mkdir()
        fresh(project)
        if not (child := os.fork()):
            kill_at(len(rows) + 1)
            once(project, EDIT, wanted, key)
            os._exit(0)
        killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        status = once(project, EDIT, wanted, key)["status"]
        rows.append((killed, status, [text(project, name).count("more") for name in ("a.txt", "b.txt")]))
        if key:
            following = {"file_path": "a.txt", "changes": [{"find": "one", "replace": "two"}], "on_stale": "refuse"}
            assert once(project, EDIT, following, "following")["status"] == "success", rows
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "made"), [(["end+|more"], [1, 0]), (["end+|more", "b.txt:end+|more"], [1, 1])], ids=["one file", "two files"]
)
def test_killed_anywhere_and_made_again_an_edit_took_effect_once(files, changes, made):
    rows = killed_everywhere(files, changes, "k")
    assert [row for row in rows if row[1:] != ("success", made)] == []
    assert sum(killed for killed, *_ in rows) > 30, "control: it was killed at many places"


PROGRAM = """
import json, sys, rye
from rye.call.context import CallOptions
done = rye.execute(*json.loads(sys.argv[2]), project_path=sys.argv[1], options=CallOptions(key="k"))
assert done["status"] == "success", done
"""


def test_a_command_that_was_cut_off_is_unknown_and_repeated_only_where_that_is_allowed(files):
    waits = {"command": "echo x >> a.txt; while test -e b.txt; do sleep 0.05; done"}
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, str(files), json.dumps([BASH, waits])])
    until(lambda: text(files) == "one\nx\n")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    (files / "b.txt").unlink()
    refused = once(files, BASH, waits)
    assert (refused["code"], refused["metadata"]["ran"]) == ("outcome_unknown", False)
    assert text(files) == "one\nx\n"
    assert once(files, BASH, waits, repeat=True)["status"] == "success"
    assert text(files) == "one\nx\nx\n"
    for repeat in (False, True):
        assert once(files, BASH, waits, repeat=repeat)["data"]["repeated"]
    assert text(files) == "one\nx\nx\n"


@needs_strace
@pytest.mark.parametrize("changes", [["end+|more"], ["end+|more", "b.txt:end+|more"]], ids=["one file", "two files"])
def test_the_entries_of_a_named_call_are_durable_before_the_record_of_its_start_goes(files, changes, tmp_path):
    order = json.dumps([EDIT, {"file_path": "a.txt", "changes": changes}])
    trace = ["strace", "-f", "-y", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=fsync,rename,unlink"]
    subprocess.run([*trace, sys.executable, "-c", PROGRAM, str(files), order], check=True)
    lines = (tmp_path / "trace").read_text().splitlines()

    def at(pattern):
        return [number for number, line in enumerate(lines) if re.search(pattern, line)]

    named = at(r'rename\(.*/journal/.*", ".*/journal/[0-9a-f]{15}\.json"')
    listed = at(r"fsync\(\d+<.*/journal/index>")
    assert len(named) == len(changes)
    assert listed
    assert listed[-1] < named[0], "the row is durable before its entry is found"
    if len(changes) > 1:
        written = at(r"fsync\(\d+<.*/journal/\.[^/]*\.new[^/]*>")
        (gone,) = at(r'unlink\(".*/commits/.*\.done"')
        synced = [number for number in at(r"fsync\(\d+<.*/journal>") if named[-1] < number < gone]
        assert len(written) == len(changes)
        assert written[-1] < named[0]
        assert synced
