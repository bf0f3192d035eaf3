"""Who may see the pages and act on them: nobody without the cookie, no other page, no other name of the host."""

from __future__ import annotations

import socket

import httpx
import pytest

PATHS = ("", "since", "jobs", "tools", "keys", "change/x", "static/review.css", "nothing")


def test_the_address_opens_the_pages_once_and_another_one_is_told(served):
    address = served.review.app.address
    with httpx.Client(follow_redirects=True) as one:
        assert 'http-equiv="refresh"' in one.get(address).text
        assert "a.txt" in one.get(f"{served.base}/").text
        # A browser that has the cookie may go on with an old address.
        assert (one.get(address).status_code, httpx.get(address).status_code) == (200, 401)
    (told,) = served.told
    assert address not in told
    assert httpx.get(told.rpartition(" ")[2]).status_code == 200


def test_without_the_cookie_nothing_is_shown_and_nothing_done(served, changed):
    for path in PATHS:
        answer = httpx.get(f"{served.base}/{path}")
        assert answer.status_code == 401, path
        assert "a.txt" not in answer.text
    for cookie in ("", "wrong", served.review.app.form_token):
        assert httpx.get(f"{served.base}/", headers={"cookie": f"rye-review={cookie}"}).status_code == 401
    data = {"token": served.review.app.form_token, "id": "x", "do": "undo"}
    assert httpx.post(f"{served.base}/act", data=data, headers={"origin": served.origin}).status_code == 401
    assert httpx.get(f"{served.origin}/").status_code == 404
    assert httpx.get(f"{served.base}/open?code=wrong").status_code == 401


def test_the_cookie_is_for_these_pages_alone(served):
    with httpx.Client() as one:
        given = one.get(served.review.app.address).headers["set-cookie"]
    # Browsers send a cookie to every port of a host: only the path, which is random, keeps it from other servers.
    assert f"Path={served.review.app.path};" in given
    # Another one of its name takes nothing away.
    mine = given.partition("=")[2].partition(";")[0]
    for cookie in (f"rye-review=x; rye-review={mine}", f"other=1; rye-review={mine}; rye-review=y"):
        assert httpx.get(f"{served.base}/", headers={"cookie": cookie}).status_code == 200
    assert {"HttpOnly", "SameSite=Strict"} <= set(given.split("; "))
    assert len(served.review.app.path) > 16


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "localhost:{port}"]
)
def test_another_name_of_the_host_is_refused(served, client, host):
    named = host.format(port=served.port)
    assert client.get("", headers={"host": named}).status_code == 421
    assert httpx.get(served.review.app.address, headers={"host": named}).status_code == 421
    assert client.get("").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x"])
def test_what_another_page_asks_for_is_refused(client, site):
    for path in PATHS:
        assert client.get(path, headers={"sec-fetch-site": site}).status_code == 403
    for own in ("none", "same-origin"):
        assert client.get("", headers={"sec-fetch-site": own}).status_code == 200


def test_a_form_of_another_page_is_refused(served, client, changed):
    good = {"token": served.review.app.form_token}
    own = {"origin": served.origin}
    others = "http://evil.example", "null", f"http://127.0.0.1:{served.port + 1}", f"https://127.0.0.1:{served.port}"
    tried = [({}, own), ({"token": "wrong"}, own), (good, {}), (good, {**own, "sec-fetch-site": "same-site"})]
    for data, headers in (*tried, *((good, {"origin": one}) for one in others)):
        for path in ("act", "mark", "jobs/end", "keys/approve"):
            answer = client.post(path, data={"id": "x", "do": "undo", **data}, headers=headers)
            assert answer.status_code == 403, (data, headers, path)
    assert (changed / "a.txt").read_text() == "two\n"
    # Control: the same with both is answered.
    assert client.post("mark", data=good, headers=own).status_code == 200


def test_every_answer_forbids_frames_copies_and_foreign_content(served, client):
    answers = [client.get(path) for path in PATHS]
    answers += [httpx.get(f"{served.base}/"), httpx.get(f"{served.origin}/"), client.post("act")]
    wanted = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "same-origin"}
    wanted["cross-origin-resource-policy"] = "same-origin"
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert ("default-src 'none'" in policy, "frame-ancestors 'none'" in policy, "unsafe" in policy) == (True, True, False)
        assert answer.headers.items() >= wanted.items()
        assert not {"server", "access-control-allow-origin"} & set(answer.headers)
        for found in ("<style", " style=", "http://", "https://", "<script>", " onclick"):
            assert found not in answer.text.replace(served.origin, "")


@pytest.fixture
def raw(served, client):
    """Send a request with the cookie, as it stands; return the answer's status."""

    def sent(method, path, *headers, body=b""):
        head = [f"{method} {served.review.app.path}/{path} HTTP/1.1", f"Host: 127.0.0.1:{served.port}"]
        head += [f"Cookie: rye-review={client.cookies['rye-review']}", "Connection: close", *headers, "", ""]
        with socket.create_connection(("127.0.0.1", served.port), 60) as line:
            line.sendall("\r\n".join(head).encode() + body)
            return int(line.recv(65_536).split()[1])

    assert sent("GET", "") == 200
    return sent


def test_odd_requests_are_refused_in_their_turn(served, raw):
    assert raw("GET", "", f"Host: 127.0.0.1:{served.port}") in (400, 421)
    upgrade = ("Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    assert raw("GET", "", "Origin: http://evil.example", *upgrade) != 101
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert raw(method, "") == 403


@pytest.mark.parametrize(
    "name", ["../guard.py", "..%2fguard.py", "%2e%2e/guard.py", "/etc/passwd", "%2fetc%2fpasswd", "review.css%00", ""]
)
def test_no_path_leads_out_of_the_pages_own_files(client, raw, name):
    assert raw("GET", f"static/{name}") == 404
    assert client.get("static/review.css").status_code == 200


def test_a_body_that_is_too_large_is_not_read(served, client, raw):
    # Sent no further than it is read: who goes on sending loses the connection.
    assert raw("POST", "act", f"Origin: {served.origin}", f"Content-Length: {1 << 30}", body=b"x" * (65 * 1024)) == 413
    assert client.post("act", content=b"&".join([b"a=b"] * 200), headers={"origin": served.origin}).status_code == 403
