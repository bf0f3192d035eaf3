"""A language server in a few lines that behaves as it is told: well, late, or badly. A process of its own, over its streams.

    python scripted_server.py '{"push": "versioned", "hover": "die"}' LOG

Every line with the word BAD is an error at that word. Every message it gets is a line of JSON in LOG.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: dict[str, Any] = {}
DOCUMENTS: dict[str, tuple[int, str]] = {}


def send(message: dict[str, Any]) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(
        b"content-length:%d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%b" % (len(data), data)
    )
    sys.stdout.buffer.flush()


def read() -> dict[str, Any]:
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    if not size:
        sys.exit(0)
    message = json.loads(sys.stdin.buffer.read(size))
    with open(sys.argv[2], "a", encoding="utf-8") as log:
        log.write(json.dumps(message) + "\n")
    return message


def errors(uri: str) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(DOCUMENTS[uri][1].split("\n")):
        at = line.find("BAD")
        if at >= 0:
            span = {"start": {"line": number, "character": at}, "end": {"line": number, "character": at + 3}}
            found.append({"range": span, "severity": 1, "message": f"bad {number}", "code": 7})
    return found


def publish(uri: str, items: list[Any], version: int | None) -> None:
    params = {"uri": uri.replace("a.zz", "%61.zz"), "diagnostics": items, **({} if version is None else {"version": version})}
    send({"method": "textDocument/publishDiagnostics", "params": params})


def pushed(uri: str) -> None:
    version, how = DOCUMENTS[uri][0], OPTIONS.get("push")
    if how == "late":
        publish(uri, [], version)
        time.sleep(0.4)
    if how == "old first":
        publish(uri, [{"range": {"start": {"line": 0, "character": 0}}, "message": "of an old version"}], version - 1)
        time.sleep(0.2)
    if how == "malformed":
        publish(uri, ["text", {"message": "no place"}, {"range": {"start": [1, 2]}}, *errors(uri)], version)
    elif how == "no list":
        publish(uri, 5, version)  # type: ignore[arg-type] - as a broken server would
    elif how:
        publish(uri, errors(uri), None if how == "unversioned" else version)


def hover(number: int) -> None:
    how = OPTIONS.get("hover", "")
    if how == "die":
        print("out of cheese", file=sys.stderr)
        os._exit(3)
    if how == "hang":
        time.sleep(600)
    if how in ("garbage", "bad json", "bottomless", "endless header", "no length", "too long"):
        said = {
            "garbage": b"Segmentation fault\r\n\r\n",
            "bad json": b"Content-Length: 3\r\n\r\n{]}",
            "bottomless": b"Content-Length: 500000\r\n\r\n" + b"[" * 500_000,
            "no length": b"\r\n",
            "endless header": b"x" * 1_000_000,
            "too long": b"Content-Length: 99999999999\r\n\r\n",
        }[how]
        sys.stdout.buffer.write(said)
        sys.stdout.buffer.flush()
        time.sleep(600)
    if how == "odd notice":
        send({"method": "textDocument/publishDiagnostics", "params": {"uri": 1, "diagnostics": 7}})
    if how == "error text":
        send({"id": number, "error": "no"})
    elif how == "odd id":
        send({"id": [1], "result": None})
        time.sleep(600)
    elif how == "asks":
        send({"id": "q", "method": "workspace/configuration", "params": {"items": [{"section": "a"}, {"section": "b"}]}})
        first = read()["result"]
        send({"id": 7, "method": "workspace/applyEdit", "params": {"edit": {}}})
        second = read()["result"]
        send({"id": 8, "method": "client/registerCapability", "params": {}})
        send({"id": number, "result": {"contents": json.dumps([first, second["applied"], read()["result"]])}})
    elif how == "floods":
        # More than two pipes hold, while nothing is read.
        for at in range(3_000):
            send({"id": f"f{at}", "method": "workspace/configuration", "params": {"items": [{}] * 20}})
        answered = 0
        while answered < 3_000:
            answered += "result" in read()
        send({"id": number, "result": {"contents": f"{answered} answers"}})
    else:
        text = {"huge": "x" * 5_000_000}.get(how, "what it is")
        send({"id": number, "result": 5 if how == "odd" else {"contents": text}})


def command(folder: Path, options: dict[str, Any]) -> tuple[list[str], Path]:
    """Return how a server with these options is started, and the file with the messages it gets."""
    log = folder / "messages.log"
    return [sys.executable, __file__, json.dumps(options), str(log)], log


def main() -> None:
    OPTIONS.update(json.loads(sys.argv[1]))
    while True:
        message = read()
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            if OPTIONS.get("start") == "die":
                sys.exit(4)
            offered = dict.fromkeys(
                ("hoverProvider", "renameProvider", "definitionProvider", "documentFormattingProvider"), True
            )
            send({"id": number, "result": {"capabilities": {**offered, "diagnosticProvider": bool(OPTIONS.get("pull"))}}})
        elif method == "initialized" and OPTIONS.get("deaf"):
            time.sleep(600)
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            document = params["textDocument"]
            text = document["text"] if "text" in document else params["contentChanges"][0]["text"]
            DOCUMENTS[document["uri"]] = (document["version"], text)
            pushed(document["uri"])
        elif method == "textDocument/didClose":
            DOCUMENTS.pop(params["textDocument"]["uri"], None)
        elif method == "textDocument/diagnostic":
            send({"id": number, "result": {"kind": "full", "items": errors(params["textDocument"]["uri"])}})
        elif method == "textDocument/hover":
            hover(number)
        elif number is not None and method in OPTIONS.get("answers", {}):
            send({"id": number, "result": OPTIONS["answers"][method]})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": f"no {method}"}})


if __name__ == "__main__":
    main()
