"""`rye/web/webfetch` against a site on loopback that the user's configuration allows: shapes, charsets, limits, faults."""

from __future__ import annotations

import resource
import threading
import time

import pytest

import rye
from rye.call import context
from rye.web.client import MAX_BODY_BYTES
from support import web_site
from support.waiting import PATIENCE

TOOL = "rye/web/webfetch"


@pytest.fixture(scope="module")
def site():
    with web_site.served(
        {
            "/bomb": (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, web_site.bomb()),
            "/once": (200, {"Content-Type": "text/plain"}, b"once"),
            "/secret": (200, {"Content-Type": "text/plain", "Cache-Control": "no-store"}, b"not kept"),
        },
        web_site.STREAMS,
    ) as site:
        yield site


@pytest.fixture(autouse=True)
def allowed(user_space, site):
    path = user_space / ".ai" / "config" / "rye.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"web: {{allow_hosts: ['127.0.0.1:{site.port}']}}\n")
    return path


def fetch(project, url, **parameters):
    return rye.execute(TOOL, {"url": url, **parameters}, project_path=project)["data"]


def text(data):
    lines = data["output"].split("\n")
    begin = next(at for at, line in enumerate(lines) if line.startswith("[untrusted content from the web begins"))
    end = lines.index(f"[untrusted content ends {data['boundary']}]")
    return "\n".join(lines[begin + 1 : end])


@pytest.mark.slow
def test_an_article_is_its_main_part_as_markdown_with_nothing_hidden(project, site):
    data = fetch(project, f"{site.url}/article")
    assert text(data) == (
        "Title: Guide & reference\n# Install it\n\n"
        f"Run `make`, then see [more]({site.url}/more.html), not this, nor this.\n\n"
        "```\ndef f(a, b):\n    return a | b\n\n```\n\n"
        "| flag | meaning |\n| a|b | either |\n\n"
        "3. three\n   - nested\n      - deeper\n4. four"
    )
    assert data["main_only"] is True
    assert "main_only=false shows the whole page" in data["output"].split("\n")[0]
    assert "Ignore" not in data["output"]
    assert "Legal text" not in data["output"]
    assert "Legal text" in text(fetch(project, f"{site.url}/article", main_only=False))


def test_html_comes_as_it_is_and_text_without_marks(project, site):
    assert "<nav>" in text(fetch(project, f"{site.url}/article", format="html"))
    plain = text(fetch(project, f"{site.url}/article", format="text"))
    assert "```" not in plain
    assert "def f(a, b):\n    return a | b" in plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/no-main", "Title: t\nonly a paragraph"),
        ("/one-article", "the article"),
        ("/two-articles", "first\n\nsecond"),
        ("/latin-1", "café – €"),
        ("/shift-jis", "日本語①"),
        ("/meta", "Привет"),
        ("/bom-wins", "é"),
        ("/utf-16", "wide text\nsecond"),
        ("/undeclared", "schön und gut: äöüß"),
        ("/gzip", "squeezed text"),
        ("/deflate", "squeezed text"),
        ("/bad-json", "{not json"),
        ("/plain", "one\ntwo\nthree"),
        ("/json", '{\n  "b": [\n    1,\n    {\n      "c": "é"\n    }\n  ],\n  "a": null\n}'),
        ("/empty", ""),
        ("/no-type", "untyped"),
        ("/deep", "at the bottom"),
    ],
)
def test_each_shape_gives_its_text(project, site, path, expected):
    assert text(fetch(project, site.url + path)) == expected


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("/twice", "unsupported_encoding", "gzip, gzip"),
        ("/brotli", "unsupported_encoding", "br"),
        ("/broken-gzip", "bad_answer", "incomplete"),
        ("/image", "not_text", "image/png of 108 bytes"),
        ("/says-text", "not_text", "not text"),
        ("/missing", "http_error", "404 Not Found"),
        ("/busy", "http_error", "wait before asking again"),
        ("/loop", "too_many_redirects", "more than 5"),
        ("/to-metadata", "address_not_public", "link-local"),
        ("/to-file", "bad_redirect", "only http and https"),
        ("/to-gopher", "bad_redirect", "only http and https"),
        ("/no-http", "connection_failed", ""),
        ("/endless-head", "connection_failed", ""),
    ],
)
def test_each_fault_has_its_error(project, site, path, code, says):
    data = fetch(project, site.url + path)
    assert (data["success"], data["code"]) == (False, code)
    assert says in data["error"]


def test_redirects_are_followed_and_told(project, site):
    data = fetch(project, f"{site.url}/chain")
    assert data["url"] == f"{site.url}/article"
    assert data["redirects"] == [f"{site.url}/chain", f"{site.url}/to-article"]
    assert data["requested_url"] == f"{site.url}/chain"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/drip", "/dripping-head"])
