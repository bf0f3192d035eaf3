"""A project that is a home, holds one, or is where the user's `.ai` links to: no write path changes what decides about trust."""

from __future__ import annotations

import hashlib

import pytest

import rye
from rye.filesearch import ripgrep
from rye.sandbox import sandbox

LOOSER = "sandbox: {mode: 'off'}\n"
OWN = ("config/rye.yaml", "config/lsp.yaml", "trust/approved.toml", "state/0/journal/e.json", "trusted_keys/k.toml", "other")


def call(tool, project, /, **parameters):
    return rye.execute(tool, parameters, project_path=project)


def _is_home(tmp_path):
    return tmp_path / "home", tmp_path / "home", ".ai"


def _holds_home(tmp_path):
    return tmp_path, tmp_path / "home", "home/.ai"


def _is_linked_to(tmp_path):
    home = tmp_path / "home"
    (tmp_path / "dotfiles/rye").mkdir(parents=True)
    home.mkdir()
    (home / ".ai").symlink_to("../dotfiles/rye")
    return tmp_path / "dotfiles", home, "rye"


def _holds_its_config(tmp_path):
    home = tmp_path / "home"
    (tmp_path / "dotfiles/rye-config").mkdir(parents=True)
    (home / ".ai").mkdir(parents=True)
    (home / ".ai/config").symlink_to("../../dotfiles/rye-config")
    return tmp_path / "dotfiles", home, None


@pytest.fixture(params=[_is_home, _holds_home, _is_linked_to, _holds_its_config])
def places(request, tmp_path, monkeypatch):
    """(project, files of the user's as the project names them)."""
    project, home, inside = request.param(tmp_path)
    home.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("USER_SPACE", str(home))
    monkeypatch.setenv("HOME", str(home))
    return project, [f"{inside}/{one}" for one in OWN] if inside else ["rye-config/rye.yaml", "rye-config/web/websearch.yaml"]


def test_nothing_is_made_there(places):
    project, files = places
    for path in files:
        for name in (path, f"./{path}", str(project / path)):
            assert call("rye/file-system/write", project, file_path=name, content=LOOSER)["code"] == "protected_path", name
        created = call("rye/workspace/workspace_write_patch", project, createFiles=[{"path": path, "content": LOOSER}])
        assert created["status"] == "error"
        assert "protected_path" in str(created["data"]), created
        assert not (project / path).exists()
    assert sandbox.effective(str(project)).mode == "auto"


def test_nothing_is_changed_or_removed_there(places):
    project, files = places
    for path in files:
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(b"log: {events: false}\n")
        if "/trusted_keys/" in path:
            continue
        digest = hashlib.sha256((project / path).read_bytes()).hexdigest()
        line = {"operation": "insert", "afterLine": 0, "newLines": ["x"]}
        answers = [
            call("rye/file-system/write", project, file_path=path, content=LOOSER),
            call("rye/swe/edit_range", project, path=path, start_line=1, end_line=1, new_text=LOOSER),
            call("rye/swe/edit_file", project, path=path, old="log", new="sandbox"),
            call("rye/swe/insert_at", project, path=path, line=1, new_text=LOOSER),
            call("rye/workspace/workspace_write_patch", project, deleteFiles=[{"docPath": path, "originalSha256": digest}]),
            call(
                "rye/workspace/workspace_write_patch",
                project,
                files=[{"docPath": path, "originalSha256": digest, "changes": [line]}],
            ),
        ]
        for answer in answers:
            assert answer["status"] == "error", (path, answer)
            assert answer["code"] == "protected_path" or "protected_path" in str(answer["data"]), (path, answer)
        assert (project / path).read_bytes() == b"log: {events: false}\n"


def test_control_a_projects_own_config_loosens_nothing_and_the_users_would(project, user_space):
    refused = call("rye/file-system/write", project, file_path=".ai/config/rye.yaml", content=LOOSER)
    assert refused["code"] == "protected_path"
    (project / ".ai/config").mkdir(parents=True)
    (project / ".ai/config/rye.yaml").write_text(LOOSER)
    assert sandbox.effective(str(project)).mode == "auto", "a project can only tighten"
    config = user_space / ".ai/config/rye.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(LOOSER)
    assert sandbox.effective(str(project)).mode == "off", "what the other tests keep out would count"


def test_an_item_is_still_copied_to_the_users_space(project, user_space):
    copied = call(
        "rye/primary-tools/rye_load", project, item_type="knowledge", item_id="rye/core/agent-runtimes", destination="user"
    )
    assert copied["status"] == "success", copied
    assert list((user_space / ".ai/knowledge").rglob("agent-runtimes.md"))


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
            assert answer["status"] == "error", (way, tool, answer)
            assert b"ZXZlbi" not in str(answer).encode()
            assert "private key" in str(answer), (way, tool, answer)


@pytest.mark.parametrize("engine", ["ripgrep", "fallback"])
@pytest.mark.parametrize("mode", ["content", "files", "count"])
def test_a_search_tells_nothing_of_a_private_key(keys, mode, engine, monkeypatch):
    """Not even how often a pattern is in it: asked often enough, that is the key."""
    if engine == "fallback":
        monkeypatch.setattr(ripgrep, "locate", lambda _: None)
    project, _ = keys
    (project / "hard.pem").unlink()
    for path in (".", ".ai"):
        found = call("rye/file-system/grep", project, pattern="ZXZl", path=path, mode=mode, hidden=True, no_ignore=True)["data"]
        assert found["total"] == (1 if path == "." else 0), found
    refused = call("rye/file-system/grep", project, pattern="ZXZl", path=".ai/keys", mode=mode, hidden=True)
    assert refused["code"] == "protected_path"
    # The project may be the user's `.ai` itself.
    inside = call("rye/file-system/grep", project / ".ai", pattern="ZXZl", mode=mode, hidden=True, no_ignore=True)
    assert inside["data"]["total"] == 0


def test_the_key_that_the_environment_names_is_not_read(project, monkeypatch):
    (project / "mine.pem").write_bytes(SECRET)
    assert call("rye/file-system/read", project, file_path="mine.pem")["status"] == "success", "the control"
    monkeypatch.setenv("RYE_SIGNING_KEY", str(project / "mine.pem"))
    assert call("rye/file-system/read", project, file_path="mine.pem")["code"] == "protected_path"
    found = call("rye/file-system/grep", project, pattern="ZXZl")["data"]
    assert found["matches"] == []


def test_control_a_key_of_nobody_is_a_file_like_any_other(project):
    (project / ".ai/other").mkdir(parents=True)
    (project / ".ai/other/private_key.pem").write_bytes(SECRET)
    assert "ZXZlbi" in str(call("rye/file-system/read", project, file_path=".ai/other/private_key.pem")["data"])
    found = call("rye/file-system/grep", project, pattern="ZXZl", hidden=True)["data"]
    assert found["total"] == 1
