"""Every verb and every tool, run in a project: what changes in its folder is in the journal, and is taken back and redone.

The tables name each verb of `rye` and each tool of the system bundle; a new one fails here until it is named, too. What a call
changed is told by looking at the folder, not by what it says.
"""

import json
import os
import stat
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import rye
from rye.cli.table import VERBS
from rye.journal import journal
from rye.journal.history import History
from rye.registry import push as registry_push
from rye.registry.oci import store
from rye.workspace.workspace import Workspace
from support.calling import done, undo
from support.in_process import rye as shell
from support.oci_server import put_items
from support.shell_calls import bash
from support.signed_tools import MINE, put, put_tool, tool_text, trust_key
from unit.executor.test_mcp_call import ADD, SERVER

KEY = ("--key", "{beside}/key.pem")
IMPORT = ("mcp", "import", "calc", "--permissions", "read", *KEY, "--", "/usr/bin/python3", "server.py", "tools.json")
BUNDLE = ("--folder", "src/.ai", "--id", "extra")

WRITES = {
    "execute": [("execute", "rye/file-system/write", "file_path=n/e/w.txt", "content=x")],
    "load": [("load", "tool", "rye/file-system/read", "--to", "project")],
    "mcp": [IMPORT, ("mcp", "install", "--client", "claude-code", "--scope", "project", "--write")],
    "new": [("new", "tool", "my/deep/new")],
    "sign": [("sign", *what, *KEY) for what in ([".ai/tools/my/unsigned.py", "notes/plan.md"], ["--all"], ["notes"])],
    "skill": [("skill", "add", "{beside}/pdf")],
    "bundle": [("bundle", "create", *BUNDLE, "--version", "1.0.0", "--description", "A", *KEY)],
    "lock": [("lock", "my/tool")],
    "registry": [("registry", "pull", "my/many/t001"), ("registry", "pull", "my/many/*")],
    "fleet": [("fleet", "run", "{beside}/jobs.jsonl", "--workers", "1", "--out", "{beside}/out.jsonl")],
}
ONLY_A_PERSON = {"mcp install", "lock"}
"""What is written where no tool may write: it is recorded, and a person takes it back by hand."""

NEVER = {
    "search": [("search", "read")],
    "tools": [("tools", "--all")],
    "lint": [("lint", "my/tool")],
    "prompt": [("prompt", "swe")],
    "verify": [("verify", "--all")],
    "trust": [("trust", "list")],
    "completion": [("completion", "bash")],
    "keys": [("keys", "show")],
    "doctor": [("doctor",)],
    "help": [("help",), ("help", "--man")],
    "log": [("log",)],
    "diff": [("diff",)],
    "blame": [("blame", "a.txt")],
    "state": [("state", "list")],
    "uninstall": [("uninstall",)],
}
ELSEWHERE = {
    "review": "it takes back by the functions of `undo`; tests/unit/review/test_site.py",
    "serve": "uploads and commands; tests/unit/agent_sandbox",
}
TOOLS = {
    "bash/bash": {"command": "mkdir -p m/n && echo x > m/n/x && chmod 755 a.txt && ln -s a.txt l && rm gone.txt"},
    "file-system/edit_lines": {"file_path": "a.txt", "changes": [{"rename_to": "r/s/a.txt"}]},
    "file-system/undo": {"file_path": "edited.txt"},
    "file-system/write": {"file_path": "n/e/w.txt", "content": "x"},
    "primary-tools/rye_execute": {"item_id": "rye/file-system/write", "parameters": {"file_path": "by/o.txt", "content": "x"}},
    "primary-tools/rye_load": {"item_type": "tool", "item_id": "rye/file-system/read", "destination": "project"},
    "primary-tools/rye_sign": {"item_type": "tool", "item_id": "my/*"},
    "registry/registry": {"action": "pull", "reference": "my/many/t002"},
    "swe/edit_file": {"path": "a.txt", "old": "two", "new": "TWO"},
    "swe/edit_range": {"path": "a.txt", "start_line": 1, "end_line": 1, "new_text": "ONE"},
    "swe/insert_at": {"path": "a.txt", "line": 1, "new_text": "zero"},
    "swe/undo_edit": {"file_path": "edited.txt"},
    "workspace/workspace_apply_patch": {"batchId": "{batch}"},
    "workspace/workspace_write_patch": {"createFiles": [{"path": "p/q/r.txt", "content": "x"}]},
}
LOOKING_TOOLS = {
    "bash/job": {"action": "list"},
    "file-system/glob": {"pattern": "*"},
    "file-system/grep": {"pattern": "one"},
    "file-system/ls": {},
    "file-system/read": {"file_path": "a.txt"},
    "primary-tools/rye_search": {"query": "read"},
    "swe/find_file": {"pattern": "a.txt"},
    "swe/open_file_chunk": {"path": "a.txt"},
    "swe/read_file_viewport": {"path": "a.txt"},
    "swe/scroll_file": {"path": "a.txt", "direction": "+"},
    "swe/search_dir": {"pattern": "one"},
    "swe/search_file": {"path": "a.txt", "pattern": "one"},
    "workspace/get_patch_change": {"id": "{batch}"},
    "workspace/workspace_read_file": {"docPath": "a.txt"},
}
OTHER_TOOLS = {
    "lsp/lsp": "its renames and formats are edits; tests/tools/test_lsp.py",
    "web/webfetch": "it needs a network; it writes nothing",
    "web/websearch": "it needs a network; it writes nothing",
}


