"""Registries that lie, break and forge: whatever they answer, nothing is installed, and the error says why.

The control is a client that believes the registry: it takes the manifest by its tag, each blob by its name, and writes it
under its title.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from rye.errors import RyeError
from rye.registry import pull as registry_pull
from rye.registry.oci import http, store
from rye.registry.oci import manifest as oci_manifest
from rye.registry.oci import reference as references
from rye.trust import pins, signature, verify
from support import oci_server, web_site
from support.oci_server import free_address, version_of
from support.signed_tools import MINE, STRANGER, signed, tool_text, trust_key
from support.waiting import PATIENCE

ID = "my/a/tool"
TAG = references.tag_of("tool", ID, "2.0.0")
HONEST = version_of(ID, "2.0.0")


def artifact(raw=HONEST, title="tool.py", tag=TAG, key=MINE, more=()):
    """Return what a registry would hold for an item: tag, manifest, blobs."""
    files = {
        title: ("text/x-python", raw),
        **dict(more),
        "k.toml": (oci_manifest.KEY_TYPE, verify.render_key_document(key.public, "mallory")),
    }
    manifest, blobs = oci_manifest.compose(files, {})
    return oci_manifest.Pushed(tag, manifest, blobs)


@dataclass
class Lies:
    """What a server answers: what it holds, and by the beginning of a path another (status, headers, body, announced length)."""

    held: list[oci_manifest.Pushed] = field(default_factory=lambda: [artifact()])
    answers: dict[str, tuple] = field(default_factory=dict)

    def __call__(self, method, path, headers, body):
        for start, lie in self.answers.items():
            if path.startswith(start):
                return lie
        name = path.partition("?")[0].rpartition("/")[2]
        if "/tags/list" in path:
            return 200, {}, json.dumps({"name": "my", "tags": [one.tag for one in self.held]}).encode()
        for one in self.held:
            if "/manifests/" in path and name in (one.tag, oci_manifest.digest_of(one.manifest)):
                return 200, {"Docker-Content-Digest": oci_manifest.digest_of(one.manifest)}, one.manifest
            if "/blobs/" in path and name in one.blobs:
                return 200, {}, one.blobs[name]
        return 404, {}, b'{"errors":[{"code":"UNKNOWN","message":"unknown"}]}'


def blob_of(pushed):
    """Return the path of the item's blob."""
    return f"/v2/my/blobs/{oci_manifest.parse(pushed.manifest).files[0].digest}"


def rewritten(change):
    """Return the honest artifact with its manifest changed."""
    record = json.loads(artifact().manifest)
    change(record)
    return Lies([artifact()._replace(manifest=json.dumps(record).encode())])


def swapped_signature():
    form = signature.form_of("tool", ".py")
    own, other = signature.split(HONEST, form).signature, signature.split(version_of("my/a/other", "2.0.0"), form).signature
    import base64

    one, two = (base64.urlsafe_b64encode(each.signature) for each in (own, other))
    return HONEST.replace(one, two)


def seen(version, digest="0" * 64):
    def remember():
        with pins.changing() as known:
            known.seen[f"tool {ID}"] = pins.SeenVersion(version, digest)

    return remember


def pin_stranger():
    with pins.changing() as known:
        known.pins["my"] = STRANGER.public.digest


def revoke():
    from rye.trust import decisions

    decisions.revoke(MINE.public.digest)


OTHER_LINE = version_of("my/a/other", "2.0.0").split(b"\n", 1)[0] + b"\n" + HONEST.split(b"\n", 1)[1]
BIG = b"x" * 9_000_000
PAGE = b"<!doctype html><title>Sign in</title>"
MANIFESTS = "/v2/my/manifests/"
DIGEST = oci_manifest.digest_of(artifact().manifest)


def plain(raw, **options):
    return lambda: (Lies([artifact(raw, **options)]), ID, None)


def answering(path, *answer):
    return lambda: (Lies(answers={path: answer}), ID, None)


