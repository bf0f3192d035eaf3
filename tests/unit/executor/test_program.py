"""The primitive `subprocess`: programs in the sandbox, by the bundle's runtimes and by one that a user adds."""

import shutil
import sys
import time

import pytest

import rye
from rye.call.context import CallOptions
from rye.sandbox import sandbox
from support.calling import response as call
from support.harness import put_program
from support.shell_calls import set_sandbox
from support.signed_tools import put, put_script, put_yaml, signed, trust_key
from support.terminal import typed

SUBPROCESS = "rye/core/primitives/subprocess"
RUNTIMES = "rye/core/runtimes"


def yaml_tool(root, item_id, executor_id=SUBPROCESS, **more):
    return put_yaml(root, item_id, executor_id, **more)


def properties(**types):
    return {"type": "object", "properties": {name: {"type": one} for name, one in types.items()}}


@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
@pytest.mark.parametrize("suffix", [".js", ".mjs", ".cjs"])
def test_a_javascript_file_prints_its_result_as_json(project, suffix):
    body = """let s = ""; process.stdin.on("data", c => s += c).on("end", () => {
    console.log(JSON.stringify({output: JSON.parse(s).a + 1, more: [1]})) });"""
    put_script(project, "my/add", suffix, f"{RUNTIMES}/node_runtime", body, "//", config_schema=properties(a="integer"))
    answer = call(project, "my/add", a=41)
    assert (answer["status"], answer["data"]) == ("success", {"output": 42, "more": [1], "exit_code": 0, "success": True})


LANGUAGES = {
    # suffix: what its runtime declares, the program, its options, a script's first line, comment, and a line that answers with
    # the word that it is given and the number that it has in the file.
    ".php": ({"comment": "//", "after": "<?php"}, "php", [], "<?php", "//", 'echo getenv("PARAM_word"), " ", __LINE__;'),
    ".scm": ({"comment": ";"}, "tail", ["-n1"], "", ";", "one LINE"),
}


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_a_runtime_of_yaml_alone_runs_any_language(project, user_space, suffix):
    declared, program, options, first, mark, line = LANGUAGES[suffix]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    args = [*options, "{tool_path}"]
    config = {"command": program, "args": args, "parameter_env": "PARAM_", "output": "text"}
    yaml_tool(user_space, "my/runtimes/own", tool_type="runtime", suffixes=[suffix], config=config, **declared)
    yaml_tool(user_space, "my/runtimes/not", tool_type="runtime", suffixes=[suffix], config={**config, "command": "false"})
    path = put_script(project, "my/tool", suffix, "my/runtimes/own", line, mark, first, config_schema=properties(word="string"))
    answer = call(project, "my/tool", word="one")
    number = path.read_text().split("\n").index(line) + 1
    assert answer["status"] == "success", answer
    assert answer["data"]["output"].replace("LINE", str(number)).split() == ["one", str(number)]
    put_script(project, "my/other", ".sh", "my/runtimes/own", "1;")
    assert f"my/runtimes/own runs {suffix} files only" in call(project, "my/other")["error"]
    # It is listed, verified and locked as any other.
    assert "my/tool" in [row["item_id"] for row in rye.tools(project_path=project)]
    assert [row["verdict"] for row in rye.verify(["my/tool"], project_path=project)] == ["valid"]
    # What the signature leaves out is held to the signed runtime: another marker, another first line.
    good = path.read_bytes()
    other = "//" if mark == "#" else "#"
    swapped = good.replace(f"{mark} rye:signed".encode(), f"{other} rye:signed".encode())
    added = b"#!/bin/sh\n" + (good.split(b"\n", 1)[1] if first else good)
    for raw in (swapped, added):
        path.write_bytes(raw)
        answer = call(project, "my/tool", word="one")
        assert (answer["code"], answer["metadata"]["ran"]) == ("runtime_missing", False), raw[:80]


def test_ten_lines_of_yaml_are_a_tool_and_no_parameter_is_an_option(project):
    config = {"command": "printf", "args": ["%s,", "{words}", "--n={count}", "{extra}"]}
    yaml_tool(project, "my/echo", config=config, config_schema=properties(words="string", count="integer", extra="string"))
    assert call(project, "my/echo", words="* {words}", count=2)["data"]["output"] == "* {words},--n=2,"
    for extra, code in (("-rf", "option_like_value"), ("-1", None), ("a\0b", "bad_value")):
        assert call(project, "my/echo", words="x", extra=extra).get("code") == code


