"""Debian's docker-registry on loopback, and a user with a second space: for tests and figures of the registry."""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import web_site
from support.signed_tools import MINE, put, signed, tool_text, trust_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEEDED = "needs docker-registry (Debian package docker-registry)"


def free_address() -> str:
    """Return `host:port` on loopback that nobody else takes, though nothing listens there yet.

    The host is drawn from the 16 million of 127.0.0.0/8: the free ports of 127.0.0.1 are drawn by every other test, too.
    """
    host = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
    with socket.socket() as one:
        one.bind((host, 0))
        return f"{host}:{one.getsockname()[1]}"


def serve(folder: Path, address: str, more: str = "") -> subprocess.Popen[bytes]:
    """Start a server over a storage folder, and wait until it answers; skips the test where there is no such program."""
    if shutil.which("docker-registry") is None:
        pytest.skip(NEEDED)
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "config.yml"
    written.write_text(
        "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}\n"
        f'http: {{addr: "{address}"}}\n{more}'
    )
    env = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    process = subprocess.Popen(
        ["docker-registry", "serve", str(written)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
    )
    host, _, port = address.partition(":")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), 5).close()
            return process
        except OSError:
            assert process.poll() is None, NEEDED
            time.sleep(0.05)
    raise AssertionError("docker-registry does not answer")


@contextmanager
def running(folder: Path, more: str = "") -> Iterator[str]:
    """Run a server for the block; yield its name, `oci://HOST:PORT`."""
    address = free_address()
    process = serve(folder, address, more)
    try:
        yield f"oci://{address}"
    finally:
        process.kill()
        process.wait()


def put_items(project: Path, count: int, namespace: str = "my", first: int = 0) -> list[str]:
    """Write signed tools that the user trusts; return their ids."""
    trust_key()
    folder = Path(project, ".ai/tools", namespace, "many")
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"t{number:03}" for number in range(first, first + count)]
    for name in names:
        (folder / f"{name}.py").write_bytes(version_of(f"{namespace}/many/{name}"))
    return [f"{namespace}/many/{name}" for name in names]


def version_of(item_id: str, version: str = "1.2.3", key=MINE, **options) -> bytes:
    """Return a signed tool of a version."""
    return signed(tool_text(item_id, **options).replace(b'"1.2.3"', f'"{version}"'.encode()), key)


@contextmanager
def answering(answer: Callable[..., tuple[Any, ...]]) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Serve what `answer(method, path, headers, body)` returns, as `web_site.answering` takes it.

    Yields the registry's name, and the requests as they come: (method, path, headers, body).
    """
    seen: list[tuple[Any, ...]] = []

    def told(handler: Any, body: bytes) -> tuple[Any, ...]:
        seen.append((handler.command, handler.path, dict(handler.headers), body))
        return answer(handler.command, handler.path, handler.headers, body)

    with web_site.answering(told) as port:
        yield f"oci://127.0.0.1:{port}", seen


@contextmanager
def allowed_site(user_space: Path, answer: Callable[..., tuple[Any, ...]]) -> Iterator[str]:
    """Serve as `answering` does, at an address that the user's settings let tools ask; yield its URL."""
    with answering(answer) as (where, _):
        address = where.removeprefix("oci://")
        put(user_space, "config/rye.yaml", f'web: {{allow_hosts: ["{address}"]}}\n'.encode())
        yield f"http://{address}"
