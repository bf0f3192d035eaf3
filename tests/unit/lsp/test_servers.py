"""Which server a file gets: by suffix, by what is installed and new enough, and never one that the project brings."""

from __future__ import annotations

import os
import sys

import pytest

from rye.errors import RyeError
from rye.lsp import servers


@pytest.fixture
def bins(tmp_path, monkeypatch):
    """An empty folder that is all of PATH, and an interpreter with nothing beside it."""
    folder = tmp_path / "bins"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    return folder


def install(folder, name, says="", log=None):
    path = folder / name
    note = f"echo x >> '{log}'\n" if log else ""
    path.write_text(f"#!/bin/sh\n{note}echo '{says}'\n")
    path.chmod(0o755)
    return path


def configure(folder, text):
    path = folder / ".ai" / "config" / "lsp.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def code(project, path):
    with pytest.raises(RyeError) as caught:
        servers.server_for(str(project), path)
    return caught.value.code


def test_the_first_that_is_installed_is_taken(project, user_space, bins):
    assert code(project, "a.py") == "server_missing"
    install(bins, "ty")
    assert servers.server_for(str(project), "a.py").name == "ty"
    install(bins, "pyright-langserver")
    assert servers.server_for(str(project), "sub/A.PYI").name == "pyright"


@pytest.mark.parametrize(
    ("says", "name"),
    [
        ("Version 7.0.2", "tsc"),
        ("Version 10.1.0-dev", "tsc"),
        ("Version 5.9.3", "typescript-language-server"),
        ("what?", "typescript-language-server"),
    ],
)
def test_a_compiler_without_a_server_is_passed_over_and_asked_once(project, user_space, bins, tmp_path, says, name):
    install(bins, "tsc", says, tmp_path / "asked")
    install(bins, "typescript-language-server")
    for file in ("a.ts", "b.tsx"):
        assert servers.server_for(str(project), file).name == name
    assert (tmp_path / "asked").read_text() == "x\n"


def test_a_project_chooses_among_the_known(project, user_space, bins):
    install(bins, "ty")
    install(bins, "pyright-langserver")
    configure(project, "languages: {python: {server: ty}}\nservers: {ty: {command: [evil]}}\n")
    assert servers.server_for(str(project), "a.py").argv == (str(bins / "ty"), "server")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *[(f"languages: {{python: {{server: {wish}}}}}", "bad_config") for wish in ("evil", "[ty]", "{ty: 1}", "7")],
        ("languages: [python]", "bad_config"),
        ("languages: {python: ty}", "bad_config"),
        # A file that says nothing changes nothing.
        *[(text, "ty") for text in ("languages:", "languages: {python:}", "languages: {python: {}}")],
    ],
)
def test_a_projects_file_only_chooses(project, user_space, bins, text, found):
    install(bins, "ty")
    configure(project, f"{text}\n")
    if found == "ty":
        assert servers.server_for(str(project), "a.py").name == "ty"
        assert code(project, "a.unknown") == "no_language"
    else:
        assert code(project, "a.py") == found


def test_no_program_inside_the_project_is_taken_not_even_by_a_link(project, user_space, bins, monkeypatch):
    inside = project / "bin"
    inside.mkdir()
    install(inside, "gopls")
    (bins / "gopls").symlink_to(inside / "gopls")
    monkeypatch.setenv("PATH", os.pathsep.join([str(inside), str(bins), ".", ""]))
    monkeypatch.chdir(inside)
    assert code(project, "a.go") == "server_missing"
    # Through the project and out again it is as bad: the project can lead it elsewhere.
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    install(elsewhere, "gopls")
    (inside / "gopls").unlink()
    (inside / "gopls").symlink_to(elsewhere / "gopls")
    assert code(project, "a.go") == "server_missing"
    # Control: by its own folder it is taken.
    monkeypatch.setenv("PATH", str(elsewhere))
    assert servers.server_for(str(project), "a.go").name == "gopls"