def test_exit_codes_are_mapped_and_a_failure_says_its_last_words(project):
    body = 'echo "no such thing" >&2; exit "$PARAM_code"'
    schema = properties(code="string")
    more = {"config": {"exit_codes": {"3": "not_there"}}, "config_schema": schema}
    put_script(project, "my/fails", ".sh", f"{RUNTIMES}/bash_script_runtime", body, **more)
    for code, name in (("3", "not_there"), ("4", "command_failed")):
        answer = call(project, "my/fails", code=code)
        assert (answer["status"], answer["code"], answer["data"]["exit_code"]) == ("error", name, int(code))
        assert "no such thing" in answer["error"]
    told = 'echo \'{"success": false, "error": "told", "code": "my_code"}\''
    put_script(project, "my/tells", ".sh", f"{RUNTIMES}/bash_script_runtime", told)
    answer = call(project, "my/tells")
    assert (answer["status"], answer["error"], answer["code"]) == ("error", "told", "my_code")
    # A chain that asks for JSON gets an object, or a refusal.
    bad = ("[1]", "text", '{"a": 1e999}', "", '{"success": "yes"}')
    for printed, code in (('{"a": 1}', None), *((one, "bad_tool_result") for one in bad)):
        yaml_tool(project, "my/json", config={"command": "printf", "args": ["%s", printed], "output": "json"})
        assert call(project, "my/json").get("code") == code, printed


def test_output_is_bounded_and_the_rest_can_be_read(project):
    yaml_tool(project, "my/long", config={"command": "seq", "args": ["1", "100000"], "output": "text"})
    data = call(project, "my/long")["data"]
    assert data["truncated"] is True
    assert len(data["output"].encode()) < 60_000
    assert (data["output"].startswith("1\n2\n"), data["output"].rstrip().endswith("100000")) == (True, True)
    job_id = data["output"].partition('job_id="')[2].partition('"')[0]
    assert call(project, "rye/bash/job", action="read", job_id=job_id, offset=300_000)["status"] == "success"


def test_a_program_is_ended_at_its_limit_with_all_that_it_started(project):
    put_script(
        project, "my/slow", ".sh", f"{RUNTIMES}/bash_script_runtime", "sleep 600 & sleep 600", permissions=["run"], timeout=1
    )
    started = time.monotonic()
    answer = call(project, "my/slow")
    assert (answer["status"], answer["code"], answer["data"]["killed"]) == ("error", "deadline_exceeded", True)
    assert time.monotonic() - started < 60


def test_a_caller_sees_output_as_it_comes(project):
    yaml_tool(project, "my/streams", config={"command": "printf", "args": ["one\\ntwo\\n"]})
    seen = []
    options = CallOptions(on_output=seen.append)
    assert rye.execute("my/streams", {}, project_path=project, options=options)["status"] == "success"
    assert "".join(seen) == "one\ntwo\n"


