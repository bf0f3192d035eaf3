"""From `git clone` to an agent's first edit: how many commands a newcomer types, and how many seconds they take.

    PYTHONPATH=tests RYE_CLIENTS=FOLDER python benchmarks/first_edit.py [CLIENT …]

Everything is done for each client in a home of its own: the clone (of this checkout), the installation as the README says it, with the
package cache of this user, `rye mcp install --write`, and one prompt to the client. The client is installed before; a scripted model
API on loopback makes it call `read` and `edit_lines`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support import client_programs

ROOT = Path(__file__).parents[1]
CLIENTS = ("claude-code", "codex", "gemini-cli", "opencode")
EDIT = "2|    return round(sum(prices), 2)"
STEPS = [("read", {"file_path": "app.py"}), ("edit_lines", {"file_path": "app.py", "changes": [EDIT]})]


def measured(name: str, base: Path) -> tuple[list[tuple[str, float]], bool]:
    """Return each typed command with its seconds, and whether the file was edited."""
    why = client_programs.install(name, base / name)
    if why:
        raise SystemExit(why)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home, project = Path(folder), Path(folder, "project")
        (project / ".git").mkdir(parents=True)
        (project / "app.py").write_text("def total(prices):\n    return sum(prices)\n")
        clone = home / "rye"
        option = client_programs.PROGRAMS[name].client
        typed = [
            f"git clone {ROOT} {clone}",
            f"python3 -m venv {clone}/.venv && {clone}/.venv/bin/pip install --quiet -e '{clone}[mcp]'",
            f"{clone}/.venv/bin/rye mcp install --client {option} --write",
        ]
        env = {**os.environ, "HOME": str(home), "USER_SPACE": str(home), "PIP_CACHE_DIR": str(_pip_cache())}
        env.pop("PYTHONPATH", None)
        times = []
        for line in typed:
            begun = time.monotonic()
            subprocess.run(["bash", "-euc", line], cwd=project, env=env, capture_output=True, check=True)
            times.append((line.replace(str(clone), "rye").replace(str(ROOT), "URL"), time.monotonic() - begun))
        client_programs.RYE[:] = [f"{clone}/.venv/bin/rye"]
        begun = time.monotonic()
        client_programs.play(name, base / name, project, home, STEPS)
        words = client_programs.typed_words(option)
        times.append((shlex.join(words), time.monotonic() - begun))
        return times, "round(" in (project / "app.py").read_text()


def _pip_cache() -> Path:
    return Path(os.environ.get("PIP_CACHE_DIR") or Path.home() / ".cache/pip")


def main() -> None:
    base = Path(os.environ.get("RYE_CLIENTS") or tempfile.mkdtemp())
    print("| client | commands typed | clone | install | tell the client | first edit | seconds in all |")
    print("|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or CLIENTS:
        times, edited = measured(name, base)
        cells = " | ".join(f"{seconds:.1f}" for _, seconds in times)
        total = sum(seconds for _, seconds in times)
        title = client_programs.PROGRAMS[name].title
        print(f"| {title} | {len(times)} | {cells} | {total:.1f}{'' if edited else ' (no edit!)'} |", flush=True)
    for line, _ in times:
        print(f"$ {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
