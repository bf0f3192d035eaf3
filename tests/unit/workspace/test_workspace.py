"""The project folder: what opens, what is refused and how that is said, and where a new file may stand."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pytest

import rye
from rye.call import context
from rye.errors import DeadlineError, WorkspaceError
from rye.fs import beneath
from rye.workspace.workspace import Workspace

ROOT = os.geteuid() == 0


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.skipif(not beneath._kernel_can(), reason="no openat2")), False],
    ids=["openat2", "walk"],
)
def ws(request, monkeypatch, project):
    monkeypatch.setattr(beneath, "_available", request.param)
    (project / "src").mkdir()
    (project / "src/app.py").write_text("app")
    (project / "README.md").write_text("read me")
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    with Workspace(str(project)) as held:
        yield held


def refusal(call, *args, **options):
    with pytest.raises(WorkspaceError) as caught, call(*args, **options):
        pass
    assert caught.value.message
    assert caught.value.hint, caught.value.code
    return caught.value


def read(ws, path):
    with ws.file(path) as file:
        return file.read()


def test_an_absolute_path_is_inside_by_identity_not_by_spelling(ws, project):
    elsewhere = project.parent / "other name"
    elsewhere.symlink_to(project)
    assert read(ws, f"{elsewhere}/src/app.py") == b"app"
    (project.parent / "project-evil").mkdir()
    (project.parent / "project-evil/secret").write_text("secret")
    assert refusal(ws.file, f"{project}-evil/secret").code == "path_outside"
    assert refusal(ws.file, f"{project}/../outside/secret").code == "path_outside"
    assert refusal(ws.file, "/etc/passwd").code == "path_outside"
    assert refusal(ws.file, "//etc/passwd").code == "path_outside"


REFUSED = {
    "bad_path": ["", "\0", "src/app.py\0.txt", r"src/\x00", "a\ud800b", "n" * 256, "n/" * 3000],
    "is_directory": ["src", ".", "src/"],
    "not_a_directory": ["README.md/x", "README.md/"],
    "path_outside": ["..", "../outside/secret"],
    "file_not_found": [
        "nope",
        "src/nope/deeper",
        "~/secret",
        "$HOME/x",
        "file:///etc/passwd",
        "C:\\Windows\\win.ini",
        "\\\\host\\share",
    ],
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_next_step(ws, code):
    for path in REFUSED[code]:
        assert refusal(ws.file, path).code == code, path


def test_links(ws, project):
    for name, target in {
        "in": "src",
        "file": "src/app.py",
        "out": "../outside/secret",
        "abs": "/etc/passwd",
        "absin": str(project / "README.md"),
        "loop": "loop",
        "new": "src/new.txt",
    }.items():
        (project / name).symlink_to(target)
    with ws.file("in/app.py") as file:
        assert file.shown == "src/app.py"
    assert read(ws, "file") == b"app"
    assert refusal(ws.file, "out").code == "path_outside"
    err = refusal(ws.file, "abs")
    assert err.code == "path_outside"
    assert "absolute symbolic link" in err.message
    # One that stays inside is a link like any other.
    with ws.file("absin") as file:
        assert file.shown == "README.md"
    assert refusal(ws.file, "loop").code == "symlink_loop"
    assert refusal(ws.file, "new").code == "file_not_found"
    with ws.place("new") as place:
        assert place.shown == "src/new.txt"
        assert place.stat is None


def test_a_place_makes_parents_only_for_a_file_that_comes(ws, project):
    with ws.place("x/y/z/file", create_parents=True) as place:
        assert place.stat is None
        assert (project / "x/y/z").is_dir()
    with pytest.raises(RuntimeError), ws.place("p/q/file", create_parents=True):
        raise RuntimeError
    assert not (project / "p").exists()
    assert refusal(ws.place, "no/parents").code == "file_not_found"


def test_check_confines_what_does_not_exist_yet(ws, project):
    (project / "dangleout").symlink_to("../new")
    (project / "dangle").symlink_to("src/new")
    for path in ("new.txt", "deep/new.txt", "dangle", "src", "."):
        ws.check(path)
    for path in ("dangleout", "../new", "/etc/new", "src/../../new"):
        with pytest.raises(WorkspaceError) as caught:
            ws.check(path)
        assert caught.value.code == "path_outside"


def test_a_file_above_the_limit_is_not_read(ws, project):
    with (project / "huge").open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(WorkspaceError) as caught:
        read(ws, "huge")
    assert caught.value.code == "file_too_large"
    assert caught.value.hint


def test_after_the_deadline_nothing_opens(ws):
    limit = context.Deadline(10)
    with context.using(deadline=limit):
        assert read(ws, "README.md")
        limit.expire()
        with pytest.raises(DeadlineError):
            read(ws, "README.md")
        with pytest.raises(DeadlineError), ws.place("new"):
            pass


def test_a_project_must_be_a_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for name in ("missing", "file"):
        with pytest.raises(WorkspaceError) as caught:
            Workspace(str(tmp_path / name))
        assert caught.value.code == "project_not_found"


def test_refusals_leak_no_descriptors(ws, project):
    (project / "dangle").symlink_to("src/new")
    (project / "out").symlink_to("../outside")
    os.mkfifo(project / "pipe")
    before = os.listdir("/proc/self/fd")
    for path in ("README.md", "nope", "..", "out/secret", "pipe", "src", "dangle", "a/b/c", "n" * 300, "\0"):
        for call in (ws.file, ws.place):
            try:
                with call(path):
                    pass
            except WorkspaceError:
                continue
        try:
            ws.check(path)
        except WorkspaceError:
            continue
    assert os.listdir("/proc/self/fd") == before


# --- a project that cannot be written ---

READ_ONLY = """
import json, os, sys
project, warm, user, runtime = sys.argv[1:]
sys.path.insert(0, runtime)
import rye

