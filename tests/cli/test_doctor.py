"""`rye doctor`: each part works, or is named with its fix."""

import json
import os
import re
import shutil
import sys
from importlib import metadata

import pytest

from rye.filesearch import ripgrep
from rye.sandbox import bubblewrap, landlock, launcher, resource_limits, sandbox
from support.harness import put_program
from support.in_process import rye
from support.shell_calls import configure
from support.signed_tools import bring_key, put, signed, tool_text, trust_key

UBUNTU = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    bubblewrap.ability.cache_clear()
    yield home
    bubblewrap.ability.cache_clear()


def findings(project):
    done = rye("doctor", "--project", str(project), "--json", cwd=project)
    content = json.loads(done.stdout)
    problems = [one for one in content["findings"] if one["status"] == "problem"]
    assert (content["problems"], done.returncode) == (len(problems), 1 if problems else 0)
    assert all(one["fix"] for one in content["findings"] if one["status"] != "ok")
    found = {}
    for one in content["findings"]:
        found.setdefault(one["name"], []).append(one)
    return found


def test_what_works_is_said(project):
    (project / "a.py").write_text("")
    found = findings(project)
    named = {"settings", "sandbox", "limits", "ripgrep", "extra mcp", "language server", "signing key", "trust", "state"}
    assert named <= set(found)
    if not sandbox.layers()["bubblewrap"]:
        assert found["sandbox"][0]["status"] == "ok"
    assert (found["signing key"][0]["fix"], found["clients"][0]["status"]) == ("rye keys generate", "note")
    text = rye("doctor", "--project", str(project), cwd=project).stdout.decode()
    assert ("signing key: none" in text, "        fix: rye keys generate" in text) == (True, True)


@pytest.mark.parametrize(
    ("kernel", "advice"),
    [
        ({"_APPARMOR": "1"}, "bwrap-userns-restrict"),
        ({"_MAX_USERNS": "0"}, "user.max_user_namespaces"),
        ({"_USERNS_CLONE": "0"}, "kernel.unprivileged_userns_clone=1"),
        ({}, "in a container"),
    ],
)
def test_a_bubblewrap_that_may_not_work_is_named_with_what_to_do(project, tmp_path, monkeypatch, kernel, advice):
    program = put_program(tmp_path / "bwrap", UBUNTU)
    monkeypatch.setattr(bubblewrap, "_PLACES", (str(program),))
    values = {getattr(bubblewrap, name): value for name, value in kernel.items()}
    monkeypatch.setattr(bubblewrap, "_kernel_value", lambda path: values.get(path, ""))
    found = findings(project)["sandbox"][0]
    told = ("setting up uid map: Permission denied" in found["detail"], advice in found["fix"])
    assert (found["status"], *told) == ("problem", True, True)
    # The commands go on under the next layer, and say what to do.
    if launcher.abi():
        confined = sandbox.confine(["/bin/true"], sandbox.Policy(str(project), str(project)))
        confined.close()
        confined.finish()
        assert (confined.report["kind"], advice in confined.report["instead_of"]["advice"]) == ("landlock", True)


def test_a_bubblewrap_that_mounts_no_descriptor_is_to_be_updated(project, tmp_path, monkeypatch):
    lacks = '#!/bin/sh\ncase "$*" in *-fd*) echo "bwrap: Unknown option --ro-bind-fd" >&2; exit 1;; esac\n'
    program = put_program(tmp_path / "bwrap", lacks)
    monkeypatch.setattr(bubblewrap, "_PLACES", (str(program),))
    assert findings(project)["sandbox"][0]["fix"].startswith("Update bubblewrap")


def test_no_sandbox_at_all_and_one_that_is_switched_off(project, user_space, monkeypatch):
    monkeypatch.setattr(bubblewrap, "_PLACES", ())
    monkeypatch.setattr(landlock, "why_not", lambda: "no Landlock")
    found = findings(project)["sandbox"][0]
    assert (found["status"], "Install bubblewrap" in found["fix"]) == ("problem", True)
    configure(user_space, "sandbox: {mode: 'off'}")
    assert "switched off" in findings(project)["sandbox"][0]["detail"]