@pytest.fixture
def filled(project, user_space, tmp_path):
    """Make a project with a little of all that the calls need."""
    beside = tmp_path / "beside"
    (beside / "source").mkdir(parents=True)
    (beside / "key.pem").write_bytes(MINE.pem)
    (beside / "pdf").mkdir()
    (beside / "pdf/SKILL.md").write_text("---\nname: pdf\ndescription: Read.\n---\n")
    (beside / "pdf/run.sh").write_text("echo\n")
    trust_key()
    put_items(beside / "source", 4)
    registry_push.push(store.RegistryTarget(str(beside / "source"), str(beside / "registry")), "tool", ["my/many/*"])
    settings = {"registry": {"default": str(beside / "registry")}, "signing": {"agents": "allow"}}
    put(user_space, "config/rye.yaml", json.dumps(settings).encode())
    put(user_space, "keys/private_key.pem", MINE.pem).chmod(0o600)
    job = {"item_id": "rye/file-system/write", "parameters": {"file_path": "fleet.txt", "content": "x"}}
    (beside / "jobs.jsonl").write_text(json.dumps({"workspace": str(project), "calls": [job]}) + "\n")
    (project / ".git").mkdir()
    for name, text in {"a.txt": "one\ntwo\n", "gone.txt": "gone\n", "notes/plan.md": "# Plan\n"}.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    (project / "server.py").write_text(SERVER.replace("json.loads(sys.argv[1])", "json.load(open(sys.argv[1]))"))
    (project / "tools.json").write_text(json.dumps([ADD, {**ADD, "name": "odd name!"}]))
    put_tool(project, "my/tool")
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    put_tool(project / "src", "extra/one")
    for text in ("first\n", "second\n"):
        done("write", project, file_path="edited.txt", content=text)
    made = done("rye/workspace/workspace_write_patch", project, createFiles=[{"path": "p/s/t.txt", "content": "x"}])
    (beside / "batch").write_text(made["result"]["batchId"])
    done("undo", project, batchId=made["result"]["batchId"])
    return project


def tree(project):
    """Return all that lies in a project but for git's own folder and what rye remembers: path -> kind, mode, content."""
    found = {}
    for above, folders, files in os.walk(project):
        where = os.path.relpath(above, project)
        folders[:] = [one for one in folders if (where, one) not in ((".", ".git"), (".", ".ragix"), (".ai", "cache"))]
        for name in (*folders, *files):
            path = Path(above, name)
            info = path.lstat()
            content = b"" if stat.S_ISDIR(info.st_mode) else os.readlink(path) if path.is_symlink() else path.read_bytes()
            found[os.path.normpath(f"{where}/{name}")] = (info.st_mode, content)
    found.pop(".ai", None)
    return found


