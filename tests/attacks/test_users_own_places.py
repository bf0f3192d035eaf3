"""A project that is a home, holds one, or is where the user's `.ai` links to: no write path changes what decides about trust."""

from __future__ import annotations

import pytest

from rye.sandbox import sandbox
from support.calling import call, done
from support.shell_calls import configure
from support.workspace_calls import sha

LOOSER = "sandbox: {mode: 'off'}\n"
OWN = ("config/rye.yaml", "config/lsp.yaml", "trust/approved.toml", "state/0/journal/e.json", "trusted_keys/k.toml", "other")
WRITE, PATCH = "rye/file-system/write", "rye/workspace/workspace_write_patch"


def protected(answer) -> bool:
    """Tell whether a call was refused for the place, by itself or in a batch."""
    return not answer["success"] and "protected_path" in str(answer)


# name: (links and their targets, the home, the project, where the user's own files lie in it or the files)
PLACES = {
    "it is the home": ({}, "home", "home", ".ai"),
    "it holds the home": ({}, "home", "", "home/.ai"),
    "the user's .ai is a link to it": ({"home/.ai": "../dotfiles/rye"}, "home", "dotfiles", "rye"),
    "it holds the user's configuration": ({"home/.ai/config": "../../dotfiles/rye-config"}, "home", "dotfiles", None),
}


@pytest.fixture(params=PLACES)
def places(request, tmp_path, monkeypatch):
    """(project, files of the user's as the project names them)."""
    links, home, project, inside = PLACES[request.param]
    (tmp_path / home).mkdir()
    for name, target in links.items():
        link = tmp_path / name
        link.parent.mkdir(exist_ok=True)
        (link.parent / target).mkdir(parents=True)
        link.symlink_to(target)
    monkeypatch.setenv("USER_SPACE", str(tmp_path / home))
    monkeypatch.setenv("HOME", str(tmp_path / home))
    files = [f"{inside}/{one}" for one in OWN] if inside else ["rye-config/rye.yaml", "rye-config/web/websearch.yaml"]
    return tmp_path / project, files


def test_nothing_is_made_there(places):
    project, files = places
    for path in files:
        for name in (path, f"./{path}", str(project / path)):
            assert protected(call(WRITE, project, file_path=name, content=LOOSER)), name
        assert protected(call(PATCH, project, createFiles=[{"path": path, "content": LOOSER}])), path
        assert not (project / path).exists()
    assert sandbox.effective(str(project)).mode == "auto"


def test_nothing_is_changed_or_removed_there(places):
    project, files = places
    for path in files:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(b"log: {events: false}\n")
        if "/trusted_keys/" in path:
            continue
        digest = {"docPath": path, "originalSha256": sha((project / path).read_bytes())}
        line = {"operation": "insert", "afterLine": 0, "newLines": ["x"]}
        for answer in (
            call(WRITE, project, file_path=path, content=LOOSER),
            call("rye/swe/edit_range", project, path=path, start_line=1, end_line=1, new_text=LOOSER),
            call("rye/swe/edit_file", project, path=path, old="log", new="sandbox"),
            call("rye/swe/insert_at", project, path=path, line=1, new_text=LOOSER),
            call(PATCH, project, deleteFiles=[digest]),
            call(PATCH, project, files=[{**digest, "changes": [line]}]),
        ):
            assert protected(answer), (path, answer)
        assert (project / path).read_bytes() == b"log: {events: false}\n"


def test_control_a_projects_own_config_loosens_nothing_and_the_users_would(project, user_space):
    assert protected(call(WRITE, project, file_path=".ai/config/rye.yaml", content=LOOSER))
    configure(project, LOOSER)
    assert sandbox.effective(str(project)).mode == "auto", "a project can only tighten"
    configure(user_space, LOOSER)
    assert sandbox.effective(str(project)).mode == "off", "what the other tests keep out would count"


# --- private keys ---

SECRET = b"-----BEGIN PRIVATE KEY-----\nZXZlbiBoZXJlIGl0IGlzIG5vIGtleQ==\n-----END PRIVATE KEY-----\n"
READERS = (
    ("rye/file-system/read", "file_path"),
    ("rye/workspace/workspace_read_file", "docPath"),
    ("rye/swe/open_file_chunk", "path"),
    ("rye/swe/read_file_viewport", "path"),
    ("rye/swe/search_file", "path"),
    ("rye/file-system/grep", "path"),
)


@pytest.fixture
def keys(tmp_path, monkeypatch):
    """(project, the ways to the user's key in it): the project is the user's home."""
    home = tmp_path / "home"
    (home / ".ai/keys").mkdir(parents=True)
    (home / ".ai/keys/private_key.pem").write_bytes(SECRET)
    (home / "linked").symlink_to(".ai/keys")
    (home / "hard.pem").hardlink_to(home / ".ai/keys/private_key.pem")
    (home / "note.txt").write_text("ZXZl is not the key\n")
    monkeypatch.setenv("USER_SPACE", str(home))
    return home, [".ai/keys/private_key.pem", "linked/private_key.pem", "hard.pem"]


def test_a_private_key_is_not_read_by_any_name(keys):
    project, ways = keys
    for way in ways:
        for tool, name in READERS:
            more = {"pattern": "ZXZl"} if tool.endswith(("grep", "search_file")) else {}
            answer = call(tool, project, **{name: way}, **more)
            assert not answer["success"], (way, tool, answer)
            assert "ZXZlbi" not in str(answer)
            assert "private key" in str(answer), (way, tool, answer)


@pytest.mark.parametrize("mode", ["content", "files", "count"])
def test_a_search_tells_nothing_of_a_private_key(keys, mode, engine):
    """Not even how often a pattern is in it: asked often enough, that is the key."""
    project, _ = keys
    (project / "hard.pem").unlink()
    for path in (".", ".ai"):
        found = call("rye/file-system/grep", project, pattern="ZXZl", path=path, mode=mode, hidden=True, no_ignore=True)
        assert found["total"] == (1 if path == "." else 0), found
    refused = call("rye/file-system/grep", project, pattern="ZXZl", path=".ai/keys", mode=mode, hidden=True)
    assert refused["code"] == "protected_path"
    # The project may be the user's `.ai` itself.
    assert call("rye/file-system/grep", project / ".ai", pattern="ZXZl", mode=mode, hidden=True, no_ignore=True)["total"] == 0


def test_the_key_that_the_environment_names_is_not_read(project, monkeypatch):
    (project / "mine.pem").write_bytes(SECRET)
    done("rye/file-system/read", project, file_path="mine.pem")  # The control.
    monkeypatch.setenv("RYE_SIGNING_KEY", str(project / "mine.pem"))
    assert call("rye/file-system/read", project, file_path="mine.pem")["code"] == "protected_path"
    assert call("rye/file-system/grep", project, pattern="ZXZl")["matches"] == []


def test_control_a_key_of_nobody_is_a_file_like_any_other(project):
    (project / ".ai/other").mkdir(parents=True)
    (project / ".ai/other/private_key.pem").write_bytes(SECRET)
    assert "ZXZlbi" in str(call("rye/file-system/read", project, file_path=".ai/other/private_key.pem"))
    assert call("rye/file-system/grep", project, pattern="ZXZl", hidden=True)["total"] == 1
