"""What `rye/web/websearch` answers: results of the provider that the user's configuration names, merged and cleaned.

Settings: `.ai/config/web/websearch.yaml`, system < user < project. A project may name one of the providers that the system or
the user defines, and nothing else: it can neither read a key nor say where a question is sent.
"""

from __future__ import annotations

import html
import re
from typing import Any

from rye.errors import UsageError
from rye.toolkit import config, layered
from rye.toolkit.output import ok
from rye.toolkit.search_providers import DEFAULT_URLS, KINDS, Found, Provider, SearchError, ask
from rye.toolkit.untrusted import plain, quoted

_FILE = "web/websearch.yaml"
_WITHOUT_KEY = "Without a key: SEARXNG_URL of a SearXNG server, or `pip install 'rye-workspace[search]'` and provider=\"ddgs\"."
_SNIPPET = 300
_TITLE = 200
_MAX_URL = 2_000
_MAX_FIELDS = 100
_TAG = re.compile(r"<[^>]{0,500}>")
_TRACKING = re.compile(r"(?:utm_\w+|gclid|fbclid|mc_[ce]id|ref_src)\Z")


def websearch(
    project_path: str, query: str, num_results: int = 10, provider: str | None = None, timeout: float = 30
) -> dict[str, Any]:
    """Return the result of `rye/web/websearch`; see its CONFIG_SCHEMA for the parameters.

    Raises:
        UsageError: `bad_config`, `unknown_provider`.
        SearchError: `no_provider`, `key_missing`, and those of `search_providers.ask`.
    """
    if not query.strip():
        raise UsageError("bad_query", "The query is empty.", "Say what to search for.")
    layers = layered.load(project_path, _FILE)
    chosen = _chosen(layers, provider)
    found = _merged(ask(chosen, query.strip(), num_results, timeout))[:num_results]
    return _told(chosen.name, query, found, _ignored(layers.project))


def _chosen(layers: layered.Layers, named: str | None) -> Provider:
    """Return the provider that the call, the project, the user or the system names, or else the first that can be used."""
    known = _known(layers.own)
    name = named or _default(layers.project) or _default(layers.user) or _default(layers.system)
    if name is not None:
        if name not in known:
            raise UsageError(
                "unknown_provider", f"There is no search provider {name!r}.", f"Use one of: {', '.join(sorted(known))}."
            )
        return _ready(name, known[name])
    for name, settings in known.items():
        if not _lacks(name, settings) and _installed(name, settings):
            return _ready(name, settings)
    raise SearchError(
        "no_provider", "No search provider is configured.",
        f"Set EXA_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY, or write providers into {layered.user_file(_FILE)}. "
        + _WITHOUT_KEY,
    )  # fmt: skip


def _default(layer: dict[str, Any]) -> str | None:
    value = layer.get("default_provider")
    if isinstance(value, dict):
        value = value.get("type")
    if value is None or isinstance(value, str):
        return value
    raise UsageError("bad_config", f"default_provider in {_FILE} is neither a name nor a mapping.", "Write a provider's name.")


