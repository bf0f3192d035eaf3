"""Five tasks of an agent's day over the MCP server, best case: how many calls, and how many bytes go each way.

The project is generated: modules of 150 lines, so that reading costs something, a test, and a file with CRLF. Every step is what
a model could know from the answers before it; each task ends with a check of the files.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Not compiled: an edit may leave a file's size, in the same second, and Python would run what it compiled before.
RUN = "python3 -B run.py"
_MODULES = ("orders", "prices", "stock")


class Session:
    """One client of `rye mcp`."""

    def __init__(self, project: Path) -> None:
        command = [sys.executable, "-m", "rye", "mcp", "--project", str(project)]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.calls, self.sent, self.shown = 0, 0, 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}}
        self._ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message).encode() + b"\n")
        self._server.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        while True:
            answer = json.loads(self._server.stdout.readline())
            if "id" in answer:
                result: dict[str, Any] = answer["result"]
                return result

    def __call__(self, name: str, **arguments: Any) -> str:
        """Call a tool; return all that its answer shows a model."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(str(part.get("text", part)) for part in result["content"])
        self.calls += 1
        self.sent += len(json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode())
        self.shown += len(text.encode()) + len(json.dumps(result.get("structuredContent") or "").encode()) - 2
        assert not result["isError"], (name, arguments, text)
        return text

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(30)


def run() -> dict[str, tuple[int, int, int]]:
    """Return calls, bytes sent and bytes shown of each task and of all."""
    out: dict[str, tuple[int, int, int]] = {}
    with tempfile.TemporaryDirectory(prefix="agent-edits-") as folder:
        os.environ.setdefault("USER_SPACE", f"{folder}/user")
        project = _project(Path(folder) / "shop")
        session = Session(project)
        try:
            for number, task in enumerate((_two_files, _rename, _crlf, _test, _undo), 1):
                before = (session.calls, session.sent, session.shown)
                task(session, project)
                now = (session.calls, session.sent, session.shown)
                out[f"{number} {(task.__doc__ or '').split('.')[0]}"] = tuple(b - a for a, b in zip(before, now, strict=True))  # type: ignore[assignment]
        finally:
            session.close()
    out["all"] = (session.calls, session.sent, session.shown)
    return out


def _project(root: Path) -> Path:
    (root / "shop").mkdir(parents=True)
    (root / "tests").mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in _MODULES:
        parts = [f'"""The {name} of the shop."""\n']
        for number in range(18):
            body = f"    found = [entry for entry in rows if entry.kind == {number}]\n    return sum(one.amount for one in found)\n"
            parts.append(f'\ndef {name}_{number}(rows):\n    """Add up the {name} of kind {number}."""\n{body}\n')
        (root / "shop" / f"{name}.py").write_text("\n".join(parts))
    _append(root, "orders", "def order_total(prices, rate):\n    return sum(prices) * (1 - rate)\n")
    _append(
        root,
        "prices",
        "def with_tax(price, rate):\n    return price * (1 - rate)\n\n\ndef parse_amount(text):\n    return int(text)\n",
    )
    _append(root, "stock", "from shop.prices import parse_amount\n\n\ndef count(text):\n    return parse_amount(text)\n")
    (root / "tests/test_shop.py").write_text(
        "from shop.orders import order_total\nfrom shop.prices import parse_amount, with_tax\n\n\n"
        "def test_totals():\n    assert order_total([10], 0.5) == 15\n    assert with_tax(10, 0.5) == 15\n\n\n"
        'def test_amount():\n    assert parse_amount("3") == 3\n'
    )
    (root / "run.py").write_text(
        "import runpy, sys\nsys.path.insert(0, '.')\nspace = runpy.run_path('tests/test_shop.py')\n"
        "for name, test in space.items():\n    if name.startswith('test_'):\n        test()\nprint('ok')\n"
    )
    (root / "notes.txt").write_bytes(b"".join(b"%d: a note\r\n" % number for number in range(1, 31)))
    return root


def _append(root: Path, name: str, text: str) -> None:
    with open(root / "shop" / f"{name}.py", "a") as file:
        file.write(f"\n\n{text}")


