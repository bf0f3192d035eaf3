"""`rye lint`: each rule with a file that breaks it, and a whole one that breaks none."""

from __future__ import annotations

import json

import pytest

from support.in_process import rye
from support.signed_tools import put, put_tool

GOOD = '''"""Count the words of a file.

Requires: file_path, an existing file.
Does not: change it.
Side effects: none.
Returns: output, count.
Prefer it to wc in a shell.
"""

from rye.toolkit import Workspace

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python_function_runtime"
__category__ = "my/text"
__tool_description__ = "Count words"
__item_id__ = "my/text/count"
__requires_rye__ = ">=0.1"
__timeout__ = 5
__permissions__ = ["read"]
__effects__ = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"file_path": {"type": "string", "format": "workspace-path", "description": "The file"}},
    "required": ["file_path"],
    "additionalProperties": False,
}


def execute(params: dict, project_path: str) -> dict:
    """Count."""
    with Workspace(project_path) as workspace, workspace.file(params["file_path"]) as file:
        return {"success": True, "output": str(len(file.read().split()))}
'''


@pytest.fixture
def found(project):
    """A function that lints a text, at the place of an id or elsewhere; it returns line and code of each finding."""

    def lines_and_codes(text, item_id="my/text/count", mode=0o644, suffix=".py"):
        return [(row["line"], row["code"]) for row in rows(project, text, item_id, mode, suffix)]

    return lines_and_codes


