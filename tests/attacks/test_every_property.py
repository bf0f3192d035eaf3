"""Each property that a report lists has an attack that succeeds when the property is switched off, and fails when it holds.

Most are those of `test_sandbox_escapes.py`.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from attacks.test_resource_limits import ATTACKS as LIMITS_ATTACKS
from attacks.test_resource_limits import LIMITS, configured
from rye.sandbox import resource_limits, sandbox
from support.confined import run_confined
from support.escapes import WAYS
from support.shell_calls import bash

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


@pytest.mark.parametrize("layer", [name for name, why in sandbox.layers().items() if not why])
def test_a_report_lists_no_other_property(project, monkeypatch, layer):
    if layer == "landlock":
        from rye.sandbox import bubblewrap

        monkeypatch.setattr(bubblewrap, "ability", lambda: bubblewrap.Ability(why_not="switched off for this test"))
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


@pytest.mark.slow
def test_limits_are_switched_off_with_the_sandbox(project, user_space):
    configured(user_space, LIMITS + "sandbox: {mode: 'off'}\n")
    free = bash(project, LIMITS_ATTACKS["processes"])
    assert "WAS-HERE" in free["output"]
    assert resource_limits.NAME not in free["sandbox"]["holds"]
    configured(user_space, LIMITS)
    held = bash(project, LIMITS_ATTACKS["processes"])
    assert (resource_limits.NAME in held["sandbox"]["holds"]) is ("WAS-HERE" not in held["output"])
