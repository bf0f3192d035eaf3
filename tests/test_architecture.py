"""The rules of the code that a reader relies on, held by reading the source; see each test's name."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import rye
from rye import toolkit
from support.harness import environment

RUNTIME = Path(rye.__file__).parent
ROOT = RUNTIME.parents[1]
BUNDLE = ROOT / ".ai"
MODULES = {".".join(path.relative_to(RUNTIME.parent).with_suffix("").parts): path for path in sorted(RUNTIME.rglob("*.py"))}
TOOLS = sorted((BUNDLE / "tools").rglob("*.py"))

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
# In the order of the page; a package imports only what comes after it.
PACKAGES = [
    "__main__",
    *re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| `.*?\|", PAGE.partition("## Packages")[2]))),
    "_version",
]
LEVEL = {package: level for level, package in enumerate(PACKAGES)}

HEAVY = {
    "httpx", "asyncio", "yaml", "cryptography", "jsonschema_rs", "mcp", "mcp_types", "anyio", "uvicorn", "starlette", "rich",
    "ddgs", "tomllib", "multiprocessing", "dask", "python_multipart", "distributed", "jinja2", "markupsafe",
}  # fmt: skip


@cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(tree):
    """Yield (module, line) of every import, wherever it stands; `from rye import x` as `rye.x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                is_module = full in MODULES or f"{full}.__init__" in MODULES
                yield (full if is_module else node.module), node.lineno


def _calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func


def _is_uphill(importer, imported):
    return importer != imported and LEVEL[imported] <= LEVEL[importer]


def test_a_package_imports_only_packages_below_it():
    wrong = set()
    for name, path in MODULES.items():
        if name == "rye.__init__":
            tops = [one.module for one in _tree(path).body if isinstance(one, ast.ImportFrom) and "rye" in one.module]
            assert tops == ["rye._version"], "`import rye` loads nothing"
            continue
        package = name.split(".")[1]
        assert package in LEVEL, f"give {package} its place in ARCHITECTURE.md"
        for imported, _line in _imported(_tree(path)):
            target = imported.split(".")
            if target[0] == "rye" and len(target) > 1 and _is_uphill(package, target[1]):
                wrong.add((name, imported))
    assert wrong == set()
    # The page names no others, and no module that is gone.
    assert LEVEL.keys() - {name.split(".")[1] for name in MODULES} == set()
    named = set(re.findall(r"`([a-z_]+/[a-z_]+\.py)`", PAGE))
    assert len(named) > 10
    assert [one for one in named if not (RUNTIME / one).is_file() and not (ROOT / one).is_file()] == []


def _cycles(edges):
    """Return the modules that are left when those that import none of the others are taken away, again and again."""
    left = {name: set(targets) for name, targets in edges.items()}
    while ends := {name for name, targets in left.items() if not targets & set(left)}:
        left = {name: targets for name, targets in left.items() if name not in ends}
    return sorted(left)


def test_no_modules_import_each_other_in_a_circle():
    edges = {}
    for name, path in MODULES.items():
        found = {one for one, _ in _imported(_tree(path))}
        edges[name] = {one for one in found if one in MODULES and one != name}
    assert _cycles(edges) == []


def test_control_an_import_uphill_and_a_circle_are_seen():
    assert _is_uphill("errors", "config")
    assert _is_uphill("toolkit", "executor")
    assert not _is_uphill("executor", "errors")
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c", "d"]
    assert list(_imported(ast.parse("def f():\n    from rye.executor import executor\n    import rye"))) == [
        ("rye.executor.executor", 2),
        ("rye", 3),
    ]


def _requirements(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__requires__":
            names = (re.match(r"[\w.-]+", text) for text in ast.literal_eval(node.value))
            return {match[0].replace("-", "_").lower() for match in names if match}
    return set()


def test_tools_import_the_standard_library_the_library_packages_and_what_they_declare():
    assert TOOLS
    for path in TOOLS:
        tree = _tree(path)
        allowed = _requirements(tree) | set(sys.stdlib_module_names)
        for imported, line in _imported(tree):
            top = imported.split(".")[0]
            in_library = imported.startswith("rye.") and LEVEL[imported.split(".")[1]] >= LEVEL["toolkit"]
            # What these do to items is held to their __needs__.
            in_library |= imported == "rye.primary_tools"
            assert in_library or top in allowed, f"{path}:{line} imports {imported}"


def test_tools_open_no_file_and_judge_no_path_by_themselves():
    for path in TOOLS:
        for call in _calls(_tree(path)):
            name = call.id if isinstance(call, ast.Name) else call.attr if isinstance(call, ast.Attribute) else ""
            assert name not in {"open", "realpath", "abspath", "resolve", "is_relative_to", "read_text", "write_text"}, (
                path,
                name,
            )


def test_one_place_compiles_and_one_place_runs():
    found = {"compile": [], "exec": [], "eval": [], "__import__": []}
    for path in [*MODULES.values(), *TOOLS]:
        for call in _calls(_tree(path)):
            if isinstance(call, ast.Name) and call.id in found:
                found[call.id].append(path.name)
    assert found == {"compile": ["run_code.py"], "exec": ["run_code.py"], "eval": [], "__import__": []}


def test_nothing_unpickles_or_runs_a_file_by_its_path():
    for path in [*MODULES.values(), *TOOLS]:
        for imported, line in _imported(_tree(path)):
            assert imported.split(".")[0] not in {"pickle", "marshal", "runpy", "shelve", "imp"}, f"{path}:{line}"
            assert imported not in {"importlib.util", "importlib.machinery"}, f"{path}:{line}"


def test_no_module_has_more_than_600_lines_and_no_item_more_than_400():
    items = [one for one in BUNDLE.rglob("*") if one.is_file() and "cache" not in one.parts]
    for paths, most in ((MODULES.values(), 600), (items, 400)):
        for path in paths:
            assert len(path.read_bytes().split(b"\n")) <= most + 1, path


def test_names_say_what_a_module_is_for_and_its_docstring_too():
    for name, path in MODULES.items():
        assert not {"utils", "util", "helpers", "helper", "manager", "common", "misc"} & set(name.split(".")), name
        if path.name == "__init__.py":
            # These two load their public names when they are first used.
            assert name in ("rye.__init__", "rye.fleet.__init__") or not path.read_bytes(), f"{path} is to be empty"
        else:
            assert ast.get_docstring(_tree(path)), path


COLD = """
import json, sys
from rye.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def _loaded(*words, cwd):
    env = {**os.environ, "PYTHONPATH": str(RUNTIME.parent)}
    done = subprocess.run([sys.executable, "-c", COLD, *words], cwd=cwd, env=env, capture_output=True, check=False)
    assert done.stdout, done
    return set(json.loads(done.stderr.splitlines()[-1]))


# What reads options, translates their help, and parses Python: words without options and the system's tools need none of it.
OF_WORDS = ["argparse", "gettext", "locale", "shlex", "tempfile"]
OF_WORDS += ["ast"] if sys.version_info < (3, 14) else []  # From then on a named tuple loads it.


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (("--help",), {*HEAVY, "rye.api", "rye.executor.executor", "rye.trust.verify", "logging", "hashlib"}),
        (("tools", "--help"), {*HEAVY, "rye.agents.discovery", "rye.executor.executor", "logging"}),
        (("execute", "--help"), {*HEAVY, "rye.executor.executor", "logging"}),
        (
            ("execute", "rye/file-system/read", "file_path=a.txt"),
            {*HEAVY, "dataclasses", "inspect", *OF_WORDS, "logging", "rye.journal.commit", "rye.journal.recovery"},
        ),
    ],
)
def test_a_cold_command_loads_no_more_than_it_needs(project, words, unwanted):
    (project / "a.txt").write_bytes(b"x\n")
    # The first call checks the signature, which the next ones need not.
    _loaded(*words, cwd=project)
    loaded = _loaded(*words, cwd=project)
    assert not unwanted & loaded, unwanted & loaded
    assert "rye.cli.main" in loaded


def test_control_what_is_loaded_is_seen(project):
    (project / "a.txt").write_bytes(b"x\n")
    words = ("execute", "rye/file-system/write", "file_path=b.txt", "content=x")
    assert {"jsonschema_rs", "rye.executor.executor", "cryptography"} <= _loaded(*words, cwd=project)


def test_the_public_names_are_these():
    names = "RyeError __version__ execute fleet load search sign tools toolset verify"
    assert rye.__all__ == names.split()
    for name in rye.__all__:
        assert getattr(rye, name) is not None
    assert dir(rye) == sorted(rye.__all__)
    assert not hasattr(rye, "executor_of_everything")


def test_importing_rye_loads_nothing_of_itself_or_of_others():
    code = "import sys; before = set(sys.modules); import rye; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    loaded = [name for name in done.stdout.split() if name not in ("__future__", "typing")]
    assert [name for name in loaded if name.partition(".")[0] == "rye"] == ["rye", "rye._version"]
    assert not {"yaml", "httpx", "cryptography", "asyncio", "json", "pathlib"} & set(loaded)


def test_the_names_of_the_toolkit_are_those_of_the_page_for_authors_and_each_is_documented():
    page = (ROOT / ".ai/knowledge/rye/core/writing-a-tool.md").read_text(encoding="utf-8")
    rows = page.partition("| name | what it is for |\n")[2].partition("\n\n")[0].splitlines()
    # What the functions of the table return, and take.
    named = {*re.findall(r"`(\w+)", " ".join(row.split("|")[1] for row in rows)), "Applied", "Edited", "Replaced", "Show"}
    assert sorted(named) == toolkit.__all__ == sorted(toolkit._HOMES) == dir(toolkit)
    assert [name for name in named if not getattr(toolkit, name).__doc__] == []
    with pytest.raises(AttributeError):
        toolkit.index_whole