def rows(project, text, item_id, mode=0o644, suffix=".py"):
    path = project / (f".ai/tools/{item_id}{suffix}" if item_id else f"count{suffix}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return json.loads(rye("lint", path, "--json", cwd=project).stdout)


def test_a_good_tool_has_no_findings(found):
    assert found(GOOD) == found(GOOD, item_id=None) == []


PROPERTY = '{"type": "string", "format": "workspace-path", "description": "The file"}'
BROKEN = {
    "missing_metadata": [
        *(('__version__ = "1.0.0"\n', ""), ('__tool_description__ = "Count words"', "__tool_description__ = 3")),
        ('__category__ = "my/text"', '__category__ = "my" + "/text"'),
    ],
    "bad_version": [('"1.0.0"', '"1.0"')], "bad_tool_type": [('"python"', '"node"')], "wrong_category": [('"my/text"', '"my"')],
    "unknown_runtime": [("python_function_runtime", "other")], "missing_entry_point": [("def execute", "def run")],
    "long_summary": [('"Count words"', f'"{"x" * 101}"'), ('"Count words"', '"a\\nb"')],
    "bad_requirement": [('">=0.1"', '"0.1"'), ("__timeout__ = 5", '__requires__ = "numpy"')],
    "bad_timeout": [("__timeout__ = 5", "__timeout__ = 0"), ("__timeout__ = 5", "__timeout__ = True")],
    "missing_item_id": [('__item_id__ = "my/text/count"\n', "")], "wrong_item_id": [('"my/text/count"', '"my/text/other"')],
    "bad_permissions": [('["read"]', '["admin"]'), ('["read"]', '"read"'), ('["read"]', '["read", "write"]')],
    "missing_permission": [('__permissions__ = ["read"]\n', ""), ('["read"]', '["network"]')],
    "bad_effects": [
        *(('"open_world": False}', "}"), ('"open_world": False}', '"open_world": 0}')),
        ('"destructive": False', '"destructive": True'),
    ],
    "missing_point": [
        *(("Count the words of a file.", ""), ("Requires:", "Needs:"), ("Does not: change it.\n", "")),
        *(("Side effects: none.", "Side effects:"), ("Returns:", "Gives:"), ("Prefer it", "Take it")),
    ],
    "long_docstring": [("change it.", f"change it. {'x' * 1_400}")], "missing_schema": [("CONFIG_SCHEMA = ", "SCHEMA = ")],
    "bad_schema": [
        ('CONFIG_SCHEMA = {\n    "type": "object"', 'CONFIG_SCHEMA = {\n    "type": "array"'),
        *(("CONFIG_SCHEMA = {", "CONFIG_SCHEMA = dict() or {"), (PROPERTY, PROPERTY.replace('"string"', '"text"'))),
        *((PROPERTY, '{"$ref": "http://x/y"}'), (PROPERTY, "True"), ('"required": ["file_path"]', '"required": ["file"]')),
        ("def execute", "OUTPUT_SCHEMA = []\n\n\ndef execute"),
    ],
    "open_schema": [('    "additionalProperties": False,\n', ""), (PROPERTY, '{"type": "object", "description": "X", "properties": {"a": {"type": "integer", "description": "A"}}}')],
    "undescribed_parameter": [(', "description": "The file"', "")], "unmarked_path": [('"format": "workspace-path", ', "")],
    "bad_parameter_name": [('"file_path":', '"file path":')], "hidden_character": [("Count words", "Count\u202e words")],
    "import_not_allowed": [
        *(("from rye.toolkit", f"{one}\nfrom rye.toolkit") for one in ("import numpy", "from rye import executor")),
        ("from rye.toolkit", "from . import other\nfrom rye.toolkit"),
        ('    """Count."""', "    import rye.trust.verify"),
    ],
    "forbidden_call": [('    """Count."""', '    open("x")'), ('    """Count."""', '    eval("x")')],
    "bad_entry_point": [("(params: dict, project_path: str)", "(params)")], "syntax_error": [("def execute", "def def")],
    "long_file": [("def execute", "\n" * 400 + "def execute")],
}  # fmt: skip


@pytest.mark.parametrize("code", BROKEN)
def test_what_is_wrong_is_told_by_its_code(found, code):
    for old, new in BROKEN[code]:
        text = GOOD.replace(old, new, 1)
        assert text != GOOD
        codes = {one for _, one in found(text)}
        # What is wrong is told, and little else.
        assert (code in codes, len(codes) <= 3) == (True, True), (old, new, codes)


def test_a_finding_names_its_line(found):
    assert found(GOOD.replace("from rye.toolkit", "import numpy\nfrom rye.toolkit")) == [(10, "import_not_allowed")]
    assert found(GOOD.replace('    """Count."""', '    open("x")')) == [(32, "forbidden_call")]
    assert found(GOOD.encode().replace(b"# ", b"").replace(b"Count words", b"\xff")) == [(16, "not_utf8")]
    assert found("def f(:\n") == [(1, "syntax_error")]


def test_what_is_declared_may_be_imported_and_modes_are_checked(found):
    text = GOOD.replace("from rye.toolkit", "import numpy\nfrom rye.toolkit")
    assert found(text.replace("__timeout__ = 5", '__requires__ = ["NumPy>=2"]')) == []
    assert found(GOOD.replace("from rye.toolkit", "import json\nfrom rye.toolkit")) == []
    assert found(GOOD, mode=0o666) == [(1, "writable_by_others")]
    assert found(GOOD, mode=0o755) == [(1, "executable_file")]
    assert found(GOOD, mode=0o600) == []
    assert found(GOOD[GOOD.index("from rye.toolkit") :]) == [(1, "missing_docstring")]
    for suffix in ("", ".x-y", ".json"):
        assert found("root:x:0:0\n", suffix=suffix) == [(1, "not_a_tool")]


FACTS = "version: 1.0.0\ntool_type: x\ncategory: my/text\ndescription: d\n"
PATHED = "config_schema: {type: object, properties: {p: {type: string, format: workspace-path, description: d}}}\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FACTS, None),
        (FACTS.replace("1.0.0", '"1"'), "bad_version"),
        (FACTS.replace("description: d", ""), "missing_metadata"),
        (FACTS.replace("my/text", "my"), "wrong_category"),
        (f"{FACTS}executor_id: rye/core/runtimez/x\n", "unknown_runtime"),
        (f"{FACTS}executor_id: rye/core/primitives/http_client\n", None),
        ("a: [", "bad_yaml"),
        (f"{FACTS}{PATHED}permissions: [read]\n", None),
        (f"{FACTS}permissions: read\n", "bad_permissions"),
    ],
)
def test_yaml_tools(found, text, code):
    for suffix in (".yaml", ".yml"):
        assert found(text, suffix=suffix) == ([(1, code)] if code else [])


def script(facts, marker="#"):
    return "".join(f"{marker} {line}\n" for line in f"---\n{facts}---".splitlines())


