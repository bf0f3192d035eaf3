"""Sixty hostile paths in every path parameter of every file tool: nothing outside is read or changed, every refusal instructs.

The tools and their path parameters are found by their CONFIG_SCHEMAs, so a new tool is covered on the day it arrives.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
from functools import partial
from pathlib import Path

import pytest

import rye
from support.harness import fingerprint
from support.opening import BOTH_WAYS, open_by
from support.waiting import in_time

SECRET = "S3CRET-93b1"
WORDS = [
    "use", "give", "call", "correct", "name", "copy", "ask", "try", "remove", "check", "read", "set", "leave", "make", "delete",
    "wait", "search", "convert", "open", "install",
]  # fmt: skip
STEP = re.compile(rf"\b({'|'.join(WORDS)}|did you mean|work elsewhere)\b", re.IGNORECASE)


def places_of(schema: dict, at=()):
    """Yield where a schema takes workspace paths: property names, and None for the items of a list."""
    if schema.get("format") == "workspace-path":
        yield at
    for name, below in schema.get("properties", {}).items():
        yield from places_of(below, (*at, name))
    if isinstance(schema.get("items"), dict):
        yield from places_of(schema["items"], (*at, None))


def sample(schema: dict, *, everything: bool):
    """Return a value that a schema accepts, with all optional properties or none."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = "object" if "object" in kind else kind[0]
    if kind == "object":
        required = schema.get("required", ())
        wanted = {name: below for name, below in schema.get("properties", {}).items() if everything or name in required}
        if "after_line_id" in schema.get("properties", {}):
            return {"after_line_id": "start", "new_content": "x\n"}
        return {
            name: sample(below, everything=everything) for name, below in wanted.items() if name not in ("version", "encoding")
        }
    if kind == "array":
        return [sample(schema.get("items", {}), everything=everything)]
    if kind == "integer":
        return max(1, schema.get("minimum", 1))
    if "sha" in schema.get("pattern", ""):
        return "0" * 64
    return {"boolean": True}.get(kind, "x")


def put_at(value, place, path):
    """Return a copy of a sample with `path` standing at `place`, made where it is missing."""
    if not place:
        return path
    head, *rest = place
    if head is None:
        return [put_at((value or [None])[0], rest, path)]
    return {**(value or {}), head: put_at((value or {}).get(head), rest, path)}


def calls():
    for row in rye.tools("rye/file-system", project_path="/"):
        for place in places_of(row["parameters"]):
            for everything in (False, True):
                yield row["name"], place, sample(row["parameters"], everything=everything)