@pytest.mark.parametrize("tool", ["read", "write", "edit_lines"])
def test_the_file_tools_import_the_toolkit_and_the_standard_library_alone(tool):
    tree = ast.parse((ROOT / f".ai/tools/rye/file-system/{tool}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name for name in imported if name.partition(".")[0] == "rye"} == {"rye.toolkit"}


def test_an_edit_prints_as_many_lines_as_it_is_asked_for_and_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"line {at}\n" for at in range(100)))
    root = str(tmp_path)

    def look(document):
        document.printed(0, document.count)
        document.shown((0, document.count))
        return document.ids(0, 100)

    ids = toolkit.view_lines(root, "a.txt", look)
    changes = [{"start_line_id": ids[0], "end_line_id": ids[99], "new_content": "x\n" * 100}]
    applied = toolkit.edit_lines(root, "a.txt", changes, tool="my/tool", show=toolkit.Show(500))
    assert applied.cut
    assert 0 < len("\n".join(applied.printed())) <= 500
    # A line that was not printed was not shown: it cannot be edited as a part of a range.
    more = [{"line_id": toolkit.view_lines(root, "a.txt", lambda document: document.ids(90, 91))[0], "new_content": "y"}]
    with pytest.raises(toolkit.EditError, match="never shown"):
        toolkit.edit_lines(root, "a.txt", more, tool="my/tool")


