"""Ids <-> paths, in the project, the user's and the system's space."""

import os
from pathlib import Path

import pytest

import rye
from rye.errors import ItemError
from rye.items import spaces
from support.signed_tools import MINE, OK, put, put_tool, trust_key

pytestmark = pytest.mark.usefixtures("here")


def found(project, item_id="my/tool", item_type="tool"):
    return spaces.find(item_type, item_id, spaces.spaces(project))


def code(project, item_id="my/tool", item_type="tool"):
    with pytest.raises(ItemError) as caught:
        found(project, item_id, item_type)
    return caught.value.code


def test_the_project_comes_first_then_the_user_then_the_system_and_a_folder_counts_once(project, user_space, tmp_path):
    system = spaces.system_folder()
    assert [(space.name, space.folder) for space in spaces.spaces(project)] == [
        ("project", str(project / ".ai")),
        ("user", str(user_space / ".ai")),
        ("system", system),
    ]
    # As the most trusted: in its own checkout the bundle is the system's; a link to it gains nothing.
    (user_space / ".ai").mkdir()
    (project / ".ai").symlink_to(system)
    for folder in (Path(system).parent, user_space, project):
        assert [space.name for space in spaces.spaces(folder)] == ["user", "system"]
    # A link to another folder serves.
    put_tool(tmp_path / "other", "my/tool")
    (project / ".ai").unlink()
    (project / ".ai").symlink_to(tmp_path / "other/.ai")
    assert rye.execute("my/tool", project_path=project)["item"]["space"] == "project"


def test_anything_else_is_no_id(project):
    slips = ("", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/.b")
    for item_id in (*slips, "-rf", "a b", "a\n", "a\0", "ä", "a\\b", "a:b", "x" * 256):
        assert code(project, item_id) == "bad_item_id", item_id
    assert code(project, item_type="song") == "unknown_type"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_in_an_items_place_is_no_item_and_does_not_block(project, user_space, make):
    path = project / ".ai/tools/my/tool.py"
    path.parent.mkdir(parents=True)
    make(path)
    assert code(project) == ("item_not_found" if path.is_dir() else "item_unreadable")
    put(user_space, "tools/my/tool.py", b"user")
    assert found(project).space == "user"
    (project / ".ai/trusted_keys").mkdir()
    make(project / ".ai/trusted_keys/a.toml")
    assert spaces.trust_store(spaces.spaces(project)).keys


def test_an_oversized_item_is_an_error_and_not_an_absence(project, user_space):
    """Else a file grown too large would silently hand its id to the next space."""
    put(user_space, "tools/my/tool.py", b"user")
    put(project, "tools/my/tool.py", b"x" * (spaces.MAX_ITEM_BYTES + 1))
    assert code(project) == "item_unreadable"
    put(project, "tools/my/tool.py", b"x" * spaces.MAX_ITEM_BYTES)
    assert len(found(project).raw) == spaces.MAX_ITEM_BYTES


def test_broken_key_documents_and_those_beyond_the_limit_are_left_out_and_named(project, user_space, monkeypatch):
    monkeypatch.setattr(spaces, "_MAX_KEYS", 4)
    trust_key()
    for name, content in (("a.toml", b"\xff"), ("b.toml", b"x" * 100_000), ("z.toml", b""), ("z.txt", b"")):
        put(user_space, f"trusted_keys/{name}", content)
    store = spaces.trust_store(spaces.spaces(project))
    assert (MINE.public in {key.public for key in store.keys}, len(store.problems) >= 2) == (True, True)
    for number in range(2):
        put(user_space, f"trusted_keys/zz{number}.toml", b"no document")
    first = spaces.trust_store(spaces.spaces(project)).problems[0]
    assert first == f"{user_space}/.ai/trusted_keys holds 6 key documents; the 2 behind z.toml are ignored."


@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_of_items_that_leads_out_of_its_space_is_not_walked(project, tmp_path, inside):
    # A clone can lead `.ai/tools` to `/`: every command walked the whole disk, for items that could not be read anyway.
    trust_key()
    place = project / ".ai/elsewhere" if inside else tmp_path / "elsewhere"
    place.mkdir(parents=True)
    put_tool(project, "my/tool", OK)
    (project / ".ai/tools").rename(place / "tools")
    (project / ".ai/tools").symlink_to("elsewhere/tools" if inside else place / "tools")
    space = spaces.spaces(project)[0]
    assert [one for one, _ in spaces.items_in(space, "tool")] == (["my/tool"] if inside else [])
    assert spaces.ids_ending_in("tool", "tool", [space]) == (["my/tool"] if inside else [])
    # What is listed is what is found.
    if inside:
        assert found(project).item_id == "my/tool"
    else:
        assert code(project) == "item_not_found"
