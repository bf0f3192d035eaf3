"""The primitive `http`: one request by the guarded client, described as data. No code of the tool runs.

`config`, put together from all links of the chain:

    url        http or https; `{name}` of a parameter in its path or query, percent-encoded; never in its scheme or host
    method     GET where nothing is said
    query      {name: text}: what is added to the query
    headers    {name: text}; `{secret:NAME}` is a secret of the user's store, here and nowhere else
    auth       {type: bearer, token: "${NAME}"} or {type: api_key, key: "${NAME}", header}: the same, as other
               installations say it
    body       sent as JSON; a text that is `{name}` alone becomes the parameter with its type
    response   {output: path, fields: {name: path}}: parts of a JSON answer, such as `items.0.title`
    timeout_seconds, max_timeout_seconds

Whatever names a parameter that is not given is left out: a query, a header, a member of the body. A secret has hosts in the
user's store (`config/secrets.yaml`: `NAME: {value: …, hosts: [api.example.org]}`), and goes to those alone, over TLS.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from rye.call import context, results, safe_text
from rye.call.safe_text import plain
from rye.call.secrets import Secrets
from rye.config import layers, user_dirs
from rye.errors import ItemError, RyeError, UsageError
from rye.executor import isolated
from rye.executor.chain import Chain, Started, declared, malformed
from rye.executor.primitives import templates
from rye.items import parse
from rye.items.parse import OLD_SECRET, SECRET
from rye.plain_class import Record, changed

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_TEXTS: Final = {"*": (str, int, float)}
_CONFIG: Final = {
    "url": str,
    "method": str,
    "query": _TEXTS,
    "headers": _TEXTS,
    "auth": dict.fromkeys(("type", "token", "key", "header"), str),
    "response": {"output": str, "fields": {"*": str}},
}
_HEAD: Final = re.compile(r"https?://[^/?#{}$]+(?=[/?#]|\Z)")
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_ALONE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Whoever reads a result goes through it by functions that call themselves.
_DEEPEST: Final = 64
_LEFT_OUT: Final = object()


class Plan(Record):
    """What a chain declares, checked once for all calls of a tool."""

    method: str
    url: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    output: str
    fields: dict[str, str]


def plan(chain: Chain) -> Plan:
    """Check what a chain declares. Errors as `rye.executor.chain.Primitive.plan`."""
    tool, config = chain.tool, declared(chain, "config", _CONFIG)
    url, method = config.get("url", ""), config.get("method", "GET").upper()
    texts = {part: {str(name): str(text) for name, text in config.get(part, {}).items()} for part in ("headers", "query")}
    headers = {**texts["headers"], **_auth(tool.id, config.get("auth"))}
    if not _HEAD.match(url):
        raise malformed(tool.id, "config.url must be a URL with a fixed host, such as https://api.example.org/items/{id}")
    if method not in _METHODS:
        raise malformed(tool.id, f"config.method must be one of {', '.join(_METHODS)}")
    if not all(_NAME.fullmatch(name) for name in headers):
        raise malformed(tool.id, "config.headers has a name that no header can have")
    for place, value in (("url", url), ("query", texts["query"]), ("body", config.get("body"))):
        if SECRET.search(json.dumps(value)):
            raise malformed(tool.id, f"a secret may stand in a header only, not in the {place}")
    response = config.get("response", {})
    fields = {str(name): path for name, path in response.get("fields", {}).items()}
    return Plan(method, url, texts["query"], headers, config.get("body"), response.get("output", ""), fields)


def _auth(item_id: str, auth: dict[str, str] | None) -> dict[str, str]:
    if auth is None:
        return {}
    kind = auth.get("type")
    text = auth.get("token" if kind == "bearer" else "key", "")
    # The environment of this process is no store of secrets: the name that is there is looked up in the user's.
    text = OLD_SECRET.sub(lambda match: f"{{secret:{match[1]}}}", text)
    if kind not in ("bearer", "api_key") or not SECRET.fullmatch(text):
        raise malformed(item_id, "config.auth must be {type: bearer, token} or {type: api_key, key, header}, naming a secret")
    return {"Authorization": f"Bearer {text}"} if kind == "bearer" else {auth.get("header", "X-API-Key"): text}


def foresee(chain: Chain, _plan: Plan, root: str) -> dict[str, Any] | None:
    """Check that a call may reach the network; there is nothing to confine. Errors as `start`."""
    _need_network(chain, root)
    return None


def start(chain: Chain, plan: Plan, parameters: dict[str, Any], root: str) -> Started:
    """Make a request ready.

    Raises:
        UsageError: `permission_missing`, `secret_missing`, `secret_refused`, `bad_value`, `bad_url`.
    """
    _need_network(chain, root)
    return Started(partial(_call, chain, plan, parameters), None)


def _need_network(chain: Chain, root: str) -> None:
    policy = isolated.policy(chain.tool, root)
    if "network" not in policy.permissions:
        listed = ", ".join((*chain.tool.permissions, "network"))
        why = f"{chain.tool.id} makes a request, and this tool has no `network` permission."
        raise UsageError("permission_missing", why, f"Add permissions: [{listed}] to its file, and sign it again.")
    if policy.network == "off":
        raise UsageError("network_off", "The network is off for tools here.", "Your user sets sandbox.network.")


def _call(chain: Chain, plan: Plan, parameters: dict[str, Any]) -> dict[str, Any]:
    tool = chain.tool
    texts = {name: templates.text_of(tool.id, name, value) for name, value in parameters.items()}
    absent = [name for name in tool.schema.get("properties", {}) if name not in texts]
    body = _filled(plan.body, parameters, texts, absent)
    answer = fetched(plan, plan.method, None if body is _LEFT_OUT else body, texts, absent)
    found: dict[str, Any] = safe_text.clean(_result(tool.id, plan, answer))
    return found


def fetched(
    plan: Plan, method: str, body: Any, texts: dict[str, str], absent: list[str], more: dict[str, str] | None = None
) -> Any:
    """Return the answer to a request, as `rye.web.client.fetch` does, without the secrets that it sent.

    They are taken out before any of it is read or cut. `more` are headers beside the plan's.
    """
    # Loaded where it is used: a cold command without a request does without.
    from rye.web import client
    from rye.web.addresses import Allowed

    url = _url(plan, texts, absent)
    parsed, chosen, secrets = client.parse(url), context.settings(), Secrets()
    headers = _headers(plan, texts, absent, (parsed.scheme, parsed.host), secrets) | (more or {})
    hosts, proxy = Allowed.of(chosen.texts("web.allow_hosts")), str(chosen.get("web.proxy") or "") or None
    context.note_secrets(secrets)
    got = client.fetch(client.FetchRequest(url, context.deadline().remaining(), hosts, method, headers, body, proxy))
    kind = secrets.removed(got.headers.get("content-type", ""))
    parts = {name: secrets.removed(getattr(got, name)) for name in ("url", "reason", "body")}
    return changed(got, headers={**got.headers, "content-type": kind}, **parts)


def _url(plan: Plan, texts: dict[str, str], absent: list[str]) -> str:
    head = _HEAD.match(plan.url)
    assert head is not None
    rest = plan.url[head.end() :]
    encoded = {name: quote(text, safe="") for name, text in texts.items()}
    if missing := templates.names(rest) & set(absent):
        why = f"The URL needs {', '.join(sorted(missing))}."
        raise UsageError("bad_value", why, "Give it; its author can make it required.")
    # A segment of dots alone would lead elsewhere, whatever is encoded: `.` is never encoded. An empty one does so, too.
    for part in rest.partition("?")[0].split("/"):
        if templates.names(part) and not templates.fill(part, encoded, {}).strip("."):
            why = f"{part} in the URL's path cannot be empty or made of dots."
            raise UsageError("bad_value", why, "Give another value.")
    url = head[0] + templates.fill(rest, encoded, {})
    pairs = [
        f"{quote(name, safe='')}={quote(templates.fill(value, texts, {}), safe='')}"
        for name, value in plan.query.items()
        if not templates.names(value) & set(absent)
    ]
    return url if not pairs else f"{url}{'&' if '?' in url else '?'}{'&'.join(pairs)}"


def _headers(plan: Plan, texts: dict[str, str], absent: list[str], place: tuple[str, str], secrets: Secrets) -> dict[str, str]:
    """Return the headers for a place (scheme, host); `secrets` takes what they bear."""
    found = {}
    for name, value in plan.headers.items():
        if templates.names(value) & set(absent):
            continue
        filled = templates.fill(value, texts, {})
        if not filled.isprintable() or not filled.isascii():
            raise UsageError("bad_value", f"The header {name} would hold a line end or an odd character.", "Give plain text.")
        # The secrets last, in the author's text alone: what a parameter says is never read as the name of one.
        found[name] = _with_secrets(value, texts, place, secrets) if SECRET.search(value) else filled
    return found


def _with_secrets(value: str, texts: dict[str, str], place: tuple[str, str], secrets: Secrets) -> str:
    parts, values, at = [], [], 0
    for match in SECRET.finditer(value):
        values.append(_secret(match[1], *place))
        parts += [templates.fill(value[at : match.start()], texts, {}), values[-1]]
        at = match.end()
    header = "".join((*parts, templates.fill(value[at:], texts, {})))
    secrets.add(values, header)
    return header


def _secret(name: str, scheme: str, host: str) -> str:
    """Return a secret of the user's store for a host.

    Raises:
        UsageError: `secret_missing`, `secret_refused`, `bad_config`.
    """
    path = f"{user_dirs.user_ai()}/config/secrets.yaml"
    try:
        found = parse.yaml_mapping(layers.read(path).decode() or "{}").get(name)
    except (ItemError, UnicodeDecodeError):
        raise UsageError("bad_config", f"{path} cannot be read as YAML.", "Correct it.") from None
    entry = f"{name}: {{value: …, hosts: [{host}]}}"
    if not isinstance(found, dict) or not isinstance(found.get("value"), str) or not isinstance(found.get("hosts"), list):
        why = f"The secret {name} is not in the user's store."
        raise UsageError("secret_missing", why, f"Your user writes `{entry}` into {path}.")
    if os.stat(path).st_mode & 0o077:
        raise UsageError("secret_refused", f"{path} can be read by others.", f"Run `chmod 600 {path}`.")
    # A signed tool could name any secret, and a host of its own.
    if host not in found["hosts"]:
        why = f"The secret {name} is not for {host}."
        raise UsageError("secret_refused", why, "Your user lists the hosts that may get it.")
    if scheme != "https" and host not in ("127.0.0.1", "localhost", "::1"):
        raise UsageError("secret_refused", f"The secret {name} is not sent without TLS.", "Use https.")
    return str(found["value"]).strip()


def _filled(part: Any, parameters: dict[str, Any], texts: dict[str, str], absent: list[str]) -> Any:
    """Return a body with its placeholders filled; `_LEFT_OUT` where it names a parameter that is not given."""
    if isinstance(part, dict):
        members = {key: _filled(value, parameters, texts, absent) for key, value in part.items()}
        return {key: value for key, value in members.items() if value is not _LEFT_OUT}
    if isinstance(part, list):
        return [value for one in part if (value := _filled(one, parameters, texts, absent)) is not _LEFT_OUT]
    if not isinstance(part, str):
        return part
    if templates.names(part) & set(absent):
        return _LEFT_OUT
    alone = _ALONE.fullmatch(part)
    if alone and alone[1] in parameters:
        return parameters[alone[1]]
    return templates.fill(part, {**texts, templates.WHOLE: json.dumps(parameters)}, {})


def _result(item_id: str, plan: Plan, answer: Any) -> dict[str, Any]:
    text = answer.body.decode("utf-8", "replace")
    result: dict[str, Any] = {
        "status": answer.status,
        "url": answer.url,
        "content_type": answer.headers.get("content-type", ""),
    }
    found = safe_text.of_json(text) if not answer.cut else None
    if answer.status >= 400:
        error = f"{item_id}: HTTP {answer.status} {plain(answer.reason, 100)}. {plain(text, 400)}".strip()
        return {**result, "success": False, "error": error, "code": "http_error"}
    chosen = _at(found, plan.output) if plan.output else found
    if plan.output and chosen is _LEFT_OUT:
        raise RyeError("bad_answer", f"The answer to {item_id} has no {plain(plan.output)}.", "Report it to the tool's owner.")
    shown = chosen if isinstance(chosen, str) else text if chosen is None else json.dumps(chosen, ensure_ascii=False, indent=1)
    left_out = {}
    for name, path in plan.fields.items():
        value = _at(found, path)
        if value is not _LEFT_OUT:
            if why := unfit(value):
                left_out[name] = why
            else:
                result[name] = value
    return {**result, "success": True, **bounded(shown), **({"left_out": left_out} if left_out else {})}


def unfit(value: Any) -> str:
    """Return why a part of a server's answer cannot be a field of a result, or nothing: it is for a model, and is JSON."""
    if not _is_shallow(value, _DEEPEST):
        return f"it is nested more than {_DEEPEST} deep"
    try:
        size = len(json.dumps(value, allow_nan=False))
    except ValueError:
        return "it holds a number that JSON lacks"
    budget = context.output_budget()
    return f"it has {size:,} bytes, more than the {budget:,} of an answer" if size > budget else ""


def _is_shallow(value: Any, deepest: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    return deepest > 0 and all(_is_shallow(one, deepest - 1) for one in (value.values() if isinstance(value, dict) else value))


def _at(found: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and len(name) < 10 and int(name) < len(found):
            found = found[int(name)]
        else:
            return _LEFT_OUT
    return found


def bounded(text: str) -> dict[str, Any]:
    """Return `output` and `truncated`: whole lines within the budget of the call's answer."""
    lines = text.split("\n")
    budget = context.output_budget() - 300
    page = results.Page(budget)
    count = page.fill(results.shorten(line, budget // 2) for line in lines)
    cut = count < len(lines)
    if cut:
        left = len(lines) - count
        page.lines.append(f"[tool_result: {count} of {len(lines)} lines; {left} more omitted. Ask the server for less.]")
    return {"output": "\n".join(page.lines), "truncated": cut or page.lines[:1] != lines[:1]}
