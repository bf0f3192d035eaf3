"""Files that other programs run or load without asking: no way of writing makes or changes one, a command neither."""

import pytest

from rye.errors import UsageError, WorkspaceError
from rye.fs import beneath
from rye.workspace import protected_paths
from rye.workspace.workspace import Workspace
from support.calling import call, done, ids, refused
from support.machine import needs_bubblewrap
from support.shell_calls import configure
from support.workspace_calls import sha

TASKS = '{"tasks": [{"command": "evil", "runOptions": {"runOn": "folderOpen"}}]}\n'
FILES = [
    ".vscode/tasks.json", ".mcp.json", ".claude/settings.json", ".cursor/mcp.json", ".envrc", ".bashrc", ".gdbinit",
    ".idea/workspace.xml", ".gemini/settings.json", ".cargo/config.toml", ".npmrc", "team.code-workspace",
    ".config/mise/config.toml", ".hg/hgrc", ".pdbrc", ".octaverc", ".bazelversion", ".bazeliskrc", "tools/bazel",
    ".mvn/jvm.config", ".corepack.env", ".sl/config", "_darcs/prefs/defaults", ".pijul/config", ".rvmrc", ".lvimrc",
    ".lazy.lua", ".autoenv", ".github/hooks/a.json", "mise/config.toml",
]  # fmt: skip
SPELLED = [
    "./.vscode/tasks.json", "src/../.vscode/tasks.json", ".VSCode/tasks.json", ".vscode./tasks.json", ".ENVRC",
    ".Cargo/config.toml", "a.CODE-workspace",
]  # fmt: skip


def patched(project, **request):
    return str(call("rye/workspace/workspace_write_patch", project, **request))


def allow(user_space, *names):
    configure(user_space, f"protected: {{allow: [{', '.join(names)}]}}\n")


def fill(project):
    (project / "src").mkdir()
    for name in FILES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("old\n")


@pytest.mark.parametrize("path", [*FILES, *SPELLED])
def test_none_is_made(project, path):
    (project / "src").mkdir()
    assert "protected: {allow: [" in refused("protected_path", "write", project, file_path=path, content=TASKS)
    assert "protected_path" in patched(project, createFiles=[{"path": path, "content": TASKS}])
    assert [one.name for one in project.iterdir() if one.name not in ("src", ".ai")] == []
    # Control: the same content at another name.
    assert call("write", project, file_path="tasks.json", content=TASKS)["success"]


@pytest.mark.parametrize("path", FILES)
def test_none_is_changed_or_removed(project, path):
    fill(project)
    (first,) = ids(project, path)
    ways = {
        "write": call("write", project, file_path=path, content=TASKS),
        "edit_lines": call("edit_lines", project, file_path=path, changes=[{"line_id": first, "new_content": TASKS}]),
        "edit_range": call("rye/swe/edit_range", project, path=path, start_line=1, end_line=1, new_text=TASKS),
        "insert_at": call("rye/swe/insert_at", project, path=path, line=1, new_text=TASKS),
        "edit_file": call("rye/swe/edit_file", project, path=path, old="old", new="new"),
    }
    assert {way: result.get("code") for way, result in ways.items()} == dict.fromkeys(ways, "protected_path"), ways
    deletion = [{"docPath": path.lower(), "originalSha256": sha(b"old\n")}]
    assert "protected_path" in patched(project, deleteFiles=deletion)
    assert (project / path).read_text() == "old\n"


@pytest.mark.parametrize("absolute", [False, True])
def test_a_link_is_followed_to_what_it_stands_for(project, absolute):
    above = f"{project}/" if absolute else ""
    (project / "editor").mkdir()
    (project / ".vscode").symlink_to(f"{above}editor")
    (project / ".envrc").symlink_to(f"{above}editor/env.sh")
    (project / "inner").symlink_to(".claude")
    for path in ("editor/tasks.json", ".vscode/tasks.json", "editor/env.sh", ".envrc"):
        assert call("write", project, file_path=path, content=TASKS)["code"] == "protected_path", path
    (project / ".claude").mkdir()
    assert call("write", project, file_path="inner/settings.json", content=TASKS)["code"] == "protected_path"
    assert sorted(one.name for one in (project / "editor").iterdir()) == []


def test_a_home_below_the_project_counts_as_its_root_does(tmp_path, monkeypatch):
    (tmp_path / "who").mkdir()
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "who"))
    assert call("write", tmp_path, file_path="who/.bashrc", content="x\n")["code"] == "protected_path"
    # Elsewhere below the root the name means nothing to anyone: a template, a repository of dotfiles.
    assert call("write", tmp_path, file_path="skeleton/.bashrc", content="x\n")["success"]


