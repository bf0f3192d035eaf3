"""The server's descriptors: whatever they are, messages come and go whole and in order, and a client that is slow loses nothing."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import threading
import time

import pytest

from mcp_peer import command, environment
from rye import mcp_stdio

HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def reads(count):
    """Return requests that read a file."""
    return [
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {"name": "read", "arguments": {"file_path": "a.txt"}},
        }
        for number in range(1, count + 1)
    ]


def lines(messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def server(project, incoming, outgoing):
    return subprocess.Popen(
        command(project), stdin=incoming, stdout=outgoing, stderr=subprocess.DEVNULL, env=environment()
    )  # fmt: skip


@pytest.fixture
def text(project):
    content = "".join(f"line {number} of a file\n" for number in range(200))
    (project / "a.txt").write_text(content)
    return content


def test_over_a_socket_as_node_clients_give_it(project, text):
    ours, theirs = socket.socketpair()
    with theirs, server(project, ours, ours) as process:
        ours.close()
        stream = theirs.makefile("rb")
        theirs.sendall(lines([HELLO]))
        assert json.loads(stream.readline())["id"] == 0
        theirs.sendall(lines([READY, *reads(300)]))
        time.sleep(1)
        got = [json.loads(stream.readline()) for _ in range(300)]
        assert sorted(message["id"] for message in got) == list(range(1, 301))
        assert all("line 199 of a file" in message["result"]["content"][0]["text"] for message in got)
        theirs.shutdown(socket.SHUT_WR)
        assert process.wait(20) == 0


def test_from_a_plain_file_even_without_a_line_end_at_its_end(project, text, tmp_path):
    asked, told = tmp_path / "asked", tmp_path / "told"
    asked.write_bytes(lines([HELLO, READY, {"jsonrpc": "2.0", "id": 1, "method": "ping"}])[:-1])
    told.write_bytes(b"kept\n")
    with open(asked, "rb") as incoming, open(told, "ab") as outgoing, server(project, incoming, outgoing) as process:
        assert process.wait(20) == 0
    first, *answers = told.read_bytes().splitlines()
    assert first == b"kept"
    assert json.loads(answers[0])["id"] == 0


def test_a_client_that_reads_slowly_gets_everything_and_delays_nothing(project, text):
    with server(project, subprocess.PIPE, subprocess.PIPE) as process:
        process.stdin.write(lines([HELLO, READY, *reads(100)]))
        process.stdin.flush()
        time.sleep(2)
        got = [json.loads(process.stdout.readline()) for _ in range(101)]
        assert sorted(message["id"] for message in got) == list(range(101))
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_what_is_written_comes_whole_and_in_order_whatever_the_client_does(kind):
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    if kind == "pipe":
        reading, writing = os.pipe()
    else:
        reading, writing = (one.detach() for one in socket.socketpair())
    sent = [bytes([65 + number % 26]) * chance.choice([10, 5_000, 70_000, 400_000]) + b"\n" for number in range(60)]
    heard = bytearray()

    def hear():
        while len(heard) < sum(map(len, sent)):
            time.sleep(chance.choice([0, 0, 0.002]))
            heard.extend(os.read(reading, chance.choice([100, 65_536, 1 << 20])))

    listener = threading.Thread(target=hear)
    writer = mcp_stdio._Writer(writing)
    listener.start()
    for line in sent:
        writer.put(line)
    writer.finish(20)
    listener.join(20)
    assert bytes(heard) == b"".join(sent)
    # Whoever shares the descriptor finds it as it was.
    assert os.get_blocking(writing)
    os.close(reading)
    writer.put(b"nobody listens\n")
    os.close(writing)


def test_control_a_write_that_does_not_wait_is_cut_short():
    reading, writing = os.pipe()
    at_once = mcp_stdio._Unblocked(writing)
    assert 0 < at_once.write(b"x" * 1_000_000) < 1_000_000
    assert at_once.write(b"x" * 1_000_000) == 0
    at_once.close()
    os.close(reading)
    os.close(writing)
