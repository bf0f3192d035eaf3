"""The contract of kubernetes-sigs/agent-sandbox, asked for as its clients ask, over real HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import pytest

import rye
from rye.call.context import CallOptions
from support.agent_sandbox import served
from support.shell_calls import sleepers
from support.waiting import PATIENCE, until


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return tmp_path_factory.mktemp("user")


@pytest.fixture(autouse=True)
def _same_space(space, monkeypatch):
    monkeypatch.setenv("USER_SPACE", str(space))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("top") / "project"
    folder.mkdir()
    (folder.parent / "secret").write_text("TOP SECRET")
    (folder / "link").symlink_to("../secret")
    (folder / "folder-link").symlink_to("sub")
    (folder / "sub").mkdir()
    (folder / "sub" / "in").write_text("inside\n")
    return folder


@pytest.fixture(scope="module")
def server(root, space):
    with served(root, USER_SPACE=str(space)) as made:
        yield made


@pytest.fixture
def web(server):
    with httpx.Client(base_url=server.url, headers=server.headers, timeout=PATIENCE) as made:
        yield made


def execute(web, command, **more):
    answer = web.post("execute", json={"command": command, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def upload(web, path, content):
    return web.post("upload", files={"file": (path, content)})


def test_commands_have_their_streams_apart_and_their_exit_code(web):
    ended = {"stdout": "out\n", "stderr": "err\n", "exit_code": 3, "timed_out": False}
    assert execute(web, "echo out; echo err >&2; exit 3") == ended
    assert execute(web, "printf 'a  b\\n\\n'")["stdout"] == "a  b\n\n"
    assert execute(web, "pwd; ls sub")["stdout"].endswith("/project\nin\n")
    assert execute(web, "no-such-program")["exit_code"] == 127
    assert execute(web, "kill -9 $$")["exit_code"] == 137
    empty = execute(web, "")
    assert (empty["exit_code"], bool(empty["stderr"])) == (1, True)


def test_long_output_is_whole_up_to_a_bound_that_is_said_and_a_command_past_its_time_ended(web):
    assert len(execute(web, "head -c 3000000 /dev/zero | tr '\\0' x")["stdout"]) == 3_000_000
    cut = execute(web, "head -c 17000000 /dev/zero | tr '\\0' x")
    assert len(cut["stdout"]) == 16 * 1024 * 1024
    assert "[stdout was cut: 16,777,216 of 17,000,000 bytes]" in cut["stderr"]
    ended = execute(web, "echo begun; sleep 1000", timeout_seconds=1)
    assert (ended["stdout"], ended["exit_code"], ended["timed_out"]) == ("begun\n", 124, True)


def test_a_client_that_goes_away_ends_its_command(web, root):
    seconds = f"3{int(os.urandom(3).hex(), 16)}"
    place = urlsplit(str(web.base_url).rstrip("/"))
    with socket.create_connection((place.hostname, place.port)) as wire:
        body = json.dumps({"command": f"sleep {seconds}"})
        head = f"POST /execute HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}\r\n"
        wire.sendall(f"{head}Authorization: {web.headers['authorization']}\r\n\r\n{body}".encode())
        assert until(lambda: sleepers(seconds)), "control: it ran"
    assert until(lambda: not sleepers(seconds))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"command": 3}', b"\xff"]
    + [b'{"command": "a", "timeout_seconds": %d}' % seconds for seconds in (0, 10**400)],
)
def test_a_malformed_command_is_refused(web, body):
    answer = web.post("execute", content=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "malformed_request")


def test_who_was_answered_without_a_token_keeps_no_other_out_by_a_second_request(server, web):
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", urlsplit(server.url).port)))
            one.sendall(f"GET / HTTP/1.1\r\nHost: {urlsplit(server.url).netloc}\r\n\r\nGET / HTTP/1.1\r\n".encode())
            assert one.recv(1) == b"H"
        assert web.get("exists/x").status_code == 200


def test_files_come_back_byte_for_byte_and_are_listed(web, root):
    files = {"new folder/a b.txt": b"text\r\n", "100%.bin": bytes(range(256)), "ä%2Fö": b"", "big": os.urandom(3_000_000)}
    for name, content in ((f"up/{name}", content) for name, content in files.items()):
        for _ in range(2):
            assert upload(web, name, content).status_code == 200
        assert (root / name).read_bytes() == content
        answer = web.get(f"download/{quote(name, safe='')}")
        assert (answer.content, answer.headers["content-length"]) == (content, str(len(content)))
        assert web.get(f"exists/{quote(name, safe='')}").json() == {"path": name, "exists": True}
    listed = {one["name"]: one for one in web.get("list/up").json()}
    assert {name: (one["type"], one["size"]) for name, one in listed.items()} == {
        "new folder": ("directory", (root / "up" / "new folder").stat().st_size),
        "100%.bin": ("file", 256),
        "ä%2Fö": ("file", 0),
        "big": ("file", 3_000_000),
    }
    assert listed["big"]["mod_time"] == (root / "up" / "big").stat().st_mtime
    assert web.get("exists/none").json()["exists"] is False
    assert web.get("exists/sub%2Fin%2Fdeeper").json()["exists"] is False


def test_the_root_has_several_names_and_links_inside_are_followed(web):
    named = [{one["name"] for one in web.get(f"list/{name}").json()} for name in ("", ".", "%2F", "./")]
    assert named[0] >= {"sub", "link", "folder-link"}
    assert all(one == named[0] for one in named)
    kinds = {one["name"]: one["type"] for one in web.get("list/.").json()}
    assert (kinds["sub"], kinds["folder-link"], kinds["link"]) == ("directory", "directory", "file")
    assert web.get("download/folder-link%2Fin").content == b"inside\n"


@pytest.mark.parametrize("name", ["../secret", "sub/../../secret", "link", "/../secret", "%2e%2e/secret", "sub/../link"])
def test_nothing_outside_is_read_listed_or_written(web, root, name):
    outside = root.parent / "secret"
    for verb in ("download", "list", "exists"):
        answer = web.get(f"{verb}/{quote(name, safe='')}")
        assert answer.status_code in (403, 404) or answer.json()["exists"] is False, (verb, answer.text)
        assert "TOP SECRET" not in answer.text
    upload(web, name, b"written")
    assert outside.read_text() == "TOP SECRET"
    assert sorted(one.name for one in root.parent.iterdir()) == ["project", "secret"]
    # Control: the same kind of name inside is served.
    assert web.get("download/sub%2F..%2Fsub%2Fin").content == b"inside\n"


def test_what_is_not_there_or_no_file_is_404(web):
    for path in ("download/none", "download/sub", "list/none", "list/sub%2Fin", "nothing", "download/"):
        assert web.get(path).status_code == 404, path
    assert web.get("execute").status_code == 405


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".git/config", ".ai/trusted_keys/k", ".vscode/tasks.json", ".envrc"])
def test_places_that_no_tool_may_write_are_refused(web, root, name):
    answer = upload(web, name, b"#!/bin/sh\ntouch /tmp/pwned\n")
    assert (answer.status_code, answer.json()["code"]) == (403, "protected_path")
    assert not (root / name).exists()


def test_uploads_over_a_folder_and_broken_forms_leave_nothing(web, root):
    before = sorted(os.listdir(root))
    assert upload(web, "sub", b"x").status_code == 404
    assert upload(web, "", b"x").status_code in (400, 422)
    assert web.post("upload", files={"other": ("n", b"x")}).status_code == 422
    assert web.post("upload", files=[("file", ("n1", b"x")), ("file", ("n2", b"x"))]).status_code == 422
    assert web.post("upload", content=b"x").status_code == 422
    whole = b'--b\r\nContent-Disposition: form-data; name="file"; filename="n3"\r\n\r\nhello\r\n--b--\r\n'
    kind = {"content-type": "multipart/form-data; boundary=b"}
    for cut in (10, 60, len(whole) - 12):
        assert web.post("upload", content=whole[:cut], headers=kind).status_code == 422
    assert sorted(os.listdir(root)) == before
    assert web.post("upload", content=whole, headers=kind).status_code == 200, "control"
    assert (root / "n3").read_bytes() == b"hello"


@contextlib.contextmanager
def uploading(server, name, content, kept_back):
    """Send a form but for its last bytes; the block calls what it is given to send those and get the answer's status."""
    place = urlsplit(server.url)
    form = (
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n--b--\r\n"
    )
    head = f"POST /upload HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {server.token}\r\nConnection: close\r\n"
    head += f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(form)}\r\n\r\n"
    with socket.create_connection((place.hostname, place.port), timeout=PATIENCE) as wire:
        wire.sendall(head.encode() + form[:-kept_back])

        def send():
            wire.sendall(form[-kept_back:])
            return int(wire.recv(65_536).split()[1])

        yield send


