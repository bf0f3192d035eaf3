"""The tasks of swe-tooling 8.2 with `rt` alone, and 8.3: nothing leaves the project, nothing malformed corrupts a file."""

from __future__ import annotations

import subprocess

import pytest

from cli.test_rt import rt


def git(project, *words):
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(project):
    for name, text in {
        "src/routes.py": "ROUTES = {\n    'home': home,\n}\n\n\ndef home():\n    return get_user()\n",
        "src/users.py": "def get_user():\n    raise LookupError('no such user')\n",
        "tests/test_users.py": "from users import get_user\r\n\r\nget_user()\r\n# forget_users stays\r\n",
    }.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_bytes(text.encode())
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    return project


def changed(project):
    lines = git(project, "diff", "-U0").split("\n")
    return [line.rstrip("\r") for line in lines if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]


def test_a_bug_is_found_from_its_message(repository):
    hit = rt("grep", "no such user", ".", cwd=repository).stdout.decode()
    path, line, _ = hit.split(":", 2)
    window = rt("open", f"{path}:{line}", cwd=repository).stdout.decode()
    assert "1: def get_user():\n2:     raise LookupError('no such user')\n" in window


def test_a_feature_is_added_and_only_its_lines_differ(repository):
    assert rt("find", "routes", "src", cwd=repository).stdout == b"src/routes.py\n"
    rt("insert", "src/routes.py", "8", cwd=repository, stdin=b"\n\ndef about():\n    return 'about'\n")
    at = rt("grep-file", "'home'", "src/routes.py", cwd=repository).stdout.split(b" ")[0].decode()
    rt("edit", "src/routes.py", at, at, cwd=repository, stdin=b"    'home': home,\n    'about': about,\n")
    assert changed(repository) == ["+    'about': about,", "+", "+", "+def about():", "+    return 'about'"]


def test_a_name_is_changed_everywhere_and_nothing_else(repository):
    for hit in rt("grep", r"\bget_user\b", cwd=repository).stdout.decode().splitlines():
        path, line, text = hit.split(":", 2)
        rt("edit", path, line, line, cwd=repository, stdin=text[1:].replace("get_user", "load_user").encode() + b"\n")
    assert rt("grep", r"\bget_user\b", cwd=repository).returncode == 1
    assert rt("grep", "forget_users", cwd=repository).returncode == 0
    assert all("get_user" in line or "load_user" in line for line in changed(repository))
    assert (repository / "tests/test_users.py").read_bytes().count(b"\r\n") == 4
    for _ in range(4):
        assert rt("undo", cwd=repository).returncode == 0
    assert changed(repository) == []


def test_no_verb_leaves_the_project(repository, tmp_path):
    (tmp_path / "secret").write_text("needle\n")
    (repository / "way").symlink_to(tmp_path / "secret")
    (repository / "out").symlink_to(tmp_path)
    for words in (
        ("open", "../secret"),
        ("open", str(tmp_path / "secret")),
        ("open", "way"),
        ("scroll", "out/secret"),
        ("find", "secret", ".."),
        ("grep", "needle", ".."),
        ("grep", "needle", "out"),
        ("grep-file", "needle", "way"),
        ("edit", "way", "1", "1"),
        ("insert", "../secret", "1"),
    ):
        done = rt(*words, cwd=repository, stdin=b"x\n")
        assert done.returncode, words
        assert b"needle" not in done.stdout
    assert b"secret" not in rt("find", "secret", cwd=repository).stdout
    assert (tmp_path / "secret").read_text() == "needle\n"
