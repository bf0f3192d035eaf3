"""Attacks on what a sandboxed command can see, run as a process of its own by the user whom it shall be.

`python visible_paths.py FOLDER LAYER FIRST STEP` prints a line of JSON for each attack (every STEP-th, from FIRST on): `name`,
`control` (it succeeds without a sandbox), `succeeded` (under "require"), `held` (the report lists `home_hidden`), `said`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CANARY = "canary-77c0de"


@dataclass(frozen=True)
class Attack:
    """Commands of a model, one call after the other; the attack succeeds when the last one prints the canary.

    `path` is what stands in the server's PATH beside the system's folders, `setup` runs as the user before it, `variables`
    are further ones of the server.
    """

    name: str
    calls: tuple[str, ...]
    path: str = ""
    setup: str = ""
    variables: tuple[tuple[str, str], ...] = ()


def _named(variable: str, file: str, value: str = "", control: str = "") -> Attack:
    """A variable of the server names a file of credentials outside every home, or a folder with it."""
    place = f"$B/srv/{file}"
    setup = f"mkdir -p $(dirname {place}); echo CANARY > {place}; {control}"
    return Attack(f"{variable} names {value or file}", (f"cat {place}",), "", setup, ((variable, f"$B/srv/{value or file}"),))


_EVIL = (
    'mkdir -p evil; printf "%s" $ROOT/.git > evil/gitdir; echo {target} > evil/commondir; echo x > evil/HEAD; '
    "mv .git g.old; echo 'gitdir: {place}' > .git"
)
ATTACKS = [
    Attack("a folder of PATH becomes a link", ("rm -rf bin; ln -s $H/.ssh/work bin", "cat bin/id_rsa $H/.ssh/work/id_rsa"), "$ROOT/bin"),
    Attack("an environment's bin becomes a link", ("rm -rf .venv; mkdir .venv; ln -s $H/.ai/keys .venv/bin", "cat $H/.ai/keys/private_key.pem"), "$ROOT/.venv/bin"),
    Attack("the folder above a bin becomes a link",
        ("mv .venv v; ln -s $H/cloud .venv; true", "cat $H/cloud/token $H/cloud/bin/token"), "$ROOT/.venv/bin",
        "mkdir -p $H/cloud/bin; echo CANARY | tee $H/cloud/token > $H/cloud/bin/token"),
    Attack("a link outside leads through the project", ("rm -rf tools; ln -s $H/.ssh/work tools", "cat $H/.ssh/work/id_rsa $H/mytools/id_rsa"), "$H/mytools", "ln -s $ROOT/tools $H/mytools"),
    Attack("a chain of links in the project", ("rm -rf bin; ln -s b2 bin; ln -s ../home/.ssh/work b2", "cat $H/.ssh/work/id_rsa"), "$ROOT/bin"),
    Attack("the interpreter's name becomes a link", ("rm $ROOT/.venv/bin/python; ln -s $H/.ssh/work/id_rsa $ROOT/.venv/bin/python", "cat $H/.ssh/work/id_rsa")),
    Attack("a .git file names a folder of the project", ("cat $H/.ai/keys/private_key.pem",), setup="cd $ROOT; " + _EVIL.format(target="$H/.ai/keys", place="evil")),
    Attack("a .git file names it by its absolute path", ("cat $H/.ssh/work/id_rsa",), setup="cd $ROOT; " + _EVIL.format(target="$H/.ssh/work", place="$ROOT/evil").replace("'", '"')),
    Attack("a .git file names a worktree of the project", ("cat $H/.ssh/work/id_rsa",), setup="cd $ROOT; mkdir -p r/worktrees; "
        + _EVIL.format(target="$H/.ssh/work", place="r/worktrees/e")
        + "; mv evil r/worktrees/e; mkdir -p $H/.ssh/work/objects $H/.ssh/work/refs; echo x > $H/.ssh/work/HEAD"),
    Attack("a .git file and a common folder given relative to the server's own folder", ("cat $H/.ssh/work/id_rsa",),
        setup="cd $ROOT; mkdir evil; mv .git g.old; echo .git > evil/gitdir; echo $H/.ssh/work > evil/commondir; "
        "echo 'gitdir: evil' > .git"),
    Attack("another project's folder poses as a repository", ("cat $H/.ssh/work/id_rsa",),
        setup="cd $ROOT; mv .git g.old; mkdir -p $B/other/x; echo $ROOT/.git > $B/other/x/gitdir; "
        'echo $H/.ssh/work > $B/other/x/commondir; echo "gitdir: $B/other/x" > .git'),
    Attack("beside ~/.fly/bin", ("cat $H/.fly/config.yml",), "$H/.fly/bin", "echo CANARY > $H/.fly/config.yml"),
    Attack("below ~/.foundry", ("cat $H/.foundry/keystores/key",), "$H/.foundry/bin", "mkdir -p $H/.foundry/keystores; echo CANARY > $H/.foundry/keystores/key"),
    _named("RYE_SIGNING_KEY", "release:key.pem"),
    _named("RYE_SIGNING_KEY", "release/key.pem", "linked", "ln -s release/key.pem $B/srv/linked"),
    Attack("RYE_SIGNING_KEY names a file relative to the server's folder", ("cat $B/srv/key.pem",), setup="mkdir $B/srv; echo CANARY > $B/srv/key.pem", variables=(("RYE_SIGNING_KEY", "../srv/key.pem"),)),
    Attack("the user's key is a link to a file elsewhere", ("cat $B/srv/key.pem",), setup="mkdir $B/srv; echo CANARY > $B/srv/key.pem; ln -sf $B/srv/key.pem $H/.ai/keys/private_key.pem"),
    _named("CARGO_HOME", "cargo/credentials.toml", "cargo", "mkdir $B/srv/cargo/bin"),
    _named("GH_CONFIG_DIR", "gh/hosts.yml", "gh"),
    _named("GH_CONFIG_DIR", "gh/unknown", "gh", "touch $B/srv/gh/hosts.yml"),
    _named("HF_TOKEN_PATH", "token"),
    _named("HF_HOME", "hf/token", "hf"),
    _named("BOTO_CONFIG", "boto.cfg"),
    _named("PIP_CONFIG_FILE", "pip.conf"),
    _named("SOPS_AGE_KEY_FILE", "age.txt"),
    _named("AWS_WEB_IDENTITY_TOKEN_FILE", "jwt"),
    _named("CREDENTIALS_DIRECTORY", "unit/database", "unit"),
    _named("SOME_SECRET_FILES", "b", "a:$B/srv/b"),
    _named("WORK_HOME", "../token", "..", "true"),
    Attack("the address of a socket", ("cat $B/srv/bus",), "", "mkdir $B/srv; echo CANARY > $B/srv/bus", (("BUS", "unix:path=$B/srv/bus,x=1"),)),
]  # fmt: skip
_SHOWN = "jdk/lib.jar sdk/part lib/so browser model toolchain.cmake"
_NO_SECRETS = {
    "JDK_HOME": "$B/srv/jdk", "SDK_DIR": "$B/srv/sdk", "LD_LIBRARY_PATH": "$B/srv/lib:/usr/lib", "MODEL_PATH": "$B/srv/model",
    "CHROME_PATH": "$B/srv/browser", "AWS_CA_FILE": "/etc/passwd", "LLVM_CONFIG": "/usr/bin/env",
    "PIP_CONFIG_FILE": "/dev/null", "SYSTEM_KEY_DIR": "/etc", "PASS_HOME": "/usr", "PASSED_FILE": "$B/srv/toolchain.cmake",
}  # fmt: skip
"""Variables of the server while the commands of `WORKING` run; `PASSED_FILE` is in `pass_env`."""

# Commands that must go on working: (name, PATH, setup, command), each prints `works`.
WORKING = [
    (
        "a tool in a home runs with its library", "$H/.fly/bin",
        ("mkdir -p $H/.fly/lib; echo works > $H/.fly/lib/data; "
        "printf '#!/bin/sh\\ncat $(dirname $0)/../lib/data\\n' > $H/.fly/bin/fly; chmod 755 $H/.fly/bin/fly"), "fly",
    ),
    (
        "what variables name without credentials, and what a command gets by name", "",
        (f"mkdir -p $B/srv/jdk/bin $B/srv/sdk $B/srv/lib; cd $B/srv; touch jdk/config.json; cp /bin/cat browser;"
        f"head -c 2M /dev/zero > model; for f in {_SHOWN}; do test -e $f || echo x > $f; done"),
        (f"cd $B/srv; for f in {_SHOWN} /etc/passwd /usr/bin/env /dev/null; do [ -s $f -o -c $f ] || echo hidden $f; done;"
        "echo works | ./browser"),
    ),
    (
        "a wrong common folder stops no command", "",
        ("cd $ROOT; mv .git g.old; mkdir -p $B/other/x; echo $ROOT/.git > $B/other/x/gitdir; "
        'echo /no/such/folder > $B/other/x/commondir; echo "gitdir: $B/other/x" > .git'), "echo works",
    ),
    ("a NUL in a .git file stops no command", "", "cd $ROOT; mv .git g.old; printf 'gitdir: a\\0b' > .git", "echo works"),
    ("a circle of links stops no command", "$ROOT/bin", "cd $ROOT; rm -rf bin; ln -s bin2 bin; ln -s bin bin2", "echo works"),
]  # fmt: skip


class Base:
    """A home with keys, and a project with an environment."""

    def __init__(self, base: Path, python: str) -> None:
        self.base, self.python = base, python
        self.env = {"H": f"{base}/home", "ROOT": f"{base}/project", "B": str(base), "PY": python}

    def build(self) -> None:
        for name in ("project", "home", "other", "srv"):
            shutil.rmtree(self.base / name, ignore_errors=True)
        for path in (".ssh/work/id_rsa", ".ai/keys/private_key.pem"):
            (self.base / "home" / path).parent.mkdir(parents=True, exist_ok=True)
            (self.base / "home" / path).write_text(CANARY)
        for name in (".fly/bin", ".foundry/bin"):
            (self.base / "home" / name).mkdir(parents=True)
        for name in ("bin", "tools", ".git/objects", ".git/refs", ".venv/bin"):
            (self.base / "project" / name).mkdir(parents=True)
        (self.base / "project/.git/HEAD").write_text("ref: refs/heads/main\n")
        (self.base / "project/.venv/bin/python").symlink_to(self.python)

    def prepare(self, setup: str, path: str, variables: dict[str, str]) -> None:
        self.build()
        for name in {name for one in ATTACKS for name, _ in one.variables} | {*_NO_SECRETS}:
            os.environ.pop(name, None)
        os.environ |= {name: os.path.expandvars(value) for name, value in variables.items()}
        if setup:
            env = {**self.env, "PATH": os.defpath}
            subprocess.run(["/bin/bash", "-ec", setup.replace("CANARY", CANARY)], env=env, check=True)
        # As a server that was started in the project: a name that is relative to its folder must not count either.
        os.chdir(self.env["ROOT"])
        os.environ["PATH"] = f"{os.path.expandvars(path)}:{SYSTEM}" if path else SYSTEM

    def call(self, command: str, mode: str) -> tuple[str, dict]:
        from confined import run_confined

        from rye.sandbox import sandbox

        root = self.env["ROOT"]
        policy = sandbox.Policy(root, root, network="off", env=self.env, pass_env=("PASSED_FILE",), required=("home_hidden",))
        done, report = run_confined(["/bin/bash", "-c", command], policy, mode, cwd=root)
        return (done.stdout + done.stderr).decode("utf-8", "replace"), report

    def attack(self, one: Attack, mode: str) -> tuple[bool, dict, str]:
        self.prepare(one.setup, one.path, dict(one.variables))
        # What this process is started by, for the attack on the interpreter's name.
        started_by, sys.executable = sys.executable, f"{self.env['ROOT']}/.venv/bin/python"
        try:
            for command in one.calls:
                said, report = self.call(command, mode)
        finally:
            sys.executable = started_by
        return CANARY in said, report, said


SYSTEM = "/usr/local/bin:/usr/bin:/bin"


def main() -> int:
    base, layer = Path(sys.argv[1]), sys.argv[2]
    home = f"{base}/home"
    os.environ |= {"HOME": home, "USER_SPACE": home, "H": home, "ROOT": f"{base}/project", "B": str(base)}
    from rye.sandbox import bubblewrap, sandbox

    if layer == "landlock":
        bubblewrap._PLACES = ()
    arena = Base(base, os.readlink("/proc/self/exe"))
    print(json.dumps([name for name, why in sandbox.layers().items() if not why][:1]), flush=True)
    for one in ATTACKS[int(sys.argv[3]) :: int(sys.argv[4])]:
        control, _, said = arena.attack(one, "off")
        succeeded, report, said_inside = arena.attack(one, "require")
        told = {"name": one.name, "control": control, "succeeded": succeeded, "held": "home_hidden" in report["holds"]}
        print(json.dumps({**told, "said": said_inside if control else said}), flush=True)
    for name, path, setup, command in WORKING:
        arena.prepare(setup, path, _NO_SECRETS)
        said, _ = arena.call(command, "auto")
        print(json.dumps({"name": name, "works": said == "works\n", "said": said}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