def test_a_client_that_goes_away_in_an_upload_leaves_nothing(server, web, root):
    before = sorted(os.listdir(root))
    for content in (b"x" * 5_000, b"x" * 3_000_000):
        with uploading(server, "half/f", content, 4):
            pass
        assert web.get("list/.").status_code == 200
        assert sorted(os.listdir(root)) == before
    with uploading(server, "whole/f", b"x", 4) as send:
        assert send() == 200, "control"
    assert (root / "whole/f").read_bytes() == b"x"


@pytest.mark.parametrize("size", [0, 2_000_000])
def test_an_upload_is_judged_when_it_is_placed(server, web, root, tmp_path, size):
    """A command makes the upload's folder a repository; the file would be its settings, and start a program of git's."""
    top, canary = root / f"judged-{size}", tmp_path / "fired"
    top.mkdir()
    git = ["git", "-c", "user.name=u", "-c", "user.email=u@x", "-C"]
    subprocess.run([*git, top, "init", "-q"], check=True)
    settings = f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {canary}; false\n".encode() + b"#" * size + b"\n"
    made = f"cd {top.name}; git init -q sub; cd sub; touch a; git add a; git -c user.name=u -c user.email=u@x commit -qm a; rm .git/config"
    with uploading(server, f"{top.name}/sub/g/config", settings, 9) as send:
        # Where the upload has made its folder by now, it becomes the repository's own.
        execute(web, f"{made}; mkdir -p g; mv .git/* g; rmdir .git; mv g .git; cd ..; git add sub 2>/dev/null")
        send()
    subprocess.run([*git, top, "status"], check=False, capture_output=True)
    assert not canary.exists()
    assert not (top / "sub/.git/config").exists()
    (top / "sub/.git/config").write_bytes(settings)
    subprocess.run([*git, top, "add", "sub"], check=True)
    subprocess.run([*git, top, "status"], check=True, capture_output=True)
    assert canary.exists(), "control: git starts it"


