"""Tools and entries made for tests, signed with a fresh key that the test's user trusts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

import rye as package
from rye.items import spaces
from rye.trust import decisions, signature, verify
from support.harness import environment

MINE = signature.PrivateKey(os.urandom(32))
STRANGER = signature.PrivateKey(os.urandom(32))
NOW = "2026-01-02T03:04:05Z"
FUNCTION_RUNTIME = "rye/core/runtimes/python_function_runtime"
OK = 'return {"success": True, "output": "done"}'


def module_of(item_id):
    """Return the module of a shipped tool, for tests of what stands inside it."""
    module = ModuleType(item_id.rpartition("/")[2])
    sys.modules[f"tool_under_test_{module.__name__}"] = module
    module.__name__ = f"tool_under_test_{module.__name__}"
    text = Path(spaces.system_folder(), "tools", f"{item_id}.py").read_text(encoding="utf-8")
    exec(compile(text, f"<{item_id}>", "exec", dont_inherit=True), module.__dict__)
    return module


def key_document(key=STRANGER, owner="someone", attestation=""):
    """Return the bytes of a key's document."""
    return verify.render_key_document(key.public, owner, attestation)


def trust_key(key=MINE):
    """Put the key's document into the user's space."""
    bring_key(os.environ["USER_SPACE"], key, "tester")


def bring_key(root, key=STRANGER, owner="someone", attestation=""):
    """Have a project bring a key; return the path of its document."""
    return put(root, f"trusted_keys/{key.public.fingerprint}.toml", key_document(key, owner, attestation))


def approve(project, *item_ids, key=STRANGER):
    """Approve a key that a project brings, as a user who was shown these items."""
    decisions.approve(key.public.digest, decisions.Root.of(project), frozenset(item_ids))


def tool_text(
    item_id,
    body=OK,
    schema=None,
    *,
    category=None,
    bound=None,
    more="",
    head="",
    name="execute",
    is_async=False,
    runtime=FUNCTION_RUNTIME,
):
    """Return a Python tool; `body` is that of `execute`, `more` stands before it, `head` before the metadata."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f'''"""A tool made for a test."""

{head}

__version__ = "1.2.3"
__tool_type__ = "python"
__executor_id__ = "{runtime}"
__category__ = "{item_id.rpartition("/")[0] if category is None else category}"
__tool_description__ = "Made for a test"
__item_id__ = "{bound or item_id}"

CONFIG_SCHEMA = {schema if schema is not None else {"type": "object", "properties": {}}!r}

{more}


{"async " if is_async else ""}def {name}(params, project_path):
{lines}
'''.encode()


def signed(raw, key=MINE, item_type="tool", suffix=".py"):
    """Return the bytes with a signature line."""
    return signature.sign(raw, signature.form_of(item_type, suffix), key, timestamp=NOW)


def key_pair(folder, kind="P-256", name="author"):
    """Return the files of a new key pair in PEM, as other programs make them: (private, public)."""
    curves = {"P-256": ec.SECP256R1, "P-384": ec.SECP384R1, "P-521": ec.SECP521R1}
    key = ed25519.Ed25519PrivateKey.generate() if kind == "Ed25519" else ec.generate_private_key(curves[kind]())
    private, public = Path(folder, f"{name}.key.pem"), Path(folder, f"{name}.pem")
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def put(root, path, raw):
    """Write a file below `<root>/.ai`, with its folders."""
    target = Path(root, ".ai", path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(raw)
    return target


def put_tool(root, item_id, body=OK, schema=None, **options):
    """Write a tool that the test's user trusts; return its path."""
    trust_key()
    return put(root, f"tools/{item_id}.py", signed(tool_text(item_id, body, schema, **options)))


def facts(item_id, executor_id, /, **more):
    """Return what a tool that is no Python says of itself."""
    category = item_id.rpartition("/")[0]
    own = {"version": "1.0.0", "tool_type": "program", "executor_id": executor_id, "category": category, "description": "d"}
    return {**own, **more}


def put_yaml(root, item_id, executor_id, /, key=MINE, **more):
    """Write a tool or a runtime that is data, unsigned if `key` is None; `more` are further facts."""
    trust_key()
    raw = json.dumps(facts(item_id, executor_id, **more)).encode()
    return put(root, f"tools/{item_id}.yaml", signed(raw, key, suffix=".yaml") if key else raw)


def put_script(root, item_id, suffix, runtime, body, mark="#", first="", **more):
    """Write a signed script with its header; `first` is the line before that."""
    trust_key()
    header = [f"{mark} {name}: {json.dumps(value)}" for name, value in facts(item_id, runtime, **more).items()]
    text = "\n".join([*([first] if first else []), f"{mark} ---", *header, f"{mark} ---", body, ""])
    return put(root, f"tools/{item_id}{suffix}", signed(text.encode(), suffix=suffix))


def sign(project, *targets, key=MINE):
    """Sign items or files in place, as their author does; return what became of each."""
    pem = Path(project).parent / "author.pem"
    pem.write_bytes(key.pem)
    return package.sign([os.fspath(one) for one in targets], project_path=project, key=pem)


def rye(*words, cwd, stdin=b"", env=None, python=(), module="rye"):
    """Run `python -m rye`, or another module, as a process; the output is bytes."""
    return subprocess.run(
        [sys.executable, *python, "-m", module, *words],
        cwd=cwd,
        env=environment(**(env or {})),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
