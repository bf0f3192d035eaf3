"""The project folder: what opens, what is refused and how that is said, and where a new file may stand."""

import time

import pytest

from support.calling import call
from support.opening import BOTH_WAYS, open_by
from support.other_users import USERS, run_as


@pytest.fixture(params=BOTH_WAYS)
def project(request, monkeypatch, project):
    open_by(monkeypatch, request.param)
    (project / "src").mkdir()
    (project / "src/app.py").write_text("app")
    (project / "README.md").write_text("read me")
    (project.parent / "outside").mkdir()
    (project.parent / "outside/secret").write_text("secret")
    return project


def read(project, path):
    """The path and the text that are shown, or the code of the refusal."""
    found = call("read", project, file_path=path, line_ids="none")
    return (found["file_path"], found["output"]) if found["success"] else found["code"]


def write(project, path, **more):
    return call("write", project, file_path=path, content="é\n", **more).get("code")


def test_an_absolute_path_is_inside_by_identity_not_by_spelling(project):
    elsewhere = project.parent / "other name"
    elsewhere.symlink_to(project)
    assert read(project, f"{elsewhere}/src/app.py") == ("src/app.py", "app")
    (project.parent / "project-evil").mkdir()
    (project.parent / "project-evil/secret").write_text("secret")
    for path in (f"{project}-evil/secret", f"{project}/../outside/secret", "/etc/passwd", "//etc/passwd"):
        assert read(project, path) == "path_outside", path


REFUSED = {
    "bad_path": ["\0", "src/app.py\0.txt", r"src/\x00", "a\ud800b", "n" * 256, "n/" * 3000],
    "is_directory": ["src", ".", "src/"],
    "not_a_directory": ["README.md/x", "README.md/"],
    "path_outside": ["..", "../outside/secret"],
    "file_not_found": [
        *("nope", "src/nope/deeper", "~/secret", "$HOME/x", "file:///etc/passwd"),
        *("C:\\Windows\\win.ini", "\\\\host\\share"),
    ],
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_read_is_refused(project, code):
    for path in REFUSED[code]:
        assert read(project, path) == code, path


def test_links(project):
    links = f"in src, file src/app.py, out ../outside/secret, abs /etc/passwd, absin {project}/README.md, loop loop"
    for link in f"{links}, new src/new.txt, dangleout ../new".split(", "):
        name, target = link.split()
        (project / name).symlink_to(target)
    assert read(project, "in/app.py") == read(project, "file") == ("src/app.py", "app")
    # An absolute one that stays inside is a link like any other.
    assert read(project, "absin") == ("README.md", "read me")
    for name, code in (("out", "path_outside"), ("abs", "path_outside"), ("loop", "symlink_loop"), ("new", "file_not_found")):
        assert read(project, name) == code, name
    assert "absolute symbolic link" in call("read", project, file_path="abs")["error"]
    assert (write(project, "new"), (project / "src/new.txt").read_text()) == (None, "é\n")
    assert (write(project, "file"), (project / "src/app.py").read_text()) == (None, "é\n")
    assert (project / "file").is_symlink()
    for path in ("dangleout", "../new", "/etc/new", "src/../../new"):
        assert write(project, path) == "path_outside"
    # Folders are made only for a file that comes.
    assert write(project, "x/y/z/file") is None
    assert write(project, "p/q/file", encoding="ascii") == "unencodable"
    assert not (project / "p").exists()


def test_a_path_longer_than_any_is_refused_before_it_costs_anything(project):
    started = time.process_time()
    # To look at every prefix of such a path takes the square of its length.
    for path in ("/" + "q/" * 200_000, "q/" * 200_000, "\\" * 400_000, "/" + "\\" * 32_000, "/" + "q/" * 4_000):
        for tool, more in (("read", {}), ("write", {"content": "x"})):
            answer = call(tool, project, file_path=path, **more)
            assert (answer["success"], len(answer["error"]) < 40_000) == (False, True)
    assert time.process_time() - started < 8


READ_ONLY = """
import json, os, pathlib, sys
base = pathlib.Path(sys.argv[1])
os.environ["USER_SPACE"] = f"{base}/home"
import rye

def call(tool, **parameters):
    answer = rye.execute(f"rye/file-system/{tool}", parameters, project_path=base / "project")
    print(json.dumps([answer.get("code"), answer["data"].get("output"), answer.get("error")]))
    return answer

for _ in range(2):
    shown = call("read", file_path="a.txt")["data"]["output"]
call("edit_lines", file_path="a.txt", changes=[{"line_id": shown.split("LID:")[1][:6], "new_content": "x"}])
call("write", file_path="sub/new.txt", content="x"), call("undo"), call("read", file_path="closed.txt")
(index,) = (base / "home/.ai/state").glob("*/cache/tools/read/line_index/*.json")
print(json.dumps([sorted(os.listdir(base / "project")), index.parents[4].stat().st_mode & 0o777]))
"""


def test_a_project_that_this_user_cannot_write_is_read_with_ids_and_edits_say_why_not(tmp_path):
    def prepare(base):
        (base / "project").mkdir()
        (base / "project/a.txt").write_text("one\ntwo\n")
        (base / "project/closed.txt").touch(0)
        (base / "project").chmod(0o555)

    (tmp_path / "script.py").write_text(READ_ONLY)
    first, again, *others, left = run_as(USERS[-1], [tmp_path / "script.py"], prepare=prepare)
    assert (first[0], "LID:" in first[1], again) == (None, True, first)
    assert [code for code, *_ in others] == ["permission_denied", "permission_denied", "nothing_to_undo", "permission_denied"]
    assert "a.txt" in others[0][2]
    assert left == [["a.txt", "closed.txt"], 0o700]
