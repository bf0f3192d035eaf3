"""One table: what these tools cost beside the plain tool for the same, and beside a peer, all in one run.

    python benchmarks/speed.py [--rounds 9] [--only PART …] [--node-server PATH] [--json]

Parts: `calls` (in this process), `mcp` (over stdio), `bash` (its price beside bubblewrap's), `commands` (from the shell), `large` (a file of a million lines), `finding`
(a tree of 20,000 files), `folders` (new ones), `servers` (16 on one project).

Each row has ours and what stands beside it: milliseconds elapsed and of processor, medians of the rounds, the two taking turns.
On a busy machine the ratio of processor times says more. `mcp` compares with the Node.js file server where `--node-server`
names its program; `--mcp-calls 1` asks the servers call by call, as a client does, and not a hundred calls at a time. `commands` run
with their byte code cached, as an installed package has it. `--lines` and `--files` make `large`, `commands` and `finding` smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import rye
from editors.stdio_client import StdioServer
from support.mcp_peer import command, environment

_WORDS = ("alpha", "beta", "gamma", "delta", "value", "return", "total", "index", "price", "order")
RG = shutil.which("rg", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}") or "rg"
EMPTY = """
import sys, anyio
from mcp.server.stdio import stdio_server
import mcp_types as types
from mcp.server.lowlevel.server import Server
text = sys.argv[1]

async def listed(context, params):
    return {"resultType": "complete", "tools": [{"name": "nothing", "inputSchema": {"type": "object"}}]}

async def call(context, params):
    fields = {"success": True, "output": text}
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": fields, "isError": False}

async def main():
    server = Server("empty", version="1")
    server.add_request_handler("tools/list", types.PaginatedRequestParams, listed)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call)
    server.middleware.clear()
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""
# As the documentation of the SDK has one write it (FastMCP until version 1).
FRAMEWORK = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("empty")
text = sys.argv[1]

@server.tool()
def nothing() -> str:
    return text

server.run("stdio")
"""
ALONE = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent"]
Cost = tuple[float, float]


class Row(NamedTuple):
    """What was measured: ours, what stands beside it (its name and cost), and what is aimed at."""

    name: str
    ours: Cost
    other: str
    beside: Cost
    aim: str = ""


def own() -> float:
    """Return the milliseconds of processor that this process and its ended children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) * 1000


def of_server(pid: int) -> Callable[[], float]:
    """Return what tells the milliseconds of processor of a running process."""

    def used() -> float:
        threads = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((one / "schedstat").read_text(encoding="ascii").split()[0]) for one in threads) / 1e6

    return used


