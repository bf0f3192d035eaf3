"""One suite of the registry, against an OCI layout in a directory and a real docker-registry on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

import rye
from rye.errors import ItemError, TrustError, UsageError
from rye.registry import pull as registry_pull
from rye.registry import push as registry_push
from rye.registry.oci import manifest
from rye.registry.oci import reference as references
from rye.registry.oci import store as stores
from rye.trust import pins
from support.in_process import rye as run
from support.machine import needs_programs
from support.oci_server import put_items, running, version_of
from support.signed_tools import MINE, STRANGER, put, put_tool, signed, tool_text, trust_key


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server")) as name:
        yield name


@pytest.fixture(params=["layout", "server"])
def where(request, tmp_path):
    if request.param == "layout":
        return str(tmp_path / "registry")
    # A prefix of its own, so that tests do not meet.
    return f"{request.getfixturevalue('server')}/t{os.urandom(6).hex()}"


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Another user, on another machine for all that counts here, who trusts the same key."""

    def become():
        monkeypatch.setenv("USER_SPACE", str(tmp_path / "other-user"))
        trust_key()
        folder = tmp_path / "other-project"
        folder.mkdir(exist_ok=True)
        return folder

    return become


def at(project, where):
    return stores.RegistryTarget(str(project), str(where))


@pytest.fixture
def here(project, where):
    return at(project, where)


def asked(target, action, reference, *words):
    """Return what `rye registry` says of a reference, as JSON."""
    done = run("registry", action, reference, *words, "--registry", target.registry, "--json", cwd=target.project)
    return json.loads(done.stdout)


def pull(target, reference, *, item_type="tool", **options):
    """Return the row of one reference that is pulled."""
    return registry_pull.pull(target, item_type, [reference], registry_pull.PullOptions(**options))[0]


def refused(code, row):
    assert (row["status"], row["code"]) == ("refused", code), row
    assert row["hint"]
    return row


def files(folder):
    """Return the items and manifests below a folder."""
    return sorted(
        path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file() and "cache" not in path.parts
    )


def publish(at, item_id="my/text/report", version="1.0.0", key=MINE, project=None, **options):
    trust_key(key)
    put(project or at.project, f"tools/{item_id}.py", version_of(item_id, version, key, **options))
    return registry_push.push(at, "tool", [item_id])[0]


def test_what_is_pushed_is_found_pulled_and_run_elsewhere(project, where, here, other):
    ids = put_items(project, 20)
    entry = b'```yaml\nid: a\nversion: "1.0.0"\ncategory: my/notes\ntitle: T\n```\nText\n'
    put(project, "knowledge/my/notes/a.md", signed(entry, item_type="knowledge", suffix=".md"))
    assert {row["status"] for row in registry_push.push(here, "tool", ["my/*"])} == {"pushed"}
    assert registry_push.push(here, "knowledge", ["my/notes/a"])[0]["version"] == "1.0.0"
    sent = {item_id: (project / f".ai/tools/{item_id}.py").read_bytes() for item_id in ids}

    there = other()
    here = at(there, where)
    assert len(asked(here, "list", "my")) == 21
    found = asked(here, "search", "T005", "--in", "my")
    assert [row["item_id"] for row in found["results"]] == ["my/many/t005"]
    assert registry_pull.verify(here, "tool", "my/many/t005")["verdict"] == "valid"
    rows = registry_pull.pull(here, "tool", ["my/*"], registry_pull.PullOptions())
    assert [row["status"] for row in rows] == ["installed"] * 20
    assert {item_id: (there / f".ai/tools/{item_id}.py").read_bytes() for item_id in ids} == sent
    assert rye.execute("my/many/t005", {}, project_path=there)["data"]["output"] == "done"
    assert pull(here, "my/notes/a", item_type="knowledge", destination="user")["installed_to"] == "user"
    again = pull(here, "my/many/t005")
    assert (again["status"], again["replaced"]) == ("installed", [])


BODY = """from pathlib import Path
return {"success": True, "output": Path(__file__).parent.joinpath("_lib/words.txt").read_text()}"""