# The system's tools keep nothing of a call at the top level of their modules: a process runs the text of each once.
KEEPS = re.compile(
    # What is no constant at the top level can change; no constant and no class is changed.
    r"^[a-z]\w*\s*(:.*)?=\s*(\[|\{|set|dict|list)"
    r"|^\s+(global\s|[A-Z]\w*\.\w+\s*[-+|]?=[^=]|_?[A-Z]+[A-Z_0-9]*(\[.*\])+\s*[-+|]?=[^=])"
    r"|\b_?[A-Z]+[A-Z_0-9]*(\[.*\])*\.(append|add|clear|extend|insert|pop|popitem|remove|discard|setdefault|sort|update)\("
    # A memory of the library's, or a default that can change.
    r"|\b(lru_cache|globals\(|setattr\(|functools\.cache)|@cache\b|def \w+\(.*=\s*(\[|\{)",
    re.MULTILINE,
)


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_a_tool_keeps_nothing_of_a_call(path):
    code = re.sub(r'"""[\s\S]*?"""|#.*|"[^"\n]*"', "", path.read_text(encoding="utf-8"))
    assert [match[0] for match in KEEPS.finditer(code)] == []


@pytest.mark.parametrize(
    "text",
    [
        *["seen = []\n", "SEEN = {}\ndef execute(p, r):\n    SEEN['x'] = 1\n", "_SEEN = []\ndef f():\n    _SEEN.append(1)\n"],
        *["def execute(p, r):\n    global count\n", "@functools.lru_cache\n", "def execute(p, r):\n    globals()['x'] = 1\n"],
        *["def execute(p, r):\n    A.n += 1\n", "def execute(p, r, seen=[]):\n"],
    ],
)
def test_control_a_tool_that_keeps_something_is_found(text):
    assert KEEPS.search(text)