def entries(project, known=()):
    """Return the journal's entries that are not among those known, the oldest first."""
    with Workspace(str(project)) as ws:
        return [journal.find(ws, row.id) for row in History(ws) if row.id not in known][::-1]


def held(project, act, about, *, by_hand=False, writes=None):
    """Act, and hold what changed against the journal: all of it is there, it comes back, and is redone."""
    known, before = {entry.id for entry in entries(project)}, tree(project)
    act()
    after = tree(project)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    made = entries(project, known)
    recorded = {path for entry in made for path in (*entry.paths, *entry.folders)}
    assert changed <= recorded, (about, "not recorded", changed - recorded)
    assert writes is None or bool(changed) is writes, (about, changed)
    if by_hand:
        answer = undo(project, entry_id=made[-1].id)
        assert answer["code"] == "protected_path", (about, answer)
        assert tree(project) == after
        return
    # By one undo, of a pull by one an item.
    redo, calls = [], dict.fromkeys(("batchId", one.batch) if one.batch else ("entry_id", one.id) for one in reversed(made))
    assert len(calls) <= 1 or made[0].tool == "rye/registry/registry"
    for name, value in calls:
        answer = undo(project, **{name: value})
        assert answer["success"], (value, answer)
        redo.append({"batchId": answer["batchId"]} if "batchId" in answer else {"entry_id": answer["entry_id"]})
    assert tree(project) == before, (about, "not as before")
    for one in reversed(redo):
        answer = undo(project, **one)
        assert answer["success"], (about, answer)
    assert tree(project) == after, (about, "not redone")


def typed(project, words):
    return shell(*(one.format(beside=project.parent / "beside") for one in words), cwd=project)


def test_each_verb_and_each_tool_is_named_once():
    assert sorted([*WRITES, *NEVER, *ELSEWHERE]) == sorted(VERBS)
    rows = [row["item_id"].removeprefix("rye/") for row in rye.tools(project_path="/") if row["space"] == "system"]
    assert sorted([*TOOLS, *LOOKING_TOOLS, *OTHER_TOOLS]) == sorted(one for one in rows if not one.startswith("core/"))


# A fleet starts a process of its own.
WRITING = [
    pytest.param(words, id=" ".join(words), marks=pytest.mark.slow if verb == "fleet" else ())
    for verb, all_words in WRITES.items()
    for words in all_words
]


@pytest.mark.parametrize("words", WRITING)
@pytest.mark.parametrize("looked", [False, True], ids=["new", "looked at before"])
def test_what_a_verb_writes_is_recorded_taken_back_and_redone(filled, words, looked):
    if looked:
        bash(filled, "true")

    def act():
        answer = typed(filled, words)
        assert answer.returncode == 0, (words, answer)

    held(filled, act, words, by_hand={words[0], " ".join(words[:2])} & ONLY_A_PERSON != set(), writes=True)
    if looked:
        # The look that a command begins with finds nothing that nobody has recorded.
        known = {entry.id for entry in entries(filled)}
        bash(filled, "true")
        assert [(entry.tool, entry.paths) for entry in entries(filled, known)] == []


@pytest.mark.parametrize("words", [words for all_words in NEVER.values() for words in all_words], ids=" ".join)
def test_a_verb_that_looks_changes_nothing(filled, words):
    held(filled, lambda: typed(filled, words), words, writes=False)


@pytest.mark.parametrize("name", [*TOOLS, *LOOKING_TOOLS])
def test_what_a_tool_writes_is_recorded_taken_back_and_redone_and_one_that_looks_changes_nothing(filled, name):
    batch = (filled.parent / "beside/batch").read_text()
    given = {key: batch if value == "{batch}" else value for key, value in {**TOOLS, **LOOKING_TOOLS}[name].items()}

    held(filled, lambda: done(f"rye/{name}", filled, **given), name, writes=name in TOOLS)
