"""Pages of other origins, other servers on this machine, commands of a model and slow clients against the pages of `rye review`.

The same attacks are made on a page without guards, as a control: there they succeed. The attackers know the path of the pages, which is
random, so that what holds does not hold by that alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import time

import httpx
import pytest

from support.calling import call
from support.shell_calls import bash

pytest.importorskip("uvicorn")

from rye.review import guard
from support import browsers, web_site
from support.harness import environment
from support.review_pages import calls_in, serving
from support.waiting import until

pytestmark = pytest.mark.slow

SECRET = "only-for-the-user"


@pytest.fixture(scope="module", params=browsers.ALL)
def browser(request, tmp_path_factory):
    one = browsers.start(request.param, tmp_path_factory.mktemp("profile"), ["evil.example", "other.evil.example"])
    yield one
    one.close()


@pytest.fixture
def changed(project):
    (project / "a.txt").write_text("one\n")
    bash(project, "true")
    bash(project, f"echo {SECRET} > a.txt")
    return project


def site(pages, **headers):
    """Serve pages of the attacker's, or those without guards, at a free port of loopback."""
    headers = {"content-type": "text/html; charset=utf-8", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return web_site.served({path: (200, headers, body.encode()) for path, body in pages.items()})


@pytest.fixture
def naive():
    """The page without guards: any cookie, any host, any origin; what is posted is done."""
    body = f"<title>{SECRET}</title><p>{SECRET}"
    with site({"/": body, "/p/": body}, set_cookie="rye-review=naive; Path=/", referrer_policy="unsafe-url") as one:
        yield one


@pytest.fixture
def served(changed):
    with serving(changed) as one:
        yield one


def opened(browser, address):
    """Open the pages as the user does: the browser has its cookie from then on."""
    page = browser.page()
    page.goto(address)
    page.until("document.readyState === 'complete'")
    return page


READS = """
(async () => {
  const found = {};
  const base = %s;
  for (const mode of ['cors', 'no-cors', 'same-origin'])
    found['fetch ' + mode] = await fetch(base + '/', {mode, credentials: 'include'}).then(a => a.text(), e => '');
  found.xhr = await new Promise(done => { const x = new XMLHttpRequest(); x.withCredentials = true; x.open('GET', base + '/');
    x.onload = () => done(x.responseText); x.onerror = () => done(''); x.send(); });
  const frame = document.createElement('iframe'); frame.src = base + '/';
  await new Promise(done => { frame.onload = done; document.body.append(frame); setTimeout(done, 5000); });
  try { found.frame = frame.contentDocument ? frame.contentDocument.body.innerText : ''; } catch { found.frame = ''; }
  const opened = open(base + '/');
  await new Promise(done => setTimeout(done, 700));
  try { found.window = opened ? opened.document.body.innerText : ''; } catch { found.window = ''; }
  found.handle = opened ? String(opened.closed) : 'none';
  await new Promise(done => { const s = new EventSource(base + '/', {withCredentials: true}); s.onmessage = e => { found.events = e.data; };
    s.onerror = () => { s.close(); done(); }; });
  return JSON.stringify(found);
})()
"""

ACTS = """
(async () => {
  const base = %s, body = %s;
  for (const headers of [{'content-type': 'application/x-www-form-urlencoded'}, {'content-type': 'text/plain'}])
    await fetch(base + '/act', {method: 'POST', mode: 'no-cors', credentials: 'include', headers, body}).catch(() => 0);
  navigator.sendBeacon(base + '/act', new Blob([body], {type: 'text/plain'}));
  for (const target of ['inner', '_blank']) {
    const frame = document.createElement('iframe'); frame.name = 'inner'; document.body.append(frame);
    const form = document.createElement('form'); form.method = 'post'; form.action = base + '/act'; form.target = target;
    for (const pair of body.split('&')) { const field = document.createElement('input'); field.type = 'hidden';
      [field.name, field.value] = pair.split('='); form.append(field); }
    document.body.append(form); form.submit();
  }
  await new Promise(done => setTimeout(done, 700));
})()
"""


def origins(attacker):
    """The attacker's page under each relation to the pages: same site at another port, another name, another site."""
    return [f"http://{host}:{attacker.port}/" for host in ("127.0.0.1", "localhost", "evil.example")]


def test_another_origin_reads_nothing_and_does_nothing(browser, served, changed, naive):
    opened(browser, served.review.app.address)
    with served.client() as client:
        name = calls_in(client.get("").text)[0]
    body = f"id={name}&do=undo&token={served.review.app.form_token}"
    with site({"/": "<p>attack"}) as attacker:
        for origin in origins(attacker):
            page = browser.page()
            page.goto(origin)
            found = json.loads(page.eval(READS % json.dumps(served.base)))
            assert SECRET not in json.dumps(found), (origin, found)
            assert "a.txt" not in json.dumps(found), (origin, found)
            # Even with the token of the forms, which no other page knows.
            page.eval(ACTS % (json.dumps(served.base), json.dumps(body)))
    assert (changed / "a.txt").read_text() == f"{SECRET}\n"


def test_control_a_page_without_guards_is_acted_on_and_read_under_another_name(browser, naive):
    opened(browser, f"{naive.url}/p/")
    with site({"/": "<p>attack"}) as attacker:
        page = browser.page()
        page.goto(f"http://127.0.0.1:{attacker.port}/")
        page.eval(ACTS % (json.dumps(f"{naive.url}/p"), json.dumps("id=x&do=undo")))
        until(lambda: len(naive.bodies) >= 3)
        assert b"do=undo" in b"".join(naive.bodies)
        assert any("rye-review=naive" in headers.get("cookie", "") for path, headers in naive.requests if path == "/p/act")
        # Another server of the same host gets the cookie: ports do not keep cookies apart.
        assert any("rye-review=naive" in headers.get("cookie", "") for _, headers in attacker.requests)
    page = browser.page()
    page.goto(f"http://evil.example:{naive.port}/")
    assert SECRET in page.eval("document.body.innerText")


def test_another_server_on_this_machine_gets_neither_cookie_nor_address(browser, served):
    page = opened(browser, served.review.app.address)
    kept = page.cookies(f"{served.base}/")
    (mine,) = (one["value"] for one in kept if one["name"] == guard.COOKIE and one["path"] == served.review.app.path)
    with site({"/": "<p>a dev server", "/x/": "<p>x"}) as dev:
        link = f"http://127.0.0.1:{dev.port}/"
        page.eval(f"Object.assign(document.createElement('a'), {{href: {json.dumps(link)}}}).click()")
        page.until("document.body.innerText.includes('a dev server')")
        page.goto(f"{link}x/")
        assert len(dev.requests) >= 2
        for _, headers in dev.requests:
            assert mine not in headers.get("cookie", "")
            assert served.review.app.path not in json.dumps(headers)
        # The page that was left gives no handle: no other page holds a window of it.
        assert page.eval("window.opener === null")


def test_what_files_and_names_hold_does_not_run(browser, served, changed):
    evil = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
    (changed / "x.html").write_text("")
    content = f"{evil}\n\"' onfocus=document.title=1 autofocus \u202e\x1b[2J\n"
    call("write", changed, file_path="'><svg onload=document.title=1>.html", content=content)
    bash(changed, f"echo '{evil}' >> x.html; : '--></code>{evil}'")
    job = bash(changed, f"echo '{evil}'; sleep 100", background=True)["job_id"]
    page = opened(browser, served.review.app.address)
    links = page.eval("[...document.querySelectorAll('[data-item]')].map(one => one.href)")
    for url in [*links[:2], *(f"{served.base}/{one}" for one in ("since", "jobs", f"jobs/{job}", f"?text={evil}"))]:
        page.goto(url)
        assert page.eval("document.title") not in ("1", ""), url
        assert page.eval("document.querySelectorAll('main img, main svg, main script').length") == 0, url
    # Control: in a page without guards it runs.
    with site({"/": f"<title>0</title>{evil}"}) as other:
        page.goto(f"http://127.0.0.1:{other.port}/")
        page.until("document.title === '1'")
    call("rye/bash/job", changed, action="end", job_id=job)


# --- a model's own tools ---


@contextlib.contextmanager
def at_a_terminal(project):
    """Run `rye review` at a terminal; yield what it printed first, and a function that reads on."""
    ours, theirs = pty.openpty()
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-m", "rye", "review"], cwd=project, env=environment(TERM="dumb"), **ends)
    os.close(theirs)
    shown = b""
    end = time.monotonic() + 120
    while b"Ctrl-C" not in shown:
        assert time.monotonic() < end, shown
        if select.select([ours], [], [], 1)[0]:
            shown += os.read(ours, 65_536)
    try:
        yield shown.decode(), process
    finally:
        process.terminate()
        process.wait()
        os.close(ours)


SPY = r"""
import glob, http.client, os, re, sys, time
port, path = sys.argv[1:3]
line = http.client.HTTPConnection('127.0.0.1', int(port), timeout=60)
line.request('GET', path + '/')
print('page', line.getresponse().status)
found = b''
for name in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/maps') + glob.glob('/proc/net/*'):
    try:
        found += open(name, 'rb').read(1 << 16) if os.path.isfile(name) else b''
    except OSError:
        pass
print('looked at', len(found))
for home in {os.path.expanduser('~'), os.environ.get('USER_SPACE', '/nowhere'), '/tmp'}:
    end = time.monotonic() + 2
    for folder, _, names in os.walk(home):
        for name in names[:200]:
            try:
                if time.monotonic() < end and os.path.isfile(os.path.join(folder, name)):
                    found += open(os.path.join(folder, name), 'rb').read(1 << 16)
            except OSError:
                pass
print('code', bool(re.search(rb'open\?code=[\w-]{20,}', found)))
"""


@pytest.mark.skipif(
    shutil.which("bwrap") is None, reason="needs bubblewrap: without a sandbox a command reads what its user can"
)
def test_a_models_command_reaches_the_port_and_gets_nothing(changed):
    with at_a_terminal(changed) as (shown, _):
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/[\w-]+)/open\?code=([\w-]+)", shown)
        (changed / "spy.py").write_text(SPY)
        answer = bash(changed, f"python3 spy.py {address[1]} {address[2]}")
        assert answer["success"], answer
        # It reaches the port, as it may; nothing that it can read holds the code, and the page says nothing.
        assert "page 401" in answer["output"]
        assert "code False" in answer["output"]
        assert httpx.get(address[0]).status_code == 200


def test_a_body_that_comes_slowly_is_given_up(served, monkeypatch):
    monkeypatch.setattr(guard, "_BODY_SECONDS", 0.3)
    with served.client() as client:
        cookie = client.cookies["rye-review"]
        head = (
            f"POST {served.review.app.path}/act HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nOrigin: {served.origin}\r\n"
            f"Cookie: rye-review={cookie}\r\nContent-Length: 1000\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", served.port), 120) as line:
            line.sendall(head.encode() + b"a")
            assert b" 413 " in line.recv(65_536)
            assert client.get("").status_code == 200