def test_a_missing_ripgrep_limits_and_bad_settings(project, user_space, monkeypatch):
    monkeypatch.setattr(ripgrep, "locate", lambda project: None)
    monkeypatch.setattr(resource_limits, "_parents", dict)
    configure(user_space, "sandbox: [")
    found = findings(project)
    assert (found["ripgrep"][0]["status"], found["settings"][0]["status"]) == ("problem", "problem")
    (user_space / ".ai/config/rye.yaml").unlink()
    assert findings(project)["limits"][0]["status"] == "note"


def entry(command, *args):
    return json.dumps({"mcpServers": {"rye": {"command": command, "args": args}}})


def test_clients_are_found_and_a_program_that_is_gone_is_named(project, own_home):
    (project / ".mcp.json").write_text(entry("/no/such/rye", "mcp"))
    (own_home / ".codex").mkdir()
    (own_home / ".codex/config.toml").write_text('[mcp_servers.rye]\ncommand = "/bin/sh"\nargs = []\n')
    (own_home / ".config/opencode").mkdir(parents=True)
    (own_home / ".config/opencode/opencode.json").write_text('{"mcp": {"rye": {"command": ["/bin/sh", "-c"]}}} // comment')
    (own_home / ".claude.json").write_text('{"mcpServers": {"other": {"command": "/no/such/other"}}, "mcp": [1]}')
    found = findings(project)
    assert "/no/such/rye" in found["client claude-code"][0]["detail"]
    assert (len(found["client claude-code"]), found["client codex"][0]["status"]) == (1, "ok")
    assert "clients" not in found


@pytest.mark.parametrize(
    ("content", "status", "said"),
    [
        (entry("/bin/sh", "mcp", "--project", "/no/such/project"), "problem", "/no/such/project"),
        (entry(""), "ok", "rye"),
        ('{"mcpServers": ', "note", "cannot be read"),
        ("[" * 100_000, "note", "cannot be read"),
        (None, "note", "cannot be read"),
    ],
)
def test_settings_of_a_client_in_any_state(project, own_home, content, status, said):
    (own_home / ".claude.json").write_text(content) if content is not None else (own_home / ".claude.json").mkdir()
    found = findings(project)["client claude-code"][0]
    assert (found["status"], said in found["detail"]) == (status, True), found


def test_keys_and_items_of_the_project_that_wait_or_are_wrong(project):
    assert "items" in findings(project), "control: those of the system"
    put(project, "tools/my/unsigned.py", tool_text("my/unsigned"))
    (one,) = [row for row in findings(project)["items"] if "project" in row["detail"]]
    assert (one["status"], "1 unsigned" in one["detail"]) == ("note", True)
    put(project, "tools/my/tampered.py", signed(tool_text("my/tampered")) + b"# more\n")
    trust_key()
    (one,) = [row for row in findings(project)["items"] if "project" in row["detail"]]
    told = ("1 tampered, 1 unsigned" in one["detail"], "--space project" in one["fix"])
    assert (one["status"], *told) == ("problem", True, True)
    bring_key(project)
    (one,) = [row for row in findings(project)["trust"] if row["status"] == "note"]
    told = (one["detail"], one["fix"].startswith("rye trust approve"))
    assert told == ("1 key of this project awaits your decision", True)


def test_damaged_keys_and_decisions_and_what_others_can_read(project, user_space):
    configure(user_space, "signing: {agents: allow}")
    assert rye("keys", "generate", cwd=project).returncode == 0
    private = user_space / ".ai/keys/private_key.pem"
    assert findings(project)["signing key"][0]["status"] == "ok"
    private.chmod(0o644)
    problem = findings(project)["signing key"][0]
    assert (problem["status"], problem["fix"]) == ("problem", f"chmod 600 {private}")
    assert all(row["status"] == "ok" for row in findings(project)["trust"])
    for path, text in (("trusted_keys/0123456789abcdef.toml", b"not a key"), ("trust/decisions.json", b"{")):
        damaged = put(user_space, path, text)
        found = findings(project)
        assert any(row["status"] == "problem" for row in found["trust"])
        assert "state" in found, "the parts behind it are still looked at"
        damaged.unlink()
    shutil.rmtree(user_space / ".ai/state", ignore_errors=True)
    (user_space / ".ai/state").write_text("in the way")
    found = findings(project)["state"][0]
    assert (found["status"], "USER_SPACE" in found["fix"]) == ("problem", True)


