"""`rye serve`: what it refuses before it listens, and what its help says of who is let in."""

from __future__ import annotations

import sys

from rye.cli.main import main


def test_a_weak_token_is_refused(project, monkeypatch, capfd):
    monkeypatch.chdir(project)
    monkeypatch.setenv("RYE_SANDBOX_TOKEN", "short")
    assert main(["serve", "--agent-sandbox", "--port", "0"]) == 2
    assert "RYE_SANDBOX_TOKEN holds no usable token" in capfd.readouterr().err


def test_without_the_server_s_packages_it_says_what_to_install(project, monkeypatch, capfd):
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "-packages" not in folder])
    assert main(["serve", "--agent-sandbox"]) == 2
    said = capfd.readouterr().err
    assert "extra `mcp`" in said
    assert "pip install" in said


def test_the_help_says_who_is_let_in(capfd):
    assert main(["serve", "--help"]) == 0
    said = capfd.readouterr().out
    assert "listens on this machine alone" in said
    assert "Whoever reaches such a port runs commands" in said
