"""What the author of a tool is told when it fails: the traceback's place, a permission or a distribution that is missing."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import rye
from rye.sandbox import sandbox
from support.calling import response as call
from support.shell_calls import configure
from support.signed_tools import OK, put, put_script, put_tool
from support.terminal import typed

CRASHES = {
    'raise KeyError("s3cret")': "KeyError",
    "import sys\nsys.exit(0)": "SystemExit",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise GeneratorExit": "GeneratorExit",
    "def f(): f()\nf()": "RecursionError",
    'class E(Exception):\n    def __str__(self): raise RuntimeError("inner")\nraise E': "E",
    "": "ZeroDivisionError",
}


@pytest.mark.parametrize("confined", [True, False], ids=["worker", "here"])
@pytest.mark.parametrize("body", CRASHES)
def test_a_crash_keeps_its_traceback_in_the_file_that_the_answer_names(project, user_space, request, body, confined):
    if not confined:
        request.getfixturevalue("here")
    # Or where the file is loaded.
    put_tool(project, "my/tool", body or OK, more="" if body else "1 / 0")
    answer = call(project)
    assert (answer["status"], answer["code"], CRASHES[body] in answer["error"]) == ("error", "tool_crashed", True)
    assert answer["data"]["error_id"] in answer["error"]
    log = Path(answer["data"]["log"])
    assert str(log) in answer["error"]
    assert ("Traceback" in str(answer), "s3cret" in str(answer)) == (False, False)
    assert (log.is_relative_to(user_space), log.stat().st_mode & 0o777) == (True, 0o600)
    text = log.read_text()
    assert (text.startswith("my/tool 1.2.3"), "Traceback" in text) == (True, True)
    assert CRASHES[body] in text.rstrip().rsplit("\n", 1)[1]


@pytest.mark.skipif(not os.access(rye.__file__, os.W_OK), reason="the package is another user's")
def test_a_crash_says_that_the_package_was_exchanged_meanwhile(project):
    put_tool(project, "my/tool", "1 / 0")
    assert "undo(list=true) shows what it changed" in call(project)["error"]
    # As an update does.
    os.utime(rye.__file__)
    assert "start it (the server) again" in call(project)["error"]


def test_only_the_newest_tracebacks_are_kept(project, here):
    put_tool(project, "my/tool", "1 / 0")
    for at in range(53):
        newest = Path(call(project)["data"]["log"])
        os.utime(newest, (at, at))
    assert len([*newest.parent.glob("*.txt")]) == 50
    assert newest.exists()


def test_a_tool_cannot_have_another_file_shown_as_its_traceback(project, tmp_path):
    secret = tmp_path / "crashes/0123abcd.txt"
    secret.parent.mkdir()
    secret.write_text("private")
    put_tool(project, "my/tool", f'return {{"success": False, "error": "x", "code": "tool_crashed", "log": {str(secret)!r}}}')
    assert call(project)["data"]["log"] == str(secret)
    assert "private" not in typed("execute", "my/tool", cwd=project)[1]


def test_a_requirement_is_checked_before_the_run_and_names_the_command(project):
    put_tool(project, "my/tool", more='__requires__ = ["no-such-distribution>=1", "httpx>=99", "pyyaml"]\nimport no_such')
    answer = call(project)
    assert (answer["code"], answer["metadata"]["ran"]) == ("requirement_missing", False)
    assert "no-such-distribution>=1 (not installed)" in answer["error"]
    assert f"{sys.executable} -m pip install 'no-such-distribution>=1' 'httpx>=99'" in answer["error"]
    put_tool(project, "my/tool", more="import no_such_module")
    assert "(ModuleNotFoundError: no_such_module)" in call(project)["error"]
    put_tool(project, "my/tool", more='__requires__ = ["httpx>=0.20,<9", "pyyaml"]')
    assert call(project)["status"] == "success"


HOLD = "1.10>=1.9 1.2.3==1.2.* 3rc1>2.9.9 1>=2;python_version<'3'"
FAIL = "1.2.3==1.2 2.0~=1.4 3>=what 4;'what'in'where'"


@pytest.mark.parametrize("versions", f"{HOLD} {FAIL}".split())
def test_versions_are_compared_as_pip_compares_them(project, tmp_path, monkeypatch, here, versions):
    installed, wanted = re.fullmatch(r"([\w.]+)(.*)", versions).groups()
    (tmp_path / "made-1.dist-info").mkdir()
    (tmp_path / "made-1.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: made\nVersion: {installed}\n")
    monkeypatch.syspath_prepend(tmp_path)
    put_tool(project, "my/tool", more=f'__requires__ = ["made{wanted}"]')
    answer = call(project)
    holds = versions in HOLD.split()
    assert (answer["status"] == "success") is holds, answer
    why = "which cannot be read" if "what" in wanted else f"{installed} is installed"
    assert holds or f"made{wanted} ({why})" in answer["error"]


def test_a_user_grants_what_a_tool_of_another_installation_does_not_declare(project, user_space):
    (project / "a.txt").write_text("x")
    body = 'return {"success": True, "output": open(project_path + "/a.txt").read()}'
    put_tool(project, "my/old", body)
    put_tool(project, "my/new", body, more="__permissions__ = []")
    configure(user_space, 'permissions: {granted: ["my/ read"]}\n')
    answer = rye.execute("my/old", project_path=project)
    assert (answer["status"], answer["isolation"]["permissions"]) == ("success", ["read"])
    # What a tool says of itself stays, and only the user's own file grants.
    assert rye.execute("my/new", project_path=project)["isolation"]["permissions"] == []
    configure(user_space, 'permissions: {granted: ["my/older read", "my/old/ read"]}\n')
    put(project, "config/rye.yaml", b'permissions: {granted: ["my/ read"]}\n')
    assert rye.execute("my/old", project_path=project)["isolation"]["permissions"] == []
    configure(user_space, 'permissions: {granted: ["my/ everything"]}\n')
    assert rye.execute("my/old", project_path=project)["code"] == "bad_config"


def put_show(project, permissions, text, suffix=".sh"):
    """Sign a tool without a schema as `my/show`, of Python, or of a shell or Node.js, which make their own answers."""
    if suffix == ".py":
        put_tool(project, "my/show", text, more=f"__permissions__ = {permissions!r}")
    else:
        runtime, mark = ("bash_script", "#") if suffix == ".sh" else ("node", "//")
        put_script(project, "my/show", suffix, f"rye/core/runtimes/{runtime}_runtime", text, mark, permissions=permissions)


@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"], indirect=True)
@pytest.mark.parametrize(
    ("suffix", "declared", "text", "missing", "said"),
    [
        (".py", [], 'open(project_path + "/a.txt")', "read", ""),
        (".py", ["read"], 'open(project_path + "/b.txt", "w")', "write", ""),
        (".py", ["read"], '__import__("os").mkdir(project_path + "/b")', "write", ""),
        (".py", ["read"], '__import__("socket").create_connection(("example.org", 80), 3)', "network", ""),
        (".py", ["read"], '__import__("socket").create_connection(("203.0.113.1", 80), 3)', "network", ""),
        (".py", ["read"], '__import__("subprocess").run(["/bin/true"])', "run", ""),
        (".py", ["read"], 'open(project_path + "/gone.txt")', None, ""),
        (".py", ["read"], 'open("/etc/shadow-")', None, ""),
        (".sh", ["run"], "cat a.txt", "read", ""),
        (".sh", ["read", "run"], "echo x >b.txt", "write", ""),
        (".sh", ["read", "run"], "rm a.txt", "write", ""),
        (".sh", ["read", "run"], "exec 3<>/dev/tcp/203.0.113.1/80", "network", ""),
        (".sh", ["read"], "cat a.txt", "run", ""),
        (".sh", ["read", "run"], "cat /etc/shadow-; exit 1", None, ""),
        (".js", [], 'require("fs").readFileSync("a.txt")', "read", "open 'a.txt'"),
        (".js", ["read"], 'require("fs").writeFileSync("b.txt", "")', "write", "open 'b.txt'"),
        (".js", ["read"], 'require("child_process").execFileSync("/bin/true")', "run", "spawnSync /bin/true"),
        (".js", ["read"], 'fetch("http://example.org")', "network", "fetch failed"),
        (".js", ["read"], "null.x", None, "TypeError: Cannot read properties of null"),
    ],
)
def test_a_missing_permission_is_said_with_the_tools_own_words(project, layer, suffix, declared, text, missing, said):
    if suffix == ".js" and shutil.which("node") is None:
        pytest.skip("no Node.js")
    (project / "a.txt").write_text("x\n")
    put_show(project, declared, text, suffix)
    answer = call(project, "my/show")
    assert (answer["status"], answer["data"].get("missing_permission")) == ("error", missing)
    if missing:
        wanted = ", ".join(f'"{one}"' for one in [*declared, missing])
        line = f"__permissions__ = [{wanted}]" if suffix == ".py" else f"permissions: [{wanted}]"
        assert f"This tool has no `{missing}` permission: add {line} to its " in answer["error"]
    # The frames below the error would fill the few lines that a message has.
    assert (said in answer["error"], "Module._load" in answer["error"]) == (True, False)


def test_a_script_without_the_permission_is_told_so_at_a_terminal_and_to_a_model(project):
    (project / "a.txt").write_text("x\n")
    if not sandbox.confines(str(project)):
        pytest.skip("no sandbox here")
    put_show(project, ["run"], "cat a.txt")
    assert 'add permissions: ["run", "read"]' in rye.toolset(project, ["my"]).call("my__show")
    assert 'add permissions: ["run", "read"]' in typed("show", cwd=project)[1]
