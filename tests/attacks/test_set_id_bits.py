"""A setuid file of the user gives its rights to no content that a model wrote: by an edit, a command, or an undo of either."""

from __future__ import annotations

import shutil
import stat

import pytest

from support.calling import call, undo
from support.shell_calls import bash

OWN = "one\ntwo\nthree\n"


def undone(project, number):
    return undo(project, entry_id=undo(project, list=True)["entries"][number]["entry_id"])


def write(project, content):
    return call("write", project, file_path="s", content=content)


WAYS = {
    "write": lambda project: write(project, "evil\n"),
    "undo of a mode, after a command wrote": lambda project: (bash(project, "chmod 644 s"), bash(project, "sed -i s/three/evil/ s"), undone(project, 1)),
    "undo of mode and text, after a command wrote": lambda project: (bash(project, "chmod 644 s; sed -i s/one/1/ s"), bash(project, "sed -i s/three/evil/ s"), undone(project, 1)),
    "undo of a mode, after an edit": lambda project: (bash(project, "chmod 644 s"), write(project, "evil\n"), undone(project, 1)),
    "a removed file made anew": lambda project: (bash(project, "rm s"), write(project, "evil\n"), undone(project, 1)),
}  # fmt: skip


@pytest.fixture
def file(project):
    file = project / "s"
    file.write_text(OWN)
    file.chmod(0o6755)
    assert file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    return file


@pytest.mark.parametrize("way", WAYS)
def test_no_content_of_a_model_is_setuid(project, file, way):
    as_it_was = shutil.copy(file, project / "was")
    WAYS[way](project)
    assert "evil" in file.read_text(), "control"
    assert not file.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    file.write_text("evil\n")
    shutil.copymode(as_it_was, file)
    assert file.stat().st_mode & stat.S_ISUID, "control: a plain copy of the mode gives the rights"
