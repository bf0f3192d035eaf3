"""Tools whose file is exchanged with an evil twin while they load, and projects full of foreign code: none of it ever runs."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import py_compile
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import rye
from rye.executor import admission
from support.harness import can_exchange, environment, exchanging, times
from support.signed_tools import STRANGER, put_tool, signed, tool_text

pytestmark = pytest.mark.usefixtures("here")

GOOD = 'return {"success": True, "output": "GOOD"}'
EVIL = 'return {"success": True, "output": "EVIL"}'
REFUSALS = {"unsigned", "tampered", "bad_signature", "untrusted_key", "item_not_found"}


def twins(project: Path) -> dict[str, bytes]:
    """The evil twins of `my/tool`, each as near to the good one as can be."""
    good = put_tool(project, "my/tool", GOOD).read_bytes()
    header = good.split(b"\n", 1)[0] + b"\n"
    return {
        "unsigned": tool_text("my/tool", EVIL),
        "under the good signature": header + tool_text("my/tool", EVIL),
        "one byte changed": good.replace(b"GOOD", b"EVIL"),
        "good, with a line after": good
        + b'\ndef execute(params, project_path):\n    return {"success": True, "output": "EVIL"}\n',
        "signed by a stranger": signed(tool_text("my/tool", EVIL), key=STRANGER),
    }


def forget():
    """Make the next load a cold one."""
    admission._ready.clear()
    admission._verdicts.cache_clear()


def load_by_rye(project: Path, number: int) -> str:
    if number % 2:
        forget()
    response = rye.execute("my/tool", project_path=project)
    if response["status"] == "success":
        return response["data"]["output"]
    assert response["code"] in REFUSALS, response
    return "refused"


def load_by_import(project: Path, number: int) -> str:
    """The naive way: hash the file, then import it."""
    path = project / ".ai/tools/my/tool.py"
    if hashlib.sha256(path.read_bytes()).hexdigest() != load_by_import.expected:
        return "refused"
    spec = importlib.util.spec_from_file_location(f"naive_{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.execute({}, "")["output"]


def race(project: Path, twin: bytes, attempts: int, load, until: int = 0) -> Counter:
    tool, evil = project / ".ai/tools/my/tool.py", project / "evil.py"
    put_tool(project, "my/tool", GOOD)
    load_by_import.expected = hashlib.sha256(tool.read_bytes()).hexdigest()
    evil.write_bytes(twin)
    tally: Counter = Counter()
    number = 0
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with exchanging(tool, evil):
            while number < attempts or (tally["EVIL"] < until and number < 10 * attempts):
                tally[load(project, number)] += 1
                number += 1
    finally:
        sys.dont_write_bytecode = writes
    return tally


@pytest.fixture(autouse=True)
def _exchange_works(tmp_path):
    if not can_exchange(tmp_path):
        pytest.skip("this file system cannot exchange two names")


@pytest.mark.parametrize(
    "name", ["unsigned", "under the good signature", "one byte changed", "good, with a line after", "signed by a stranger"]
)
def test_no_evil_twin_runs(project, name):
    tally = race(project, twins(project)[name], times(300), load_by_rye)
    print(dict(tally))
    assert tally["EVIL"] == 0
    assert tally["GOOD"] > 0
    assert tally["refused"] > 0


def test_hash_then_import_runs_it(project):
    tally = race(project, twins(project)["one byte changed"], 2_000, load_by_import, until=1)
    print(dict(tally))
    assert tally["EVIL"] > 0


# --- a project full of foreign code ---

CANARY = "import os\nwith open(os.environ['CANARY'], 'a') as f: f.write(__name__ + ' ' + __file__ + '\\n')\n"
SHADOWED = [
    "json", "yaml", "logging", "argparse", "ast", "hashlib", "typing", "rye", "httpx", "jsonschema_rs", "cryptography", "re",
    "importlib", "sitecustomize", "usercustomize", "signed_tools", "secrets", "asyncio", "site", "encodings",
]  # fmt: skip
# What `python -m` itself loads from the current folder before the first line of the module it is asked for (CPython's
# documented default, ended by -P or -I): no module can defend itself there, the installed command `rye` need not.
BEFORE_US = ("rye", "importlib", "typing", "re")


def poison(project: Path, spared: tuple[str, ...] = ()) -> None:
    """Everything a clone can bring that a careless runtime would run."""
    tool = project / ".ai/tools/my/tool.py"
    for folder in (project, project / ".ai", tool.parent, project / ".ai/tools"):
        for name in set(SHADOWED) - set(spared):
            (folder / f"{name}.py").write_text(CANARY)
        (folder / "__init__.py").write_text(CANARY)
        (folder / "conftest.py").write_text(CANARY)
        (folder / "x.pth").write_text("import json\n" + "exec(" + repr(CANARY) + ")\n")
    (project / "rye_workspace.egg-info").mkdir()
    (project / "rye_workspace.egg-info/entry_points.txt").write_text("[rye.bundles]\nevil = evil_bundle\n")
    (project / "rye_workspace.egg-info/PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (project / "evil_bundle").mkdir()
    (project / "evil_bundle/__init__.py").write_text(CANARY)
    (project / ".venv/bin").mkdir(parents=True)
    for name in ("python", "python3", "rg", "git"):
        program = project / ".venv/bin" / name
        program.write_text('#!/bin/sh\necho "$0" >> "$CANARY"\n')
        program.chmod(0o755)
        (project / name).write_bytes(program.read_bytes())
        (project / name).chmod(0o755)
    (project / ".env").write_text("PYTHONSTARTUP=sitecustomize.py\nPYTHONPATH=.\nUSER_SPACE=./home\nLD_PRELOAD=./evil.so\n")
    (project / "pyproject.toml").write_text("[tool.rye]\nplugins = ['evil_bundle']\n")
    for mode in (py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.UNCHECKED_HASH):
        poison_cache(tool, mode)


def poison_cache(tool: Path, mode) -> None:
    """Put an evil `.pyc` where an import of `tool` would look: with its very time and size, or never checked at all."""
    evil = tool.parent / "evil_source.py"
    source = f"{CANARY}def execute(params, project_path): {EVIL}\n"
    evil.write_text(source + "#" * max(0, tool.stat().st_size - len(source)))
    if mode is py_compile.PycInvalidationMode.TIMESTAMP:
        os.truncate(evil, tool.stat().st_size)
    os.utime(evil, ns=(tool.stat().st_atime_ns, tool.stat().st_mtime_ns))
    cached = importlib.util.cache_from_source(tool)
    py_compile.compile(str(evil), cached, dfile=str(tool), invalidation_mode=mode, doraise=True)
    evil.unlink()


@pytest.mark.parametrize(
    "mode", [py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.UNCHECKED_HASH], ids=str
)
def test_a_poisoned_bytecode_cache_is_never_looked_at(project, mode, tmp_path, monkeypatch):
    monkeypatch.setenv("CANARY", str(tmp_path / "canary"))
    tool = put_tool(project, "my/tool", GOOD)
    tool.write_bytes(signed(tool_text("my/tool", GOOD + "\n" + "# room\n" * 60)))
    poison_cache(tool, mode)
    assert load_by_rye(project, 1) == "GOOD"
    assert not (tmp_path / "canary").exists()
    # Control: an import runs the cache instead of the file.
    load_by_import.expected = hashlib.sha256(tool.read_bytes()).hexdigest()
    assert load_by_import(project, 0) == "EVIL"
    assert (tmp_path / "canary").exists()


VERBS = [
    line.split()
    for line in (
        "execute my/tool",
        "execute rye/file-system/read file_path=README.md",
        "execute rye/file-system/write file_path=made.txt content=x",
        "execute nothing/here",
        "execute my/json",
        "tools",
        "tools --json",
        "verify --all",
        "--help",
    )
]
SAFE_PATH = [sys.executable, "-P"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "spared", "verbs"),
    [
        ([*SAFE_PATH, "-c", "import sys; from rye.cli.main import main; sys.exit(main())"], (), VERBS),
        ([*SAFE_PATH, "-m", "rye"], (), VERBS[:3]),
        ([sys.executable, "-m", "rye"], BEFORE_US, VERBS[:3]),
    ],
    ids=["command", "-P -m", "-m"],
)
def test_nothing_a_project_brings_is_run(project, tmp_path, start, spared, verbs):
    put_tool(project, "my/tool", 'import json, yaml, hashlib\nreturn {"success": True, "output": json.dumps("GOOD")}')
    (project / "README.md").write_text("read me\n")
    poison(project, spared)
    canary = tmp_path / "canary"
    for verb in verbs:
        done = subprocess.run(
            [*start, *verb],
            cwd=project,
            env=environment(CANARY=str(canary)),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert not canary.exists(), (verb, canary.read_text(), done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        if verb[1:2] == ["my/tool"]:
            assert "GOOD" in done.stdout, (done.stdout, done.stderr)
    assert (project / "made.txt").read_text() == "x"


@pytest.mark.parametrize(
    "naive",
    [
        [sys.executable, "-c", "import json"],
        [sys.executable, "-m", "signed_tools"],
        [sys.executable, ".ai/tools/my/tool.py"],
        ["sh", "-c", "PATH=$PWD/.venv/bin:$PATH python x.py"],
    ],
    ids=["-c", "-m", "script", "venv"],
)
def test_a_naive_runner_runs_it(project, tmp_path, naive):
    put_tool(project, "my/tool", "import json")
    (project / ".ai/tools/my/tool.py").write_text("import json\n")
    poison(project)
    canary = tmp_path / "canary"
    subprocess.run(naive, cwd=project, env={**os.environ, "CANARY": str(canary)}, capture_output=True, check=False, timeout=60)
    assert canary.exists()
