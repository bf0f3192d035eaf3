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
def test_a_compiler_without_a_server_is_passed_over(project, user_space, bins, says, name):
    install(bins, "tsc", says)
    install(bins, "typescript-language-server")
    assert servers.server_for(str(project), "a.ts").name == name


def test_the_version_is_asked_for_once(project, user_space, bins, tmp_path):
    install(bins, "tsc", "Version 7.1.0", tmp_path / "asked")
    for _ in range(3):
        assert servers.server_for(str(project), "a.tsx").name == "tsc"
    assert (tmp_path / "asked").read_text() == "x\n"


def test_a_project_chooses_among_the_known(project, user_space, bins):
    install(bins, "ty")
    install(bins, "pyright-langserver")
    configure(project, "languages: {python: {server: ty}}\nservers: {ty: {command: [evil]}}\n")
    assert servers.server_for(str(project), "a.py").argv == (str(bins / "ty"), "server")


@pytest.mark.parametrize("wish", ["evil", "[ty]", "{ty: 1}", "7"])
def test_a_wish_for_anything_else_is_an_error(project, user_space, bins, wish):
    configure(project, f"languages: {{python: {{server: {wish}}}}}\n")
    assert code(project, "a.py") == "bad_config"


@pytest.mark.parametrize("text", ["languages: [python]", "languages: {python: ty}"])
def test_a_project_file_of_another_shape_is_an_error(project, user_space, bins, text):
    configure(project, text)
    assert code(project, "a.py") == "bad_config"


@pytest.mark.parametrize("text", ["languages:", "languages: {python:}", "languages: {python: {}}"])
def test_a_project_file_that_says_nothing_changes_nothing(project, user_space, bins, text):
    install(bins, "ty")
    configure(project, text)
    assert servers.server_for(str(project), "a.py").name == "ty"


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


def test_an_unknown_suffix_names_the_known(project, user_space):
    assert code(project, "a.unknown") == "no_language"
