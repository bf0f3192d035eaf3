"""Type-check the signed tool files as strictly as the package.

Their folders are no Python packages, and some share a name with a standard module (`glob`), so mypy is shown copies under the
names `tool_<category>_<name>`. Messages name the real files. A bare `dict` is allowed: it is how a tool is written.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".ai" / "tools"


def main() -> int:
    """Return mypy's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        names = {}
        for path in sorted(TOOLS.rglob("*.py")):
            inside = path.relative_to(TOOLS).with_suffix("")
            copy = pathlib.Path(folder, "tool_" + "_".join(inside.parts).replace("-", "_") + ".py")
            copy.write_bytes(path.read_bytes())
            names[str(copy)] = str(path.relative_to(ROOT))
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--allow-any-generics", *names]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    for copy, name in names.items():
        done.stdout = done.stdout.replace(copy, name)
    print(done.stdout + done.stderr, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
