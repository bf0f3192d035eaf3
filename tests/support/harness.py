"""What the attack tests share: a process that exchanges two names, a look at what lies outside or at processes, sizes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import rye

RUNTIME = Path(rye.__file__).parents[1]
# Words before a program's, which make it take Ctrl-C: what a shell starts in the background, as the tests may be, ignores it.
AT_A_PROMPT = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
]
_SWAPPER = """
import ctypes, select, sys
one, other = (name.encode() for name in sys.argv[1:])
call = ctypes.CDLL(None, use_errno=True).renameat2
count = 0
print("ready", flush=True)
while count % 512 or not select.select([sys.stdin], [], [], 0)[0]:
    if call(-100, one, -100, other, 2):
        sys.exit(f"renameat2: errno {ctypes.get_errno()}")
    count += 1
print(count, flush=True)
"""


def can_exchange(folder: Path) -> bool:
    """Tell whether the file system exchanges names at all."""
    names = [folder / name for name in ("x1", "x2")]
    for name in names:
        name.write_text("")
    try:
        exchange(*names)
    except OSError:
        return False
    finally:
        for name in names:
            name.unlink()
    return True


def exchange(one: Path, other: Path) -> None:
    """Exchange two names. Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def exchanging(one: Path, other: Path):
    """Have a process exchange two names without pause; yields a list that holds its count in the end (an even number)."""
    count: list[int] = []
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SWAPPER, one, other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        yield count
        child.stdin.close()
        count.append(int(child.stdout.readline()))
        assert child.wait(30) == 0
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        child.stdin.close()
        child.stdout.close()


def fingerprint(folder: Path) -> dict[str, tuple]:
    """Return every name below a folder with its kind, mode, inode and content."""
    out = {}
    for path in sorted([folder, *folder.rglob("*")]):
        info = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        out[str(path.relative_to(folder))] = (info.st_mode, info.st_ino, content)
    return out


def put_program(path: Path, text: str) -> Path:
    """Write a program, and the folders above it; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def files_of(project: Path) -> dict[str, bytes]:
    """Return the content of each file of a project but those below its `.ai`."""
    found = (path for path in project.rglob("*") if path.is_file() and ".ai" not in path.parts)
    return {str(path.relative_to(project)): path.read_bytes() for path in found}


def times(count: int) -> int:
    """Return how often a slow test tries: `RYE_TEST_TIMES=80 pytest -m slow FILE` is a run of full size."""
    return count * int(os.environ.get("RYE_TEST_TIMES", "1"))


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child process that finds this very package."""
    return {**os.environ, "PYTHONPATH": os.fspath(RUNTIME), **more}


def descendants(pid: int) -> set[int]:
    """Return the processes that one started, with theirs."""
    out: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for one in map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()):
                out |= {one, *descendants(one)}
    return out


def is_over(pid: int) -> bool:
    """Tell whether a process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
