"""Twelve secrets in the server's environment and home: none may appear in what a sandboxed command prints, or in any file it leaves.

Run again as a script by the user whom it shall be, `server` is the process that holds the secrets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# The users that run this file as a script have no pytest.
if __name__ != "__main__":
    import pytest

    pytestmark = pytest.mark.slow


VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": "{}", "GITHUB_TOKEN": "{}", "NOTES": "{}", "DATABASE_URL": "postgres://me:{}@db/x",
    "HTTPS_PROXY": "http://me:{}@proxy:3128", "PIP_INDEX_URL": "https://me:{}@index/simple",
}  # fmt: skip
FILES = (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".bash_history", ".ai/keys/private.pem")
CANARIES = [f"canary{number:02}" for number in range(12)]
LOOK = """
env; cat /proc/*/environ 2>&1; cat /proc/$SERVER/environ; cat /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline
cat ~/.* ~/.ssh/* ~/.aws/* ~/.config/gh/* ~/.ai/keys/*; for h in $REAL /proc/$SERVER/root$REAL; do cat $h/.??* $h/.*/*  $h/.*/*/*; done
cp -r $REAL copy; cp /proc/$SERVER/environ copied; ln $REAL/.netrc linked; ls -laR $REAL; false
"""


def server(base: Path, layer: str) -> dict:
    """Run the command sandboxed and not; return which canaries can be seen where."""
    home, project = base / "home", base / "project"
    os.environ.update(HOME=str(home), USER_SPACE=str(home))
    from rye.errors import RyeError
    from rye.sandbox import bubblewrap, sandbox

    if layer == "landlock":
        bubblewrap._PLACES = ()
    found = {"active": next((name for name, why in sandbox.layers().items() if not why), "")}
    for mode in ("off", "auto"):
        for path in (home, project):
            path.mkdir(exist_ok=True)
        for name, canary in zip(FILES, CANARIES[6:], strict=True):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(canary)
        policy = sandbox.Policy(str(project), str(project), env={"REAL": str(home), "SERVER": str(os.getpid())})
        confined = sandbox.confine(["/bin/sh", "-c", LOOK], policy, mode)
        done = subprocess.run(
            confined.argv,
            env=confined.env,
            pass_fds=confined.fds,
            cwd=project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        confined.close()
        during = json.dumps([confined.report, confined.argv, confined.env])
        confined.finish()
        said = done.stdout + done.stderr + during.encode()
        try:
            sandbox.confine(
                ["/bin/true"], sandbox.Policy(str(project), str(project), required=("no such property",)), "require"
            )
        except RyeError as err:
            said += str(err).encode() + json.dumps(err.details).encode()
        kept = [path for folder in (project, home / ".ai/state") for path in folder.rglob("*") if path.is_file()]
        said += b"".join(path.read_bytes() + str(path).encode() for path in kept)
        found[mode] = [canary for canary in CANARIES if canary.encode() in said]
        subprocess.run(["rm", "-rf", project], check=True)
    return found


def through_the_tools(base: Path, mode: str) -> list[str]:
    """Call bash and job as an agent would, events and every log switched on; return the canaries that can be seen anywhere."""
    home, project = base / "home", base / "project"
    os.environ.update(HOME=str(home), USER_SPACE=str(home))
    (home / ".ai/config").mkdir(parents=True)
    (home / ".ai/config/rye.yaml").write_text(f"log: {{events: true}}\nsandbox: {{mode: {mode}}}\n")
    project.mkdir(parents=True)
    for name, canary in zip(FILES, CANARIES[6:], strict=True):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(canary)
    import io
    import logging

    log = io.StringIO()
    logging.basicConfig(level=logging.DEBUG, stream=log)
    import rye

    def call(tool: str, **parameters: object) -> dict:
        return rye.execute(f"rye/bash/{tool}", parameters, project_path=project)

    look = {"command": LOOK, "env": {"REAL": str(home), "SERVER": str(os.getpid())}}
    answers = [call("bash", **look), call("bash", **{**look, "command": LOOK + "sleep 60"}, timeout=2)]
    assert answers[1]["data"]["timed_out"]
    answers.append(call("bash", **look, working_dir="nowhere"))
    answers.append(call("bash", **look, background=True))
    job_id = answers[-1]["data"]["job_id"]
    answers += [call("job", action="wait", job_id=job_id, timeout=120), call("job", action="read", job_id=job_id)]
    answers.append(call("job", action="list"))
    state = [path for path in (home / ".ai/state").rglob("*") if path.is_file()]
    events = [path for path in state if path.name == "events.jsonl"]
    assert "rye/bash/bash" in events[0].read_text()
    kept = [path for path in (*state, *project.rglob("*")) if path.is_file()]
    said = json.dumps(answers) + log.getvalue() + "".join(f"{path}{path.read_bytes()!r}" for path in kept)
    return [canary for canary in CANARIES if canary in said]


def seen(user: int, layer: str) -> dict:
    from attacks.test_sandbox_escapes import arena, as_user, python_for

    with arena(user) as (folder, _):
        (folder / "canaries.py").write_text(Path(__file__).read_text())
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        env |= {name: value.format(canary) for (name, value), canary in zip(VARIABLES.items(), CANARIES[:6], strict=True)}
        argv = [python_for(user), folder / "canaries.py", folder / "base", layer]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False, **as_user(user))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_secret_of_the_server_is_seen():
    from attacks.test_sandbox_escapes import LAYERS, USERS

    for user in USERS:
        for layer in LAYERS:
            found = seen(user, layer)
            print(
                f"user {user}, {found['active']}: {len(found['off'])} of 12 seen without a sandbox, {len(found['auto'])} with it"
            )
            assert found["off"] == CANARIES
            if found["active"]:
                assert found["auto"] == []
            else:
                assert layer == "landlock", "no layer works on this machine"


def test_nor_through_the_tools_their_logs_and_what_they_keep(tmp_path):
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    env |= {name: value.format(canary) for (name, value), canary in zip(VARIABLES.items(), CANARIES[:6], strict=True)}
    for mode, wanted in (("off", CANARIES), ("auto", [])):
        argv = [sys.executable, __file__, tmp_path / mode, mode]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        print(f"through the tools, {mode}: {len(found)} of 12 seen")
        assert found == wanted


if __name__ == "__main__":
    work = server if sys.argv[2] in ("bubblewrap", "landlock") else through_the_tools
    print(json.dumps(work(Path(sys.argv[1]), sys.argv[2])))
