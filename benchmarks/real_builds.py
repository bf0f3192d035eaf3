"""Three real builds through the bash tool under "auto", as a user would run them: they must work, and what they cost is told.

pip installs a package into the project's own virtual environment, npm installs one from its registry, `make` builds a C program
and runs its test. Each is run once more by a plain shell in a folder of its own, in the same run; the ratio says what the
sandbox and the guard cost. Needs the package registries, and npm, make and a C compiler on the machine.

    python benchmarks/real_builds.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rye

C_PROGRAM = {
    "Makefile": "CFLAGS ?= -O1 -Wall\nall: hello\nhello: hello.o greet.o\n\t$(CC) -o $@ $^\n%.o: %.c greet.h\n"
    "\t$(CC) $(CFLAGS) -c -o $@ $<\ncheck: hello\n\t./hello | grep -q 'hello, 42'\nclean:\n\trm -f *.o hello\n",
    "greet.h": "int greet(int number);\n",
    "greet.c": '#include <stdio.h>\n#include "greet.h"\nint greet(int n) { return printf("hello, %d\\n", n); }\n',
    "hello.c": '#include "greet.h"\nint main(void) { return greet(42) > 0 ? 0 : 1; }\n',
}

BUILDS = {
    "pip install into the project's venv": (
        {},
        "python3 -m venv .venv && .venv/bin/pip install --disable-pip-version-check --no-cache-dir six",
        ".venv/bin/python -c 'import six; print(six.__version__)'",
    ),
    "npm install": (
        {"package.json": '{"name": "x", "version": "1.0.0", "private": true}\n'},
        "npm install --no-audit --no-fund is-number",
        "node -e 'console.log(require(\"is-number\")(42))'",
    ),
    "make, and its check": (C_PROGRAM, "make -j2", "make check"),
}


def lay_out(folder, files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def by_tool(folder, command):
    """Return (seconds, result)."""
    began = time.perf_counter()
    data = rye.execute("rye/bash/bash", {"command": command, "timeout": 300}, project_path=folder)["data"]
    return time.perf_counter() - began, data


def by_shell(folder, command):
    """Return the seconds that a plain shell takes."""
    began = time.perf_counter()
    subprocess.run(["/bin/bash", "-c", command], cwd=folder, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    missing = [name for name in ("npm", "node", "make", "cc") if shutil.which(name) is None]
    if missing:
        print(f"cannot run: {', '.join(missing)} not installed")
        return 1
    good = True
    with tempfile.TemporaryDirectory(prefix="rye-builds-") as name:
        os.environ["USER_SPACE"] = f"{name}/user"
        Path(name, "user").mkdir()
        for at, (what, (files, command, check)) in enumerate(BUILDS.items()):
            project, plain = Path(name, f"project{at}"), Path(name, f"plain{at}")
            lay_out(project, files)
            lay_out(plain, files)
            plainly = by_shell(plain, command)
            seconds, data = by_tool(project, command)
            _, checked = by_tool(project, check)
            fine = data["success"] and checked["success"]
            good = good and fine
            print(
                f"{'ok  ' if fine else 'FAIL'} {what}: {seconds:.1f} s, {seconds / plainly:.2f} of a plain shell's {plainly:.1f} s, "
                f"{data['sandbox']['kind']}; check says {checked['output'].strip()[-60:]!r}",
                flush=True,
            )
            if not fine:
                print(data["output"][-1_500:], data["stderr"][-1_500:], checked["stderr"][-500:], sep="\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
