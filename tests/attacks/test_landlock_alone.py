"""Where Landlock is the only sandbox: a command can write git's hooks and settings, so the look after it must set them aside."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from rye.sandbox import landlock
from support.other_users import USERS, as_user, python_for, system_copy, without_bubblewrap

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(bool(landlock.why_not()) or os.geteuid() != 0, reason="needs Landlock, and root to hide bubblewrap"),
]

WRITES = (
    "printf '#!/bin/sh\\ntouch $OUT/hook\\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; "
    "git config core.fsmonitor 'touch $OUT/setting; false'; echo 'touch $OUT/start' > .envrc"
)
TOLD = "Landlock, which does not protect names"


@pytest.fixture(params=USERS)
def there(request):
    """A project of a user in a place that he can read, and what runs `rye` there without bubblewrap."""
    base = Path(tempfile.mkdtemp(prefix="rye-landlock-", dir="/var/tmp"))
    user = request.param
    code = base / "code"
    code.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": f"{base}/home", "USER_SPACE": f"{base}/home", "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPATH"] = system_copy(code, "other_users.py")
    base.chmod(0o755)
    for name in ("project", "home", "out"):
        (base / name).mkdir()
        os.chown(base / name, user, user)
    subprocess.run(["git", "init", "-q", base / "project"], check=True, **as_user(user))
    switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []

    def run(*words, **more):
        argv = [*without_bubblewrap(), *switch, python_for(user), "-m", "rye", *words]
        return subprocess.run(
            argv, cwd=base / "project", env={**env, **more}, capture_output=True, text=True, check=False, timeout=120
        )

    def git():
        for words in (("status",), ("commit", "-q", "--allow-empty", "-m", "x")):
            identity = ["-c", "user.name=u", "-c", "user.email=u@x"]
            subprocess.run(
                ["git", *identity, *words], cwd=base / "project", env=env, capture_output=True, check=False, **as_user(user)
            )
        return sorted(os.listdir(base / "out"))

    yield base, run, git
    subprocess.run(["rm", "-rf", base], check=True)


def test_hooks_and_settings_that_a_command_wrote_are_set_aside_and_it_is_said_once_a_day(there):
    base, run, git = there
    writes = WRITES.replace("$OUT", str(base / "out"))
    done = run("bash", writes)
    assert done.returncode == 0, done.stderr
    assert "Set aside: " in done.stdout + done.stderr
    assert git() == []
    assert not (base / "project/.envrc").exists()
    # Once a day, on standard error.
    assert done.stderr.count(TOLD) == 1, done.stderr
    assert TOLD not in run("bash", "true").stderr
    told = base / "home/.ai/state/landlock-told"
    os.utime(told, (time.time() - 90_000,) * 2)
    assert run("bash", "true").stderr.count(TOLD) == 1
    # What must not be: the command is not run.
    refused = run("bash", "touch ran", "sandbox=require")
    assert "protected_names" in refused.stderr, refused
    assert not (base / "project/ran").exists()
    # Control: the same words of the user's own are theirs, and git acts on them.
    own = {"PATH": os.environ["PATH"], "HOME": f"{base}/home"}
    subprocess.run(["sh", "-c", writes], cwd=base / "project", check=True, env=own, **as_user((base / "out").stat().st_uid))
    assert git() == ["hook", "setting"]


def test_what_a_persons_command_line_set_up_stays_and_a_commands_own_is_set_aside(there):
    base, run, _ = there
    install = ("mcp", "install", "--client", "claude-code", "--scope", "project", "--write")
    settings = base / "project/.mcp.json"
    assert run("bash", "true").returncode == 0
    done = run(*install)
    assert done.returncode == 0, done
    written = settings.read_bytes()
    (base / "mcp.json").write_bytes(written)
    for _ in range(2):
        done = run("bash", "true")
        assert "Set aside: " not in done.stdout + done.stderr, done
    assert settings.read_bytes() == written
    # Control: what a command sets up is the command's.
    settings.unlink()
    assert run("bash", "true").returncode == 0
    done = run("bash", f"cat {base}/mcp.json > .mcp.json")
    assert "Set aside: " in done.stdout + done.stderr, done
    assert not settings.exists()
