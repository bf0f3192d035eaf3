"""A helper (`rye daemon`) of the tests' own, and calls that it must make: one that it does not make says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

NOT_SERVED = 99
# A caller that ignores other signals than a program at a prompt is not served, and what a shell starts in the background, as
# these tests may be, ignores two.
AT_A_PROMPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
"""
# On a busy machine a helper may not greet in time: nothing was done then, and it is asked again.
_SERVED = f"""{AT_A_PROMPT}
import sys, time
tries, *sys.argv = sys.argv[1:]
from rye.cli.daemon import client
for _ in range(int(tries)):
    client.call(sys.argv[0], by_launcher=True)
    time.sleep(0.05)
sys.exit(99)
"""
_TRIES = 600
_NORMAL = f"""{AT_A_PROMPT}
import sys
sys.argv = sys.argv[1:]
from importlib import import_module
import_module({{"rye": "rye.cli.main", "rt": "rye.cli.rt.main"}}[sys.argv[0]]).command()
"""
_BEGIN = "from rye.cli.main import command; command()"


class HelperProcess:
    """A running helper; `env` is the environment of its callers."""

    def __init__(self, space: Path, **environ: str) -> None:
        self.env = {**os.environ, "USER_SPACE": str(space), **environ}
        self.env.pop("RYE_DAEMON", None)
        words = [sys.executable, "-c", _BEGIN, "daemon", "start", "--foreground"]
        self.process = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, cwd="/")
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"The helper is ready.\n"

    @property
    def folder(self) -> Path:
        return Path(self.env["USER_SPACE"], ".ai/state/daemon")

    @property
    def socket(self) -> Path:
        return next(self.folder.glob("*.socket"))

    def words(self, *words: str | bytes, tries: int = _TRIES) -> list[str | bytes]:
        """Return the command of a call that the helper makes; it exits with 99 where it does not."""
        return [sys.executable, "-c", _SERVED, str(tries), *words]

    def call(self, *words: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
        return self._run(self.words(*words), options)

    def once(self, *words: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
        """Ask for a call that the helper may not make, once."""
        return self._run(self.words(*words, tries=1), options)

    def normal(self, *words: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
        return self._run([sys.executable, "-c", _NORMAL, *words], options)

    def _run(self, words: list[str | bytes], options: dict[str, object]) -> subprocess.CompletedProcess[bytes]:
        given = {"env": self.env, "capture_output": True, **options}
        if "input" not in given:
            given.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(words, check=False, **given)  # type: ignore[call-overload, no-any-return]

    def status(self) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-c", _BEGIN, "daemon", "status", "--json"],
            env=self.env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def children(self) -> set[int]:
        """Return the processes that the helper forked and that run."""
        found = set()
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            found |= set(map(int, (task / "children").read_text().split()))
        return found

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def wait_until(true: object, seconds: float = 60.0) -> None:
    """Wait until a function returns something true."""
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)
