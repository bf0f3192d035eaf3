"""The tools of an MCP server as items to be signed: asked once, each written as YAML with the digest of what the server said.

Nothing is called here but `initialize` and `tools/list`, in the sandbox and with the permissions that the items will have.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from rye.call import context
from rye.call.context import Deadline
from rye.call.safe_text import of_json, plain
from rye.config.settings import Settings
from rye.errors import ItemError, RyeError, UsageError
from rye.executor.chain import Chain
from rye.executor.primitives import mcp_call
from rye.items import sign_verify, spaces
from rye.items.parse import Tool
from rye.items.targets import Target
from rye.journal import own_files
from rye.journal.own_files import OwnFile
from rye.trust import verify
from rye.trust.signature import PrivateKey, form_of

_TOOL: Final = "rye/cli/mcp-import"
_SECONDS: Final = 120.0
_STEM_MAX: Final = 64
_MOST_SAID: Final = 64_000
_BRIEF_MAX: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_RUNTIMES: Final = {"stdio": "rye/core/runtimes/mcp_stdio_runtime", "http": "rye/core/runtimes/mcp_http_runtime"}


def items_of(name: str, command: Sequence[str], url: str | None, permissions: Sequence[str], root: str) -> list[dict[str, Any]]:
    """Return the items for a server's tools, each as the mapping that its YAML will hold, with `item_id`.

    Args:
        name: of the server, the last part of the items' category.
        command: what starts it; empty where it has a `url`.
        url: where it is reached.
        permissions: what it may do, see `rye.items.parse.PERMISSIONS`.
        root: the project root.

    Raises:
        UsageError: `bad_name`, `bad_call`. RyeError: the server does not answer as one.
    """
    if not _NAME.fullmatch(name):
        hint = "Use letters, digits, _ and -: rye mcp import NAME -- COMMAND …"
        raise UsageError("bad_name", f"Not a name for a server: {name[:80]!r}.", hint)
    if bool(command) == bool(url):
        raise UsageError("bad_call", "Give a command behind `--`, or --url.", "rye mcp import files -- node server.js .")
    config = {"command": command[0], "args": list(command[1:])} if command else {"url": url}
    transport = "stdio" if command else "http"
    facts = {"version": "1.0.0", "category": f"mcp/{name}", "permissions": list(permissions), "tool_type": "mcp"}
    facts["executor_id"] = _RUNTIMES[transport]
    found: list[dict[str, Any]] = []
    stems = set[str]()
    for tool in _tools_of_server(f"mcp/{name}/ask", {**config, "transport": transport}, tuple(permissions), root):
        own = str(tool.get("name", ""))
        description, schema = mcp_call.said(tool)
        size = len(own) + len(description) + len(json.dumps(schema))
        if size > _MOST_SAID:
            why = f"The server describes its tool {plain(own, 60)} in {size:,} characters, where {_MOST_SAID:,} are the most."
            raise ItemError("item_oversized", why, "Nothing was imported: nobody reads so much before signing it.")
        found.append(
            {
                **facts,
                "item_id": f"mcp/{name}/{_stem(own, stems)}",
                "description": textwrap.shorten(description, _BRIEF_MAX, placeholder=" …"),
                "docstring": description,
                "config_schema": schema,
                "config": {**config, "tool_name": own, "tool_digest": mcp_call.digest_of(tool)},
            }
        )
    return found


def _stem(own: str, stems: set[str]) -> str:
    """Return a file's name for a server's tool, one that no other has, on no file system; and remember it."""
    # A name that begins with `_` is no item, one that begins with `-` reads as an option.
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", own)[:_STEM_MAX]
    stem = stem if stem[:1].isalnum() else f"tool{stem}"
    if stem.lower() in stems:
        stem = f"{stem}-{sha256(own.encode()).hexdigest()[:8]}"
    stems.add(stem.lower())
    return stem


def shown(items: Sequence[dict[str, Any]], root: str) -> list[str]:
    """Return what a person reads before signing: each item with its whole description, and how it differs from the one there.

    The last lines name the items of an earlier import whose tools the server has no more.
    """
    lines, earlier = [], _present(items[0]["category"], root) if items else {}
    for item in items:
        lines.append(f"{item['item_id']}: {' '.join(item['docstring'].split())}")
        # Whole, since whoever signs it lets a model read it: names and descriptions at every depth.
        lines += json.dumps(item["config_schema"], indent=2, ensure_ascii=False).split("\n")
        old = earlier.pop(item["item_id"], None)
        if old is not None and old.get("config") != item["config"]:
            lines += _changes(old, item)
    return [*lines, *(f"{item_id}: the server has it no more; its item stays until you delete it" for item_id in earlier)]


def _changes(old: dict[str, Any], item: dict[str, Any]) -> list[str]:
    before = (str(old.get("docstring", "")), old.get("config_schema") or {})
    now = {"description": item["docstring"], "inputSchema": item["config_schema"]}
    config, own = old.get("config"), item["config"]
    config = config if isinstance(config, dict) else {}
    lines = []
    if config.get("tool_digest") != own["tool_digest"]:
        found = mcp_call.differences(before, now)
        lines += [f"    changed: {part}: was {one or 'another'}, is {other or 'gone'}" for part, (one, other) in found.items()]
    reached = {name: own[name] for name in ("command", "args", "url") if name in own}
    if any(config.get(name) != value for name, value in reached.items()):
        lines.append(f"    changed: how the server is reached: {json.dumps(reached)}")
    return lines


def _present(category: str, root: str) -> dict[str, dict[str, Any]]:
    """Return the items of an earlier import by their ids; of one that is not as it was written, nothing but the id."""
    found, project = {}, spaces.spaces(root)[0]
    for item_id, path in spaces.items_in(project, "tool"):
        if item_id.rpartition("/")[0] == category and os.path.splitext(path)[1] == ".yaml":
            # Behind the line of the signature, as `write` wrote it.
            read = of_json((spaces.read_file(project, f"tools/{item_id}.yaml") or b"").partition(b"\n")[2])
            found[item_id] = read if isinstance(read, dict) else {}
    return found


def _tools_of_server(item_id: str, config: dict[str, Any], permissions: tuple[str, ...], root: str) -> list[dict[str, Any]]:
    nobody = verify.unsafe_unsigned(b"ask: true\n", form_of("tool", ".yaml"))
    asker = Tool(item_id, nobody, ".yaml", "", "mcp", "", "", None, "", {}, {"__permissions__": list(permissions)}, permissions)
    chain = Chain(asker, (), (), "mcp", {"tool_name": "ask", "tool_digest": "", **config}, {})
    plan = mcp_call.plan(chain)
    with context.using(deadline=Deadline(_SECONDS), settings=Settings()):
        session = mcp_call.reached(chain, plan, root).work()
        try:
            mcp_call.greet(session)
            return mcp_call.tools(session)
        finally:
            session.close()


def write(items: Sequence[dict[str, Any]], root: str, key: PrivateKey) -> list[str]:
    """Write the items, signed, into a project, in place of those of an earlier import: all in one step, as one recorded change.

    Returns:
        Why an item was refused; such a one is not written.
    """
    texts: dict[str, bytes] = {}
    refused = []
    for item in items:
        item_id, raw = str(item["item_id"]), json.dumps(item, indent=2).encode() + b"\n"
        path = f".ai/tools/{item_id}.yaml"
        try:
            texts[path] = sign_verify.signed_text(Target(path, Path(root, path), "tool", item_id, ".yaml"), raw, key)
        except RyeError as err:
            refused.append(f"{item_id}: {err.message}")
    files = [OwnFile(os.path.join(os.path.realpath(root), path), data) for path, data in texts.items()]
    own_files.write(files, _TOOL, [root], guarded=True)
    return refused