def put_with_file(project, text, version="1.0.0", item_id="my/teller"):
    """Sign a tool that names another file, as a person does."""
    trust_key()
    put(project, f"tools/{item_id.rpartition('/')[0]}/_lib/words.txt", text)
    plain = tool_text(item_id, BODY, more='__files__ = ["_lib/words.txt"]\n__permissions__ = []')
    put(project, f"tools/{item_id}.py", plain.replace(b'"1.2.3"', f'"{version}"'.encode()))
    (project / "key.pem").write_bytes(MINE.pem)
    (row,) = rye.sign([f"{project}/.ai/tools/{item_id}.py"], key=project / "key.pem", project_path=project)
    assert row["status"] == "signed", row


def test_the_other_files_of_a_tool_travel_with_it_and_are_verified(project, where, here, other, user_space):
    put_with_file(project, b"hello\x00\xff world")
    assert registry_push.push(here, "tool", ["my/teller"])[0]["status"] == "pushed"
    put_with_file(project, b"hello new world", "1.1.0")
    assert registry_push.push(here, "tool", ["my/teller"])[0]["status"] == "pushed"
    there = other()
    here = at(there, where)
    words = there / ".ai/tools/my/_lib/words.txt"
    row = pull(here, "my/teller:1.0.0")
    assert (row["status"], len(row["paths"])) == ("installed", 2), row
    assert words.read_bytes() == b"hello\x00\xff world"
    # A newer version replaces what the older one brought, and nothing that was edited here.
    words.write_bytes(b"mine")
    refused("edited_locally", pull(here, "my/teller"))
    assert words.read_bytes() == b"mine"
    words.write_bytes(b"hello\x00\xff world")
    assert pull(here, "my/teller")["status"] == "installed"
    assert rye.execute("my/teller", {}, project_path=there)["data"]["output"] == "hello new world"
    # Copied, it takes them along; taken back, they go with it.
    assert rye.load("tool", "my/teller", project_path=there, destination="user")["copied_to"] == "user"
    assert Path(os.environ["USER_SPACE"], ".ai/tools/my/_lib/words.txt").read_bytes() == b"hello new world"
    rye.execute("rye/file-system/undo", {}, project_path=there)
    assert words.read_bytes() == b"hello\x00\xff world"


def test_a_file_that_is_not_the_signed_one_is_refused(project, tmp_path, other):
    where = str(tmp_path / "registry")
    here = at(project, where)
    put_with_file(project, b"hello")
    registry_push.push(here, "tool", ["my/teller"])
    # Whoever keeps the registry answers other bytes, or none, with a manifest of their own.
    store = stores.open_store(where)
    tag = references.tag_of("tool", "my/teller", "1.0.0")
    raw = store.manifest("my", tag)
    there = other()
    for change in (b"evil!", None):
        record, title = json.loads(raw), "files/my/teller/_lib/words.txt"
        (layer,) = [one for one in record["layers"] if one["annotations"]["org.opencontainers.image.title"] == title]
        blobs = {f"sha256:{hashlib.sha256(change).hexdigest()}": change} if change else {}
        record["layers"].remove(layer)
        record["layers"] += [{**layer, "digest": digest} for digest in blobs]
        store.push("my", [manifest.Pushed(tag, json.dumps(record).encode(), blobs)])
        row = refused("tampered", pull(at(there, where), "my/teller"))
        assert "_lib/words.txt" in row["error"]
        assert files(there) == []


def test_a_tool_in_any_language_travels_with_its_runtime(project, where, here, other, tmp_path):
    trust_key()
    head = 'version: "1.0.0"\ncategory: my\ndescription: d\nexecutor_id: '
    runtime = f"{head}rye/core/primitives/subprocess\ntool_type: runtime\nsuffixes: [.zz]\ncomment: --\n"
    runtime += "config: {command: tail, args: [-n1, '{tool_path}']}\n"
    lines = f"---\n{head}my/zz\ntool_type: zz\n---".splitlines()
    text = "".join(f"-- {line}\n" for line in lines) + "whole"
    put(project, "tools/my/zz.yaml", signed(runtime.encode(), suffix=".yaml"))
    put(project, "tools/my/told.zz", signed(text.encode(), suffix=".zz"))
    assert {row["status"] for row in registry_push.push(here, "tool", ["my/*"])} == {"pushed"}
    there = other()
    here = at(there, where)
    put(there, "tools/my/told.qq", b"# ---\n")
    assert refused("edited_locally", pull(here, "my/told"))
    (there / ".ai/tools/my/told.qq").write_bytes(b"a,b\n")
    for item_id in ("my/told", "my/zz"):
        assert pull(here, item_id)["status"] == "installed"
    assert rye.execute("my/told", {}, project_path=there)["data"]["output"] == "whole"
    assert rye.load("tool", "my/told", project_path=there, destination="user")["copied_to"] == "user"
    assert (tmp_path / "other-user/.ai/tools/my/told.zz").read_bytes() == (project / ".ai/tools/my/told.zz").read_bytes()


