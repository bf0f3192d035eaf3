"""A session: diagnostics pulled and pushed, with versions and without, late and of an old version; replaced when it fails."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from rye.errors import RyeError
from rye.lsp import positions
from rye.lsp import session as lsp_session
from rye.lsp.servers import LanguageServer
from rye.sandbox.policy import Confined
from support import scripted_server
from support.waiting import PATIENCE


@pytest.fixture(autouse=True)
def ended():
    yield
    lsp_session.close_all()


@pytest.fixture
def begin(tmp_path):
    def begin(idle=600.0, **options):
        argv, log = scripted_server.command(tmp_path, options)
        server = LanguageServer("scripted", tuple(argv), {".zz": "zz"}, {}, idle, 1 << 40, ())
        return lsp_session.session(str(tmp_path), server, lambda: Confined(argv, dict(os.environ), (), {})), log

    return begin


def told(log, method):
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    return [one["params"] for one in messages if one.get("method") == method]


def messages_of(session, path, seconds=20.0):
    return [one["message"] for one in session.diagnostics(path, seconds)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"pull": True}, {"push": "versioned"}, {"push": "unversioned"}, {"push": "late"}, {"push": "old first"}]
)
def test_diagnostics_are_those_of_the_text_that_was_shown(begin, tmp_path, options):
    session, _ = begin(**options)
    path = str(tmp_path / "a.zz")
    for text, expected in (("fine\nBAD\n", ["bad 1"]), ("BAD\nfine\n", ["bad 0"])):
        session.show(path, text)
        assert messages_of(session, path) == expected
        session.cold = True
    session.show(path, "fine\n")
    assert messages_of(session, path) == []


def test_a_warm_server_is_not_waited_for_after_an_empty_answer(begin, tmp_path, monkeypatch):
    session, _ = begin(push="versioned")
    session.show(str(tmp_path / "a.zz"), "fine\n")
    session.cold = False
    begun = time.monotonic()
    monkeypatch.setattr(lsp_session, "_SETTLE_SECONDS", 2 * PATIENCE)
    assert messages_of(session, str(tmp_path / "a.zz"), 2 * PATIENCE) == []
    assert time.monotonic() - begun < PATIENCE


def test_diagnostics_without_a_place_are_left_out(begin, tmp_path):
    session, _ = begin(push="malformed")
    session.show(str(tmp_path / "a.zz"), "BAD\n")
    assert messages_of(session, str(tmp_path / "a.zz")) == ["bad 0"]


@pytest.mark.slow
def test_a_publication_that_is_no_list_has_no_diagnostics(begin, tmp_path):
    session, _ = begin(push="no list")
    session.show(str(tmp_path / "a.zz"), "BAD\n")
    assert messages_of(session, str(tmp_path / "a.zz")) == []


def test_a_server_that_never_publishes_is_waited_for_no_longer_than_asked(begin, tmp_path):
    session, _ = begin()
    session.show(str(tmp_path / "a.zz"), "BAD\n")
    with pytest.raises(RyeError) as caught:
        session.diagnostics(str(tmp_path / "a.zz"), 0.3)
    assert caught.value.code == "server_timeout"


@pytest.mark.slow
def test_the_server_is_told_what_changed_on_the_disk(begin, tmp_path):
    session, log = begin(push="versioned")
    path = {name: str(tmp_path / name) for name in ("a.zz", "b.zz", "c.zz")}
    texts = {path["a.zz"]: "one\n"}
    session.show(path["a.zz"], "one\n")
    session.refresh(str(tmp_path), {path["a.zz"]: (4, 1, 1), path["b.zz"]: (1, 1, 2)}, texts.get)
    assert told(log, "workspace/didChangeWatchedFiles") == []
    texts[path["a.zz"]] = "BAD\n"
    session.refresh(str(tmp_path), {path["a.zz"]: (4, 2, 1), path["c.zz"]: (1, 1, 3)}, texts.get)
    assert messages_of(session, path["a.zz"]) == ["bad 0"]
    [changes] = told(log, "workspace/didChangeWatchedFiles")
    assert {(one["uri"].rpartition("/")[2], one["type"]) for one in changes["changes"]} == {
        ("a.zz", 2),
        ("b.zz", 3),
        ("c.zz", 1),
    }
    session.refresh(str(tmp_path), {path["c.zz"]: (1, 1, 3)}, {}.get)
    session.show(path["c.zz"], "x\n")
    messages_of(session, path["c.zz"])
    assert [one["textDocument"]["uri"] for one in told(log, "textDocument/didClose")] == [positions.uri_of(path["a.zz"])]


@pytest.mark.slow
def test_a_server_that_only_tells_news_is_believed_when_it_tells_none(begin, tmp_path, monkeypatch):
    monkeypatch.setattr(lsp_session, "_AGAIN_SECONDS", 0.3)
    session, log = begin(push="news only")
    path, other = str(tmp_path / "a.zz"), str(tmp_path / "b.zz")
    session.refresh(str(tmp_path), {path: (1,), other: (1,)}, {path: "BAD\n"}.get)
    session.show(path, "BAD\n")
    assert messages_of(session, path) == ["bad 0"]
    for state in (2, 3):
        session.refresh(str(tmp_path), {path: (1,), other: (state,)}, {path: "BAD\n"}.get)
        assert messages_of(session, path) == ["bad 0"]
        assert messages_of(session, path) == ["bad 0"]
    assert [one["forceRebuild"] for one in told(log, "textDocument/didChange")] == [True, True]
    session.show(path, "fine\n")
    assert messages_of(session, path) == []


@pytest.mark.slow
def test_a_document_whose_own_change_alone_is_news_is_shown_once(begin, tmp_path):
    session, log = begin(push="versioned")
    path = str(tmp_path / "a.zz")
    texts = {path: "fine\n"}
    session.refresh(str(tmp_path), {path: (1,)}, texts.get)
    session.show(path, "fine\n")
    assert messages_of(session, path) == []
    texts[path] = "BAD\n"
    session.refresh(str(tmp_path), {path: (2,)}, texts.get)
    assert messages_of(session, path) == ["bad 0"]
    session.refresh(str(tmp_path), {path: (3,)}, texts.get)
    assert messages_of(session, path) == ["bad 0"]
    # What was asked last is logged last.
    session.wire.request("textDocument/hover", {}, 20)
    assert len(told(log, "textDocument/didChange")) == 1
    assert len(told(log, "workspace/didChangeWatchedFiles")) == 1


def test_the_same_session_serves_until_it_dies(begin):
    first, _ = begin(hover="die")
    again, _ = begin(hover="die")
    assert again is first
    with pytest.raises(RyeError):
        first.wire.request("textDocument/hover", {}, 20)
    fresh, _ = begin(hover="die")
    assert fresh is not first
    assert fresh.wire.alive


def test_a_fork_ends_no_server_of_its_parent(begin):
    parent, _ = begin()
    child = os.fork()
    if not child:
        lsp_session.close_all()
        os._exit(len(lsp_session._sessions) != 1)
    assert os.waitpid(child, 0)[1] == 0
    assert parent.wire.request("textDocument/hover", {}, 20)
    assert begin()[0] is parent


def test_a_session_that_hangs_is_replaced(begin):
    first, _ = begin(hover="hang")
    for _ in range(2):
        with pytest.raises(RyeError):
            first.wire.request("textDocument/hover", {}, 0.2)
    fresh, _ = begin(hover="hang")
    assert fresh is not first
    assert not os.path.exists(f"/proc/{first.wire.pid}/cwd")


def test_a_server_that_dies_at_its_start_leaves_nothing(begin):
    with pytest.raises(RyeError) as caught:
        begin(start="die")
    assert caught.value.code == "server_died"
    assert lsp_session._sessions == {}


def test_who_waits_for_another_question_waits_no_longer_than_allowed(begin):
    session, _ = begin()
    codes = []

    def wait():
        try:
            with session.locked(0.2):
                codes.append("held")
        except RyeError as err:
            codes.append(err.code)

    with session.locked(0.2):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(10)
    wait()
    assert codes == ["server_timeout", "held"]


@pytest.mark.parametrize("name", ["a b.zz", "é.zz", "%41.zz", "a#b?c.zz", "\udcff.zz", "a\nb.zz"])
def test_any_name_survives_its_uri(name):
    assert positions.path_of(positions.uri_of(f"/x/{name}")) == f"/x/{name}"


@pytest.mark.parametrize("uri", ["http://x/a", "untitled:a", "file://host/a", "", "a.zz"])
def test_what_is_no_local_file_has_no_path(uri):
    assert positions.path_of(uri) is None
