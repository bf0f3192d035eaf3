"""Providers of web search: a request of each, and the results of its answer, over the guarded HTTP client.

Formats: the providers' own API references (Exa `POST /search`, Brave `GET /res/v1/web/search`, Tavily `POST /search`, SearXNG
`GET /search?format=json`); the one without a key is the library `ddgs`, which asks public search engines.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlencode

from rye.call import safe_text
from rye.errors import RyeError
from rye.plain_class import Record
from rye.web.addresses import Allowed
from rye.web.client import FetchRequest, HttpAnswer, fetch, parse

_OTHERWISE = "Try again later, or choose another provider."


class SearchError(RyeError):
    """A provider of web search cannot be asked, or did not answer."""


class SearchResult(NamedTuple):
    """One result as the provider gave it."""

    title: str
    url: str
    snippet: str


class Provider(Record):
    """A provider as configured.

    Attributes:
        name: what the configuration calls it.
        kind: one of `KINDS`.
        key: its API key, or "".
        key_from: where the key comes from, as an error names it; the key itself is never named.
        base_url: where it is asked.
        chosen_host: the user set `base_url`, so the host need not be public.
        proxy: URL of a proxy that the user configured.
    """

    name: str
    kind: str
    key: str
    key_from: str
    base_url: str
    chosen_host: bool = False
    proxy: str | None = None


KINDS = ("exa", "brave", "tavily", "searxng", "ddgs")
DEFAULT_URLS = {"exa": "https://api.exa.ai", "brave": "https://api.search.brave.com", "tavily": "https://api.tavily.com"}


def ask(provider: Provider, query: str, count: int, seconds: float) -> list[SearchResult]:
    """Return at most `count` results.

    Raises:
        SearchError: `bad_key`, `rate_limited`, `provider_failed`, `bad_answer`, `extra_missing`.
        RyeError: those of `client.fetch`.
    """
    rows = (_by_library if provider.kind == "ddgs" else _by_request)(provider, query, count, seconds)
    return [_result(row) for row in rows if isinstance(row, dict)][:count]


def _by_request(provider: Provider, query: str, count: int, seconds: float) -> list[Any]:
    key, as_json = provider.key, {"Accept": "application/json"}
    highlights = {"highlights": {"numSentences": 2, "highlightsPerUrl": 1}}
    requests: dict[str, tuple[str, dict[str, str], dict[str, Any] | None]] = {
        "exa": ("/search", {"x-api-key": key}, {"query": query, "numResults": count, "type": "auto", "contents": highlights}),
        "brave": (
            "/res/v1/web/search?" + urlencode({"q": query[:400], "count": count}),
            {"X-Subscription-Token": key, "Cache-Control": "no-cache", **as_json},
            None,
        ),
        "tavily": ("/search", {"Authorization": f"Bearer {key}"}, {"query": query, "max_results": count}),
        "searxng": ("/search?" + urlencode({"q": query, "format": "json"}), as_json, None),
    }
    content: Any = _call(provider, seconds, *requests[provider.kind])
    if provider.kind == "brave":
        content = content.get("web")
    rows = content.get("results") if isinstance(content, dict) else None
    return rows if isinstance(rows, list) else []


def _by_library(provider: Provider, query: str, count: int, seconds: float) -> list[Any]:
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException, RatelimitException
    except ImportError:
        why = "Searching without a key needs a library that is not installed."
        raise SearchError("extra_missing", why, "Run `pip install ddgs`, or configure a provider with a key.") from None
    try:
        return list(DDGS(proxy=provider.proxy, timeout=max(1, int(seconds))).text(query, max_results=count))
    except RatelimitException:
        raise _limited(provider, "") from None
    except DDGSException as err:
        if "No results" in str(err):
            return []
        raise _failed(provider, str(err)[:200]) from None


def _result(row: dict[str, Any]) -> SearchResult:
    """Return a row of any provider's as a result: each has names of its own for the text."""
    several = row.get("highlights")
    marked = " ".join(one for one in several if isinstance(one, str)) if isinstance(several, list) else ""
    title, url, href, *texts = (
        value if isinstance(value, str) else ""
        for value in map(row.get, ("title", "url", "href", "text", "description", "content", "body"))
    )
    return SearchResult(title, url or href, next(filter(None, [marked, *texts]), ""))


def _call(
    provider: Provider, seconds: float, path: str, headers: dict[str, str], body: dict[str, Any] | None
) -> dict[str, Any]:
    url = provider.base_url.rstrip("/") + path
    # The user's own server need not be public; a provider's known address must be.
    host = parse(url)
    own = f"{host.host.lower()}:{host.port or {'http': 80, 'https': 443}[host.scheme]}"
    allowed, method = Allowed(frozenset({own} if provider.chosen_host else ())), "GET" if body is None else "POST"
    answer = fetch(FetchRequest(url, seconds, allowed, method, headers, body, provider.proxy))
    _raise_for_status(provider, answer)
    content = safe_text.of_json(answer.body)
    if not isinstance(content, dict):
        raise SearchError("bad_answer", f"{provider.name} did not answer in JSON.", _OTHERWISE)
    return content


def _raise_for_status(provider: Provider, answer: HttpAnswer) -> None:
    if answer.status in (401, 403):
        if provider.kind == "searxng":
            hint = "Its settings.yml must list json under search: formats."
            raise SearchError("provider_refused", f"{provider.name} does not answer in JSON ({answer.status}).", hint)
        why = f"{provider.name} does not accept the key ({answer.status})."
        raise SearchError("bad_key", why, f"Check {provider.key_from}.")
    if answer.status == 429:
        raise _limited(provider, answer.headers.get("retry-after", ""))
    if not 200 <= answer.status < 300:
        raise _failed(provider, answer.status_line)


def _limited(provider: Provider, wait: str) -> SearchError:
    when = f" in {wait} s" if wait.isdecimal() else " later"
    why = f"{provider.name} takes no more questions now."
    return SearchError("rate_limited", why, f"Ask again{when}, or choose another provider.")


def _failed(provider: Provider, why: str) -> SearchError:
    return SearchError("provider_failed", f"{provider.name} failed: {why.rstrip(' ,;:.')}.", _OTHERWISE)