def test_a_version_is_published_once(project, here):
    assert publish(here)["status"] == "pushed"
    assert registry_push.push(here, "tool", ["my/text/report"])[0]["status"] == "unchanged"
    with pytest.raises(rye.RyeError) as caught:
        publish(here, body='return {"success": True, "output": "other"}')
    assert caught.value.code == "version_exists"


def test_only_what_is_verified_is_pushed(project, here):
    put(project, "tools/my/a/alien.py", signed(tool_text("my/a/alien"), STRANGER))
    put(project, "tools/my/a/bare.py", tool_text("my/a/bare"))
    for name, code in (("alien", "untrusted_key"), ("bare", "unsigned")):
        with pytest.raises(TrustError) as caught:
            registry_push.push(here, "tool", [f"my/a/{name}"])
        assert caught.value.code == code
    put_tool(project, "alone")
    with pytest.raises(UsageError):
        registry_push.push(here, "tool", ["alone"])
    put(project, "knowledge/my/n.md", signed(b"```yaml\nid: n\ncategory: my\n```\nText\n", item_type="knowledge", suffix=".md"))
    with pytest.raises(ItemError) as caught:
        registry_push.push(here, "knowledge", ["my/n"])
    assert caught.value.code == "no_version"


def test_an_unknown_key_is_named_with_the_line_that_trusts_it(project, where, tmp_path, monkeypatch):
    publish(at(project, where))
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "stranger"))
    there = tmp_path / "there"
    there.mkdir()
    here = at(there, where)
    row = refused("untrusted_key", pull(here, "my/text/report"))
    for named in (MINE.public.fingerprint, MINE.public.digest, "tester"):
        assert named in row["error"]
    saved = f"{MINE.public.fingerprint}.toml"
    assert f"rye registry key my/text/report:1.0.0 --registry {where} > {saved} && rye trust add" in row["hint"]
    assert files(there) == []
    shown = asked(here, "inspect", "my/text/report")
    assert (shown["verdict"], "diff" in shown) == ("untrusted_key", False)
    document = tmp_path / "key.toml"
    document.write_text(asked(here, "key", "my/text/report")["document"])
    put(tmp_path / "stranger", "config/rye.yaml", b"signing: {agents: allow}\n")
    assert run("trust", "add", str(document), cwd=there).returncode == 0
    assert pull(here, "my/text/report")["status"] == "installed"


def test_versions_go_up_unless_the_user_says_otherwise(project, where, other):
    for version in ("1.0.0", "1.9.0", "1.10.0"):
        publish(at(project, where), version=version)
    here = at(other(), where)
    assert pull(here, "my/text/report")["version"] == "1.10.0"
    for options in ({}, {"destination": "user"}):
        assert refused("downgrade", pull(here, "my/text/report:1.9.0", **options))["floor"] == "1.10.0"
    assert asked(here, "inspect", "my/text/report:1.9.0")["verdict"] == "downgrade"
    assert pull(here, "my/text/report:1.9.0", allow_downgrade=True)["version"] == "1.9.0"
    # What was seen cannot be told: then nothing is pulled.
    put(os.environ["USER_SPACE"], "trust/registry.json", b"{}")
    with pytest.raises(TrustError) as caught:
        pull(here, "my/text/report", allow_downgrade=True)
    assert caught.value.code == "trust_store_unreadable"


