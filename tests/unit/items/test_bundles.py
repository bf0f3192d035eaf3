"""Bundles of other installed packages: a manifest of a key that counts lists what is served, and nothing is imported."""

import json
import sys
from pathlib import Path

import pytest

import rye
from rye.items import bundles, spaces
from rye.plain_class import changed
from rye.trust import decisions, verify
from support.in_process import rye as shell
from support.signed_tools import MINE, STRANGER, approve, bring_key, key_document, put, signed, tool_text, trust_key
from support.signed_tools import rye as new_process

pytestmark = pytest.mark.usefixtures("here")


def write_manifest(root, key=STRANGER, bundle_id="extra"):
    pem = Path(root, "key.pem")
    pem.write_bytes(key.pem)
    done = shell("bundle", "create", "--folder", Path(root, ".ai"), "--id", bundle_id, "--key", pem, cwd=root)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages, one of them with a bundle, whose code writes a canary when it is imported."""
    folder = tmp_path / "site"
    package = folder / "extra_tools"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\n")
    for item_id in ("extra/one", "extra/two"):
        put(package, f"tools/{item_id}.py", signed(tool_text(item_id), STRANGER))
    write_manifest(package)
    bring_key(package, STRANGER, "Extra Ltd")
    installed(folder, "extra", "extra_tools:get_bundle")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    # Whatever happened, nothing of the package was run; control below.
    assert "extra_tools" not in sys.modules
    assert not (tmp_path / "canary").exists()
    __import__("extra_tools")
    assert (tmp_path / "canary").exists()
    del sys.modules["extra_tools"]


def installed(folder, name, value, dist="extra-tools"):
    info = folder / f"{dist.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rye.bundles]\n{name} = {value}\n")


def call(project, item_id="extra/one"):
    return rye.execute(item_id, project_path=project)


def reads(project):
    (project / "a.txt").write_text("x\n")
    return rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)


def test_an_installed_bundle_counts_for_nothing_until_its_key_is_added(site, project, user_space):
    response = call(project)
    assert (response["code"], response["metadata"]["ran"]) == ("untrusted_key", False)
    document = site / f"extra_tools/.ai/trusted_keys/{STRANGER.public.fingerprint}.toml"
    assert STRANGER.public.fingerprint in response["error"]
    assert f"rye trust add {document}" in response["error"]
    rows = {row["item_id"]: row for row in rye.tools(project_path=project)}
    assert (rows["extra/one"]["verdict"], "owner" in rows["extra/one"]) == ("untrusted_key", False)
    # A project's approval of the same key does not extend to it.
    bring_key(project)
    approve(project)
    assert call(project)["code"] == "untrusted_key"
    # The document is named only where adding it would help.
    kept = document.read_bytes()
    document.unlink()
    response = call(project)
    assert (response["code"], "rye trust add /" in response["error"]) == ("untrusted_key", False)
    document.write_bytes(kept)
    # The very command that the refusal names.
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    assert shell("trust", "add", document, cwd=project).returncode == 0
    # Not in this process, where the tests' own tools stand for the system's.
    env = {"PYTHONPATH": f"{rye.__path__[0]}/..:{site}"}
    response = json.loads(new_process("execute", "extra/one", "--json", cwd=project, env=env).stdout)
    assert (response["status"], response["item"]["space"]) == ("success", "bundle:extra")
    assert response["isolation"]["permissions"] == [], "a bundle's tool is another's"
    decisions.revoke(STRANGER.public.digest)
    response = call(project)
    assert (response["code"], "rye trust add" in response["error"]) == ("revoked_key", False)


def test_an_installed_bundles_items_are_held_to_its_manifest(site, project):
    trust_key(STRANGER)
    assert call(project)["status"] == "success"
    one = site / "extra_tools/.ai/tools/extra/one.py"
    good, other = one.read_bytes(), signed(tool_text("extra/one", 'return {"success": True, "output": "other"}'), STRANGER)
    for raw, code in (
        (good.replace(b"2026-01-02T03:04:05Z", b"2099-01-02T03:04:05Z"), "tampered"),
        (one.with_name("two.py").read_bytes(), "misplaced"),
        *((other, "tampered"), (good, None)),
    ):
        one.write_bytes(raw)
        assert call(project).get("code") == code
    # What is signed and not listed is not served.
    put(site / "extra_tools", "tools/extra/new.py", signed(tool_text("extra/new"), STRANGER))
    assert call(project, "extra/new")["code"] == "misplaced"


LISTS = b"bundle: {id: extra}\nitems: "


@pytest.mark.parametrize(
    ("code", "texts"),
    [
        ("malformed_item", [b"\xff", b"a", b"[]", b"bundle: {id: extra}", b"bundle: extra\nitems: {}"]),
        ("malformed_item", [LISTS + items for items in (b"[]", b"{tool: a}", b"{tool: [a]}", b"{tool: null}")]),
        ("malformed_item", [LISTS + items for items in (b"{tool: {a: 1}}", b"{tool: {1: a}}")]),
        ("malformed_item", [b"bundle: &a {id: extra}\nitems: {tool: *a}", b"items: {}\nitems: {}"]),
        ("misplaced", [b"bundle: {id: other}\nitems: {}"]),
        ("unsigned", [None]),
    ],
)
def test_without_a_good_manifest_of_its_own_a_bundle_serves_nothing(site, project, code, texts):
    trust_key(STRANGER)
    path = site / "extra_tools/.ai/bundles/extra/manifest.yaml"
    for text in texts:
        path.unlink() if text is None else path.write_bytes(signed(text, STRANGER, suffix=".yaml"))
        answer = call(project)
        assert (answer["code"], answer["metadata"]["ran"]) == (code, False), text


@pytest.mark.parametrize(("odd", "told"), [("data.json", b"'.json'"), ("gone.py", b"gone")])
def test_what_cannot_be_signed_or_read_cannot_be_bundled(tmp_path, odd, told):
    folder = put(tmp_path, "tools/extra/one.py", signed(tool_text("extra/one"))).parent
    (folder / odd).write_text("{}") if odd == "data.json" else (folder / odd).symlink_to("/etc/passwd")
    (tmp_path / "key.pem").write_bytes(MINE.pem)
    done = shell("bundle", "create", "--folder", ".ai", "--id", "extra", "--key", "key.pem", cwd=tmp_path)
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr


def test_an_installed_bundle_comes_last_and_serves_no_reserved_id(site, project):
    trust_key(STRANGER)
    # Each of several is held to its own manifest.
    (site / "another/.ai").mkdir(parents=True)
    installed(site, "aaa", "another", dist="another")
    package = site / "extra_tools"
    for item_id in ("rye/own", "rye/file-system/read"):
        put(package, f"tools/{item_id}.py", signed(tool_text(item_id), STRANGER))
    write_manifest(package)
    assert call(project, "rye/own")["code"] == "reserved_id"
    assert reads(project)["item"]["space"] == "system"
    trust_key()
    put(project, "tools/extra/one.py", signed(tool_text("extra/one")))
    assert call(project)["item"]["space"] == "project"
    assert call(project, "extra/two")["item"]["space"] == "bundle:extra"
    # One that calls its bundle `rye` is not the system.
    installed(site, "rye", "extra_tools")
    write_manifest(package, bundle_id="rye")
    assert call(project, "extra/two")["code"] == "untrusted_key"
    assert reads(project)["status"] == "success"


def test_entries_that_name_no_package_are_passed_over(site, project):
    trust_key(STRANGER)
    odd = [("extra", value) for value in ("../../etc", "extra_tools/../x", "/etc", "", "no_such_package")]
    for name, value in (*odd, ("../x", "extra_tools"), ("a b", "extra_tools")):
        installed(site, name, value)
        assert call(project)["code"] == "item_not_found", (name, value)


def test_a_reserved_id_of_the_system_needs_the_systems_key(project, tmp_path, monkeypatch):
    """A good manifest and a good signature of another key that counts: still not the system's."""
    folder = tmp_path / "bundle"
    put(folder, "tools/rye/tool.py", signed(tool_text("rye/tool"), STRANGER))
    for item_id in ("rye/core/runtimes/python_function_runtime", "rye/core/primitives/function"):
        shipped = Path(spaces.system_folder(), f"tools/{item_id}.yaml").read_bytes().partition(b"\n")[2]
        put(folder, f"tools/{item_id}.yaml", signed(shipped, suffix=".yaml"))
    put(folder, "trusted_keys/k.toml", key_document(MINE, "rye"))
    monkeypatch.setattr(verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    monkeypatch.setattr(spaces, "system_folder", lambda: folder / ".ai")
    trust_key(STRANGER)
    write_manifest(folder, MINE, "rye")
    assert call(project, "rye/tool")["code"] == "reserved_id"
    # Control: signed by that key it is the system's.
    put(folder, "tools/rye/tool.py", signed(tool_text("rye/tool")))
    write_manifest(folder, MINE, "rye")
    assert call(project, "rye/tool")["status"] == "success"
    # Without a manifest of that key the bundle serves nothing.
    write_manifest(folder, STRANGER, "rye")
    assert call(project, "rye/tool")["code"] == "untrusted_key"


def test_metadata_of_another_file_is_not_believed(project):
    """The manifest has what each tool says of itself, so that no tool has to be parsed for it."""
    system = spaces.Space("system", spaces.system_folder())
    store = spaces.trust_store([system])
    manifest = bundles.read(spaces.read_file(system, "bundles/rye/manifest.yaml"), "rye", store)
    tool = spaces.find("tool", "rye/file-system/read", [system])
    parsed = bundles.admit(tool, store, manifest)
    assert bundles.metadata_from_manifest(tool, manifest) == (parsed.metadata, parsed.docstring)
    assert bundles.metadata_from_manifest(changed(tool, raw=tool.raw + b"#"), manifest) is None
