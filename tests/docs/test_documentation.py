"""The knowledge items that are the documentation: what they name exists, and their examples are well formed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import rye
from rye.items import parse, spaces
from rye.trust import signature, verify
from support.in_process import rye as shell
from support.signed_tools import put, signed, trust_key

FOLDER = Path(spaces.system_folder()) / "knowledge"
ENTRIES = sorted(FOLDER.rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADER = {"id", "title", "entry_type", "category", "version", "description", "tags"}


def body(path):
    return path.read_text(encoding="utf-8").split("\n", 1)[1]


def blocks(kind):
    return [match[2] for path in ENTRIES for match in BLOCK.finditer(body(path).split("```", 2)[2]) if match[1] == kind]


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_is_verified_complete_and_short(path, project):
    item_id = path.relative_to(FOLDER).with_suffix("").as_posix()
    assert rye.load("knowledge", item_id, project_path=project, source="system")["item"]["owner"] == "rye"
    store = verify.TrustStore.build([], [(Path(spaces.system_folder()) / "trusted_keys/b63173adc9f5699f.toml").read_bytes()])
    entry = parse.read_knowledge(verify.verify(path.read_bytes(), signature.form_of("knowledge", ".md"), store), item_id, ".md")
    assert set(entry.header) >= HEADER
    assert 40 <= len(path.read_bytes().split(b"\n")) <= 220
    answer = rye.execute(item_id, item_type="knowledge", project_path=project)
    assert answer["status"] == "success"
    assert "truncated" not in answer["data"]


@pytest.mark.parametrize(
    ("kind", "read"),
    [("python", lambda text: compile(text, "<documentation>", "exec")), ("json", json.loads), ("yaml", parse.yaml_mapping)],
)
def test_every_block_is_well_formed(kind, read):
    assert all(map(read, blocks(kind)))


def test_the_directive_that_is_shown_is_one(project):
    (text,) = [match[2] for match in BLOCK.finditer(body(FOLDER / "rye/core/executing-items.md")) if match[1] == "xml"]
    item_id = re.search("<category>(.*)</category>", text)[1] + "/" + re.search('name="([^"]*)"', text)[1]
    trust_key()
    put(project, f"directives/{item_id}.md", signed(text.strip().encode(), item_type="directive", suffix=".md"))
    answer = rye.execute(item_id, {"tag": "v2"}, item_type="directive", project_path=project)
    assert answer["data"]["output"].count("v2") == 1, answer


def test_the_tool_that_is_shown_runs(project):
    text = body(FOLDER / "rye/core/writing-a-tool.md")
    tool = next(match[2] for match in BLOCK.finditer(text) if match[1] == "python" and "CONFIG_SCHEMA" in match[2])
    (project / "a.txt").write_text("one two\nthree\n")
    found = {}
    exec(compile(tool, "<documentation>", "exec"), found)
    assert found["execute"]({"file_path": "a.txt"}, str(project))["output"] == "2 lines, 3 words"
    put(project, "tools/my/text/shout.py", tool.encode())
    assert shell("lint", cwd=project).returncode == 0


def test_the_calls_from_python_are_as_they_are_shown(project):
    (project / "src").mkdir()
    (project / "src/app.py").write_text("x\n")
    text = body(FOLDER / "rye/core/executing-items.md")
    code = next(match[2] for match in BLOCK.finditer(text) if match[1] == "python").replace(
        'project_path="."', "project_path=HERE"
    )
    found = {"HERE": project}
    exec(code, found)
    assert found["response"]["status"] == "success"


def test_every_row_of_the_attackers_names_a_test_that_exists_or_is_open():
    tests = Path(__file__).parents[1]
    page = (tests.parent / "docs/trust.md").read_text()
    head, _, *rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("|")]
    assert head[3] == " test "
    assert len(rows) > 30
    assert {len(row) for row in rows} == {4}
    for row in rows:
        named = re.fullmatch(r" `([\w/]+\.py)::(test_\w+)` ", row[3])
        assert named or row[3] == " open ", row
        assert not named or re.search(rf"^ *def {named[2]}\(", (tests / named[1]).read_text(), re.MULTILINE), row


def test_nothing_names_an_index_as_the_place_of_this_program():
    """No index holds it, so anyone could register its name, and run code where a reader installs it."""
    root = Path(spaces.system_folder()).parent
    found = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*"), *(root / ".ai").rglob("*")]
    found += (root / "runtime").rglob("*.py")
    named = re.compile(
        rb"rye-workspace *(?:\[|==|@)|(?:\binstall|add|--from|uvx|run)[^\n`.;]*[ '\"]rye-workspace|pypi\.org/project/rye"
    )
    texts = {path: path.read_bytes() for path in found if path.is_file()}
    assert [path for path, text in texts.items() if named.search(text)] == []
    for words in (b"pip install 'NAME[mcp]'", b"pipx install --force NAME", b"uvx --from NAME rye"):
        assert named.search(words.replace(b"NAME", b"rye-workspace"))
    assert not named.search(b"pip install '/path/to/clone[mcp]'")