def bundle(listed, files):
    """Return the lies of a bundle whose signed manifest lists some items, and which brings some files."""
    record = {"bundle": {"id": "my", "version": "2.0.0"}, "items": {"tool": listed}}
    head = signed(json.dumps(record).encode(), suffix=".yaml")
    return (
        Lies([artifact(head, "bundles/my/manifest.yaml", references.tag_of("bundle", "my", "2.0.0"), more=files)]),
        "my",
        None,
    )


# name: (code, () -> (lies, reference, what stands before))
CASES = {
    "tampered layer": ("blob_digest_mismatch", lambda: (Lies(answers={blob_of(artifact()): (200, {}, HONEST[:-2] + b" \n")}), ID, None)),
    "tampered item, right digests": ("tampered", plain(HONEST + b"import os\n")),
    "another item's signature line": ("tampered", plain(OTHER_LINE)),
    "swapped signature": ("bad_signature", plain(swapped_signature())),
    "another item": ("misplaced", plain(version_of("my/b/tool", "2.0.0"))),
    "another item's code, bound to its id": ("misplaced", plain(version_of(ID, "2.0.0", bound="my/a/other"))),
    "unsigned": ("unsigned", plain(tool_text(ID))),
    "carriage returns": ("malformed", plain(HONEST.replace(b"\n", b"\r\n"))),
    "no tool": ("malformed_item", plain(signed(b"def (\n"))),
    "wrong manifest digest": ("manifest_digest_mismatch", lambda: (Lies(answers={MANIFESTS: (200, {}, artifact(OTHER_LINE).manifest)}), f"{ID}@{DIGEST}", None)),
    "a header that lies about the digest": ("digest_header_mismatch", answering(MANIFESTS, 200, {"Docker-Content-Digest": "sha256:" + "a" * 64}, artifact().manifest)),
    "traversal": ("bad_title", plain(HONEST, title="../../../tool.py")),
    "absolute name": ("bad_title", plain(HONEST, title="/tmp/tool.py")),
    "foreign extension": ("bad_title", plain(HONEST, title="tool.md")),
    "extension of no runtime": ("no_version", plain(HONEST, title="tool.pth")),
    "traversal in a bundle": ("bad_title", lambda: bundle({}, [("tools/../../x.py", ("text/x-python", HONEST))])),
    "bundle that lacks an item": ("incomplete", lambda: bundle({ID: "0" * 64}, [])),
    "bundle that brings another file": ("tampered", lambda: bundle({ID: "0" * 64}, [(f"tools/{ID}.py", ("text/x-python", HONEST))])),
    "bundle that brings what is not listed": ("misplaced", lambda: bundle({}, [(f"tools/{ID}.py", ("text/x-python", HONEST))])),
    "announced as oversized": ("item_oversized", lambda: (rewritten(lambda record: record["layers"][0].update(size=10**12)), ID, None)),
    "many that are oversized together": ("item_oversized", lambda: (rewritten(lambda record: record.update(layers=[{**record["layers"][0], "size": 1 << 20}] * 257)), ID, None)),
    "larger than announced": ("blob_oversized", lambda: (Lies(answers={blob_of(artifact()): (200, {}, HONEST + BIG)}), ID, None)),
    "endless manifest": ("manifest_oversized", answering(MANIFESTS, 200, {}, BIG)),
    "smaller than announced": ("blob_truncated", lambda: (Lies(answers={blob_of(artifact()): (200, {}, HONEST[:-9])}), ID, None)),
    "broken off": ("manifest_truncated", answering(MANIFESTS, 200, {}, b'{"schema', 5_000)),
    "cut JSON": ("not_a_manifest", answering(MANIFESTS, 200, {}, artifact().manifest[:-40])),
    "HTML instead of a manifest": ("not_a_manifest", answering(MANIFESTS, 200, {"Content-Type": "text/html"}, PAGE)),
    "HTML instead of tags": ("bad_tags", answering("/v2/my/tags", 200, {"Content-Type": "text/html"}, PAGE)),
    "HTML instead of a blob": ("blob_is_html", lambda: (Lies(answers={blob_of(artifact()): (200, {"Content-Type": "text/html"}, PAGE)}), ID, None)),
    "missing manifest": ("not_in_registry", answering(MANIFESTS, 404, {}, b"{}")),
    "missing blob": ("blob_missing", lambda: (Lies(answers={blob_of(artifact()): (404, {}, b"{}")}), ID, None)),
    "no digest at all": ("not_a_manifest", lambda: (rewritten(lambda record: record["layers"][0].update(digest="sha256:../../../../etc/passwd")), ID, None)),
    "image index": ("foreign_artifact", lambda: (rewritten(lambda record: record.update(mediaType=oci_manifest.INDEX_TYPE)), ID, None)),
    "two files": ("no_layer", plain(HONEST, more=[("evil.py", ("text/x-python", b"x"))])),
    "another version": ("other_version", plain(version_of(ID, "1.0.0"))),
    "downgraded": ("downgrade", lambda: (Lies(), ID, seen("3.0.0"))),
    "same version, other content": ("version_changed", lambda: (Lies(), ID, seen("2.0.0"))),
    "yanked": ("yanked", lambda: (Lies([artifact(), artifact(tag=references.tag_of("tool", ID, "2.0.0", yanked=True))]), ID, None)),
    "revoked": ("revoked_key", lambda: (Lies(), ID, revoke)),
    "unknown key": ("untrusted_key", plain(version_of(ID, "2.0.0", STRANGER), key=STRANGER)),
    "unknown key, with a trusted one's document": ("untrusted_key", plain(version_of(ID, "2.0.0", STRANGER), key=MINE)),
    "changed pinned key": ("pinned_key_changed", lambda: (Lies(), ID, pin_stranger)),
    "always failing": ("registry_busy", answering("/v2/", 503, {}, b"")),
    "closed to all": ("registry_unauthorized", answering("/v2/", 401, {"WWW-Authenticate": 'Basic realm="r"'}, b"")),
    "a token server elsewhere": ("bad_redirect", answering("/v2/", 401, {"WWW-Authenticate": 'Bearer realm="http://169.254.169.254/t"'}, b"")),
    "led to a file": ("bad_redirect", answering("/v2/my/blobs", 307, {"Location": "file:///etc/passwd"}, b"")),
    "led into a private network": ("bad_redirect", answering("/v2/my/blobs", 307, {"Location": "https://10.9.8.7/blob"}, b"")),
    "a token server in a private network": ("bad_redirect", answering("/v2/", 401, {"WWW-Authenticate": 'Bearer realm="https://10.9.8.7/t"'}, b"")),
    "led in a circle": ("too_many_redirects", answering("/v2/my/blobs", 307, {"Location": "/v2/my/blobs/x"}, b"")),
    "compressed": ("bad_registry_answer", answering(MANIFESTS, 200, {"Content-Encoding": "gzip"}, b"\x1f\x8b")),
    "forbidden": ("manifest_refused", answering(MANIFESTS, 403, {}, b'{"errors":[{"message":"no\\u001b[2J"}]}')),
}  # fmt: skip


