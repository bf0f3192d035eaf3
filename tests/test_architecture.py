"""The rules of the house that a reader relies on, held by reading the source; see each test's name."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rye

RUNTIME = Path(rye.__file__).parent
ROOT = RUNTIME.parents[1]
BUNDLE = ROOT / ".ai"
MODULES = {".".join(path.relative_to(RUNTIME.parent).with_suffix("").parts): path for path in sorted(RUNTIME.rglob("*.py"))}
TOOLS = sorted((BUNDLE / "tools").rglob("*.py"))

# A module imports only modules listed below it. Doors first; `rye` itself is a list of names, loaded when used.
ROOMS = (
    "__main__", "rt", "rt_completion", "rt_printing", "rt_words", "rt_verbs", "scripted", "toolsets", "cli", "process_end", "lint",
    "mcp_clients",
    "mcp_server", "mcp_calls", "mcp_answers", "mcp_http", "mcp_listing", "mcp_resources", "mcp_selection", "mcp_stdio",
    "skeleton", "discovery", "provider_schemas", "gemini_schema", "offers", "points", "schema_parts", "strict_schema",
    "tool_names", "api", "household", "registry_answers", "registry", "registry_look", "pulling", "pushing", "artifacts",
    "loading", "rollback", "installing", "searching", "matching", "catalogue", "query", "served", "keyring", "attest", "targets",
    "executor", "isolation", "cells", "isolated_child", "admission", "entry", "workers", "printed", "lockfiles", "verdicts",
    "oci_store", "oci_http", "oci_requests", "oci_auth", "oci_layout", "oci_manifest", "oci_reference", "bundles", "items", "directives",
    "spaces", "marks", "decisions", "durable", "trust", "signing", "schema", "plain_schema", "toolkit", "state", "errors",
    "record",
)  # fmt: skip
TOOLKIT = (
    "swe_editing", "swe_search", "view", "swe", "house", "language_actions", "checking", "refactoring", "language",
    "lsp_session", "source_files", "file_uris", "lsp_servers", "lsp_wire", "positions", "websearching", "search_providers",
    "layered", "browsing", "webpage", "page_text", "web_cache", "fetch", "http_transport", "connections", "addresses", "globbing",
    "grepping", "literal", "listing", "sight", "pages", "walk", "fallback", "scan", "regex_subset", "gitignore", "ripgrep", "globs", "first",
    "running", "attending", "jobs", "supervisor", "outputs", "process", "live", "capture", "console", "spool", "guard",
    "child", "sandbox", "bubblewrap", "landlocked", "policy", "confined_start", "landlock", "seccomp", "hidden", "protected",
    "clean_env", "patching", "patched", "undoing", "reading", "batches", "editing", "patches", "visible", "line_edits",
    "landing", "patch_store", "doc_paths", "invocation", "commits", "commit_steps", "history", "journal", "profiles", "edits", "document",
    "rows", "checkpoint_store",
    "index_store", "text", "encoding", "carry", "lines", "runs", "cache", "align", "align_slide", "align_script", "replace",
    "workspace", "refusals", "users_own", "acted_on", "names", "suggest", "eventlog", "config", "shapes", "beneath", "output", "untrusted", "unreadable",
)  # fmt: skip

HEAVY = {
    "httpx",
    "asyncio",
    "yaml",
    "cryptography",
    "jsonschema_rs",
    "mcp",
    "mcp_types",
    "anyio",
    "uvicorn",
    "starlette",
    "rich",
    "charset_normalizer",
    "ddgs",
    "html_to_markdown",
    "selectolax",
    "tomllib",
    "multiprocessing",
}


# Themselves imported only where they are used, so that their own heavy imports are late too.
LATE = {"rye.toolkit.http_transport", "rye.toolkit.page_text"}


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


def _at_top(tree):
    """Yield the names of modules that are imported when the module is: neither in functions nor for type checkers."""
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.If):
            typing_only = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            waiting += node.orelse if typing_only else [*node.body, *node.orelse]
        elif isinstance(node, ast.Try | ast.With | ast.ClassDef):
            waiting += node.body


def _calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node.func


def _uphill(name, imported, order):
    return name != imported and order.index(imported) <= order.index(name)


def test_a_room_imports_only_rooms_below_it():
    wrong = []
    for name, path in MODULES.items():
        parts = name.split(".")
        if parts == ["rye", "__init__"]:
            assert not [one for one in _at_top(_tree(path)) if one.startswith("rye")], "`import rye` loads nothing"
            continue
        assert parts[1] in ROOMS, f"give {name} its place in ROOMS"
        for imported, line in _imported(_tree(path)):
            target = imported.split(".")
            if target[0] == "rye" and len(target) > 1 and _uphill(parts[1], target[1], ROOMS):
                wrong.append(f"{name}:{line} imports {imported}")
    assert wrong == []


def test_a_module_of_the_toolkit_imports_only_modules_below_it():
    wrong = []
    for name, path in MODULES.items():
        parts = name.split(".")
        if parts[1] != "toolkit" or parts[2] == "__init__":
            continue
        assert parts[2] in TOOLKIT, f"give {name} its place in TOOLKIT"
        for imported, line in _imported(_tree(path)):
            target = imported.split(".")
            if target[:2] == ["rye", "toolkit"] and len(target) > 2 and _uphill(parts[2], target[2], TOOLKIT):
                wrong.append(f"{name}:{line} imports {imported}")
    assert wrong == []


def test_control_an_import_uphill_is_seen():
    assert _uphill("errors", "state", ROOMS)
    assert _uphill("toolkit", "executor", ROOMS)
    assert not _uphill("executor", "errors", ROOMS)
    assert list(_imported(ast.parse("def f():\n    from rye import executor, __version__"))) == [
        ("rye.executor", 2),
        ("rye", 2),
    ]


def _requirements(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__requires__":
            names = (re.match(r"[\w.-]+", text) for text in ast.literal_eval(node.value))
            return {match[0].replace("-", "_").lower() for match in names if match}
    return set()


def test_tools_import_the_standard_library_the_toolkit_and_what_they_declare():
    assert TOOLS
    for path in TOOLS:
        tree = _tree(path)
        allowed = _requirements(tree) | set(sys.stdlib_module_names)
        for imported, line in _imported(tree):
            top = imported.split(".")[0]
            in_toolkit = imported == "rye.toolkit" or imported.startswith("rye.toolkit.")
            assert in_toolkit or top in allowed, f"{path}:{line} imports {imported}"


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
    assert found == {"compile": ["entry.py"], "exec": ["entry.py"], "eval": [], "__import__": []}


def test_nothing_unpickles_or_runs_a_file_by_its_path():
    for path in [*MODULES.values(), *TOOLS]:
        for imported, line in _imported(_tree(path)):
            assert imported.split(".")[0] not in {"pickle", "marshal", "runpy", "shelve", "imp"}, f"{path}:{line}"
            assert imported not in {"importlib.util", "importlib.machinery"}, f"{path}:{line}"


def test_no_file_has_more_than_400_lines():
    for path in [*MODULES.values(), *(one for one in BUNDLE.rglob("*") if one.is_file() and "cache" not in one.parts)]:
        assert len(path.read_bytes().split(b"\n")) <= 401, path


def test_names_say_what_a_module_is_for_and_its_docstring_too():
    for name, path in MODULES.items():
        assert not {"utils", "util", "helpers", "helper", "manager", "common", "misc"} & set(name.split(".")), name
        assert ast.get_docstring(_tree(path)), path


def test_nothing_heavy_is_imported_before_it_is_needed():
    for name, path in MODULES.items():
        early = set(_at_top(_tree(path)))
        assert not early & LATE, (path, early & LATE)
        if name not in LATE:
            assert not {one.split(".")[0] for one in early} & HEAVY, (path, early)


COLD = """
import json, sys
from rye.cli import main
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


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (("--help",), {*HEAVY, "rye.api", "rye.executor", "rye.trust", "logging", "hashlib"}),
        (("tools", "--help"), {*HEAVY, "rye.discovery", "rye.executor", "logging"}),
        (("execute", "--help"), {*HEAVY, "rye.executor", "logging"}),
        (("execute", "rye/file-system/read", "file_path=a.txt"), {*HEAVY, "dataclasses", "inspect", "logging"}),
    ],
)
def test_a_cold_command_loads_no_more_than_it_needs(project, words, unwanted):
    (project / "a.txt").write_bytes(b"x\n")
    # The first call checks the signature, which the next ones need not.
    _loaded(*words, cwd=project)
    loaded = _loaded(*words, cwd=project)
    assert not unwanted & loaded
    assert "rye.cli" in loaded


def test_control_what_is_loaded_is_seen(project):
    (project / "a.txt").write_bytes(b"x\n")
    words = ("execute", "rye/file-system/write", "file_path=b.txt", "content=x")
    assert {"jsonschema_rs", "rye.executor", "cryptography"} <= _loaded(*words, cwd=project)
