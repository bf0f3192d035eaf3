"""What sign and verify targets name, in and outside the spaces, and what a walk leaves out or reports."""

import os
import subprocess

import pytest

import rye
from rye.errors import ItemError, UsageError
from rye.items import spaces
from support.signed_tools import signed


@pytest.fixture(autouse=True)
def _inside(project, monkeypatch):
    monkeypatch.chdir(project)


def put(root, *paths, text="x"):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def named(*texts):
    return [row["target"] for row in rye.verify(list(texts))]


def test_an_item_has_type_and_id_by_its_place_and_a_file_outside_has_none(project):
    put(project, ".ai/tools/my/a.py", ".ai/knowledge/my/k.md", ".ai/directives/d.md", "out/b.py", "out/c.yaml", "out/d.md")
    found = rye.verify([".ai", "out"])
    assert [(row["target"], row["type"], row["item_id"]) for row in found] == [
        (".ai/directives/d.md", "directive", "d"),
        (".ai/knowledge/my/k.md", "knowledge", "my/k"),
        (".ai/tools/my/a.py", "tool", "my/a"),
        ("out/b.py", "tool", None),
        ("out/c.yaml", "tool", None),
        ("out/d.md", "knowledge", None),
    ]


def test_markdown_outside_any_ai_is_a_directive_if_it_is_a_text_around_one(project):
    around = b"About <directive name='x'></directive>.\n"
    for raw, item_type in (
        (b"# Text\n", "knowledge"),
        (b"# Title\n<directive name='x'>\n</directive>\n", "directive"),
        (b"# Title\n<directive name='x'>\n", "knowledge"),
        (b"```yaml\nid: x\n```\nShows a <directive name='x'></directive>.\n", "knowledge"),
        (b"<!-- a comment -->\n---\nid: x\n---\n<directive></directive>", "knowledge"),
        (b"<directives></directives>", "knowledge"),
        (around, "directive"),
        # What was signed as a whole stays knowledge.
        (signed(around, item_type="knowledge", suffix=".md"), "knowledge"),
    ):
        (project / "a.md").write_bytes(raw)
        assert rye.verify(["a.md"])[0]["type"] == item_type, raw


def test_an_id_names_the_file_that_is_served_of_each_type(project, user_space):
    put(project, ".ai/tools/my/a.py", ".ai/tools/my/a.yaml", ".ai/knowledge/my/a.md")
    put(user_space, ".ai/tools/my/a.py")
    assert named("my/a") == [".ai/tools/my/a.py", ".ai/knowledge/my/a.md"]
    assert named("my/?") == [".ai/tools/my/a.py", ".ai/knowledge/my/a.md"]
    assert named("rye/file-system/read") == [f"{spaces.system_folder()}/tools/rye/file-system/read.py"]


def test_what_names_nothing_names_the_nearest_ids(project):
    put(project, ".ai/tools/my/greet.py")
    for text, close in (("my/gret", "my/greet"), ("rye/file-system/raed", "rye/file-system/read"), ("my/greet.py", "my/greet")):
        with pytest.raises(ItemError, match=close) as caught:
            named(text)
        assert caught.value.code == "target_not_found"
    for text in ("no/such/*.py", "a\0b", "\ud800", "x" * 5000):
        with pytest.raises(ItemError, match="names no item"):
            named(text)
    with pytest.raises(UsageError, match="empty"):
        named("")


def test_a_text_that_is_both_an_id_and_a_path_is_not_guessed(project):
    put(project, ".ai/tools/my/a.py", "my/a/x.py", "my/a/y.py")
    for text in ("my/a", "my/*"):
        with pytest.raises(UsageError, match=r"\./my/"):
            named(text)
    assert named("./my/a", ".ai/tools/my/a.py") == ["my/a/x.py", "my/a/y.py", ".ai/tools/my/a.py"]


def test_globs_match_files_and_all_below_folders(project):
    put(project, "a.py", "b.txt", "s/a.py", "s/t/b.py", "s/t/c.md", ".hidden/a.py", ".ai/tools/x/a.py")
    assert named("*.py") == ["a.py"]
    assert named("**/*.py") == ["a.py", ".ai/tools/x/a.py", "s/a.py", "s/t/b.py"]
    assert named("s/*") == ["s/a.py", "s/t/b.py", "s/t/c.md"]
    assert named("s/**/b.*") == ["s/t/b.py"]
    assert named(str(project / "s/[a]*")) == ["s/a.py"]
    assert named(".ai/tools/**/*.py") == [".ai/tools/x/a.py"]
    # A name with such characters is that file first.
    put(project, "a[1].py", "a1.py")
    assert named("a[1].py") == ["a[1].py"]


def test_walks_are_in_order_and_leave_out_hidden_private_and_unsignable_names(project):
    left_out = ("_p.py", ".h.py", "a.json", "a.txt", ".gitkeep", "__pycache__/a.py", "_q/a.py", ".git/a.py", "A.PY")
    put(project, "b.py", "a.py", "z/a.py", "y/b/a.py", "y/z.py", *left_out)
    put(project, ".ai/x.py", ".ai/cache/a.py", ".ai/trusted_keys/a.toml", ".ai/tools/README.md", ".ai/tools/a.json")
    put(project, ".ai/tools/t.py")
    walked = [".ai/tools/t.py", "a.py", "b.py", "y/b/a.py", "y/z.py", "z/a.py"]
    assert named(".") == ["a.py", "b.py", ".ai/tools/t.py", "y/z.py", "y/b/a.py", "z/a.py"]
    assert sorted(named("z", ".", "a.py")) == walked
    assert named("_p.py", ".ai/tools/README.md") == ["_p.py", ".ai/tools/README.md"]
    (project / "empty").mkdir()
    with pytest.raises(ItemError, match="no file that can carry"):
        named("empty")


def test_every_lists_the_items_of_the_spaces_shadowed_ones_too(project, user_space):
    put(project, ".ai/tools/my/a.py", ".ai/tools/my/a.yaml", ".ai/tools/rye/file-system/read.py", ".ai/config/a.yaml", "b.py")
    put(user_space, ".ai/tools/my/a.py")
    rows = rye.verify(everything=True)
    found = [row["target"] for row in rows]
    assert found[:3] == [".ai/tools/my/a.py", ".ai/tools/my/a.yaml", ".ai/tools/rye/file-system/read.py"]
    assert found[3] == str(user_space / ".ai/tools/my/a.py")
    assert f"{spaces.system_folder()}/tools/rye/file-system/read.py" in found
    assert all(row["item_id"] for row in rows)


def test_links_to_folders_are_not_followed_and_in_a_space_that_is_said(project):
    put(project, "real/a.py", ".ai/tools/b.py")
    os.symlink("../real", project / "real/loop")
    os.symlink("../../real", project / ".ai/tools/linked")
    assert named("real") == ["real/a.py"]
    verdicts = {row["target"]: (row["verdict"], "link" in row["hint"]) for row in rye.verify(everything=True, space="project")}
    assert verdicts == {".ai/tools/b.py": ("unsigned", False), ".ai/tools/linked": ("malformed", True)}


def test_deep_and_hostile_names_are_walked(project):
    here = os.open(project, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open(b"\xff\n\x1b[31m.py", os.O_CREAT, dir_fd=here))
    os.close(here)
    (text,) = named(".")
    # shutil.rmtree, with which pytest would clean up, recurses.
    subprocess.run(["rm", "-rf", project / "d"], check=True)
    assert text.endswith(r"d/\xff\x0a\x1b[31m.py")