def test_an_installed_or_locked_version_is_a_floor_too(project, where, other):
    for version in ("1.0.0", "2.0.0"):
        publish(at(project, where), version=version)
    there = other()
    put(there, "tools/my/text/report.py", version_of("my/text/report", "1.5.0"))
    here = at(there, where)
    assert "installed" in refused("downgrade", pull(here, "my/text/report:1.0.0"))["error"]
    assert run("lock", "my/text/report", cwd=there).returncode == 0
    assert "locked" in refused("downgrade", pull(here, "my/text/report:1.0.0"))["error"]
    assert pull(here, "my/text/report")["locked"] == ["lockfiles/my/text/report@2.0.0.lock.json"]
    assert rye.execute("my/text/report", {}, project_path=there)["status"] == "success"
    assert json.loads((there / ".ai/lockfiles/my/text/report@2.0.0.lock.json").read_text())["root"]["version"] == "2.0.0"


def test_what_was_edited_here_is_not_replaced_in_silence(project, where, other):
    publish(at(project, where))
    there = other()
    mine = put(there, "tools/my/text/report.py", version_of("my/text/report", "0.9.0") + b"# my own note\n")
    here = at(there, where)
    before = mine.read_bytes()
    refused("edited_locally", pull(here, "my/text/report"))
    assert mine.read_bytes() == before
    assert pull(here, "my/text/report", overwrite=True)["status"] == "installed"
    mine.unlink()
    put(there, "tools/my/text/report.sh", b"# ---\necho\n")
    refused("edited_locally", pull(here, "my/text/report", overwrite=True))


def test_a_namespace_is_pinned_only_when_asked_and_then_holds(project, where, here, other, tmp_path):
    publish(here, "my/a/one")
    publish(here, "my/a/two", key=STRANGER)
    there = other()
    trust_key(STRANGER)
    here = at(there, where)
    assert pull(here, "my/a/one")["status"] == "installed"
    assert pins.load().pins == {}
    pull(here, "my/a/one", pin=True)
    row = refused("pinned_key_changed", pull(here, "my/a/two", pin=True))
    assert (row["pinned"], row["key_digest"]) == (MINE.public.digest, STRANGER.public.digest)
    assert registry_pull.unpin("my") == MINE.public.digest
    assert pull(here, "my/a/two")["status"] == "installed"
    with pytest.raises(UsageError):
        registry_pull.unpin("my")


def test_a_yanked_version_is_passed_over_and_warned_of(project, where, here, other):
    first = publish(here, version="1.0.0")
    publish(here, version="1.1.0")
    registry_push.yank(here, "tool", "my/text/report:1.1.0", "loses\x1b[31m data")
    here = at(other(), where)
    row = pull(here, "my/text/report")
    assert (row["version"], row["warnings"]) == ("1.0.0", [])
    row = pull(here, "my/text/report:1.1.0")
    assert "was yanked" in row["warnings"][0]
    assert "loses[U+001B][31m data" in row["warnings"][0]
    assert [one["yanked"] for one in asked(here, "list", "my")] == [False, True]
    row = pull(here, f"my/text/report@{first['digest']}", allow_downgrade=True)
    assert row["version"] == "1.0.0"


def test_inspect_shows_what_a_pull_would_bring(project, where, here, other):
    publish(here, version="1.0.0")
    head = '__permissions__ = ["write"]\n__requires_rye__ = ">=0.1"\n__requires__ = ["tabulate>=0.9"]'
    publish(here, version="1.1.0", head=head)
    there = other()
    here = at(there, where)
    pull(here, "my/text/report:1.0.0")
    shown = asked(here, "inspect", "my/text/report")
    assert shown["permissions"] == ["read", "write"]
    assert (shown["requires_rye"], shown["requires"]) == (">=0.1", ["tabulate>=0.9"])
    assert (shown["signer"], shown["verdict"]) == (MINE.public.fingerprint, "valid")
    assert shown["installed"]["version"] == "1.0.0"
    assert '+__version__ = "1.1.0"' in shown["diff"]
    assert shown["versions"] == ["1.1.0", "1.0.0"]


def test_one_bad_reference_among_good_ones_does_not_stop_them(project, where, other):
    registry_push.push(at(project, where), "tool", ["rye/file-system/ls"])
    publish(at(project, where))
    asked = ["my/text/report", "my/text/none", "none/at/all", "rye/file-system/ls"]
    rows = registry_pull.pull(at(other(), where), "tool", asked, registry_pull.PullOptions())
    assert [row.get("code", row["status"]) for row in rows] == ["installed", *["not_in_registry"] * 2, "reserved_id"]


