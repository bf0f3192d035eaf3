"""The attacks of each finding, run anew as an ordinary user: with bubblewrap, and where only Landlock is left.

The tests themselves run as whoever runs pytest, which here mostly is root. Each of them claims only what `holds` names, and has
a control that succeeds. So a second user and a second layer are the same tests in a process of that user, for Landlock in a
mount namespace in which bubblewrap is not there. Those that try both by themselves are named for completeness.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import rye
from support.other_users import ORDINARY, python_for

TESTS = Path(__file__).parents[1]
# Finding: its attacks. The first word of each says what it is about.
FINDINGS = {
    1: ("a folder of PATH in the project", ["attacks/test_visible_paths.py"]),
    2: (".git as a file", ["attacks/test_visible_paths.py"]),
    3: ("a nested repository", ["attacks/test_git_actions.py"]),
    4: ("a bare repository", ["attacks/test_git_actions.py", "unit/workspace/test_repositories.py"]),
    5: ("a job outlives its mounts", ["attacks/test_git_actions.py", "unit/process/autorun/test_command_check.py"]),
    6: ("a poisoned line index", ["attacks/test_poisoned_index.py"]),
    7: ("the root's name", ["attacks/test_exchanged_root.py"]),
    8: ("what lies beside a bin", ["attacks/test_visible_paths.py", "unit/sandbox/test_hidden_paths.py"]),
    9: ("programs by their name", ["unit/filesearch/test_tree.py", "attacks/test_hostile_clone.py"]),
    10: ("the project's own settings", ["attacks/test_project_settings.py"]),
    11: ("other files of git's folder", ["attacks/test_git_actions.py"]),
    12: ("names that fold case", ["unit/sandbox/test_sandbox.py", "attacks/test_acted_on_names.py"]),
    13: ("permissions that grow", ["attacks/test_growing_trust.py"]),
    14: ("effects that a tool claims", ["attacks/test_growing_trust.py"]),
    15: ("terminals", ["attacks/test_sandbox_escapes.py"]),
    16: ("setuid", ["attacks/test_sandbox_escapes.py"]),
    17: ("this machine's own network", ["attacks/test_ssrf.py"]),
    18: ("root's reach", ["attacks/test_users_boundaries.py"]),
    19: ("secrets in variables", ["attacks/test_canary_secrets.py", "unit/sandbox/test_environment.py"]),
    20: ("the home as a project", ["attacks/test_users_own_places.py", "attacks/test_acted_on_names.py"]),
    21: ("raw text", ["attacks/test_poisoned_text.py", "attacks/test_growing_trust.py"]),
    22: (
        "exhaustion",
        ["attacks/test_resource_limits.py", "attacks/test_mcp_connections.py", "unit/config/test_yaml_files.py"],
    ),
    23: ("sockets, state and renames", ["attacks/test_resource_limits.py", "unit/config/test_user_dirs.py"]),
    24: ("a cookie jar that a fetch at status writes", ["attacks/test_git_actions.py", "attacks/test_git_keys.py"]),
    25: ("a proxy that takes a token", ["attacks/test_git_actions.py", "attacks/test_git_keys.py"]),
    26: (
        "a .git file, and its settings by another writer",
        ["attacks/test_git_actions.py", "attacks/test_random_repositories.py"],
    ),
    27: ("the user's own setting at another place", ["attacks/test_git_actions.py"]),
    28: ("an undo that outlives its command", ["attacks/test_git_actions.py"]),
    29: ("an upload that is held open, large and small", ["unit/agent_sandbox/test_server.py"]),
    30: ("keys that variables name", ["attacks/test_visible_paths.py"]),
    31: ("steps by the format of a rebase", ["attacks/test_git_actions.py"]),
    32: ("a work tree by a link", ["attacks/test_git_actions.py"]),
    33: ("a module beside a filter", ["attacks/test_git_actions.py"]),
    34: ("a secret that an answer repeats", ["unit/executor/test_http_request.py"]),
    35: ("names that no list had", ["attacks/test_acted_on_names.py"]),
    36: ("hex digits as a commit", ["unit/journal/test_not_recorded.py"]),
    37: ("raw words at a terminal", ["cli/test_hostile_words.py"]),
    38: ("requests to the parent that do not end", ["attacks/test_foreign_tools.py"]),
    39: ("markup on the review pages", ["attacks/test_review_page.py"]),
    40: ("a fleet's dashboard", ["unit/fleet/test_driver.py"]),
    41: ("words of an imported server", ["attacks/test_hostile_mcp_servers.py", "cli/test_mcp_import.py"]),
    42: ("documents that grow", ["unit/web/test_pdf_text.py"]),
    43: ("probes of `rye serve`", ["unit/agent_sandbox/test_server.py"]),
}
# Three ways ended with the words that they needed.
REMOVED = (("blame", "--git-note"), ("daemon", "launchers", "bin"), ("daemon", "status"))
# They run as both users themselves, and where it matters under both layers.
BY_THEMSELVES = {
    "attacks/test_visible_paths.py", "attacks/test_git_actions.py", "attacks/test_sandbox_escapes.py", "attacks/test_git_keys.py",
    "attacks/test_random_repositories.py",
}  # fmt: skip
FILES = sorted({name for _, names in FINDINGS.values() for name in names} - BY_THEMSELVES)
LIBRARIES = ("pytest", "yaml", "cryptography", "jsonschema_rs", "hypothesis", "mcp", "httpx", "uvicorn", "anyio")


def test_every_finding_has_attacks():
    assert sorted(FINDINGS) == list(range(1, 44))
    for _, names in FINDINGS.values():
        assert names
        assert all((TESTS / name).is_file() for name in names), names


def test_what_was_removed_is_no_word(project):
    for words in REMOVED:
        done = subprocess.run([sys.executable, "-m", "rye", *words], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 2, (words, done)


def without_bubblewrap() -> list[str]:
    """Words that start a program where there is no bubblewrap."""
    places = [path for path in ("/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap") if os.path.exists(path)]
    hide = "; ".join(f"mount --bind /dev/null {path}" for path in dict.fromkeys(map(os.path.realpath, places)))
    return ["unshare", "-m", "--propagation", "private", "sh", "-c", f'{hide or ":"}; exec "$@"', "sh"]


def attacked(layer: str, files: list[str]) -> str:
    """Run the tests of some files as an ordinary user; return what pytest printed last."""
    with tempfile.TemporaryDirectory(prefix="rye-findings-", dir="/var/tmp") as name:
        above = Path(name)
        above.chmod(0o755)
        folder, home = above / "checkout", above / "home"
        folder.mkdir()
        skipped = shutil.ignore_patterns("__pycache__", ".pytest_cache")
        package = Path(rye.__file__).parent
        # As in a checkout: tests find the bundle and other files from there.
        for path in ("runtime", ".ai", "tests", "pyproject.toml", "docs", "README.md"):
            source, target = package.parents[1] / path, folder / path
            if source.is_dir():
                shutil.copytree(source, target, ignore=skipped)
            elif source.exists():
                shutil.copy(source, target)
        home.mkdir()
        os.chown(home, ORDINARY, ORDINARY)
        # A virtual environment: processes that ignore the environment's variables find the libraries as well.
        venv = folder / "venv"
        subprocess.run([python_for(ORDINARY), "-m", "venv", "--without-pip", venv], check=True)
        libraries = {str(Path(importlib.import_module(one).__file__).parents[1]) for one in LIBRARIES}
        (where,) = venv.glob("lib/python*/site-packages")
        (where / "rye.pth").write_text("\n".join([str(folder / "runtime"), *sorted(libraries)]))
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        words = ["setpriv", "--reuid", str(ORDINARY), "--regid", str(ORDINARY), "--clear-groups"]
        start = [*without_bubblewrap(), *words] if layer == "landlock" else words
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-n",
            "0",
            "-m",
            "slow or not slow",
            f"--basetemp={home}/t",
            "-x",
            "--no-header",
        ]
        done = subprocess.run(
            [*start, venv / "bin/python", "-m", "pytest", *options, *(f"tests/{one}" for one in files)],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout.strip().splitlines()[-1]


def can_be_asked(layer: str) -> bool:
    if os.geteuid() != 0:
        return False
    start = without_bubblewrap() if layer == "landlock" else []
    return subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("file", FILES)
def test_as_an_ordinary_user(file, layer):
    if not can_be_asked(layer):
        pytest.skip("only root can become another user, or take bubblewrap away")
    print(attacked(layer, [file]))
