"""Every operation of agent-sandbox's own Python client in its direct `api_url` mode; prints a JSON list of what was found.

Run by a Python that has `k8s-agent-sandbox`: URL TOKEN BYTES-OF-THE-LARGE-FILE.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys

from k8s_agent_sandbox.models import SandboxDirectConnectionConfig
from k8s_agent_sandbox.sandbox import Sandbox

url, token, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
found: list[list[object]] = []


def note(name: str, value: object) -> None:
    found.append([name, value])


def refused(name: str, act) -> None:
    try:
        note(name, f"no error: {act()!r:.200}")
    except Exception as err:
        note(name, [type(err).__name__, getattr(err, "status_code", None)])


def sandbox(**headers: str) -> Sandbox:
    config = SandboxDirectConnectionConfig(api_url=url, extra_headers=headers)
    # No cluster: a helper that is never asked.
    return Sandbox("claim", "sandbox", connection_config=config, k8s_helper=object())


box = sandbox(Authorization=f"Bearer {token}")
done = box.commands.run("echo out; echo 'e  r' >&2; exit 3")
note("run", [done.stdout, done.stderr, done.exit_code])
note("run quoted", box.commands.run("""python3 -c 'print("a b")'""").stdout)
late = box.commands.run("echo begun; sleep 1000", command_timeout=1)
note("run past its time", [late.stdout, late.exit_code, late.timed_out])
note("run nothing", box.commands.run("no-such-program-here").exit_code)
note("run long", len(box.commands.run("head -c 2000000 /dev/zero | tr '\\0' x").stdout))

box.files.write("text.txt", "grüße\n")
box.files.write("deep/er/bytes 100%.bin", bytes(range(256)))
box.files.write("text.txt", b"again\n")
note("read", box.files.read("text.txt").decode())
note("read bytes", box.files.read("deep/er/bytes 100%.bin") == bytes(range(256)))
note("list", sorted([one.name, one.type, one.size] for one in box.files.list("deep/er")))
note("list root", "text.txt" in {one.name for one in box.files.list(".")})
note("list nothing", box.files.list("empty") if box.commands.run("mkdir empty").exit_code == 0 else None)
note("exists", [box.files.exists("text.txt"), box.files.exists("deep"), box.files.exists("none")])
refused("read none", lambda: box.files.read("none"))
refused("read folder", lambda: box.files.read("deep"))
refused("list none", lambda: box.files.list("none"))
refused("list file", lambda: box.files.list("text.txt"))
refused("read outside", lambda: box.files.read("../secret", allow_unsafe_paths=True))
refused("write outside", lambda: box.files.write("../secret", "x", allow_unsafe_paths=True))
refused("list outside", lambda: box.files.list("deep/../.."))
refused("exists outside", lambda: box.files.exists("../secret"))
refused("write protected", lambda: box.files.write(".git/config", "x"))
refused("without a token", lambda: sandbox().commands.run("touch refused"))

large = random.Random(1).randbytes(size)
box.files.write("large.bin", large, timeout=300)
note("large", hashlib.sha256(box.files.read("large.bin", timeout=300)).hexdigest() == hashlib.sha256(large).hexdigest())
note("large is listed", [one.size for one in box.files.list(".") if one.name == "large.bin"] == [size])
box.close_connection()


async def asynchronous() -> None:
    from k8s_agent_sandbox.async_sandbox import AsyncSandbox

    config = SandboxDirectConnectionConfig(api_url=url, extra_headers={"Authorization": f"Bearer {token}"})
    box = AsyncSandbox("claim", "sandbox", connection_config=config, k8s_helper=object())
    await box.files.write("async.txt", "async\n")
    note("async", [(await box.files.read("async.txt")).decode(), (await box.commands.run("cat async.txt")).stdout])
    note("async exists", [await box.files.exists("async.txt"), "async.txt" in {one.name for one in await box.files.list(".")}])
    await box.close_connection()


asyncio.run(asynchronous())
print(json.dumps(found))
