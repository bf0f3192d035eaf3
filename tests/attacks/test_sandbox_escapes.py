"""Ways out of the sandbox, as root and as an ordinary user, under each layer: none that it claims to hold may succeed.

Every way (`support/escapes.py`, `support/visible_paths.py`, and what is here) has a control: without a sandbox it succeeds. So each
property that a report lists has an attack that succeeds when it is switched off, and fails when it holds.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import rye
from rye.sandbox import launcher, resource_limits, sandbox
from support.confined import run_confined
from support.escapes import WAYS
from support.harness import times
from support.machine import needs_bubblewrap
from support.other_users import UNHIDDEN, USERS, run_as
from support.shell_calls import bash, configure, job, started
from support.waiting import until

CANARY = "canary-5f1c0e"
# What the machine itself may refuse, a sandbox or not: read-only /proc/sys, no devices, mounts without setuid.
MACHINE_MAY_REFUSE = {"a system setting", "a device", "a setuid program"}


def tried(user: int, layer: str, *names: str) -> tuple[dict, list[dict]]:
    """Try ways out as a user; for root where no sandbox hides the folder itself, so that writes have a target."""

    def prepare(base: Path) -> None:
        (base / "outside").mkdir()
        (base / "rootonly").write_text("WAS-HERE")
        (base / "rootonly").chmod(0o600)
        if user != os.geteuid():
            os.chown(base / "outside", user, user)
            shutil.copy("/bin/sh", base / "outside/setuid")
            (base / "outside/setuid").chmod(0o4755)

    with tempfile.NamedTemporaryFile() as secret:
        secret.write(CANARY.encode())
        secret.flush()
        os.chmod(secret.name, 0o644)
        env = {"TEMP_SECRET": secret.name, "MY_API_KEY": CANARY, "NOTES": CANARY}
        layers, *ways = run_as(user, ["escapes.py", "confined.py"], layer, *names, below=UNHIDDEN, env=env, prepare=prepare)
    return layers, ways


def judged(layers: dict, ways: list[dict], say=print) -> None:
    active = layers["active"]
    say(f"active: {active}; not usable: { ({name: why for name, why in layers['layers'].items() if why}) }")
    assert active, "no layer works on this machine"
    for way in ways:
        assert way["control"] or way["name"] in MACHINE_MAY_REFUSE, f"the control of {way['name']!r} failed: {way['said']}"
        assert not (way["held"] and way["escaped"]), way
    proven = [way for way in ways if way["control"] and way["held"]]
    say(f"{len(proven)} of {len(ways)} ways held, each with a control; {sum(way['escaped'] for way in ways)} succeed")
    if active == ["bubblewrap"]:
        assert len(proven) >= len(ways) - len(MACHINE_MAY_REFUSE)
        assert not [way["name"] for way in ways if way["escaped"]]
    else:
        assert len(proven) >= len(ways) // 2


def some(count: int, ways: list, each: int = 1) -> list[str]:
    """Return the names of some ways, with so many of each property."""
    seed = random.randrange(10**6)
    print("seed:", seed)
    ways = random.Random(seed).sample(ways, len(ways))
    return [way.name for at, way in enumerate(ways) if at < count or sum(one.prop == way.prop for one in ways[:at]) < each]


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.parametrize("user", USERS)
def test_no_way_out(user):
    ways = [way for way in WAYS if not (way.user_only if user == 0 else way.root_only)]
    layers, found = tried(user, "bubblewrap", *some(20, ways, each=2))
    judged(layers, found)
    if layers["active"] == ["bubblewrap"]:
        proven = {way["property"] for way in found if way["control"] and way["held"]}
        assert proven == {way.prop for way in ways}


@pytest.mark.slow
def test_without_bubblewrap_what_the_report_claims_holds():
    # Protected names are not claimed there: two ways of them show it.
    ways = [way for way in WAYS if way.prop != "protected_names" and not way.root_only]
    names = [*some(12, ways), "a git hook", "limits a process"]
    layers, ways = tried(USERS[-1], "landlock", *names)
    if not layers["active"]:
        # A kernel without Landlock: then bubblewrap must be what holds here.
        assert not tried(USERS[-1], "bubblewrap", "shell writes a file")[0]["layers"]["bubblewrap"]
        return
    judged(layers, ways)
    assert [way for way in ways if way["escaped"]], "a layer that holds less must say so, and does"


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("user", USERS)
def test_no_path_that_a_command_can_change_shows_what_is_hidden(user, layer):
    # Where nothing above is hidden: hiding must be the work of the view, not of its place.
    if UNHIDDEN is None and layer == "landlock":
        pytest.skip("this user can write to no folder that is not hidden")
    # Each user tries each attack under one layer; a run of full size all under both.
    share = ((USERS.index(user) + (layer == "landlock")) % 2, 2) if times(1) == 1 and len(USERS) == 2 else (0, 1)
    active, *found = run_as(user, ["visible_paths.py", "confined.py"], layer, *share, below=UNHIDDEN)
    if active != [layer]:
        pytest.skip(f"{layer} does not work on this machine")
    attacks = [one for one in found if "control" in one]
    assert len(attacks) >= 13
    for one in attacks:
        assert one["control"], f"without a sandbox the attack {one['name']!r} must succeed: {one['said']}"
        assert one["held"], one
        assert not one["succeeded"], one
    for one in found:
        assert one.get("works", True), one


# Property: (what the policy says where it holds, what a command does, how it shows: file of the project, or output).
BY_POLICY = {
    "project_read_only": ({"write_project": False}, "echo WAS-HERE > made; cat made"),
    "project_hidden": ({"read_project": False}, "cat $ROOT/file"),
    "no_programs": ({"run": False}, "/bin/echo WAS-HERE"),
    "network_off": ({"network": "off"}, "bash -c 'echo > /dev/tcp/127.0.0.1/$PORT && echo WAS-HERE'"),
}
WITH_WAYS = {way.prop for way in WAYS}


def test_every_property_has_an_attack():
    assert set(sandbox.PROPERTIES) == WITH_WAYS | set(BY_POLICY) | {resource_limits.NAME}


@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"], indirect=True)
def test_a_report_lists_no_other_property(project, layer):
    listed = set()
    for policy in ({}, {"network": "off"}, *(one for one, _ in BY_POLICY.values())):
        confined = sandbox.confine(["/bin/true"], sandbox.Policy(str(project), str(project), **policy))
        confined.close()
        confined.finish()
        assert confined.report["kind"] == layer
        listed |= {*confined.report["holds"], *confined.report["missing"]}
    assert listed == set(sandbox.PROPERTIES)


def attempted(project, script, mode="auto", **policy):
    listener = socket.create_server(("127.0.0.1", 0))
    env = {"ROOT": str(project), "PORT": str(listener.getsockname()[1])}
    policy = sandbox.Policy(str(project), str(project), env=env, **policy)
    with listener:
        done, report = run_confined(["/bin/sh", "-c", script], policy, mode, cwd=project)
    return "WAS-HERE" in done.stdout.decode(), report["holds"]


@pytest.mark.parametrize("prop", BY_POLICY)
def test_what_a_policy_takes_away_is_gone(project, prop):
    policy, script = BY_POLICY[prop]
    (project / "file").write_text("WAS-HERE")
    succeeded, holds = attempted(project, script)
    assert succeeded, "control"
    assert prop not in holds
    (project / "made").unlink(missing_ok=True)
    succeeded, holds = attempted(project, script, **policy)
    assert prop in holds
    assert not succeeded


LIMITS = "limits: {memory_mb: 96, processes: 40, temporary_mb: 16}\n"
BEYOND_LIMITS = {
    "memory": f"{sys.executable} -c 'b = bytearray(160 << 20); print(\"WAS-HERE\")'",
    "memory of many": f"""for i in 1 2 3 4; do {sys.executable} -c 'import time; b = bytearray(60 << 20); time.sleep(1)' &
        p="$p $!"; done; for j in $p; do wait $j || exit 1; done; echo WAS-HERE""",
    "processes": "for i in $(seq 80); do sleep 0.5 & done 2>&1 | grep -q fork || { wait; echo WAS-HERE; }",
    "the temporary folder": "t=$(mktemp) && head -c 32M /dev/zero > $t && rm $t && echo WAS-HERE; rm -f $t",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BEYOND_LIMITS)
def test_a_command_takes_no_more_than_its_limits(project, user_space, name):
    # Control: without a sandbox there are no limits.
    configure(user_space, LIMITS + "sandbox: {mode: 'off'}\n")
    free = bash(project, BEYOND_LIMITS[name])
    assert "WAS-HERE" in free["output"], free
    assert resource_limits.NAME not in free["sandbox"]["holds"]
    configure(user_space, LIMITS)
    held = bash(project, BEYOND_LIMITS[name])
    if resource_limits.NAME not in held["sandbox"]["holds"]:
        assert held["sandbox"]["missing"][resource_limits.NAME]
        pytest.skip(held["sandbox"]["missing"][resource_limits.NAME])
    assert "WAS-HERE" not in held["output"], held


def test_limits_are_one_commands_own_and_leave_nothing(project, user_space):
    configure(user_space, LIMITS)
    groups = {parent: set(os.listdir(parent)) for parent in resource_limits._parents()}
    for _ in range(3):
        assert bash(project, "echo works")["output"] == "works\n"
    for _ in range(3):
        assert job(project, "wait", started(project, "echo works"))["output"] == "works\n"
    # A job's are removed by the next command.
    assert bash(project, "echo works")["output"] == "works\n"
    # One is kept for the next command.
    until(lambda: all(len(left(parent) - before) <= 1 for parent, before in groups.items()))
    assert all(len(left(parent) - before) <= 1 for parent, before in groups.items())
    body = "import rye, sys; [rye.execute('rye/bash/bash', {'command': 'true'}, project_path=sys.argv[1]) for _ in range(3)]"
    with subprocess.Popen([sys.executable, "-c", body, project]) as caller:
        assert caller.wait() == 0
    assert not [left(parent, caller.pid) for parent in groups if left(parent, caller.pid)]


def left(parent, maker=0):
    return {name for name in os.listdir(parent) if name.startswith(f"rye-{maker or os.getpid()}-")}


@needs_bubblewrap
def test_require_insists_on_limits_only_where_the_user_names_them(project, user_space, monkeypatch):
    monkeypatch.setattr(resource_limits, "_parents", dict)
    wanted = "processes_end, home_hidden"
    configure(user_space, f"sandbox: {{require: [{wanted}]}}\n")
    assert bash(project, "echo works", sandbox="require")["output"] == "works\n"
    configure(user_space, f"sandbox: {{require: [{wanted}, {resource_limits.NAME}]}}\n")
    refused = bash(project, "echo works", sandbox="require")
    assert refused["code"] == "sandbox_unavailable"
    assert "control group" in refused["error"]


@pytest.mark.parametrize(
    "place", [(sandbox, "_own_places", lambda: {os.getcwd() + "/.venv"}), (sys, "path", [*sys.path, "src"])]
)
def test_where_rye_lies_in_the_project_the_report_says_so(project, user_space, monkeypatch, place):
    """Or its Python looks for modules there, as after an editable installation: a `sitecustomize.py` would be the next one's."""
    held = attempted(project, "true")[1]
    monkeypatch.chdir(project)
    monkeypatch.setattr(*place)
    assert {*held} - {*attempted(project, "true")[1]} == {"writes_outside"}
    configure(user_space, "sandbox: {require: [writes_outside]}\n")
    assert sandbox.OWN_PROJECT in bash(project, "true", sandbox="require")["error"]


