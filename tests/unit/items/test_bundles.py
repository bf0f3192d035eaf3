"""Bundle manifests: what a bundle lists is what it serves, bit for bit; other packages' bundles are read as text."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import rye
from rye.errors import RyeError
from rye.items import bundles, parse, spaces
from rye.trust import decisions, verify
from support.in_process import rye as shell
from support.signed_tools import MINE, STRANGER, approve, bring_key, put, signed, tool_text, trust_key
from support.signed_tools import rye as new_process

pytestmark = pytest.mark.usefixtures("here")

FACTS = {"id": "extra", "version": "1.0.0", "type": "bundle", "description": "Made for a test", "created_at": "2026-01-02"}
STORE = verify.TrustStore.build([verify.render_key_document(MINE.public, "me")], [])


def bundle_at(root, key=MINE, ids=("extra/one", "extra/two"), **facts):
    """Write a bundle of tools with its manifest; return its space."""
    for item_id in ids:
        put(root, f"tools/{item_id}.py", signed(tool_text(item_id), key))
    space = spaces.Space("bundle:extra", str(root / ".ai"))
    put(root, "bundles/extra/manifest.yaml", signed(bundles.compose(space, FACTS | facts), key, suffix=".yaml"))
    return space


def manifest_of(space):
    return spaces.read_file(space, "bundles/extra/manifest.yaml")


def candidate(space, item_id, raw=None):
    path = Path(space.folder) / f"tools/{item_id}.py"
    return spaces.Candidate("tool", item_id, ".py", space.name, path, path.read_bytes() if raw is None else raw)


def verdict_of(call, *given):
    try:
        call(*given)
    except RyeError as err:
        return err.code if err.hint else "no hint"
    return "valid"


def test_a_manifest_holds_every_item_to_the_digest_of_its_raw_file_and_every_bit_shows(tmp_path):
    space = bundle_at(tmp_path)
    entry = b"\n```yaml\nid: a\ncategory: extra\n```\n"
    put(tmp_path, "knowledge/extra/a.md", signed(entry, item_type="knowledge", suffix=".md"))
    manifest = bundles.read(signed(bundles.compose(space, FACTS), suffix=".yaml"), "extra", STORE)
    assert dict(manifest.bundle) == FACTS
    assert {name: set(items) for name, items in manifest.items.items()} == {
        "tool": {"extra/one", "extra/two"},
        "knowledge": {"extra/a"},
    }
    one, two = (candidate(space, item_id).raw for item_id in ("extra/one", "extra/two"))

    def verdict(item_id, raw):
        return verdict_of(bundles.check, manifest, candidate(space, item_id, raw))

    assert verdict("extra/one", one) == verdict("extra/two", two) == "valid"
    assert verdict("extra/one", two) == verdict("extra/two", one) == "misplaced"
    for at in range(0, len(one) * 8, 3):
        mutant = bytearray(one)
        mutant[at // 8] ^= 1 << at % 8
        assert verdict("extra/one", bytes(mutant)) == "tampered"
    # What is signed and not listed is not served.
    new = put(tmp_path, "tools/extra/new.py", signed(tool_text("extra/new")))
    assert verdict("extra/new", new.read_bytes()) == "misplaced"
    # A digest counts for its own type only.
    other_type = spaces.Candidate("knowledge", "extra/one", ".md", space.name, space.folder, one)
    assert verdict_of(bundles.check, manifest, other_type) == "misplaced"


def test_a_manifest_is_refused_like_any_item(tmp_path, monkeypatch):
    space = bundle_at(tmp_path)
    good, document = manifest_of(space), [verify.render_key_document(MINE.public, "me")]
    digest = frozenset({MINE.public.digest})

    def read(raw, store=STORE, bundle_id="extra"):
        return verdict_of(bundles.read, raw, bundle_id, store)

    assert read(good) == "valid"
    assert read(None) == read(b"") == read(bundles.compose(space, FACTS)) == "unsigned"
    assert read(good + b"#") == "tampered"
    assert read(good, bundle_id="other") == "misplaced"
    assert read(good, verify.TrustStore.build(document, [], revoked=digest)) == "revoked_key"
    # A key approved for one project is not one for what is installed; one that is named is.
    assert (
        read(good, verify.TrustStore.build([], [], document, approved=digest))
        == read(good, verify.TrustStore())
        == "untrusted_key"
    )
    assert read(good, verify.TrustStore.build([], [], explicit_documents=document)) == "valid"
    # The system bundle's needs the system's key.
    raw = signed(bundles.compose(space, FACTS | {"id": "rye"}), suffix=".yaml")
    assert read(raw, bundle_id="rye") == "untrusted_key"
    monkeypatch.setattr(verify, "SYSTEM_KEY_DIGEST", MINE.public.digest)
    assert bundles.read(raw, "rye", verify.TrustStore.build([], document)).verified.key.role == "system"


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",
        b"a",
        b"[]",
        b"bundle: {id: extra}",
        b"bundle: extra\nitems: {}",
        *(b"bundle: {id: extra}\nitems: " + items for items in (b"[]", b"{tool: a}", b"{tool: [a]}", b"{tool: null}")),
        *(b"bundle: {id: extra}\nitems: {tool: " + items for items in (b"{a: 1}}", b"{1: a}}")),
        b"bundle: &a {id: extra}\nitems: {tool: *a}",
        b"items: {}\nitems: {}",
    ],
)
def test_signed_text_that_is_no_manifest_is_said_to_be_none(text):
    assert verdict_of(bundles.read, signed(text, suffix=".yaml"), "extra", STORE) == "malformed_item"


def test_what_cannot_be_signed_or_read_cannot_be_bundled(tmp_path):
    space = bundle_at(tmp_path)
    put(tmp_path, "tools/extra/data.json", b"{}")
    assert verdict_of(bundles.compose, space, FACTS) == "unsignable"
    (tmp_path / ".ai/tools/extra/data.json").unlink()
    (tmp_path / ".ai/tools/extra/gone.py").symlink_to("/etc/passwd")
    assert verdict_of(bundles.compose, space, FACTS) == "item_unreadable"


# --- other installed packages ---


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages, one of them with a bundle, whose code writes a canary when it is imported."""
    folder = tmp_path / "site"
    package = folder / "extra_tools"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w').close()\n")
    bundle_at(package, STRANGER)
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
    # The very command that the refusal names.
    put(user_space, "config/rye.yaml", b"signing: {agents: allow}\n")
    assert shell("trust", "add", document, cwd=project).returncode == 0
    # Not in this process, where the tests' own tools stand for the system's.
    env = {"PYTHONPATH": f"{rye.__path__[0]}/..:{site}"}
    response = json.loads(new_process("execute", "extra/one", "--json", cwd=project, env=env).stdout)
    assert (response["status"], response["item"]["space"]) == ("success", "bundle:extra")
    assert response["isolation"]["permissions"] == [], "a bundle's tool is another's"


