"""HTTP as registries speak it: retries, pages, redirects, credentials; and a server that dies on the way."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
from contextlib import contextmanager, suppress

import pytest

import rye
from rye.errors import UsageError
from rye.registry import pull as registry_pull
from rye.registry import push as registry_push
from rye.registry.oci import http, manifest
from rye.registry.oci import store as stores
from support.oci_server import answering, put_items, running

LAYER = manifest.Layer("text/plain", manifest.digest_of(b"content"), 7, "x")


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    """No credentials of this machine, and little patience."""
    for name in ("DOCKER_AUTH_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "RYE_REGISTRY_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.setattr(http, "_WAITS", (0.01, 0.02, 0.05))


def docker_config(tmp_path, record):
    folder = tmp_path / "docker"
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(record))


def test_a_busy_server_is_asked_again():
    states = [503, 429, 200]
    with answering(lambda *_: (states.pop(0), {}, b"content")) as (where, seen):
        assert stores.open_store(where).blob("my", LAYER) == b"content"
    assert len(seen) == 3


def test_tags_come_page_by_page():
    def answer(method, path, headers, body):
        page = int(path.partition("last=")[2] or 0)
        link = {"Link": f'</v2/my/tags/list?last={page + 1}>; rel="next"'} if page < 2 else {}
        return 200, link, json.dumps({"tags": [f"t{page}"]}).encode()

    with answering(answer) as (where, _):
        assert stores.open_store(where).tags("my") == ["t0", "t1", "t2"]


@pytest.mark.parametrize(
    ("link", "most"), [("https://other.example/v2/x", 9), ("/v2/my/tags/list", 2), ("/v2/my/tags/list", 9)]
)
def test_pages_that_lead_away_or_do_not_end_are_refused(link, most, monkeypatch):
    monkeypatch.setattr("rye.registry.oci.client._MAX_PAGES", 5)
    monkeypatch.setattr("rye.registry.oci.client._MAX_TAGS", most)
    page = {"Link": f"<{link}>; rel=next"}
    with (
        answering(lambda *_: (200, page, b'{"tags":["%d"]}' % len(seen))) as (where, seen),
        pytest.raises(rye.RyeError) as caught,
    ):
        stores.open_store(where).tags("my")
    assert (caught.value.code, len(seen)) == ("bad_tags", 1 if "://" in link else min(most + 1, 5))


@pytest.mark.parametrize("status", [200, 401])
def test_credentials_answer_a_challenge_and_never_follow_a_redirect(tmp_path, status):
    def led(method, path, headers, body):
        return status, {"WWW-Authenticate": f'Bearer realm="http://{headers["Host"]}/token"'}, b"content"

    with answering(led) as (store, stored):
        wanted = "Basic " + base64.b64encode(b"me:secret").decode()

        def answer(method, path, headers, body):
            if headers.get("Authorization") != wanted:
                return 401, {"WWW-Authenticate": 'Basic realm="registry"'}, b""
            return 307, {"Location": f"{store.replace('oci', 'http')}/blob"}, b""

        with answering(answer) as (where, seen):
            docker_config(tmp_path, {"auths": {where[6:]: {"auth": base64.b64encode(b"me:secret").decode()}}})
            server = stores.open_store(where)
            for _ in range(2):
                with suppress(rye.RyeError):
                    assert server.blob("my", LAYER) == b"content"
    assert [headers.get("Authorization") for _, _, headers, _ in seen] == [None, wanted, wanted]
    assert [(path, headers.get("Authorization")) for _, path, headers, _ in stored] == [("/blob", None)] * 2


def test_a_token_is_fetched_from_where_the_challenge_says(tmp_path):
    def answer(method, path, headers, body):
        if path.startswith("/token"):
            assert "scope=repository%3Amy%3Apull" in path
            assert headers["Authorization"].startswith("Basic ")
            return 200, {}, b'{"token": "abc"}'
        if headers.get("Authorization") != "Bearer abc":
            realm = f'Bearer realm="http://{headers["Host"]}/token",service="s",scope="repository:my:pull"'
            return 401, {"WWW-Authenticate": realm}, b""
        return 200, {}, b"content"

    with answering(answer) as (where, seen):
        docker_config(tmp_path, {"auths": {f"http://{where[6:]}/v1/": {"username": "me", "password": "secret"}}})
        server = stores.open_store(where)
        assert server.blob("my", LAYER) == b"content"
        assert server.blob("my", LAYER) == b"content"
    assert len(seen) == 4


def helper(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "docker-credential-test"
    path.write_text(f"#!/bin/sh\nread host\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@contextmanager
def wanting(user, password):
    """A server that gives its blob to this user alone; `{host}` in the password stands for its own name."""

    def answer(method, path, headers, body):
        named = password.format(host=headers["Host"])
        known = headers.get("Authorization") == "Basic " + base64.b64encode(f"{user}:{named}".encode()).decode()
        return (200, {}, b"content") if known else (401, {"WWW-Authenticate": 'Basic realm="registry"'}, b"")

    with answering(answer) as (where, _):
        yield where


def is_let_in(where):
    with suppress(rye.RyeError):
        return stores.open_store(where).blob("my", LAYER) == b"content"
    return False


def test_a_helper_is_asked_and_one_in_the_project_is_not(tmp_path, project, monkeypatch):
    (project / ".ai").mkdir()
    monkeypatch.chdir(project)
    helper(
        tmp_path / "bin",
        """interpreter < /dev/null; [ "$KEY$NODE_OPTIONS" = /a+b:c ] && echo '{"Username": "me", "Secret": "of '$host'"}'""",
    )
    helper(project / "bin", f"touch {tmp_path}/touched; exit 1")
    os.link(project / "bin/docker-credential-test", project / "bin/interpreter")
    monkeypatch.setenv("PATH", f"bin:{project}/bin:{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("KEY", "/a+b:c")
    monkeypatch.setenv("NODE_OPTIONS", f"--no-warnings --require {project}/x.cjs")
    for asked in (lambda name: {"credHelpers": {name: "test"}}, lambda name: {"auths": {name: {}}, "credsStore": "test"}):
        with wanting("me", "of {host}") as where:
            docker_config(tmp_path, asked(where[6:]))
            assert is_let_in(where)
    assert not (tmp_path / "touched").exists()
    # Nor is one behind a link through the project.
    (project / "way").symlink_to(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{project}/way:/usr/bin:/bin")
    with wanting("me", "of {host}") as where:
        docker_config(tmp_path, {"credHelpers": {where[6:]: "test"}})
        with pytest.raises(rye.RyeError, match="is not on the PATH"):
            stores.open_store(where).blob("my", LAYER)


def test_the_environment_names_the_host_that_its_credentials_are_for(monkeypatch):
    with wanting("me", "p") as one, wanting("me", "p") as other:
        for name, value in (("HOST", one[6:]), ("USERNAME", "me"), ("PASSWORD", "p")):
            monkeypatch.setenv(f"RYE_REGISTRY_{name}", value)
        assert (is_let_in(one), is_let_in(other)) == (True, False)
        auth = base64.b64encode(b"me:p").decode()
        monkeypatch.setenv("DOCKER_AUTH_CONFIG", json.dumps({"auths": {other[6:]: {"auth": auth}}}))
        assert is_let_in(other)


def test_plain_http_is_for_this_machine_only_and_malformed_names_are_refused():
    for name in ("127.0.0.1:5000", "localhost", "registry.example", "localhost.example"):
        scheme = "https" if "example" in name else "http"
        assert http.RegistryHost(name, plain_http=False).origin == f"{scheme}://{name}"
    assert http.RegistryHost("registry.example", plain_http=True).origin == "http://registry.example"
    for name in ("oci://", "oci://me:secret@host", "oci://host/UPPER", "https://host", "oci://host:5000:1", "oci://ho st"):
        with pytest.raises(UsageError):
            stores.open_store(name)


@pytest.mark.parametrize(
    ("half", "tagged"),
    [
        *((half, True) for half in ("blobs/*/*/*/data", "revisions/*/*/link", "current/link")),
        *((half, False) for half in ("blobs/*/*/*/data", "revisions/*/*/link", "_layers/*/*/link")),
    ],
)
def test_what_a_killed_server_left_half_written_is_made_good_or_refused(project, tmp_path, half, tagged):
    put_items(project, 3)
    there = tmp_path / "there"
    there.mkdir()
    with running(tmp_path / "server") as where:
        source, at = stores.RegistryTarget(str(project), where), stores.RegistryTarget(str(there), where)
        assert {row["status"] for row in registry_push.push(source, "tool", ["my/*"])} == {"pushed"}
        # The server writes manifests and links under their final names; a blob is renamed when it is whole.
        found = (tmp_path / "server").rglob(half)
        damaged = [path for path in found if path.name == "link" or b"schemaVersion" in path.read_bytes()]
        assert damaged
        for path in damaged:
            os.truncate(path, path.stat().st_size // 2)
        if tagged:
            refused = registry_pull.pull(at, "tool", ["my/*"], registry_pull.PullOptions())
            assert {row["status"] for row in refused} == {"refused"}
            # What stands there cannot be told, so it is not replaced; the way on is the registry's owner.
            with pytest.raises(rye.RyeError, match="cannot be read, so nothing was pushed") as caught:
                registry_push.push(source, "tool", ["my/*"])
            assert (caught.value.code, "delete its tag" in caught.value.hint) == ("version_unreadable", True)
        shutil.rmtree(next((tmp_path / "server").rglob("_manifests/tags")))
        if half.startswith("blobs"):
            # The server takes a half manifest for one that it has: a clear refusal, until its owner has removed it.
            with pytest.raises(rye.RyeError) as caught:
                registry_push.push(source, "tool", ["my/*"])
            assert caught.value.code == "manifest_damaged"
            shutil.rmtree(tmp_path / "server/data/docker")
        pushed = registry_push.push(source, "tool", ["my/*"])
        pulled = registry_pull.pull(at, "tool", ["my/*"], registry_pull.PullOptions())
        assert [(row["status"], row.get("error")) for row in pulled] == [("installed", None)] * 3
        assert {row["digest"] for row in pushed} == {row["digest"] for row in pulled}


SHOWN_INSTEAD = {
    "many requests": (429, {}, b""),
    "forbidden": (403, {}, b"{}"),
    "a proxy's page": (200, {}, b"<html>Log in</html>"),
    "another artifact": (200, {}, b'{"schemaVersion": 1}'),
    "changed on the way": (200, {"Docker-Content-Digest": manifest.digest_of(b"other")}, b"{}"),
}


@pytest.mark.parametrize("shown", SHOWN_INSTEAD)
def test_a_version_that_cannot_be_read_is_not_replaced(project, shown):
    (item_id,) = put_items(project, 1)
    held, hidden = {}, set()

    def answer(method, path, headers, body):
        name = path.partition("?")[0].rpartition("/")[2]
        if path.endswith("/tags/list?n=1000"):
            return 200, {}, json.dumps({"tags": [one for one in held if not one.startswith("sha256:")]}).encode()
        if method == "POST":
            return 202, {"Location": "/v2/my/blobs/uploads/1?from=https://elsewhere.example"}, b""
        if method == "PUT":
            held.update({name: body, manifest.digest_of(body): body} if "/manifests/" in path else {})
            return 201, {}, b""
        if name in hidden:
            return SHOWN_INSTEAD[shown]
        return (200, {}, held[name]) if name in held else (404, {}, b"")

    with answering(answer) as (where, seen):
        at = stores.RegistryTarget(str(project), where)
        assert registry_push.push(at, "tool", [item_id])[0]["status"] == "pushed"
        assert registry_push.push(at, "tool", [item_id])[0]["status"] == "unchanged"
        hidden.update(one for one in held if not one.startswith("sha256:"))
        pushed = len([one for one in seen if one[0] == "PUT"])
        with pytest.raises(rye.RyeError) as caught:
            registry_push.push(at, "tool", [item_id])
        assert caught.value.code == "version_unreadable"
        assert len([one for one in seen if one[0] == "PUT"]) == pushed
        # Each blob went to the location that the server named, which is relative for all its query.
        assert any("/uploads/1?from=https://elsewhere.example&digest=" in path for _, path, _, _ in seen)