def test_a_bundle_travels_as_one(project, where, here, other, tmp_path):
    folder = tmp_path / "src"
    trust_key()
    put(folder, "tools/mine/a/one.py", version_of("mine/a/one"))
    put(folder, "tools/mine/a/two.py", version_of("mine/a/two"))
    put_with_file(folder, b"hello", item_id="mine/a/teller")
    (tmp_path / "key.pem").write_bytes(MINE.pem)
    words = ("--folder", folder / ".ai", "--id", "mine", "--version", "1.0.0", "--key", tmp_path / "key.pem")
    assert run("bundle", "create", *words, cwd=project).returncode == 0
    assert registry_push.push_bundle(here, "mine", folder / ".ai")[0]["status"] == "pushed"
    there = other()
    here = at(there, where)
    assert len(asked(here, "inspect", "mine", "--type", "bundle")["items"]) == 3
    edited = put(there, "tools/mine/a/two.py", b"mine\n")
    refused("edited_locally", pull(here, "mine", item_type="bundle"))
    assert files(there) == [".ai/tools/mine/a/two.py"], "all or nothing"
    edited.unlink()
    assert pull(here, "mine:1.0.0", item_type="bundle")["status"] == "installed"
    tools = [f".ai/tools/mine/a/{name}" for name in ("_lib/words.txt", "one.py", "teller.py", "two.py")]
    assert files(there) == [".ai/bundles/mine/manifest.yaml", *tools]
    assert rye.execute("mine/a/two", {}, project_path=there)["status"] == "success"
    assert rye.execute("mine/a/teller", {}, project_path=there)["data"]["output"] == "hello"


@needs_programs("skopeo")
def test_another_client_lists_and_copies_the_items(project, where, tmp_path):
    publish(at(project, where))
    tag = "tool--my.text.report--1.0.0"
    source = f"docker://{where[6:]}/my:{tag}" if where.startswith("oci:") else f"oci:{where}/my:{tag}"
    copy = tmp_path / "copy"
    copy.mkdir()
    on_a_server = where.startswith("oci:")
    insecure = ["--src-tls-verify=false"] * on_a_server
    subprocess.run(["skopeo", "copy", "-q", *insecure, source, f"oci:{copy}/my:{tag}"], check=True)
    if on_a_server:
        command = ["skopeo", "list-tags", "--tls-verify=false", f"docker://{where[6:]}/my"]
        assert json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["Tags"] == [tag]
    there = tmp_path / "there"
    there.mkdir()
    assert pull(at(there, copy), "my/text/report")["status"] == "installed"
    assert (there / ".ai/tools/my/text/report.py").read_bytes() == (project / ".ai/tools/my/text/report.py").read_bytes()


@pytest.mark.parametrize(
    "text",
    [
        *("report", "my/report:1", "my/report@sha256:00", "../my/x", "oci://host", "my//x", "my/x:1.0.0:2"),
        # What no repository can be called.
        *("My_Own/a/tool", "x--y/"),
    ],
)
def test_malformed_references(project, text):
    here = at(project, project / "r")
    for call in (lambda: pull(here, text), lambda: pull(here, "my/x", item_type="song")):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.hint
    # What no tag can be called.
    long = "my/" + "very-long-part/" * 9 + "tool"
    put_tool(project, long)
    assert pull(here, f"{long}:1.0.0")["code"] == "bad_reference"
    with pytest.raises(UsageError):
        registry_push.push(here, "tool", [long])


