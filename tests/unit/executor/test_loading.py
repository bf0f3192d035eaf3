"""Loading: verified text, and copies that are the very bytes and replace nothing unasked."""

import hashlib
import os

import pytest

import rye
from rye.trust import pins
from support.in_process import rye as run
from support.signed_tools import STRANGER, put, put_tool, signed, tool_text, trust_key


def refused(code, *args, **options):
    with pytest.raises(rye.RyeError) as caught:
        rye.load(*args, **options)
    assert caught.value.code == code
    return caught.value


def test_an_items_text_comes_without_what_the_signature_leaves_out(project):
    path = put_tool(project, "my/tool")
    found = rye.load("tool", "my/tool", project_path=project)
    assert found["content"].startswith('"""A tool made for a test."""')
    assert ("rye:signed" in found["content"], found["source"], found["path"]) == (False, "project", str(path))
    assert (found["metadata"]["version"], found["item"]["owner"], "copied_to" in found) == ("1.2.3", "tester", False)
    # A source is one space, and the default is all.
    refused("item_not_found", "tool", "my/tool", project_path=project, source="user")
    assert rye.load("tool", "rye/file-system/ls", project_path=project, source="system")["source"] == "system"
    # Of a directive only the signed span is shown.
    span = b"<directive name='d' version='1.0.0'><metadata><description>D</description></metadata><process/></directive>"
    raw = signed(b"# Title\n" + span + b"\nafterwards\n", item_type="directive", suffix=".md")
    put(project, "directives/d.md", raw.replace(b"Title", b"FORGED"))
    assert rye.load("directive", "d", project_path=project)["content"] == span.decode() + "\n"
    # Knowledge that is YAML is header and text at once.
    facts = b"id: facts\ncategory: my\nports: [80]\n"
    put(project, "knowledge/my/facts.yaml", signed(facts, item_type="knowledge", suffix=".yaml"))
    assert rye.execute("my/facts", item_type="knowledge", project_path=project)["data"]["output"] == facts.decode().strip()
    # A refusal names the item, whichever check it fails.
    forgeries = {"tools/my/tool.py": path.read_bytes() + b"\r\n", "directives/d.md": raw.replace(b"signed:2", b"signed:x")}
    for name, forged in forgeries.items():
        kind, _, item_id = os.path.splitext(put(project, name, forged).relative_to(project / ".ai"))[0].partition("s/")
        assert str(refused("malformed", kind, item_id, project_path=project)).startswith(f"{item_id}: ")


def test_a_copy_is_the_very_bytes_and_replaces_nothing_unasked(project, user_space):
    path = put_tool(project, "my/deep/tool")
    copy = put(user_space, "tools/my/deep/tool.py", b"mine\n")
    refused("destination_exists", "tool", "my/deep/tool", project_path=project, destination="user")
    assert copy.read_bytes() == b"mine\n"
    found = rye.load("tool", "my/deep/tool", project_path=project, destination="user", overwrite=True)
    assert (found["copied_to"], found["destination_path"]) == ("user", str(copy))
    assert (copy.read_bytes(), found["replaced"]) == (path.read_bytes(), hashlib.sha256(b"mine\n").hexdigest())
    again = rye.load("tool", "my/deep/tool", project_path=project, destination="user", source="project")
    assert (again["replaced"], "byte for byte" in again["warnings"][-1]) == (None, True)
    path.rename(path.with_name("aside"))
    assert rye.execute("my/deep/tool", project_path=project)["item"]["space"] == "user"
    # Another file with the id is not hidden.
    path.with_name("aside").rename(path)
    copy.rename(copy.with_suffix(".yaml"))
    refused("destination_exists", "tool", "my/deep/tool", project_path=project, destination="user")


def test_a_copy_of_a_reserved_id_says_that_it_is_not_served_and_can_be_undone(project):
    found = rye.load("tool", "rye/file-system/ls", project_path=project, destination="project")
    copy = project / ".ai/tools/rye/file-system/ls.py"
    assert copy.exists()
    assert "served by the system bundle" in found["warnings"][0]
    assert rye.load("tool", "rye/file-system/ls", project_path=project)["source"] == "system"
    assert rye.execute("rye/file-system/undo", {}, project_path=project)["status"] == "success"
    assert not copy.exists()