def calls(root, space):
    os.environ["USER_SPACE"] = space
    def call(tool, **parameters):
        return rye.execute(f"rye/file-system/{tool}", parameters, project_path=root)
    first = call("read", file_path="a.txt")
    again = call("read", file_path="a.txt")
    assert "output" in first["data"], first
    name = first["data"]["output"].split("LID:")[1][:6]
    edit = call("edit_lines", file_path="a.txt", changes=[{"line_id": name, "new_content": "x"}])
    made = call("write", file_path="sub/new.txt", content="x")
    return [first, again, edit, made, call("undo"), call("read", file_path="closed.txt")]

# The interpreter's own files may be root's alone: all that is needed is loaded before the rights go.
calls(warm, warm + "/home")
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps(calls(project, user)))
"""


@pytest.fixture
def open_to_all():
    """A folder that other users reach; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        yield Path(folder)


def test_a_read_only_project_is_read_with_ids_and_edits_say_why_not(open_to_all):
    project, user, warm = (open_to_all / name for name in ("project", "home", "warm"))
    for folder, mode in ((user, 0o777), (warm, 0o755), (project, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    for folder in (warm, project):
        (folder / "a.txt").write_text("one\ntwo\n")
    (project / "closed.txt").write_text("closed")
    (project / "closed.txt").chmod(0)
    project.chmod(0o555)
    runtime = Path(rye.__file__).parents[1]
    command = [sys.executable, "-c", READ_ONLY, project, warm, user, runtime]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/")
    project.chmod(0o755)
    assert done.returncode == 0, done.stderr
    first, again, edit, made, undo, closed = json.loads(done.stdout)
    assert first["status"] == again["status"] == "success", first
    assert first["data"]["output"] == again["data"]["output"]
    assert "LID:" in first["data"]["output"]
    assert (edit["code"], made["code"], undo["code"]) == ("permission_denied", "permission_denied", "nothing_to_undo")
    assert closed["code"] == "permission_denied"
    assert "a.txt" in edit["error"]
    assert sorted(os.listdir(project)) == ["a.txt", "closed.txt"]
    assert (project / "a.txt").read_text() == "one\ntwo\n"
    (folder,) = (user / ".ai/state").glob("*/cache/tools/read/line_index")
    assert list(folder.glob("*.json"))
    assert stat.S_IMODE(folder.parents[3].stat().st_mode) == 0o700


def test_a_path_longer_than_any_is_refused_before_it_costs_anything(ws):
    started = time.process_time()
    # To look at every prefix of such a path takes the square of its length.
    for path in ("/" + "q/" * 200_000, "q/" * 200_000, "\\" * 400_000, "/" + "\\" * 32_000, "/" + "q/" * 4_000):
        for refused in (partial(ws.check, path), partial(ws.open_file, path)):
            with pytest.raises(WorkspaceError) as caught:
                refused()
            assert len(str(caught.value)) < 40_000
    assert time.process_time() - started < 8
