"""The tools that a live trial compares with: whole files with line numbers, exact strings to replace, bash, ripgrep."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

_TEXT, _NUMBER, _SWITCH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Read": (
        "Read a file: each line after its number and a tab. 2,000 lines, or `limit` from `offset` on.",
        {"file_path": _TEXT, "offset": _NUMBER, "limit": _NUMBER},
    ),
    "Edit": (
        "Replace a text by another, exactly. It must stand once in the file, which must have been read; or give replace_all.",
        {"file_path": _TEXT, "old_string": _TEXT, "new_string": _TEXT, "replace_all": _SWITCH},
    ),
    "Write": ("Write a whole file. One that exists must have been read.", {"file_path": _TEXT, "content": _TEXT}),
    "Bash": ("Run a command in the project's folder: at most 120 s, 30,000 characters of output.", {"command": _TEXT}),
    "Grep": ("Search with ripgrep: the options and the pattern as on its command line.", {"arguments": _TEXT, "path": _TEXT}),
    "Glob": ("List the files that match a glob.", {"pattern": _TEXT}),
}
_SECONDS, _MOST, _AROUND = 120, 30_000, 4


class Refused(Exception):
    """A tool says no; the message is what the model reads."""


class PlainTools:
    """One project's tools, and which of its files the model has read as they are."""

    def __init__(self, project: Path) -> None:
        self._project, self._seen = project, dict[Path, bytes]()
        self._by_name = {name: getattr(self, f"_{name.lower()}") for name in TOOLS}

    def call(self, tool: str, given: dict[str, Any]) -> tuple[str, bool]:
        """Return a tool's text, and whether it is an error."""
        if tool not in TOOLS:
            return f"There is no tool {tool}. There are {', '.join(TOOLS)}.", True
        try:
            return self._by_name[tool](**given), False
        except (Refused, OSError, ValueError, TypeError, subprocess.TimeoutExpired) as error:
            return str(error), True

    def _read_now(self, file_path: str) -> tuple[Path, str]:
        path = self._project / file_path
        return path, path.read_bytes().decode()

    def _known(self, file_path: str) -> tuple[Path, str]:
        path, text = self._read_now(file_path)
        if path not in self._seen:
            raise Refused("The file was not read yet. Read it first.")
        if self._seen[path] != text.encode():
            raise Refused("The file was changed since it was read. Read it again.")
        return path, text

    def _store(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        self._seen[path] = text.encode()

    def _numbered(self, text: str, start: int, stop: int) -> str:
        return "\n".join(f"{at}\t{line}" for at, line in list(enumerate(text.split("\n"), 1))[max(start, 0) : stop])

    def _read(self, file_path: str, offset: int = 1, limit: int = 2_000) -> str:
        path, text = self._read_now(file_path)
        self._seen[path] = text.encode()
        return self._numbered(text, offset - 1, offset - 1 + limit)

    def _edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        path, text = self._known(file_path)
        count = text.count(old_string)
        if not count or old_string == new_string:
            raise Refused("The text to replace was not found." if not count else "Both texts are the same.")
        if count > 1 and not replace_all:
            raise Refused(f"The text stands {count} times. Give more of what is around it, or replace_all.")
        at = text[: text.index(old_string)].count("\n")
        text = text.replace(old_string, new_string)
        self._store(path, text)
        shown = self._numbered(text, at - _AROUND, at + new_string.count("\n") + 1 + _AROUND)
        return f"{file_path} was changed in {count} places." if replace_all else f"{file_path} was changed:\n{shown}"

    def _write(self, file_path: str, content: str) -> str:
        path = self._project / file_path
        if path.exists():
            self._known(file_path)
        self._store(path, content)
        return f"{file_path} was written."

    def _bash(self, command: str) -> str:
        return self._run(["bash", "-c", command])

    def _grep(self, arguments: str, path: str = ".") -> str:
        return self._run(["bash", "-c", f"rg --no-heading -n {arguments} {path}"])

    def _glob(self, pattern: str) -> str:
        return self._run(["rg", "--files", "-g", pattern])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self._project, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
        out = (done.stdout + done.stderr).decode(errors="replace")[:_MOST]
        if done.returncode:
            raise Refused(f"{out}\nExit code {done.returncode}")
        return out or "(no output)"
