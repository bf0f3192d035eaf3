"""Many calls at once on one server, and very many one after another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from support.harness import times
from support.mcp_peer import peer

IDLE_MB = 100
SLEEPERS, EDITS, READS, SEARCHES = 20, 16, 20, 8


def edit(server, number):
    change = {"after_line_id": "end", "new_content": f"line of call {number}"}
    return server.call("edit_lines", {"file_path": "shared.txt", "changes": [change]})


@pytest.mark.slow
def test_64_calls_at_once_are_all_answered_and_no_edit_is_lost(project):
    (project / "shared.txt").write_bytes(b"first\n")
    (project / "big.py").write_bytes(b"".join(b"value = %d\n" % number for number in range(200)))
    with peer(project) as server, ThreadPoolExecutor(64) as pool:
        server.text("read", file_path="shared.txt")
        sleepers = [
            server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 120"}}) for _ in range(SLEEPERS)
        ]
        edits = [pool.submit(edit, server, number) for number in range(EDITS)]
        reads = [pool.submit(server.call, "read", {"file_path": "big.py"}) for _ in range(READS)]
        found = [pool.submit(server.call, "grep", {"pattern": "value = 1"}) for _ in range(SEARCHES)]
        results = [one.result(60) for one in [*edits, *reads, *found]]
        assert not any(result["isError"] for result in results)
        assert all(result.result()["content"][0]["text"].count("value = ") == 200 for result in reads)
        # While all of that was answered, the commands slept on.
        assert len(server._waiting) == SLEEPERS
        for number, _ in sleepers:
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert server.text("bash", command="echo free") == "free\n"
    lines = (project / "shared.txt").read_text().splitlines()
    assert lines[0] == "first"
    assert sorted(lines[1:]) == sorted(f"line of call {number}" for number in range(EDITS))


@pytest.mark.slow
def test_more_commands_than_places_delay_no_other_tool(project):
    (project / "a.txt").write_bytes(b"x\n")
    with peer(project) as server:
        sleepers = [server.begin("tools/call", {"name": "bash", "arguments": {"command": "sleep 120"}}) for _ in range(40)]
        assert server.text("read", file_path="a.txt")
        assert not server.call("job", {"action": "list"})["isError"]
        for number, _ in sleepers:
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        assert server.text("bash", command="echo free") == "free\n"


def memory(project, calls):
    """Return the server's memory in MB when idle, after a tenth of the calls, and after all."""
    (project / "a.py").write_bytes(b"".join(b"value = %d\n" % number for number in range(200)))
    with peer(project) as server:
        server.tools()
        idle = server.resident()
        marks = []
        for number in range(calls):
            name, arguments = (
                ("read", {"file_path": "a.py"}),
                ("grep", {"pattern": "value = 7"}),
                ("ls", {}),
                ("glob", {"pattern": "*"}),
                ("read", {"file_path": "missing.py"}),
            )[number % 5]
            server.call(name, arguments)
            if number + 1 in (calls // 10, calls):
                marks.append(server.resident())
    return [round(one, 1) for one in (idle, *marks)]


@pytest.mark.slow
def test_an_idle_server_is_small_and_calls_do_not_grow_it(project):
    idle, early, late = memory(project, times(150))
    assert idle < IDLE_MB
    assert late - early < 5