def in_layout(root, spoil):
    """Return a layout whose honest item was spoiled."""
    from rye.registry.oci.layout import Layout

    Layout(root).push("my", [artifact()])
    blob = root / "my/blobs/sha256" / oci_manifest.parse(artifact().manifest).files[0].digest[7:]
    spoil(blob, root)
    return str(root)


def linked(path):
    """Return what puts a link in the place of a file or folder of the layout."""
    return lambda blob, root: (root / path).symlink_to((root / path).rename(root / "elsewhere"))


LAYOUTS = {
    "symbolic link for a blob": ("blob_unreadable", lambda blob, root: blob.symlink_to(blob.rename(root / "outside.py"))),
    "FIFO for a blob": ("blob_unreadable", lambda blob, root: (blob.unlink(), os.mkfifo(blob))),
    "a longer blob": ("blob_oversized", lambda blob, root: blob.write_bytes(blob.read_bytes() * 9)),
    "no blob": ("blob_missing", lambda blob, root: blob.unlink()),
    "symbolic link for the blobs": ("manifest_unreadable", linked("my/blobs")),
    "symbolic link for the index": ("bad_layout", linked("my/index.json")),
}


def written(folder):
    """Return every file below the item folders of a space."""
    kinds = [Path(folder, ".ai", name) for name in ("tools", "knowledge", "directives", "bundles", "lockfiles")]
    return sorted(str(path) for kind in kinds for path in kind.rglob("*") if not path.is_dir())