@pytest.fixture
def arena(tmp_path, user_space):
    """A project full of traps, and around it everything that must stay as it is."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "src").mkdir(parents=True)
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/config").write_text(f"[x] {SECRET}-git\n")
    (project / ".ai/trusted_keys").mkdir(parents=True)
    (project / "src/app.py").write_text("app\n")
    (outside / "dir").mkdir(parents=True)
    (outside / "secret").write_text(f"{SECRET}\n")
    (outside / "dir/secret").write_text(f"{SECRET}\n")
    (outside / "linked").write_text("hard linked\n")
    (tmp_path / "project-evil").mkdir()
    (tmp_path / "project-evil/secret").write_text(f"{SECRET}\n")
    (user_space / ".ai/keys").mkdir(parents=True)
    (user_space / ".ai/keys/private_key.pem").write_text(f"{SECRET}-key\n")
    links = {
        "out": "../outside", "outfile": "../outside/secret", "abs": str(outside), "absfile": str(outside / "secret"),
        "etc": "/etc", "absin": str(project / "src/app.py"), "new": "../outside/created", "newabs": str(outside / "created"),
        "deep/up": "../..", "loop": "loop", "ping": "pong", "pong": "ping", "fd": "/proc/self/fd", "cwd": "/proc/self/cwd",
        "root": "/proc/self/root", "null": "/dev/null", "zero": "/dev/zero", "tty": "/dev/tty", "home": str(user_space),
        "chain": "out/../outside/secret", "git": ".git", "keys": ".ai/trusted_keys",
    }  # fmt: skip
    (project / "deep").mkdir()
    for name, target in links.items():
        (project / name).symlink_to(target)
    os.link(outside / "linked", project / "hard")
    os.mkfifo(project / "pipe")
    here = Path.cwd()
    os.chdir(project)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
    os.chdir(here)
    if os.geteuid() == 0:
        os.mknod(project / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    return project


def hostile(project: Path) -> list[str]:
    outside, user = project.parent / "outside", Path(os.environ["USER_SPACE"])
    return [
        "..", "../outside/secret", "../../../../../../../../etc/passwd", "src/../../outside/secret", "./../outside/secret",
        "../project-evil/secret", f"{project}-evil/secret", f"{project}/../outside/secret", str(outside / "secret"),
        "/etc/passwd", "//etc/passwd", "/", "/etc/shadow", "/proc/self/environ", "/proc/self/mem", "/dev/stdin", "/dev/zero",
        str(user / ".ai/keys/private_key.pem"), "out/secret", "out/dir/secret", "out/created", "outfile", "abs/secret",
        "absfile", "etc/passwd", "absin", "new", "newabs", "deep/up/outside/secret", "deep/up/project/../outside/secret",
        "loop", "loop/x", "ping", "fd/0", "cwd/../outside/secret", "root/etc/passwd", "null", "zero", "tty",
        "home/.ai/keys/private_key.pem", "chain", "git/config", ".git/config", ".git/hooks/post-commit", ".GIT/config",
        ".git./config", "git~1/config", ".ai/trusted_keys/evil.toml", ".ai/Trusted_Keys/evil.toml", "keys/evil.toml",
        ".ai/keys/private_key.pem", ".ai/cache/x", "pipe", "sock", "device", "hard", "", " ", "\0", "src/app.py\0.txt",
        "a\ud800", "n" * 256, "n/" * 2100, "\n", "\x1b[2J", "-rf", "~/.ai/keys/private_key.pem", "$HOME/.ssh/id_rsa",
        "file:///etc/passwd", "C:\\Windows\\win.ini", "\\\\host\\share", "src/app.py/..", "src/app.py/", "src/", ".",
        "..\\outside\\secret", r"\x2e\x2e/outside/secret", r"..\x2foutside\x2fsecret", "%2e%2e/outside/secret",
        "．．/outside/secret",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("available", BOTH_WAYS)
def test_no_path_gets_out_and_each_refusal_says_what_to_do(arena, monkeypatch, available, user_space):
    open_by(monkeypatch, available)
    inside = ("outside", "project-evil", "project/.git", "project/.ai/trusted_keys")
    around = [*(arena.parent / one for one in inside), user_space / ".ai/keys"]
    before = [fingerprint(folder) for folder in around]
    paths = hostile(arena)
    assert len(set(paths)) >= 60
    assert {"read", "write", "edit_lines"} <= {tool for tool, *_ in calls()}
    beside = sorted(os.listdir(arena.parent))
    asked = refused = 0
    codes = set()
    for tool, place, parameters in calls():
        for path in paths:
            ask = partial(rye.execute, f"rye/file-system/{tool}", put_at(parameters, place, path), project_path=arena)
            response = in_time(ask, (tool, ascii(path)[:80]))
            about = (tool, place, ascii(path)[:80], response.get("code"), response.get("error"))
            text = json.dumps(response)
            asked += 1
            # What a path in the project's own .git holds may be read; nothing else here.
            assert SECRET not in text.replace(f"{SECRET}-git", ""), about
            assert "root:x:0" not in text, about
            assert "Traceback" not in text, about
            if response["status"] == "error":
                refused += 1
                codes.add(response["code"])
                assert response["code"] not in ("tool_crashed", "tool_failed"), about
                assert STEP.search(response["error"]), about
                assert len(response["error"]) < 1_500, about
    assert [fingerprint(folder) for folder in around] == before
    assert sorted(os.listdir(arena.parent)) == beside
    assert (arena.parent / "outside/linked").read_text() == "hard linked\n"
    print(f"{asked} calls, {refused} refused; codes {sorted(codes)}")
    assert refused > asked // 2


def test_naive_tools_get_out(arena):
    before = fingerprint(arena.parent / "outside")
    read = written = 0
    for path in hostile(arena):
        try:
            target = arena / path
            if not target.is_file():
                continue
            text = target.read_text()
            read += "root:x:0" in text or (SECRET in text and "-git" not in text)
        except (OSError, ValueError, UnicodeError):
            continue
    for path in ("out/created", "new", "newabs", "outfile", "hard"):
        (arena / path).write_text("naive")
        written += fingerprint(arena.parent / "outside") != before
    assert read > 10
    assert written == 5
