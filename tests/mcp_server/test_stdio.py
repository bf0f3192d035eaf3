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

from rye.mcp_server import stdio
from support.mcp_peer import command, environment

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
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
    return subprocess.Popen(command(project), stdin=incoming, stdout=outgoing, stderr=subprocess.DEVNULL, env=environment())


@pytest.fixture
def text(project):
    content = "".join(f"line {number} of a file\n" for number in range(200))
    (project / "a.txt").write_text(content)
    return content


@pytest.mark.slow
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
        assert process.wait(120) == 0


def test_from_a_plain_file_even_without_a_line_end_at_its_end(project, text, tmp_path):
    asked, told = tmp_path / "asked", tmp_path / "told"
    asked.write_bytes(lines([HELLO, READY, {"jsonrpc": "2.0", "id": 1, "method": "ping"}])[:-1])
    told.write_bytes(b"kept\n")
    with open(asked, "rb") as incoming, open(told, "ab") as outgoing, server(project, incoming, outgoing) as process:
        assert process.wait(120) == 0
    first, *answers = told.read_bytes().splitlines()
    assert first == b"kept"
    assert json.loads(answers[0])["id"] == 0


@pytest.mark.slow
def test_a_client_that_reads_slowly_gets_everything_and_delays_nothing(project, text):
    with server(project, subprocess.PIPE, subprocess.PIPE) as process:
        process.stdin.write(lines([HELLO, READY, *reads(100)]))
        process.stdin.flush()
        time.sleep(2)
        got = [json.loads(process.stdout.readline()) for _ in range(101)]
        assert sorted(message["id"] for message in got) == list(range(101))
        process.stdin.close()
        assert process.wait(120) == 0


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
    writer = stdio._Writer(writing)
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
    at_once = stdio._Unblocked(writing)
    assert 0 < at_once.write(b"x" * 1_000_000) < 1_000_000
    assert at_once.write(b"x" * 1_000_000) == 0
    at_once.close()
    os.close(reading)
    os.close(writing)


ODD = {
    "params are a list": ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}', 7, "params"),
    "half of a surrogate pair": (
        '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"read","arguments":{"file_path":"\\ud800"}}}',
        "a",
        "surrogate",
    ),
    "a long number": (f'{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{{"x":{"9" * 5_000}}}}}', 8, "4300 digits"),
    "an id with a fraction": ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, "id"),
    "an id of half a pair": ('{"jsonrpc":"2.0","id":"\\udc00","method":"ping"}', "\udc00", "surrogate"),
    "no version": ('{"id":9,"method":"ping"}', 9, "jsonrpc"),
    "no method": ('{"jsonrpc":"2.0","id":10,"params":{}}', 10, "method"),
    "a method that is a number": ('{"jsonrpc":"2.0","id":11,"method":5}', 11, "method"),
    "an id that is true": ('{"jsonrpc":"2.0","id":true,"method":"ping"}', None, "id"),
    "an id of 5,000 digits": (f'{{"jsonrpc":"2.0","id":{"9" * 5_000},"method":"ping"}}', None, "id"),
    "a batch": ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, "object"),
    "no JSON": ("{ this is no message", None, "Parse error"),
    "very deep": ("[" * 100_000, None, "Parse error"),
}


@pytest.mark.parametrize("line", ODD.values(), ids=ODD)
def test_a_request_that_cannot_be_read_is_answered_with_its_id(line):
    asked, number, said = line
    answer = json.loads(stdio.refusal_of(asked.encode()))
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)
    assert answer["error"]["code"] in (-32700, -32600)
    assert said in answer["error"]["message"]


def test_a_notification_that_cannot_be_read_is_not_answered():
    assert stdio.refusal_of(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}') is None


def test_the_server_goes_on_after_what_it_cannot_read(project, text):
    with server(project, subprocess.PIPE, subprocess.PIPE) as process:
        odd = [line for line, _, _ in ODD.values()]
        process.stdin.write(lines([HELLO, READY]) + "\n".join([*odd, ""]).encode() + lines([{**reads(1)[0], "id": 99}]))
        process.stdin.flush()
        got = [json.loads(process.stdout.readline()) for _ in range(len(odd) + 2)]
        assert sorted(str(one["id"]) for one in got) == sorted([*(str(number) for _, number, _ in ODD.values()), "0", "99"])
        assert [one["id"] for one in got if "result" in one] == [0, 99]
        process.stdin.close()
        assert process.wait(120) == 0


def test_a_line_that_is_too_long_is_answered_and_the_next_is_read(project, text):
    huge = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write","arguments":{"content":"'
    with subprocess.Popen(
        command(project), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        process.stdin.write(lines([HELLO, READY]) + huge)
        for _ in range(66):
            process.stdin.write(b"x" * (1 << 20))
        process.stdin.write(b'"}}}\n' + lines([{**reads(1)[0], "id": 4}]))
        process.stdin.flush()
        got = {one["id"]: one for one in (json.loads(process.stdout.readline()) for _ in range(3))}
        assert "64 MB" in got[3]["error"]["message"]
        assert "result" in got[4]
        process.stdin.close()
        assert b"64 MB" in process.stderr.read()
        assert process.wait(120) == 0
