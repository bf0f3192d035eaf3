"""The pages in a real browser: every action by keyboard, live news, no scripts needed to read and act, axe."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from rye.trust import decisions
from support import browsers
from support.calling import call
from support.review_pages import serving
from support.shell_calls import bash
from support.signed_tools import STRANGER, bring_key, put, signed, tool_text
from support.waiting import until

pytestmark = pytest.mark.slow

NARROW = 390


@pytest.fixture(scope="module", params=browsers.ALL)
def browser(request, tmp_path_factory):
    one = browsers.start(request.param, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture
def pages(ten):
    with serving(ten) as served:
        yield served


@pytest.fixture
def page(browser, pages):
    one = opened(browser, pages)
    yield one
    assert one.troubles() == []


def opened(browser, pages, **options):
    """Open the pages by their address, as a user does."""
    one = browser.page(**options)
    one.goto(pages.review.app.address)
    one.until("document.querySelector('#live') && document.readyState === 'complete'")
    if options.get("scripts", True):
        one.until("!document.getElementById('help-button').hidden")
    return one


def text(page):
    return page.eval("document.body.innerText")


def test_the_list_by_keyboard(page):
    page.press("j")
    assert "new.py" in page.focus
    page.press("j")
    assert "sed" in page.focus
    page.press("j", "k")
    assert "new.py" in page.focus
    page.leave("r")
    assert page.eval("document.querySelector('li.call button').getAttribute('aria-pressed')") == "true"
    # The focus is where it was.
    assert "new.py" in page.focus
    page.leave("Enter")
    assert "write: new.py" in text(page)
    page.leave("n")
    assert "sed" in text(page)
    page.leave("p")
    assert "write: new.py" in text(page)
    page.leave("b")
    assert "new.py" in page.focus
    page.leave("s")
    assert "Nothing new since you looked" in text(page)


def test_search_by_keyboard(page):
    page.press("/")
    page.type("sed -i")
    page.leave("Enter")
    assert page.eval("document.querySelectorAll('li.call').length") == 1
    page.press("/", "j", "u")
    # In a field the keys are letters.
    assert page.eval("document.activeElement.value") == "ju"
    page.press("Escape")
    page.press("j")
    assert "sed" in page.focus


def test_hunks_files_and_calls_are_taken_back_and_restored_by_keyboard(page, ten):
    page.press("j", "j")
    page.leave("Enter")
    # The file, then its hunks.
    for _ in range(20):
        page.press(*([] if "2 of 2" in page.focus else ["j"]))
    page.leave("u")
    assert "Taken back." in text(page)
    assert "value_11 = 11" in (ten / "ten.py").read_text()
    assert "first" in (ten / "ten.py").read_text()
    assert "2 of 2" in page.focus
    page.leave("u")
    assert "Restored." in text(page)
    assert "eighth = 8" in (ten / "ten.py").read_text()
    page.leave("r")
    assert page.eval("document.activeElement.closest('[data-scope]').querySelector('[data-do=mark]').ariaPressed") == "true"
    page.press("k", "k")
    assert page.focus == "ten.py"
    page.leave("u")
    assert "value_0" in (ten / "ten.py").read_text()
    assert "more" in (ten / "other.txt").read_text()
    page.leave("U")
    assert (ten / "other.txt").read_text() == "other\n"
    assert "taken back" in text(page)
    page.leave("U")
    assert "more" in (ten / "other.txt").read_text()
    assert "first" in (ten / "ten.py").read_text()
    page.leave("R")
    assert page.eval("[...document.querySelectorAll('[aria-pressed]')].every(one => one.ariaPressed === 'true')")


def test_all_pages_by_number_and_the_help(page):
    for key, title in (("2", "All changes"), ("3", "Jobs"), ("4", "Tools"), ("5", "Keys"), ("1", "Changes")):
        page.leave(key)
        assert page.eval("document.querySelector('h1').innerText") == title
    page.press("?")
    assert page.eval("document.getElementById('help').open")
    shown = page.eval("document.getElementById('help').innerText")
    assert all(key in shown for key in ("j", "u", "R", "Enter", "Escape"))
    page.press("4", "u")
    page.press("Escape")
    assert not page.eval("document.getElementById('help').open")
    assert page.eval("document.querySelector('h1').innerText") == "Changes"
    page.press("Tab")
    page.until("document.activeElement.innerText.includes('Skip')")


def test_a_job_is_watched_and_stopped_by_keyboard(page, ten):
    job = bash(ten, "for i in $(seq 400); do echo tick $i; sleep 0.3; done", background=True)["job_id"]
    page.leave("3")
    page.press("j")
    page.leave("Enter")
    page.until("/tick 3\\b/.test(document.getElementById('output').innerText)")
    page.press("x")
    assert page.focus.startswith("Stop")
    page.leave("Enter")
    assert "ended on request" in text(page)
    assert call("rye/bash/job", ten, action="wait", job_id=job, timeout=0)["status"] == "ended"


def test_a_key_is_approved_by_keyboard(browser, project):
    bring_key(project, owner="Mallory")
    put(project, "tools/my/report.py", signed(tool_text("my/report"), STRANGER))
    with serving(project) as pages:
        page = opened(browser, pages)
        page.leave("5")
        page.press("j")
        assert "Mallory" in page.focus
        page.press("a")
        assert page.focus.startswith("Ask at the terminal")
        page.leave("Enter")
        page.press("a")
        page.type(pages.told[-1].rpartition(" ")[2])
        page.leave("Enter")
        assert "Approved" in text(page)
        assert STRANGER.public.digest in decisions.load().approved_keys(decisions.Root.of(project))


def test_new_calls_come_in_while_the_page_is_open_and_the_focus_stays(page, ten):
    page.press("j")
    assert "new.py" in page.focus
    bash(ten, "echo live > live.txt")
    page.until("document.body.innerText.includes('live.txt')")
    assert "new calls" in page.eval("document.getElementById('news').innerText")
    assert "new.py" in page.focus


def test_it_is_read_and_used_without_scripts(browser, pages, ten):
    page = opened(browser, pages, scripts=False)
    assert "new.py" in text(page)
    address = page.eval("document.querySelector('[data-item]').href")
    page.goto(address)
    assert "def new():" in text(page)
    spot = page.eval(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])(document.querySelector('[data-do=undo-call]').getBoundingClientRect())"
    )
    page.click(*spot)
    page.until("document.body.innerText.includes('Taken back.')")
    assert not (ten / "new.py").exists()


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The text of axe-core, from the npm registry."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, for axe-core")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "axe-core@4"], cwd=folder, capture_output=True, timeout=300, check=False
    )
    if done.returncode:
        pytest.skip(f"npm installs no axe-core here: {done.stderr[-200:]!r}")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


def findings(page, axe):
    """Return what axe-core finds, of every weight: rule, weight, and where."""
    page.eval(f"{axe}; 0")
    found = page.eval(
        "axe.run(document).then(all => all.violations.map(one => [one.id, one.impact, one.nodes.map(node => node.html.slice(0, 160))]))"
    )
    return [tuple(one) for one in found]


@pytest.mark.parametrize("look", ["light", "dark", "narrow"])
def test_axe_finds_nothing(browser, pages, ten, axe, look):
    job = bash(ten, "echo hello; sleep 100", background=True)["job_id"]
    page = opened(browser, pages, dark=look == "dark", width=NARROW if look == "narrow" else 1200)
    name = page.eval("document.querySelectorAll('.call a')[1].id.slice(2)")
    with pages.client() as client:
        pages.post(client, "act", id=name, do="undo 0 0")
    found = {}
    for path in ("", f"change/{name}", "since", "jobs", f"jobs/{job}", "tools", "keys", "nothing"):
        page.goto(f"{pages.base}/{path}")
        found[path] = findings(page, axe)
        # Nothing is wider than the window.
        assert page.eval("document.documentElement.scrollWidth <= innerWidth"), path
    page.press("?")
    found["help"] = findings(page, axe)
    call("rye/bash/job", ten, action="end", job_id=job)
    assert {path: one for path, one in found.items() if one} == {}


def test_control_axe_finds_what_is_wrong(browser, pages, axe):
    page = opened(browser, pages)
    page.eval(
        "document.querySelector('#search').closest('label').replaceWith(document.createElement('input')); document.title = ''"
    )
    assert {"label", "document-title"} <= {rule for rule, *_ in findings(page, axe)}


def test_the_page_says_that_the_server_is_gone(browser, ten):
    with serving(ten) as pages:
        page = opened(browser, pages)
    page.until("document.getElementById('news').innerText.includes('does not answer')")
    assert until(lambda: "new.py" in text(page))
