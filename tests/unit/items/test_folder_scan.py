"""Scans of item folders: the same object while nothing changed, and never where anything did."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

import rye
from rye.items import folder_scan, spaces
from rye.mcp_server.listing import Listing, Selection
from rye.trust import decisions
from support.signed_tools import MINE, put, put_tool, signed, trust_key

SEED = 20


def settled(*paths):
    """Wait until a change of these files must show in their times."""
    end = time.monotonic() + 60
    while any(max(os.lstat(one).st_ctime_ns, os.lstat(one).st_mtime_ns) + 60_000_000 > time.time_ns() for one in paths):
        assert time.monotonic() < end
        time.sleep(0.01)


def files_of(root):
    return [one for one in root.rglob("*") if one.is_file()]


@pytest.fixture
def folder(project):
    top = project / ".ai/knowledge/k"
    top.mkdir(parents=True)
    for number in range(20):
        (top / f"e{number}.md").write_text(f"text {number}\n")
    settled(*files_of(top))
    return top


def look(project):
    return folder_scan.scan(spaces.Space("project", f"{project}/.ai"), "knowledge")


def test_the_same_object_comes_back_while_nothing_changed(project, folder):
    first = look(project)
    assert first.certain
    assert len(first.files) == 20
    assert look(project) is first


def test_a_young_file_is_not_believed(project, folder):
    (folder / "e1.md").write_text("new\n")
    assert not look(project).certain
    settled(folder / "e1.md")
    certain = look(project)
    assert certain.certain
    assert look(project) is certain


def test_links_are_not_believed(project, folder, tmp_path):
    (tmp_path / "elsewhere.md").write_text("one")
    (folder / "link.md").symlink_to(tmp_path / "elsewhere.md")
    settled(folder / "link.md")
    assert not look(project).certain


def same_size_and_times(path):
    info = path.stat()
    path.write_bytes(bytes(reversed(path.read_bytes())))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def exchanged(path):
    other = path.with_name("zz.md")
    path.rename(other)
    (path.parent / "e9.md").rename(path)
    other.rename(path.parent / "e9.md")


CHANGES = {
    "in place": lambda path: path.write_text("changed\n"),
    "same size and times": same_size_and_times,
    "appended": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "replaced": lambda path: (path.with_name("new").write_text(path.read_text()), path.with_name("new").rename(path)),
    "removed": lambda path: path.unlink(),
    "renamed": lambda path: path.rename(path.with_name("other.md")),
    "exchanged": exchanged,
    "added": lambda path: path.with_name("more.md").write_text("more"),
    "added below": lambda path: ((path.parent / "deep").mkdir(), (path.parent / "deep/x.md").write_text("x")),
    "mode": lambda path: path.chmod(0o600),
    "through a hard link": lambda path: (os.link(path, f"{path}.other"), Path(f"{path}.other").write_text("x")),
    "folder moved": lambda path: path.parent.rename(path.parent.with_name("moved")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(project, folder, change):
    first = look(project)
    CHANGES[change](folder / "e3.md")
    assert look(project) is not first


def test_random_changes_are_seen(project, folder):
    print("seed", SEED)
    chance = random.Random(SEED)
    for _ in range(60):
        present = sorted(folder.glob("e*.md"))
        settled(*files_of(folder.parent))
        before = look(project)
        assert look(project) is before
        path = chance.choice(present)
        kind = chance.choice(["in place", "same size and times", "replaced", "removed", "added"])
        if kind == "added":
            (folder / f"e{chance.randrange(1_000, 9_999)}.md").write_text("new")
        elif kind == "removed" and len(present) > 3:
            path.unlink()
        else:
            CHANGES["same size and times" if kind == "same size and times" else "in place"](path)
        assert look(project) is not before


def ids(answer):
    return [row["id"] for row in answer["results"]]


def entry(name, word):
    return signed(f"```yaml\nid: {name}\ntitle: On {word}\n```\n\n{word}\n".encode(), MINE, "knowledge", ".md")


def test_a_search_is_never_stale(project):
    trust_key()
    path = put(project, "knowledge/k/one.md", entry("one", "apples"))
    put(project, "knowledge/k/two.md", entry("two", "plums"))
    settled(*files_of(project / ".ai/knowledge"))
    for _ in range(2):
        assert ids(rye.search("apples", project_path=project, space="project")) == ["k/one"]
    info = path.stat()
    path.write_bytes(entry("one", "grapes"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert ids(rye.search("apples", project_path=project, space="project")) == []
    assert ids(rye.search("grapes", project_path=project, space="project")) == ["k/one"]
    settled(path)
    assert ids(rye.search("grapes", project_path=project, space="project")) == ["k/one"]
    path.write_bytes(path.read_bytes().replace(b"grapes\n", b"lemons\n"))
    found = rye.search("lemons", project_path=project, space="project")
    assert (ids(found), found["unverified"]) == ([], {"tampered": 1})
    # A decision alone changes it, too.
    decisions.revoke(MINE.public.digest)
    found = rye.search("plums", project_path=project, space="project")
    assert (ids(found), sum(found["unverified"].values())) == ([], 2)


def test_a_listing_is_never_stale(project):
    trust_key()
    put_tool(project, "my/one")
    listing = Listing(str(project), Selection(categories=("my",)))
    settled(*files_of(project / ".ai"))
    first = listing.tools()
    assert listing.tools() is first
    assert "my__one" in [tool["name"] for tool in first]
    put_tool(project, "my/two")
    assert {"my__one", "my__two"} <= {tool["name"] for tool in listing.tools()}
    settled(*files_of(project / ".ai"))
    assert listing.tools() is listing.tools()
    (project / ".ai/tools/my/one.py").write_text("# not signed\n")
    assert "my__one" not in [tool["name"] for tool in listing.tools()]
    decisions.revoke(MINE.public.digest)
    assert not [tool for tool in listing.tools() if tool["name"].startswith("my__")]
