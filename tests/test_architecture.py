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
