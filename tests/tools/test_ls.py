"""ls as a model calls it."""

import os
import socket

from support.calling import done, refused


def test_folders_first_then_files_by_name(project):
    for name in ("src", "Tests", ".github", ".git", "node_modules"):
        (project / name).mkdir()
    for name in ("README.md", "a.py", ".env"):
        (project / name).write_text("x")
    data = done("ls", project)
    assert data["output"] == (
        ".github/\nTests/\nsrc/\n.env\nREADME.md\na.py\n[left out by the ignore list: node_modules; no_ignore=true shows them]"
    )
    assert data["entries"][0] == {"name": ".github", "type": "directory"}
    assert (data["entries"][-1], data["ignored"]) == ({"name": "a.py", "type": "file"}, [".git", "node_modules"])
    assert (data["count"], data["total"], data["truncated"]) == (6, 6, False)
    assert "node_modules/" in done("ls", project, no_ignore=True)["output"]


def test_links_and_special_files_are_shown_as_what_they_are(project):
    (project / "in").symlink_to("a b")
    (project / "out").symlink_to("/etc")
    os.mkfifo(project / "pipe")
    with socket.socket(socket.AF_UNIX) as sock:
        here = os.open(".", os.O_PATH)
        os.chdir(project)
        sock.bind("sock")
        os.chdir(here)
        os.close(here)
    data = done("ls", project)
    assert data["output"] == "in -> a b\nout -> /etc\npipe [fifo]\nsock [socket]"
    assert data["entries"][1] == {"name": "out", "type": "symlink", "target": "/etc"}
    refused("path_outside", "ls", project, path="out")
    refused("not_a_directory", "ls", project, path="pipe")


def test_size_and_time(project):
    (project / "a").write_text("x" * 1_234)
    os.utime(project / "a", (0, 0))
    (project / "b").mkdir()
    data = done("ls", project, long=True)
    assert data["output"].split("\n")[1] == "          1,234  1970-01-01T00:00:00Z  a"
    assert data["entries"][1] == {"name": "a", "type": "file", "size": 1_234, "modified": "1970-01-01T00:00:00Z"}


def test_a_tree_with_limits_for_each_folder(project):
    (project / "src/lib/deep").mkdir(parents=True)
    (project / "many").mkdir()
    for number in range(130):
        (project / "many" / f"{number:03}").touch()
    (project / "src/a.py").touch()
    data = done("ls", project, depth=3)
    lines = data["output"].split("\n")
    assert (lines[:2], lines[101]) == (["many/", "  000"], '  … 30 more: ls(path="many")')
    assert lines[102:] == ["src/", "  lib/", "    deep/", "  a.py"]
    assert data["entries"][-1] == {"name": "src/a.py", "type": "file"}
    assert done("ls", project, depth=2)["output"].split("\n")[102:] == ["src/", "  lib/", "  a.py"]


def test_empty_missing_and_outside_and_paging(project):
    assert done("ls", project)["output"] == "[empty directory]"
    for path, code in (("nowhere", "file_not_found"), ("..", "path_outside"), ("/etc", "path_outside")):
        refused(code, "ls", project, path=path)
    for number in range(1_203):
        (project / f"{number:04}").touch()
    assert done("ls", project)["output"].endswith(
        "[tool_result: 500 of 1203 entries; 703 more omitted. Call ls(offset=501) to see more.]"
    )
    refused("bad_offset", "ls", project, offset=1_204)
    (project / "sub").mkdir()
    assert done("ls", project, depth=2, offset=1_204)["entries"] == [{"name": "1202", "type": "file"}]