def test_the_user_alone_can_allow_a_name(project, user_space):
    configure(project, "protected: {allow: [.vscode]}\n")
    assert call("write", project, file_path=".vscode/tasks.json", content=TASKS)["code"] == "protected_path"
    allow(user_space, ".vscode")
    entry = done("write", project, file_path=".vscode/tasks.json", content=TASKS)["entry_id"]
    assert call("write", project, file_path=".envrc", content=TASKS)["code"] == "protected_path"
    # What is allowed no more cannot be undone by a tool either.
    allow(user_space)
    assert call("undo", project, entry_id=entry)["code"] == "protected_path"


@pytest.mark.parametrize("name", [".ai", ".git", "src", "'*'"])
def test_nothing_but_names_of_the_list_can_be_allowed(project, user_space, name):
    allow(user_space, name)
    with Workspace(str(project)) as ws:
        with pytest.raises(UsageError, match=r"protected\.allow"):
            ws.guard((b".vscode", b"tasks.json"))
        with pytest.raises(WorkspaceError, match="may not write"):
            ws.guard((b".git", b"config"))


@needs_bubblewrap
def test_commands_and_file_tools_hold_the_same_names(project, user_space):
    fill(project)
    for name in protected_paths.NAMES:
        if not (project / name).exists():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("old\n")
    each = f"for n in {' '.join(protected_paths.NAMES)}; do f=$n; [ -d $n ] && f=$n/x; (echo x >> $f) 2>/dev/null && echo $n; done; true"

    def by_commands():
        return done("rye/bash/bash", project, command=each)["output"].split()

    def by_file_tools():
        paths = [f"{name}/x" if (project / name).is_dir() else name for name in protected_paths.NAMES]
        written = [call("write", project, file_path=path, content="x\n")["success"] for path in paths]
        return [name for name, was in zip(protected_paths.NAMES, written, strict=True) if was]

    assert by_commands() == by_file_tools() == []
    allow(user_space, ".vscode", ".envrc")
    # Control: what the user allows, both write.
    assert by_commands() == by_file_tools() == [".vscode", ".envrc"]


@needs_bubblewrap
@pytest.mark.parametrize(
    "command",
    [
        "mv .cargo x; mkdir .cargo; cp x/config.toml .cargo/; echo evil >>.cargo/config.toml",
        "mv .cargo x; ln -s x .cargo; echo evil >>.cargo/config.toml",
        "echo evil >x; mv -f x .cargo/config.toml",
        "rm -rf .cargo; mkdir .cargo; echo evil >.cargo/config.toml",
    ],
)
def test_the_folder_of_a_protected_file_cannot_be_exchanged(project, command):
    (project / ".cargo").mkdir()
    (project / ".cargo/config.toml").write_text("old\n")
    call("rye/bash/bash", project, command=command)
    assert (project / ".cargo/config.toml").read_text() == "old\n"
    # What else is in it can be written.
    assert done("rye/bash/bash", project, command="echo 1 >.cargo/registry && cat .cargo/registry")["output"] == "1\n"


def test_a_folder_that_is_a_link_leads_to_a_protected_file_that_does_not_exist_yet(project):
    (project / "conf").mkdir()
    (project / ".config").symlink_to("conf")
    assert call("write", project, file_path="conf/mise.toml", content="x\n")["code"] == "protected_path"
    assert call("write", project, file_path="conf/other.toml", content="x\n")["success"]


def test_another_spelling_is_looked_at_where_the_file_system_finds_it(project, monkeypatch):
    (project / ".Envrc").write_text("old\n")
    with Workspace(str(project)) as ws:
        assert protected_paths.existing_paths(ws.fd, [".envrc"]) == []
        monkeypatch.setattr(beneath, "exists", lambda *_: True)
        assert protected_paths.existing_paths(ws.fd, [".envrc"]) == [".envrc"]


@pytest.mark.parametrize("name", protected_paths.WITH_HOOKS[:2])
def test_lists_for_hooks_count_where_the_user_has_installed_some(project, name):
    hooks = project / ".git/hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit.sample").write_text("")
    done("write", project, file_path=name, content="repos: []\n")
    (hooks / "pre-commit").write_text("#!/bin/sh\n")
    assert call("write", project, file_path=name, content=TASKS)["code"] == "protected_path"