def _address(text: str, line: str) -> str:
    """Return the address of the line with a text in an answer."""
    found = re.search(rf"^(\w+)\t{re.escape(line)}\r?$", text, re.MULTILINE)
    assert found, (line, text)
    return found[1]


def _two_files(session: Session, project: Path) -> None:
    """A bug in two files. The failing test, both places in one search, one edit, the test again."""
    failed = session("bash", command=RUN)
    assert "exit code 1" in failed
    places = session("grep", pattern=r"1 - rate")
    first, second = (_address(places, f"    return {word} * (1 - rate)") for word in ("sum(prices)", "price"))
    changes = [f"{first}|    return sum(prices) * (1 + rate)", f"shop/prices.py:{second}|    return price * (1 + rate)"]
    session("edit_lines", file_path="shop/orders.py", changes=changes)
    assert session("bash", command=RUN).startswith("ok")
    assert "1 + rate" in (project / "shop/prices.py").read_text()


def _rename(session: Session, project: Path) -> None:
    """A rename over three files. One search that counts, one edit that holds to the counts, one run."""
    counted = session("grep", pattern="parse_amount", mode="count", path=".")
    counts = dict(line.rsplit(":", 1) for line in counted.split("\n") if re.fullmatch(r"\S+:\d+", line))
    assert len(counts) == 3, counted
    words = {"find": "parse_amount", "replace": "read_amount"}
    # Lines are counted; in this project each has the name once.
    changes = [{"file_path": name, **words, "count": int(count)} for name, count in counts.items()]
    session("edit_lines", file_path=next(iter(counts)), changes=changes)
    assert session("bash", command=RUN).startswith("ok")
    assert not any("parse_amount" in path.read_text() for path in project.rglob("*.py"))


def _crlf(session: Session, project: Path) -> None:
    """A file with CRLF. Read the place, change a line, insert another."""
    shown = session("read", file_path="notes.txt", offset=10, limit=3)
    place = _address(shown, "11: a note")
    session("edit_lines", file_path="notes.txt", changes=[f"{place}|11: another\n11b: one more"])
    lines = (project / "notes.txt").read_bytes().split(b"\r\n")
    assert lines[10:13] == [b"11: another", b"11b: one more", b"12: a note"]


def _test(session: Session, project: Path) -> None:
    """A test is added and run. The end of the file needs no reading."""
    session(
        "edit_lines",
        file_path="tests/test_shop.py",
        changes=[
            {
                "find": 'read_amount("3") == 3',
                "replace": ('read_amount("3") == 3\n\n\ndef test_no_orders():\n    assert order_total([], 0.5) == 0'),
            }
        ],
    )
    assert session("bash", command=RUN).startswith("ok")
    assert "test_no_orders" in (project / "tests/test_shop.py").read_text()


def _undo(session: Session, project: Path) -> None:
    """A wrong edit is taken back. Edit, see it fail, undo, edit again."""
    before = (project / "shop/stock.py").read_bytes()
    session(
        "edit_lines",
        file_path="shop/stock.py",
        changes=[{"find": "return read_amount(text)", "replace": "return read_amount(txt)"}],
    )
    assert "exit code 1" in session("bash", command="python3 -B -c 'from shop.stock import count; count(\"1\")'")
    session("undo")
    assert (project / "shop/stock.py").read_bytes() == before
    right = {"find": "return read_amount(text)", "replace": "return read_amount(text or '0')"}
    session("edit_lines", file_path="shop/stock.py", changes=[right])
    assert session("bash", command="python3 -B -c 'from shop.stock import count; print(count(\"\"))'").startswith("0")


TASKS: tuple[Callable[[Session, Path], None], ...] = (_two_files, _rename, _crlf, _test, _undo)


def table() -> str:
    """Run the tasks; return the table."""
    rows = [f"| {name} | {calls} | {sent:,} | {shown:,} |" for name, (calls, sent, shown) in run().items()]
    return "\n".join(["| task | calls | bytes sent | bytes shown |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