def turns(ways: dict[str, tuple[Callable[[], object], Callable[[], float]]], rounds: int, each: int = 1) -> dict[str, Cost]:
    """Return the median elapsed and processor milliseconds of each way, the ways taking turns; one turn is `each` calls."""
    taken: dict[str, list[Cost]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, (way, clock) in ways.items():
            processor, elapsed = clock(), time.perf_counter()
            for _ in range(each):
                way()
            cost = (time.perf_counter() - elapsed) * 1000 / each, (clock() - processor) / each
            # The first turn of each fills caches.
            if turn:
                taken[name].append(cost)
    return {
        name: (statistics.median(a for a, _ in costs), statistics.median(b for _, b in costs)) for name, costs in taken.items()
    }


def read(project: Path, **parameters: object) -> dict[str, Any]:
    """Read in this process; return the fields of the result."""
    answer = rye.execute("rye/file-system/read", parameters, project_path=project)
    assert answer["status"] == "success", answer
    return answer["data"]


class Client(StdioServer):
    """One server that is asked the same again and again."""

    def __init__(self, words: list[str], tool: str, arguments: dict[str, Any]) -> None:
        super().__init__(words, environment())
        self.params = {"name": tool, "arguments": arguments}
        self.ask("tools/list", {})

    def again(self):
        """Call the tool; return its answer."""
        return self.ask("tools/call", self.params)

    def at_once(self, count):
        """Call the tool so many times at once."""
        for _ in range(count):
            self.send("tools/call", self.params)
        for _ in range(count):
            assert self.line(), "the server ended"


def tree(root: Path, files: int) -> None:
    """Make source files in nested folders: 60 lines each; one of 1,000 holds `needle`, all hold `total`."""
    dice = random.Random(8)
    for number in range(files):
        folder = root / f"pkg{number % 40:02}" / f"mod{number // 40 % 25:02}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"    {' '.join(dice.choices(_WORDS, k=6))} = {at}" for at in range(60)]
        if number % 1_000 == 0:
            lines[30] = "    needle = 1"
        (folder / f"file{number}.py").write_text("\n".join(lines) + "\n", encoding="utf-8")


def big(path: Path, lines: int) -> None:
    """Make a file of many lines of about 50 bytes."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            file.write(f"{number:>9} a line of a log that goes on and on here\n")


def cached_bytecode(folder: Path) -> dict[str, str]:
    """Return an environment in which a second run finds the first one's byte code."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPATH": str(Path(rye.__file__).parents[1]), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def both(folder: Path, number: int) -> None:
    """Read the file and edit one of its lines."""
    read = rye.execute("rye/file-system/read", {"file_path": "a.py", "line_ids": "short"}, project_path=folder)
    address = read["data"]["output"].split("\n")[3].partition("\t")[0]
    change = {"line_id": address, "new_content": f"changed = {number}"}
    answer = rye.execute("rye/file-system/edit_lines", {"file_path": "a.py", "changes": [change]}, project_path=folder)
    assert answer["status"] == "success", answer


def made(root: Path, name: str) -> Path:
    """Make a folder with one file."""
    folder = root / name
    folder.mkdir()
    (folder / "a.py").write_text("".join(f"line {number} of a file that is read\n" for number in range(50)), encoding="utf-8")
    return folder


def calls(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare a warm read of 200 lines in this process with opening and splitting the file."""
    project = root / "calls"
    project.mkdir()
    file = project / "a.py"
    file.write_text("".join(f"line {number} of a file that is read\n" for number in range(200)), encoding="utf-8")
    ways = {"ours": (lambda: read(project, file_path="a.py"), own), "bare": (lambda: file.read_bytes().split(b"\n"), own)}
    found = turns(ways, args.rounds, 200)
    yield Row("read 200 lines, `rye.execute`", found["ours"], "open and split", found["bare"], "at most 0.3 ms more")


def mcp(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare a read of 200 lines over stdio with tools of the SDK that do nothing, and with the Node.js server."""
    project = root / "mcp"
    project.mkdir()
    text = "".join(f'    value_{number} = compute(alpha, beta={number}, gamma="text {number}")\n' for number in range(200))
    (project / "a.py").write_text(text, encoding="utf-8")
    shown = read(project, file_path="a.py", line_ids="short")["output"]
    clients = {"ours": Client(command(project), "read", {"file_path": "a.py"})}
    clients["sdk"] = Client([sys.executable, "-c", EMPTY, shown], "nothing", {})
    clients["framework"] = Client([sys.executable, "-c", FRAMEWORK, shown], "nothing", {})
    if args.node_server:
        clients["node"] = Client(["node", args.node_server, str(project)], "read_text_file", {"path": f"{project}/a.py"})
    for client in clients.values():
        for _ in range(50):
            client.again()
    found = turns({name: (one.again, of_server(one.process.pid)) for name, one in clients.items()}, args.rounds, args.mcp_calls)
    name = "read 200 lines over MCP (stdio)"
    yield Row(name, found["ours"], "an empty tool, the SDK's low-level server and stdio", found["sdk"], "1.3 times")
    yield Row(name, found["ours"], "an empty tool of the SDK's `MCPServer` (FastMCP)", found["framework"], "1.3 times")
    if "node" in found:
        yield Row(name, found["ours"], "server-filesystem (Node.js)", found["node"], "1.1 times")
    for client in clients.values():
        client.close()


def bash(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare `bash true` over MCP with bubblewrap alone: warm, the first call of a server, ten at once, beside another."""
    env, costs = dict(os.environ), {}
    projects = {name: root / name for name in ("one file", f"{args.files:,} files", f"{3 * args.files:,} ignored files")}
    for number, (name, project) in enumerate(projects.items()):
        tree(project / ".venv" if number == 2 else project, (1, args.files, 3 * args.files)[number])
        shell(["git", "init", "-q"], project, env)[0]()
        bwrap = shell([*ALONE, "--bind", str(project), str(project), "bash", "-c", "true"], project, env)
        bare = shell([sys.executable, "-I", "-S", "-c", "pass"], project, env)
        find = shell(["find", str(project), "-name", ".venv", "-prune", "-o", "-printf", "%i %C@ %p\\n"], project, env)
        started: list[Client] = []
        times = []
        for _ in range(5):
            for client in started:
                client.close()
            started = [Client(command(project), "bash", {"command": "true"})]
            began = time.perf_counter()
            started[0].again()
            times.append((time.perf_counter() - began) * 1000)
        client = started[0]
        for _ in range(5):
            client.again()
        ways = {"ours": (client.again, of_server(client.process.pid)), "bwrap": bwrap, "bare": bare, "find": find}
        found = turns(ways, args.rounds)
        yield Row(
            f"`bash true` over MCP, {name}", found["ours"], "`bwrap`", found["bwrap"], "5 times" if number else "3.5 times"
        )
        # The first one of many files records them; the later servers find that.
        costs[number] = times[0] if number else statistics.median(times)
        if number < 2:
            beside = ("bwrap", "bare") if not number else ("find",)
            plain = sum(found[one][0] for one in beside) + (costs[0] if number else 0.0)
            words = "`find` and the small project's" if number else "`bwrap` and a bare interpreter"
            aim = "2 times" if number else "8 times"
            yield Row(f"a server's first, {name}", (costs[number], 0.0), words, (plain, 0.0), aim)
            if number:
                later = statistics.median(times[1:])
                yield Row(f"a later server's first, {name}", (later, 0.0), words, (plain, 0.0), aim)
        if not number:
            ten = turns({"ten": (lambda: client.at_once(10), own), "one": (client.again, own)}, args.rounds)
            yield Row("ten at once", ten["ten"], "one", ten["one"], "4 times")
            client.send("tools/call", {"name": "bash", "arguments": {"command": f"sleep {args.rounds}; :"}})
            late = turns({"ours": (client.again, own), "bwrap": bwrap}, args.rounds)
            yield Row("beside one that runs", late["ours"], "alone", found["ours"], "1.5 times")
        client.close()


def shell(words: list[str], folder: Path, env: dict[str, str]) -> tuple[Callable[[], object], Callable[[], float]]:
    """Return a command as a way that `turns` takes."""

    def run() -> None:
        subprocess.run(
            words,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    return run, own


def commands(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare cold commands with an interpreter that does nothing, and with `sed`."""
    project = root / "commands"
    (project / ".git").mkdir(parents=True)
    (project / "a.py").write_text("one\ntwo\n", encoding="utf-8")
    big(project / "big.log", args.lines)
    env = {**cached_bytecode(root), "USER_SPACE": f"{root}/user"}
    words = {
        "pass": [sys.executable, "-c", "pass"],
        "read": [sys.executable, "-c", "from rye.cli.main import command; command()", "execute", "rye/file-system/read", "file_path=a.py"],
        "open": [sys.executable, "-c", "from rye.cli.rt.main import command; command()", "open", f"big.log:{args.lines * 3 // 4}"],
        "sed": ["sed", "-n", f"{args.lines * 3 // 4}p", "big.log"],
    }  # fmt: skip
    time.sleep(0.2)
    found = turns({name: shell(one, project, env) for name, one in words.items()}, args.rounds)
    plain = tuple(a + b for a, b in zip(found["sed"], found["pass"], strict=True))
    yield Row("`rye execute … read`, cold", found["read"], "`python3 -c pass`", found["pass"], "4 times")
    yield Row("`rt open` of a line in a million", found["open"], "`sed -n` and `python3 -c pass`", plain, "1.3 times")


def large(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare a window and an edit in a file of a million lines with `sed`."""
    project = root / "large"
    (project / ".git").mkdir(parents=True)
    for name in ("ours.txt", "plain.txt"):
        big(project / name, args.lines)
    time.sleep(0.2)
    window = {"file_path": "ours.txt", "offset": args.lines // 2, "limit": 200, "line_ids": "short"}
    # A line that was replaced has another address, so each edit is of the next one.
    addresses = iter([line.partition("\t")[0] for line in read(project, **window)["output"].split("\n")])

    def edit() -> None:
        change = {"line_id": next(addresses), "new_content": "changed"}
        parameters = {"file_path": "ours.txt", "changes": [change]}
        answer = rye.execute("rye/file-system/edit_lines", parameters, project_path=project)
        assert answer["status"] == "success", answer

    env = dict(os.environ)
    low = args.lines // 2
    sed = shell(["sed", "-n", f"{low},{low + 199}p", "plain.txt"], project, env)
    found = turns({"ours": (lambda: read(project, **window), own), "sed": sed}, args.rounds)
    yield Row("200 lines of a million, again", found["ours"], "`sed -n`", found["sed"], "1.5 times")
    mend = shell(["sh", "-c", f"sed -i '{low}s/.*/changed/' plain.txt && sync plain.txt"], project, env)
    found = turns({"ours": (edit, own), "sed": mend}, args.rounds)
    yield Row("edit a line in a million", found["ours"], "`sed -i` and `sync FILE`", found["sed"], "2 times")


def finding(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare glob and grep with ripgrep on a tree of 20,000 files."""
    project = root / "finding"
    (project / ".git").mkdir(parents=True)
    tree(project, args.files)
    env = dict(os.environ)

    def tool(name: str, **parameters: object) -> Callable[[], object]:
        def run() -> None:
            answer = rye.execute(f"rye/file-system/{name}", parameters, project_path=project)
            assert answer["status"] == "success", answer

        return run

    ways = {
        "glob": (tool("glob", pattern="**/*.py"), own),
        "rg --files": shell([RG, "--files", "-g", "*.py"], project, env),
        "grep": (tool("grep", pattern="needle"), own),
        "rg": shell([RG, "-n", "needle"], project, env),
    }
    found = turns(ways, args.rounds)
    yield Row(f"glob in {args.files:,} files", found["glob"], "`rg --files`", found["rg --files"], "1.2 times")
    yield Row(f"grep in {args.files:,} files", found["grep"], "`rg`", found["rg"], "1.2 times and 15 ms")


def folders(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Compare a read and an edit in new folders with those in one that is known."""
    numbers = iter(range(10**9))
    known = made(root, "known")
    ways = {
        "new": (lambda: both(made(root, f"new{next(numbers)}"), 1), own),
        "known": (lambda: both(known, next(numbers)), own),
    }
    found = turns(ways, args.rounds, 20)
    yield Row("read and edit in a new folder", found["new"], "in a known one", found["known"], "10 ms of processor more")


def memory(pids: list[int]) -> tuple[float, float]:
    """Return the resident memory of processes together, and with shared pages counted once among their users (MB)."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in pids]
    found = [[int(re.search(rf"^{name}:\s+(\d+)", text, re.MULTILINE)[1]) / 1024 for text in texts] for name in ("Rss", "Pss")]
    return sum(found[0]), sum(found[1])


def servers(root: Path, args: argparse.Namespace) -> Iterator[Row]:
    """Tell the memory of 16 servers on one project (MB: resident, and its fair share), beside interpreters that do nothing."""
    project = root / "servers"
    project.mkdir()
    (project / "a.py").write_text("one\n", encoding="utf-8")
    started = [Client(command(project), "read", {"file_path": "a.py"}) for _ in range(16)]
    for one in started:
        one.ask("tools/list", {})
        one.again()
    idle = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(16)]
    time.sleep(0.5)
    ours, bare = (memory(pids) for pids in ([one.process.pid for one in started], [one.pid for one in idle]))
    for one in started:
        for _ in range(args.calls):
            one.again()
    later = memory([one.process.pid for one in started])
    for one in idle:
        one.send_signal(signal.SIGTERM)
        one.communicate()
    for client in started:
        client.close()
    yield Row("16 servers on one project (MB: resident, share)", ours, "16 idle interpreters", bare, "700 MB")
    yield Row(f"… after {args.calls:,} calls of each", later, "16 idle interpreters", bare, "700 MB")


PARTS = (calls, mcp, bash, commands, large, finding, folders, servers)


def shown(rows: list[Row]) -> Iterator[str]:
    """Yield the table in Markdown."""
    yield "| what | elapsed, processor (ms) | beside | elapsed, processor (ms) | times, elapsed | times, processor | aim |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        ratios = [f"{mine / max(other, 1e-6):.2f}" for mine, other in zip(row.ours, row.beside, strict=True)]
        ours, beside = (
            ", ".join(f"{one:.2f}" if one < 10 else f"{one:.0f}" for one in cost) for cost in (row.ours, row.beside)
        )
        yield f"| {row.name} | {ours} | {row.other} | {beside} | {' | '.join(ratios)} | {row.aim} |"


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="turns of each way (default 9)")
    parser.add_argument("--only", nargs="+", choices=[one.__name__ for one in PARTS], help="these parts only")
    parser.add_argument("--node-server", default="", help="the program of @modelcontextprotocol/server-filesystem")
    parser.add_argument("--calls", type=int, default=100, help="calls of each of 16 servers (default 100)")
    parser.add_argument("--mcp-calls", type=int, default=100, help="calls of a turn over MCP (default 100)")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the large file (default 1,000,000)")
    parser.add_argument("--files", type=int, default=20_000, help="files of the tree (default 20,000)")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["USER_SPACE"] = f"{scratch}/user"
        for part in PARTS:
            if not args.only or part.__name__ in args.only:
                print(f"measuring {part.__name__} …", file=sys.stderr)
                rows += part(Path(scratch), args)
    print(json.dumps([row._asdict() for row in rows], indent=2) if args.json else "\n".join(shown(rows)))
    # Threads of pools may still wait.
    assert threading.main_thread().is_alive()
    return 0


if __name__ == "__main__":
    sys.exit(main())
