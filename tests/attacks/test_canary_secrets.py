"""Twelve secrets in the server's environment and home: none may appear in what a sandboxed command prints, or in any file it leaves.

Run again as a script by the user whom it shall be, `seen` is the process that holds the secrets.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from pathlib import Path

import rye
from rye.sandbox import bubblewrap, sandbox

# The users that run this file as a script have no pytest.
if __name__ != "__main__":
    import pytest

    from support.other_users import UNHIDDEN, USERS, run_as

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


def seen(base: Path, layer: str) -> dict:
    """Call bash and job as an agent would, under a layer of the sandbox or none, events and every log switched on.

    Returns which layer it was, and the canaries that can be seen anywhere.
    """
    if layer == "landlock":
        bubblewrap._PLACES = ()
    home, project = base / "home", base / "project"
    os.environ.update(HOME=str(home), USER_SPACE=str(home))
    config = home / ".ai/config/rye.yaml"
    for folder in (project, config.parent):
        folder.mkdir(parents=True)
    config.write_text(f"log: {{events: true}}\nsandbox: {{mode: '{'auto' if layer else 'off'}'}}\n")
    for name, canary in zip(FILES, CANARIES[6:], strict=True):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(canary)
    log = io.StringIO()
    logging.basicConfig(level=logging.DEBUG, stream=log)

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
    config.write_text("sandbox: {mode: require, require: [no_such_property]}\n")
    answers.append(call("bash", **look))
    assert answers[-1]["status"] == "error" or not answers[-1]["data"]["success"], answers[-1]
    state = [path for path in (home / ".ai/state").rglob("*") if path.is_file()]
    events = [path for path in state if path.name == "events.jsonl"]
    assert "rye/bash/bash" in events[0].read_text()
    kept = [path for path in (*state, *project.rglob("*")) if path.is_file()]
    said = json.dumps(answers) + log.getvalue() + "".join(f"{path}{path.read_bytes()!r}" for path in kept)
    return {"layer": answers[0]["data"]["sandbox"]["kind"], "seen": [canary for canary in CANARIES if canary in said]}


if __name__ == "__main__":
    print(json.dumps(seen(Path(sys.argv[1]), sys.argv[2])))
else:

    @pytest.mark.parametrize("layer", ["", "bubblewrap", "landlock"], ids=["control", "bubblewrap", "landlock"])
    @pytest.mark.parametrize("user", USERS)
    def test_no_secret_of_the_server_is_seen_in_answers_logs_and_what_is_kept(user, layer):
        if layer and sandbox.layers()[layer]:
            pytest.skip(sandbox.layers()[layer])
        values = zip(VARIABLES.items(), CANARIES[:6], strict=True)
        env = {name: value.format(canary) for (name, value), canary in values}
        (found,) = run_as(user, [Path(__file__)], layer, below=UNHIDDEN, env=env)
        assert found == {"layer": layer or "none", "seen": [] if layer else CANARIES}
