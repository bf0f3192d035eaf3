"""What each client is told, read as that client reads it; and what `--write` leaves of its settings."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rye.mcp_server import client_config, settings_file
from support.in_process import rye
from support.mcp_peer import ARGUMENTS, environment, peer
from support.signed_tools import rye as process

ROOT = Path(__file__).parents[2]
CLIENTS = client_config.CLIENTS
ALL = [
    *("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "opencode"),
    *("copilot-cli", "goose", "zed", "windsurf", "cline", "lm-studio"),
]
# These say nothing of the folder: one configuration serves one project.
TIED = ["claude-desktop", "windsurf", "cline", "lm-studio"]
BY_VARIABLE = ["cursor", "vscode"]
# goose's YAML is not written: its entry is printed.
WRITTEN = [name for name in ALL if name != "goose"]
REMOTE = [name for name in ALL if CLIENTS[name].remote is not None]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, so that nothing of the user's is read or written."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def repo(tmp_path):
    """A project with an awkward name."""
    folder = tmp_path / "a project; with $odd 'words'"
    (folder / ".git").mkdir(parents=True)
    return folder


def install(client, *options, cwd):
    return rye("mcp", "install", "--client", client, *options, cwd=cwd)


def printed(client, *options, cwd):
    done = install(client, *options, cwd=cwd)
    assert done.returncode == 0, done
    return done.stdout.decode()


def parsed(client, text):
    """Return the settings that a text holds, as the client reads them."""
    syntax = CLIENTS[client].syntax
    if syntax == "toml":
        return tomllib.loads(text[text.index("[mcp_servers") :])
    if syntax == "yaml":
        return yaml.safe_load(text[text.index("extensions:") :])
    return json.loads(text[text.index("{\n") :])


def entry(client, text):
    return parsed(client, text)[CLIENTS[client].section]["rye"]


def words_of(client, text):
    """Return program and arguments as the client takes them."""
    found = entry(client, text)
    if client == "opencode":
        assert (found["type"], found["enabled"], "args" in found) == ("local", True, False)
        return found["command"]
    if client in ("vscode", "claude-code", "cursor", "goose"):
        assert found["type"] == "stdio"
    if client == "copilot-cli":
        assert (found["type"], found["tools"]) == ("local", ["*"])
    return [found["cmd" if client == "goose" else "command"], *found["args"]]


@pytest.mark.parametrize("client", ALL)
def test_a_configuration_for_all_projects_is_tied_to_none_where_the_client_can_tell_the_folder(home, repo, client):
    text = printed(client, "--category", "my/tools", "--meta", "--read-only", "--tools", "read,ls", cwd=repo)
    words = words_of(client, text)
    assert Path(words[0]).is_absolute()
    folder = ["--project", str(repo)] if client in TIED else []
    if client in BY_VARIABLE:
        folder = ["--project", "${workspaceFolder}"]
    options = ["--category", "my/tools", "--tools", "read,ls", "--read-only", "--meta"]
    assert words[words.index("mcp") :] == ["mcp", *folder, *options]
    assert (f"it serves {repo} only" in text) == (client in TIED)
    # Control: a project that the user names is named to the server, whatever the client.
    text = printed(client, "--project", str(repo), cwd=repo)
    named = words_of(client, text)
    assert named[named.index("mcp") :] == ["mcp", "--project", str(repo)]
    # The command for a shell, where the client has one, says the same.
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("  ") and " mcp add " in line]
    assert [words[words.index("--") + 1 :] for words in lines] == [named] * (client in ("claude-code", "codex"))


@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_what_is_printed_serves_the_folder_in_which_it_is_started(home, repo, tmp_path, client):
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    words = words_of(client, printed(client, cwd=repo))
    with peer(other, words=words) as server:
        assert set(server.tools()) == set(ARGUMENTS)
        server.text("write", file_path="notes.txt", content="here\n")
    assert (other / "notes.txt").read_text() == "here\n"
    assert not (repo / "notes.txt").exists()


@pytest.mark.parametrize("client", REMOTE)
def test_a_server_that_listens_is_named_without_its_token(home, project, client):
    text = printed(client, "--http", "127.0.0.1:8765", cwd=project)
    url = "http://127.0.0.1:8765/mcp"
    server = entry(client, text)
    if client == "codex":
        assert server == {"url": url, "bearer_token_env_var": "RYE_MCP_TOKEN"}
    elif client == "vscode":
        (secret,) = parsed(client, text)["inputs"]
        assert server["headers"] == {"Authorization": f"Bearer ${{input:{secret['id']}}}"}
        assert secret["password"]
    else:
        assert re.fullmatch(r"Bearer \$?\{(env:)?RYE_MCP_TOKEN\}", server["headers"]["Authorization"])
        assert url in server.values()


def test_a_category_without_tools_is_told(home, project):
    """It may get some later, or have some in another project of the same server."""
    done = install("codex", "--category", "rye/swe", "--category", "my/texts", cwd=project)
    said = "rye mcp: warning: no tool of 'my/texts' can run here; `rye tools --category my/texts` says why."
    assert (done.returncode, done.stderr.decode().splitlines()) == (0, [said])


def test_printing_a_configuration_does_not_load_the_protocol(project):
    done = process("mcp", "install", "--client", "codex", cwd=project, python=("-X", "importtime"))
    assert not re.search(rb"\| +(mcp|mcp_types|anyio|pydantic|starlette)\n", done.stderr)


def test_the_extra_is_declared_and_asked_for_before_a_client_shows_a_dead_server(home, project):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "mcp>=2.3,<3" in declared["optional-dependencies"]["mcp"]
    hidden = (
        "import sys; from importlib import metadata; known = metadata.version\n"
        "metadata.version = lambda name: known('no-such-name' if name == 'mcp' else name)\n"
        "from rye.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", hidden, "mcp", "install", "--client", "codex"]
    done = subprocess.run(words, cwd=project, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"[mcp]" in done.stderr
    # Control: uvx brings it.
    done = subprocess.run([*words, "--uvx"], cwd=project, env=environment(), capture_output=True, check=False)
    assert done.returncode == 0
    assert re.search(rb'command = "uvx"\nargs = \["--from", ".*\[mcp\].*", "rye", "mcp"\]', done.stdout)
    # Where the folder is not known, no name of an index stands in for it.
    words[2] = hidden.replace("from rye", "metadata.PathDistribution.read_text = lambda *_: None\nfrom rye")
    done = subprocess.run([*words, "--uvx"], cwd=project, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Install rye from its clone" in done.stderr


# --write


SETTINGS = {
    "json": """\