@pytest.mark.parametrize(("suffix", "marker", "runtime"), [(".sh", "#", "bash_script"), (".js", "//", "node")])
def test_scripts_are_checked_by_their_header(found, suffix, marker, runtime):
    header = script(f"{FACTS}executor_id: rye/core/runtimes/{runtime}_runtime\n", marker)
    assert found(f"{header}echo x\n", suffix=suffix) == []
    shebang = "#!/bin/bash\n" if suffix == ".sh" else ""
    assert found(f"{shebang}{header}", suffix=suffix) == []
    assert found(f"{header.removesuffix(f'{marker} ---{chr(10)}')}echo x\n", suffix=suffix)[0] == (1, "bad_yaml")
    assert found("echo x\n", suffix=suffix)[0] == (1, "missing_metadata")


REQUEST = f"{FACTS}executor_id: rye/core/runtimes/http_runtime\nconfig: {{url: 'https://example.org/x'}}\n"


@pytest.mark.parametrize(
    ("suffix", "text", "needed", "said"),
    [
        (".sh", FACTS + PATHED, "write", "It takes a path: give permissions: [read], or [write]."),
        (".yaml", REQUEST, "network", "It sends a request: give permissions: [network]."),
    ],
)
def test_the_permissions_of_scripts_and_of_requests_are_checked(project, suffix, text, needed, said):
    for permissions, wanted in (("", [said]), (needed, [])):
        whole = f"{text}permissions: [{permissions}]\n"
        found = rows(project, script(whole) if suffix == ".sh" else whole, "my/text/count", suffix=suffix)
        assert [one["message"] for one in found if one["code"] == "missing_permission"] == wanted


# --- new and lint, as they are typed ---


def test_new_says_what_to_do_next_and_lint_finds_nothing(project):
    (project / ".ai").mkdir()
    assert rye("lint", cwd=project).returncode == 2, "nothing to check"
    done = rye("new", "tool", "my/text/word_count", cwd=project)
    assert done.returncode == 0, done.stderr
    out = done.stdout.decode()
    assert out.startswith(".ai/tools/my/text/word_count.py\ntests/test_my_text_word_count.py\n")
    commands = ("edit ", "rye lint my/text/word_count", "rye sign my/text/word_count", "rye my/text/word_count")
    assert [command for command in commands if command not in out] == []
    done = rye("lint", cwd=project)
    assert (done.returncode, done.stdout, b"No findings" in done.stderr) == (0, b"", True)
    again = rye("new", "tool", "my/text/word_count", cwd=project)
    assert (again.returncode, again.stdout) == (1, b"")
    assert json.loads(rye("new", "tool", "my/other", "--json", cwd=project).stdout)["item_id"] == "my/other"


def test_new_makes_nothing_in_a_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    done = rye("new", "tool", "my/words", cwd=tmp_path)
    assert (done.returncode, b"is no project's folder" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
    # Control: it does where the home is named.
    assert rye("new", "tool", "my/words", "--project", str(tmp_path), cwd=tmp_path).returncode == 0


def test_lint_prints_one_line_for_each_finding(project):
    put(project, "tools/my/bad.py", b"import numpy\n")
    done = rye("lint", "my/bad", cwd=project)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(".ai/tools/my/bad.py:1: ")
    assert {line.split(" ")[1] for line in lines} >= {"import_not_allowed", "missing_docstring", "missing_schema"}
    rows = json.loads(rye("lint", ".ai/tools", "--json", cwd=project).stdout)
    assert [f"{row['path']}:{row['line']}: {row['code']} {row['message']}" for row in rows] == lines
    assert {row["item_id"] for row in rows} == {"my/bad"}


def test_lint_runs_nothing_and_shows_no_hidden_text(project, tmp_path):
    canary = tmp_path / "canary"
    text = f'open({str(canary)!r}, "w")\nimport a\u202eb\n__tool_description__ = "\\x1b[2J"\n'
    put(project, "tools/my/bad.py", text.encode())
    done = rye("lint", cwd=project, env={"PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, canary.exists()) == (1, False)
    assert ("\u202e" in done.stdout.decode(), b"\x1b" in done.stdout) == (False, False)


def test_the_bundle_passes_and_all_spaces_are_asked(project, user_space):
    put_tool(user_space, "my/tool")
    rows = json.loads(rye("lint", "--all", "--json", cwd=project).stdout)
    assert {row["item_id"] for row in rows} == {"my/tool"}
    assert rye("lint", "rye/file-system/read", cwd=project).returncode == 0