def test_a_folder_that_becomes_a_repository_while_the_upload_is_copied_is_refused(server, web, root):
    """The command waits for the file beside the target, and renames the folder that it lies in."""
    (root / "raced").mkdir()
    wait = "shopt -s nullglob dotglob; cd raced; touch begun; f=(); while [ ${#f[@]} = 0 ]; do f=(g/*.tmp); done"
    for rename, status in (("mv g .git", 404), ("mv g other; ln -s other g", 400), ("true", 200)):
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(execute, web, f"{wait}; {rename}; ls -A .git other", timeout_seconds=60)
            until((root / "raced/begun").exists)
            (root / "raced/begun").unlink()
            with uploading(server, "raced/g/config", b"#" * 96_000_000, 9) as send:
                assert send() == status, rename
            waiting.result()
        assert [path.name for path in (root / "raced").rglob("config")] == (["config"] if status == 200 else []), rename
        assert not [*(root / "raced").rglob("*.tmp")]
        subprocess.run(["rm", "-rf", root / "raced/.git", root / "raced/g", root / "raced/other"], check=True)


def test_every_change_is_recorded_and_taken_back(web, root):
    upload(web, "undo-small", b"one\n")
    upload(web, "undo-small", b"two\n")
    upload(web, "made/undo-large", b"x" * 2_000_000)
    execute(web, "echo y > undo-command")
    for name, after in (("undo-command", None), ("made", None), ("undo-small", b"one\n"), ("undo-small", None)):
        # An agent's changes are not what a person's `undo` takes back by itself.
        options = CallOptions(actor="agent-sandbox")
        of = {} if name == "made" else {"file_path": name}
        found = rye.execute("rye/file-system/undo", of, project_path=root, options=options)
        assert found["status"] == "success", found
        assert ((root / name).read_bytes() if (root / name).exists() else None) == after


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_request_without_the_token_or_of_a_web_page_is_refused(server, root, headers, status):
    sent = {**server.headers, **headers}
    answer = httpx.post(f"{server.url}/execute", json={"command": "touch refused"}, headers=sent)
    assert answer.status_code == status
    assert not (root / "refused").exists()
    # The health check needs no token.
    answer = httpx.get(f"{server.url}/", headers=sent)
    assert answer.status_code == (421 if "Host" in headers else 403 if "Origin" in headers else 200)
    assert answer.status_code != 200 or answer.json()["status"] == "ok"


def test_in_a_pod_it_may_be_open_to_every_name_but_never_to_web_pages(tmp_path):
    project = tmp_path / "pod"
    project.mkdir()
    with served(project, "--host", "0.0.0.0", "--no-token", "--allow-host", "*") as made:
        assert made.token == ""
        headers = {"Host": "sandbox.default.svc.cluster.local:8888"}
        done = httpx.post(f"{made.url}/execute", json={"command": "echo hi"}, headers=headers, timeout=PATIENCE)
        assert done.json()["stdout"] == "hi\n"
        page = {**headers, "Origin": "http://sandbox.default.svc.cluster.local:8888"}
        assert httpx.post(f"{made.url}/execute", json={"command": "echo hi"}, headers=page).status_code == 403


def test_large_files_go_both_ways_without_being_held_in_memory(server, web, root, tmp_path):
    size = 64 * 1024 * 1024
    sent = tmp_path / "large"
    block = os.urandom(1024 * 1024)
    with open(sent, "wb") as file:
        file.writelines([block] * (size // len(block)))
    before = _peak(server.pid)
    with open(sent, "rb") as file:
        assert upload(web, "large.bin", file).status_code == 200
    digest, count = hashlib.sha256(), 0
    with web.stream("GET", "download/large.bin") as answer:
        for piece in answer.iter_bytes():
            digest.update(piece)
            count += len(piece)
    assert count == size
    assert digest.digest() == hashlib.sha256(sent.read_bytes()).digest()
    assert _peak(server.pid) - before < size // 2
    (root / "large.bin").unlink()


def _peak(pid):
    """Return the most memory that a process had (bytes)."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024
