"""docPaths lead to one file each, inside the project, or are refused."""

from __future__ import annotations

import os
import subprocess

import pytest

from rye.errors import RyeError
from rye.patches.patch_batches import DocPaths
from rye.workspace.workspace import Workspace


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "Repo"
    for path in ("Src/Main.py", "readme", "repo/inner.txt"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x\n")
    return folder


def resolve(project, doc_path):
    with Workspace(str(project)) as ws:
        return DocPaths(ws).path_of(doc_path)


def refused(project, doc_path):
    with pytest.raises(RyeError) as caught:
        resolve(project, doc_path)
    return caught.value


@pytest.mark.parametrize(
    ("doc_path", "path"),
    [
        ("src/main.py", "Src/Main.py"),
        ("repo/src/main.py", "Src/Main.py"),
        ("readme", "readme"),
        ("repo/readme", "readme"),
        ("repo/inner.txt", "repo/inner.txt"),
        ("repo/repo/inner.txt", "repo/inner.txt"),
    ],
)
def test_the_file_that_is_meant(project, doc_path, path):
    assert resolve(project, doc_path) == path


@pytest.mark.parametrize("name", ["Größe.TXT", "ÄÖ\u0130.c", "a\u2028B", "x\\X", "tab\tX"])
def test_any_name_has_a_doc_path(project, name):
    from rye.fs import names

    (project / name).write_bytes(b"")
    shown = names.show(name.encode())
    assert resolve(project, shown.lower()) == shown


def test_a_name_that_is_not_utf_8(project):
    with open(bytes(project) + b"/Caf\xe9", "wb"):
        pass
    assert resolve(project, "caf\\xe9") == "Caf\\xe9"


def test_two_that_fit_are_both_named(project):
    (project / "src").mkdir()
    (project / "src/main.PY").write_bytes(b"")
    err = refused(project, "src/main.py")
    assert err.code == "ambiguous_doc_path"
    assert "names 2 files: Src/Main.py, src/main.PY." in err.message


def test_two_links_to_one_file_are_one(project):
    (project / "src").symlink_to("Src")
    assert resolve(project, "src/main.py") in ("Src/Main.py", "src/Main.py")


@pytest.mark.parametrize(
    "doc_path", ["Src/Main.py", "src/", "/readme", "", ".", "..", "../repo/readme", "src/../readme", "a\0"]
)
def test_no_doc_path(project, doc_path):
    assert refused(project, doc_path).code == "malformed_doc_path"


def test_a_missing_one_is_told_with_its_neighbours(project):
    err = refused(project, "src/mian.py")
    assert err.code == "file_not_found"
    assert "Did you mean src/main.py?" in err.hint or "src/Main.py" in err.hint
    assert refused(project, "src").code == "file_not_found"


def test_what_lies_outside_is_not_looked_at(project, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_bytes(b"")
    (project / "way").symlink_to("../secret")
    assert refused(project, "way/file").code == "file_not_found"
    assert "secret" not in str(refused(project, "way/fiel"))


def test_links_beside_folders_of_their_name_cost_no_more_than_the_folders(project):
    levels, folder = 18, project
    for _ in range(levels):
        (folder / "deep").mkdir()
        (folder / "DEEP").symlink_to("deep")
        folder = folder / "deep"
    (folder / "f").write_bytes(b"")
    listed = []

    def count(path):
        listed.append(path)
        return names_in(path)

    names_in, os.listdir = os.listdir, count
    try:
        assert resolve(project, "deep/" * levels + "f") == "deep/" * levels + "f"
        assert refused(project, "deep/" * levels + "g").code == "file_not_found"
    finally:
        os.listdir = names_in
    # Way by way there would be more than 2**18.
    assert levels < len(listed) < 4 * levels


def test_a_tree_deeper_than_the_recursion_limit(project):
    levels = 1_200
    fd = os.open(project, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=fd))
    os.close(fd)
    assert resolve(project, "d/" * levels + "f") == "d/" * levels + "f"
    subprocess.run(["rm", "-rf", project / "d"], check=True)