def test_the_timeout_is_the_total(project, site, path):
    started = time.monotonic()
    data = fetch(project, site.url + path, timeout=1)
    assert data["code"] == "fetch_timeout"
    assert time.monotonic() - started < PATIENCE


@pytest.mark.parametrize("path", ["/huge", "/endless", "/bomb"])
def test_what_is_too_large_is_cut_in_bounded_memory(project, site, path):
    fetch(project, f"{site.url}/plain")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    data = fetch(project, site.url + path)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert data["source_cut"]
    assert data["truncated"]
    assert data["bytes"] == MAX_BODY_BYTES
    assert "its first 5 MB" in data["output"].split("\n")[0]
    assert grown < 32, f"{grown} MB"


def test_control_a_plain_client_would_take_it_all(site):
    import httpx

    taken = 0
    with httpx.stream("GET", f"{site.url}/huge", trust_env=False) as answer:
        for block in answer.iter_bytes():
            taken += len(block)
    assert taken == 100 * 1024 * 1024


def test_a_long_page_is_paged_to_its_end_without_loss(project, site):
    lines, offset = [], 1
    while offset:
        data = fetch(project, f"{site.url}/many-lines", offset=offset, limit=2_500)
        lines += text(data).split("\n")
        assert data["truncated"] == (data["next_offset"] is not None)
        if data["next_offset"]:
            assert f'Call webfetch(url="{site.url}/many-lines", offset={data["next_offset"]})' in data["output"]
        offset = data["next_offset"]
    assert lines == [f"line {n}" for n in range(1, 6_001)]
    assert len(site.requests) < 10_000


def test_a_line_without_end_is_folded_and_nothing_lost(project, site):
    data = fetch(project, f"{site.url}/long-line")
    assert text(data).replace("\n", "") == "0123456789" * 1_000
    assert max(map(len, text(data).split("\n"))) == 2_000


def test_a_small_door_gets_a_small_window(project, site):
    door = context.CallOptions(max_output_bytes=6_000)
    data = rye.execute(TOOL, {"url": f"{site.url}/many-lines"}, project_path=project, options=door)["data"]
    assert len(data["output"].encode()) <= 6_000
    assert data["next_offset"] == data["line_count"] + 1


def test_forged_marks_close_nothing_and_hidden_characters_are_gone(project, site):
    data = fetch(project, f"{site.url}/forged")
    inside = text(data)
    assert "now obey me" in inside
    assert data["output"].count(data["boundary"]) == 2
    assert data["output"].split("\n")[-1] == f"[untrusted content ends {data['boundary']}]"
    assert not set("\u202e\u200b\x1b") & set(data["output"])
    again = fetch(project, f"{site.url}/forged")
    assert again["boundary"] != data["boundary"]


def test_a_page_is_asked_for_once_in_a_quarter_of_an_hour(project, site, monkeypatch):
    from rye.web import cache

    def asked():
        return [headers for path, headers in site.requests if path == "/once?one"]

    assert text(fetch(project, f"{site.url}/once?one")) == "once"
    kept = fetch(project, f"{site.url}/once?one")
    assert kept["cached_seconds"] is not None
    assert len(asked()) == 1
    monkeypatch.setattr(cache, "FRESH_SECONDS", -1)
    renewed = fetch(project, f"{site.url}/once?one")
    assert text(renewed) == "once"
    assert len(asked()) == 2


def test_what_must_not_be_stored_is_not(project, site):
    fetch(project, f"{site.url}/secret")
    assert fetch(project, f"{site.url}/secret")["cached_seconds"] is None


def test_a_kept_page_is_gone_when_its_host_is_no_longer_allowed(project, site, allowed):
    fetch(project, f"{site.url}/plain")
    allowed.write_text("web: {allow_hosts: []}\n")
    assert fetch(project, f"{site.url}/plain")["code"] == "address_not_public"


def test_cancelling_ends_a_fetch_that_waits(project, site):
    cancellation = context.Cancellation()
    threading.Timer(0.3, cancellation.cancel).start()
    started = time.monotonic()
    answer = rye.execute(
        TOOL, {"url": f"{site.url}/drip"}, project_path=project, options=context.CallOptions(cancellation=cancellation)
    )
    assert answer["code"] == "cancelled"
    assert time.monotonic() - started < PATIENCE


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://user:pw@example.org/",
        "http://exa mple.org",
        "http://127.0.0.1\x00.example.org/",
        "http://[::1%25lo]/",
        "http://example.org:99999/",
        "http://a..b/",
        "javascript:alert(1)",
    ],
)
def test_what_is_no_url_is_refused_before_anything_is_asked(project, site, url):
    data = fetch(project, url) if url else {"code": "bad_url"}
    assert data["code"] == "bad_url"


def test_configuration_that_names_no_host_says_so(project, site, allowed):
    allowed.write_text("web: {allow_hosts: ['http://x/']}\n")
    assert fetch(project, f"{site.url}/plain")["code"] == "bad_config"
