"""The layout: what a kill or other writers leave, and the names of repositories and tags."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rye
from rye.errors import UsageError
from rye.registry import push as registry_push
from rye.registry.oci import manifest as oci_manifest
from rye.registry.oci import reference, store
from support.harness import environment
from support.oci_server import put_items
from support.signed_tools import put

PUSH = """
import sys
from rye.registry import push as registry_push
from rye.registry.oci.store import RegistryTarget
for start in range(int(sys.argv[3]), int(sys.argv[4])):
    registry_push.push(RegistryTarget(sys.argv[1], sys.argv[2]), "tool", [f"my/many/t{start:03}"])
    print(start, flush=True)
"""


def pushing(project, where, first, last):
    words = [sys.executable, "-c", PUSH, str(project), where, str(first), str(last)]
    return subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE)


def made(tag, text=b"x"):
    manifest, blobs = oci_manifest.compose({"x.py": ("text/x-python", text)}, {})
    return oci_manifest.Pushed(tag, manifest, blobs)


def every_item_is_whole(where, repository="my"):
    """Read every tag down to its blobs; return how many there are."""
    layout = store.open_store(where)
    tags = layout.tags(repository)
    for tag in tags:
        for layer in oci_manifest.parse(layout.manifest(repository, tag)).layers:
            assert oci_manifest.digest_of(layout.blob(repository, layer)) == layer.digest
    return len(tags)


def test_processes_that_push_at_once_lose_nothing(project, tmp_path):
    put_items(project, 24)
    where = str(tmp_path / "registry")
    started = [pushing(project, where, at, at + 6) for at in range(0, 24, 6)]
    assert [one.wait() for one in started] == [0] * 4
    for one in started:
        one.stdout.close()
    assert every_item_is_whole(where) == 24


def test_a_push_that_is_killed_leaves_only_whole_items_and_the_next_completes(project, tmp_path):
    put_items(project, 30)
    where = str(tmp_path / "registry")
    done = 0
    for pause in (0.0, 0.01, 0.02):
        one = pushing(project, where, 0, 30)
        one.stdout.readline()
        time.sleep(pause)
        one.send_signal(signal.SIGKILL)
        one.wait()
        one.stdout.close()
        done = every_item_is_whole(where)
        assert done >= 1
    one = pushing(project, where, 0, 30)
    assert one.wait() == 0
    one.stdout.close()
    assert every_item_is_whole(where) == 30


def test_a_tag_moves_and_others_stay(tmp_path):
    layout = store.open_store(str(tmp_path))
    layout.push("my", [made("a"), made("b")])
    layout.push("my", [made("a", b"new")])
    assert layout.tags("my") == ["a", "b"]
    assert layout.manifest("my", "a") == made("a", b"new").manifest
    assert layout.repositories() == ["my"]
    assert json.loads((tmp_path / "my/oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    # An index that is there in part only is noticed.
    index = tmp_path / "my/index.json"
    index.write_bytes(index.read_bytes()[:40])
    with pytest.raises(rye.RyeError) as caught:
        store.open_store(str(tmp_path)).tags("my")
    assert caught.value.code == "bad_layout"


def test_a_version_is_replaced_only_where_it_is_known_to_be_lost(project, tmp_path):
    put_items(project, 1)
    at = store.RegistryTarget(str(project), str(tmp_path / "registry"))
    assert registry_push.push(at, "tool", ["my/many/t000"])[0]["status"] == "pushed"
    [path] = [one for one in (tmp_path / "registry/my/blobs/sha256").iterdir() if b"schemaVersion" in one.read_bytes()]
    whole = path.read_bytes()
    for lost in (path.unlink, lambda: path.write_bytes(b"")):
        lost()
        assert registry_push.push(at, "tool", ["my/many/t000"])[0]["status"] == "pushed"
        assert path.read_bytes() == whole
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(rye.RyeError) as caught:
        registry_push.push(at, "tool", ["my/many/t000"])
    assert caught.value.code == "version_unreadable"


def test_a_half_made_folder_costs_no_descriptor(project, tmp_path, user_space):
    put(user_space, "config/rye.yaml", f"registry: {{allowed: [{tmp_path / 'registry'}]}}\n".encode())
    store.open_store(str(tmp_path / "registry")).push("my", [made(reference.tag_of("tool", "my/many/t000", "1.2.3"))])
    shutil.rmtree(tmp_path / "registry/my/blobs/sha256")
    asked = {"action": "list", "registry": str(tmp_path / "registry"), "namespace": "my"}
    counts = []
    for _ in range(4):
        answer = rye.execute("rye/registry/registry", asked, project_path=project)
        assert answer["status"] == "success", answer
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[1:] == counts[:1] * 3


PART = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}", fullmatch=True)
TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
REF_NAME = re.compile(r"[A-Za-z0-9]+(?:(?:[-._:@+]|--)[A-Za-z0-9]+)*")


@example(parts=["0", "Z00"], kind="tool")
@example(parts=["zZ", "Z5aZ"], kind="tool")
@given(parts=st.lists(PART, min_size=2, max_size=12), kind=st.sampled_from(["tool", "knowledge", "bundle"]))
def test_a_tag_is_allowed_everywhere_and_reads_back_so_different_ids_have_different_tags(parts, kind):
    item_id = "/".join(parts)
    if sum(3 if char in ".-_Z" else 1 for char in item_id) + len(f"yanked--{kind}----1.20.3") > 128:
        # It may be too long: then it is refused, by the longer of the two.
        with suppress(UsageError):
            assert len(reference.tag_of(kind, item_id, "1.20.3", yanked=True)) <= 128
        return
    tag, mark = (reference.tag_of(kind, item_id, "1.20.3", yanked=yanked) for yanked in (False, True))
    assert all(pattern.fullmatch(one) for one in (tag, mark) for pattern in (TAG, REF_NAME))
    assert reference.read_tag(tag) == reference.read_tag(mark) == reference.Reference(kind, item_id, "1.20.3")


@pytest.mark.parametrize(
    "tag", ["latest", "tool--a.b--1.0", "tool--a.b", "song--a.b--1.0.0", "tool--aZ2fb--1.0.0", "tool--Zsha256-00--1.0.0", ""]
)
def test_a_foreign_tag_is_none_of_ours(tag):
    assert reference.read_tag(tag) is None


def test_references_read_as_they_are_written():
    text = f"oci://host:5000/pre/fix//my/a/b:1.2.3@sha256:{'a' * 64}"
    found = reference.parse(text, "knowledge")
    assert (found.registry, found.item_id, found.version) == ("oci://host:5000/pre/fix", "my/a/b", "1.2.3")
    assert (found.digest, str(found)) == ("sha256:" + "a" * 64, text)
    assert reference.parse("oci://host/my/a/b").registry == "oci://host"
    assert reference.parse("mine", "bundle").namespace == "mine"