def test_a_copy_never_goes_through_a_link(project, user_space, tmp_path):
    put_tool(project, "my/tool")
    outside = tmp_path / "outside"
    outside.mkdir()
    (user_space / ".ai/tools").mkdir(parents=True, exist_ok=True)
    (user_space / ".ai/tools/my").symlink_to(outside)
    with pytest.raises(rye.RyeError):
        rye.load("tool", "my/tool", project_path=project, destination="user")
    (user_space / ".ai/tools/my").unlink()
    (user_space / ".ai/tools/real").mkdir()
    (user_space / ".ai/tools/my").symlink_to("real")
    refused("is_link", "tool", "my/tool", project_path=project, destination="user")
    assert os.listdir(outside) == os.listdir(user_space / ".ai/tools/real") == []


def test_what_is_not_verified_is_neither_shown_nor_copied(project, user_space):
    put(project, "tools/my/alien.py", signed(tool_text("my/alien"), STRANGER))
    put(project, "tools/my/bare.py", tool_text("my/bare"))
    put_tool(project, "my/moved")
    os.rename(project / ".ai/tools/my/moved.py", project / ".ai/tools/my/other.py")
    for name, code in (("alien", "untrusted_key"), ("bare", "unsigned"), ("other", "misplaced")):
        refused(code, "tool", f"my/{name}", project_path=project, destination="user")
    assert not (user_space / ".ai/tools").exists()


def test_malformed_calls(project):
    put_tool(project, "my/tool")
    for code, options in (
        ("bad_space", {"source": "mars"}),
        ("bad_space", {"destination": "system"}),
        ("same_space", {"destination": "project"}),
    ):
        refused(code, "tool", "my/tool", project_path=project, **options)
    assert "rye/file-system/read" in str(refused("item_not_found", "tool", "rye/file-system/reed", project_path=project))
    refused("unknown_type", "song", "x", project_path=project)
    refused("bad_item_id", "tool", "../x", project_path=project)


def versioned(root, version, item_id="my/tool"):
    trust_key()
    return put(root, f"tools/{item_id}.py", signed(tool_text(item_id).replace(b'"1.2.3"', f'"{version}"'.encode())))


def test_a_copy_brings_no_lower_version_back_unless_a_person_says_so(project, user_space):
    old, new = versioned(project, "1.9.0"), versioned(user_space, "1.10.0")
    standing = new.read_bytes()
    asked = {"item_type": "tool", "item_id": "my/tool", "source": "project", "destination": "user", "overwrite": True}
    said = str(refused("downgrade", **asked, project_path=project))
    assert ("1.9.0 is lower than 1.10.0, which was installed" in said, "--allow-downgrade" in said) == (True, True)
    assert rye.execute("rye/primary-tools/rye_load", asked, project_path=project)["code"] == "downgrade"
    words = ["load", "tool", "my/tool", "--from", "project", "--to", "user", "--overwrite"]
    assert b"lower than 1.10.0" in run(*words, cwd=project).stderr
    assert new.read_bytes() == standing
    # Control: an equal or higher version may, and a lower one where a person says so.
    versioned(project, "1.10.1")
    assert rye.load(**asked, project_path=project)["replaced"]
    versioned(project, "1.9.0")
    assert run(*words, "--allow-downgrade", cwd=project).returncode == 0
    assert new.read_bytes() == old.read_bytes()
    # Who is not trusted sets no floor.
    put(user_space, "tools/my/tool.py", signed(tool_text("my/tool").replace(b'"1.2.3"', b'"9.0.0"'), key=STRANGER))
    assert rye.load(**asked, project_path=project)["replaced"]


def test_an_item_without_a_version_is_lower_than_any(project, user_space):
    trust_key()
    for root, version in ((project, ""), (user_space, "version: 1.0.0\n")):
        entry = f"---\nid: notes\ntitle: T\nentry_type: reference\ncategory: my\ntags: [a]\n{version}---\nText\n".encode()
        put(root, "knowledge/my/notes.md", signed(entry, item_type="knowledge", suffix=".md"))
    asked = {"project_path": project, "source": "project", "destination": "user", "overwrite": True}
    assert "(no version) is lower than 1.0.0" in str(refused("downgrade", "knowledge", "my/notes", **asked))


def test_what_a_registry_gave_once_counts_too(project, user_space):
    versioned(project, "1.0.0")
    with pins.changing() as known:
        known.seen["tool my/tool"] = pins.SeenVersion("2.0.0", "0" * 64)
    said = refused("downgrade", "tool", "my/tool", project_path=project, destination="user")
    assert "seen before" in str(said)
    assert not (user_space / ".ai/tools/my/tool.py").exists()