def pull(where, reference, project):
    """Pull; return the refusal's code and message, or None for a success."""
    kind = "bundle" if "/" not in reference else "tool"
    try:
        row = registry_pull.pull(store.RegistryTarget(str(project), where), kind, [reference], registry_pull.PullOptions())[0]
    except RyeError as err:
        return err.code, err.message
    if row["status"] == "installed":
        return None
    assert row["hint"]
    return row["code"], row["error"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(http, "_WAITS", (0.01,))
    trust_key()


def judge(code, outcome, project, user_space):
    assert outcome is not None, "it was installed"
    assert outcome[0] == code, outcome
    assert "\x1b" not in outcome[1]
    assert written(project) == written(user_space) == []


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_server_installs_nothing(project, user_space, name):
    code, arrange = CASES[name]
    lies, reference, before = arrange()
    if before is not None:
        before()
    with oci_server.answering(lies) as (where, _):
        judge(code, pull(where, reference, project), project, user_space)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_hostile_layout_installs_nothing(project, user_space, tmp_path, name):
    code, spoil = LAYOUTS[name]
    where = in_layout(tmp_path / "layout", spoil)
    judge(code, pull(where, ID, project), project, user_space)


def test_a_server_that_is_not_there_installs_nothing(project, user_space):
    judge("registry_unreachable", pull(f"oci://{free_address()}", ID, project), project, user_space)


def test_an_answer_that_drips_ends_in_its_time(project, user_space, monkeypatch):
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.4)
    monkeypatch.setattr(http, "_SLOWEST", 1 << 40)
    with web_site.served(streams={"/v2/my/tags/list": web_site.STREAMS["/drip"]}) as site:
        started = time.monotonic()
        where = f"oci://127.0.0.1:{site.port}"
        judge("registry_timeout", pull(where, ID, project), project, user_space)
        assert time.monotonic() - started < PATIENCE


def test_control_the_honest_one_is_installed(project):
    with oci_server.answering(Lies()) as (where, _):
        assert pull(where, ID, project) is None
    assert written(project) == [str(project / f".ai/tools/{ID}.py")]


def believe(where, reference, folder):
    """Pull as a client does that believes the registry; return how many files it wrote."""
    origin = where.replace("oci://", "http://")
    tag = reference.partition("@")[2] or references.tag_of("bundle" if "/" not in reference else "tool", reference, "2.0.0")
    count = 0
    with httpx.Client(follow_redirects=True, trust_env=False, verify=False, timeout=2) as client:
        for layer in client.get(f"{origin}/v2/my/manifests/{tag}").json()["layers"]:
            title = layer["annotations"]["org.opencontainers.image.title"]
            got = client.get(f"{origin}/v2/my/blobs/{layer['digest']}")
            if got.status_code == 200:
                target = Path(folder, "a/b/c", title.lstrip("/"))
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(got.content)
                count += 1
    return count


@pytest.mark.slow
def test_control_a_client_that_believes_the_registry_writes(tmp_path):
    fooled = []
    for name, (_, arrange) in CASES.items():
        lies, reference, _before = arrange()
        with oci_server.answering(lies) as (where, _):
            try:
                fooled += [name] if believe(where, reference, tmp_path / "naive") else []
            except (httpx.HTTPError, ValueError, KeyError, OSError):
                continue
    assert len(fooled) >= 25, fooled
    assert (tmp_path / "naive/tool.py").exists(), "the traversal left its folder"
