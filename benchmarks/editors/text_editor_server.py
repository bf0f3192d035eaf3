"""`mcp-text-editor` (PyPI) and a careful caller of its line-range patches with hashes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from editors.stdio_client import StdioServer, ToolFailed
from hunks import Hunk, hunks
from outcome import Attempt, Pair, Unavailable, json_bytes, text_bytes

if TYPE_CHECKING:
    from pathlib import Path

# The server's own requirement is open above and breaks with the second generation of the SDK.
_PACKAGES = ("mcp-text-editor", "mcp<2")


class TextEditorServer:
    """Patches line ranges of what the server showed; the hashes come from a second read of those ranges."""

    def __init__(self, server: StdioServer) -> None:
        self._server = server
        self._read = 0

    def attempt(self, target: Path, pair: Pair) -> Attempt:
        """Read, diff in the server's view of lines, read the ranges, patch."""
        self._read = 0
        encoding = _encoding(pair.before)
        try:
            old = _lines(self._shown(target, encoding))
            new = _lines(_view(pair.after, encoding))
            blocks = _blocks(hunks(old, new), len(old))
            if not blocks:
                return self._answer(False, "the change is not visible in the view", sayable=False)
            arguments = self._arguments(target, encoding, blocks, new)
            reply = json.loads(self._server.call("edit_text_file_contents", arguments))
        except UnicodeDecodeError:
            return self._answer(False, "the new text is not in the file's encoding", sayable=False)
        except ToolFailed as error:
            return self._answer(False, str(error))
        verdict = reply[str(target)]
        accepted = verdict["result"] == "ok"
        return self._answer(accepted, str(verdict.get("reason")), wrote=json_bytes(arguments))

    def close(self) -> None:
        """End the server."""
        self._server.close()

    def _answer(self, accepted: bool, reason: str, **facts: Any) -> Attempt:
        return Attempt(accepted, reason, read=self._read, read_plain=self._read, **facts)

    def _get(self, target: Path, encoding: str, ranges: list[dict[str, int]]) -> dict[str, Any]:
        files = [{"file_path": str(target), "ranges": ranges}]
        text = self._server.call("get_text_file_contents", {"files": files, "encoding": encoding})
        self._read += text_bytes(text)
        return json.loads(text)[str(target)]

    def _shown(self, target: Path, encoding: str) -> str:
        return self._get(target, encoding, [{"start": 1}])["ranges"][0]["content"]

    def _arguments(self, target: Path, encoding: str, blocks: list[Hunk], new: list[str]) -> dict[str, Any]:
        ranges = [{"start": block.old_start + 1, "end": block.old_end} for block in blocks]
        reply = self._get(target, encoding, ranges)
        patches = [
            {
                "line_start": wanted["start"],
                "line_end": max(wanted["start"], wanted["end"]),
                "contents": "".join(new[block.new_start : block.new_end]),
                "range_hash": shown["range_hash"],
            }
            for block, wanted, shown in zip(blocks, ranges, reply["ranges"], strict=True)
        ]
        # Its description asks for patches from bottom to top.
        edit = {"path": str(target), "file_hash": reply["file_hash"], "patches": patches[::-1]}
        return {"files": [edit], "encoding": encoding}


def _encoding(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _view(data: bytes, encoding: str) -> str:
    """Show bytes as the server does: it reads in text mode, where every terminator becomes a line feed."""
    return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _blocks(found: list[Hunk], total: int) -> list[Hunk]:
    """Give every block a line on both sides: the server has no insertion but at the end, and no deletion."""
    blocks: list[Hunk] = []
    for hunk in found:
        block = hunk
        if block.old_start == block.old_end or block.new_start == block.new_end:
            block = _with_neighbour(block, total)
        if blocks and block.old_start < blocks[-1].old_end:
            first = blocks.pop()
            block = Hunk(first.old_start, block.old_end, first.new_start, block.new_end)
        blocks.append(block)
    return blocks


def _with_neighbour(block: Hunk, total: int) -> Hunk:
    if block.old_start == total and total:
        # Appending is what it documents for this place.
        return block
    if block.old_end < total:
        return block._replace(old_end=block.old_end + 1, new_end=block.new_end + 1)
    if block.old_start:
        return block._replace(old_start=block.old_start - 1, new_start=block.new_start - 1)
    return block


def open_editor(_root: Path, tools: Path) -> TextEditorServer:
    """Install the server into its own virtual environment on first use and start it.

    Raises:
        Unavailable: It cannot be installed.
    """
    folder = tools / "text-editor-server"
    program = folder / "bin" / "mcp-text-editor"
    if not program.exists():
        _run(sys.executable, "-m", "venv", str(folder))
        _run(str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *_PACKAGES)
    server = StdioServer([str(program)])
    server.start()
    return TextEditorServer(server)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{command[2]} failed: {done.stderr.strip()[-200:]}")
