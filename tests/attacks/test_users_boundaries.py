"""Root's reach: the files of other users, and the system's own secrets."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rye.sandbox import bubblewrap, hidden_paths, sandbox
from support.other_users import ORDINARY, UNHIDDEN
from support.shell_calls import bash, set_sandbox

ANOTHER = 65533
pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="only root can be root")]


@pytest.fixture(params=["bubblewrap", "landlock"])
def layer(request, monkeypatch):
    """The layer that confines."""
    if why_not := sandbox.layers()[request.param]:
        pytest.skip(why_not)
    if request.param == "landlock":
        monkeypatch.setattr(bubblewrap, "_PLACES", ())
    bubblewrap.ability.cache_clear()
    yield request.param
    bubblewrap.ability.cache_clear()


@pytest.fixture
def place(tmp_path_factory):
    """A folder that no sandbox hides."""
    with tempfile.TemporaryDirectory(prefix="rye-users-", dir=UNHIDDEN) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_root_in_another_users_project_reads_no_other_users_files(place, user_space, layer, monkeypatch):
    project = place / "project"
    project.mkdir()
    (project / "file").write_text("text")
    for path in (project, project / "file"):
        os.chown(path, ORDINARY, ORDINARY)
    # Nor what the owner has at home, as whom the command runs.
    (place / "home").mkdir()
    os.chown(place / "home", ORDINARY, ORDINARY)
    monkeypatch.setattr(hidden_paths, "_accounts_home", {0: "/root", ORDINARY: str(place / "home")}.get)
    for name, owner in (("roots", 0), ("anothers", ANOTHER), ("home/owners", ORDINARY)):
        (place / name).write_text("canary")
        (place / name).chmod(0o600)
        os.chown(place / name, owner, owner)
    wrote = "mkdir -p ~/.x && touch ${TMPDIR:-/tmp}/y && echo wrote"
    command = f"cat {place}/roots {place}/anothers {place}/home/owners; id -u; cat file; echo new > new; {wrote}"
    set_sandbox(user_space, "off")
    assert bash(project, command)["output"].count("canary") == 3
    (project / "new").unlink()
    set_sandbox(user_space, "auto")
    found = bash(project, command)
    assert "canary" not in found["output"], found
    assert found["output"].splitlines()[:2] == [str(ORDINARY), "textwrote"], found
    assert ((project / "new").stat().st_uid, found["sandbox"]["kind"]) == (ORDINARY, layer)
    assert "home_hidden" in found["sandbox"]["holds"]


def test_another_mount_of_its_file_system_shows_no_hidden_folder(place, project, layer):
    for name in ("home", "also"):
        (place / name).mkdir()
    (place / "home/key").write_text("canary\n")
    command = {"command": f"cat {place}/also/home/key"}
    called = f"rye.execute('rye/bash/bash', {command}, project_path={str(project)!r})['data']['output']"
    code = f"import rye; from rye.sandbox import bubblewrap; bubblewrap._PLACES = {bubblewrap._PLACES}; print({called})"
    script = f'mount --bind {place} {place}/also && {command["command"]} && HOME={place}/home exec "$@"'
    words = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", sys.executable, "-c", code]
    # The first one is the control.
    assert subprocess.run(words, capture_output=True, check=True, timeout=60).stdout.count(b"canary") == 1


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"])
@pytest.mark.usefixtures("layer")
def test_the_systems_secrets_and_their_copies_are_hidden(project, user_space, path):
    if not os.path.exists(path) or not os.path.getsize(path):
        pytest.skip(f"no {path} here")
    set_sandbox(user_space, "off")
    assert int(bash(project, f"cat {path} | wc -c")["output"]) > 0
    set_sandbox(user_space, "auto")
    assert bash(project, f"cat {path} | wc -c")["output"] == "0\n"