// mine
{
    /* the theme */ "theme": "dark", // evenings
    "SECTION": {
        "other": {"command": "x", "args": ["a", /* b */ "b",],}, // keep
    },
    "last": [1, 2.50, "\\u00e9", {}],
}
""",
    "toml": '# mine\nmodel = "o" # why\n\n[SECTION.other]\ncommand = "x"\n\n[profiles.a]\nb = 1\n',
}


def settings_path(client, repo):
    return Path(next(path for name, _, path in client_config.places(str(repo)) if name == client))


@pytest.mark.parametrize("client", WRITTEN)
def test_written_settings_keep_every_other_byte_and_are_written_once(home, repo, client):
    path = settings_path(client, repo)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = SETTINGS[CLIENTS[client].syntax].replace("SECTION", CLIENTS[client].section)
    path.write_text(before)
    path.chmod(0o640)
    done = install(client, "--write", cwd=repo)
    assert done.returncode == 0, done
    after = path.read_text()
    # Each old line is still there, in its order.
    rest = before.splitlines()
    for line in after.splitlines():
        rest = rest[1:] if rest and line == rest[0] else rest
    assert rest == [], after
    assert path.stat().st_mode & 0o777 == 0o640
    (kept,) = path.parent.glob(f"{path.name}.before-rye*")
    assert kept.read_text() == before
    assert str(kept) in done.stdout.decode()
    again = install(client, "--write", cwd=repo)
    assert (again.returncode, "nothing was changed" in again.stdout.decode()) == (0, True)
    assert path.read_text() == after
    assert len(list(path.parent.glob(f"{path.name}.before-rye*"))) == 1
    # Another choice replaces the entry, and nothing else.
    assert install(client, "--write", "--read-only", cwd=repo).returncode == 0
    assert "--read-only" in path.read_text()
    assert install(client, "--write", cwd=repo).returncode == 0
    assert path.read_text() == after
    assert len(list(path.parent.glob(f"{path.name}.before-rye*"))) == 3


@pytest.mark.parametrize("client", WRITTEN)
def test_settings_that_were_not_there_are_made(home, repo, client):
    path = settings_path(client, repo)
    assert install(client, "--write", cwd=repo).returncode == 0
    words, shown = words_of(client, path.read_text()), printed(client, cwd=repo)
    assert words == words_of(client, shown)
    program = Path(sys.executable).with_name("rye")
    program = program if program.exists() else sys.executable
    assert shown.startswith(f"The server runs from the environment of {program}; keep it"), shown
    assert path.stat().st_mode & 0o77 == 0
    found = {one["name"]: one["status"] for one in json.loads(rye("doctor", "--json", cwd=repo).stdout)["findings"]}
    assert found[f"client {client}"] in ("ok", "note")


@pytest.mark.parametrize(
    ("client", "text"),
    [
        *(("claude-code", text) for text in ('{"mcpServers": {', "[]", '{"mcpServers": []}', '{"mcpServers": {"rye": 1 2}}')),
        *(("claude-code", text) for text in ('{"a": "b}', '{"a": tru e}', "{" * 100_000)),
        *(("codex", text) for text in ("model = \n", "mcp_servers = 1\n", 'mcp_servers = {other = {command = "x"}}\n')),
        *(("goose", text) for text in ("extensions: [1]\n", "a: b: c\n", "provider: x\n")),
        ("gemini", b"\xff\xfe{}"),
    ],
)
def test_broken_settings_are_refused_and_stay(home, repo, client, text):
    path = settings_path(client, repo)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    done = install(client, "--write", cwd=repo)
    assert done.returncode == 2, done
    assert str(path) in done.stderr.decode()
    assert path.read_bytes() == data
    assert [one.name for one in path.parent.iterdir() if one.name != ".git"] == [path.name]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(
    before=st.dictionaries(st.text(max_size=5) | st.just("mcpServers"), JSON, max_size=4),
    servers=st.none() | st.dictionaries(st.sampled_from(["rye", "x", "y"]), JSON, max_size=3),
    indent=st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    comments=st.booleans(),
    tail=st.sampled_from(["", "\n", " // end", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_any_json_gets_the_entry_and_keeps_the_rest(tmp_path_factory, before, servers, indent, comments, tail, mark, newline):
    before.pop("mcpServers", None)
    wanted = {**before, **({} if servers is None else {"mcpServers": servers})}
    text = json.dumps(wanted, indent=indent)
    if comments and indent is not None:
        text = text.replace("{\n", "{ // opens\n").replace("}\n", "} // closes\n").replace("\n", "\n/* x */")
    path = tmp_path_factory.mktemp("any") / "settings.json"
    data = f"{mark}{text}{tail}".replace("\n", newline)
    path.write_bytes(data.encode())
    settings_file.put(str(path), "json", ("mcpServers", "rye"), {"command": "x", "args": []})
    after = path.read_bytes().decode()
    assert after.startswith("\ufeff") is bool(mark)
    assert newline == "\n" or newline not in data or after.count("\n") == after.count(newline)
    made = settings_file.parse(after, "json")
    wanted["mcpServers"] = {**(servers or {}), "rye": {"command": "x", "args": []}}
    assert made == wanted
    # And it goes again without a trace.
    settings_file.put(str(path), "json", ("mcpServers", "rye"), None)
    made = settings_file.parse(path.read_text(), "json")
    del wanted["mcpServers"]["rye"]
    if not wanted["mcpServers"] and not made.get("mcpServers"):
        del wanted["mcpServers"]
        made.pop("mcpServers", None)
    assert made == wanted


def test_a_link_of_the_user_is_followed_and_one_of_the_project_that_leads_out_is_not(home, repo, tmp_path):
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text("{}")
    (home / ".claude.json").symlink_to(dotfiles)
    assert install("claude-code", "--write", cwd=repo).returncode == 0
    assert (home / ".claude.json").is_symlink()
    assert "rye" in dotfiles.read_text()
    victim = tmp_path / "victim.json"
    victim.write_text("{}")
    (repo / ".mcp.json").symlink_to(victim)
    assert (install("claude-code", "--scope", "project", "--write", cwd=repo).returncode, victim.read_text()) == (2, "{}")
    # Control: without the link it is written, and names no folder of this machine's but the program.
    (repo / ".mcp.json").unlink()
    assert install("claude-code", "--scope", "project", "--write", cwd=repo).returncode == 0
    assert entry("claude-code", (repo / ".mcp.json").read_text())["args"] == ["mcp"]


def test_what_the_user_added_to_the_entry_stays(home, repo):
    path = home / ".codex/config.toml"
    assert install("codex", "--write", cwd=repo).returncode == 0
    path.write_text(path.read_text() + 'required = true\nenv = {A = "b"}\n\n[mcp_servers.rye.more]\nx = 1\n')
    assert install("codex", "--write", "--read-only", cwd=repo).returncode == 2, "a table in the entry is none of ours"
    path.write_text(path.read_text().replace('env = {A = "b"}\n\n[mcp_servers.rye.more]\nx = 1\n', ""))
    assert install("codex", "--write", "--read-only", cwd=repo).returncode == 0
    found = entry("codex", path.read_text())
    assert (found["required"], found["args"]) == (True, ["mcp", "--read-only"])
    # Another way to reach the server is another entry.
    assert install("codex", "--write", "--http", "8765", cwd=repo).returncode == 0
    assert set(entry("codex", path.read_text())) == {"url", "bearer_token_env_var"}


@pytest.mark.parametrize("client", [name for name, one in CLIENTS.items() if one.project and one.syntax == "json"])
def test_nothing_that_a_clone_put_into_the_entry_stays(home, repo, client):
    path = repo / CLIENTS[client].project
    assert install(client, "--scope", "project", "--write", cwd=repo).returncode == 0
    brought = {**entry(client, ours := path.read_text()), "env": {"LD_PRELOAD": "./x.so"}, "envFile": ".x"}
    path.write_text(json.dumps({CLIENTS[client].section: {"rye": brought}}, indent=2))
    assert install(client, "--scope", "project", "--write", cwd=repo).returncode == 0
    assert entry(client, path.read_text()) == entry(client, ours)


def test_the_entry_of_goose_is_printed_and_put_there_by_hand(home, repo):
    path = settings_path("goose", repo)
    done = install("goose", "--write", cwd=repo)
    assert (done.returncode, b"put it there by hand" in done.stderr, path.exists()) == (2, True, False)
    text = printed("goose", cwd=repo)
    path.parent.mkdir(parents=True)
    path.write_text(text[text.index("extensions:") :])
    before = path.read_text()
    assert b"nothing was changed" in install("goose", "--write", cwd=repo).stdout
    done = rye("mcp", "uninstall", "--client", "goose", cwd=repo)
    assert (done.returncode, b"Take the entry out by hand" in done.stderr) == (2, True)
    assert path.read_text() == before
    found = {one["name"]: one["status"] for one in json.loads(rye("doctor", "--json", cwd=repo).stdout)["findings"]}
    assert found["client goose"] in ("ok", "note")


@pytest.mark.parametrize("client", WRITTEN)
@pytest.mark.parametrize("others", [True, False])
def test_uninstall_takes_out_what_install_put_in(home, repo, client, others):
    scope = [] if CLIENTS[client].user else ["--scope", "project"]
    path = settings_path(client, repo)
    syntax, keys = CLIENTS[client].syntax, (CLIENTS[client].section, "other")
    if others:
        settings_file.put(str(path), syntax, keys, {"command": "other"})
    before = path.read_text() if others else None
    # Nothing is there to be removed yet.
    done = rye("mcp", "uninstall", "--client", client, *scope, cwd=repo)
    assert (done.returncode, b"nothing was changed" in done.stdout) == (0, True)
    assert (path.read_text() if path.exists() else None) == before
    assert install(client, *scope, "--write", cwd=repo).returncode == 0
    done = rye("mcp", "uninstall", "--client", client, *scope, cwd=repo)
    assert (done.returncode, b"Removed rye from" in done.stdout) == (0, True), done.stderr
    assert settings_file.parse(path.read_text(), syntax) in (
        [settings_file.parse(before, syntax)] if others else [{}, {keys[0]: {}}, {keys[0]: None}]
    )