def _known(own: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every provider that the system and the user define, by name."""
    listed = own.get("providers", {})
    known = {name: value for name, value in listed.items() if isinstance(value, dict)} if isinstance(listed, dict) else {}
    default = own.get("default_provider")
    if isinstance(default, dict) and isinstance(default.get("type"), str):
        name = default["type"]
        known[name] = layered.merged(known.get(name, {}), default)
    for name, settings in known.items():
        if settings.get("type", name) not in KINDS:
            raise UsageError(
                "bad_config",
                f"The search provider {name} in {_FILE} is of no known type.",
                f"Types: {', '.join(sorted(KINDS))}.",
            )
    return known


def _lacks(name: str, settings: dict[str, Any]) -> list[str]:
    """Return the environment variables that a provider needs and that are not set."""
    kind = settings.get("type", name)
    needed = "base_url" if kind == "searxng" else "api_key"
    if kind == "ddgs":
        return []
    value = settings.get(needed)
    return layered.expanded(value)[1] if isinstance(value, str) and value else [needed]


def _installed(name: str, settings: dict[str, Any]) -> bool:
    if settings.get("type", name) != "ddgs":
        return True
    try:
        import ddgs  # noqa: F401 - only whether it is there
    except ImportError:
        return False
    return True


def _ready(name: str, settings: dict[str, Any]) -> Provider:
    kind = settings.get("type", name)
    lacks = _lacks(name, settings)
    if lacks:
        what = "address" if kind == "searxng" else "key"
        raise SearchError(
            "key_missing", f"The search provider {name} has no {what}: {', '.join(lacks)} is not set.",
            f"Set {lacks[0]} in the environment, or write it into {layered.user_file(_FILE)}. {_WITHOUT_KEY}",
        )  # fmt: skip
    base = settings.get("base_url")
    key = settings.get("api_key")
    return Provider(
        name=name, kind=kind, key=layered.expanded(key)[0] if isinstance(key, str) else "",
        key_from=_source(key), base_url=layered.expanded(base)[0] if isinstance(base, str) else DEFAULT_URLS.get(kind, ""),
        chosen_host=isinstance(base, str), proxy=str(config.setting("web.proxy")) or None,
    )  # fmt: skip


def _source(key: object) -> str:
    """Name where a key comes from, without the key."""
    names = re.findall(r"\$\{([A-Z0-9_]+)", key) if isinstance(key, str) else []
    return f"the environment variable {names[0]}" if names else f"api_key in {layered.user_file(_FILE)}"


def _ignored(project: dict[str, Any]) -> list[str]:
    """Return what a project's file says and may not."""
    extra = sorted(set(project) - {"default_provider"})
    default = project.get("default_provider")
    extra += [f"default_provider.{name}" for name in sorted(set(default) - {"type"})] if isinstance(default, dict) else []
    return [f"The project's {_FILE} may only name a provider; ignored: {', '.join(map(plain, extra))}."] if extra else []


def _merged(rows: list[Found]) -> list[Found]:
    """Return the results cleaned, each page once."""
    kept: dict[str, Found] = {}
    for row in rows:
        url = row.url.strip()
        if not url.lower().startswith(("http://", "https://")) or len(url) > _MAX_URL or plain(url, _MAX_URL) != url:
            continue
        clean = Found(_clean(row.title, _TITLE) or url, url, _clean(row.snippet, _SNIPPET))
        known = kept.get(_same(url))
        if known is None or (not known.snippet and clean.snippet):
            kept[_same(url)] = clean
    return list(kept.values())


def _clean(text: str, most: int) -> str:
    return plain(html.unescape(_TAG.sub("", text)), most)


def _same(url: str) -> str:
    """Return what two spellings of one page's URL share."""
    from urllib.parse import parse_qsl, urlencode, urlsplit

    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return url
    query = urlencode(sorted((name, value) for name, value in given if not _TRACKING.match(name)))
    return f"{parts.netloc.lower().removeprefix('www.')}{parts.path.rstrip('/')}?{query}"


def _told(provider: str, query: str, found: list[Found], warnings: list[str]) -> dict[str, Any]:
    lines = [f"{len(found)} results from {provider}" if found else f"No results from {provider} for {plain(query, 200)!r}."]
    if found:
        rows: list[str] = []
        for number, row in enumerate(found, 1):
            rows += [f"{number}. {row.title}", f"   {row.url}", *([f"   {row.snippet}"] if row.snippet else []), ""]
        lines += quoted(rows[:-1])[0]
    return ok(
        "\n".join([*lines, *warnings]), results=[row._asdict() for row in found], count=len(found), provider=provider,
        query=query, untrusted=True, warnings=warnings,
    )  # fmt: skip