def test_an_installed_bundles_items_are_held_to_its_manifest(site, project):
    trust_key(STRANGER)
    assert call(project)["status"] == "success"
    one = site / "extra_tools/.ai/tools/extra/one.py"
    good = one.read_bytes()
    one.write_bytes(good.replace(b"2026-01-02T03:04:05Z", b"2099-01-02T03:04:05Z"))
    assert call(project)["code"] == "tampered"
    one.write_bytes((site / "extra_tools/.ai/tools/extra/two.py").read_bytes())
    assert call(project)["code"] == "misplaced"
    one.write_bytes(signed(tool_text("extra/one", 'return {"success": True, "output": "other"}'), STRANGER))
    assert call(project)["code"] == "tampered"
    one.write_bytes(good)
    assert call(project)["status"] == "success"
    (site / "extra_tools/.ai/bundles/extra/manifest.yaml").unlink()
    assert call(project)["code"] == "unsigned"


def test_a_refusal_names_a_document_only_where_adding_it_would_help(site, project):
    document = site / f"extra_tools/.ai/trusted_keys/{STRANGER.public.fingerprint}.toml"
    assert "rye trust add /" in call(project)["error"]
    kept = document.read_bytes()
    document.unlink()
    response = call(project)
    assert (response["code"], "rye trust add /" in response["error"]) == ("untrusted_key", False)
    document.write_bytes(kept)
    trust_key(STRANGER)
    decisions.revoke(STRANGER.public.digest)
    response = call(project)
    assert (response["code"], "rye trust add" in response["error"]) == ("revoked_key", False)


