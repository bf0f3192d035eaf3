"""The other files of a tool: `__files__` in its signed text names each with its SHA-256, so that its signature covers them.

A path is relative to the tool's folder, and stays below it. An author lists the paths (`__files__ = ["_lib/words.txt"]`, in
YAML and headers `files: [_lib/words.txt]`); `rye sign` writes the digests: `{path: digest}`. Names that begin with `_` are no
items of their own. Only bytes with the digest of the signed text are used; they are read once a call.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any, Final

from rye.call.safe_text import plain
from rye.errors import ItemError, TrustError
from rye.fs.digest import hexdigest
from rye.items import parse, spaces
from rye.items.parse import Tool
from rye.items.spaces import Space

KEY: Final = "__files__"
_MOST: Final = 100
MOST_BYTES: Final = 8 * 1024 * 1024
_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_YAML_BLOCK: Final = re.compile(r"^files:[^\n]*\n(?:[ \t-][^\n]*\n)*", re.MULTILINE)


def declared(tool: Tool) -> dict[str, str]:
    """Return the digest of each file that a tool names, by its path.

    Raises:
        ItemError: `malformed_item`; a path without a digest: the tool was not signed by `rye sign`.
    """
    found = paths(tool.id, tool.metadata.get(KEY, {}))
    for path, digest in found.items():
        if not _DIGEST.fullmatch(digest):
            raise _malformed(tool.id, f"its signed text has no digest of {plain(path)}; sign it again")
    return found


def paths(item_id: str, value: object) -> dict[str, str]:
    """Return the digests by path that a list or a mapping of files holds, "" where there is none. Errors as `declared`."""
    declared_files: dict[Any, Any] = (
        dict.fromkeys(value, "") if isinstance(value, list | tuple) else value if isinstance(value, dict) else {}
    )
    if not isinstance(value, list | tuple | dict) or len(declared_files) > _MOST:
        raise _malformed(item_id, f"{KEY} must be a list of at most {_MOST} paths")
    for path, digest in declared_files.items():
        parts = path.split("/") if isinstance(path, str) else [""]
        if not all(_PART.fullmatch(part) for part in parts) or not isinstance(digest, str):
            raise _malformed(item_id, f"{KEY}: {plain(str(path))} is no path of a file below the tool's folder")
    own = item_id.rpartition("/")[2]
    if any(path.rpartition(".")[0] == own for path in declared_files):
        raise _malformed(item_id, f"{KEY} names the tool's own file")
    return declared_files


def _malformed(item_id: str, why: str) -> ItemError:
    return ItemError("malformed_item", f"{item_id}: {why}.", "Correct it and sign it again.")


def read(tool: Tool, space: Space) -> dict[str, bytes]:
    """Return the content of every file that a tool names, by its path.

    Raises:
        TrustError: `tampered`, a file is missing or is another one. ItemError: `malformed_item`, `item_unreadable`.
    """
    return gathered(tool, lambda path: spaces.read_file(space, f"{folder_of(tool.id)}/{path}"))


def folder_of(item_id: str) -> str:
    """Return the folder of a tool below its space, to which the paths of its files are relative."""
    return "/".join(("tools", *item_id.split("/")[:-1]))


def gathered(tool: Tool, content_of: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Return the content of every file that a tool names, by its path, as `content_of` gives it. Errors as `read`."""
    found: dict[str, bytes] = {}
    for path, digest in declared(tool).items():
        content = content_of(path)
        actual = None if content is None else hexdigest(content)
        if content is None or actual != digest:
            raise TrustError(
                "tampered",
                f"{path} of {tool.id} is {'not there' if content is None else 'not the file that was signed'}.",
                "Restore it. Or review it, then run `rye sign` on the tool.",
                expected=digest,
                actual=actual,
            )
        found[path] = content
    if sum(map(len, found.values())) > MOST_BYTES:
        raise _malformed(tool.id, f"its files have more than {MOST_BYTES:,} bytes together")
    return found


def with_digests(raw: bytes, item_id: str, suffix: str, content_of: Callable[[str], bytes | None]) -> bytes:
    """Return a tool's file with the digests of the files that it names in its text; unchanged where it names none.

    Args:
        raw: the tool's file.
        item_id: its id.
        suffix: of its name.
        content_of: reads a file by its path below the tool's folder; None where there is none.

    Raises:
        ItemError: `malformed_item`; `file_not_found`.
    """
    if b"files" not in raw or suffix not in (".py", ".yaml", ".yml", *parse.MARKERS):
        return raw
    value = _value(raw, suffix)
    if value is None:
        return raw
    found: dict[str, str] = {}
    for path in paths(item_id, value):
        content = content_of(path)
        if content is None:
            raise ItemError("file_not_found", f"{item_id} names {path}, which is not there.", "Write it, or leave it out.")
        found[path] = hexdigest(content)
    return raw if value == found else _replaced(raw, suffix, found)


def _value(raw: bytes, suffix: str) -> object:
    text = raw.decode("utf-8", "replace")
    if suffix == ".py":
        node = _assignment(parse.python_tree(raw))
        try:
            return None if node is None else ast.literal_eval(node.value)
        except ValueError:
            raise ItemError("malformed_item", f"{KEY} is no literal.", "Write a list of texts.") from None
    if suffix in parse.MARKERS:
        header = parse.header(_below_signature(raw), suffix)
        return None if header is None else parse.yaml_mapping(header).get("files")
    return parse.yaml_mapping(text).get("files")


def _below_signature(raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    at = next((at for at, line in enumerate(lines[:2]) if not line.startswith(b"#!") and b"rye:signed:" not in line), 2)
    return b"\n".join(lines[at:])


def _assignment(tree: ast.Module) -> ast.Assign | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [KEY]:
            return node
    return None


def _replaced(raw: bytes, suffix: str, found: dict[str, str]) -> bytes:
    text = raw.decode()
    lines = [f"    {json.dumps(path)}: {json.dumps(digest)}," for path, digest in found.items()]
    if suffix == ".py":
        node = _assignment(parse.python_tree(raw))
        assert node is not None  # its value was read before
        all_lines = text.split("\n")
        all_lines[node.lineno - 1 : node.end_lineno] = [f"{KEY} = {{", *lines, "}"]
        return "\n".join(all_lines).encode()
    entries = [f"  {json.dumps(path)}: {json.dumps(digest)}" for path, digest in found.items()]
    if suffix in parse.MARKERS:
        marker = parse.MARKERS[suffix]
        block = re.compile(rf"^{marker} files:[^\n]*\n(?:{marker}  [^\n]*\n|{marker} -[^\n]*\n)*", re.MULTILINE)
        written = "".join(f"{marker} {line}\n" for line in ("files:", *entries))
        return block.sub(lambda _match: written, text, count=1).encode()
    signature, _, body = text.partition("\n") if text.startswith("# rye:signed:") else ("", "", text)
    head = f"{signature}\n" if signature else ""
    if body.lstrip()[:1] == "{":
        try:
            described = json.loads(body)
        except ValueError:
            raise ItemError(
                "malformed_item",
                "The tool's text begins with `{`, but is no JSON, so its `files` cannot be filled in.",
                "Write it as JSON, or as YAML without the outer braces, then sign it again.",
            ) from None
        return (head + json.dumps({**described, "files": found}, indent=2) + "\n").encode()
    return (head + _YAML_BLOCK.sub(lambda _match: "\n".join(("files:", *entries, "")), body, count=1)).encode()
