"""What waits in the sandbox for the one program that it becomes: the primitive `subprocess`, the child's side.

On standard input comes one frame (4 bytes of length, big-endian, then JSON): `{"files": {path: base64}, "folder": where to
put them or null, "argv", "env", "cwd", "input": base64 or null: what comes behind the frame, "limits": {name: [soft, hard]},
"programs": whether others may be started, "filter"}`. The files are the verified bytes of the tool; they are written here, in
the sandbox's own temporary folder, which nothing outside can change. A NUL in `argv` and `env` stands for their folder. On
the descriptor `answers` goes `started`, or `failed` with the reason; the program does not inherit it.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from typing import Any

_LENGTH = struct.Struct(">I")
_FOLDER_MARK = "\0"


def wait(answers: int) -> None:
    """Take the one call and become its program."""
    os.set_inheritable(answers, False)
    # Loaded while nobody waits for it, and all that starting a program needs.
    from rye.sandbox import launcher, seccomp

    (size,) = _LENGTH.unpack(_exactly(_LENGTH.size))
    call: dict[str, Any] = json.loads(_exactly(size))
    try:
        folder = _written(call["files"], call["folder"])
        argv = [word.replace(_FOLDER_MARK, folder) for word in call["argv"]]
        env = {name: value.replace(_FOLDER_MARK, folder) for name, value in call["env"].items()}
        env = {**os.environ, **env}
        if call["input"] is not None:
            _give_input(base64.b64decode(call["input"]))
        os.chdir(call["cwd"].replace(_FOLDER_MARK, folder))
        os.write(answers, b"started\n")
        if not call["filter"] or not seccomp.supported():
            launcher.limit(call["limits"])
            os.execvpe(argv[0], argv, env)  # noqa: S606 - this is what the process is for
        plan = {"argv": argv, "env": env, "cwd": ".", "keep": None, "rules": None, "tcp": True, "sockets": "all"}
        launcher.start({**plan, "limits": call["limits"], "programs": call["programs"]})
    except Exception as err:  # noqa: BLE001 - whatever it is, the parent says it
        why = f"{err.filename}: {err.strerror}" if isinstance(err, OSError) else f"{type(err).__name__}: {err}"
        os.write(answers, f"failed {why}\n".encode("utf-8", "replace")[:2_000])
    os._exit(126)


def _exactly(size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        chunk = os.read(0, min(size - len(data), 1 << 20))
        if not chunk:
            # The parent is gone, or has no call for this child.
            os._exit(0)
        data += chunk
    return bytes(data)


def _written(files: dict[str, str], folder: str | None) -> str:
    """Write the tool's files into a new folder, and return it."""
    # Not `tempfile`, which loads much; nobody else sees the sandbox's own temporary folder.
    made = os.path.join(folder or os.environ["TMPDIR"], f"tool-{os.urandom(4).hex()}")
    os.mkdir(made, 0o700)
    write_files(files, made)
    return made


def write_files(files: dict[str, str], folder: str) -> None:
    """Write a tool's files, base64 by path, into a folder that has none of them. Raises OSError."""
    for path, content in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(target, "xb") as file:
            file.write(base64.b64decode(content))


def _give_input(data: bytes) -> None:
    """Put the input where the program reads it: a file, so that one that never reads it does not block anybody."""
    fd = os.memfd_create("input")
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)