def test_an_installed_bundle_comes_last_and_serves_no_reserved_id(site, project):
    trust_key(STRANGER)
    # Each of several is held to its own manifest.
    (site / "another/.ai").mkdir(parents=True)
    installed(site, "aaa", "another", dist="another")
    package = site / "extra_tools"
    for item_id in ("rye/own", "rye/file-system/read"):
        put(package, f"tools/{item_id}.py", signed(tool_text(item_id), STRANGER))
    bundle_at(package, STRANGER)
    assert call(project, "rye/own")["code"] == "reserved_id"
    (project / "a.txt").write_text("x\n")
    response = rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)
    assert response["item"]["space"] == "system"
    trust_key()
    put(project, "tools/extra/one.py", signed(tool_text("extra/one")))
    assert call(project)["item"]["space"] == "project"
    assert call(project, "extra/two")["item"]["space"] == "bundle:extra"


def test_entries_that_name_no_package_are_passed_over(site, project):
    odd = [("extra", value) for value in ("../../etc", "extra_tools/../x", "/etc", "", "no_such_package")]
    for name, value in (*odd, ("../x", "extra_tools"), ("a b", "extra_tools")):
        installed(site, name, value)
        assert spaces.installed_bundles() == (), (name, value)
    assert call(project)["code"] == "item_not_found"


def test_a_package_that_calls_its_bundle_rye_is_not_the_system(site, project):
    trust_key(STRANGER)
    installed(site, "rye", "extra_tools")
    package = site / "extra_tools"
    space = spaces.Space("bundle:rye", str(package / ".ai"))
    put(package, "bundles/rye/manifest.yaml", signed(bundles.compose(space, FACTS | {"id": "rye"}), STRANGER, suffix=".yaml"))
    assert call(project)["code"] == "untrusted_key"
    (project / "a.txt").write_text("x\n")
    assert rye.execute("rye/file-system/read", {"file_path": "a.txt"}, project_path=project)["status"] == "success"


SYSTEM = spaces.Space("system", spaces.system_folder())


def system_manifest():
    store = spaces.trust_store((SYSTEM,), decided=decisions.load())
    return bundles.read(spaces.read_file(SYSTEM, "bundles/rye/manifest.yaml"), bundles.SYSTEM, store), store


def test_what_the_manifest_says_of_each_tool_is_what_parsing_it_says():
    manifest, store = system_manifest()
    tools = {item_id: path for item_id, path in spaces.items_in(SYSTEM, "tool") if path.suffix == ".py"}
    assert len(manifest.metadata) > len(tools) // 2
    for item_id in tools:
        candidate = spaces.find("tool", item_id, (SYSTEM,))
        verified = bundles.signed(candidate, store)
        parsed = parse.literals_of(parse.python_tree(verified.body))
        assert bundles.metadata_from_manifest(candidate, manifest, SYSTEM) in (parsed, None), item_id
        # JSON has no tuples, and nothing else stands in for the parser.
        assert (item_id in manifest.metadata) == (json.loads(json.dumps(parsed[0])) == parsed[0]), item_id


def test_metadata_of_other_bytes_or_another_file_is_not_believed(tmp_path):
    copy = spaces.Space("system", str(tmp_path / ".ai"))
    shutil.copytree(f"{SYSTEM.folder}/bundles", f"{copy.folder}/bundles")
    manifest, _ = system_manifest()
    item_id = "rye/file-system/read"
    candidate = spaces.find("tool", item_id, (SYSTEM,))
    assert bundles.metadata_from_manifest(candidate, manifest, copy) is not None
    assert bundles.changed_metadata(manifest, copy) == []
    # Another tool's bytes under this id.
    other = spaces.Candidate("tool", item_id, ".py", "system", candidate.path, candidate.raw + b"\n")
    assert bundles.metadata_from_manifest(other, manifest, copy) is None
    # Another file: an option of the tool would be another one.
    path = tmp_path / f".ai/bundles/rye/metadata/{item_id}.json"
    path.write_bytes(path.read_bytes().replace(b'"read_only": true', b'"read_only": null'))
    assert bundles.metadata_from_manifest(candidate, manifest, copy) is None
    assert bundles.changed_metadata(manifest, copy) == [item_id]
    path.unlink()
    assert bundles.metadata_from_manifest(candidate, manifest, copy) is None
