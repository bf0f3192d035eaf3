"""The pages of `rye review`: who may see them and act, what they show, and that what they do is done."""

from __future__ import annotations

import re
import socket
import threading
import time

import httpx
import pytest

import rye

pytest.importorskip("uvicorn")

import uvicorn

from rye.journal import journal
from rye.review.server import Review
from rye.workspace.workspace import Workspace

TOKEN = "t" * 43


@pytest.fixture
def changed(project):
    (project / "a.txt").write_text("one\n")
    call("bash/bash", project, command="true")
    call("bash/bash", project, command="echo two > a.txt; echo '<script>alert(1)</script>' > '<b>.html'")
    return project


def call(tool, project, **params):
    return rye.execute(f"rye/{tool}", params, project_path=str(project))["data"]


@pytest.fixture
def url(changed):
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(Review(str(changed), TOKEN, port).app(), log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    end = time.monotonic() + 60
    while not server.started:
        assert time.monotonic() < end
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture
def client(url):
    with httpx.Client(base_url=url, follow_redirects=True) as one:
        assert one.get("/", params={"token": TOKEN}).status_code == 200
        yield one


def change_of(client):
    return re.search(r"/change/([0-9a-f]{15})", client.get("/").text)[1]


def test_without_the_token_nothing_is_shown(url):
    for path in ("/", "/newest", "/jobs", "/tools", "/change/x", "/?token=wrong"):
        answer = httpx.get(f"{url}{path}")
        assert answer.status_code == 401, path
        assert "a.txt" not in answer.text
    assert httpx.post(f"{url}/undo", data={"id": "x", "token": TOKEN}).status_code == 401


def test_another_hosts_name_is_refused(client, url):
    answer = client.get("/", headers={"host": "evil.example"})
    assert answer.status_code == 421
    assert httpx.get(f"{url}/?token={TOKEN}", headers={"host": "evil.example"}).status_code == 421


def test_a_form_of_another_page_is_refused(client, changed):
    name = change_of(client)
    for data, headers in (
        ({"id": name}, {}),
        ({"id": name, "token": "wrong"}, {}),
        ({"id": name, "token": TOKEN}, {"origin": "http://evil.example"}),
        ({"id": name, "token": TOKEN}, {"origin": "null"}),
    ):
        assert client.post("/undo", data=data, headers=headers).status_code == 403
    assert (changed / "a.txt").read_text() == "two\n"


def test_every_answer_forbids_frames_and_foreign_content(client):
    for path in ("/", "/newest", "/jobs", "/tools", "/keys", "/nothing", f"/change/{change_of(client)}"):
        answer = client.get(path)
        policy = answer.headers.get("content-security-policy", "default-src 'none'; frame-ancestors 'none'")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http://" not in answer.text.replace(str(client.base_url), "")


def test_what_files_and_names_hold_is_text_on_the_page(client):
    text = client.get(f"/change/{change_of(client)}").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script>alert" not in text
    assert "<b>.html" not in text


def test_a_change_is_taken_back_and_the_page_says_so(client, changed):
    name = change_of(client)
    answer = client.post("/undo", data={"id": name, "token": TOKEN}, headers={"origin": str(client.base_url).rstrip("/")})
    assert "Taken back." in answer.text
    assert (changed / "a.txt").read_text() == "one\n"
    again = client.post("/undo", data={"id": name, "token": TOKEN})
    assert "already undone" in again.text


def test_one_file_of_a_change_is_taken_back(client, changed):
    client.post("/undo", data={"id": change_of(client), "path": "a.txt", "token": TOKEN})
    assert (changed / "a.txt").read_text() == "one\n"
    assert (changed / "<b>.html").exists()


def test_a_change_is_marked_as_reviewed_and_unmarked(client):
    name = change_of(client)
    assert "Not reviewed after all" in client.post("/reviewed", data={"id": name, "token": TOKEN}).text
    assert "reviewed" in client.get("/").text
    assert "Mark as reviewed" in client.post("/reviewed", data={"id": name, "token": TOKEN}).text


def test_a_job_is_shown_with_its_output_and_ended(client, changed):
    job = call("bash/bash", changed, command="echo hello; sleep 60", background=True)["job_id"]
    end = time.monotonic() + 60
    while "hello" not in client.get(f"/jobs/{job}").text:
        assert time.monotonic() < end
    assert "End it" in client.get("/jobs").text
    assert "End it" not in client.post("/jobs/end", data={"id": job, "token": TOKEN}).text


def test_tools_are_listed_with_their_verdict(client):
    assert "rye/file-system/read" in client.get("/tools").text


def test_a_search_and_pages(client, changed):
    with Workspace(changed) as ws:
        for number in range(250):
            with ws.place(f"many/{number}.txt", create_parents=True) as place:
                journal.apply_change(ws, place, b"x", journal.whole_entry(ws, "rye/file-system/write", place, None, b"x"))
    assert "251 changes" in client.get("/").text
    assert "Older" in client.get("/").text
    assert "Newer" in client.get("/", params={"first": 200}).text
    assert "1 changes" in client.get("/", params={"q": "many/249.txt"}).text
    assert client.get("/", params={"first": "x"}).status_code == 200
    assert client.get("/change/nothing").status_code == 404
