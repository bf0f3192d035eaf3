"""A user whose git, shell and editor work where a model's commands did: what `test_users_git.py` runs, as the user whom it shall be.

`python users_git.py FOLDER MODE CAMPAIGN WORD …`: a campaign is a module beside this one, whose `campaign(arena, *words)` yields what
becomes a line of JSON each. In mode `off`, the control, commands have no sandbox and files are plainly written.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path

import rye
from rye.agent_sandbox import files
from rye.errors import RyeError

CANARY = "canary-77b1d2"
SETTINGS = "[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n"
IDENTITY = {f"GIT_{who}_{what}": "m@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
# No command may make the call itself break, whatever it does to the project.
BROKEN = ("io_error", "tool_crashed", "internal_error", "sandbox_unavailable")


class Arena:
    """A user's home with secrets, a project, and a host that nobody may ask.

    A program that ran outside leaves a file in `marks`, which is `$MARKS` for the user and for the model.
    """

    def __init__(self, base: Path, mode: str) -> None:
        self.base, self.mode, self.asked = base, mode, []
        self.root, self.home, self.marks = base / "project", base / "home", base / "marks"
        for folder in (self.home / ".ssh", self.home / ".ai/config", self.marks):
            folder.mkdir(parents=True)
        for name in (".ssh/id_rsa", ".netrc"):
            (self.home / name).write_text(CANARY)
        (self.home / ".ai/config/rye.yaml").write_text(f"sandbox: {{mode: '{mode}'}}\n")
        os.environ.update(HOME=str(self.home), USER_SPACE=str(self.home), SECRET_TOKEN=CANARY)
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Noting", (Noting,), {"asked": self.asked}))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.port = server.server_port

    def filled(self, text: str) -> str:
        """Return a text with this arena's places."""
        return text.replace("$MARKS", str(self.marks)).replace("$BASE", str(self.base)).replace("$PORT", str(self.port))

    # --- the user ---

    def shell(self, script: str, *arguments: str, folder: Path | None = None, seconds: float = 60) -> None:
        """Have the user type a script."""
        env = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "MARKS": str(self.marks), "EDITOR": "true", "PAGER": "cat",
            "GIT_CEILING_DIRECTORIES": str(self.base), "GIT_TERMINAL_PROMPT": "0",
        }  # fmt: skip
        words = ["timeout", str(seconds), "bash", "-c", script, "user", *arguments]
        subprocess.run(words, cwd=folder or self.root, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def fresh(self, script: str) -> None:
        """Have the user make the project anew, and forget what lay beside it."""
        (self.home / ".gitconfig").write_text(SETTINGS)
        for path in (self.root, self.base / "main", self.base / "other"):
            subprocess.run(["chmod", "-R", "u+rwx", path], capture_output=True, check=False)
            subprocess.run(["rm", "-rf", path], capture_output=True, check=False)
        # A call that was cancelled may still end there.
        self.root.mkdir(exist_ok=True)
        self.shell(self.filled(script))

    def ran(self) -> list[str]:
        """Return the names of the programs that ran since the last time."""
        found = sorted(path.name for path in self.marks.iterdir())
        for name in found:
            (self.marks / name).unlink()
        return found

    # --- the model ---

    def bash(self, command: str, **more: object) -> dict:
        """Have the model run a command; return its result."""
        env = {**IDENTITY, "MARKS": str(self.marks), "PY": sys.executable, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        return self.called("rye/bash/bash", command=self.filled(command), env=env, **more)

    def called(self, tool: str, **parameters: object) -> dict:
        answer = rye.execute(tool, parameters, project_path=self.root)
        data = answer["data"] or answer
        assert data.get("code") not in BROKEN, answer
        return data

    def put(self, writer: str, contents: Mapping[str, str]) -> None:
        """Have files come to be by a way of the model's; what is refused stays away."""
        contents = {path: self.filled(text) for path, text in contents.items()}
        if writer == "patch" and self.mode != "off":
            made = [{"path": path, "content": text} for path, text in reversed(contents.items())]
            self.called("rye/workspace/workspace_write_patch", batchLabel="x", files=[], createFiles=made)
            return
        for path, text in contents.items():
            command = f"mkdir -p {os.path.dirname(path) or '.'}; printf %s {shlex.quote(text)} >{path}"
            if self.mode == "off":
                # What the file tools refuse nobody can switch off.
                self.shell(command)
            elif writer == "write":
                self.called("rye/file-system/write", file_path=path, content=text)
            elif writer == "upload":
                with suppress(OSError, RyeError):
                    files.put(str(self.root), f"/{path}", io.BytesIO(text.encode()))
            elif writer == "undo":
                self.bash(command)
                self.bash(f"rm {path}")
                self.called("rye/file-system/undo")
            else:
                self.bash(f"sleep 0.1; {command}" if writer == "job" else command, background=writer == "job")

    def jobs(self) -> list[dict]:
        return self.called("rye/bash/job", action="list")["jobs"]

    def end_jobs(self) -> None:
        for row in self.jobs():
            self.called("rye/bash/job", action="end", job_id=row["job_id"])

    def wait_for_jobs(self) -> None:
        while any(row["status"] == "running" for row in self.jobs()):
            time.sleep(0.05)


class Noting(BaseHTTPRequestHandler):
    """A host that no look may ask: it notes who does."""

    asked: list[str]

    def handle_one_request(self) -> None:
        if line := self.rfile.readline(1000):
            self.asked.append(line.decode(errors="replace").strip())
        self.close_connection = True
        self.wfile.write(
            b"HTTP/1.1 401 no\r\nWWW-Authenticate: Basic realm=x\r\nSet-Cookie: a=b; Max-Age=999\r\nContent-Length: 0\r\n\r\n"
        )


if __name__ == "__main__":
    for found in import_module(sys.argv[3]).campaign(Arena(Path(sys.argv[1]), sys.argv[2]), *sys.argv[4:]):
        print(json.dumps(found), flush=True)