@pytest.mark.parametrize(("extra", "lacking", "noted"), [("search", "ddgs", True), ("fleet", "distributed", False)])
def test_a_missing_extra_names_what_can_be_installed(project, monkeypatch, extra, lacking, noted):
    assert findings(project)[f"extra {extra}"][0]["status"] == "ok"
    real = metadata.version

    def version(name):
        if name == lacking:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    if not noted:
        read = metadata.PathDistribution.read_text
        unnoted = lambda of, name: None if name == "direct_url.json" else read(of, name)  # noqa: E731
        monkeypatch.setattr(metadata.PathDistribution, "read_text", unnoted)
    found = findings(project)[f"extra {extra}"][0]
    assert found["status"] == "note"
    # As this very checkout was installed: from a folder, and never by a name of an index, which anyone could register.
    assert re.match(rf"pip install (-e )?'?/.*\[{extra}\]", found["fix"])
    assert (f"/path/to/clone[{extra}]" in found["fix"]) == (not noted)
    how = json.loads(metadata.distribution("rye-workspace").read_text("direct_url.json") or "{}")
    assert ("-e " in found["fix"]) == how.get("dir_info", {}).get("editable", False)


def test_rye_on_the_path(project, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    assert "not on the PATH" in findings(project)["path"][0]["detail"]
    put_program(tmp_path / "rye", "#!/bin/sh\n")
    if os.path.exists(os.path.join(os.path.dirname(sys.executable), "rye")):
        assert "another one" in findings(project)["path"][0]["detail"]
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    assert "path" not in findings(project)


@pytest.mark.parametrize(
    ("text", "said", "is_refused"),
    [
        ("record: {commands: maybe}", "record.commands must be true or false, not 'maybe'", True),
        ("sandbox: {netwrk: off}", "There is no setting sandbox.netwrk. Did you mean sandbox.network?", True),
        ("signing: {agents: alow}", "signing.agents must be one of deny, allow, not 'alow'", True),
        ("journal: {max_bytes: big}", "journal.max_bytes must be a whole number, not 'big'", False),
        ("log: {event: true}", "There is no setting log.event. Did you mean log.events?", False),
        ("sandbox: {network: off}\nrecord: {commands: true}\nweb: {allow_hosts: [pypi.org]}", "", False),
    ],
)
def test_what_settings_do_not_know_is_named_by_doctor_and_by_every_command(project, user_space, text, said, is_refused):
    """In a section that guards something it is refused: a misspelled setting of the sandbox must not be passed over."""
    configure(user_space, text)
    found = [row for row in json.loads(rye("doctor", "--json", cwd=project).stdout)["findings"] if row["name"] == "settings"]
    assert [(row["status"], said in row["detail"]) for row in found] == [("problem" if said else "ok", True)]
    done = rye("ls", cwd=project)
    told = (said in done.stderr.decode(), bool(done.returncode), bool(done.stderr))
    assert told == (True, is_refused, bool(said))


@pytest.mark.parametrize(
    ("rules", "enabled", "status"),
    [
        ({}, True, "note"),
        ({"PROJECT": "TRUST_FOLDER"}, True, None),
        ({"PROJECT": "DO_NOT_TRUST", "/": "TRUST_FOLDER"}, True, "note"),
        ({"PROJECTS": "TRUST_FOLDER", "PROJECT/sub": "TRUST_FOLDER"}, True, "note"),
        ({"PROJECT": "DO_NOT_TRUST"}, False, None),
    ],
)
def test_gemini_starts_no_server_in_a_folder_that_it_does_not_trust(project, own_home, rules, enabled, status, monkeypatch):
    monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE", raising=False)
    settings = {"mcpServers": {"rye": {"command": sys.executable}}, "security": {"folderTrust": {"enabled": enabled}}}
    (own_home / ".gemini").mkdir()
    (own_home / ".gemini/settings.json").write_text(json.dumps(settings))
    text = "// by hand\n" + json.dumps(rules).replace("PROJECT", str(project))
    (own_home / ".gemini/trustedFolders.json").write_text(text)
    found = [one for one in findings(project)["client gemini"] if "starts no server" in one["detail"]]
    assert [one["status"] for one in found] == ([status] if status else [])
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    assert [one["status"] for one in findings(project)["client gemini"]] == ["ok"]