@pytest.mark.slow
def test_on_the_command_line(project, tmp_path, user_space):
    where = str(tmp_path / "registry")
    (project / ".ai").mkdir()
    put_tool(project, "my/text/report")
    put(user_space, "config/rye.yaml", json.dumps({"registry": {"default": where, "namespaces": ["my"]}}).encode())
    assert run("registry", "push", "my/text/report", cwd=project).returncode == 0
    assert b"my/text/report" in run("registry", "list", cwd=project).stdout
    assert json.loads(run("registry", "search", "report", "--json", cwd=project).stdout)["total"] == 1
    assert run("registry", "search", "nothing-like-it", cwd=project).returncode == 1
    done = run("registry", "pull", "my/text/report", "--to", "user", cwd=project)
    assert (done.returncode, done.stdout[:9]) == (0, b"Installed")
    done = run("registry", "pull", "my/text/report", "--pin", cwd=project)
    assert b"Only a person" in done.stderr
    assert run("registry", "pull", "my/text/none", cwd=project).returncode == 1
    assert run("registry", "yank", "my/text/report:1.2.3", "--reason", "old", cwd=project).returncode == 0
    assert b"was yanked" in run("registry", "verify", "my/text/report:1.2.3", cwd=project).stderr
    assert b"PUBLIC KEY" in run("registry", "key", "my/text/report:1.2.3", cwd=project).stdout
    put(user_space, "config/rye.yaml", json.dumps({"registry": {"default": where}, "signing": {"agents": "allow"}}).encode())
    assert run("registry", "pull", "my/text/report:1.2.3", "--pin", cwd=project).returncode == 0
    assert pins.load().pins == {"my": MINE.public.digest}
    os.remove(user_space / f".ai/trusted_keys/{MINE.public.fingerprint}.toml")
    done = run("registry", "pull", "my/text/report:1.2.3", cwd=project)
    assert done.returncode == 3
    assert b"rye trust add" in done.stderr
    assert run("registry", "pull", cwd=project).returncode == 2


# --- the tool: an agent looks and pulls; what others see, and trust, is for a person ---


def call(project, **parameters):
    return rye.execute("rye/registry/registry", parameters, project_path=project)


@pytest.fixture
def filled(project, tmp_path, user_space):
    """A project, and a registry that is the user's default one, with three tools that the project lacks."""
    source = tmp_path / "source"
    source.mkdir()
    ids = put_items(source, 3)
    registry_push.push(stores.RegistryTarget(str(source), str(tmp_path / "registry")), "tool", ids)
    put(user_space, "config/rye.yaml", json.dumps({"registry": {"default": str(tmp_path / "registry")}}).encode())
    return project


def test_an_agent_searches_inspects_pulls_and_runs(filled):
    found = call(filled, action="search", query="t001")["data"]
    assert (found["results"][0]["item_id"], "my/many/t001:1.2.3" in found["output"]) == ("my/many/t001", True)
    assert call(filled, action="list", limit=2)["data"]["truncated"] is True
    assert call(filled, action="inspect", reference="my/many/t001")["data"]["verdict"] == "valid"
    assert call(filled, action="verify", reference="my/many/t001")["status"] == "success"
    assert call(filled, action="pull", reference="my/many/t001")["status"] == "success"
    assert rye.execute("my/many/t001", {}, project_path=filled)["status"] == "success"
    assert rye.execute("rye/file-system/undo", {}, project_path=filled)["status"] == "success"
    assert not (filled / ".ai/tools/my/many/t001.py").exists()


def test_an_agent_neither_pushes_nor_yanks_unless_its_user_says_so(filled, user_space, tmp_path):
    put_tool(filled, "my/own/tool")
    for parameters in ({"action": "push", "reference": "my/own/tool"}, {"action": "yank", "reference": "my/many/t001:1.2.3"}):
        assert call(filled, **parameters)["code"] == "needs_person"
    settings = {"registry": {"default": str(tmp_path / "registry"), "agents": "allow"}}
    put(user_space, "config/rye.yaml", json.dumps(settings).encode())
    assert call(filled, action="push", reference="my/own/tool")["status"] == "success"
    assert call(filled, action="yank", reference="my/many/t001:1.2.3", reason="old")["status"] == "success"
    assert "was yanked" in call(filled, action="verify", reference="my/many/t001:1.2.3")["data"]["warnings"][0]


def test_an_agent_asks_no_registry_but_the_users(filled):
    for parameters in (
        {"action": "list", "registry": "/etc"},
        {"action": "pull", "reference": "oci://169.254.169.254/my/a/b"},
        {"action": "pull", "reference": "my/a/b", "registry": "oci://localhost:1"},
    ):
        assert call(filled, **parameters)["code"] == "registry_not_allowed"
    assert call(filled, action="pull")["code"] == "bad_parameters"
    assert call(filled, action="pull", reference="my/many/none")["code"] == "not_in_registry"
