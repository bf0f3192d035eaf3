"""What `rye/web/webfetch` answers: a page from the web in windows, marked as somebody else's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rye.record import Record
from rye.toolkit import config, pages, web_cache, webpage
from rye.toolkit.addresses import Allowed
from rye.toolkit.fetch import Answer, FetchError, Request, fetch, parse
from rye.toolkit.output import envelope, ok, output_room
from rye.toolkit.untrusted import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rye.toolkit.webpage import Format, Page

_NOTICES = 1_500
_ADVICE = {
    401: "It asks for a login, which this tool has not.", 403: "The server refuses automatic readers or asks for a login.",
    404: "Check the URL; search for the page instead.", 410: "The page is gone; search for another one.",
    429: "Too many requests: wait before asking again.",
}  # fmt: skip


def webfetch(
    project_path: str, url: str, format: Format = "markdown", timeout: float = 30, offset: int = 1, limit: int = 2000,
    *, main_only: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Return the result of `rye/web/webfetch`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `bad_url`, `bad_offset`, `bad_config`.
        RyeError: those of `fetch.fetch` and `webpage.read`; `http_error`.
    """
    allowed = Allowed.of(config.texts("web.allow_hosts"))
    answer, age = _answer(project_path, url, timeout, allowed)
    page = webpage.read(answer, format, main_only=main_only)
    given = {"url": url, "format": format, "main_only": None if main_only else "false"}
    call = pages.call("webfetch", given, {"format": "markdown"})
    return _window(_Shown(url, answer, age, page, format, call), offset, limit)


def _answer(root: str, url: str, seconds: float, allowed: Allowed) -> tuple[Answer, float | None]:
    """Return the answer, and its age in seconds when it was kept."""
    proxy = str(config.setting("web.proxy")) or None
    name = web_cache.key(str(parse(url)), *sorted(allowed.patterns), proxy or "")
    kept = web_cache.load(root, name)
    if kept is not None and kept.fresh:
        return kept.answer, kept.age
    answer = fetch(Request(url, seconds, allowed, headers=kept.conditions() if kept else {}, proxy=proxy))
    if answer.status == 304 and kept is not None:
        return web_cache.renew(root, name, kept), 0.0
    if not 200 <= answer.status < 300:
        raise FetchError(
            "http_error", f"{answer.url} answered {answer.status} {answer.reason}.".replace(" .", "."),
            _ADVICE.get(answer.status, "Check the URL, or try again later."), status=answer.status, url=answer.url,
        )  # fmt: skip
    web_cache.store(root, name, answer)
    return answer, None


class _Shown(Record):
    """A page and how it was asked for."""

    url: str
    answer: Answer
    age: float | None
    page: Page
    form: str
    call: Callable[[int], str]


def _window(shown: _Shown, offset: int, limit: int) -> dict[str, Any]:
    total = shown.page.text.count("\n")
    begin = pages.start(offset, total, "lines")
    page = pages.Page(output_room() - _NOTICES - 2 * len(shown.answer.url))
    taken = 0
    for line in _lines(shown.page.text, begin, limit):
        if not page.add([line]):
            break
        taken += 1
    following = begin + taken + 1 if begin + taken < total else None
    title = [f"Title: {shown.page.title}"] if shown.page.title and begin == 0 else []
    content, mark = quoted([*title, *page.lines])
    output = [f"{shown.answer.url} ({', '.join(_facts(shown))})", *content]
    if following is not None:
        call = shown.call(following).replace('"false"', "false")
        output.append(envelope(taken, total, "lines", call, total - begin - taken))
    return ok(
        "\n".join(output), url=shown.answer.url, requested_url=shown.url, redirects=list(shown.answer.hops),
        title=shown.page.title, format=shown.form, content_type=shown.page.content_type, charset=shown.page.charset,
        bytes=len(shown.answer.body), main_only=shown.page.main, untrusted=True, boundary=mark, total_lines=total,
        line_count=taken, offset=offset, truncated=following is not None or shown.answer.cut, next_offset=following,
        source_cut=shown.answer.cut, cached_seconds=None if shown.age is None else round(shown.age),
    )  # fmt: skip


def _lines(text: str, begin: int, most: int) -> Iterator[str]:
    """Yield lines of a text without splitting all of it."""
    at = 0
    for _ in range(begin):
        at = text.index("\n", at) + 1
    for _ in range(most):
        if at >= len(text):
            return
        end = text.index("\n", at)
        yield text[at:end]
        at = end + 1


def _facts(shown: _Shown) -> list[str]:
    facts = [shown.page.content_type, f"{len(shown.answer.body):,} bytes"]
    if shown.answer.cut:
        facts.append("the page is longer: its first 5 MB")
    if shown.page.main:
        facts.append("main part only: main_only=false shows the whole page")
    if shown.answer.hops:
        facts.append(f"redirected {len(shown.answer.hops)} times" if len(shown.answer.hops) > 1 else "redirected once")
    if shown.age is not None:
        facts.append(f"kept for {shown.age:.0f} s")
    return facts + list(shown.page.notes)
