"""Live trials: a model does real tasks, and these tools are its only way into the project.

    python benchmarks/live/trial.py make REPOSITORY COMMIT FOLDER [TEST …]
    python benchmarks/live/trial.py serve rye|plain PROJECT SOCKET LOG
    python benchmarks/live/trial.py call SOCKET tools | TOOL JSON | TOOL -
    python benchmarks/live/trial.py price [--tokenizers DIR] LOG …

`make` lays the state before a commit into a new folder, with the commit's own tests (or those named) in place, which fail.
`serve` keeps one `rye mcp`, or the plain tools, for one project; each call is a line of the log. `call` is what the model runs.
`price` sums logs: calls, refusals, tokens written and read, read + 5 times written, and that with what each call reads again at
a tenth. CONTRIBUTING.md tells how a trial is made.
"""

from __future__ import annotations

import argparse
import io
import json
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from plain_tools import TOOLS, PlainTools

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "agent_edits"), str(HERE.parent / "editors")]

from stdio_client import StdioServer, ToolFailed  # noqa: E402
from tokenizers import Bytes, Tokenizers  # noqa: E402

WRITTEN, AGAIN = 5, 0.1
EDITS = ("edit_lines", "write", "Edit", "Write")


def make(repository: str, commit: str, folder: Path, tests: list[str]) -> None:
    """Lay out a task: the parent of a commit, with tests of the commit in place, as one commit of a new repository."""

    def git(*words: str) -> bytes:
        return subprocess.run(["git", "-C", repository, *words], check=True, capture_output=True).stdout

    changed = git("diff-tree", "--no-commit-id", "--name-only", "-r", "-z", commit).decode().split("\0")
    tests = tests or [path for path in changed if "test" in path]
    if not tests:
        raise SystemExit(f"{commit} changes no test: name those that the task must pass.")
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", f"{commit}^"))) as archive:
        archive.extractall(folder, filter="data")
    for path in tests:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(git("show", f"{commit}:{path}"))
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "start"],
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    print(f"{folder}: {git('log', '-1', '--format=%s', commit).decode().strip()}\ntests: {' '.join(tests)}")


class RyeTools:
    """One `rye mcp` for a project."""

    def __init__(self, project: Path) -> None:
        self._server = StdioServer(["rye", "mcp", "--project", str(project)])
        listed = self._server.ask("tools/list", {})["result"]["tools"]
        self.tools = {tool["name"]: (tool["description"], tool["inputSchema"]) for tool in listed}

    def call(self, tool: str, given: dict[str, Any]) -> tuple[str, bool]:
        """Return a tool's text as a client shows it, and whether it is an error."""
        try:
            return self._server.call(tool, given), False
        except ToolFailed as error:
            return str(error), True


def serve(way: str, project: Path, address: str, log: Path) -> None:
    """Answer calls on a socket, one after the other, until the process is ended."""
    tools = PlainTools(project) if way == "plain" else RyeTools(project)
    known = TOOLS if isinstance(tools, PlainTools) else tools.tools
    listed = "\n\n".join(f"{name}: {text}\n  parameters: {json.dumps(schema)}" for name, (text, schema) in known.items())
    Path(address).unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    while True:
        with listening.accept()[0] as client, client.makefile("rwb") as stream:
            asked = json.loads(stream.readline() or b"null")
            if not asked:
                continue
            started = time.monotonic()
            tool, given = asked
            text, is_error = (listed, False) if tool == "tools" else tools.call(tool, given)
            row = {"tool": tool, "args": given, "text": text, "error": is_error, "s": round(time.monotonic() - started, 3)}
            with log.open("a") as file:
                file.write(json.dumps(row) + "\n")
            stream.write(json.dumps([text, is_error]).encode() + b"\n")


def call(address: str, tool: str, given: str) -> int:
    """Make one call and print its answer."""
    try:
        arguments = json.loads(sys.stdin.read() if given == "-" else given)
    except ValueError as error:
        print(f"The arguments are no JSON: {error}")
        return 2
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(address)
        except OSError as error:
            print(f"No server answers at {address} ({error.strerror}): start it with `trial.py serve`.")
            return 2
        with client.makefile("rwb") as stream:
            stream.write(json.dumps([tool, arguments]).encode() + b"\n")
            stream.flush()
            text, is_error = json.loads(stream.readline())
    print(f"(error) {text}" if is_error else text)
    return int(is_error)


def price(logs: list[Path], tokenizers: Path | None) -> dict[str, Any]:
    """Return what the calls of some logs cost together, in tokens of o200k, or in bytes where there is no tokenizer."""
    counter = Tokenizers(tokenizers) if tokenizers else Bytes()
    sums = dict.fromkeys(("calls", "refused", "edit_calls", "written_in_edits", "written", "read", "price", "price_again"), 0.0)
    for log in logs:
        context = 0
        for row in map(json.loads, log.read_text().splitlines()):
            said = json.dumps(row["args"], ensure_ascii=False, separators=(",", ":"))
            (written, *_), (read, *_) = counter.count([said, row["text"]])
            is_edit = row["tool"] in EDITS
            sums["calls"] += row["tool"] != "tools"
            sums["refused"] += row["error"]
            sums["edit_calls"] += is_edit
            sums["written_in_edits"] += written * is_edit
            sums["written"] += written
            sums["read"] += read
            sums["price"] += read + WRITTEN * written
            sums["price_again"] += read + WRITTEN * written + AGAIN * context
            context += read + written
    counter.close()
    return {name: round(value) for name, value in sums.items()}


def main() -> int:
    """Run one of the four commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("make")
    one.add_argument("repository")
    one.add_argument("commit")
    one.add_argument("folder", type=Path)
    one.add_argument("tests", nargs="*")
    one = commands.add_parser("serve")
    one.add_argument("way", choices=["rye", "plain"])
    one.add_argument("project", type=Path)
    one.add_argument("address", metavar="SOCKET")
    one.add_argument("log", type=Path)
    one = commands.add_parser("call")
    one.add_argument("address", metavar="SOCKET")
    one.add_argument("tool")
    one.add_argument("given", metavar="JSON", nargs="?", default="{}")
    one = commands.add_parser("price")
    one.add_argument("logs", nargs="+", type=Path)
    one.add_argument("--tokenizers", type=Path)
    args = vars(parser.parse_args())
    command = args.pop("command")
    if command == "price":
        print(json.dumps(price(**args), indent=1))
        return 0
    return {"make": make, "serve": serve, "call": call}[command](**args) or 0


if __name__ == "__main__":
    sys.exit(main())