@pytest.mark.slow
@pytest.mark.skipif(launcher.abi() < 6, reason="this kernel cannot close abstract sockets")
@pytest.mark.skipif(bool(sandbox.layers()["bubblewrap"]), reason="Landlock refuses unix sockets as a whole")
def test_where_the_network_is_on_a_command_reaches_no_abstract_socket(project):
    name = f"rye-{os.getpid()}"
    connect = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('WAS-HERE')"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen()
        reached = [attempted(project, f'{sys.executable} -c "{connect}"', mode, network="on")[0] for mode in ("off", "auto")]
    assert reached == [True, False]


def test_limits_that_are_refused_leave_nothing(project, user_space, monkeypatch, tmp_path):
    if sandbox.layers()["landlock"]:
        pytest.skip(sandbox.layers()["landlock"])
    monkeypatch.setattr(sandbox, "layers", lambda: {"bubblewrap": "not here", "landlock": ""})
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def outcome(text):
        configure(user_space, text)
        found = rye.execute("rye/bash/bash", {"command": "echo works"}, project_path=project)
        return found["status"], found.get("code"), len(os.listdir("/proc/self/fd")), len(list(tmp_path.glob("rye-*")))

    # The control, which opens what stays open, too.
    assert outcome(LIMITS)[0] == "success"
    first = outcome("limits: {memory_mb: lots}\n")
    assert first[:2] == ("error", "bad_config")
    assert [outcome("limits: {memory_mb: lots}\n") for _ in range(3)] == [first] * 3
