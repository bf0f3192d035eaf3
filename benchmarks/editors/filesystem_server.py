"""`@modelcontextprotocol/server-filesystem` (npm) and a careful caller of its `edit_file`."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from editors.stdio_client import StdioServer, ToolFailed
from hunks import quoted
from outcome import Attempt, Pair, Unavailable, json_bytes, text_bytes

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = "@modelcontextprotocol/server-filesystem"
_LOST = "\ufffd"


class FilesystemServer:
    """Edits by old text and new text, each old text unique in what the server showed."""

    def __init__(self, server: StdioServer) -> None:
        self._server = server

    def attempt(self, target: Path, pair: Pair) -> Attempt:
        """Read the file, replace string by string."""
        path = str(target)
        try:
            shown = self._server.call("read_text_file", {"path": path})
        except ToolFailed as error:
            return Attempt(False, str(error))
        cost = {"read": text_bytes(shown), "read_plain": text_bytes(shown)}
        edits = [(old, new) for old, new, _ in quoted(shown, pair.after.decode("utf-8", "replace"))]
        # Where the caller sees that text was lost it has no words for the change; of bytes lost elsewhere it
        # knows nothing.
        if not edits or any(mark in old + new for old, new in edits for mark in (_LOST, "\0")):
            return Attempt(False, "the change is not visible as text", sayable=False, **cost)
        arguments = {"path": path, "edits": [{"oldText": old, "newText": new} for old, new in edits]}
        cost["wrote"] = json_bytes(arguments)
        try:
            self._server.call("edit_file", arguments)
        except ToolFailed as error:
            return Attempt(False, str(error), **cost)
        return Attempt(True, **cost)

    def close(self) -> None:
        """End the server."""
        self._server.close()


def open_editor(root: Path, tools: Path) -> FilesystemServer:
    """Install the server on first use and start it on `root`.

    Raises:
        Unavailable: node or npm is missing, or the package cannot be installed.
    """
    node = shutil.which("node")
    if not node:
        raise Unavailable("no node")
    return FilesystemServer(StdioServer([node, str(_installed(tools / "filesystem-server")), str(root)]))


def _installed(folder: Path) -> Path:
    script = folder / "node_modules" / _PACKAGE / "dist" / "index.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run_npm(folder)
    if not script.exists():
        raise Unavailable(f"npm install {_PACKAGE} brought no {script.name}")
    return script


def _run_npm(folder: Path) -> None:
    npm = shutil.which("npm")
    if not npm:
        raise Unavailable("no npm")
    command = [npm, "install", "--no-save", "--ignore-scripts", "--prefix", str(folder), _PACKAGE]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"npm install failed: {done.stderr.strip()[-200:]}")