def test_an_environment_holds_no_secret_and_is_what_the_chain_declares(project, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sekret")
    monkeypatch.setenv("GREETING", "hello")
    env = {"A": "${MY_API_KEY:-unset}", "B": "${GREETING:-unset}", "C": "{project_path}"}
    yaml_tool(project, "my/env", env_config={"env": env}, config={"command": "env"})
    output = call(project, "my/env")["data"]["output"]
    assert "sekret" not in output
    assert {"A=unset", "B=unset", f"C={project}"} <= set(output.split("\n"))


def test_a_chain_that_declares_nonsense_is_refused(project):
    odd = [{"command": "x", key: value} for key, value in {"args": "y", "output": "xml", "cwd": 1}.items()]
    for config in ({}, 7, {"command": 3}, *odd):
        yaml_tool(project, "my/odd", config=config)
        assert call(project, "my/odd")["code"] == "malformed_item"
    yaml_tool(project, "my/odd", config={"command": "no-such-program-here"})
    assert call(project, "my/odd")["code"] == "interpreter_missing"
    # A bound that is no number is refused as such.
    for value in ("lots", [1], -1, float("inf"), 10**30, True):
        for key in ("memory_mb", "timeout_seconds"):
            yaml_tool(project, "my/odd", config={"command": "echo", "args": ["hello"], key: value})
            answer = call(project, "my/odd")
            assert (answer["code"], "must be a number above 0" in answer["error"]) == ("malformed_item", True), value
    for bound in ({"max_timeout_seconds": 0}, {"memory_mb": 500}, {"timeout_seconds": 500}):
        yaml_tool(project, "my/odd", config={"command": "printf", "args": ["x"], **bound})
        assert call(project, "my/odd")["status"] == "success"


def planted(project, says="planted"):
    """Make what a clone can bring: an interpreter of its own."""
    return put_program(project / ".venv/bin/python3", f"#!/bin/sh\necho {says}\n")


def python_script(project, body='print("own")', **more):
    trust_key()
    lines = [f"__{name}__ = {value!r}" for name, value in more.items()]
    text = (
        '"""x"""\n__version__ = "1.0.0"\n__tool_type__ = "python"\n__category__ = "my"\n__tool_description__ = "d"\n'
        f'__executor_id__ = "{RUNTIMES}/python_script_runtime"\n' + "\n".join([*lines, body, ""])
    )
    put(project, "tools/my/script.py", signed(text.encode()))


@pytest.mark.skipif(sandbox.layers()["bubblewrap"] != "", reason="bubblewrap does not work here")
def test_a_projects_interpreter_runs_only_as_the_very_file_that_a_person_approved(project, user_space):
    program = planted(project)
    python_script(project, permissions=["read", "run"])
    answer = call(project, "my/script")
    assert (answer["data"]["output"], answer["isolation"]["interpreter"]) == ("own\n", sys.executable)
    assert "rye trust approve --interpreter .venv/bin/python3" in " ".join(answer["warnings"])
    assert typed("trust", "approve", "--interpreter", ".venv/bin/python3", cwd=project, answers=["yes"])[0] == 0
    answer = call(project, "my/script")
    assert (answer["data"]["output"], answer["isolation"]["interpreter"]) == ("planted\n", str(program))
    assert "warnings" not in answer
    # Without the permission to read it would not even be seen; without a sandbox nothing would hold it.
    python_script(project)
    assert call(project, "my/script")["data"]["output"] == "own\n"
    python_script(project, permissions=["read", "run"])
    set_sandbox(user_space, "off")
    assert call(project, "my/script")["data"]["output"] == "own\n"
    set_sandbox(user_space, "auto")
    # Changed in place, exchanged, with other settings of the environment: another file than the approved one.
    planted(project, "swapped")
    answer = call(project, "my/script")
    assert (answer["data"]["output"], "not the file that was approved" in answer["warnings"][0]) == ("own\n", True)
    program.unlink()
    planted(project)
    (project / ".venv/pyvenv.cfg").write_text("home = /elsewhere\n")
    assert call(project, "my/script")["data"]["output"] == "own\n"
    # The same files at another root are another project's.
    other = project.parent / "other"
    shutil.copytree(project, other)
    assert call(other, "my/script")["data"]["output"] == "own\n"


def test_the_form_of_other_installations_finds_a_program_with_its_libraries(project, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/opt/.venv/bin:/usr/bin:/bin")
    planted(tmp_path / "opt", '"$(cat "${0%/*}/../lib/word" "${0%/*}/../auth.json" 2>&-)"')
    for name, text in (("lib/word", "beside"), ("auth.json", "SECRET")):
        (tmp_path / "opt/.venv" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "opt/.venv" / name).write_text(text)
    form = {"type": "local_binary", "search_paths": [".venv/bin"], "binary": "python3"}
    for declared in ({"search": [{"home": [f"{tmp_path}/opt/.venv/bin/../bin/python3"]}]}, form):
        declared["var"] = "PY"
        yaml_tool(project, "my/other", env_config={"interpreter": declared}, config={"command": "${PY}"}, permissions=["run"])
        assert call(project, "my/other")["data"]["output"] == "beside\n"
    planted(project)
    assert "The project has .venv/bin/python3" in call(project, "my/other")["warnings"][0]


def test_a_program_of_the_project_is_named_by_no_path(project):
    program = planted(project)
    for command in (str(program), "./.venv/bin/python3", "../project/.venv/bin/python3"):
        yaml_tool(project, "my/say", config={"command": command})
        assert call(project, "my/say")["code"] == "interpreter_missing"


@pytest.mark.parametrize("mode", ["auto", "off"])
@pytest.mark.parametrize("config", [{"args": ["{word}"]}, {"parameter_env": "PARAM_"}])
def test_a_value_that_nothing_can_hold_is_refused_as_the_system_says_it(project, user_space, monkeypatch, mode, config):
    set_sandbox(user_space, mode)
    monkeypatch.setattr("tempfile.tempdir", str(project.parent))
    yaml_tool(project, "my/tool", config={"command": "true", **config}, config_schema=properties(word="string"))
    answer = call(project, "my/tool", word="x" * 140_000)
    assert (answer["code"], "Argument list too long. Give less" in answer["error"]) == ("isolation_failed", True), answer
    assert call(project, "my/tool", word="x" * 100_000)["status"] == "success"
    assert not [*project.parent.glob("rye-tool-*")]
