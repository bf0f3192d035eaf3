"""The primitive `http`: a REST tool is ten lines of data, and nothing that a model says leaves its place in the request."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest

import rye
from support.oci_server import allowed_site
from support.signed_tools import put_yaml

FORMS = {
    "plain": lambda sent: f"you sent {sent}.",
    "json": lambda sent: json.dumps({"sent": sent}),
    "slashes-json": lambda sent: json.dumps({"sent": sent}).replace("/", "\\/"),
    "escaped-json": lambda sent: '{"sent": "' + "".join(f"\\u{ord(one):04x}" for one in sent) + '"}',
    "percent": lambda sent: quote(sent, safe=""),
    "lower": lambda sent: re.sub("%..", lambda match: match[0].lower(), quote(sent, safe="")),
    "form": quote_plus,
    "base64": lambda sent: base64.b64encode(sent.encode()).decode(),
    "base64-1": lambda sent: base64.b64encode(b"x" + sent.encode()).decode(),
    "base64-2": lambda sent: base64.urlsafe_b64encode(b"xy" + sent.encode() + b"z").decode(),
    "cut": lambda sent: "e" * 85 + sent,
}
SECRET = 's3cr/t+v"al?ue=zz9'
RUNTIME = "rye/core/runtimes/http_runtime"


JSON = {"Content-Type": "application/json"}


def answer(method, path, headers, body):
    kind, _, rest = path[1:].partition("/")
    if kind == "told":
        status, form = rest.split("/")
        told = FORMS[form](headers["X-Key"])
        sent = JSON if form.endswith("json") else {"Content-Type": "text/plain"}
        return 200 if status == "200" else (int(status), told), sent, told.encode()
    if kind == "status":
        return int(rest), JSON, b'{"why": "asked for"}'
    if kind == "text":
        return 200, {"Content-Type": "text/plain"}, b"line\n" * 20_000
    sent = {name.lower(): value for name, value in headers.items()}
    found = {"method": method, "path": path, "headers": sent, "body": body.decode(), "items": [{"n": 7}]}
    return 200, JSON, json.dumps(found).encode()


@pytest.fixture
def site(user_space):
    with allowed_site(user_space, answer) as url:
        yield url


def rest(root, config, *, runtime=RUNTIME, permissions=("network",), required=(), **types):
    schema = {"type": "object", "properties": {name: {"type": one} for name, one in types.items()}, "required": list(required)}
    put_yaml(root, "my/rest", runtime, tool_type="http", permissions=list(permissions), config_schema=schema, config=config)


def keep(user_space, value, host="127.0.0.1", mode=0o600):
    store = user_space / ".ai/config/secrets.yaml"
    store.write_text(json.dumps({"TOKEN": {"value": value, "hosts": [host]}}))
    store.chmod(mode)


def call(project, **parameters):
    return rye.execute("my/rest", parameters, project_path=project)


def test_a_rest_tool_is_data(project, site):
    config = {
        "url": f"{site}/items/{{name}}?fixed=1",
        "query": {"count": "{count}", "extra": "{extra}"},
        "headers": {"X-Name": "n-{name}"},
        "response": {"output": "items.0.n", "fields": {"path": "path", "name": "headers.x-name", "gone": "not.there"}},
    }
    rest(project, config, name="string", count="integer", extra="string", required=["name"])
    answer = call(project, name="a b", count=3)
    assert answer["status"] == "success", answer
    data = answer["data"]
    assert (data["output"], data["path"], data["name"]) == ("7", "/items/a%20b?fixed=1&count=3", "n-a b")
    assert "gone" not in data
    assert [link["item_id"] for link in answer["chain"]] == ["my/rest", RUNTIME, "rye/core/primitives/http"]
    for refused in ("..", ""):
        assert call(project, name=refused)["error"].startswith("{name} in the URL's path cannot be empty"), refused


@pytest.mark.parametrize(
    "value",
    ["../../admin", "x?admin=1", "x#y", "x&count=9", "%2e%2e%2f", "@evil.example", "{name}", "${HOME}", "{secret:T}", "é ü"],
)
def test_a_parameter_stays_one_part_of_the_url(project, site, value):
    rest(project, {"url": f"{site}/items/{{name}}", "query": {"q": "{name}"}, "response": {"output": "path"}}, name="string")
    encoded = quote(value, safe="")
    assert call(project, name=value)["data"]["output"] == f"/items/{encoded}?q={encoded}"


def test_a_body_keeps_the_types_of_its_parameters(project, site):
    body = {"a": "{count}", "b": ["{name}!", "{extra}"], "c": {"d": "{list}", "e": "{extra}"}, "f": 1}
    config = {"url": f"{site}/x", "method": "post", "body": body, "response": {"output": "body"}}
    rest(project, config, count="integer", name="string", list="array", extra="string")
    answer = call(project, count=3, name='"}, {"x": "', list=[1, {"y": 2}])
    assert json.loads(answer["data"]["output"]) == {"a": 3, "b": ['"}, {"x": "!'], "c": {"d": [1, {"y": 2}]}, "f": 1}


def test_without_the_permission_for_the_network_nothing_is_asked_and_a_header_cannot_be_broken(project, site, user_space):
    rest(project, {"url": f"{site}/x"}, permissions=["read"])
    answer = call(project)
    assert (answer["code"], "permissions: [read, network]" in answer["error"]) == ("permission_missing", True)
    rest(project, {"url": f"{site}/x", "headers": {"X-A": "{name}"}}, name="string")
    for value in ("a\r\nX-B: c", "a\nb", "a\0b", "é"):
        assert call(project, name=value)["code"] == "bad_value"
    assert call(project, name="a")["status"] == "success"
    config = user_space / ".ai/config/rye.yaml"
    config.write_text(config.read_text() + "sandbox: {network: 'off'}\n")
    assert call(project, name="a")["code"] == "network_off"


def test_only_public_addresses_are_asked_unless_the_user_lets_others(project, user_space, site):
    rest(project, {"url": f"{site}/x"})
    assert call(project)["status"] == "success"
    (user_space / ".ai/config/rye.yaml").unlink()
    for url in (f"{site}/x", "http://169.254.169.254/latest", "http://[::1]/", "http://localhost/"):
        rest(project, {"url": url})
        assert call(project)["code"] == "address_not_public", url


def test_a_secret_goes_to_its_hosts_alone_and_is_shown_to_nobody(project, site, user_space):
    config = {"url": f"{site}/x", "headers": {"Authorization": "Bearer {secret:TOKEN}"}}
    rest(project, config)
    assert call(project)["code"] == "secret_missing"
    keep(user_space, "s3cret-value", mode=0o644)
    assert call(project)["code"] == "secret_refused"
    keep(user_space, "s3cret-value")
    answer = call(project)
    assert (answer["status"], "s3cret-value" in json.dumps(answer)) == ("success", False)
    assert "[secret]" in answer["data"]["output"]
    # The form of other installations names the same store.
    auth = {"type": "bearer", "token": "${TOKEN}"}
    rest(project, {"url": f"{site}/x", "auth": auth}, runtime="rye/core/primitives/http_client")
    assert "Bearer [secret]" in call(project)["data"]["output"]
    keep(user_space, "s3cret-value", host="api.example.org")
    assert call(project)["code"] == "secret_refused"
    rest(project, {**config, "url": "http://api.example.org/x"})
    answer = call(project)
    assert (answer["code"], "not sent without TLS" in answer["error"]) == ("secret_refused", True)
    for place in ({"url": f"{site}/{{secret:TOKEN}}"}, {"url": f"{site}/x", "query": {"a": "{secret:TOKEN}"}}):
        rest(project, place)
        assert call(project)["code"] == "malformed_item"


def shown(text):
    """Return which parts of the secret stand in a text, in one of the forms."""
    forms = [SECRET, json.dumps(SECRET)[1:-1], quote(SECRET, safe=""), FORMS["lower"](SECRET)]
    # Three characters of it.
    escaped = "".join(f"\\u{ord(one):04x}" for one in SECRET)
    found = [
        escaped[at : at + 18] for at in range(0, len(escaped) - 17, 6) if escaped[at : at + 18] in text.replace("\\\\", "\\")
    ]
    forms += [base64.b64encode(bytes(before) + SECRET.encode()).decode()[4:-4] for before in range(3)]
    text = text.replace("-", "+").replace("_", "/")
    return found + [one[at : at + 6] for one in forms for at in range(len(one) - 5) if one[at : at + 6] in text]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [200, 401])
@pytest.mark.parametrize("header", ["{secret:TOKEN}", "a={secret:TOKEN}; b=1"])
def test_a_secret_comes_back_in_no_form(project, site, user_space, status, form, header):
    keep(user_space, SECRET)
    config = {"url": f"{site}/told/{status}/{form}", "headers": {"X-Key": header}, "response": {"fields": {"sent": "sent"}}}
    rest(project, config)
    answer = call(project)
    assert answer["data"]["status"] == status
    assert shown(json.dumps(answer)) == []
    # The control: a header that is no secret comes back.
    rest(project, {**config, "headers": {"X-Key": header.replace("{secret:TOKEN}", SECRET)}})
    assert shown(json.dumps(call(project)))


def test_a_short_secret_is_taken_out_as_a_whole_header_alone(project, site, user_space):
    keep(user_space, "abc")
    for header, told in (("{secret:TOKEN}", "you sent [secret]."), ("k=abc;abcd {secret:TOKEN}", "you sent [secret].")):
        rest(project, {"url": f"{site}/told/200/plain", "headers": {"X-Key": header, "X-Alphabet": "abcdef"}})
        assert call(project)["data"]["output"] == told
    rest(project, {"url": f"{site}/x", "headers": {"X-Key": "{secret:TOKEN}", "X-Alphabet": "abcdef"}})
    assert '"x-alphabet": "abcdef"' in call(project)["data"]["output"]


URLS = ("https://{host}/x", "https://a.example{x}/x", "{url}", "file:///etc/passwd", "https://${HOST}/")
MORE = ({"method": "TRACE"}, {"headers": {"a b": "c"}}, {"auth": {"type": "bearer", "token": "literal"}}, {"response": []})


@pytest.mark.parametrize(
    "config", [{}, *({"url": url} for url in URLS), *({"url": "https://a.example/", **more} for more in MORE)]
)
def test_a_request_whose_host_or_form_is_not_fixed_is_refused(project, config):
    rest(project, config, host="string", url="string", x="string")
    answer = call(project, host="evil.example", url="http://evil.example/", x="y")
    assert (answer["code"], answer["metadata"]["ran"]) == ("malformed_item", False)


def test_an_error_of_the_server_is_one_of_the_tool_and_a_long_answer_is_cut(project, site):
    rest(project, {"url": f"{site}/status/503"})
    answer = call(project)
    assert (answer["code"], "503" in answer["error"], answer["data"]["status"]) == ("http_error", True, 503)
    rest(project, {"url": f"{site}/text"})
    data = call(project)["data"]
    assert (data["truncated"], "more omitted" in data["output"]) == (True, True)
    assert len(data["output"].encode()) < 52_000
    rest(project, {"url": f"{site}/x", "response": {"output": "not.there"}})
    assert call(project)["code"] == "bad_answer"
